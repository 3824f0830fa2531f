"""`Truncate`: the first dimensions alone, as for models trained for it (Matryoshka)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from isoscope.corrections.correction import Correction, Fitted
from isoscope.corrections.maps import Map, Selection
from isoscope.errors import check_whole


class Truncate(Correction):
    """Keep the first k dimensions.

        y = (x_1 … x_k)

    Models trained with a Matryoshka loss put most into the first dimensions. Scale to length 1 afterwards:
    `Chain([Truncate(256), Normalize()])`.
    Paper: Kusupati et al. 2022, Matryoshka Representation Learning.

    Args:
        n_dims: k; None for all dimensions.

    Attributes:
        kept_: (d,) which dimensions are kept.

    >>> Truncate(2).fit_transform([[3.0, 4.0, 5.0]]).tolist()
    [[3.0, 4.0]]
    """

    _axes: ClassVar[dict[str, str]] = {"kept_": "d"}
    kept_ = Fitted("(d,) which dimensions are kept.")

    def __init__(self, n_dims: int | None = None) -> None:
        self.n_dims = n_dims

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the dimensions that are kept."""
        return super().get_feature_names_out(input_features)[self.kept_]

    def _check_parameters(self, n_dims: int) -> None:
        if self.n_dims is not None:
            check_whole("n_dims", self.n_dims, most=n_dims)

    def _gather(self, rows: Tensor) -> None:
        self._statistic = rows.shape[1]

    def _solve(self, statistic: int) -> dict[str, Tensor]:
        k = statistic if self.n_dims is None else self.n_dims
        return {"kept_": torch.arange(statistic) < k}

    def _map(self, solution: dict[str, Tensor]) -> Map:
        return Selection(solution["kept_"].double(), zero=False)
