"""Silhouettes over the CUDA kernels, run on the CPU by Triton's interpreter; and what surrounds them."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

import isoscope as iso
from isoscope.labels import as_labels
from isoscope.statistics.fused import can_fuse, fixed_order, fused_sums

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
HAS_TRITON = find_spec("triton") is not None
interpreted = pytest.mark.skipif(not (INTERPRETED and HAS_TRITON), reason="run by test_under_the_interpreter")


@pytest.mark.skipif(INTERPRETED or not HAS_TRITON, reason="wants Triton, outside its interpreter")
def test_under_the_interpreter(interpret) -> None:
    assert "4 passed" in interpret(__file__)


@pytest.fixture
def on_kernels(monkeypatch) -> list[tuple[torch.Size, bool]]:
    """Send points on the CPU to the kernels, without recordings; what each call asked for."""
    from isoscope.kernels.triton_clusters import cluster_sums

    asked = []

    def plain(X, plan, *, deterministic):
        asked.append((X.shape, deterministic))
        return cluster_sums(X, plan.codes, plan.n_clusters, plan=plan, deterministic=deterministic)

    monkeypatch.setattr("isoscope.statistics.fused.can_fuse", lambda X, _: X.dtype == torch.float32)
    monkeypatch.setattr("isoscope.kernels.recorded.recorded_sums", plain)
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
    iso.silhouette_by_cluster(X[0], labels, deterministic=True)
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
    monkeypatch.setattr("isoscope.kernels.recorded.recorded_sums", full)
    assert fused_sums(X[0], as_labels(labels)) is None
    assert torch.allclose(iso.silhouette_samples(X, labels), expected, rtol=0, atol=1e-6)


@pytest.mark.skipif(INTERPRETED, reason="nothing to do with it")
def test_the_cpu_has_tiles() -> None:
    X, labels = five_seeds()
    assert not can_fuse(X, as_labels(labels))
    assert fused_sums(X, as_labels(labels)) is None


@pytest.mark.skipif(INTERPRETED, reason="nothing to do with it")
def test_fixed_order_is_torchs_for_cuda_only_and_put_back() -> None:
    inside = []
    for deterministic, device in ((True, "cuda"), (False, "cuda"), (True, "cpu")):
        with fixed_order(deterministic, torch.device(device)):
            inside.append(torch.are_deterministic_algorithms_enabled())
        assert not torch.are_deterministic_algorithms_enabled()
    assert inside == [True, False, False]
