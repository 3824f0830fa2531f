from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from tests.raising import raises

from isoscope.errors import InputError, ShapeError, UndefinedError
from isoscope.statistics import Neighbors
from isoscope.statistics.equal_rows import first_equal_rows


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
            f"d={d} one far out": np.vstack([rng.normal(size=(499, d)), np.full((1, d), 1e9)]),
            f"d={d} lengths from 1e-6 to 1e6": rng.normal(size=(500, d))
            * 10.0 ** rng.uniform(-6, 6, size=(500, 1)),
            f"d={d} on a lattice": rng.integers(0, 3, size=(500, d)),
            f"d={d} one-hot": np.eye(max(d, 48))[np.arange(500) % max(d, 48), :],
            f"d={d} more copies than k": rng.normal(size=(10, d))[rng.integers(0, 10, 500)],
            f"d={d} sorted line": np.outer(np.arange(500) ** 2, np.ones(d)),
        }
    return {name: X.astype(dtype) for name, X in made.items()}


@pytest.mark.parametrize(
    ("dtype", "tolerance", "coarse"),
    [(np.float64, 1e-9, False), (np.float32, 1e-6, False), (np.float32, 1e-6, True)],
)
@pytest.mark.parametrize("name", spaces(np.float64))
def test_equal_brute_force(name: str, dtype: type, tolerance: float, coarse: bool, monkeypatch) -> None:
    monkeypatch.setattr("isoscope.kernels.nearest._has_tensor_cores", lambda points: coarse)
    X = spaces(dtype)[name]
    distances = cdist(X.astype(np.float64), X.astype(np.float64))
    np.fill_diagonal(distances, np.inf)
    expected = np.sort(distances, axis=1)[:, :20]
    found = Neighbors.of(X, k=20)
    if name == "d=48 sorted line" and dtype == np.float32:
        tolerance = 2e-5  # all coordinates are equal, so their rounding adds up
    assert np.abs(found.distances.numpy() - expected).max() <= tolerance * max(expected.max(), 1e-300)
    own = np.arange(500)[:, None]
    assert not (found.indices.numpy() == own).any()
    assert np.allclose(
        distances[own, found.indices.numpy()], expected, rtol=1e-5, atol=tolerance * expected.max()
    )


def test_strips_do_not_matter(rng, monkeypatch) -> None:
    X = rng.normal(size=(300, 40)).astype(np.float32)
    whole = Neighbors.of(X, k=5)
    monkeypatch.setattr("isoscope.kernels.nearest.STRIP_BYTES", 4 * 300 * 17)
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
    with raises(InputError, argument="k", got=3, wanted="a whole number from 1 to 2"):
        Neighbors.of(np.eye(3), k=3)
    with raises(ShapeError, argument="queries", message="2 dimensions", wanted="3"):
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_scikit_learn(rng, dtype: type) -> None:
    from sklearn.neighbors import NearestNeighbors

    X = (rng.normal(size=(700, 60)) + 3).astype(dtype)
    distances, indices = NearestNeighbors(n_neighbors=40, algorithm="brute").fit(X).kneighbors()
    found = Neighbors.of(X, k=40)
    assert np.allclose(found.distances, distances, rtol=1e-9 if dtype == np.float64 else 1e-5, atol=0)
    assert (found.indices.numpy() == indices).mean() > 0.999  # float32 may swap two


@pytest.mark.parametrize("n", [2, 3, 10, 60])
@pytest.mark.parametrize("d", [1, 40])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_all_others_are_neighbours_for_the_largest_k(rng, n: int, d: int, metric: str) -> None:
    found = Neighbors.of(rng.normal(size=(n, d)), k=n - 1, metric=metric)
    everyone = np.arange(n)
    for i, indices in enumerate(found.indices.tolist()):
        assert sorted(indices) == [j for j in everyone if j != i]
    assert (found.distances.diff(dim=1) >= 0).all()


@pytest.mark.parametrize("d", [8, 80])
def test_half_precision_is_searched_as_stored(rng, d: int) -> None:
    X = torch.from_numpy(rng.normal(size=(200, d))).to(torch.bfloat16)
    whole, stored = Neighbors.of(X.double(), k=9), Neighbors.of(X, k=9)
    assert torch.allclose(stored.distances, whole.distances, rtol=1e-5)


def test_neither_input_nor_settings_are_changed(rng) -> None:
    X = torch.from_numpy(rng.normal(size=(100, 50))).float().requires_grad_()
    before = X.detach().clone()
    found = Neighbors.of(X, k=5)
    assert torch.equal(X.detach(), before)
    assert not found.distances.requires_grad
    assert not Neighbors.between(X, X, k=5).distances.requires_grad


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 2e-6)])
@pytest.mark.parametrize("d", [3, 60])
def test_cosine_equals_brute_force(rng, d: int, dtype: type, tolerance: float) -> None:
    X = (rng.normal(size=(400, d)) * 10.0 ** rng.uniform(-15, 15, size=(400, 1)) + 0.1).astype(dtype)
    expected = cdist(X.astype(np.float64), X.astype(np.float64), "cosine")
    np.fill_diagonal(expected, np.inf)
    found = Neighbors.of(X, k=15, metric="cosine")
    assert found.metric == "cosine"
    assert np.abs(found.distances.numpy() - np.sort(expected, axis=1)[:, :15]).max() < tolerance
    taken = np.take_along_axis(expected, found.indices.numpy(), axis=1)
    assert np.abs(taken - found.distances.numpy()).max() < tolerance


