"""Neighbours of many samples at once, and a layer's quantities once its sums are on the CPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from isoscope.labels import as_labels
from isoscope.models.layers import layer_neighbors
from isoscope.models.layers.layer_neighbors import neighbors_in_each, unit_neighbors_in_each
from isoscope.models.layers.quantities import (
    PREPARED,
    LayerStatistics,
    Quantity,
    sums_on_host,
    take,
    take_sample,
    take_samples,
)
from isoscope.space import Space
from isoscope.statistics.directions import unit_rows
from isoscope.statistics.neighbors import Neighbors

_OF_EACH = ("informativity", "inside_clusters")


def spaces(n: int = 90, d: int = 8) -> list[Tensor]:
    """Samples of layers, one with copies and near copies far from the origin, one with a very long row."""
    draw = torch.Generator().manual_seed(0)
    many = [torch.randn(n, d, generator=draw) + shift for shift in (0, 1, 1000)]
    many[2][:10] = many[2][10]
    many[2][20] = many[2][21] + 1e-3
    many[1][3] *= 1e4
    return many


@pytest.mark.parametrize("most_pairs", [2**27, 90**2])
def test_the_neighbors_of_each_space_alone(monkeypatch: pytest.MonkeyPatch, most_pairs: int) -> None:
    monkeypatch.setattr(layer_neighbors, "_MOST_PAIRS", most_pairs)
    several = spaces()
    several[2][:10] += torch.arange(1, 11)[:, None] * 1e-3  # far from the origin, and close to each other
    for space, found in zip(several, neighbors_in_each(several, 12), strict=True):
        expected = Neighbors.of_distinct(space, k=12, metric="euclidean")
        torch.testing.assert_close(found.distances, expected.distances, rtol=1e-7, atol=1e-12)
    for space, found in zip(several[:2], unit_neighbors_in_each(several[:2], 12), strict=True):
        expected = Neighbors.of_distinct(unit_rows(space)[0].float(), k=12, metric="euclidean")
        torch.testing.assert_close(found.distances, expected.distances, rtol=1e-5, atol=1e-7)


def test_spaces_that_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    several = spaces()
    several[0][4] = 0
    for in_each in (neighbors_in_each, unit_neighbors_in_each):  # a zero vector, copies
        assert [found is None for found in in_each(several, 5)] == [True, False, True]
    assert neighbors_in_each(several, 90) == [None] * 3
    monkeypatch.setattr(layer_neighbors, "_MOST_CLOSE", 3)
    assert neighbors_in_each(several, 5) == [None] * 3


def test_prepared_layers_have_the_readings_of_others() -> None:
    quantities = [Quantity.named(name) for name in sorted(PREPARED)]
    types = as_labels(torch.arange(90) % 11)
    found = []
    for prepares in (False, True):
        layers = []
        for space in spaces():
            sample = Space(space, token_types=types)
            about = {"clusters": True, "k": 10, "seed": 0, "baseline": (5, space[:5].double().sum(dim=0))}
            layers.append(LayerStatistics(sample, **about))
        if prepares:
            take_samples(layers, PREPARED)
            for layer in layers:
                sums_on_host(layer)
                take_sample(layer, PREPARED)
                assert set(vars(layer)) >= {"clusters", *_OF_EACH}
            assert "nearest" in vars(layers[1])
        found.append([reading for layer in layers for reading in take(quantities, layer=layer)])
    for one, other in zip(*found, strict=True):
        assert replace(one, value=None) == replace(other, value=None)
        expected = None if one.value is None else pytest.approx(one.value, rel=1e-6, abs=1e-9)
        assert other.value == expected, one.metric
    assert sum(one.value is not None for one in found[0]) > 2 * len(quantities)
