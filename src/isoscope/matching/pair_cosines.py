"""`PairCosines`: the cosines of random pairs and of pairs with the same label, and thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks, working, working_dtype
from isoscope.errors import UndefinedError, check_seed
from isoscope.labels import Labels, as_clusters
from isoscope.statistics.directions import unit_rows

_PAIRS_ABOVE = 10  # the fewest pairs above a threshold for it to be known
N_PAIRS = 200_000  # of each kind: a share of 1 % is then accurate to 0.02 %
_BATCH = 1024  # pairs whose rows fit in the cache
_FEWEST_OTHER = 100  # pairs with different labels
_UNIT_BYTES = 256 * 2**20  # of unit vectors computed in advance; of more rows they are computed by pair


@dataclass(frozen=True)
class BestThreshold:
    """The threshold between pairs with the same label and other pairs that has the best balanced accuracy.

    Attributes:
        threshold: the cosine at which `same_above` − `other_above` is largest.
        same_above, other_above: the shares of both kinds of pairs with a cosine of at least the threshold.
        auc: how often a pair with the same label has the higher cosine; ties count half.
        balanced_accuracy: the mean of `same_above` and 1 − `other_above`.
        precision: the share of pairs with the same label among all pairs above the threshold.
        same_share: the share of pairs with the same label among all pairs.
    """

    threshold: float
    same_above: float
    other_above: float
    auc: float
    balanced_accuracy: float
    precision: float
    same_share: float


@dataclass(frozen=True, eq=False)
class PairCosines:
    """Sorted cosines of pairs of rows: of all pairs where there are few, else of a sample.

    Attributes:
        random: the cosines of any two rows.
        same: the cosines of two rows with the same label; None where there are no such pairs.
        other: the cosines of two rows with different labels; None where there are hardly any such pairs.
        is_exact: whether all pairs were used.
        same_share: the share of pairs with the same label among all pairs; None without labels.

    >>> cosines = PairCosines.of([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> [round(cosine, 4) for cosine in cosines.random.tolist()], cosines.is_exact
    ([0.0, 0.7071, 0.7071], True)
    """

    random: Tensor
    same: Tensor | None
    other: Tensor | None
    is_exact: bool
    same_share: float | None = None

    @classmethod
    def of(cls, X: Any, labels: Any = None, *, n_pairs: int = N_PAIRS, seed: int = 0) -> PairCosines:
        """Compute the cosines; of more than `n_pairs` pairs of a kind, so many are drawn at random."""
        if isinstance(X, PairCosines):
            return X
        check_seed(seed)
        matrix = as_matrix(X).detach()
        coded = None if labels is None else as_clusters(labels, n=len(matrix))
        rows = _Rows(matrix)
        if len(rows) < 2:
            raise UndefinedError(f"cosines need at least 2 vectors that are not zero, got {len(rows)}")
        codes = None if coded is None else coded.codes.to(rows.index.device)[rows.index]
        if len(rows) * (len(rows) - 1) // 2 <= n_pairs:
            return _all_pairs(rows, codes)
        generator = torch.Generator().manual_seed(seed)
        random = rows.cosines(*_random_pairs(len(rows), n_pairs, generator))
        if codes is None:
            return cls(random, None, None, False)
        present = Labels(codes.cpu(), coded.names if coded else ())
        same = _same_pairs(present, n_pairs, generator)
        other = _other_pairs(present.codes, n_pairs, generator)
        share = float((present.counts * (present.counts - 1)).sum()) / (len(rows) * (len(rows) - 1))
        return cls(random, same and rows.cosines(*same), other and rows.cosines(*other), False, share)

    def knows(self, share: float) -> bool:
        """Return whether there are enough pairs to compute the threshold of a share.

        >>> PairCosines.of([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).knows(0.01)
        False
        """
        return share * len(self.random) >= _PAIRS_ABOVE

    def threshold(self, share: float) -> float:
        """Return the cosine that a given share of random pairs exceeds.

        >>> PairCosines(torch.arange(101).double() / 100, None, None, True).threshold(0.05)
        0.95
        """
        return float(np.quantile(self.random.numpy(), 1 - share))

    def best(self) -> BestThreshold | None:
        """Return the threshold of the best balanced accuracy; None where one kind of pairs is missing."""
        if self.same is None or self.other is None or self.same_share is None:
            return None
        cuts = torch.cat([self.same, self.other]).unique()
        same_above, other_above = (
            1 - torch.searchsorted(values, cuts).double() / len(values) for values in (self.same, self.other)
        )
        best = int((same_above - other_above).argmax())
        same, other = float(same_above[best]), float(other_above[best])
        accepted = self.same_share * same
        below = torch.searchsorted(self.other, self.same) + torch.searchsorted(
            self.other, self.same, right=True
        )
        auc = float(below.double().mean() / (2 * len(self.other)))
        return BestThreshold(
            threshold=float(cuts[best]),
            same_above=same,
            other_above=other,
            auc=auc,
            balanced_accuracy=(1 + same - other) / 2,
            precision=accepted / (accepted + (1 - self.same_share) * other),
            same_share=self.same_share,
        )


class _Rows:
    """The rows that are not zero, as unit vectors: computed in advance where they are few."""

    def __init__(self, matrix: Tensor) -> None:
        norms = torch.cat([unit_rows(block)[1] for block in blocks(matrix)])
        self.matrix = matrix
        self.index = (norms > 0).nonzero().flatten()
        self.inverse = 1 / norms[self.index]
        is_small = len(self.index) * matrix.shape[1] * working_dtype(matrix.dtype).itemsize <= _UNIT_BYTES
        self._units = self._unit_vectors(slice(None)) if is_small else None

    def __len__(self) -> int:
        return len(self.index)

    def _unit_vectors(self, which: Any) -> Tensor:
        rows = working(self.matrix[self.index[which]])
        return rows * self.inverse[which, None].to(rows.dtype)

    def units(self, which: Tensor) -> Tensor:
        return self._unit_vectors(which) if self._units is None else self._units.index_select(0, which)

    def cosines(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the sorted cosines of pairs, (m,) float64; rows are numbered without the zero vectors."""
        device = self.index.device
        parts = [
            torch.linalg.vecdot(self.units(one), self.units(other)).double()
            for one, other in zip(
                first.to(device).split(_BATCH), second.to(device).split(_BATCH), strict=True
            )
        ]
        return torch.cat(parts).clamp(-1, 1).cpu().sort().values


def _all_pairs(rows: _Rows, codes: Tensor | None) -> PairCosines:
    i, j = torch.triu_indices(len(rows), len(rows), offset=1, device=rows.index.device)
    units = unit_rows(rows.matrix[rows.index])[0].double()
    cosines = (units @ units.T)[i, j].clamp(-1, 1).cpu()
    if codes is None:
        return PairCosines(cosines.sort().values, None, None, True)
    is_same = (codes[i] == codes[j]).cpu()
    same, other = cosines[is_same].sort().values, cosines[~is_same].sort().values
    return PairCosines(
        random=cosines.sort().values,
        same=same if len(same) else None,
        other=other if len(other) else None,
        is_exact=True,
        same_share=len(same) / len(cosines),
    )


def _random_pairs(n: int, n_pairs: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    first = torch.randint(n, (n_pairs,), generator=generator)
    step = torch.randint(1, n, (n_pairs,), generator=generator)
    return first, (first + step) % n


def _same_pairs(labels: Labels, n_pairs: int, generator: torch.Generator) -> tuple[Tensor, Tensor] | None:
    """Return all pairs with the same label; of more than `n_pairs`, so many are drawn at random."""
    counts = labels.counts
    n_of = counts * (counts - 1) // 2
    if not n_of.sum() > 0:
        return None
    order, starts = labels.codes.argsort(stable=True), counts.cumsum(0) - counts
    if int(n_of.sum()) <= n_pairs:
        sizes = zip(starts.tolist(), counts.tolist(), strict=True)
        parts = [start + torch.triu_indices(n, n, offset=1) for start, n in sizes if n > 1]
        first, second = order[torch.cat(parts, dim=1)]
        return first, second
    label = torch.multinomial(n_of.double(), n_pairs, replacement=True, generator=generator)
    size = counts[label]
    first = (torch.rand(n_pairs, generator=generator, dtype=torch.float64) * size).long()
    step = 1 + (torch.rand(n_pairs, generator=generator, dtype=torch.float64) * (size - 1)).long()
    return order[starts[label] + first], order[starts[label] + (first + step) % size]


def _other_pairs(codes: Tensor, n_pairs: int, generator: torch.Generator) -> tuple[Tensor, Tensor] | None:
    """Return random pairs with different labels; None where nearly all pairs have the same one."""
    first, second = _random_pairs(len(codes), 4 * n_pairs, generator)
    different = (codes[first] != codes[second]).nonzero().flatten()[:n_pairs]
    return (first[different], second[different]) if len(different) >= _FEWEST_OTHER else None
