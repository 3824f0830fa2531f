"""Statistics of vectors that come in blocks: one pass, and a second for what builds on the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from isoscope.errors import InputError
from isoscope.kernels.tiles import Progress
from isoscope.kernels.workers import go_on, in_order
from isoscope.labels import Labels
from isoscope.space import Space
from isoscope.statistics.ahead import ahead
from isoscope.statistics.declared import declared, streamed, together, with_prerequisites
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.tree import Tree

# rows left out one by one for a standard error; of more, a sample: the error is then known to 0.1 %
LEFT_OUT_ROWS = 1_000_000


@dataclass(frozen=True)
class Pass:
    """One pass over blocks: which statistics, and what they build on.

    Attributes:
        names: the statistics.
        built_on: those of the first pass that a second one needs, by name.
        sample: share of the rows that what holds a number for every row looks at.
        seed: of that sample.
    """

    names: tuple[str, ...]
    built_on: Mapping[str, Any]
    sample: float = 1.0
    seed: int = 0

    def over(
        self, blocks: Iterable[Space], *, place: int = 0, seen: Callable[[int], None] | None = None
    ) -> dict[str, Any]:
        """The statistics of the blocks, read while those before are measured.

        `place` tells samples of different parts apart; `seen` is told the number of rows after each block.
        """
        n_workers = torch.get_num_threads()
        # a core a block: none waits for another inside a product, and any number gives the same bits
        torch.set_num_threads(1)
        try:
            return self._merged(blocks, place, seen, n_workers)
        finally:
            torch.set_num_threads(n_workers)

    def _merged(
        self, blocks: Iterable[Space], place: int, seen: Callable[[int], None] | None, n_workers: int
    ) -> dict[str, Any]:
        tree = Tree()
        n_rows = 0
        # closed here, whatever happens: later they would put back the one core they found
        with closing(ahead(blocks)) as read:
            tasks = (partial(self._measured, block, place, number) for number, block in enumerate(read))
            with closing(in_order(tasks, n_workers=n_workers)) as measured:
                for size, part in measured:
                    if part:
                        tree.add(part)
                    n_rows += size
                    go_on()
                    if seen:
                        seen(n_rows)
        return tree.total()

    def _measured(self, block: Space, place: int, number: int) -> tuple[int, dict[str, Any]]:
        """How many rows a block has, and its statistics; none where no row counts."""
        if block.weights is not None and not bool((block.weights > 0).any()):
            return len(block), {}
        draw = torch.Generator().manual_seed(_mixed(self.seed, place, number))
        return len(block), self._of(block, draw)

    def _of(self, block: Space, draw: torch.Generator) -> dict[str, Any]:
        some = block
        if self.is_sampled:
            some = _rows_of(block, torch.rand(len(block), generator=draw) < self.sample)
        found: dict[str, Any] = {}
        for one in together(self.names) if block.weights is None else ():
            found |= zip(one.names, one.of(block), strict=True)
        shelf = SimpleNamespace(labels=block.labels, progress=None, **self.built_on)
        for name in self.names:
            if name not in found:
                known = declared()[name]
                found[name] = known.of(some if known.by_row else block, shelf)
        return found

    @property
    def is_sampled(self) -> bool:
        """Say whether something that holds a number for every row looks at some of them only."""
        return self.sample < 1 and any(declared()[name].by_row for name in self.names)


def first_pass(needs: Iterable[str]) -> Pass:
    """The pass for what needs nothing but the rows."""
    return Pass(tuple(sorted(name for name in set(needs) & streamed() if not declared()[name].builds_on)), {})


def second_pass(
    needs: Iterable[str], shelf: Mapping[str, Any], *, seed: int = 0, most_rows: int | None = None
) -> Pass | None:
    """Return the pass for what builds on the first one's statistics; None where nothing asked for does.

    most_rows: about how many rows may have a number each; LEFT_OUT_ROWS by default.
    """
    later = {name: earlier for name in sorted(needs) if (earlier := declared()[name].builds_on)}
    if not later:
        return None
    built_on = {name: shelf[name] for name in set(later.values())}
    n_rows = max(statistic.count for statistic in built_on.values())
    return Pass(tuple(later), built_on, sample=min(1.0, (most_rows or LEFT_OUT_ROWS) / n_rows), seed=seed)


def refuse_unstreamed(needs: Iterable[str]) -> None:
    """Raise InputError over statistics that blocks do not suffice for."""
    if unknown := set(needs) - streamed():
        raise InputError(
            f"statistics {', '.join(sorted(unknown))} need all vectors at once and cannot be streamed"
        )


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
    refuse_unstreamed(wanted)
    wanted = with_prerequisites(wanted)
    shelf = Statistics(covariance=covariance, seed=seed, progress=progress)
    seen = partial(_told, progress, n_rows) if progress and n_rows else None
    vars(shelf).update(first_pass(wanted).over(blocks(), seen=seen))
    if check:
        check(shelf)
    later = second_pass(wanted, vars(shelf), seed=seed)
    if later:
        vars(shelf).update(later.over(blocks(), seen=seen))
        note_sample(shelf, later)
    return shelf


def note_sample(shelf: Statistics, later: Pass) -> None:
    """Say on the shelf that standard errors come from some of the rows only."""
    if later.is_sampled:
        n_rows = max(statistic.count for statistic in later.built_on.values())
        n_drawn = round(later.sample * n_rows)
        shelf.notes.append(
            f"standard errors of isotropy and cosines are from a sample of about {n_drawn:,} of "
            f"{n_rows:,} vectors (seed {later.seed}), and known to "
            f"± {100 * 1.96 / (2 * n_drawn) ** 0.5:.2g} %"
        )


def _told(progress: Progress, n_rows: int, seen: int) -> None:
    progress(seen / n_rows)


def _rows_of(block: Space, chosen: torch.Tensor) -> Space:
    """Some rows of a block, at least one: statistics of no rows have no shape."""
    if not bool(chosen.any()):
        chosen[0] = True
    labels = block.labels and Labels(block.labels.codes[chosen], block.labels.names)
    return Space(block.vectors[chosen.to(block.device)], labels=labels)


def _mixed(*numbers: int) -> int:
    """One seed of several numbers."""
    mixed = 0
    for number in numbers:
        mixed = (mixed * 1_000_003 + number + 1) % 2**63
    return mixed
