from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from isoscope import Neighbors
from isoscope.errors import InputError, ShapeError


def spaces(dtype: type) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    made = {}
    for d in (2, 48):
        centers = rng.normal(size=(6, d))[rng.integers(0, 6, 500)]
        made |= {
            f"d={d} normal": rng.normal(size=(500, d)),
            f"d={d} offset": rng.normal(size=(500, d)) + 1e4,
            f"d={d} collapsed clusters": centers + 1e-5 * rng.normal(size=(500, d)),
            f"d={d} duplicates": rng.normal(size=(150, d))[rng.integers(0, 150, 500)],
            f"d={d} huge": 1e20 * rng.normal(size=(500, d)),
            f"d={d} tiny": 1e-30 * rng.normal(size=(500, d)),
            f"d={d} one tight cluster": np.vstack(
                [1e-4 * rng.normal(size=(250, d)), rng.normal(size=(250, d))]
            ),
            f"d={d} all equal": np.ones((500, d)),
        }
    return {name: X.astype(dtype) for name, X in made.items()}


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-6)])
@pytest.mark.parametrize("name", spaces(np.float64))
def test_equal_brute_force(name: str, dtype: type, tolerance: float) -> None:
    X = spaces(dtype)[name]
    distances = cdist(X.astype(np.float64), X.astype(np.float64))
    np.fill_diagonal(distances, np.inf)
    expected = np.sort(distances, axis=1)[:, :20]
    found = Neighbors.of(X, k=20)
    assert np.abs(found.distances.numpy() - expected).max() <= tolerance * max(expected.max(), 1e-300)
    own = np.arange(500)[:, None]
    assert not (found.indices.numpy() == own).any()
    assert np.allclose(
        distances[own, found.indices.numpy()], expected, rtol=1e-5, atol=tolerance * expected.max()
    )


def test_strips_do_not_matter(rng, monkeypatch) -> None:
    X = rng.normal(size=(300, 40)).astype(np.float32)
    whole = Neighbors.of(X, k=5)
    monkeypatch.setattr("isoscope.statistics.neighbors._STRIP_BYTES", 4 * 300 * 17)
    seen: list[float] = []
    parts = Neighbors.of(X, k=5, progress=seen.append)
    assert (parts.indices == whole.indices).all()
    assert seen[-1] == 1.0


def test_blocks_merge(rng) -> None:
    X, queries = rng.normal(size=(90, 4)), rng.normal(size=(10, 4))
    found = Neighbors.between(queries, X[:3], k=7)
    assert (found.indices[:, 3:] == -1).all()
    found = found.update(queries, X[3:50], offset=3).merge(Neighbors.between(queries, X[50:], k=7, offset=50))
    order = np.argsort(cdist(queries, X), axis=1)[:, :7]
    assert np.array_equal(found.indices, order)
    assert found.nearest(2).k == 2
    assert Neighbors.of(found, k=3).k == 3


def test_errors() -> None:
    with pytest.raises(InputError, match="k is 3; wanted a whole number from 1 to 2"):
        Neighbors.of(np.eye(3), k=3)
    with pytest.raises(ShapeError, match="2 dimensions and X 3"):
        Neighbors.between(np.eye(2), np.eye(3), k=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [8, 40])
@pytest.mark.parametrize("spread", [1e-2, 1e-5, 1e-8, 1e-9])
def test_neighbours_inside_collapsed_clusters_are_the_right_ones(dtype: type, d: int, spread: float) -> None:
    """Relative to each distance, not to the largest: two clusters at distance 1, each far tighter."""
    rng = np.random.default_rng(8)
    X = (np.eye(d)[np.arange(120) % 2] + spread * rng.normal(size=(120, d))).astype(dtype)
    distances = cdist(X.astype(np.float64), X.astype(np.float64))
    np.fill_diagonal(distances, np.inf)
    expected = np.sort(distances, axis=1)[:, :10]
    found = Neighbors.of(X, k=10).distances.numpy()
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-12 * spread)
