from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.engine.source import Wrapped
from isoscope.errors import InputError, LabelError, NotFiniteError, ShapeError
from isoscope.kernels import workers
from isoscope.metrics import silhouette_estimate as module
from isoscope.metrics.silhouette_estimate import estimate_silhouette_by_cluster
from isoscope.space import Space
from isoscope.statistics import anchors


def spaces() -> dict[str, tuple[np.ndarray, np.ndarray, float]]:
    """Spaces with the tolerance to reach on each; some are built to break the method."""
    rng = np.random.default_rng(0)
    y2, y5, y4 = rng.integers(0, 2, 4000), rng.integers(0, 5, 3000), rng.integers(0, 4, 3000)
    tiny = np.concatenate([rng.integers(0, 3, 2900), np.repeat(np.arange(3, 53), 2)])
    y8, many = rng.integers(0, 8, 3000), rng.integers(0, 300, 4000)
    alone = np.concatenate([rng.integers(0, 3, 2950), np.arange(3, 53)])
    return {
        "two weak clusters": (rng.normal(size=(4000, 96)) + 0.3 * np.eye(96)[y2], y2, 2e-4),
        "blobs in the plane": (rng.normal(size=(3000, 2)) + 4 * rng.normal(size=(5, 2))[y5], y5, 5e-3),
        "heavy tails": (rng.standard_t(2, size=(3000, 10)) + np.eye(10)[y4], y4, 5e-3),
        "tiny clusters": (rng.normal(size=(3000, 20)) + 2 * np.eye(60)[tiny][:, :20], tiny, 3e-3),
        "points alone": (rng.normal(size=(3000, 20)) + 2 * np.eye(60)[alone][:, :20], alone, 3e-3),
        "duplicates": (rng.normal(size=(500, 16))[rng.integers(0, 500, 3000)], y8, 2e-3),
        "many clusters": (rng.normal(size=(4000, 24)) + 1.5 * rng.normal(size=(300, 24))[many], many, 2e-3),
        "collapsed": (np.eye(40)[y4] + 1e-5 * rng.normal(size=(3000, 40)), y4, 1e-6),
    }


MACRO = ("blobs in the plane", "heavy tails", "tiny clusters", "points alone", "many clusters", "collapsed")
CASES = [(name, "micro") for name in spaces()] + [(name, "macro") for name in MACRO]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "average"), CASES)
def test_interval_is_narrow_enough_and_holds_the_exact_value(name: str, average: str) -> None:
    X, y, tolerance = spaces()[name]
    X = X.astype(np.float32)
    exact = iso.silhouette_score(X, y, average=average)
    n_seeds, held, methods = 120, 0, set()
    for seed in range(n_seeds):
        found = iso.silhouette_score(X, y, tolerance=tolerance, average=average, seed=seed)
        low, high = found.interval
        assert (high - low) / 2 <= tolerance * (1 + 1e-9)
        held += low <= exact <= high
        methods.add(found.method)
    # 95 % nominal; 120 seeds tell it to about ± 2 %
    assert held >= 0.88 * n_seeds
    assert methods <= {"control variate", "anchors", "exact"}
    assert methods != {"exact"}


@pytest.mark.parametrize("name", ["blobs in the plane", "heavy tails", "points alone", "duplicates"])
def test_every_cluster_has_an_interval_of_its_own(name: str) -> None:
    X, y, _ = spaces()[name]
    exact = iso.metrics.silhouette_by_cluster(X, y)
    sizes = dict(zip(*np.unique(y, return_counts=True), strict=True))
    held = n_estimates = 0
    for seed in range(40):
        found = iso.metrics.silhouette_by_cluster(X, y, tolerance=0.02, seed=seed)
        assert list(found) == list(exact)
        for label, one in found.items():
            low, high = one.interval
            assert (high - low) / 2 <= 0.02 * (1 + 1e-9)
            assert one.n_anchors <= sizes[label]
            if one.method == "exact":
                assert one.value == pytest.approx(exact[label], abs=1e-6)
            else:
                n_estimates += 1
                held += low <= exact[label] <= high
    assert n_estimates >= 100
    assert held >= 0.9 * n_estimates


