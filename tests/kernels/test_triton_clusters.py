"""The CUDA kernels under Triton's interpreter, which runs them on the CPU, against direct differences."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from tests.raising import raises

from isoscope.kernels.cluster_plan import ClusterPlan, Tuning

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
HAS_TRITON = find_spec("triton") is not None
needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="triton is not installed")
# the interpreter is chosen when Triton is imported, so the checks below run in a process of their own
interpreted = pytest.mark.skipif(not (INTERPRETED and HAS_TRITON), reason="run by test_under_the_interpreter")
SMALL = Tuning(rows=64, columns=32, dims=32, mixed=32, group=2)


@pytest.mark.slow
@needs_triton
@pytest.mark.skipif(INTERPRETED, reason="this is the process it starts")
def test_under_the_interpreter(interpret) -> None:
    assert " passed" in interpret(__file__)


def labels(counts: list[int], seed: int = 0) -> torch.Tensor:
    """Shuffled codes with these counts."""
    codes = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return codes[torch.randperm(len(codes), generator=torch.Generator().manual_seed(seed))]


def cloud(codes: torch.Tensor, d: int, spread: float = 1.0, offset: float = 0.0) -> torch.Tensor:
    """Normal clusters of one spread around normal centres, moved by an offset; float32."""
    g = torch.Generator().manual_seed(1)
    centers = torch.randn(int(codes.max()) + 1, d, generator=g, dtype=torch.float64)
    noise = torch.randn(len(codes), d, generator=g, dtype=torch.float64)
    return (centers[codes] + spread * noise + offset).float()


def direct_sums(X: torch.Tensor, codes: torch.Tensor, n_clusters: int) -> torch.Tensor:
    """(n, K) by direct difference in float64."""
    distances = torch.cdist(X.double(), X.double(), compute_mode="donot_use_mm_for_euclid_dist")
    return distances.new_zeros(len(X), n_clusters).index_add_(1, codes, distances)


def worst(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest relative error; sums that are zero must be found zero."""
    assert (found[expected == 0] == 0).all()
    return float(((found - expected).abs() / expected.clamp(min=1e-300)).max())


SINGLETONS = [1] * 25 + [2] * 5 + [5] * 4 + [10] * 4 + [25, 20]
CASES = {
    "two clusters": ([80, 70], 48, 1.0, 0.0),
    "forty, with singletons": (SINGLETONS, 48, 0.5, 0.0),
    "collapsed": ([60, 50, 40], 48, 1e-5, 0.0),
    "collapsed, many": (SINGLETONS, 48, 1e-5, 0.0),
    "far from the origin": ([60, 50, 40], 48, 0.1, 1e4),
    "large and tiny": ([3, 70, 1, 1, 40, 2, 100, 1], 48, 1.0, 0.0),
    "empty clusters": ([0, 40, 0, 3, 0, 2, 0], 33, 1.0, 0.0),
    "odd dimensions": ([70, 35, 6], 37, 1.0, 0.0),
    "two dimensions": ([70, 35, 6], 2, 1.0, 0.0),
}


@interpreted
@pytest.mark.parametrize("name", CASES)
def test_sums_are_the_direct_ones(name: str) -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    counts, d, spread, offset = CASES[name]
    codes = labels(counts)
    X = cloud(codes, d, spread, offset)
    found = cluster_sums(X, codes, len(counts), tuning=SMALL)
    assert worst(found, direct_sums(X, codes, len(counts))) < 1e-6


@interpreted
@pytest.mark.parametrize("counts", [[80, 40, 2, 1]], ids=str)
@pytest.mark.parametrize("precision", ["tf32x3", "ieee"])
def test_other_precisions(counts: list[int], precision: str) -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    codes = labels(counts)
    X = cloud(codes, 40)
    found = cluster_sums(X, codes, len(counts), tuning=SMALL, precision=precision)
    assert worst(found, direct_sums(X, codes, len(counts))) < 1e-6


@interpreted
@pytest.mark.parametrize("rows", [32, pytest.param(64, marks=pytest.mark.nightly)])
def test_default_and_square_tiles_and_float64_sums(rows: int) -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    codes = labels([150, 90, 3])
    X = cloud(codes, 40)
    tuning = Tuning(rows=rows, columns=32, mixed=32, group=3, sums=torch.float64)
    found = cluster_sums(X, codes, 3, tuning=tuning)
    assert found.dtype == torch.float64
    expected = direct_sums(X, codes, 3)
    assert worst(found, expected) < 1e-6
    assert worst(cluster_sums(X, codes, 3), expected) < 1e-6


