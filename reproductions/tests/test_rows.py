from __future__ import annotations

import pytest

from isoscope_papers.rows import Row, below, equal, unpublished, within
from isoscope_papers.verdict import Verdict


@pytest.mark.parametrize(
    ("ours", "verdict"), [(10, Verdict.HELD), (11, Verdict.NOT_HELD)], ids=["same", "other"]
)
def test_counts_have_to_be_equal(ours: int, verdict: Verdict) -> None:
    assert equal("s", "items", ours, 10, comparable=True).verdict is verdict


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(-0.8109, Verdict.HELD), (-0.8111, Verdict.NOT_HELD), (None, Verdict.NOT_HELD)],
)
def test_numbers_have_to_be_near(ours: float | None, verdict: Verdict) -> None:
    assert within("s", "r", ours, -0.808, tolerance=0.003, comparable=True).verdict is verdict


@pytest.mark.parametrize(("ours", "verdict"), [(-0.9981, Verdict.HELD), (-0.998, Verdict.NOT_HELD)])
def test_a_bound_is_strict(ours: float, verdict: Verdict) -> None:
    row = below("s", "ρ", ours, -0.998, comparable=True)
    assert row.verdict is verdict
    assert row.published_shown == "< −0.998"


def test_other_data_is_not_judged() -> None:
    assert equal("s", "items", 3, 4, comparable=False).verdict is Verdict.NOT_TESTABLE
    assert within("s", "r", 0.1, None, tolerance=1.0, comparable=True).verdict is None
    assert unpublished("s", "silhouette", 0.5).verdict is None


def test_rounding_is_for_reading_only() -> None:
    row = Row("s", "r", -0.8076912, -0.808, Verdict.HELD, 3)
    assert (row.ours_shown, row.published_shown) == ("−0.808", "−0.808")
    assert row.to_dict()["ours"] == -0.8076912
    assert Row("s", "items", 10_662, digits=0).ours_shown == "10,662"
    assert Row("s", "r", None).ours_shown == "—"
