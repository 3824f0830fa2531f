from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso
from isoscope.engine.plan import EXACT_PAIRS, plan, silhouette_policy
from isoscope.engine.run import run
from isoscope.statistics.declared import declared


@pytest.mark.parametrize("times", [1, 3, 7, 50])
def test_the_pairs_met_stay_within_one_bound(times: int) -> None:
    limit = silhouette_policy(1, times=times).limit
    assert times * limit**2 <= EXACT_PAIRS < times * (limit + 1) ** 2
    assert silhouette_policy(limit, times=times).exact
    assert not silhouette_policy(limit + 1, times=times).exact


def test_estimates_are_as_much_wider_as_keeps_their_work_the_same() -> None:
    one, four = silhouette_policy(10**6), silhouette_policy(10**6, times=4)
    assert four.tolerance == pytest.approx(2 * one.tolerance)
    assert silhouette_policy(10**6, by_label=True).tolerance > one.tolerance


X = np.random.default_rng(0).normal(size=(300, 6))


def test_a_space_in_memory() -> None:
    found = plan("isoscore,silhouette", iso.Space(X, labels=np.arange(300) % 3))
    assert found.where == "memory"
    assert found.statistics["whole"] == ("separation", "vectors")
    assert [metric.name for metric in found.metrics] == ["isoscore", "silhouette"]


def test_a_file_is_streamed_loaded_or_passed_over_in_parts(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "y.txt").write_text("\n".join("abc"[row % 3] for row in range(300)))
    source = iso.open_vectors(tmp_path / "X.npy", labels=tmp_path / "y.txt")
    streamed = plan("isoscore", source)
    assert (streamed.where, streamed.in_parts) == ("streamed", False)
    assert streamed.statistics["second pass"] == ("left_out_moments",)
    assert plan("isoscore", source, errors=False).statistics["second pass"] == ()
    assert plan("silhouette", source).where == "loaded"
    parted = plan("silhouette,default", source, checkpoint=tmp_path / "kept")
    assert (parted.where, parted.in_parts) == ("streamed", True)
    assert parted.statistics["strips"] == ("separation",)
    assert parted.left_out == ("left out, needs all vectors in memory at once: silhouette_cosine",)
    assert parted.cost is not None
    assert parted.cost.passes == 3


def test_a_plan_takes_what_a_run_takes(tmp_path: Path) -> None:
    """The statistics on the shelf of a stream are those of the plan."""
    np.save(tmp_path / "X.npy", X)
    source = iso.open_vectors(tmp_path / "X.npy")
    found = plan(None, source)
    assert found.needs == set(vars(run(found, source))) & set(declared())


def test_many_rows_have_estimated_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr("isoscope.engine.plan.LEFT_OUT_ROWS", 100)
    found = plan("isoscore", iso.open_vectors(tmp_path / "X.npy"))
    assert found.estimated["standard errors"].endswith("accurate to ± 14 % (exact up to 100 vectors)")
    assert "estimated" in str(found)
    assert plan("isoscore", iso.Space(X)).estimated == {}


def test_a_plan_prints_and_is_json() -> None:
    found = plan("isoscore", iso.Space(X, name="mine"), by=np.arange(300) % 2)
    text = str(found)
    assert "mine: 300 vectors × 6 dimensions" in text
    assert "by the values given, each beside the rows outside it" in text
    kept = json.loads(found.to_json())
    assert kept["where"] == "memory"
    assert kept["cost"]["bytes_read"] == 4 * X.size
    assert kept["by"] == []
