"""`Translate`: from the vectors of one model to those of another, learnt from items that have both."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.corrections.border import as_rows
from isoscope.corrections.correction import Correction, Fitted, Solution
from isoscope.corrections.maps import Affine, Map
from isoscope.errors import (
    InputError,
    ShapeError,
    UndefinedError,
    check_choice,
    check_positive,
    check_seed,
)

METHODS = ("procrustes", "ridge", "features")
_FEATURES = 1024  # random ones, of a Gaussian kernel
_PAIRS = 2000  # rows whose distances set the width of the kernel


class Bent(Map):
    """y = (x − c) M + √(2/m) cos((x − c) W + p) R + b."""

    center: Tensor
    matrix: Tensor
    offset: Tensor
    frequencies: Tensor
    phases: Tensor
    weights: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Return the linear part and that of the random features."""
        centred = x - self.center
        features = torch.cos(centred @ self.frequencies + self.phases) * math.sqrt(2 / len(self.phases))
        return centred @ self.matrix + features @ self.weights + self.offset


class Translate(Correction):
    """Map the vectors of one model to those of another, fitted to items that both have embedded.

        procrustes:  y = s (x − m) Q + b, Q orthogonal: rotated, scaled and shifted
        ridge:       y = (x − m) M + b, M the least squares with α ‖M‖² added
        features:    ridge on the vectors and on 1,024 random Fourier features of them: a small curved map

    Fit it with `fit(old, new)`, row i of both the same item; `transform` maps further old vectors. Papers:
    Schönemann 1966; Hoerl and Kennard 1970; Rahimi and Recht 2007.

    Args:
        method: "procrustes", "ridge" or "features".
        alpha: the penalty of ridge and features, as a share of the mean variance times the rows.
        seed: of the random features.

    Attributes:
        mean_, matrix_, offset_: m (d,), M or sQ (d, k), and b (k,).
        frequencies_, phases_, weights_: W (d, m), p (m,) and R (m, k) of the features; m is 0 without them.

    >>> old = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [5.0, 3.0]]
    >>> Translate("procrustes").fit(old, [[-y, x] for x, y in old]).transform([[3.0, 4.0]]).round(6).tolist()
    [[-4.0, 3.0]]
    """

    _axes: ClassVar[dict[str, str]] = {
        "mean_": "d",
        "matrix_": "dk",
        "offset_": "k",
        "frequencies_": "dm",
        "phases_": "m",
        "weights_": "mk",
    }
    mean_ = Fitted("(d,) the mean of the old vectors.")
    matrix_ = Fitted("(d, k) the linear map.")
    offset_ = Fitted("(k,) what is added.")
    frequencies_ = Fitted("(d, m) the frequencies of the random features.")
    phases_ = Fitted("(m,) their phases.")
    weights_ = Fitted("(m, k) their weights.")

    def __init__(self, method: str = "ridge", *, alpha: float = 1e-3, seed: int = 0) -> None:
        self.method = method
        self.alpha = alpha
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on (n, d) old vectors and (n, k) new ones of the same items."""
        if y is None:
            raise InputError("is missing", argument="y", wanted="the new vectors of the items of `X`")
        old, new = as_rows(self, X, reset=True).double(), as_matrix(y, name="y").detach()
        self._check_parameters(old.shape[1])
        if len(old) != len(new):
            raise ShapeError(f"has {len(new)} rows", argument="y", wanted=f"{len(old)}, the items of `X`")
        self._forget()
        self._solution = Solution(self._learnt(old.detach(), new.double().to(old.device)))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Raise InputError: the map is fitted to all rows at once."""
        raise InputError("Translate is fitted to all rows at once", hint="call fit(old, new)")

    def _check_parameters(self, n_dims: int) -> None:
        del n_dims
        check_choice("method", self.method, METHODS)
        check_positive("alpha", self.alpha)
        check_seed(self.seed)

    def _learnt(self, old: Tensor, new: Tensor) -> dict[str, Tensor]:
        mean, center = old.mean(dim=0), new.mean(dim=0)
        x, y = old - mean, new - center
        if not x.square().sum() > 0:
            raise UndefinedError("Translate is undefined: all vectors to be mapped are equal")
        n_dims, n_out = x.shape[1], y.shape[1]
        frequencies, phases = x.new_zeros(n_dims, 0), x.new_zeros(0)
        weights, shift = x.new_zeros(0, n_out), torch.zeros_like(center)
        if self.method == "procrustes":
            matrix = _rigid(x, y)
        elif self.method == "ridge":
            matrix = _ridge(x, y, self.alpha)
        else:
            frequencies, phases = self._drawn(x)
            features = torch.cos(x @ frequencies + phases) * math.sqrt(2 / _FEATURES)
            average = features.mean(dim=0)
            # of the size of the vectors, so that one penalty suits both
            size = (x.square().sum() / (features - average).square().sum().clamp(min=1e-300)).sqrt()
            both = torch.cat([x, (features - average) * size], dim=1)
            solved = _ridge(both, y, self.alpha)
            matrix, weights = solved[:n_dims], solved[n_dims:] * size
            shift = average @ weights
        return {
            "mean_": mean,
            "matrix_": matrix,
            "offset_": center - shift,
            "frequencies_": frequencies,
            "phases_": phases,
            "weights_": weights,
        }

    def _drawn(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return frequencies of a Gaussian kernel as wide as the rows are apart, and phases."""
        generator = torch.Generator().manual_seed(self.seed)
        some = x[torch.randperm(len(x), generator=generator)[:_PAIRS].to(x.device)]
        width = float(torch.pdist(some[:_PAIRS]).median().clamp(min=1e-12)) if len(some) > 1 else 1.0
        frequencies = torch.randn(x.shape[1], _FEATURES, generator=generator, dtype=torch.float64) / width
        phases = 2 * math.pi * torch.rand(_FEATURES, generator=generator, dtype=torch.float64)
        return frequencies.to(x.device), phases.to(x.device)

    def _map(self, solution: dict[str, Tensor]) -> Map:
        center, matrix, offset = (solution[name] for name in ("mean_", "matrix_", "offset_"))
        if not len(solution["phases_"]):
            return Affine(center, matrix, offset)
        more = {name: solution[f"{name}_"] for name in ("frequencies", "phases", "weights")}
        return Bent(matrix.shape[1], center=center, matrix=matrix, offset=offset, **more)


def _rigid(x: Tensor, y: Tensor) -> Tensor:
    """Return s Q, which minimises ‖s x Q − y‖."""
    u, values, v = torch.linalg.svd(x.T @ y, full_matrices=False)
    rotation = u @ v
    return rotation * (values.sum() / (x @ rotation).square().sum().clamp(min=1e-300))


def _ridge(x: Tensor, y: Tensor, alpha: float) -> Tensor:
    product = x.T @ x
    penalty = alpha * product.trace() / len(product)
    eye = torch.eye(len(product), dtype=x.dtype, device=x.device)
    return torch.linalg.solve(product + penalty * eye, x.T @ y)
