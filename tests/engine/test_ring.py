"""Rows in two processes give what one process computes from all of them."""

from __future__ import annotations

import pytest
import torch
from tests import distributed

import isoscope as iso
from isoscope.engine.ring import (
    ring_directions,
    ring_moments,
    ring_separation,
    ring_silhouette,
    ring_statistics,
)
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.pairs import Separation

N, D, K = 301, 40, 4  # wide enough for float32 products
NEEDS = ("label_moments", "left_out_moments", "log_partition")
SPLITS = {"uneven": 200, "one has none": N}


def inputs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(0, K, (N,), generator=draw)
    X = (
        torch.randn(N, D, generator=draw, dtype=torch.float64)
        + torch.randn(K, D, generator=draw)[labels]
        + 30
    )
    X[1] = X[0]  # a pair at no distance
    return X.to(dtype), labels


def work(rank: int) -> dict[str, torch.Tensor]:
    """Compute the statistics of the rows of one process."""
    results = {}
    for split, first in SPLITS.items():
        for dtype in (torch.float64, torch.float32):
            X, labels = inputs(dtype)
            mine = slice(0, first) if rank == 0 else slice(first, N)
            separation = ring_separation(X[mine], labels[mine], n_labels=K)
            key = f"{split} {dtype}"
            results[f"{key} cohesion"], results[f"{key} separation"] = (
                separation.cohesion,
                separation.separation,
            )
            results[f"{key} score"] = torch.tensor(ring_silhouette(X[mine], labels[mine], n_labels=K))
    X, _ = inputs(torch.float64)
    mine = slice(0, 200) if rank == 0 else slice(200, N)
    moments, directions = ring_moments(X[mine]), ring_directions(X[mine])
    results["scatter"], results["mean"] = moments.scatter, moments.mean
    results["units"], results["least"] = directions.unit_sum, directions.norm_min
    results["count"] = torch.tensor(directions.count)
    names = ["ab", "bc"][rank]  # not every process has every label
    own = [names[row % 2] for row in range(N)[mine]]
    shelf = ring_statistics(X[mine], NEEDS, labels=own)
    results["means"] = shelf.label_moments.means
    results["left out"] = shelf.left_out_moments.trace
    results["partition"] = shelf.log_partition.log_z
    return results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, torch.Tensor]]:
    return distributed.run(__file__, tmp_path_factory.mktemp("ring"))


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_two_processes_are_one(
    results: list[dict[str, torch.Tensor]], split: str, dtype: torch.dtype
) -> None:
    X, labels = inputs(dtype)
    expected = Separation.of(X, labels)
    tolerance = 1e-12 if dtype == torch.float64 else 2e-6
    for name in ("cohesion", "separation"):
        both = torch.cat([process[f"{split} {dtype} {name}"] for process in results])
        torch.testing.assert_close(both, getattr(expected, name), rtol=tolerance, atol=tolerance)
    score = iso.silhouette_score(X, labels)
    for process in results:
        assert float(process[f"{split} {dtype} score"]) == pytest.approx(score, abs=1e-7)


@pytest.mark.slow
def test_statistics_of_all(results: list[dict[str, torch.Tensor]]) -> None:
    X, _ = inputs(torch.float64)
    moments, directions = iso.Moments.of(X), iso.statistics.Directions.of(X)
    for process in results:
        torch.testing.assert_close(process["scatter"], moments.scatter, rtol=1e-10, atol=1e-9)
        torch.testing.assert_close(process["mean"], moments.mean)
        torch.testing.assert_close(process["units"], directions.unit_sum)
        assert process["least"] == directions.norm_min
        assert int(process["count"]) == N


@pytest.mark.slow
def test_any_statistic_that_merges(results: list[dict[str, torch.Tensor]]) -> None:
    X, _ = inputs(torch.float64)
    labels = [("ab" if row < 200 else "bc")[(row if row < 200 else row - 200) % 2] for row in range(N)]
    shelf = Statistics(iso.Space(X, labels=labels))
    for process in results:
        torch.testing.assert_close(process["means"], shelf.label_moments.means)
        torch.testing.assert_close(process["left out"], shelf.left_out_moments.trace)
        torch.testing.assert_close(process["partition"], shelf.log_partition.log_z)


def test_without_processes() -> None:
    for call in (lambda: ring_moments([[1.0]]), lambda: ring_separation([[1.0]], [0], n_labels=1)):
        with pytest.raises(iso.InputError, match=r"torch\.distributed is not initialised"):
            call()


if __name__ == "__main__":
    distributed.main(work)
