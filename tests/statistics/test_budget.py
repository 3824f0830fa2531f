from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError
from isoscope.kernels.tiles import CUDA_TILE_ROWS, TILE_ROWS
from isoscope.labels import as_labels
from isoscope.statistics import budget, pairs
from isoscope.statistics.budget import TilePlan, tile_plans


@pytest.fixture
def many(rng) -> tuple[torch.Tensor, np.ndarray]:
    """So many clusters that keeping all sums is most of the memory."""
    return torch.from_numpy(rng.normal(size=(3000, 40))).float(), np.arange(3000) % 1000


def least_mb(X: torch.Tensor, y: np.ndarray) -> float:
    """The bound that the error names."""
    with raises(argument="memory", message="no room for one tile", hint="tolerance") as raised:
        iso.silhouette_score(X, y, memory="1MB")
    return float(re.search(r"at least (\d+)", raised.value.wanted).group(1))


@pytest.mark.slow
def test_a_bound_changes_the_plan_and_not_the_result(many, monkeypatch) -> None:
    X, y = many
    plans = []
    by_plan = pairs._by_plan
    monkeypatch.setattr(pairs, "_by_plan", lambda plan, *rest: plans.append(plan) or by_plan(plan, *rest))
    whole = iso.silhouette_samples(X.double(), y)
    least = least_mb(X.double(), y)
    tight = iso.silhouette_samples(X.double(), y, memory=f"{least}MB")
    assert torch.allclose(tight, whole, rtol=0, atol=1e-12)
    assert plans[0].keeps_sums
    assert not plans[1].keeps_sums
    assert plans[1].tile_rows < plans[0].tile_rows
    with pytest.raises(InputError, match="memory"):
        iso.silhouette_samples(X.double(), y, memory=f"{least - 1}MB")
    for function in (iso.silhouette_score, iso.metrics.silhouette_by_cluster):
        function(X, y, memory=f"{least}MB")
        assert not plans[-1].keeps_sums


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="wants Linux's high-water mark")
@pytest.mark.parametrize("n_distinct", [6000, 300], ids=["distinct", "duplicates"])
def test_the_bound_holds(n_distinct: int) -> None:
    script = f"""
import torch
import isoscope as iso
from isoscope.errors import InputError
g = torch.Generator().manual_seed(0)
X = torch.randn({n_distinct}, 256, generator=g)[torch.randint(0, {n_distinct}, (6000,), generator=g)]
y = (torch.arange(6000) % 2000).tolist()
iso.silhouette_score(X[:2500], y[:2500])  # every thread and library is up
def status(field):
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith(field))
for bound in (100, 250):  # all sums together are 92 MB
    open("/proc/self/clear_refs", "w").write("5")
    before = status("VmRSS")
    iso.silhouette_score(X, y, memory=bound * 2**20)
    print(bound - (status("VmHWM") - before))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert min(map(float, done.stdout.split())) > 0


def test_by_default_tiles_and_sums_stay_within_256_mb(many, monkeypatch) -> None:
    X, y = many
    (plan,) = tile_plans(X, as_labels(y))
    assert plan.tile_rows <= TILE_ROWS
    assert plan.keeps_sums
    assert plan.working_bytes <= budget.MEMORY_MB * 2**20
    monkeypatch.setattr(budget, "MEMORY_MB", 60.0)
    (plan,) = tile_plans(X, as_labels(y))
    assert plan.working_bytes <= 60 * 2**20
    monkeypatch.setattr(budget, "MEMORY_MB", 0.0)  # nothing fits: the least, rather than an error
    (plan,) = tile_plans(X, as_labels(y))
    assert not plan.keeps_sums


def test_tiles_are_enough_for_all_cores(monkeypatch) -> None:
    labels = as_labels([0, 1] * 16_384)
    for n_threads, n, expected in ((1, 32_768, TILE_ROWS), (4, 1024, 256), (4, 200, 256), (2, 1500, 512)):
        monkeypatch.setattr(torch, "get_num_threads", lambda n_threads=n_threads: n_threads)
        (plan,) = tile_plans(torch.zeros(n, 8), labels.rows(0, n))
        assert plan.tile_rows == expected


def test_running_out_of_device_memory_halves_the_tiles(many, monkeypatch) -> None:
    X, y = many
    expected = iso.silhouette_score(X, y)
    labels = as_labels(y)
    plans = [TilePlan.of(X, labels, side, side == 1024) for side in (1024, 512, 256)]
    monkeypatch.setattr(pairs, "tile_plans", lambda *_: plans)
    arrange, tried = pairs.Arranged.of, []

    def small_device(X, labels, *, tile_rows):
        tried.append(tile_rows)
        if tile_rows > limit:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return arrange(X, labels, tile_rows=tile_rows)

    monkeypatch.setattr(pairs.Arranged, "of", small_device)
    limit = 256
    assert iso.silhouette_score(X, y) == pytest.approx(expected, abs=1e-9)
    assert tried == [1024, 512, 256]
    limit = 100
    with raises(argument="X", message=r"tiles of 256 rows need \d+ MB more", hint="tolerance"):
        iso.silhouette_score(X, y)


def test_cuda_has_ever_smaller_tiles_and_takes_no_bound(many) -> None:
    class OnCuda(torch.Tensor):
        is_cuda = True

    X, labels = many[0].as_subclass(OnCuda), as_labels(many[1])
    sides = [plan.tile_rows for plan in tile_plans(X, labels)]
    assert sides == [CUDA_TILE_ROWS // 2**step for step in range(6)]
    with raises(argument="memory", message="memory of the CPU", hint="memory"):
        tile_plans(X, labels, 100.0)


@pytest.mark.parametrize("memory", [0, -3, float("nan"), True, "much"])
def test_what_is_no_bound(many, memory) -> None:
    with pytest.raises(InputError, match="a size such as"):
        iso.silhouette_score(*many, memory=memory)


@pytest.mark.parametrize("options", [{"metric": "cosine"}, {"tolerance": 0.1}], ids=str)
def test_where_a_bound_does_not_belong(many, options: dict) -> None:
    with pytest.raises(InputError, match="memory"):
        iso.silhouette_score(*many, memory="100MB", **options)
