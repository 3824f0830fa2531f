"""The ladder of precisions: what each level promises, and that rows it cannot settle reach the next."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from isoscope.kernels import nearest
from isoscope.kernels.nearest import Level, Search


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with the tensor cores' level, whose rounding is the same on the CPU."""
    monkeypatch.setattr(nearest, "_has_tensor_cores", lambda points: True)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Which levels ran, and on how many rows."""
    seen: list[tuple[str, int]] = []
    run, direct = Search._run, Search._direct

    def counted_run(self: Search, level: Level, places: torch.Tensor, *rest: object) -> torch.Tensor:
        name = "coarse" if level.coarse else str(level.columns.dtype).removeprefix("torch.")
        seen.append((name, len(places)))
        return run(self, level, places, *rest)  # type: ignore[arg-type]

    def counted_direct(self: Search, places: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(("direct", len(places)))
        return direct(self, places, k)

    monkeypatch.setattr(Search, "_run", counted_run)
    monkeypatch.setattr(Search, "_direct", counted_direct)
    return seen


def search(X: np.ndarray, k: int) -> np.ndarray:
    points = torch.from_numpy(X)
    dtype = torch.float64 if X.dtype == np.float64 else torch.float32
    return Search.of(points, points, excludes_self=True, dtype=dtype).nearest(k)[0].numpy()


def brute_force(X: np.ndarray, k: int) -> np.ndarray:
    distances = cdist(X.astype(np.float64), X.astype(np.float64))
    np.fill_diagonal(distances, np.inf)
    return np.sort(distances, axis=1)[:, :k]


def two_clusters(spread: float, n: int = 600, d: int = 64) -> np.ndarray:
    rng = np.random.default_rng(5)
    centers = np.sign(rng.normal(size=(1, d))) * np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] / np.sqrt(d)
    return (centers + spread * rng.normal(size=(n, d)) / np.sqrt(d)).astype(np.float32)


def test_rounding_keeps_ten_bits() -> None:
    rows = torch.randn(50, 40) * 10.0 ** torch.randint(-20, 20, (50, 1))
    rounded = nearest._rounded(rows)
    assert ((rounded.view(torch.int32) & 0x1FFF) == 0).all()
    assert ((rounded - rows).abs() <= 2.0**-11 * rows.abs()).all()
    assert (rounded != rows).any()


@pytest.mark.parametrize("first", ["coarse", "float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_products_err_within_their_bound(first: str, offset: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "_has_tensor_cores", lambda points: first == "coarse")
    rng = np.random.default_rng(6)
    X = (rng.normal(size=(200, 64)) * 10 ** rng.uniform(-2, 2, size=(200, 1)) + offset).astype(np.float32)
    points = torch.from_numpy(X)
    found = Search.of(
        points, points, excludes_self=True, dtype=torch.float64 if first == "float64" else torch.float32
    )
    level = next(found._levels())
    rows = found._placed(points, level.columns.dtype)
    own = rows.double().square().sum(dim=1)
    squared = level.products(rows, torch.empty(200, 200, dtype=rows.dtype)).double() + own[:, None]
    exact = torch.from_numpy(cdist(X.astype(np.float64), X.astype(np.float64))) / found.unit
    error = (squared - exact.square()).abs()
    bound = level.error(own.sqrt()[:, None], own.sqrt()[None, :])
    assert (error <= bound).all()
    assert error.max() > 1e-4 * bound.max()  # not a bound that nothing could break
    assert level.coarse == (first == "coarse")


@pytest.mark.parametrize("spread", [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6])
def test_each_distance_is_right_relative_to_itself(spread: float, coarse: None) -> None:
    X = two_clusters(spread)
    assert np.allclose(search(X, 12), brute_force(X, 12), rtol=2e-6, atol=0)


def test_what_is_too_fine_for_a_level_reaches_the_next(
    coarse: None, runs: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "_STRIP_ROWS", 400)
    search(np.random.default_rng(0).normal(size=(600, 64)).astype(np.float32), 12)
    assert runs == [("coarse", 600)]
    runs.clear()
    search(two_clusters(1e-2), 12)
    assert [name for name, _ in runs][:2] == ["coarse", "float32"]
    runs.clear()
    search(two_clusters(1e-4), 12)
    assert [name for name, _ in runs] == ["coarse", "float32", "float64"]
    runs.clear()
    X = two_clusters(0.0).astype(np.float64)
    X += 1e-9 * np.random.default_rng(1).normal(size=X.shape)
    search(X, 12)
    assert [name for name, _ in runs] == ["float64", "direct", "direct"]  # two strips of it


def test_a_far_outlier_does_not_unsettle_the_rest(coarse: None, runs: list[tuple[str, int]]) -> None:
    X = np.random.default_rng(0).normal(size=(600, 64)).astype(np.float32)
    X[7] *= 1e5
    X[8] = -X[7]  # so that the mean stays where it is
    assert np.allclose(search(X, 12), brute_force(X, 12), rtol=2e-6, atol=0)
    assert runs[0] == ("coarse", 600)
    assert all(n_rows <= 2 for _, n_rows in runs[1:])


def test_copies_are_never_searched_by_difference(coarse: None, runs: list[tuple[str, int]]) -> None:
    X = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)[np.arange(600) % 5]
    assert (search(X, 12) == 0).all()
    assert "direct" not in dict(runs)


def test_strips_stay_within_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = []

    def seen(strip: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        shapes.append(strip.nbytes)
        return strip.topk(k, dim=1, largest=False)

    monkeypatch.setattr(nearest, "smallest", seen)
    monkeypatch.setattr(nearest, "STRIP_BYTES", 4 * 600 * 50)
    search(two_clusters(1.0), 3)
    assert sum(shapes) == 4 * 600 * 600
    assert min(torch.get_num_threads(), 2) * max(shapes) <= 4 * 600 * 50


def test_of_the_equally_near_the_first_come_first() -> None:
    points = torch.tensor([[0.0], [1.0], [-1.0], [1.0], [-1.0], [1.0], [2.0]])
    for k in range(1, 6):
        _, indices = Search.of(points, points, excludes_self=True, dtype=torch.float64).nearest(k)
        assert indices[0].tolist() == [1, 2, 3, 4, 5][:k]


@pytest.mark.parametrize("setting", [True, False])
def test_settings_of_the_caller_are_left_alone(coarse: None, setting: bool) -> None:
    held, n_threads = torch.backends.cuda.matmul.allow_tf32, torch.get_num_threads()
    torch.backends.cuda.matmul.allow_tf32 = setting
    try:
        search(two_clusters(1e-3, n=900), 5)
        assert torch.backends.cuda.matmul.allow_tf32 is setting
        assert torch.get_num_threads() == n_threads
    finally:
        torch.backends.cuda.matmul.allow_tf32 = held
