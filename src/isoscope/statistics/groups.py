"""Statistics per group of rows (labels, token types, sentences), merged by the groups' names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Self

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, block_rows, working
from isoscope.errors import ShapeError
from isoscope.kernels.at_hand import fields_at_hand
from isoscope.kernels.precision import check_spread, direct_distances, seen_squares, two_sum
from isoscope.kernels.recorded import replayed_if_few
from isoscope.kernels.selection import medians
from isoscope.labels import Labels, as_labels
from isoscope.space import as_weights, known_rows, whole
from isoscope.statistics.declared import declare
from isoscope.statistics.directions import unit_rows
from isoscope.statistics.group_sums import about_means, group_sums, less, recorded_means

_COMPARED = 64  # groups looked at for one amid the others
_ULPS = 8.0  # of a coordinate: what the arithmetic that made it has moved it by
_HALF = 2**-11  # spacing of numbers in half precision, whose arithmetic is wider: they are only stored in it
_SHOWS = 1e-12  # a rest of a mean above this share of the spread about it changes distances to the mean


def labelled_blocks(X: Any, groups: Any) -> Iterator[tuple[Tensor, Labels]]:
    """Row blocks of a checked matrix, each with the groups of its rows."""
    matrix = as_matrix(X)
    labels = as_labels(groups, n=matrix.shape[0], name="groups").to(matrix.device)
    n_rows = block_rows(matrix.shape[1], matrix.device)
    for start in range(0, matrix.shape[0], n_rows):
        stop = min(start + n_rows, matrix.shape[0])
        yield working(matrix[start:stop]), labels.rows(start, stop).seen()


def recoded(labels: Labels, names: tuple[Any, ...]) -> Labels:
    """Return the same rows coded by their place in `names`, which has all of theirs."""
    if labels.names == names:
        return labels
    place = {name: row for row, name in enumerate(names)}
    order = labels.codes.new_tensor([place[name] for name in labels.names])
    return Labels(order[labels.codes], names)


@dataclass(frozen=True, eq=False)
class _Groups:
    """What is held for each group, by name: tensors whose rows are the groups.

    names: the G groups, sorted.
    counts: (G,) float64.
    """

    names: tuple[Any, ...]
    counts: Tensor

    @classmethod
    def of(cls, X: Any, groups: Any = None) -> Self:
        """One pass over X; `groups` has one name a row."""
        raise NotImplementedError

    @classmethod
    def by(cls, field: str, X: Any, given: Any = None) -> Self:
        """Group the rows of X by what is known of each (labels, token types, sentences).

        It is as given, or as a Space carries it. The statistic itself passes through unchanged.
        """
        return X if isinstance(X, cls) else cls.of(X, known_rows(X, given, field))

    @property
    def n_dims(self) -> int:
        """d, the number of dimensions."""
        return next(value.shape[1] for value in vars(self).values() if getattr(value, "ndim", 0) == 2)

    def aligned(self, other: Self) -> tuple[Self, Self]:
        """Return both over the union of their groups; a group that one has not has zeros there."""
        if self.n_dims != other.n_dims:
            raise ShapeError(
                f"Blocks have {self.n_dims} and {other.n_dims} dimensions", wanted="the same number in each"
            )
        if self.names == other.names:
            return self, other
        names = tuple(sorted({*self.names, *other.names}, key=_order))
        return self._placed(names), other._placed(names)

    def _placed(self, names: tuple[Any, ...]) -> Self:
        place = {name: row for row, name in enumerate(names)}
        rows = torch.tensor([place[name] for name in self.names], device=self.counts.device)
        values_by_name = {column.name: getattr(self, column.name) for column in fields(self)}
        placed = {
            name: values.new_zeros(len(names), *values.shape[1:]).index_copy(0, rows, values)
            for name, values in values_by_name.items()
            if isinstance(values, Tensor)
        }
        return replace(self, names=names, **placed)


@dataclass(frozen=True, eq=False)
class GroupMoments(_Groups):
    """For each group its count, mean and sum of squared distances to the mean.

    Attributes:
        names: the G groups, sorted.
        counts: (G,) float64, of rows or of their weights.
        means: (G, d) float64.
        within: (G,) Σ ‖x − mean_g‖² float64.
        means_rest: (G, d) what rounding to float64 left of the means; it shows at large offsets.
        spacing: the relative spacing of the numbers that the vectors were stored in, `torch.finfo().eps`.
    """

    means: Tensor
    within: Tensor
    means_rest: Tensor
    spacing: float = 2**-52

    @classmethod
    def of(cls, X: Any, groups: Any = None, *, weights: Any = None) -> GroupMoments:
        """One pass over X; `groups` has one name a row. GroupMoments pass through unchanged.

        A weight for each row counts it so often; rows of weight 0 are not there.
        """
        if isinstance(X, GroupMoments):
            return X
        moments: GroupMoments | None = None
        w = None
        X = as_matrix(X)
        spacing = torch.finfo(X.dtype).eps
        if weights is not None:
            X, groups, w = counting(X, groups, weights)
        start = 0
        for block, labels in labelled_blocks(X, groups):
            part = _moments_of_block(
                block, labels, None if w is None else w[start : start + len(block)], spacing
            )
            start += len(block)
            moments = part if moments is None else moments.merge(part)
        assert moments is not None
        return moments

    def update(self, block: Any, groups: Any) -> GroupMoments:
        """Return these moments with one more block of vectors and their groups."""
        return self.merge(GroupMoments.of(block, groups))

    def merge(self, other: GroupMoments) -> GroupMoments:
        """Group by group, the moments of both sets of vectors together."""
        a, b = self.aligned(other)
        if self.names != other.names:
            a, b = a._filled(b), b._filled(a)
        counts = a.counts + b.counts
        share = b.counts / torch.where(counts > 0, counts, 1.0)
        step = (b.means - a.means) + (b.means_rest - a.means_rest)
        within = a.within + b.within + a.counts * share * (step * step).sum(dim=1)
        within = seen_squares(within, step)
        means, rest = two_sum(a.means, a.means_rest + step * share[:, None])
        return GroupMoments(a.names, counts, means, within, rest, max(a.spacing, b.spacing))

    @property
    def at_hand(self) -> GroupMoments:
        """These moments where formulas take the least time: of a device, on the CPU, if they are few."""
        return fields_at_hand(self) if self.means.is_cuda else self

    @cached_property
    def count(self) -> Any:
        """n, over all groups; an int where that is whole."""
        return whole(float(self.counts.sum()))

    @property
    def mean(self) -> Tensor:
        """(d,) the mean of all vectors."""
        point, steps = self.about
        return point + self.counts @ steps / self.counts.sum()

    @cached_property
    def about(self) -> tuple[Tensor, Tensor]:
        """The (d,) mean of a group amid the others, and the (G, d) means less that point, to rounding.

        Differences about it lose nothing to an offset, nor to a group that one far row draws away.
        """
        sampled = slice(None, None, -(-len(self.means) // _COMPARED))
        means = self.means[sampled].detach()
        gaps = medians(direct_distances(means, means), dim=1)
        spreads = (self.within / self.counts.clamp(min=1)).detach()[sampled]
        place = torch.where(gaps <= 2 * gaps.min(), spreads, torch.inf).argmin()
        point = means[place]
        return point, (self.means - point) + self.means_rest

    @cached_property
    def offsets(self) -> Tensor:
        """(G, d) the means less the mean of all vectors."""
        steps = self.about[1]
        return steps - self.counts @ steps / self.counts.sum()

    @cached_property
    def _decomposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """U, s and V of the means about their mean over groups, each counting once; no s is rounding.

        Along a unit vector v, rounding of the vectors has moved a mean by √(Σ_j v_j² e_j²) by root mean
        square, with e_j the root mean square of coordinate j times that of a few roundings. The longest of
        K × d such moves is √K + √d times that (Davidson, Szarek 2001). The arithmetic here adds
        max(K, d) · 2^−52 of the longest s.
        """
        present = (self.counts > 0)[:, None]
        steps = torch.where(present, self.about[1], 0.0)
        centred = torch.where(present, steps - steps.sum(dim=0) / present.sum(), 0.0)
        U, s, V = torch.linalg.svd(centred.detach(), full_matrices=False)
        noise = sum(map(math.sqrt, centred.shape)) * (V.square() @ self._rounded_by.square()).sqrt()
        kept = s > noise + max(centred.shape) * 2**-52 * s[0]
        rank = int(kept[: max(int(present.sum()) - 1, 0)].cumprod(0).sum())
        return U[:, :rank], s[:rank], V[:rank]

    @property
    def _rounded_by(self) -> Tensor:
        """(d,) how far rounding of the vectors has moved each coordinate, by root mean square."""
        present = self.counts > 0
        variances = self.within[present, None] / self.counts[present, None] / self.n_dims
        squares = self.means[present].square() + variances
        ulps = self.spacing if self.spacing > _HALF else _ULPS * self.spacing
        return (ulps * squares.mean(dim=0).sqrt() / math.sqrt(12)).detach()

    @property
    def axes(self) -> Tensor:
        """(q, d) orthonormal axes of the span of the means, the longest first; q is at most G − 1."""
        return self._decomposed[2]

    @property
    def lengths_along(self) -> Tensor:
        """(q,) the root of the sum of squares of the means along each axis, about their mean over groups."""
        return self._decomposed[1]

    @property
    def coordinates(self) -> Tensor:
        """(G, q) the means on the axes, about their mean over groups: each group counts once."""
        return self._decomposed[0] * self._decomposed[1]

    def residuals(self, rows: Tensor, codes: Tensor) -> Tensor:
        """Return rows less the means of their groups, in float64."""
        residuals = less(rows.double(), self.means, codes)
        return residuals - self.means_rest[codes] if self._rest_shows else residuals

    @cached_property
    def _rest_shows(self) -> bool:
        few = self.at_hand
        rest = (few.means_rest * few.means_rest).sum(dim=1) * few.counts
        return bool((rest > _SHOWS**2 * few.within).any())

    def check_scale(self) -> None:
        """Raise InputError where squares leave the range of float64, or keep only some of their digits."""
        spread = float((self.within.sum() + self.between_trace).detach())
        check_spread(spread, differ=bool(self.offsets.any()))

    @cached_property
    def between_trace(self) -> Tensor:
        """tr of `between`: Σ n_g ‖mean_g − mean‖²."""
        return self.counts @ (self.offsets * self.offsets).sum(dim=1)

    @property
    def between(self) -> Tensor:
        """(d, d) Σ n_g (mean_g − mean)(mean_g − mean)ᵀ."""
        centred = self.offsets * self.counts.sqrt()[:, None]
        return centred.T @ centred

    def _filled(self, other: GroupMoments) -> GroupMoments:
        """Return these moments with absent groups at the means of the other, so that no step is rounded."""
        absent = (self.counts == 0)[:, None]
        means = torch.where(absent, other.means, self.means)
        return replace(self, means=means, means_rest=torch.where(absent, other.means_rest, self.means_rest))


@dataclass(frozen=True, eq=False)
class GroupDirections(_Groups):
    """For each group the number of vectors with a direction and the sum of their unit vectors.

    Attributes:
        names: the G groups, sorted.
        counts: (G,) float64, vectors with a direction.
        unit_sums: (G, d) float64.
        n_zero: zero vectors left out, over all groups.
        unit_square_sums: (G, d) float64, Σ u_j² by dimension, where it was asked for.
    """

    unit_sums: Tensor
    n_zero: int
    unit_square_sums: Tensor | None = None

    @classmethod
    def of(cls, X: Any, groups: Any = None, *, squares: bool = False) -> GroupDirections:
        """One pass over X; `groups` has one name a row. GroupDirections pass through unchanged."""
        if isinstance(X, GroupDirections):
            return X
        matrix = as_matrix(X)
        labels = as_labels(groups, n=matrix.shape[0], name="groups").to(matrix.device).seen()
        # one table for all blocks: merging would copy it for each, and a vocabulary makes it large
        counts = torch.zeros(labels.n_labels, dtype=torch.float64, device=matrix.device)
        unit_sums = counts.new_zeros(labels.n_labels, matrix.shape[1])
        square_sums = torch.zeros_like(unit_sums) if squares else None
        n_rows = block_rows(matrix.shape[1], matrix.device)
        for rows, codes in zip(matrix.split(n_rows), labels.codes.split(n_rows), strict=True):
            units, norms = unit_rows(working(rows))
            counts.index_add_(0, codes, (norms > 0).double())
            unit_sums.index_add_(0, codes, units)
            if square_sums is not None:
                square_sums.index_add_(0, codes, units * units)
        return cls(labels.names, counts, unit_sums, matrix.shape[0] - int(counts.sum()), square_sums)

    def update(self, block: Any, groups: Any) -> GroupDirections:
        """Return these sums with one more block of vectors and their groups."""
        return self.merge(GroupDirections.of(block, groups, squares=self.unit_square_sums is not None))

    def merge(self, other: GroupDirections) -> GroupDirections:
        """Group by group, the sums of both sets of vectors together."""
        a, b = self.aligned(other)
        squares = (a.unit_square_sums, b.unit_square_sums)
        return GroupDirections(
            a.names,
            a.counts + b.counts,
            a.unit_sums + b.unit_sums,
            a.n_zero + b.n_zero,
            None if squares[0] is None or squares[1] is None else squares[0] + squares[1],
        )


def counting(X: Any, groups: Any, weights: Any) -> tuple[Tensor, Labels, Tensor]:
    """Return the rows that count, with their groups and weights."""
    matrix = as_matrix(X)
    w = as_weights(weights, n=len(matrix)).to(matrix.device)
    labels = as_labels(groups, n=len(matrix), name="groups").to(matrix.device)
    counted = w > 0
    return matrix[counted], Labels(labels.codes[counted], labels.names), w[counted]


def _moments_of_block(block: Tensor, labels: Labels, weights: Tensor | None, spacing: float) -> GroupMoments:
    """Two looks at the block: the means first, then squared distances to them; no cancellation.

    Each group's first row is taken off before rows are added up, so that no offset gathers rounding, and
    no row that lies far away takes digits from groups other than its own.
    """
    if weights is None:
        counts = labels.counts.to(block.device).double()
        take = partial(replayed_if_few, recorded_means) if block.is_cuda else about_means
        means, within, rest, residuals = take(block, labels.codes, counts)
    else:
        counts = group_sums(weights, labels)
        means, within, rest, residuals = about_means(block, labels.codes, counts, weights)
    return GroupMoments(labels.names, counts, means, seen_squares(within, residuals), rest, spacing)


def _order(name: Any) -> tuple[str, Any]:
    """Names of different types side by side: by type first."""
    return ("", name) if isinstance(name, int | float) else (type(name).__name__, name)


declare(
    "label_moments",
    GroupMoments,
    lambda space, shelf: GroupMoments.of(space, shelf.labels, weights=space.weights),
    groups="labels",
    weighted=True,
    operations=lambda d: 6 * d,
    bytes_held=lambda _n, d, k: 16 * k * (d + 1),
)
declare(
    "sentence_moments",
    GroupMoments,
    lambda space, _: GroupMoments.of(space, space.sentences),
    groups="sentences",
    operations=lambda d: 6 * d,
    bytes_held=lambda _n, d, k: 16 * k * (d + 1),
)
declare(
    "sentence_directions",
    GroupDirections,
    lambda space, _: GroupDirections.of(space, space.sentences),
    groups="sentences",
    operations=lambda d: 6 * d,
    bytes_held=lambda _n, d, k: 8 * k * (d + 1),
)
declare(
    "type_directions",
    GroupDirections,
    lambda space, _: GroupDirections.of(space, space.token_types),
    groups="token_types",
    operations=lambda d: 6 * d,
    bytes_held=lambda _n, d, k: 8 * k * (d + 1),
)
