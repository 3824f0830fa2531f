"""Verdicts on the claims of a paper, and how they follow from the parts of a test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby

import numpy as np

from isoscope_papers.words import minus

MANY = 15  # subjects that are named one by one; more are counted


class Verdict(StrEnum):
    """The outcome of testing a claim.

    HELD: the claim is true everywhere it was tested.
    CONDITION: the claim is true only under a condition, which is stated.
    NOT_HELD: the contrary is true, or a published number was not reached.
    INCONCLUSIVE: the interval contains both outcomes.
    NOT_TESTABLE: the data or models of the claim are not available; the reason is stated.
    """

    HELD = "held"
    CONDITION = "held under a condition"
    NOT_HELD = "not held"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "not testable here"

    @property
    def mark(self) -> str:
        """Return the mark of the verdict in tables."""
        return _MARKS[self]


_MARKS = {
    Verdict.HELD: "✓",
    Verdict.CONDITION: "◐",
    Verdict.NOT_HELD: "✗",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NOT_TESTABLE: "≠",
}


@dataclass(frozen=True)
class Finding:
    """One claim tested on one subject.

    Attributes:
        claim: the claim, as "paper/key" of the catalogue.
        subject: the model, data set or space of the test.
        verdict: the outcome.
        ours: our values in words, with their interval.
        condition: the condition under which the claim held, or why it could not be tested.
        evidence: models, data and seeds.
        study: the study of the test, whose page has the details.
    """

    claim: str
    subject: str
    verdict: Verdict
    ours: str
    condition: str = ""
    evidence: str = ""
    study: str = ""

    @property
    def shown(self) -> str:
        """Return the verdict with its mark and condition."""
        condition = f": {self.condition}" if self.condition else ""
        return f"{self.verdict.mark} {self.verdict}{condition}"


def judged(signs: Mapping[str, int | bool], *, where: str = "{}") -> tuple[Verdict, str]:
    """Return the verdict on a claim that must hold in every part, and the condition under which it holds.

    Args:
        signs: for each part, 1 (or True) as claimed, -1 (or False) for the contrary, 0 if undecided.
        where: the condition in words, with {} for the parts in which the claim holds.

    >>> judged({"1": True, "2": True})
    (<Verdict.HELD: 'held'>, '')
    >>> judged({"1": False, "2": True, "3": True}, where="in layers {}")
    (<Verdict.CONDITION: 'held under a condition'>, 'in layers 2–3')
    >>> [str(judged(dict(enumerate(signs)))[0]) for signs in ([0, -1], [0, 0], [False], [np.False_])]
    ['not held', 'inconclusive', 'not held', 'not held']
    """
    values = {
        str(part): (1 if sign else -1) if isinstance(sign, bool | np.bool_) else sign
        for part, sign in signs.items()
    }
    if not values:
        return Verdict.NOT_TESTABLE, "nothing was measured"
    holding = [part for part, sign in values.items() if sign > 0]
    if len(holding) == len(values):
        return Verdict.HELD, ""
    if holding:
        return Verdict.CONDITION, _singular(where, len(holding)).format(ranges(holding))
    return (Verdict.NOT_HELD if min(values.values()) < 0 else Verdict.INCONCLUSIVE), ""


def _singular(where: str, n: int) -> str:
    """Return the singular of a condition: "in layer {}" for "in layers {}"."""
    return where.replace("s {}", " {}") if n == 1 else where


Holds = Mapping[str, int | bool] | int | bool | Verdict | tuple[Verdict, str]


def decide(claim: str, holds: Holds, ours: str, *, where: str = "{}", why: str = "") -> Finding:
    """Return the finding on a claim; `on` adds the subject.

    Args:
        claim: the name of the claim, with or without that of the paper.
        holds: the signs of the parts, or one sign, as in `judged`; or a verdict, with or without a
            condition.
        ours: our values in words.
        where: the condition in words, as in `judged`.
        why: the reason why the claim cannot be tested, or empty.

    >>> decide("norm-falls", {"1": -0.2 < 0, "2": False}, "-0.20 … 0.10", where="in layers {}").shown
    '◐ held under a condition: in layer 1'
    """
    if why:
        verdict, condition = Verdict.NOT_TESTABLE, why
    elif isinstance(holds, tuple):
        verdict, condition = holds
    elif isinstance(holds, Verdict):
        verdict, condition = holds, ""
    else:
        verdict, condition = judged(holds if isinstance(holds, Mapping) else {"": holds}, where=where)
    return Finding(claim, "", verdict, minus(ours), condition)


def on(paper: str, subject: str, findings: Iterable[Finding], evidence: str = "") -> Iterator[Finding]:
    """Yield findings with their subject; a claim without the name of a paper is of this paper."""
    for one in findings:
        claim = one.claim if "/" in one.claim else f"{paper}/{one.claim}"
        yield replace(one, claim=claim, subject=one.subject or subject, evidence=one.evidence or evidence)


def reached(verdicts: Iterable[Verdict | None]) -> Verdict:
    """Return the verdict on several published values: held if each of them is."""
    known = {verdict or Verdict.NOT_TESTABLE for verdict in verdicts}
    return next(one for one in (Verdict.NOT_TESTABLE, Verdict.NOT_HELD, Verdict.HELD) if one in known)


def rho_interval(rho: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of Spearman's ρ over n independent pairs (Bonett and Wright 2000).

    >>> [round(bound, 2) for bound in rho_interval(0.5, 30)]
    [0.15, 0.74]
    """
    half = 1.96 * math.sqrt((1 + rho**2 / 2) / (n - 3))
    center = math.atanh(max(min(rho, 1 - 1e-12), 1e-12 - 1))
    return math.tanh(center - half), math.tanh(center + half)


