from __future__ import annotations

import pytest
import torch

from isoscope.kernels.tile_plan import Tile, by_size, planned
from isoscope.kernels.tiles import Arranged
from isoscope.labels import as_labels


@pytest.mark.parametrize("counts", [[5], [100], [3, 3, 3], [10, 1, 1, 1, 50, 2], [1] * 40, [0, 4, 0, 30]])
def test_plan_covers_every_row_once(counts: list[int]) -> None:
    sizes = [counts[cluster] for cluster in by_size(counts, 8)]
    assert sorted(sizes) == sorted(count for count in counts if count)
    tiles = planned(sizes, 8)
    assert [tile.start for tile in tiles] == [0, *[tile.stop for tile in tiles[:-1]]]
    assert tiles[-1].stop == sum(counts)
    assert all(0 < tile.stop - tile.start <= 8 for tile in tiles)
    edges = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
    for tile in tiles:
        assert edges[tile.first] <= tile.start
        assert tile.stop <= edges[tile.last + 1]


@pytest.mark.parametrize("sizes", [[8], [3, 2], [5] * 3, [2] * 20, [9, 4, 4, *[1] * 30], [*range(20, 0, -1)]])
def test_bands_cover_every_row_of_a_tile_once(sizes: list[int]) -> None:
    (tile,) = planned(sizes, 1000)
    of_row = [-1] * sum(sizes)
    for band in tile.bands:
        clusters = [*range(band.clusters.start, band.clusters.stop)] * band.n_members
        assert all(of_row[row] == -1 for row in range(band.rows.start, band.rows.stop))
        of_row[band.rows] = clusters
    assert [of_row.count(cluster) for cluster in range(len(sizes))] == sizes


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("K", [1, 3, 40])
def test_tiles_of_two_arrangements_are_the_squared_distances_between_them(K: int, dtype: torch.dtype) -> None:
    A, B = torch.randn(60, 40).to(dtype), 3 + 5 * torch.randn(50, 40).to(dtype)
    a = Arranged.of(A, as_labels(torch.arange(60) % K), tile_rows=16)
    b = Arranged.of(B, as_labels(torch.arange(50) % K), tile_rows=16)
    assert a.unit != b.unit
    assert a.fits(b)
    exact = torch.cdist(A[a.order].double(), B[b.order].double(), compute_mode="donot_use_mm_for_euclid_dist")
    seen = torch.zeros(60, 50)
    for rows, columns, tile in a.reduced_with(b, _kept):
        distances = tile.double().sqrt() * b.unit
        assert torch.allclose(distances, exact[rows.rows, columns.rows], rtol=1e-5)
        seen[rows.rows, columns.rows] += 1
    assert (seen == 1).all()


def test_arrangements_that_cannot_be_held_together_do_not_fit() -> None:
    X = torch.randn(60, 40)
    here = Arranged.of(X)
    assert here.fits(Arranged.of(X + 1))
    assert not here.fits(Arranged.of(X.double()))
    assert not here.fits(Arranged.of(1e-6 * X))
    assert not Arranged.of(1e-6 * X).fits(here)
    assert not here.fits(Arranged.of(X + 1e18))


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