@interpreted
@pytest.mark.parametrize(
    "counts",
    [
        pytest.param([90, 60], id="large", marks=pytest.mark.nightly),
        pytest.param([70, 1, 2, 1, 30, 5], id="large and tiny"),
    ],
)
def test_duplicates(counts: list[int]) -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    codes = labels(counts)
    distinct = cloud(labels([20]), 40)
    X = distinct[torch.randint(0, 20, (len(codes),), generator=torch.Generator().manual_seed(2))]
    expected = direct_sums(X, codes, len(counts))
    assert worst(cluster_sums(X, codes, len(counts), tuning=SMALL), expected) < 1e-6
    assert worst(cluster_sums(X, codes, len(counts), tuning=SMALL, deterministic=True), expected) < 1e-6
    careless = Tuning(rows=64, columns=32, mixed=32, group=2, near=-1.0, mixed_near=-1.0)
    found = cluster_sums(X, codes, len(counts), tuning=careless)
    assert not torch.allclose(found.double(), expected, rtol=1e-6, atol=0)


@interpreted
def test_equal_points_have_distance_zero() -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    assert (cluster_sums(torch.ones(90, 5), labels([50, 38, 2]), 3, tuning=SMALL) == 0).all()


@interpreted
@pytest.mark.parametrize("deterministic", [False, True])
def test_spaces_of_one_shape_at_once(deterministic: bool) -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    codes = labels([70, 40, 2, 1])
    X = torch.stack([cloud(codes, 33), 1e3 * cloud(codes, 33, 0.1) + 5, torch.zeros(len(codes), 33)])
    plan = ClusterPlan.of(codes, 4, tuning=SMALL)
    together = cluster_sums(X, codes, 4, plan=plan, deterministic=deterministic)
    assert together.shape == (3, len(codes), 4)
    for space, found in zip(X, together, strict=True):
        assert worst(found, direct_sums(space, codes, 4)) < 1e-6


@interpreted
@pytest.mark.nightly
def test_deterministic_equals_atomic_and_itself() -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    codes = labels([100, 1, 3, 40, 2, 34])
    X = cloud(codes, 40)
    in_order = cluster_sums(X, codes, 6, tuning=SMALL, deterministic=True)
    assert worst(in_order, direct_sums(X, codes, 6)) < 1e-6
    assert torch.allclose(in_order, cluster_sums(X, codes, 6, tuning=SMALL), rtol=1e-6)
    assert torch.equal(in_order, cluster_sums(X, codes, 6, tuning=SMALL, deterministic=True))


@interpreted
@pytest.mark.nightly
@pytest.mark.parametrize("described", [True, False])
def test_tiles_by_descriptor_and_by_address(described: bool) -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    codes = labels([100, 70, 2])
    X = cloud(codes, 40)
    tuning = Tuning(rows=64, columns=32, mixed=32, group=2, described=described)
    found = cluster_sums(torch.stack([X, 2 * X]), codes, 3, tuning=tuning)
    assert worst(found[1], 2 * direct_sums(X, codes, 3)) < 1e-6


@interpreted
@pytest.mark.parametrize(
    ("counts", "d", "spread", "offset"),
    [([90, 70, 3], 128, 1.0, 0.0), ([90, 70], 128, 1e-5, 0.0), ([90, 70], 128, 0.1, 1e4)],
    ids=["plain", "collapsed", "far from the origin"],
)
def test_products_partly_in_eight_bits(counts: list[int], d: int, spread: float, offset: float) -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    codes = labels(counts)
    X = cloud(codes, d, spread, offset)
    tuning = Tuning(rows=64, columns=32, dims=32, eights_dims=32, mixed=32, group=2)
    expected = direct_sums(X, codes, len(counts))
    found = cluster_sums(X, codes, len(counts), tuning=tuning, precision="fp16+fp8")
    assert worst(found, expected) < 1e-6
    assert not torch.equal(found, cluster_sums(X, codes, len(counts), tuning=tuning))


