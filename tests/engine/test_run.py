"""In memory, part by part, and on Dask's workers: the same numbers, whatever the shards."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.raising import raises

import isoscope as iso
from isoscope.arrays import block_rows
from isoscope.engine.options import Scale
from isoscope.engine.run import gather
from isoscope.engine.source import Wrapped
from isoscope.errors import FileError, InputError, ShapeError
from isoscope.kernels.tiles import Arranged
from isoscope.metrics.registry import KNOWN
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics

N, D, K = 90, 5, 3
TOLD = {"labels", "token_types", "sentences"}
PAIRS = {"silhouette", "silhouette_macro"}
# metrics that claim to stream, and those on exact pairs
METRICS = [
    metric
    for metric in iso.registered().values()
    if not metric.needs & {"vectors", "distinct_neighbors", "partners"}
    and (metric.streams or metric.name in PAIRS)
]


def make_space(seed: int, dtype: type = np.float64) -> Space:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, N)
    labels[:K] = np.arange(K)
    means = 6 * np.eye(K, D)  # far enough apart for metrics that are undefined where means differ by chance
    X = rng.normal(size=(N, D)) * np.linspace(0.5, 2, D) + means[labels] + 0.7
    return Space(
        X.astype(dtype),
        labels=labels,
        token_types=rng.permutation(np.arange(N) % 8),
        sentences=np.arange(N) // 5,
    )


class Cut(Wrapped):
    """A space cut into parts, as shards are."""

    def __init__(self, space: Space, cuts: list[int]) -> None:
        super().__init__(space)
        edges = [0, *sorted(cuts), len(space)]
        self._parts = [
            Piece(f"part {i}", space.rows(a, b)) for i, (a, b) in enumerate(itertools.pairwise(edges))
        ]

    def parts(self, n_rows: int) -> list[Any]:
        return self._parts


class Piece(Wrapped):
    title = ""

    def __init__(self, title: str, space: Space) -> None:
        super().__init__(space)
        self.title = title

    def blocks(self, n_rows: int | None = None) -> Any:
        return self.source.blocks(min(n_rows or 7, 7))  # small blocks, so that parts have several


def values(shelf: Statistics) -> dict[str, float]:
    return {metric.name: float(metric.compute(shelf)) for metric in METRICS}


def needs() -> set[str]:
    return set().union(*(metric.needs for metric in METRICS)) - set(KNOWN)


def close(found: dict[str, float], expected: dict[str, float], moments: float = 1e-10) -> None:
    assert set(found) == {metric.name for metric in METRICS} >= PAIRS
    for name, value in expected.items():
        tolerance = 1e-7 if name in PAIRS else moments
        assert found[name] == pytest.approx(value, rel=tolerance, abs=tolerance), name


cuts = st.lists(st.integers(1, N - 1), unique=True, max_size=7)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**20), cuts=cuts)
def test_parts_are_the_whole(seed: int, cuts: list[int]) -> None:
    space, covariance = make_space(seed), np.diag(np.arange(1.0, D + 1))
    shelf = gather(Cut(space, cuts), needs(), scale=Scale(), covariance=covariance)
    close(values(shelf), values(Statistics(space, covariance=covariance)))


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**20), cuts=cuts)
def test_workers_are_one_process(client: Any, monkeypatch: Any, seed: int, cuts: list[int]) -> None:
    space, covariance = make_space(seed), np.diag(np.arange(1.0, D + 1))
    source = Cut(space, cuts)
    source.client = client
    shelf = gather(source, needs(), scale=Scale(), covariance=covariance)
    close(values(shelf), values(Statistics(space, covariance=covariance)))
    del source.client
    here = gather(source, needs(), scale=Scale(), covariance=covariance)
    for name, value in values(
        here
    ).items():  # the same merges in the same order: the same bits, one thread each
        assert values(shelf)[name] == pytest.approx(value, rel=1e-14), name


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
def test_narrow_types_are_lifted_once(dtype: type) -> None:
    space, covariance = make_space(5, dtype), np.eye(D)
    shelf = gather(Cut(space, [20, 50]), needs(), scale=Scale(), covariance=covariance)
    # products of float32 rows are rounded by block, so other blocks differ by that
    close(values(shelf), values(Statistics(space, covariance=covariance)), moments=1e-6)


def test_measure_of_shards(shards: Path, vectors: np.ndarray, labels: np.ndarray, tmp_path: Path) -> None:
    expected = iso.measure(vectors, labels=labels)
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    for options in ({}, {"checkpoint": tmp_path / "kept"}, {"memory": "4GB", "skip_bad": True}):
        found = iso.measure(source, **options)
        for name in set(found) & set(expected):
            assert found[name] == pytest.approx(expected[name], rel=1e-7), name
        assert {"isoscore", "silhouette", "davies_bouldin"} <= set(found)
        errors = [{r.name: r.standard_error for r in m.readings} for m in (found, expected)]
        assert errors[0]["silhouette"] == pytest.approx(errors[1]["silhouette"], rel=1e-6)
        assert errors[0]["isoscore"] == pytest.approx(errors[1]["isoscore"], rel=1e-9)
    assert any("needs all vectors in memory at once" in note for note in found.notes)
    with pytest.raises(InputError, match="twonn needs all vectors in memory at once"):
        iso.measure(source, metrics="twonn", skip_bad=True)


def test_strips_smaller_than_parts(vectors: np.ndarray, labels: np.ndarray, monkeypatch: Any) -> None:
    from isoscope.engine import strips

    monkeypatch.setattr(strips, "STRIP_ROWS", 13)
    space = Space(vectors, labels=labels)
    source = Cut(space, [17, 100, 101])
    shelf = gather(source, {"separation", "moments"}, scale=Scale())
    np.testing.assert_allclose(shelf.separation.cohesion, Statistics(space).separation.cohesion, rtol=1e-12)
    assert iso.silhouette_score(shelf.separation) == pytest.approx(
        iso.silhouette_score(vectors, labels), rel=1e-12
    )


@pytest.mark.parametrize("once", [True, False], ids=["each pair once", "from either side"])
@pytest.mark.parametrize("n_labels", [2, 9, 40])
def test_tiles_smaller_than_strips(vectors: np.ndarray, monkeypatch: Any, n_labels: int, once: bool) -> None:
    """Rows of a strip and of a block are cut into tiles, whose last ones are shorter."""
    from isoscope.engine import strips
    from isoscope.kernels import tiles

    monkeypatch.setattr(tiles, "TILE_ROWS", 16)
    monkeypatch.setattr(Scale, "rows_of_block", lambda *_: 33)
    monkeypatch.setattr(strips, "STRIP_ROWS", 45)
    monkeypatch.setattr(strips, "SUMS_BYTES", 2**20 if once else 0)
    space = Space(vectors, labels=np.arange(len(vectors)) % n_labels)
    source = Cut(space, [17, 100, 101])
    found = gather(source, {"separation", "moments"}, scale=Scale()).separation
    expected = Statistics(space).separation
    np.testing.assert_allclose(found.cohesion, expected.cohesion, rtol=1e-12)
    np.testing.assert_allclose(found.separation, expected.separation, rtol=1e-12)
    np.testing.assert_array_equal(found.nearest, expected.nearest)


@pytest.mark.parametrize("sums_bytes", [2**20, 0], ids=["each pair once", "from either side"])
def test_how_often_pairs_are_met(
    vectors: np.ndarray, labels: np.ndarray, monkeypatch: Any, sums_bytes: int
) -> None:
    from isoscope.engine import strips

    met = 0
    between = strips.sums_between

    def counted(A: Any, B: Any, n_clusters: int) -> Any:
        nonlocal met
        met += len(A.order) * len(B.order)
        return between(A, B, n_clusters)

    monkeypatch.setattr(strips, "STRIP_ROWS", 30)
    monkeypatch.setattr(strips, "SUMS_BYTES", sums_bytes)
    monkeypatch.setattr(strips, "sums_between", counted)
    n = len(vectors)
    parts = [60, 120]
    gather(Cut(Space(vectors, labels=labels), parts), {"separation"}, scale=Scale())
    others = n * n - n * 30  # pairs of rows of different strips, from either side
    assert met == (others / 2 if sums_bytes else others)


def test_blocks_are_arranged_once_for_all_strips(vectors: np.ndarray, monkeypatch: Any) -> None:
    from isoscope.engine import arranged_blocks, strips

    n_arranged = 0

    def counted(rows: Any, labels: Any) -> Any:
        nonlocal n_arranged
        n_arranged += 1
        return Arranged.of(rows, labels)

    monkeypatch.setattr(strips, "STRIP_ROWS", 30)
    monkeypatch.setattr(arranged_blocks, "Arranged", SimpleNamespace(of=counted))
    space = Space(vectors, labels=np.arange(len(vectors)) % 2)
    cuts = list(range(30, len(vectors), 30))
    n = len(cuts) + 1
    gather(Cut(space, cuts), {"separation"}, scale=Scale())
    assert n_arranged == n
    assert not arranged_blocks._here  # gone with the strips
    monkeypatch.setattr(arranged_blocks, "HELD_BYTES", 1)
    n_arranged = 0
    gather(Cut(space, cuts), {"separation"}, scale=Scale())
    assert n_arranged > n


def test_a_tight_memory_makes_small_blocks(shards: Path) -> None:
    from isoscope.engine.options import resident_bytes

    assert Scale().rows_of_block(384) >= block_rows(384) > 3000
    assert Scale(memory=resident_bytes() + 90 * 10**6).rows_of_block(384) < 3000
    with raises(argument="memory", message="1 MB, which leaves no room", wanted="at least"):
        iso.measure(iso.open_vectors(shards, key="vectors"), memory="1MB")


@pytest.mark.parametrize("memory", ["much", "2 parsecs", True, -1, "0GB"])
def test_memory_that_is_none(memory: Any, shards: Path) -> None:
    with raises(InputError, argument="memory", wanted="a size such as 2GB"):
        iso.measure(iso.open_vectors(shards, key="vectors"), memory=memory)


def test_options_go_with_files(vectors: np.ndarray) -> None:
    for options in ({"memory": "1GB"}, {"scheduler": "local"}, {"checkpoint": "x"}, {"skip_bad": True}):
        with pytest.raises(InputError, match="work only with files and dask arrays"):
            iso.measure(vectors, **options)


def test_a_bad_shard_is_named_or_left_out(shards: Path, vectors: np.ndarray, labels: np.ndarray) -> None:
    rows = np.ones(len(vectors), bool)
    broken = shards / "part-3.safetensors"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-40])
    with pytest.raises(FileError, match=r"part-3\.safetensors"):
        iso.open_vectors(shards, key="vectors", labels="labels")
    source = iso.open_vectors(shards, key="vectors", labels="labels", skip_bad=True)
    rows[61:100] = False
    found = iso.measure(source, skip_bad=True, metrics="isoscore,silhouette")
    assert found.n == rows.sum()
    assert found["silhouette"] == pytest.approx(iso.silhouette_score(vectors[rows], labels[rows]), rel=1e-9)
    assert any("left out, since" in note and "part-3" in note for note in found.notes)


def test_numbers_that_are_not_are_found_when_read(
    shards: Path, vectors: np.ndarray, labels: np.ndarray
) -> None:
    from safetensors.numpy import save_file

    bad = vectors[61:100].copy()
    bad[3, 2] = np.nan
    save_file({"vectors": bad, "labels": labels[61:100].astype(np.int64)}, shards / "part-3.safetensors")
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    with pytest.raises(InputError, match=r"part-3\.safetensors has NaN"):
        iso.measure(source)
    found = iso.measure(source, skip_bad=True, metrics="isoscore,silhouette,mean_cosine")
    rows = np.r_[0:61, 100 : len(vectors)]
    assert found["isoscore"] == pytest.approx(iso.isoscore(vectors[rows]), rel=1e-10)
    assert found["silhouette"] == pytest.approx(iso.silhouette_score(vectors[rows], labels[rows]), rel=1e-9)
    assert any(note == "left out 1 of 7 files that cannot be read" for note in found.notes)
    assert any("part-3" in note for note in found.notes)


def test_a_shard_of_other_dimensions(shards: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"vectors": np.ones((4, 9)), "labels": np.zeros(4, np.int64)}, shards / "part-5.safetensors")
    with pytest.raises(ShapeError, match=r"part-5\.safetensors has 9 dimensions where the first file has 6"):
        iso.open_vectors(shards, key="vectors")
    source = iso.open_vectors(shards, key="vectors", skip_bad=True)
    assert next(iter(source.bad)).endswith("part-5.safetensors")


def test_nothing_but_bad_shards(shards: Path) -> None:
    for path in shards.iterdir():
        path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(FileError, match="has no file that can be read"):
        iso.open_vectors(shards, key="vectors", skip_bad=True)


def test_errors_of_a_sample_are_noted(vectors: np.ndarray, monkeypatch: Any, shards: Path) -> None:
    from isoscope.engine import passes

    exact = {r.name: r for r in iso.measure(vectors, metrics="isoscore,mean_cosine").readings}
    monkeypatch.setattr(passes, "LEFT_OUT_ROWS", 150)
    source = iso.open_vectors(shards, key="vectors")
    found = iso.measure(source, metrics="isoscore,mean_cosine", seed=3)
    assert any("sample of about 150 of 240 vectors (seed 3)" in note for note in found.notes)
    for reading in found.readings:
        assert reading.value == pytest.approx(exact[reading.name].value, rel=1e-10)
        assert reading.standard_error == pytest.approx(exact[reading.name].standard_error, rel=0.3)
        assert reading.standard_error != exact[reading.name].standard_error
