"""Read-ahead keeps order, overlaps, passes errors on in their place, and stops when nobody listens."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from isoscope.statistics.ahead import ahead
from isoscope.statistics.moments import Moments
from isoscope.statistics.tree import Tree


def test_the_next_item_is_made_while_this_one_is_used() -> None:
    begun = [threading.Event() for _ in range(3)]

    def items() -> Iterator[int]:
        for number, event in enumerate(begun):
            event.set()
            yield number

    for number in ahead(items(), depth=1):
        if number < 2:
            continue
    assert all(event.is_set() for event in begun)
    fresh = [threading.Event() for _ in range(3)]

    def again() -> Iterator[int]:
        for number, event in enumerate(fresh):
            event.set()
            yield number

    source = ahead(again())
    assert next(source) == 0
    assert fresh[1].wait(timeout=60)  # nobody has asked for it yet
    source.close()


def test_an_error_comes_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    source = ahead(items())
    assert next(source) == 1
    with pytest.raises(ValueError, match="broken"):
        next(source)


def test_stopping_early_closes_the_source_and_keeps_the_threads() -> None:
    closed = []

    def items() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            closed.append(True)

    n_threads = torch.get_num_threads()
    source = ahead(items())
    next(source)
    source.close()
    assert closed
    assert torch.get_num_threads() == n_threads


@pytest.mark.parametrize("n", range(1, 12))
def test_a_tree_merges_as_pairs_of_pairs_do(n: int) -> None:
    """The same bits as level by level, which is what workers do."""
    parts = [
        {"moments": Moments.of(torch.randn(7, 4, generator=torch.Generator().manual_seed(i)))}
        for i in range(n)
    ]
    tree = Tree()
    for part in parts:
        tree.add(part)
    level = [part["moments"] for part in parts]
    while len(level) > 1:
        level = [
            level[i].merge(level[i + 1]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)
        ]
    assert torch.equal(tree.total()["moments"].scatter, level[0].scatter)
    assert torch.equal(tree.total()["moments"].cubic, level[0].cubic)


def test_an_empty_tree() -> None:
    assert Tree().total() == {}
