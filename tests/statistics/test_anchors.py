from __future__ import annotations

import numpy as np
import pytest
import torch

from isoscope.engine.source import Wrapped
from isoscope.kernels.precision import Frame
from isoscope.labels import as_labels
from isoscope.space import Space
from isoscope.statistics import anchors as module
from isoscope.statistics.anchors import AnchorRows
from isoscope.statistics.rows import FileRows, HeldRows, as_rows, is_streamed


def brute_force(X: torch.Tensor, codes: torch.Tensor, index: torch.Tensor):
    """Mean distances to the own cluster and the nearest other one, from differences in float64."""
    D = torch.stack([(X.double() - X[i].double()).norm(dim=1) for i in index.tolist()])
    K = int(codes.max()) + 1
    own = codes[index]
    means = torch.stack([D[:, codes == k].mean(dim=1) for k in range(K)], dim=1)
    size = torch.bincount(codes)[own]
    cohesion = means.gather(1, own[:, None]).squeeze(1) * size / (size - 1).clamp(min=1)
    separation = means.scatter(1, own[:, None], torch.inf).amin(dim=1)
    return cohesion, separation


def points(kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 4, (900,), generator=g)
    X = torch.randn(900, 40, generator=g) + 3 * torch.eye(40)[codes]
    if kind == "collapsed":
        X = 3 * torch.eye(40)[codes] + 1e-5 * torch.randn(900, 40, generator=g)
    if kind == "duplicates":
        X = X[torch.randint(0, 50, (900,), generator=g)]
    if kind == "one point":
        X = torch.zeros(900, 40)
    if kind == "far":
        X = X + 1e4
    if kind == "sorted":
        order = codes.argsort()
        X, codes = X[order], codes[order]
    if kind == "many labels":
        codes = torch.arange(900) % 60
    if kind == "double":
        X = X.double()
    if kind == "half":
        X = X.half()
    if kind == "short":
        X = X[:, :5]
    return X, codes


KINDS = [
    "plain",
    "collapsed",
    "duplicates",
    "one point",
    "far",
    "sorted",
    "many labels",
    "double",
    "half",
    "short",
]
INDEX = torch.tensor([3, 899, 0, 500, 257, 256, 255])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(module, "block_rows", lambda *_: 256)
    monkeypatch.setattr(module, "_GROUP_ANCHORS", 3)


@pytest.mark.parametrize("kind", KINDS)
def test_anchors_are_exact(kind: str) -> None:
    X, codes = points(kind)
    rows = AnchorRows.of(X, as_labels(codes))
    cohesion, separation = brute_force(X, codes, INDEX)
    clusters, picked = rows.clusters(INDEX)
    for found in (rows.exact(INDEX), rows.meet(picked, clusters)[0]):
        torch.testing.assert_close(found.cohesion, cohesion, rtol=2e-6, atol=1e-12)
        torch.testing.assert_close(found.separation, separation, rtol=2e-6, atol=1e-12)
        assert torch.equal(found.labels.codes, codes[INDEX])


def test_anchors_in_batches_are_the_same(monkeypatch) -> None:
    X, codes = points("plain")
    rows = AnchorRows.of(X, as_labels(codes))
    at_once = rows.exact(INDEX)
    monkeypatch.setattr(module, "_TABLE_BYTES", 8 * 40 * 2)  # two at a time
    clusters, picked = rows.clusters(INDEX)
    in_batches, gathered = rows.meet(picked, clusters, lambda block: block.raw.sum(dim=0))
    for found in (in_batches, rows.exact(INDEX)):
        torch.testing.assert_close(found.cohesion, at_once.cohesion, rtol=1e-6, atol=0)
    torch.testing.assert_close(gathered, X.sum(dim=0), rtol=1e-4, atol=1e-2)  # once, however many passes


@pytest.mark.parametrize("kind", ["plain", "far", "many labels", "double", "short"])
def test_proxies_are_root_mean_square_distances(kind: str) -> None:
    X, codes = points(kind)
    rows = AnchorRows.of(X, as_labels(codes))
    clusters, picked = rows.clusters(INDEX)
    a, b = clusters.proxies(picked.block, codes[INDEX])
    squared = torch.stack([(X.double() - X[i].double()).square().sum(dim=1) for i in INDEX.tolist()])
    K = int(codes.max()) + 1
    means = torch.stack([squared[:, codes == k].mean(dim=1) for k in range(K)], dim=1)
    own, size = codes[INDEX, None], torch.bincount(codes)[codes[INDEX]]
    inside = means.gather(1, own).squeeze(1) * size / (size - 1)
    torch.testing.assert_close(a.double() * rows.frame.unit, inside.sqrt(), rtol=1e-4, atol=0)
    nearest = means.scatter(1, own, torch.inf).amin(dim=1)
    torch.testing.assert_close(b.double() * rows.frame.unit, nearest.sqrt(), rtol=1e-4, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_distances_to_anchors(kind: str) -> None:
    X, codes = points(kind)
    rows = AnchorRows.of(X, as_labels(codes))
    found = torch.cat([block for _, block in rows.distances(INDEX)])
    exact = torch.stack([(X.double() - X[i].double()).norm(dim=1) for i in INDEX.tolist()], dim=1)
    torch.testing.assert_close(found, exact, rtol=2e-4, atol=1e-12)
    assert (found[INDEX, torch.arange(len(INDEX))] == 0).all()


def test_collapsed_clusters_need_no_difference_of_every_pair(monkeypatch) -> None:
    X, codes = points("collapsed")
    rows = AnchorRows.of(X, as_labels(codes))
    clusters, picked = rows.clusters(INDEX)
    monkeypatch.setattr(module, "crowded_squares", lambda a, b: pytest.fail("all pairs again"))
    rows.meet(picked, clusters)


def test_points_about_zero_are_not_copied_and_others_are_centred() -> None:
    X = torch.randn(300, 40, generator=torch.Generator().manual_seed(0))
    frame = Frame.of(X)
    assert frame.center is None
    assert frame.place(X) is X
    moved = Frame.of(X + 100)
    torch.testing.assert_close(moved.place(X + 100).mean(dim=0), torch.zeros(40), atol=1e-3, rtol=0)
    huge = Frame.of(X * 1e30)
    assert 0.3 < float(huge.place(X * 1e30).norm(dim=1).mean()) < 3
    assert Frame.of(torch.zeros(3, 2)).unit == 1.0


class File(Wrapped):
    def __init__(self, X: torch.Tensor) -> None:
        super().__init__(Space(X))
        self.X, self.read = X, 0

    def blocks(self, n_rows: int | None = None):
        for start in range(0, len(self.X), n_rows or 100):
            block = Space(self.X[start : start + (n_rows or 100)])
            self.read += len(block)
            yield block

    def load(self) -> Space:
        raise AssertionError


def test_rows_of_a_file_come_in_the_order_asked_for() -> None:
    X = torch.randn(450, 3, generator=torch.Generator().manual_seed(0))
    file = File(X)
    rows = as_rows(file, 450)
    index = torch.tensor([220, 3, 105, 221, 0])
    assert isinstance(rows, FileRows)
    assert rows.whole is None
    assert torch.equal(rows.take(index), X[index])
    assert file.read == 300  # not beyond the last one wanted
    assert torch.equal(torch.cat(list(rows.blocks(64))), X)


def test_what_is_read_in_blocks() -> None:
    assert is_streamed(File(torch.zeros(2, 2)))
    assert not is_streamed(Space(np.eye(2)))  # has blocks too, but is in memory
    assert not is_streamed(np.eye(2))
    assert isinstance(as_rows(np.eye(2), 2), HeldRows)
