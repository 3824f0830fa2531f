from __future__ import annotations

import pytest
import torch

from isoscope.kernels.tiles import Arranged, Tile, _plan, _transposed
from isoscope.labels import as_labels


@pytest.mark.parametrize("counts", [[5], [100], [3, 3, 3], [10, 1, 1, 1, 50, 2], [1] * 40, [0, 4, 0, 30]])
def test_plan_covers_every_row_once(counts: list[int]) -> None:
    tiles = _plan(counts, 8)
    assert [tile.start for tile in tiles] == [0, *[tile.stop for tile in tiles[:-1]]]
    assert tiles[-1].stop == sum(counts)
    assert all(0 < tile.stop - tile.start <= 8 for tile in tiles)
    edges = [sum(counts[:k]) for k in range(len(counts) + 1)]
    for tile in tiles:
        assert edges[tile.first] <= tile.start
        assert tile.stop <= edges[tile.last + 1]


def _kept(rows: Tile, columns: Tile, tile: torch.Tensor) -> torch.Tensor:
    return tile.clone()


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("K", [1, 3, 30])
def test_tiles_are_the_squared_distances(K: int, symmetric: bool) -> None:
    X = torch.randn(60, 40, dtype=torch.float64)
    arranged = Arranged.of(X, as_labels(torch.arange(60) % K), tile_rows=16)
    sorted_points = X[arranged.order]
    exact = torch.cdist(sorted_points, sorted_points, compute_mode="donot_use_mm_for_euclid_dist").square()
    seen = torch.zeros(60, 60)
    for rows, columns, tile in arranged.reduced(_kept, symmetric=symmetric):
        assert torch.allclose(tile * arranged.unit**2, exact[rows.rows, columns.rows], rtol=1e-11, atol=1e-11)
        seen[rows.rows, columns.rows] += 1
    if symmetric:
        seen = torch.maximum(seen, seen.T)
    assert (seen == 1).all()


def test_equal_points_have_distance_zero() -> None:
    arranged = Arranged.of(torch.ones(20, 40))
    assert all((tile == 0).all() for _, _, tile in arranged.reduced(_kept))


def test_narrow_float32_is_taken_in_float64() -> None:
    assert Arranged.of(torch.randn(9, 4)).augmented.dtype == torch.float64
    assert Arranged.of(torch.randn(9, 40)).augmented.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("K", [1, 5, 40])
def test_sums_by_cluster(K: int, dtype: torch.dtype) -> None:
    arranged = Arranged.of(torch.randn(60, 40, dtype=dtype), as_labels(torch.arange(60) % K))
    (tile,) = arranged.tiles
    values = torch.rand(60, 60, dtype=dtype)
    members = torch.nn.functional.one_hot(arranged.codes, K).double()
    across, down = members.T @ values.double().T, members.T @ values.double()
    assert torch.allclose(arranged.sums_across(values, tile).double(), across, rtol=1e-6)
    assert torch.allclose(arranged.sums_down(values, tile).double(), down, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 7), (64, 64), (100, 37), (301, 768)])
def test_transposed(shape: tuple[int, int]) -> None:
    values = torch.randn(shape)
    assert torch.equal(_transposed(values), values.T)
    assert torch.equal(_transposed(values.double()), values.double().T)


def test_a_cluster_has_its_own_centre_where_it_is_narrow_for_its_place() -> None:
    y = torch.arange(64) // 32
    points = torch.randn(64, 40)
    wide = Arranged.of(points + 0.1 * y[:, None], as_labels(y), tile_rows=16)
    narrow = Arranged.of(points + 100 * y[:, None], as_labels(y), tile_rows=16)
    assert set(wide.center_of) == {0}
    assert set(narrow.center_of) == {1, 2}
    assert narrow.augmented[:, -1].max() < wide.augmented[:, -1].max()  # in units of all points


def test_no_core_is_lost() -> None:
    before = torch.get_num_threads()
    Arranged.of(torch.randn(60, 40))
    assert torch.get_num_threads() == before
