"""What is claimed of isotropy and tasks, each claim with the bound it is tested by, on what was tried."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isoscope.advice import Outcome as Tried
from isoscope.advice.outcomes import HELPS, HURTS
from isoscope.advice.tasks import LABEL_TASKS, PAIR_TASK
from isoscope_papers.claims import Claim, Holding
from isoscope_papers.corrections.run import Outcome, Result
from isoscope_papers.corrections.setups import LABELS, SENTENCES, WORDS

WHITEN = "whiten"
GROUPS: dict[str, tuple[str, str]] = {  # kind of data and task, by what a column is called
    "sentences": (SENTENCES, PAIR_TASK),
    "words": (WORDS, PAIR_TASK),
    **{task.replace("_", " "): (LABELS, task) for task in LABEL_TASKS},
}
_GAINS = "{} gain by whitening (on most sets or on average over them; no set loses)"
_LOSES = "{} loses by whitening (on most sets or on average over them; no set gains)"
_RISES = "the more isotropic, the better: {} (rank correlation of IsoScore and gain over corrections > 0)"
_FALLS = "the more isotropic, the worse: {} (rank correlation of IsoScore and gain over corrections < 0)"


@dataclass(frozen=True)
class Tally:
    """One correction over the data sets of a group: how often it helps and hurts, its gains."""

    n_helps: int
    n_hurts: int
    gains: tuple[float, ...]

    @property
    def n(self) -> int:
        """Data sets on which it could be fitted."""
        return len(self.gains)

    @property
    def mean(self) -> float | None:
        """Mean gain over the data sets."""
        return math.fsum(self.gains) / self.n if self.n else None


def tally(found: Outcome, group: str, correction: str) -> Tally:
    """One correction on all data sets of a group."""
    tried = [one for _, one in tries(found, group, correction)]
    verdicts = [one.verdict for one in tried]
    return Tally(
        verdicts.count(HELPS), verdicts.count(HURTS), tuple(one.gain for one in tried if one.gain is not None)
    )


def overall(found: Outcome, correction: str, kinds: Sequence[str] = (SENTENCES, WORDS, LABELS)) -> Tally:
    """One correction on every task of every data set of some kinds."""
    parts = [tally(found, group, correction) for group, (kind, _) in GROUPS.items() if kind in kinds]
    gains = tuple(gain for one in parts for gain in one.gains)
    return Tally(sum(one.n_helps for one in parts), sum(one.n_hurts for one in parts), gains)


def tries(found: Outcome, group: str, correction: str) -> Iterator[tuple[Result, Tried]]:
    """One correction on each data set of a group, where it was tried."""
    kind, task = GROUPS[group]
    for result in found.results:
        if result.dataset.kind != kind:
            continue
        for one in result.tasks:
            if one.task == task:
                yield from ((result, tried) for tried in one.outcomes if tried.correction == correction)


def corrections_of(found: Outcome) -> list[str]:
    """The corrections that were tried, in their order."""
    return list(
        dict.fromkeys(t.correction for one in found.results for task in one.tasks for t in task.outcomes)
    )


def all_claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    """Every claim on every setup that has the data sets it is about."""
    return [claim for one in outcomes for claim in _claims(one)]


def _claims(found: Outcome) -> Iterator[Claim]:
    for group, (kind, _) in GROUPS.items():
        whitened = tally(found, group, WHITEN)
        if not whitened.n:
            continue
        graded = kind != LABELS
        name = {"sentences": "scored pairs of sentences", "words": "scored pairs of words"}.get(group, group)
        wanted, unwanted = (
            (whitened.n_helps, whitened.n_hurts) if graded else (whitened.n_hurts, whitened.n_helps)
        )
        sign = 1 if graded else -1
        holding = _held(wanted, unwanted, [sign * one for one in whitened.gains])
        yield Claim((_GAINS if graded else _LOSES).format(name), found.title, holding, _words(whitened))
        correlations = [rho for one in _results(found, kind) if (rho := _correlation(one, group)) is not None]
        if len(correlations) > 2:
            low, high = (min(max(end, -1.0), 1.0) for end in interval(correlations))
            mean = math.fsum(correlations) / len(correlations)
            ends = f"{_signed(low, 2)} … {_signed(high, 2)}"
            evidence = f"mean ρ {_signed(mean, 2)}, 95 % over {len(correlations)} sets {ends}"
            towards, away = (low > 0, high < 0) if graded else (high < 0, low > 0)
            holding = Holding.HELD if towards else Holding.NOT_HELD if away else Holding.DEPENDS
            yield Claim((_RISES if graded else _FALLS).format(name), found.title, holding, evidence)


def _held(wanted: int, unwanted: int, gains: Sequence[float]) -> Holding:
    """By how many sets go the way that is claimed and the other, and by the gains, that way positive."""
    low, high = interval(gains) if len(gains) > 2 else (-math.inf, math.inf)
    if (2 * wanted > len(gains) or low > 0) and not unwanted:
        return Holding.HELD
    if not wanted and (unwanted or high < 0):
        return Holding.NOT_HELD
    return Holding.DEPENDS


def _words(one: Tally) -> str:
    said = f"helps on {one.n_helps}, hurts on {one.n_hurts} of {one.n}"
    if one.n < 3 or one.mean is None:
        return said
    low, high = interval(one.gains)
    return f"{said}; mean gain {_signed(one.mean)}, 95 % over sets {_signed(low)} … {_signed(high)}"


def _results(found: Outcome, kind: str) -> list[Result]:
    return [one for one in found.results if one.dataset.kind == kind]


def _correlation(result: Result, group: str) -> float | None:
    """Spearman's ρ of IsoScore and gain over the corrections, none among them with a gain of 0."""
    from scipy.stats import spearmanr

    task = next((one for one in result.tasks if one.task == GROUPS[group][1]), None)
    if task is None:
        return None
    gains = {"none": 0.0} | {one.correction: one.gain for one in task.outcomes if one.gain is not None}
    points = [
        (score, gain)
        for name, gain in gains.items()
        if (score := result.geometry.get(name, {}).get("isoscore")) is not None
    ]
    if len(points) < 4 or len({gain for _, gain in points}) < 2:
        return None
    return float(spearmanr(*zip(*points, strict=True)).statistic)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean over data sets, by Student's t."""
    from scipy.stats import t

    n = len(values)
    mean = math.fsum(values) / n
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    half = float(t.ppf(0.975, n - 1)) * error
    return mean - half, mean + half


def _signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def best_of(found: Outcome, group: str) -> tuple[str, Tally] | None:
    """The correction that helps on some set of a group, hurts on none, and gains most; None without one."""
    able = {
        name: one
        for name in corrections_of(found)
        if (one := tally(found, group, name)).n_helps and not one.n_hurts
    }
    if not able:
        return None
    name = max(able, key=lambda one: able[one].mean or 0.0)
    return name, able[name]
