from __future__ import annotations

import pytest

from isoscope_papers.verdict import Finding, Verdict, judged, together

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
