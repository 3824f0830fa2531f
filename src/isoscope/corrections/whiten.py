"""`Whiten`: equal variance in every direction, fully or in part."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if
from torch import Tensor

from isoscope.corrections.correction import Correction, Fitted
from isoscope.corrections.maps import Affine, Map
from isoscope.errors import InputError, Setting, check_choice, check_share, check_whole
from isoscope.statistics.moments import Moments
from isoscope.statistics.principal import Principal, ledoit_wolf

_METHODS = ("pca", "zca")
# a direction that the sample never used is stretched at most √1000 ≈ 32 times as far as an average one
_LEAST_SHRINKAGE = 1e-3
_FLOAT32_ERROR = 5e-7  # of a covariance; if it would be larger, float32 vectors are multiplied in float64


def _is_invertible(correction: Any) -> bool:
    if not hasattr(correction, "n_features_in_"):
        return correction.n_components is None
    return correction.n_components in (None, correction.n_features_in_)


class Whiten(Correction):
    """Scale all directions to equal variance, so that the covariance becomes the identity.

        y = (x − m) V diag(λ^(−strength/2)),   λ, V the eigenvalues and eigenvectors of the covariance
        zca:  y = (x − m) V diag(λ^(−strength/2)) Vᵀ, rotated back, so that y is as close to x as possible

    A strength of 1 whitens, 0 only centres (and rotates, with pca), and values between whiten in part. If the
    rank is below d, as it always is for n ≤ d vectors, some λ are 0. The covariance is then shrunk to
    (1 − γ)C + γ(tr C/d)·1, with γ by Ledoit and Wolf (2004) but at least 0.001. The covariance of the
    result is then not quite the identity, and directions without variance are stretched by a finite factor.
    float32 vectors are multiplied in float32 if that keeps covariances within 1e-6, else in float64.
    Papers: Su et al. 2021, Whitening Sentence Representations; Kessy et al. 2018, Optimal Whitening.

    Args:
        n_components: number of directions to keep, the strongest first; None for all. pca returns this many
            dimensions; zca returns d dimensions that span only the kept directions.
        strength: how far to whiten, from 0 to 1.
        method: "pca" or "zca".
        regularization: γ from 0 to 1, or "auto": 0 at full rank, or where n_components keeps within the rank,
            else as above.

    Attributes:
        mean_: (d,) m.
        components_: (k, d) the directions, one a row.
        eigenvalues_: (k,) the variances along them, with divisor n − 1, of the covariance after shrinking.
        regularization_: γ.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [5.0, 1.0, 0.2]
    >>> bool(np.allclose(np.cov(Whiten().fit_transform(X).T), np.eye(3)))
    True
    """

    _axes: ClassVar[dict[str, str]] = {
        "mean_": "d",
        "components_": "kd",
        "eigenvalues_": "k",
        "regularization_": "",
    }
    _statistic_of = Moments.of
    mean_ = Fitted("(d,) the mean of the vectors fitted on.")
    components_ = Fitted("(k, d) the directions, the strongest first.")
    eigenvalues_ = Fitted("(k,) the variance along each direction.")
    regularization_ = Fitted("How far the covariance was shrunk, from 0 to 1.")

    def __init__(
        self,
        n_components: int | None = None,
        strength: float = 1.0,
        *,
        method: str = "pca",
        regularization: float | str = "auto",
    ) -> None:
        self.n_components = n_components
        self.strength = strength
        self.method = method
        self.regularization = regularization

    @available_if(_is_invertible)  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: Any) -> Any:
        """Return the original vectors. Available if all directions are kept."""
        return self._undone(X, self._backwards)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the output dimensions: whiten0, whiten1, … for pca, the input names for zca."""
        names = super().get_feature_names_out(input_features)
        if self.method == "zca":
            return names
        return np.array([f"whiten{i}" for i in range(len(self.eigenvalues_))], dtype=object)

    def _check_parameters(self, n_dims: int) -> None:
        if self.n_components is not None:
            check_whole("n_components", self.n_components, most=n_dims)
        check_share("strength", self.strength)
        check_choice("method", self.method, _METHODS)
        check_share("regularization", self.regularization, or_word="auto")

    def _solve(self, statistic: Moments) -> dict[str, Tensor]:
        found = Principal.of(statistic, what="Whiten")
        k = statistic.n_dims if self.n_components is None else self.n_components
        shrinkage = self._shrinkage(statistic, found.rank, k)
        whole = found if k <= found.rank else found.completed()
        values = (1 - shrinkage) * whole.eigenvalues + shrinkage * whole.eigenvalues.sum() / statistic.n_dims
        return {
            "mean_": statistic.mean,
            "components_": whole.directions[:k],
            "eigenvalues_": values[:k],
            "regularization_": torch.tensor(shrinkage, dtype=torch.float64),
        }

    def _shrinkage(self, statistic: Moments, rank: int, k: int) -> float:
        """Return γ: the one given, or the one that k directions of vectors of this rank need."""
        n = statistic.count
        if self.regularization == "auto":
            if self.n_components is not None and k > rank:
                raise InputError(
                    f"is {k}, and the {n} vectors have rank {rank}",
                    argument="n_components",
                    wanted=f"at most {rank}",
                    hint=["fit on more vectors", Setting("regularization", 0.1)],
                )
            return 0.0 if k <= rank else max(ledoit_wolf(statistic), _LEAST_SHRINKAGE)
        if self.regularization == 0 and k > rank and self.strength > 0:
            raise InputError(
                f"is 0, and the {n} vectors have rank {rank}, below the {k} directions to keep",
                argument="regularization",
                hint=[
                    "fit on more vectors",
                    Setting("n_components", rank),
                    Setting("regularization", "auto"),
                ],
            )
        return float(self.regularization)

    def _map(self, solution: dict[str, Tensor]) -> Affine:
        V, powers = solution["components_"], solution["eigenvalues_"] ** (-self.strength / 2)
        matrix = V.T * powers
        if self.method == "zca":
            matrix = matrix @ V
        return Affine(solution["mean_"], matrix, matrix.new_zeros(matrix.shape[1]))

    def _needs_float64(self) -> bool:
        """Whether rounding the matrix to float32 changes a covariance by over 5e-7 of the variances.

        Rounding mixes some of the strongest direction into the weakest, stretched by √(λ₁/λ_d). The effect on
        the covariance follows from the matrix alone.
        """
        known = self._solved()
        matrix = self._map(known).matrix
        wanted, found = (
            (turned.T * known["eigenvalues_"]) @ turned
            for turned in (known["components_"] @ M for M in (matrix, matrix.float().double()))
        )
        scale = wanted.diagonal().clamp(min=torch.finfo(wanted.dtype).tiny).sqrt()
        return bool(((found - wanted).abs() / torch.outer(scale, scale)).max() > _FLOAT32_ERROR)

    def _backwards(self, solution: dict[str, Tensor]) -> Map:
        V, powers = solution["components_"], solution["eigenvalues_"] ** (self.strength / 2)
        matrix = powers[:, None] * V
        if self.method == "zca":
            matrix = V.T @ matrix
        return Affine(matrix.new_zeros(len(matrix)), matrix, solution["mean_"])
