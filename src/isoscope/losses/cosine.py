"""`CosineRegularizer`: a penalty on the mean cosine of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from isoscope.arrays import working
from isoscope.errors import InputError
from isoscope.losses.states import States, as_number, check_count, masked_rows, units
from isoscope.statistics.directions import pair_cosine
from isoscope.statistics.processes import all_sum


class CosineRegularizer(nn.Module):
    """Penalty on a direction that all vectors share.

        λ·(‖Σ u_i‖² − n)/(n(n − 1)),   u = x/‖x‖

    λ times the mean cosine over all pairs of different vectors, exactly, in O(nd): the n × n matrix is
    never made. Range [−λ/(n−1), λ]; high is a narrow cone. Unchanged by rotation and by the length of
    each vector. Zero vectors have no direction, are left out and get a gradient of zero.

    It moves the mean, not the spectrum: subtracting the mean vector lowers it to about 0, while
    `IStarLoss` does not see the mean at all.

    **Gradient accumulation.** The mean over micro-batches is the penalty over pairs within each, an
    unbiased estimate of that over all pairs; with `pairs="n_squared"` it is smaller by (m − 1)/m, m the
    size of a micro-batch. **Several processes**: the penalty is that of all processes' vectors, gradient
    included; every process must call it.

    Args:
        strength: λ.
        pairs: what is divided by: "different" n(n − 1), the number of pairs summed over; "n_squared" the
            paper's n², which makes the penalty smaller in smaller batches.
        layers: as in `IStarLoss`.
        across_processes: whether to reckon with the vectors of other processes.

    Paper: Gao et al. 2019, Representation degeneration problem; as CosReg in Rudman and Eickhoff 2024.

    >>> X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    >>> CosineRegularizer(1.0)(X)
    tensor(0.3333)
    >>> CosineRegularizer(1.0, pairs="n_squared")(X)
    tensor(0.2222)
    """

    def __init__(
        self,
        strength: float = 1.0,
        *,
        pairs: Literal["different", "n_squared"] = "different",
        layers: Sequence[int] | None = None,
        across_processes: bool = True,
    ) -> None:
        super().__init__()
        if pairs not in ("different", "n_squared"):
            raise InputError(argument="pairs", got=pairs, wanted="'different' or 'n_squared'")
        self.strength = as_number(strength, "strength")
        self.pairs = pairs
        self.layers = layers
        self.across_processes = across_processes

    def forward(self, states: States, mask: Tensor | None = None) -> Tensor:
        """Return the penalty of (n, d) vectors, masked (B, T, d) token states, or a sequence of layers."""
        rows = masked_rows(states, mask, self.layers)
        directions, present = units(working(rows))
        sums = torch.cat([directions.sum(dim=0, dtype=torch.float64), present.sum().double()[None]])
        sums = all_sum(sums, across_processes=self.across_processes)
        total, n = sums[:-1], int(sums[-1].detach())
        check_count(n, 2, "the mean cosine", mask)
        cosine = pair_cosine(n, total @ total)
        if self.pairs == "n_squared":
            cosine = cosine * ((n - 1) / n)
        return (self.strength * cosine).to(directions.dtype)

    def extra_repr(self) -> str:
        """Return the parameters that `print` shows."""
        return f"strength={self.strength}, pairs={self.pairs!r}, layers={self.layers}"
