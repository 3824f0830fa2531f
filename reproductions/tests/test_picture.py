"""Figure 1 of the contrastive paper: states before and after training in one plane."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from isoscope_papers.dynamics.picture import Picture, picture_findings, pictured
from isoscope_papers.dynamics.setups import SETUPS
from isoscope_papers.verdict import Verdict

ONE = Picture(
    "masked", "masked LM", 20, {"before": 0.5, "after": 0.1}, {"before": 0.2, "after": 0.3}, {}, [1.2, 1.1]
)


@pytest.mark.parametrize(
    ("picture", "verdict"),
    [
        (ONE, Verdict.HELD),
        (replace(ONE, spread=[0.9, 0.8]), Verdict.CONDITION),
        (replace(ONE, spread=[0.9, 1.1]), Verdict.CONDITION),
        (replace(ONE, spread=[0.9, 1.1], mean_cosine={"before": 0.1, "after": 0.5}), Verdict.NOT_HELD),
    ],
)
def test_states_have_to_spread_with_every_seed_and_their_cosine_to_fall(
    picture: Picture, verdict: Verdict
) -> None:
    (finding,) = picture_findings([picture])
    assert finding.verdict is verdict


def test_both_times_share_one_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []

    class UMAP:
        def __init__(self, **options: object) -> None:
            pass

        def fit_transform(self, rows: np.ndarray) -> np.ndarray:
            fitted.append(rows.shape)
            return rows[:, :2]

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=UMAP))
    rows = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    found = pictured(next(iter(SETUPS.values())), {"before": rows, "after": 3 * rows})
    assert fitted == [(100, 4)] * 5  # both times by one map, once a seed
    assert found.spread == pytest.approx([9.0] * 5, rel=1e-5)  # an area goes with the square of lengths
    assert found.mean_cosine["after"] == pytest.approx(found.mean_cosine["before"], abs=1e-6)
    np.testing.assert_allclose(found.points["after"], 3 * np.array(found.points["before"]), atol=2e-3)
