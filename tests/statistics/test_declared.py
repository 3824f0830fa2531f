"""A statistic is known by what it declares, and by nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from tests.raising import raises
from tests.sources import Blocks
from torch import Tensor

import isoscope as iso
from isoscope.engine.options import Scale
from isoscope.engine.run import gather
from isoscope.errors import InputError
from isoscope.space import Space
from isoscope.statistics import declared as declarations
from isoscope.statistics.declared import declare, declared, streamed, whole, with_prerequisites
from isoscope.statistics.gathered import Statistics


@dataclass(frozen=True)
class Largest:
    """The largest coordinate in size."""

    value: Tensor
    count: int

    def merge(self, other: Largest) -> Largest:
        return Largest(self.value.maximum(other.value), self.count + other.count)


@pytest.fixture
def largest(monkeypatch: pytest.MonkeyPatch) -> None:
    declared()
    monkeypatch.setattr(declarations, "_DECLARED", dict(declarations._DECLARED))
    declared.cache_clear()
    declare("largest", Largest, lambda space, _: Largest(space.vectors.abs().max(), len(space)))
    yield
    monkeypatch.undo()
    declared.cache_clear()


def test_a_new_statistic_is_taken_in_memory_and_in_a_stream(largest: None, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    np.save(tmp_path / "x.npy", X)
    file = iso.open_vectors(tmp_path / "x.npy")
    shelf = gather(file, ["largest", "moments"])
    assert float(shelf.largest.value) == np.abs(X).max() == float(Statistics(Space(X)).largest.value)
    assert shelf.largest.count == 300
    assert "largest" in streamed()


def test_a_new_statistic_comes_back_from_a_checkpoint(largest: None, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    np.save(tmp_path / "x.npy", X)
    scale = Scale(checkpoint=tmp_path / "kept")
    for _ in range(2):
        shelf = gather(iso.open_vectors(tmp_path / "x.npy"), ["largest", "moments"], scale=scale)
        assert float(shelf.largest.value) == np.abs(X).max()
    assert list((tmp_path / "kept").glob("first-*.safetensors"))


def test_needs_may_be_a_generator_and_must_be_known() -> None:
    blocks = [Space(np.eye(4))]
    assert gather(Blocks(blocks), (name for name in ["moments"])).moments.count == 4
    with pytest.raises(InputError, match="momentss"):
        gather(Blocks(blocks), ["momentss"])
    with raises(message="no statistic 'momentss'", wanted="moments"):
        with_prerequisites(["momentss"])


def test_what_is_not_declared_is_no_statistic() -> None:
    with pytest.raises(AttributeError, match="there is no statistic 'momentss'"):
        _ = Statistics(Space(np.eye(3))).momentss


def test_prerequisites_come_along() -> None:
    assert with_prerequisites(["label_distances", "directions"]) == {
        "label_distances",
        "label_moments",
        "directions",
    }
    assert whole() == {"vectors", "separation", "neighbors", "distinct_neighbors", "close_pairs"}


def test_the_types_of_the_shelf_are_those_declared() -> None:
    types = get_type_hints(Statistics)  # a statistic that is not among them is of any type
    assert len(types) > 10
    assert types == {name: declared()[name].kind or Tensor for name in types}
