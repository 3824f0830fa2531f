from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from isoscope_papers.verdict import Finding, Verdict, decide, judged, on, reached, rho_interval, together

HELD, CONDITION, NOT_HELD, INCONCLUSIVE, NOT_TESTABLE = Verdict


def _finding(verdict: Verdict, subject: str, condition: str = "") -> Finding:
    return Finding("paper/key", subject, verdict, "1.0", condition)


@pytest.mark.parametrize(
    ("signs", "verdict"),
    [
        ([1, 1], HELD),
        ([1, 0], CONDITION),
        ([1, -1], CONDITION),
        ([0, 0], INCONCLUSIVE),
        ([0, -1], NOT_HELD),
        ([True, False], CONDITION),
        ([], NOT_TESTABLE),
    ],
)
def test_a_verdict_on_the_parts_of_a_test(signs: list[int], verdict: Verdict) -> None:
    assert judged({str(place): sign for place, sign in enumerate(signs)})[0] is verdict


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        ([HELD, HELD], HELD),
        ([HELD, NOT_TESTABLE], HELD),
        ([HELD, NOT_HELD], CONDITION),
        ([CONDITION, NOT_HELD], CONDITION),
        ([INCONCLUSIVE, NOT_HELD], NOT_HELD),
        ([INCONCLUSIVE, INCONCLUSIVE], INCONCLUSIVE),
        ([NOT_TESTABLE], NOT_TESTABLE),
        ([], NOT_TESTABLE),
    ],
)
def test_a_verdict_over_subjects(verdicts: list[Verdict], verdict: Verdict) -> None:
    assert together(_finding(one, str(place)) for place, one in enumerate(verdicts))[0] is verdict


def test_a_condition_says_where_it_held_and_where_not() -> None:
    findings = [
        _finding(HELD, "MiniLM"),
        _finding(CONDITION, "mpnet", "in layers 2–3"),
        _finding(NOT_HELD, "GloVe"),
        _finding(INCONCLUSIVE, "e5"),
    ]
    words = "on MiniLM; mpnet in layers 2–3; not on GloVe; inconclusive on e5"
    assert together(findings) == (CONDITION, words)
    assert together(findings[1:2]) == (CONDITION, "in layers 2–3")
    alike = [_finding(CONDITION, name, "in layer 4") for name in ("a, x", "b, y")]
    assert together(alike) == (CONDITION, "in layer 4")
    assert together([*alike, _finding(NOT_HELD, "c")])[1] == "on a, x; b, y in layer 4; not on c"
    assert judged({"4": True, "5": False}, where="in layers {}")[1] == "in layer 4"


def test_the_interval_of_a_rank_correlation_holds_the_truth_95_times_in_100() -> None:
    """Pairs of a normal distribution whose rank correlation is 0.9, where a fixed error is too small."""
    source, r = np.random.default_rng(0), 2 * np.sin(np.pi / 6 * 0.9)
    first, noise = source.normal(size=(2, 2000, 30))
    second = r * first + np.sqrt(1 - r**2) * noise
    rhos = [float(spearmanr(*pair).statistic) for pair in zip(first, second, strict=True)]
    inside = [low < 0.9 < high for low, high in (rho_interval(rho, 30) for rho in rhos)]
    assert 0.94 < np.mean(inside) < 0.97
    assert rho_interval(1.0, 6)[0] < 1.0


def test_a_finding_is_decided_by_parts_a_sign_a_verdict_or_a_reason() -> None:
    assert decide("a", {"1": 1, "2": -1}, "", where="in layers {}").condition == "in layer 1"
    assert [decide("a", holds, "").verdict for holds in (True, 0, -1, INCONCLUSIVE)] == [
        HELD, INCONCLUSIVE, NOT_HELD, INCONCLUSIVE,
    ]  # fmt: skip
    assert decide("a", (CONDITION, "of words"), "").condition == "of words"
    reason = decide("a", True, "-0.5 at 1e-05 of glove-6b", why="other models")
    assert (reason.verdict, reason.condition) == (NOT_TESTABLE, "other models")
    assert reason.ours == "−0.5 at 1e-05 of glove-6b"
    (one,) = on("paper", "MiniLM", [reason], "5 seeds")
    assert (one.claim, one.subject, one.evidence) == ("paper/a", "MiniLM", "5 seeds")
    (one,) = on("other", "mpnet", [one])
    assert (one.claim, one.subject) == ("paper/a", "MiniLM")


def test_published_figures_are_reached_together() -> None:
    assert reached([HELD, HELD]) is HELD
    assert reached([HELD, NOT_HELD]) is NOT_HELD
    assert reached([HELD, None]) is NOT_TESTABLE
