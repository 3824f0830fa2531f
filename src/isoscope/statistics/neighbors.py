"""`Neighbors`: the k smallest distances of every point to the others, exact, in row strips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.errors import InputError, ShapeError
from isoscope.kernels.precision import center_and_unit, direct_squares, full_precision, pair_dtype
from isoscope.kernels.tiles import Progress

_STRIP_BYTES = 64 * 2**20  # of squared distances held at once
_CUDA_STRIP_BYTES = 2 * 2**30  # a launch has to keep a whole device busy
# squared distances under this share of the scale are taken again by direct difference
_NEAR = {torch.float32: 2e-2, torch.float64: 1e-6}
_CROWDED = {torch.float32: 1e-3, torch.float64: 1e-8}
_SPARE = 8  # candidates beyond k, so that rounding at the border costs nothing


@dataclass(frozen=True, eq=False)
class Neighbors:
    """For each query its k nearest points, nearest first; a point is not its own neighbour.

    Attributes:
        distances: (m, k) float64, Euclidean.
        indices: (m, k) int64, rows of the points searched; −1 where fewer than k have been seen.
    """

    distances: Tensor
    indices: Tensor

    @classmethod
    def of(cls, X: Any, *, k: int, progress: Progress | None = None) -> Neighbors:
        """All points among all others; k < n. Neighbors pass through, cut to k."""
        if isinstance(X, Neighbors):
            return X.nearest(k)
        points = as_matrix(X).detach()
        _check_k(k, points.shape[0] - 1)
        search = _Search.of(points, points, own_offset=0)
        return search.nearest(k, progress)

    @classmethod
    def between(cls, queries: Any, X: Any, *, k: int, offset: int = 0) -> Neighbors:
        """Queries among a block of points whose first row has index `offset`; nothing is left out."""
        wanted, points = as_matrix(queries, name="queries"), as_matrix(X)
        if wanted.shape[1] != points.shape[1]:
            raise ShapeError(
                f"queries have {wanted.shape[1]} dimensions and X {points.shape[1]}; wanted the same"
            )
        found = _Search.of(wanted, points, own_offset=None).nearest(min(k, points.shape[0]), None)
        missing = k - found.k
        return cls(
            torch.nn.functional.pad(found.distances, (0, missing), value=torch.inf),
            torch.nn.functional.pad(found.indices + offset, (0, missing), value=-1),
        )

    def update(self, queries: Any, block: Any, *, offset: int) -> Neighbors:
        """The same queries with one more block of points, whose first row has index `offset`."""
        return self.merge(Neighbors.between(queries, block, k=self.k, offset=offset))

    def merge(self, other: Neighbors) -> Neighbors:
        """The nearest of both, for the same queries."""
        distances = torch.cat([self.distances, other.distances], dim=1)
        indices = torch.cat([self.indices, other.indices], dim=1)
        distances, order = distances.sort(dim=1, stable=True)
        return Neighbors(distances[:, : self.k], indices.gather(1, order)[:, : self.k])

    @property
    def k(self) -> int:
        """How many neighbours are held."""
        return int(self.distances.shape[1])

    def nearest(self, k: int) -> Neighbors:
        """The first k of them."""
        _check_k(k, self.k)
        return Neighbors(self.distances[:, :k], self.indices[:, :k])


def _check_k(k: int, most: int) -> None:
    if not isinstance(k, int) or not 1 <= k <= most:
        raise InputError(f"k is {k!r}; wanted a whole number from 1 to {most}, the number of other points")


@dataclass(frozen=True, eq=False)
class _Search:
    """Queries and points about one centre, in units of the points' root mean square."""

    queries: Tensor
    points: Tensor
    center: Tensor
    unit: float
    own_offset: int | None  # row of the first query among the points, or None if they are apart

    @classmethod
    def of(cls, queries: Tensor, points: Tensor, *, own_offset: int | None) -> _Search:
        center, unit = center_and_unit(points)
        return cls(queries, points, center, unit, own_offset)

    def nearest(self, k: int, progress: Progress | None) -> Neighbors:
        m, n = self.queries.shape[0], self.points.shape[0]
        columns = self._placed(self.points)
        squares = columns.double().square().sum(dim=1)
        strip = max(16, (_CUDA_STRIP_BYTES if columns.is_cuda else _STRIP_BYTES) // (4 * n))
        parts = []
        for start in range(0, m, strip):
            parts.append(self._strip(start, min(start + strip, m), columns, squares, k))
            if progress:
                progress(min(start + strip, m) / m)
        distances, indices = (torch.cat(column) for column in zip(*parts, strict=True))
        return Neighbors(distances * self.unit, indices)

    def _strip(
        self, start: int, stop: int, columns: Tensor, squares: Tensor, k: int
    ) -> tuple[Tensor, Tensor]:
        rows = self._placed(self.queries[start:stop])
        n_candidates = min(k + _SPARE, columns.shape[0] - (self.own_offset is not None))
        found, indices, crowded = self._candidates(rows, columns, squares, start, n_candidates)
        if bool(crowded.any()):  # so many points so close that the products cannot tell them apart
            again = crowded.nonzero().flatten()
            found[again], indices[again] = self._direct(start + again, n_candidates)
        found, indices = self._mended(found, indices, start, columns.dtype)
        found, order = found.sort(dim=1, stable=True)
        return found[:, :k].sqrt(), indices.gather(1, order)[:, :k]

    @full_precision
    def _candidates(
        self, rows: Tensor, columns: Tensor, squares: Tensor, start: int, k: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(rows, k) smallest squared distances by algebra, their indices, and which rows are crowded."""
        own = rows.double().square().sum(dim=1)
        squared = torch.addmm(squares.to(rows.dtype)[None], rows, columns.T, alpha=-2)
        if self.own_offset is not None:
            each = torch.arange(len(rows), device=rows.device)
            squared[each, each + start + self.own_offset] = torch.inf
        found, indices = squared.topk(k, dim=1, largest=False, sorted=False)
        found = (found.double() + own[:, None]).clamp(min=0)
        crowded = found.amax(dim=1) < _CROWDED[rows.dtype] * (own + squares.max())
        return found, indices, crowded & (k < columns.shape[0] - 1)

    def _direct(self, places: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """(rows, k) smallest squared distances of scattered queries, by direct difference, block by block."""
        best: tuple[Tensor, Tensor] | None = None
        rows = self._wide(self.queries[places])
        begin = 0
        for block in blocks(self.points, n_rows=max(1, _STRIP_BYTES // (8 * len(places)))):
            direct = torch.cdist(rows, self._wide(block), compute_mode="donot_use_mm_for_euclid_dist")
            squared = direct.square_()
            if self.own_offset is not None:
                own = places + self.own_offset - begin
                inside = (own >= 0) & (own < len(block))
                squared[inside, own[inside]] = torch.inf
            indices = torch.arange(begin, begin + len(block), device=rows.device).expand_as(squared)
            if best is not None:
                squared, indices = torch.cat([best[0], squared], dim=1), torch.cat([best[1], indices], dim=1)
            found, order = squared.topk(min(k, squared.shape[1]), dim=1, largest=False)
            best = found, indices.gather(1, order)
            begin += len(block)
        assert best is not None
        return best

    def _mended(
        self, found: Tensor, indices: Tensor, start: int, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Distances too small for the algebra taken again, by direct difference in float64."""
        scale = self._wide(self.queries[start : start + len(found)]).square().sum(dim=1, keepdim=True) + 1
        i, j = (found < _NEAR[dtype] * scale).nonzero(as_tuple=True)
        found[i, j] = direct_squares(self.queries, start + i, self.points, indices[i, j], self.unit)
        return found, indices

    def _placed(self, rows: Tensor) -> Tensor:
        return torch.cat([self._wide(block).to(pair_dtype(self.points)) for block in blocks(rows)])

    def _wide(self, rows: Tensor) -> Tensor:
        return (rows.double() - self.center) / self.unit
