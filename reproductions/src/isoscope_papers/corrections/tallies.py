"""How often a correction helps and hurts, what it gains on average, and the answer that follows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from isoscope.advice import Outcome as Tried
from isoscope.advice import gain
from isoscope_papers.corrections.run import Outcome, Result
from isoscope_papers.corrections.setups import LABELS, SENTENCES, WORDS
from isoscope_papers.words import between, signed

WHITEN, HELPS, HURTS = "whiten", "helps", "hurts"
GROUPS: dict[str, tuple[str, str]] = {  # kind of data and task, by what a column is called
    "sentences": (SENTENCES, "similarity"),
    "words": (WORDS, "similarity"),
    "linear probe": (LABELS, "linear_probe"),
    "knn": (LABELS, "knn"),
    "clustering": (LABELS, "clustering"),
    "retrieval": (LABELS, "retrieval"),
}


@dataclass(frozen=True)
class Tally:
    """One correction over the data sets of a group: where it helps and hurts, its gains."""

    helped: tuple[str, ...]
    hurt: tuple[str, ...]
    gains: tuple[float, ...]

    @property
    def n(self) -> int:
        """Data sets on which it could be fitted."""
        return len(self.gains)

    @property
    def mean(self) -> float | None:
        """Mean gain over the data sets."""
        return math.fsum(self.gains) / self.n if self.n else None

    @property
    def words(self) -> str:
        """The counts, and the mean gain with its interval."""
        said = f"helps on {len(self.helped)}, hurts on {len(self.hurt)} of {self.n}"
        if self.n < 3:
            return said
        return f"{said}; mean gain {signed(self.mean)}, 95 % over sets {between(*interval(self.gains))}"


def tries(found: Outcome, group: str, correction: str) -> Iterator[tuple[Result, Tried]]:
    """Yield one correction on each data set of a group, where it was tried."""
    kind, task = GROUPS[group]
    for result in found.results:
        if result.kind == kind and task in result.tasks:
            tried = result.tasks[task].corrections.get(correction)
            if tried is not None:
                yield result, tried


def tally(found: Outcome, group: str, correction: str) -> Tally:
    """Count one correction on all data sets of a group."""
    return overall(found, correction, [group])


def overall(found: Outcome, correction: str, groups: Sequence[str] = tuple(GROUPS)) -> Tally:
    """Count one correction on every task of some groups."""
    tried = [(result.title, one) for group in groups for result, one in tries(found, group, correction)]
    return Tally(
        tuple(title for title, one in tried if one.verdict == HELPS),
        tuple(title for title, one in tried if one.verdict == HURTS),
        tuple(one.gain for _, one in tried if one.gain is not None),
    )


def settings_of(found: Outcome, groups: Sequence[str] = tuple(GROUPS)) -> str:
    """Return the data sets of some groups, and how each was drawn and split."""
    kinds = {GROUPS[group][0] for group in groups}
    names: dict[str, list[str]] = {}
    for one in found.results:
        if one.kind in kinds:
            about = one.about or found.about
            most = f"{about['max_rows']:,} texts" if one.kind == LABELS else f"{about['max_pairs']:,} pairs"
            splits = f"{about['folds']} folds × {about['repeats']} repeats, seed {about['seed']}"
            names.setdefault(f"at most {most} of a set, {splits}", []).append(one.title)
    return "; ".join(f"{', '.join(titles)}: {settings}" for settings, titles in names.items())


def groups_of(*kinds: str) -> list[str]:
    """Return the groups with data of some kinds."""
    return [group for group, (kind, _) in GROUPS.items() if kind in kinds]


def differences(found: Outcome, groups: Sequence[str], correction: str, other: str) -> list[float]:
    """Return the gains of a correction less those of another, the mean over the tasks of each data set."""
    by_dataset: dict[str, list[float]] = {}
    for group in groups:
        others = {result.dataset: one.gain for result, one in tries(found, group, other)}
        for result, one in tries(found, group, correction):
            theirs = others.get(result.dataset)
            if one.gain is not None and theirs is not None:
                by_dataset.setdefault(result.dataset, []).append(one.gain - theirs)
    return [math.fsum(gains) / len(gains) for gains in by_dataset.values()]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean over data sets, by Student's t."""
    return gain(values, test_share=0.0).interval