def by_interval(low: float, high: float, bound: float = 0.0) -> Verdict:
    """Return the verdict on "above the bound" from an interval.

    >>> str(by_interval(0.1, 0.4)), str(by_interval(-0.1, 0.4)), str(by_interval(-0.4, -0.1))
    ('held', 'inconclusive', 'not held')
    """
    if low > bound:
        return Verdict.HELD
    return Verdict.NOT_HELD if high < bound else Verdict.INCONCLUSIVE


def ranges(parts: Sequence[str]) -> str:
    """Join names with commas, and runs of whole numbers with a dash.

    >>> ranges(["1", "2", "3", "7"]), ranges(["MiniLM", "mpnet"])
    ('1–3, 7', 'MiniLM, mpnet')
    """
    numbered = [(place, part) for place, part in enumerate(parts)]
    if not all(part.isdecimal() for part in parts):
        return ("; " if any("," in part for part in parts) else ", ").join(parts)
    runs = [
        [int(part) for _, part in group] for _, group in groupby(numbered, lambda one: int(one[1]) - one[0])
    ]
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def together(findings: Iterable[Finding]) -> tuple[Verdict, str]:
    """Return the verdict on a claim from its findings on all subjects, and its condition.

    Findings that are not testable are used only if there are no others. One clear counterexample gives
    "not held", unless the claim held on another subject; then the condition names the subjects.
    """
    listed = list(findings)
    tested = [one for one in listed if one.verdict is not Verdict.NOT_TESTABLE]
    if not tested:
        return Verdict.NOT_TESTABLE, "; ".join(
            dict.fromkeys(one.condition for one in listed if one.condition)
        )
    verdicts = {one.verdict for one in tested}
    if verdicts == {Verdict.HELD}:
        return Verdict.HELD, ""
    if verdicts & {Verdict.HELD, Verdict.CONDITION}:
        return Verdict.CONDITION, _where(tested)
    return (Verdict.NOT_HELD if Verdict.NOT_HELD in verdicts else Verdict.INCONCLUSIVE), ""


def _where(tested: Sequence[Finding]) -> str:
    """Name the subjects on which a claim held, by condition, and those on which it did not."""
    by_condition: dict[str, list[str]] = {}
    for one in tested:
        if one.verdict in (Verdict.HELD, Verdict.CONDITION):
            by_condition.setdefault(one.condition, []).append(one.subject)
    if list(by_condition.values()) == [[one.subject for one in tested]]:
        return next(iter(by_condition))
    words = "on " + "; ".join(
        f"{ranges(names)} {condition}".strip() for condition, names in by_condition.items()
    )
    for verdict, name in ((Verdict.NOT_HELD, "not on"), (Verdict.INCONCLUSIVE, "inconclusive on")):
        subjects = [one.subject for one in tested if one.verdict is verdict]
        words += f"; {name} {ranges(subjects)}" if subjects else ""
    return words