@interpreted
def test_rows_in_few_coordinates_are_not_multiplied_in_eight_bits() -> None:
    """In two coordinates, errors of a row's own rounding stay in its sums; over rows they cancel."""
    from isoscope.kernels.triton_clusters import cluster_sums

    codes = labels([120, 120])
    X = torch.cat([cloud(codes, 2), 0.05 * cloud(codes, 62)], dim=1)
    tuning = Tuning(rows=64, columns=32, dims=32, eights_dims=32, mixed=32, group=2)
    expected = direct_sums(X, codes, 2)
    assert worst(cluster_sums(X, codes, 2, tuning=tuning, precision="fp16+fp8"), expected) < 1e-6
    tuning = replace(tuning, concentrated=2.0, near=0.0)
    errors = cluster_sums(X, codes, 2, tuning=tuning, precision="fp16+fp8") / expected - 1
    assert 1e-6 < float(errors.abs().max()) < 2e-5
    assert float(errors.mean().abs()) < 3e-7


@interpreted
def test_eight_bits_are_right_on_average_for_rows_that_are_alike() -> None:
    """Every row is v or −v: rounding each to the nearest would be off by up to 1/16 in all of them alike."""
    from isoscope.kernels.triton_residuals import prepare

    v = torch.randn(32, generator=torch.Generator().manual_seed(4)) + 3
    signs = 1.0 - 2 * (torch.arange(2000) % 2)
    plan = ClusterPlan.of(torch.zeros(2000, dtype=torch.int64), 1, tuning=replace(SMALL, eights_dims=32))
    prepared = prepare(signs[None, :, None] * v, plan, precision="fp16+fp8")
    assert prepared.eights is not None
    for part, scale in ((slice(0, 32), 64.0), (slice(32, 64), 1 / 64)):
        exact, rounded = (
            parts[0, :2000, part].double() for parts in (prepared.parts, prepared.eights.float())
        )
        assert len(rounded[:, 0].abs().unique()) == 2  # the two numbers on both sides of it
        means = (signs[:, None] * rounded * scale).mean(dim=0)
        assert ((means - exact[0]).abs() <= 5e-3 * exact[0].abs()).all()


@interpreted
def test_many_points_are_multiplied_partly_in_eight_bits() -> None:
    from isoscope.kernels.triton_clusters import default_precision

    assert default_precision(torch.empty(2**16, 64)) == "fp16+fp8"
    assert default_precision(torch.empty(2**16 - 1, 64)) == "fp16x3"
    assert default_precision(torch.empty(2**16, 63)) == "fp16x3"


@interpreted
def test_rows_in_several_blocks(monkeypatch) -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    codes = labels([50, 45, 2])
    X = cloud(codes, 33)
    monkeypatch.setattr("isoscope.kernels.triton_residuals._BLOCK_ROWS", 40)
    assert worst(cluster_sums(X, codes, 3, tuning=SMALL), direct_sums(X, codes, 3)) < 1e-6


@interpreted
def test_half_precision_points() -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    codes = labels([50, 45])
    X = cloud(codes, 33).bfloat16()
    assert worst(cluster_sums(X, codes, 2, tuning=SMALL), direct_sums(X, codes, 2)) < 1e-6


@interpreted
@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"X": torch.ones(4, 2, dtype=torch.float64)}, {"argument": "X", "message": "float64"}),
        ({"codes": torch.zeros(3, dtype=torch.int64)}, {"argument": "codes", "message": "shape"}),
        ({"precision": "half"}, {"argument": "precision", "got": "half"}),
        ({"n_clusters": 10**9}, {"hint": "torch engine"}),
        ({"n_clusters": 1}, {"argument": "codes", "wanted": "below 1"}),
    ],
)
def test_what_is_refused(change: dict, fields: dict) -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    arguments = {"X": torch.ones(4, 2), "codes": torch.tensor([0, 1, 0, 1]), "n_clusters": 2} | change
    with raises(**fields):
        cluster_sums(**arguments)


@pytest.mark.skipif(INTERPRETED, reason="the interpreter takes the CPU")
def test_the_cpu_is_refused() -> None:
    from isoscope.kernels.triton_clusters import cluster_sums

    with pytest.raises(ValueError, match=r"triton, which is not installed|a CUDA device"):
        cluster_sums(torch.ones(4, 2), torch.tensor([0, 1, 0, 1]), 2)