def corrections_of(found: Outcome) -> list[str]:
    """Return the corrections that were tried, in their order."""
    tasks = [task for one in found.results for task in one.tasks.values()]
    return list(dict.fromkeys(name for task in tasks for name in task.corrections))


def best_of(found: Outcome, group: str) -> tuple[str, Tally] | None:
    """Return the correction that helps on some set of a group, hurts on none, and gains most."""
    tallies = {name: tally(found, group, name) for name in corrections_of(found)}
    able = {name: one for name, one in tallies.items() if one.helped and not one.hurt}
    return max(able.items(), key=lambda one: one[1].mean or 0.0) if able else None


def answer(outcomes: Sequence[Outcome], probes: Mapping[str, Tally] | None = None) -> str:
    """Answer "should I whiten?" in a few sentences, by the runs; probes with a wide choice of penalties."""
    if not outcomes:
        return "No encoder was run on the tasks that answer it."
    whole = {one.title: overall(one, WHITEN) for one in outcomes}  # one way at least four times as often
    win = [o for o in outcomes if len(whole[o.title].helped) >= 4 * max(len(whole[o.title].hurt), 1)]
    lose = [o for o in outcomes if len(whole[o.title].hurt) >= 4 * max(len(whole[o.title].helped), 1)]
    mixed = [one for one in outcomes if one not in (*win, *lose)]
    short = "Whiten" if not (lose or mixed) else "No" if not (win or mixed) else "It depends on the encoder"
    said = [f"{short}."]
    if win:
        said.append(f"Whitening pays for {_with_counts(win)}.")
    if lose:
        said.append(f"It does harm to {_with_counts(lose)}: leave such vectors alone.")
    for one in mixed:
        said.append(f"Of {_with_counts([one])} it depends on the task: {_by_group(one)}.")
        narrow, wide = tally(one, "linear probe", WHITEN), (probes or {}).get(one.title)
        if narrow.hurt and wide is not None:
            said.append(
                f"Its probe changes by {signed(narrow.mean)} with a penalty of 1, 10 or 100, and "
                f"{signed(wide.mean)} with one chosen among 25."
            )
    counts = []
    for kinds in ((SENTENCES, WORDS), (LABELS,)):
        found = [overall(one, WHITEN, groups_of(*kinds)) for one in outcomes]
        ways = (sum(len(one.helped) for one in found), sum(len(one.hurt) for one in found))
        counts += [f"{n} of {sum(one.n for one in found)}" for n in ways]
    helped, hurt, labels_helped, labels_hurt = counts
    said.append(
        f"Over all encoders whitening helps {helped} of the tasks with graded scores and hurts {hurt}; with "
        f"labels it helps {labels_helped} and hurts {labels_hurt}. Before you whiten, ask `isoscope advise` "
        "on your own vectors and task."
    )
    return " ".join(said)


def _with_counts(outcomes: Sequence[Outcome]) -> str:
    parts = []
    for found in outcomes:
        one = overall(found, WHITEN)
        about = f"{found.setup.note}; " if found.setup.note else ""
        counts = f"of {one.n} tasks it helps {len(one.helped)}, hurts {len(one.hurt)}"
        parts.append(f"{found.title} ({about}{counts})")
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]


def _by_group(found: Outcome) -> str:
    """Name the kinds of tasks where whitening helps more often than it hurts, and the other way."""
    surplus = {
        group: len(one.helped) - len(one.hurt) for group in GROUPS for one in [tally(found, group, WHITEN)]
    }
    parts = []
    for verb, sign in ((HELPS, 1), (HURTS, -1)):
        groups = [group for group, more in surplus.items() if sign * more > 0]
        parts += [f"it {verb} {', '.join(groups)}"] if groups else []
    return " and ".join(parts) or "no difference is seen"