def test_cosine_looks_at_directions_only(rng) -> None:
    rays = rng.normal(size=(40, 50)).astype(np.float32)
    found = Neighbors.of(np.vstack([rays, 3 * rays]), k=1, metric="cosine")
    assert np.array_equal(found.indices.flatten(), np.r_[np.arange(40) + 40, np.arange(40)])
    assert (found.distances < 1e-13).all()


def test_cosine_blocks_merge(rng) -> None:
    X, queries = rng.normal(size=(90, 4)), rng.normal(size=(10, 4))
    found = Neighbors.between(queries, X[:30], k=7, metric="cosine").update(queries, X[30:], offset=30)
    assert np.array_equal(found.indices, np.argsort(cdist(queries, X, "cosine"), axis=1)[:, :7])
    assert found.nearest(2).metric == found.metric == "cosine"


def test_cosine_errors(rng) -> None:
    X = rng.normal(size=(20, 4))
    with_zero = np.vstack([X, np.zeros((1, 4))])
    with pytest.raises(UndefinedError, match="row 20 of X is zero and has no direction"):
        Neighbors.of(with_zero, k=2, metric="cosine")
    with pytest.raises(UndefinedError, match="row 20 of queries is zero"):
        Neighbors.between(with_zero, X, k=2, metric="cosine")
    with raises(InputError, argument="metric", got="cityblock", wanted="one of euclidean, cosine"):
        Neighbors.of(X, k=2, metric="cityblock")
    with raises(InputError, argument="metric", got="cityblock"):
        Neighbors.between(X, X, k=2, metric="cityblock")
    cosine = Neighbors.of(X, k=3, metric="cosine")
    assert Neighbors.of(cosine, k=2).metric == "cosine"
    with pytest.raises(InputError, match="`metric` is 'euclidean', but these Neighbors are cosine"):
        Neighbors.of(cosine, k=2, metric="euclidean")
    with pytest.raises(InputError, match="`metric` is 'cosine', but these Neighbors are euclidean"):
        cosine.merge(Neighbors.of(X, k=3))


def test_inside_inference_mode() -> None:
    X = torch.randn(300, 40)
    with torch.inference_mode():
        inside = Neighbors.of(X, k=3)
    assert torch.equal(inside.indices, Neighbors.of(X, k=3).indices)


@pytest.mark.parametrize("d", [1, 6])
@pytest.mark.parametrize("k", [1, 7, 30])
def test_neighbours_of_copies_follow_from_those_of_different_rows(d: int, k: int) -> None:
    rng = np.random.default_rng(k)
    X = rng.normal(size=(40, d))[rng.integers(0, 40, 90)]
    X[[3, 50]] = 0
    points = torch.from_numpy(X)
    found = Neighbors.of_distinct(X, k=k, at_most=True).with_copies(points, k)
    expected = Neighbors.of_nonzero(X, k=k)
    assert np.allclose(found.distances, expected.distances, equal_nan=True)
    assert torch.equal(found.has_any, expected.has_any)
    rows = found.has_any.nonzero().flatten()
    near = found.indices[rows]
    assert torch.allclose((points[near] - points[rows][:, None]).norm(dim=2), found.distances[rows])
    assert all(
        len({*some}) == k and row not in some for row, some in zip(rows.tolist(), near.tolist(), strict=True)
    )
    n_equal = sum(torch.equal(a, b) for a, b in zip(found.indices, expected.indices, strict=True))
    assert n_equal > 80 or d == 1  # ties go to the earlier point, but between different points


def test_spaces_without_different_rows_are_searched_as_a_whole() -> None:
    for X in (np.ones((4, 2)), np.zeros((4, 2)), np.array([[1.0], [1.0], [0.0]])):
        distinct = Neighbors.of_distinct(X, k=9, at_most=True)
        assert (len(distinct.indices), distinct.k) == (len(X), len(X) - 1)
        found = distinct.with_copies(torch.from_numpy(X), 1)
        assert torch.equal(found.indices, Neighbors.of_nonzero(X, k=1).indices)


def test_rows_with_the_same_fingerprint_are_compared(monkeypatch) -> None:
    X = torch.tensor([[1.0], [2.0], [1.0], [3.0]])
    monkeypatch.setattr("isoscope.statistics.equal_rows.fingerprints", lambda rows: torch.ones(len(rows)))
    assert first_equal_rows(X).tolist() == [0, 1, 0, 3]
    assert first_equal_rows(torch.tensor([[0.0], [-0.0]])).tolist() == [0, 0]
