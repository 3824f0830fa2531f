"""Statistics of vectors that come in blocks: one pass, and a second for what builds on the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from isoscope.errors import InputError
from isoscope.kernels.tiles import Progress
from isoscope.space import Space
from isoscope.statistics.centroids import CentroidDistances
from isoscope.statistics.directions import Directions
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.groups import GroupDirections, GroupMoments
from isoscope.statistics.leave_one_out import LeftOutCosines, LeftOutMoments
from isoscope.statistics.moments import Moments
from isoscope.statistics.partition import LogPartition

_FIRST: Mapping[str, Callable[[Space], Any]] = {
    "moments": Moments.of,
    "directions": Directions.of,
    "label_moments": lambda block: GroupMoments.of(block, block.labels),
    "type_directions": lambda block: GroupDirections.of(block, block.token_types),
    "sentence_directions": lambda block: GroupDirections.of(block, block.sentences),
    "sentence_moments": lambda block: GroupMoments.of(block, block.sentences),
}
_SECOND: Mapping[str, Callable[[Space, Statistics], Any]] = {
    "left_out_moments": lambda block, shelf: LeftOutMoments.of(block, shelf.moments),
    "left_out_cosines": lambda block, shelf: LeftOutCosines.of(block, shelf.directions),
    "log_partition": lambda block, shelf: LogPartition.of(block, shelf.moments),
    "label_distances": lambda block, shelf: CentroidDistances.of(block, block.labels, shelf.label_moments),
}


def stream(
    blocks: Callable[[], Iterable[Space]],
    needs: Iterable[str],
    *,
    n_rows: int | None = None,
    covariance: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
    check: Callable[[Statistics], None] | None = None,
) -> Statistics:
    """A shelf with the statistics asked for, from blocks that can be read again.

    Args:
        blocks: starts reading from the first row each time it is called.
        needs: names of statistics; what wants all vectors at once is refused.
        n_rows: how many rows there are, for the progress bar.
        covariance: a reference the caller brings along, kept on the shelf.
        seed: of everything sampled later.
        progress: told the share of each pass that is done.
        check: looks at the shelf after the first pass, and may refuse to go on.
    """
    wanted = set(needs)
    if unknown := wanted - {*_FIRST, *_SECOND}:
        raise InputError(
            f"statistics {', '.join(sorted(unknown))} need all vectors at once and cannot be streamed"
        )
    shelf = Statistics(covariance=covariance, seed=seed, progress=progress)
    later = [name for name in _SECOND if name in wanted]
    first = [name for name in _FIRST if name in wanted]
    _one_pass(shelf, blocks(), {name: _FIRST[name] for name in first}, n_rows, progress)
    if check:
        check(shelf)
    if later:
        makers = {name: lambda block, make=_SECOND[name]: make(block, shelf) for name in later}
        _one_pass(shelf, blocks(), makers, n_rows, progress)
    return shelf


def _one_pass(
    shelf: Statistics,
    blocks: Iterable[Space],
    makers: Mapping[str, Callable[[Space], Any]],
    n_rows: int | None,
    progress: Progress | None,
) -> None:
    seen = 0
    ready: dict[str, Any] = {}
    for block in blocks:
        for name, make in makers.items():
            part = make(block)
            ready[name] = ready[name].merge(part) if name in ready else part
        seen += len(block)
        if progress and n_rows:
            progress(seen / n_rows)
    shelf.__dict__.update(ready)
