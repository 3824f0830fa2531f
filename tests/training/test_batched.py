from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_score

import isoscope as iso
from isoscope.labels import as_labels
from isoscope.training import batched
from isoscope.training.batched import isoscores, mean_silhouettes


@pytest.mark.parametrize(("n", "d"), [(200, 12), (10, 30)])
@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_isoscores_equal_those_of_each_space(rng, n: int, d: int, offset: float) -> None:
    X = rng.normal(size=(3, n, d)) * np.linspace(1, 3, d) * np.array([1, 10, 0.1])[:, None, None] + offset
    expected = [iso.isoscore(own) for own in X]
    np.testing.assert_allclose(isoscores(torch.from_numpy(X)).numpy(), expected, rtol=1e-10)
    narrow = X.astype(np.float32)
    expected = [iso.isoscore(own.astype(np.float64)) for own in narrow]
    np.testing.assert_allclose(isoscores(torch.from_numpy(narrow)).numpy(), expected, rtol=2e-5)


@pytest.mark.parametrize("part", [1024, 4])
def test_isoscores_in_chunks_and_parts(rng, monkeypatch, part: int) -> None:
    X = torch.from_numpy(rng.normal(size=(2, 101, 7)) + 5)
    whole = isoscores(X)
    monkeypatch.setattr(batched, "_CHUNK_NUMBERS", 2 * 7 * 10)
    monkeypatch.setattr(batched, "_PART_ROWS", part)
    torch.use_deterministic_algorithms(True, warn_only=True)  # fresh memory is filled with NaN
    try:
        torch.testing.assert_close(isoscores(X), whole, rtol=1e-12, atol=0)
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_mean_that_float32_cannot_hold(rng) -> None:
    X = (rng.normal(size=(1, 5000, 6)) * [3, 2, 1, 1, 1, 1] + 1e6).astype(np.float32)
    expected = iso.isoscore(X[0].astype(np.float64))
    assert isoscores(torch.from_numpy(X)).item() == pytest.approx(expected, rel=5e-6)


def test_equal_points_have_no_isoscore() -> None:
    X = torch.stack([torch.ones(9, 3), torch.eye(3).repeat(3, 1)])
    first, second = isoscores(X).tolist()
    assert first != first
    assert second == pytest.approx(iso.isoscore(torch.eye(3).repeat(3, 1)))


def test_silhouettes_equal_scikit_learn(rng) -> None:
    X = rng.normal(size=(3, 60, 5))
    codes = np.r_[np.arange(59) % 4, 4]  # the last point is alone in its cluster
    labels = as_labels(codes)
    expected = [silhouette_score(own, codes) for own in X]
    np.testing.assert_allclose(mean_silhouettes(torch.from_numpy(X), labels).numpy(), expected, atol=1e-12)


def fields(points: torch.Tensor, clusters: iso.Labels) -> tuple[torch.Tensor, ...]:
    """Cohesion, separation and nearest cluster, as the kernels give them: one call for all spaces."""
    parts = [iso.statistics.Separation.of(own, clusters) for own in points]
    return tuple(
        torch.stack([getattr(part, name) for part in parts]) for name in ("cohesion", "separation", "nearest")
    )


def test_no_value_is_looked_at(monkeypatch) -> None:
    """Tensors without values stand in for a device: asking for one would wait for it, and fails here."""
    labels = as_labels(np.arange(50) % 3)
    hollow = iso.Labels(labels.codes.to("meta"), labels.names)
    vars(hollow).update(counts=labels.counts.to("meta"), sizes=labels.sizes)
    empty = torch.empty(4, 50, device="meta", dtype=torch.float64)
    monkeypatch.setattr(batched, "fused_separation", lambda *_: (empty, empty, empty))
    found = mean_silhouettes(torch.empty(4, 50, 3, device="meta"), hollow)
    assert (found.shape, found.dtype) == ((4,), torch.float64)


def test_the_path_of_the_device_gives_the_same(rng, monkeypatch) -> None:
    X = torch.from_numpy(rng.normal(size=(2, 50, 4)))
    labels = as_labels(np.arange(50) % 3)
    plain = mean_silhouettes(X, labels)
    monkeypatch.setattr(batched, "fused_separation", fields)
    torch.testing.assert_close(mean_silhouettes(X, labels), plain, rtol=1e-12, atol=0)
