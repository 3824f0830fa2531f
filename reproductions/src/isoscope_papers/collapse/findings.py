"""What the runs say of the law, each by the bound stated in `setups`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isoscope_papers.collapse.run import Condition, Space, Trained
from isoscope_papers.collapse.setups import COLLAPSED, END_WITHIN, SIGN_SHARE
from isoscope_papers.verdict import Finding, decide, judged, on
from isoscope_papers.words import number, signed

_STUCK = "vectors can move"  # the only assumption that fails where vectors are long
_FEW, _MANY = "banking77-2", "banking77-77"
_NORM, _RATE = 1.0, 1e-3  # at which Banking77 is compared by the number of labels


@dataclass(frozen=True)
class Case:
    """One seed of one space in one condition: what was predicted and what came."""

    space: Space
    condition: Condition
    trained: Trained

    @property
    def holds(self) -> bool:
        """Return whether the assumptions that count hold."""
        return not self.space.fails(self.condition)

    @property
    def start(self) -> float:
        """Return IsoScore before training."""
        return self.condition.predicted.isoscore

    @property
    def is_right(self) -> bool:
        """Return whether the sign was predicted."""
        return self.condition.predicted.sign == self.trained.sign

    @property
    def is_collapsed(self) -> bool:
        """Return whether the silhouette ended at the bound or above."""
        return self.trained.silhouette[-1] >= COLLAPSED

    @property
    def error(self) -> float:
        """Return the error of the predicted end, relative to what was seen."""
        return abs(self.condition.predicted.end / self.trained.end - 1)

    @property
    def is_near(self) -> bool:
        """Return whether the end was predicted within the bound."""
        return self.error <= END_WITHIN

    @property
    def by_value(self) -> bool:
        """Return whether the collapse value alone gives the sign."""
        return int(np.sign(self.condition.predicted.collapse_value - self.start)) == self.trained.sign

    @property
    def by_first_step(self) -> bool:
        """Return whether the first step alone gives the sign."""
        return int(np.sign(self.condition.predicted.first_step)) == self.trained.sign


def cases(spaces: Sequence[Space], *, sets: bool | None = False) -> list[Case]:
    """Return every run: of one label a row, of sets of labels, or all (None)."""
    return [
        Case(space, condition, trained)
        for space in spaces
        for condition in space.conditions
        for trained in condition.trained
        if sets is None or space.has_sets == sets
    ]


def share(some: Sequence[Case], test: Callable[[Case], bool]) -> float | None:
    """Return the share of runs that pass a test; None of no runs."""
    return sum(map(test, some)) / len(some) if some else None


def counted(some: Sequence[Case], test: Callable[[Case], bool]) -> str:
    """Return how many runs pass a test, in words.

    >>> counted([], lambda one: True)
    'no runs'
    """
    part = share(some, test)
    return (
        "no runs" if part is None else f"{sum(map(test, some)):,} of {len(some):,} runs ({100 * part:.1f} %)"
    )


def findings(spaces: Sequence[Space]) -> Iterator[Finding]:
    """Yield every finding."""
    single, sets = cases(spaces), cases(spaces, sets=True)
    held = [one for one in single if one.holds]
    yield from on("collapse", "one label a row", _of_single(single, held), _evidence(single))
    yield from on("collapse", "sets of labels", [_signs("sign-predicted-of-sets", sets)], _evidence(sets))
    for space in spaces:
        if space.setup == _MANY:
            yield from on("collapse", space.encoder, _by_labels(spaces, space.encoder), _evidence(single))


def _of_single(single: Sequence[Case], held: Sequence[Case]) -> Iterator[Finding]:
    yield _signs("sign-predicted", single)
    collapsed = [one for one in held if one.is_collapsed]
    near = share(collapsed, lambda one: one.is_near)
    error = number(100 * float(np.median([one.error for one in collapsed])), 1) if collapsed else "—"
    ours = f"{counted(collapsed, lambda one: one.is_near)} within 10 %; median error {error} %"
    yield decide("end-predicted", near == 1, ours, why="" if collapsed else "no run collapsed")
    by_model, by_value = (sum(map(test, single)) for test in (_is_right, _by_value))
    silent = sum(one.condition.predicted.sign == 0 for one in single)
    ours = (
        f"{by_model:,} against {by_value:,} of {len(single):,} runs, whether assumptions hold or not; the "
        f"model gives the wrong sign for {len(single) - silent - by_model:,} and none for {silent:,}"
    )
    yield decide("better-than-the-collapse-value", by_model > by_value, ours)
    stuck = [one for one in single if _STUCK in one.space.fails(one.condition)]
    ways = [
        (one.trained.end - one.start) / (one.condition.predicted.collapse_value - one.start) for one in stuck
    ]
    middle = float(np.median(ways)) if ways else 1.0
    ours = f"median {number(middle, 2)} of the way, in {len(stuck):,} runs"
    yield decide("long-vectors-stay", middle < 0.5, ours, why="" if stuck else "no run of that kind")


def _is_right(one: Case) -> bool:
    return one.is_right


def _by_value(one: Case) -> bool:
    return one.by_value


def _signs(claim: str, some: Sequence[Case]) -> Finding:
    held = [one for one in some if one.holds]
    part = share(held, _is_right)
    ours = f"{counted(held, _is_right)}; assumptions hold for {len(held):,} of {len(some):,}"
    return decide(claim, (part or 0) >= SIGN_SHARE, ours, why="" if held else "no run of that kind")


def _by_labels(spaces: Sequence[Space], encoder: str) -> Iterator[Finding]:
    ends: dict[str, list[Case]] = {}
    for name in (_FEW, _MANY):
        for one in cases([space for space in spaces if (space.setup, space.encoder) == (name, encoder)]):
            norm = one.condition.norm or one.space.mean_norm
            if abs(norm - _NORM) < 0.02 and one.condition.learning_rate == _RATE:
                ends.setdefault(name, []).append(one)
    if len(ends) < 2:
        return
    moves = {name: float(np.mean([one.trained.end for one in some])) for name, some in ends.items()}
    starts = {name: some[0].start for name, some in ends.items()}
    signs = {
        "few labels": moves[_FEW] < starts[_FEW],
        "many labels": moves[_MANY] > starts[_MANY],
    }
    ours = "; ".join(
        f"{some[0].space.n_labels} labels {number(starts[name])} → {number(moves[name])} "
        f"({signed(moves[name] - starts[name])})"
        for name, some in ends.items()
    )
    yield decide("direction-depends-on-labels", judged(signs, where="for {}"), ours)


def _evidence(some: Sequence[Case]) -> str:
    spaces = {one.space.title for one in some}
    return f"{len(spaces)} spaces, {len(some):,} runs"