def test_small_clusters_are_taken_whole_and_points_alone_score_zero() -> None:
    X, y, _ = spaces()["points alone"]
    found = iso.metrics.silhouette_by_cluster(X, y, tolerance=0.02)
    assert {found[label].method for label in range(3)} == {"control variate"}
    for label in range(3, 53):
        assert found[label] == iso.metrics.SilhouetteEstimate(0.0, 0.0, (0.0, 0.0), 1, "exact", 0)


def test_a_cluster_that_would_need_half_its_points_is_taken_whole() -> None:
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], [2800, 100, 200])
    X = rng.normal(size=(3100, 3)) + y[:, None]
    exact, found = (
        iso.metrics.silhouette_by_cluster(X, y),
        iso.metrics.silhouette_by_cluster(X, y, tolerance=0.01),
    )
    assert (found[1].method, found[1].n_anchors) == ("exact", 100)
    assert found[1].value == pytest.approx(exact[1], abs=1e-12)
    assert (found[0].method, found[2].method) == ("control variate", "control variate")


def test_after_a_second_look_the_interval_is_the_tolerance() -> None:
    """Stopping where an interval happens to be narrow favours those that are too narrow."""
    X, y, _ = spaces()["heavy tails"]
    first = iso.metrics.estimate_silhouette(X, y, tolerance=1.0)
    tolerance = 0.9 * (first.interval[1] - first.value)
    second = iso.metrics.estimate_silhouette(X, y, tolerance=tolerance)
    assert second.n_anchors > first.n_anchors
    assert second.interval == pytest.approx((second.value - tolerance, second.value + tolerance))
    each = iso.metrics.silhouette_by_cluster(X, y, tolerance=1.0)
    tolerance = 0.9 * max(one.interval[1] - one.value for one in each.values())
    again = iso.metrics.silhouette_by_cluster(X, y, tolerance=tolerance)
    for label, one in again.items():
        looked_again = one.n_anchors > each[label].n_anchors
        assert one.interval[1] - one.value == pytest.approx(
            tolerance if looked_again else each[label].interval[1] - each[label].value
        )


def test_the_proxy_pays(monkeypatch) -> None:
    """Regression on the proxies narrows the interval many times over plain anchors."""
    X, y, _ = spaces()["two weak clusters"]
    with_proxy = iso.metrics.estimate_silhouette(X, y, tolerance=1.0)

    def nothing(clusters, block, codes):
        return torch.zeros(len(codes), 2, dtype=torch.float64)

    monkeypatch.setattr(module, "_features", nothing)
    plain = iso.metrics.estimate_silhouette(X, y, tolerance=1.0)
    assert plain.method == "anchors"
    assert with_proxy.method == "control variate"
    assert with_proxy.standard_error < 0.2 * plain.standard_error


def test_strata_pay_where_clusters_differ() -> None:
    """One tight cluster and one loose: anchors go to the loose one."""
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], 3000)
    X = rng.standard_t(3, size=(6000, 4)) * np.where(y, 3.0, 0.01)[:, None] + 5 * y[:, None]
    survey = module._Survey.of(module._rows(X, y, 1e-3, 0), by_cluster=True, seed=0)
    weights = torch.tensor([0.5, 0.5], dtype=torch.float64)
    assert survey.reach(torch.tensor([60, 60]))
    sample = survey.sample(weights)
    found, _ = module._best(sample)
    sizes = module.wanted_sizes(sample, found, found.half_width / 3)
    assert sizes[0] < 100 < sizes[1]


