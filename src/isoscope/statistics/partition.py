"""`LogPartition`: log Z(c) = log Σ exp(c·x) along ± every principal direction, in the log domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.kernels.recorded import replayed_if_few
from isoscope.statistics.chunks import pieces
from isoscope.statistics.declared import declare
from isoscope.statistics.moments import Moments


@dataclass(frozen=True, eq=False)
class LogPartition:
    """log Z(c) and log Z(−c) for c over the eigenvectors of Σ x xᵀ (an eigenvector has no sign).

    Attributes:
        directions: (d, d) the eigenvectors, one a column.
        log_z: (2, d) float64, for +c and −c over the rows seen so far.
    """

    directions: Tensor
    log_z: Tensor

    @classmethod
    def of(cls, X: Any, moments: Moments) -> LogPartition:
        """One pass over X along the principal directions of the vectors `moments` was taken over."""
        directions = moments.principal[1]
        log_z: Tensor | None = None
        for rows in pieces(as_matrix(X)):
            (part,) = replayed_if_few(_log_z, rows, directions)
            log_z = part if log_z is None else torch.logaddexp(log_z, part)
        assert log_z is not None
        return cls(directions, log_z)

    def merge(self, other: LogPartition) -> LogPartition:
        """Return the rows of both, along the same directions."""
        return LogPartition(self.directions, torch.logaddexp(self.log_z, other.log_z))


def _log_z(rows: Tensor, directions: Tensor) -> tuple[Tensor]:
    projections = rows.double() @ directions
    return (torch.stack([projections.logsumexp(dim=0), (-projections).logsumexp(dim=0)]),)


declare(
    "log_partition",
    LogPartition,
    lambda space, shelf: LogPartition.of(space, shelf.moments),
    builds_on="moments",
    operations=lambda d: 2 * d * d + 4 * d,
    bytes_held=lambda _n, d, _k: 8 * d * (d + 2),
)
