"""Pairs on a CUDA device against float64 on the CPU.

Also a script, for a machine without pytest: `PYTHONPATH=src python tests/test_cuda.py`.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from unittest import mock

import numpy as np
import torch

import isoscope as iso
from isoscope.errors import InputError, LabelError, NotFiniteError, ShapeError
from isoscope.labels import as_labels
from isoscope.statistics import budget, pairs

with contextlib.suppress(ImportError):  # a machine with a device may have no pytest
    import pytest

    pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def space(
    n: int, d: int, K: int, *, spread: float = 1.0, offset: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Normal clusters on the CPU in float64, about as many points in each."""
    g = torch.Generator().manual_seed(0)
    labels = torch.randint(0, K, (n,), generator=g)
    centers = torch.randn(K, d, generator=g, dtype=torch.float64)
    return centers[labels] + spread * torch.randn(n, d, generator=g, dtype=torch.float64) + offset, labels


def worst(X: torch.Tensor, labels: torch.Tensor, **options: object) -> float:
    """The largest error of a silhouette on the device, against float64 on the CPU."""
    found = iso.silhouette_samples(X.cuda(), labels, **options)
    assert found.is_cuda
    return float((found.cpu() - iso.silhouette_samples(X.double(), labels)).abs().max())


def test_silhouettes_in_every_type() -> None:
    X, labels = space(3000, 96, 7)
    for dtype, tolerance in (
        (torch.float64, 1e-9),
        (torch.float32, 1e-6),
        (torch.float16, 1e-6),
        (torch.bfloat16, 1e-6),
    ):
        assert worst(X.to(dtype), labels) < tolerance, dtype


def test_files_in_blocks_of_many_threads() -> None:
    X, labels = space(60_000, 64, 5)
    rows, about = X.half(), {"metrics": ["isoscore", "mean_cosine", "partition_isotropy", "silhouette"]}
    expected = iso.measure(rows, labels, **about)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/rows.npy", rows.numpy())
        for device in ("cuda", "cuda:0,cuda:0"):
            found = iso.measure(f"{folder}/rows.npy", labels, device=device, **about)
            strips = iso.measure(f"{folder}/rows.npy", labels, device=device, memory="60GB", **about)
            for name in about["metrics"]:
                for one in (found, strips):
                    assert abs(one[name] - expected[name]) < 1e-5 * abs(expected[name]), (device, name)


def test_kmeans_is_the_cpus() -> None:
    X, _ = space(4000, 48, 6, spread=0.7, offset=5.0)
    for dtype in (torch.float32, torch.float64):
        here, there = (iso.kmeans(rows, 6, seed=3) for rows in (X.to(dtype), X.to(dtype).cuda()))
        assert there.centers.is_cuda
        assert there.labels.codes.is_cuda
        assert abs(there.inertia / here.inertia - 1) < 1e-4
        assert (there.labels.codes.cpu() == here.labels.codes).float().mean() > 0.999
    chosen = iso.clustering.choose_clusters(X.float().cuda(), max_clusters=8)
    assert chosen.n_clusters == iso.clustering.choose_clusters(X.float(), max_clusters=8).n_clusters


def test_a_layer_of_manifolds_is_the_cpus() -> None:
    from isoscope_papers.manifolds.layers import measure_layer

    X, lumps = space(3000, 40, 4, spread=0.4)
    g = torch.Generator().manual_seed(1)
    types = as_labels(torch.randint(0, 200, (3000,), generator=g))
    known = {
        "positions": torch.arange(3000) % 512,
        "log_frequencies": types.counts[types.codes].log(),
        "is_sink": torch.zeros(3000, dtype=torch.bool),
    }
    here, there = (
        measure_layer(rows, types, **known).figures.to_dict() for rows in (X.float(), X.float().cuda())
    )
    assert there["n_clusters"] == here["n_clusters"] == int(lumps.max()) + 1
    for name in ("silhouette", "lid", "lid_cosine", "top_variance"):
        assert abs(there[name] - here[name]) < 1e-3 * abs(here[name]), name
    for name in ("cosines", "adjusted"):
        for part, value in here[name].items():
            assert abs(there[name][part] - value) < 1e-4, (name, part)


def test_hard_spaces() -> None:
    assert worst(*_float(space(2275, 300, 750))) < 1e-5  # many clusters, singletons among them
    assert worst(*_float(space(2000, 64, 5, spread=1e-5))) < 1e-5
    assert worst(*_float(space(2000, 64, 5, spread=0.1, offset=1e3))) < 1e-5
    distinct, _ = _float(space(50, 64, 2))
    rows = torch.arange(3000) % 50
    assert worst(distinct[rows], torch.arange(3000) % 7) < 1e-5
    assert worst(torch.ones(300, 40), torch.arange(300) % 3) == 0


def test_other_metrics() -> None:
    X, labels = space(1000, 40, 5)
    for metric in ("sqeuclidean", "cosine"):
        expected = iso.silhouette_score(X, labels, metric=metric)
        assert abs(iso.silhouette_score(X.float().cuda(), labels, metric=metric) - expected) < 1e-5, metric