def test_seed_decides_the_anchors() -> None:
    X, y, tolerance = spaces()["blobs in the plane"]
    a, b, c = (iso.silhouette_score(X, y, tolerance=tolerance, seed=seed) for seed in (1, 1, 2))
    assert a == b
    assert a.value != c.value
    assert float(a) == a.value


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_small_or_demanding_cases_are_exact(average: str) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(1500, 3)), np.arange(1500) % 3 + (np.arange(1500) > 900)
    for points, labels, tolerance in ((X[:500], y[:500], 0.1), (X, y, 1e-9)):
        found = iso.silhouette_score(points, labels, tolerance=tolerance, average=average)
        assert found.method == "exact"
        assert found.standard_error == 0
        assert found.value == pytest.approx(iso.silhouette_score(points, labels, average=average), abs=1e-12)
        by_cluster = iso.metrics.silhouette_by_cluster(points, labels, tolerance=tolerance)
        exact = iso.metrics.silhouette_by_cluster(points, labels)
        assert {label: one.value for label, one in by_cluster.items()} == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_offset_and_scale_do_not_matter(offset: float, scale: float) -> None:
    X, y, tolerance = spaces()["two weak clusters"]
    moved = ((X + offset) * scale).astype(np.float32)
    exact = iso.silhouette_score(((X + offset).astype(np.float32)).astype(np.float64), y)
    assert float(iso.metrics.estimate_silhouette(moved, y, tolerance=tolerance)) == pytest.approx(
        exact, abs=2 * tolerance
    )


def test_squares_beyond_float32_are_answered_exactly() -> None:
    X, y, _ = spaces()["two weak clusters"]
    far = X[:1500].astype(np.float32)
    far[700] *= 1e25
    found = iso.metrics.estimate_silhouette(far, y[:1500], tolerance=0.5)
    assert found.method == "exact"


# blocks of 256 rows handed to the workers, the one at hand, the one read; of 500 where rows are fetched
N_HELD = max((workers.AHEAD * torch.get_num_threads() + 2) * 256, 2 * 500)


