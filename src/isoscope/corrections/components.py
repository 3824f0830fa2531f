"""`AllButTheTop`: remove the strongest directions."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from isoscope.corrections.border import check_taken_out
from isoscope.corrections.correction import Correction, Fitted
from isoscope.corrections.maps import Map, Removal
from isoscope.errors import InputError
from isoscope.statistics.moments import Moments
from isoscope.statistics.principal import Principal


class AllButTheTop(Correction):
    """Remove the mean and the k strongest principal directions.

        y = (x − m) − Σ_i (v_i·(x − m)) v_i,   v_1 … v_k the top eigenvectors of the covariance

    The paper suggests k = d/100, which is the default, but at least 1. The removal cannot be inverted.
    Paper: Mu, Viswanath 2018, All-but-the-Top.

    Args:
        n_components: k; None for d // 100, at least 1. It must be below the rank of the vectors.
        as_published: compute (x − m) − Σ_i (v_i·x) v_i, as printed in Algorithm 1 of the paper: x is
            projected instead of x − m. This shifts all vectors by −Σ (v_i·m) v_i.

    Attributes:
        mean_: (d,) m.
        components_: (k, d) v_1 … v_k, one a row.

    >>> AllButTheTop(1).fit_transform([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    """

    _axes: ClassVar[dict[str, str]] = {"mean_": "d", "components_": "kd"}
    _statistic_of = Moments.of
    mean_ = Fitted("(d,) the mean of the vectors fitted on.")
    components_ = Fitted("(k, d) the removed directions, the strongest first.")

    def __init__(self, n_components: int | None = None, *, as_published: bool = False) -> None:
        self.n_components = n_components
        self.as_published = as_published

    def _check_parameters(self, n_dims: int) -> None:
        check_taken_out(self._k(n_dims), n_dims)

    def _solve(self, statistic: Moments) -> dict[str, Tensor]:
        found = Principal.of(statistic, what="AllButTheTop")
        k = self._k(statistic.n_dims)
        if k >= found.rank:  # only rounding errors would remain
            raise InputError(
                f"is {k}, and the {statistic.count} vectors have rank {found.rank}",
                argument="n_components",
                wanted=f"less than {found.rank}, so that a direction remains",
                hint=["remove fewer directions", "fit on more vectors"],
            )
        return {"mean_": statistic.mean, "components_": found.directions[:k]}

    def _k(self, n_dims: int) -> int:
        return max(1, n_dims // 100) if self.n_components is None else self.n_components

    def _map(self, solution: dict[str, Tensor]) -> Map:
        mean, components = solution["mean_"], solution["components_"]
        along = components.T @ (components @ mean)
        return Removal(mean, components, -along if self.as_published else 0 * along)