def test_spaces_at_once_are_the_single_ones() -> None:
    X, labels = space(1500, 64, 6)
    for dtype in (torch.float32, torch.float64):
        spaces = torch.stack([X, X.flip(1) * 3, X.square(), -X, X + 9]).to(dtype).cuda()
        for _ in range(3):  # plain, recorded, replayed
            scores = iso.silhouette_score(spaces, labels)
            assert scores.is_cuda
            single = [iso.silhouette_score(one, labels) for one in spaces]
            assert np.allclose(scores.cpu(), single, rtol=0, atol=1e-6)


def test_deterministic_repeats_itself() -> None:
    X, labels = _float(space(4000, 96, 40))
    assert worst(X, labels, deterministic=True) < 1e-6
    X, coded = X.cuda(), as_labels(labels).to(torch.device("cuda"))  # one object: later calls are replayed
    for options in ({}, {"metric": "sqeuclidean"}, {"metric": "cosine"}):
        runs = [iso.silhouette_samples(X, coded, deterministic=True, **options) for _ in range(5)]
        assert all(torch.equal(run, runs[0]) for run in runs), options
        again = [iso.metrics.silhouette_by_cluster(X, coded, deterministic=True, **options) for _ in range(3)]
        assert again[0] == again[1] == again[2], options
    assert not torch.are_deterministic_algorithms_enabled()


def test_neighbors() -> None:
    X, _ = space(3000, 64, 5)
    found = iso.statistics.Neighbors.of(X.float().cuda(), k=20)
    expected = iso.statistics.Neighbors.of(X, k=20)
    assert float((found.distances.cpu() - expected.distances).abs().max()) < 1e-4
    assert float((found.indices.cpu() == expected.indices).float().mean()) > 0.999


def test_estimate_covers_the_exact_score() -> None:
    X, labels = _float(space(20_000, 64, 5))
    estimate = iso.silhouette_score(X.cuda(), labels, tolerance=1e-3)
    low, high = estimate.interval
    exact = iso.silhouette_score(X.cuda(), labels)
    assert low - 1e-3 < exact < high + 1e-3
    assert abs(estimate.value - exact) < 3e-3


def test_bad_input_is_refused_and_the_device_lives_on() -> None:
    X, labels = (part.cuda() for part in _float(space(600, 40, 4)))
    broken, endless = X.clone(), X.clone()
    broken[3, 1], endless[4, 2] = torch.nan, torch.inf
    cases = [
        (X, labels[:10], ShapeError, "has 10 entries for 600 vectors"),
        (X, torch.zeros(600), LabelError, "only one label"),
        (X, torch.arange(600), LabelError, "a different label"),
        (broken, labels, NotFiniteError, "row 3"),
        (endless, labels, NotFiniteError, "row 4"),
        (X[:0], labels[:0], ShapeError, "empty"),
        (X[None, :, :0], labels, ShapeError, "empty"),
        (torch.stack([X, broken]), labels, NotFiniteError, "`X[1]` has NaN"),
    ]
    for points, given, error, message in cases:
        assert message in refused(error, lambda p=points, g=given: iso.silhouette_score(p, g))
    assert "memory" in refused(InputError, lambda: iso.silhouette_score(X, labels, memory="100MB"))
    torch.cuda.synchronize()
    assert -1 < iso.silhouette_score(X, labels) < 1


def test_out_of_memory_takes_smaller_tiles_then_says_so() -> None:
    X, labels = space(3000, 64, 5)
    expected = iso.silhouette_score(X, labels)
    X = X.cuda()  # float64: tiles in torch
    arrange = pairs.Arranged.of
    limit = 512

    def small(*args: object, tile_rows: int) -> object:
        if tile_rows > limit:
            torch.empty(2**60, device="cuda")  # a real refusal of the allocator
        return arrange(*args, tile_rows=tile_rows)

    with mock.patch.object(pairs.Arranged, "of", small):
        assert abs(iso.silhouette_score(X, labels) - expected) < 1e-9
        limit = budget._LEAST_CUDA_ROWS - 1
        assert "MB more" in refused(InputError, lambda: iso.silhouette_score(X, labels))
    assert abs(iso.silhouette_score(X, labels) - expected) < 1e-9


def refused(error: type[Exception], run: Callable[[], object]) -> str:
    """The message of the error that `run` must raise."""
    try:
        run()
    except error as raised:
        return str(raised)
    raise AssertionError(f"{error.__name__} was not raised")


def _float(made: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    return made[0].float(), made[1]


def main() -> int:
    """Run every test here; the number that failed."""
    if not torch.cuda.is_available():
        print("no CUDA device: nothing run")
        return 1
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            began = time.perf_counter()
            try:
                test()
                verdict = "passed"
            except Exception:
                traceback.print_exc()
                failed, verdict = failed + 1, "FAILED"
            print(f"{verdict} {name} ({time.perf_counter() - began:.1f} s)", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
