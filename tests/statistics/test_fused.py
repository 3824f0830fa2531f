"""Silhouettes over the CUDA kernels, run on the CPU by Triton's interpreter; and what surrounds them."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

import isoscope as iso
from isoscope.labels import as_labels
from isoscope.statistics.fused import _of_few_points, can_fuse, fixed_order, fused_separation, fused_sums

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
HAS_TRITON = find_spec("triton") is not None
interpreted = pytest.mark.skipif(not (INTERPRETED and HAS_TRITON), reason="run by test_under_the_interpreter")


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED or not HAS_TRITON, reason="wants Triton, outside its interpreter")
def test_under_the_interpreter(interpret) -> None:
    assert " passed" in interpret(__file__)


@pytest.fixture
def on_kernels(monkeypatch) -> list[tuple[torch.Size, bool]]:
    """Send points on the CPU to the kernels, without recordings; what each call asked for."""
    asked = []

    def plain(function, X, codes, **options):
        asked.append((X.shape, options["deterministic"]))
        return function(X, codes, **options)

    monkeypatch.setattr("isoscope.statistics.fused.can_fuse", lambda X, _: X.dtype == torch.float32)
    monkeypatch.setattr("isoscope.statistics.fused.FEW_POINTS", 0)
    monkeypatch.setattr("isoscope.statistics.fused.replayed", plain)
    return asked


def five_seeds(n: int = 90) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % 4
    return torch.randn(3, n, 33, generator=g) + torch.randn(3, 4, 33, generator=g)[:, labels], labels


@interpreted
def test_spaces_at_once_are_the_single_ones(on_kernels) -> None:
    X, labels = five_seeds()
    together = iso.silhouette_samples(X, labels)
    assert on_kernels == [(X.shape, False)]  # one launch for all
    for space, found in zip(X, together, strict=True):
        assert torch.allclose(found, iso.silhouette_samples(space, labels), rtol=0, atol=1e-6)
        assert torch.allclose(found, iso.silhouette_samples(space.double(), labels), rtol=0, atol=1e-6)


@interpreted
def test_deterministic_reaches_the_kernel_and_repeats_itself(on_kernels) -> None:
    X, labels = five_seeds()
    first, second = (iso.silhouette_samples(X, labels, deterministic=True) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.allclose(first, iso.silhouette_samples(X, labels), rtol=0, atol=1e-6)
    iso.silhouette_score(X[0], labels, deterministic=True)
    iso.metrics.silhouette_by_cluster(X[0], labels, deterministic=True)
    assert [deterministic for _, deterministic in on_kernels] == [True, True, False, True, True]


@interpreted
def test_average_over_clusters_of_several_spaces(on_kernels) -> None:
    X, labels = five_seeds()
    together = iso.silhouette_score(X, labels, average="macro")
    single = [iso.silhouette_score(space, labels, average="macro") for space in X]
    assert together.tolist() == pytest.approx(single, abs=1e-7)


@interpreted
def test_no_memory_for_the_kernels_leaves_the_tiles(on_kernels, monkeypatch) -> None:
    def full(*args, **options):
        raise torch.cuda.OutOfMemoryError("full")

    X, labels = five_seeds()
    expected = iso.silhouette_samples(X, labels)
    monkeypatch.setattr("isoscope.statistics.fused.replayed", full)
    monkeypatch.setattr("isoscope.kernels.triton_clusters.cluster_sums", full)
    assert fused_sums(X[0], as_labels(labels)) is None
    assert fused_separation(X, as_labels(labels)) is None
    assert torch.allclose(iso.silhouette_samples(X, labels), expected, rtol=0, atol=1e-6)


@pytest.mark.skipif(INTERPRETED, reason="nothing to do with it")
def test_the_cpu_has_tiles() -> None:
    X, labels = five_seeds()
    assert not can_fuse(X, as_labels(labels))
    assert fused_sums(X, as_labels(labels)) is None
    assert fused_separation(X, as_labels(labels)) is None


@pytest.mark.skipif(INTERPRETED, reason="nothing to do with it")
@pytest.mark.parametrize(
    "move", [lambda X: X, lambda X: 1e-3 * X + 1e3], ids=["plain", "far from the origin"]
)
def test_few_points_are_taken_at_once_in_float64(move, monkeypatch) -> None:
    """The path of few points on a device, taken here; it does not need Triton."""
    monkeypatch.setattr("isoscope.statistics.fused.can_fuse", lambda X, _: X.dtype == torch.float32)
    monkeypatch.setattr(
        "isoscope.statistics.fused.replayed", lambda f, *inputs, **options: f(*inputs, **options)
    )
    X, labels = five_seeds()
    X = move(X[0].double()).float()
    expected = iso.silhouette_samples(X.double(), labels)
    assert torch.allclose(iso.silhouette_samples(X, labels), expected, rtol=0, atol=1e-9)


@pytest.mark.skipif(INTERPRETED, reason="nothing to do with it")
def test_points_too_close_for_float64_products_go_to_the_kernels(monkeypatch) -> None:
    """Two clusters a millionth apart, and one point far from both."""
    monkeypatch.setattr(
        "isoscope.statistics.fused.replayed", lambda f, *inputs, **options: f(*inputs, **options)
    )
    X = torch.randn(60, 5, generator=torch.Generator().manual_seed(0)) * 1e-6
    X[0] = 1.0
    codes = torch.arange(60) % 2
    codes[0] = 2
    assert _of_few_points(X, as_labels(codes)) is None
    assert _of_few_points(X[1:], as_labels(codes[1:])) is not None


@pytest.mark.skipif(INTERPRETED, reason="nothing to do with it")
def test_fixed_order_is_torchs_for_cuda_only_and_put_back() -> None:
    inside = []
    for deterministic, device in ((True, "cuda"), (False, "cuda"), (True, "cpu")):
        with fixed_order(deterministic, torch.device(device)):
            inside.append(torch.are_deterministic_algorithms_enabled())
        assert not torch.are_deterministic_algorithms_enabled()
    assert inside == [True, False, False]