class Blocks(Wrapped):
    """An opened file that counts the blocks alive and refuses to be loaded."""

    def __init__(self, X: np.ndarray, labels: np.ndarray | None) -> None:
        super().__init__(Space(X, labels=labels))
        self.X = X
        self.n_passes = self.most_rows = 0
        self.alive: list[tuple[weakref.ref[Space], int]] = []

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        self.n_passes += 1
        n_rows = n_rows or 500
        for start in range(0, len(self.X), n_rows):
            block = Space(torch.from_numpy(self.X[start : start + n_rows].copy()))
            self.alive = [(ref, n) for ref, n in self.alive if ref() is not None]
            self.alive.append((weakref.ref(block.vectors), len(block)))
            self.most_rows = max(self.most_rows, sum(n for _, n in self.alive))
            yield block

    def load(self) -> Space:
        raise AssertionError("a file is never held whole")


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 256 rows, so that a few thousand rows are many blocks."""
    monkeypatch.setattr(anchors, "block_rows", lambda *_: 256)


@pytest.mark.parametrize("name", ["two weak clusters", "heavy tails", "tiny clusters", "collapsed"])
def test_a_file_in_blocks_gives_the_same(name: str, small_blocks) -> None:
    X, y, tolerance = spaces()[name]
    X = X.astype(np.float32)
    for average in ("micro", "macro"):
        held = iso.silhouette_score(X, y, tolerance=tolerance, average=average, seed=3)
        file = Blocks(X, y)
        found = iso.silhouette_score(file, tolerance=tolerance, average=average, seed=3)
        assert found.value == pytest.approx(held.value, abs=1e-10)
        assert found.standard_error == pytest.approx(held.standard_error, rel=1e-6)
        assert (found.n_anchors, found.method) == (held.n_anchors, held.method)
        assert file.most_rows <= N_HELD
        assert file.n_passes <= 9
    by_cluster = iso.metrics.silhouette_by_cluster(X, y, tolerance=0.05)
    streamed = iso.metrics.silhouette_by_cluster(Blocks(X, None), y, tolerance=0.05)
    for label, one in by_cluster.items():
        assert streamed[label].value == pytest.approx(one.value, abs=1e-10)


def test_a_file_that_has_to_be_exact_is_still_never_held(small_blocks, monkeypatch) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(1700, 3)), rng.integers(0, 3, 1700)
    monkeypatch.setattr(anchors, "_TABLE_BYTES", 8 * 3 * 600)  # 600 points at a time
    file = Blocks(X, y)
    found = iso.metrics.estimate_silhouette(file, tolerance=1e-12)
    assert found.method == "exact"
    assert found.value == pytest.approx(iso.silhouette_score(X, y), abs=1e-12)
    assert file.most_rows <= N_HELD
    macro = iso.metrics.estimate_silhouette(file, tolerance=1e-12, average="macro")
    assert macro.value == pytest.approx(iso.silhouette_score(X, y, average="macro"), abs=1e-12)


def test_files_on_disk(tmp_path: Path) -> None:
    X, y, tolerance = spaces()["two weak clusters"]
    X = X.astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.txt").write_text("\n".join(map(str, y)))
    held = iso.metrics.estimate_silhouette(X, y, tolerance=tolerance)
    opened = iso.open_vectors(tmp_path / "x.npy", labels=tmp_path / "y.txt")
    assert iso.metrics.estimate_silhouette(opened, tolerance=tolerance).value == pytest.approx(
        held.value, abs=1e-10
    )
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert iso.metrics.estimate_silhouette(mapped, y, tolerance=tolerance) == held
    space = Space(X, labels=y)
    assert iso.metrics.estimate_silhouette(space, tolerance=tolerance) == held


def test_bad_files(tmp_path: Path) -> None:
    X, y, _ = spaces()["blobs in the plane"]
    with pytest.raises(InputError, match="`labels` is missing; name them in open_vectors"):
        iso.metrics.estimate_silhouette(Blocks(X, None))
    with pytest.raises(ShapeError, match="`labels` has 2000 entries, but there are more vectors"):
        iso.metrics.estimate_silhouette(Blocks(X, None), y[:2000])
    with pytest.raises(ShapeError, match="`labels` has 3000 entries for 2900 vectors"):
        iso.metrics.estimate_silhouette(Blocks(X[:2900], None), y)
    X[1234, 1] = np.nan
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(NotFiniteError, match="row 1234"):
        iso.metrics.estimate_silhouette(iso.open_vectors(tmp_path / "x.npy"), y)


@pytest.mark.parametrize("tolerance", [0, -1e-3, float("nan"), "small", True])
def test_bad_tolerance(tolerance) -> None:
    for estimate in (iso.silhouette_score, iso.metrics.silhouette_by_cluster):
        with raises(InputError, argument="tolerance"):
            estimate(np.eye(4), [0, 0, 1, 1], tolerance=tolerance)


def test_bad_input() -> None:
    X, y, _ = spaces()["blobs in the plane"]
    estimates = (iso.metrics.estimate_silhouette, estimate_silhouette_by_cluster)
    for estimate in estimates:
        with raises(InputError, argument="seed", wanted="a whole number"):
            estimate(X, y, seed=-1)
        with pytest.raises(LabelError, match="only one label"):
            estimate(X, np.zeros(len(X)))
        with pytest.raises(LabelError, match="a different label"):
            estimate(X, np.arange(len(X)))
        with pytest.raises(ShapeError, match="`labels` has 2999 entries for 3000 vectors"):
            estimate(X, y[1:])
        with pytest.raises(InputError, match="`labels` is missing"):
            estimate(X)
        for bad in (np.nan, np.inf):
            broken = X.copy()
            broken[17, 1] = bad
            with pytest.raises(NotFiniteError, match="row 17"):
                estimate(broken, y, tolerance=0.1)
            with pytest.raises(NotFiniteError, match="row 17"):
                estimate(broken[:900], y[:900], tolerance=0.1)
    with raises(InputError, argument="average", got="median"):
        iso.metrics.estimate_silhouette(X, y, average="median")


def test_tolerance_is_for_euclidean_distances() -> None:
    """Cosine and squared distances have closed forms; zero vectors have no cosine either way."""
    X, y = np.vstack([np.zeros((1, 3)), np.random.default_rng(0).normal(size=(9, 3))]), np.arange(10) % 2
    for estimate in (iso.silhouette_score, iso.metrics.silhouette_by_cluster):
        with pytest.raises(InputError, match="'cosine' is exact in linear time: leave tolerance out"):
            estimate(X, y, tolerance=0.1, metric="cosine")
        with pytest.raises(InputError, match="deterministic and memory go without it"):
            estimate(X, y, tolerance=0.1, memory="100MB")
    assert iso.silhouette_score(X, y, metric="cosine") == pytest.approx(
        iso.silhouette_score(X[1:], y[1:], metric="cosine")
    )
