"""What one pass over all rows of a source finds without a statistic: a random sample, and equal rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import blocks
from isoscope.engine.source import Source
from isoscope.space import Space
from isoscope.statistics.equal_rows import fingerprints

MOST_COMPARED = 10_000_000  # rows whose fingerprints are held, 8 bytes each


@dataclass(frozen=True)
class EqualRows:
    """The zero vectors of a source, and the rows that have an exact copy.

    Attributes:
        copies: (m,) the numbers of the rows that are equal to another row; zero vectors do not count.
        originals: (m,) for each of them, the first row that it is equal to, which may be itself.
        zeros: (k,) the numbers of the zero vectors.
        n_compared: how many rows, from the first on, were compared with each other.
    """

    copies: Tensor
    originals: Tensor
    zeros: Tensor
    n_compared: int

    @classmethod
    def of(cls, source: Source) -> EqualRows:
        """Compare the rows of a source by a 64-bit fingerprint, in one pass.

        >>> EqualRows.of(Space([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [1.0, 0.0]])).copies.tolist()
        [1, 3]
        """
        prints: list[Tensor] = []
        for block in source.blocks():
            prints += [fingerprints(rows).cpu() for rows in blocks(block.vectors.detach())]
            if sum(map(len, prints)) >= MOST_COMPARED:
                break
        return cls.of_prints(torch.cat(prints))

    @classmethod
    def of_prints(cls, prints: Tensor) -> EqualRows:
        """Return the rows that share their fingerprint with another."""
        zeros = (prints == 0).nonzero().flatten()
        ordered, order = prints.sort(stable=True)
        same = (ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)
        edge = torch.zeros(1, dtype=torch.bool)
        is_copy = torch.cat([same, edge]) | torch.cat([edge, same])
        is_first = is_copy & ~torch.cat([edge, same])
        rows, places = order[is_copy].sort()
        originals = order[is_first][is_first[is_copy].cumsum(0) - 1]
        return cls(rows, originals[places], zeros, len(prints))

    def groups(self, most: int) -> list[list[int]]:
        """Return the rows that are equal, one list for each vector, of at most so many rows in all.

        >>> EqualRows.of(Space([[1.0], [2.0], [2.0], [1.0], [3.0]])).groups(10)
        [[0, 3], [1, 2]]
        """
        originals, order = self.originals.sort(stable=True)
        sizes = originals[:most].unique_consecutive(return_counts=True)[1].tolist()
        groups = self.copies[order][:most].split(sizes) if sizes else ()
        return [group.tolist() for group in groups if len(group) > 1]


@dataclass(frozen=True)
class Sample:
    """Rows drawn at random, and the rows of the whole source that have an exact copy.

    Attributes:
        space: the rows drawn, in their order, with their labels.
        rows: (m,) their numbers in the source.
        equal: the zero vectors and the rows that have an exact copy.
    """

    space: Space
    rows: Tensor
    equal: EqualRows


def sample_rows(source: Source, n: int, *, seed: int = 0) -> Sample:
    """Draw n rows without replacement, and find rows that have an exact copy, in one pass over the source.

    The same rows are drawn from a file and from an array in memory. All rows are drawn where the source has
    no more than n. Equal rows are found by a 64-bit fingerprint.

    >>> sample = sample_rows(Space([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [1.0, 0.0]]), 2)
    >>> len(sample.space), sample.equal.copies.tolist()
    (2, [1, 3])
    """
    generator = np.random.default_rng(seed)
    keys, rows = np.empty(0), np.empty(0, dtype=np.int64)
    drawn: list[Space] = []
    prints: list[Tensor] = []
    start = 0
    for block in source.blocks():
        if start < MOST_COMPARED:
            prints.append(fingerprints(block.vectors.detach()).cpu())
        key = generator.random(len(block))
        below = np.flatnonzero(key < (keys.max() if len(keys) == n else np.inf))
        drawn.append(block.take(torch.from_numpy(below)))
        keys, rows = np.concatenate([keys, key[below]]), np.concatenate([rows, start + below])
        if len(keys) > n:
            smallest = np.sort(np.argpartition(keys, n)[:n])
            keys, rows = keys[smallest], rows[smallest]
            drawn = [_joined(drawn).take(torch.from_numpy(smallest))]
        start += len(block)
    return Sample(_joined(drawn), torch.from_numpy(rows), EqualRows.of_prints(torch.cat(prints)))


def _joined(parts: list[Space]) -> Space:
    """Return blocks of rows as one Space of vectors and labels."""
    if len(parts) == 1:
        return parts[0]
    labels: list[Any] | None = None
    if parts[0].labels is not None:
        labels = [
            block.labels.names[code]
            for block in parts
            if block.labels is not None
            for code in block.labels.codes.tolist()
        ]
    return Space(torch.cat([block.vectors.detach() for block in parts]), labels=labels, name=parts[0].name)
