from __future__ import annotations

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import InputError
from isoscope.metrics import silhouette_estimate as module


def spaces() -> dict[str, tuple[np.ndarray, np.ndarray, float]]:
    """Spaces with the tolerance to reach on each; some are built to break the method."""
    rng = np.random.default_rng(0)
    y2, y5, y4 = rng.integers(0, 2, 4000), rng.integers(0, 5, 3000), rng.integers(0, 4, 3000)
    tiny = np.concatenate([rng.integers(0, 3, 2900), np.repeat(np.arange(3, 53), 2)])
    y8, many = rng.integers(0, 8, 3000), rng.integers(0, 300, 4000)
    return {
        "two weak clusters": (rng.normal(size=(4000, 96)) + 0.3 * np.eye(96)[y2], y2, 2e-4),
        "blobs in the plane": (rng.normal(size=(3000, 2)) + 4 * rng.normal(size=(5, 2))[y5], y5, 5e-3),
        "heavy tails": (rng.standard_t(2, size=(3000, 10)) + np.eye(10)[y4], y4, 5e-3),
        "tiny clusters": (rng.normal(size=(3000, 20)) + 2 * np.eye(60)[tiny][:, :20], tiny, 3e-3),
        "duplicates": (rng.normal(size=(500, 16))[rng.integers(0, 500, 3000)], y8, 2e-3),
        "many clusters": (rng.normal(size=(4000, 24)) + 1.5 * rng.normal(size=(300, 24))[many], many, 2e-3),
        "collapsed": (np.eye(40)[y4] + 1e-5 * rng.normal(size=(3000, 40)), y4, 1e-6),
    }


@pytest.mark.parametrize("name", spaces())
def test_interval_is_narrow_enough_and_holds_the_exact_value(name: str) -> None:
    X, y, tolerance = spaces()[name]
    X = X.astype(np.float32)
    exact = iso.silhouette_score(X, y)
    n_seeds, held, methods = 120, 0, set()
    for seed in range(n_seeds):
        found = iso.estimate_silhouette(X, y, tolerance=tolerance, seed=seed)
        low, high = found.interval
        assert (high - low) / 2 <= tolerance
        held += low <= exact <= high
        methods.add(found.method)
    # 95 % nominal; 120 seeds tell it to about ± 2 %
    assert held >= 0.88 * n_seeds
    assert methods <= {"control variate", "anchors", "exact"}
    assert methods != {"exact"}


def test_the_proxy_pays(monkeypatch) -> None:
    """Regression on the proxies narrows the interval many times over plain anchors."""
    X, y, _ = spaces()["two weak clusters"]
    with_proxy = iso.estimate_silhouette(X, y, tolerance=1.0)
    nothing = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(len(y), 2)  # a constant, no proxy
    monkeypatch.setattr(module, "_features", lambda proxies, clusters: nothing)
    plain = iso.estimate_silhouette(X, y, tolerance=1.0)
    assert plain.method == "anchors"
    assert with_proxy.method == "control variate"
    assert with_proxy.standard_error < 0.2 * plain.standard_error


def test_seed_decides_the_anchors() -> None:
    X, y, tolerance = spaces()["blobs in the plane"]
    a, b, c = (iso.silhouette_score(X, y, tolerance=tolerance, seed=seed) for seed in (1, 1, 2))
    assert a == b
    assert a.value != c.value
    assert float(a) == a.value


def test_small_or_demanding_cases_are_exact() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(1500, 3)), np.arange(1500) % 3
    for points, labels, tolerance in ((X[:500], y[:500], 0.1), (X, y, 1e-9)):
        found = iso.estimate_silhouette(points, labels, tolerance=tolerance)
        assert found.method == "exact"
        assert found.standard_error == 0
        assert found.value == pytest.approx(iso.silhouette_score(points, labels), abs=1e-12)


def test_an_offset_does_not_matter() -> None:
    X, y, tolerance = spaces()["two weak clusters"]
    moved = (X + 1e4).astype(np.float32)
    exact = iso.silhouette_score(moved, y)
    assert float(iso.estimate_silhouette(moved, y, tolerance=tolerance)) == pytest.approx(
        exact, abs=2 * tolerance
    )


def test_bad_input() -> None:
    X, y = np.eye(4), [0, 0, 1, 1]
    with pytest.raises(InputError, match="tolerance is 0"):
        iso.silhouette_score(X, y, tolerance=0)
    with pytest.raises(InputError, match="tolerance goes with"):
        iso.silhouette_score(X, y, tolerance=0.1, metric="cosine")
    with pytest.raises(InputError, match="tolerance goes with"):
        iso.silhouette_score(X, y, tolerance=0.1, average="macro")
    with pytest.raises(InputError, match="seed is -1"):
        iso.silhouette_score(X, y, tolerance=0.1, seed=-1)
