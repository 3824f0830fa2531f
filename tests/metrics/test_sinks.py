from __future__ import annotations

import numpy as np
import pytest
import torch

from isoscope.errors import InputError, NotFiniteError, ShapeError
from isoscope.labels import as_labels
from isoscope.metrics.sinks import find_sinks, sink_thresholds

N_TEXTS, LENGTH = 12, 8
POSITIONS = np.tile(np.arange(LENGTH), N_TEXTS)
N = len(POSITIONS)


@pytest.fixture
def norms(rng) -> np.ndarray:
    """Four layers of lengths near 1, 2, 3, 4."""
    return np.arange(1, 5)[:, None] * rng.uniform(0.8, 1.2, size=(4, N))


def test_a_planted_position_is_found_and_named_with_its_layers(norms) -> None:
    assert len(find_sinks(norms, positions=POSITIONS)) == 0
    assert find_sinks(norms, positions=POSITIONS).names == ()
    norms[1:3, POSITIONS == 0] = 24_000
    sinks = find_sinks(norms, positions=POSITIONS)
    assert sinks.mask.tolist() == (POSITIONS == 0).tolist()
    assert (len(sinks), sinks.n_rows) == (N_TEXTS, N)
    assert sinks.largest.tolist() == norms.max(axis=1).tolist()
    assert sinks.medians.tolist() == pytest.approx(np.median(norms, axis=1))
    median = float(np.median(np.median(norms[1:3], axis=1)[:1]))  # of two, the lower
    assert sinks.names == (f"position 0 (norm 24,000 against a median of {median:.3g} in layers 1–2)",)
    numbered = find_sinks(norms, positions=POSITIONS, layers=[0, 3, 7, 8])
    assert numbered.names[0].endswith("in layers 3, 7)")


def test_types_are_named_and_what_is_left_is_counted(norms) -> None:
    types = np.array([f"t{k % 7}" for k in range(N)], dtype=object)
    types[POSITIONS == 5] = "[SEP]"
    norms[0, types == "[SEP]"] = 50
    norms[2, [1, 2]] = 90  # rows that have nothing in common
    moved = POSITIONS.copy()
    moved[5] = 77  # one [SEP] alone at its position: still explained by its type
    sinks = find_sinks(norms, positions=moved, token_types=types)
    assert [name.partition(" (")[0] for name in sinks.names] == ['token "[SEP]"', "2 other rows"]
    assert "in layer 0" in sinks.names[0]
    labelled = find_sinks(norms, positions=torch.tensor(moved), token_types=as_labels(types))
    assert labelled.names == sinks.names
    assert [name.partition(" (")[0] for name in find_sinks(norms).names] == [f"{N_TEXTS + 2} rows"]


def test_ninety_percent_of_a_position_and_two_of_a_type_are_wanted() -> None:
    lengths = np.ones(200)
    positions = np.arange(200) // 10
    lengths[:9] = 100  # nine of the ten at position 0
    lengths[10:18] = 100  # eight of ten at position 1
    names = find_sinks(lengths, positions=positions).names
    assert [name.partition(" (")[0] for name in names] == ["position 0", "8 other rows"]
    types = ["once", *["often"] * 199]
    lengths = np.ones(200)
    lengths[0] = 100
    assert find_sinks(lengths, token_types=types).names[0].startswith("1 row ")
    assert find_sinks(lengths, token_types=types).names[0].endswith("(norm 100 against a median of 1)")


def test_a_type_that_stands_only_at_a_named_position_is_not_named_again(norms) -> None:
    types = np.where(POSITIONS == 0, "A", "word")
    norms[0, POSITIONS == 0] = 1e4
    assert len(find_sinks(norms, positions=POSITIONS, token_types=types).names) == 1


def test_a_type_is_judged_by_its_rows_beside_those_named(norms) -> None:
    types = np.array(["word"] * N, dtype=object)
    types[[0, 8, 16]] = "q"  # at position 0, which is a sink whatever the type
    types[[3, 12, 29, 37]] = "q"
    norms[0, POSITIONS == 0] = 1e4
    norms[1, types == "q"] = 1e3
    names = find_sinks(norms, positions=POSITIONS, token_types=types).names
    assert [name.partition(" (")[0] for name in names] == ["position 0", 'token "q"']


def test_only_the_most_telling_are_named() -> None:
    lengths = np.ones(1000)
    lengths[:20] = 50  # ten types of two
    types = [f"t{k // 2}" for k in range(20)] + ["word"] * 980
    names = find_sinks(lengths, token_types=types).names
    assert len(names) == 9
    assert names[-1].startswith("4 other rows ")


def test_batches_merge_to_the_whole(norms) -> None:
    types = np.array([f"t{k % 5}" for k in range(N)])
    norms[1, POSITIONS == 0] = 400
    norms[3, [3, 60]] = 900
    thresholds = sink_thresholds(norms)
    whole = find_sinks(norms, positions=POSITIONS, token_types=types, thresholds=thresholds)
    parts = [
        find_sinks(norms[:, a:b], positions=POSITIONS[a:b], token_types=types[a:b], thresholds=thresholds)
        for a, b in ((0, 21), (21, 22), (22, N))
    ]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert torch.equal(merged.mask, whole.mask)
    assert merged.names == whole.names == find_sinks(norms, positions=POSITIONS, token_types=types).names
    assert torch.equal(merged.largest, whole.largest)
    with pytest.raises(InputError, match="the same for all batches"):
        parts[0].merge(find_sinks(norms, thresholds=2 * thresholds))


def test_the_ratio_decides_and_scale_does_not(norms) -> None:
    norms[0, 0] = 8
    assert not find_sinks(norms).mask.any()
    assert find_sinks(norms, ratio=5).mask.tolist() == [True, *[False] * (N - 1)]
    assert torch.equal(find_sinks(norms * 1e-9, ratio=5).mask, find_sinks(norms, ratio=5).mask)


def test_zero_vectors_have_no_say_in_the_median() -> None:
    assert not find_sinks([0.0, 0.0, 0.0, 1.0, 2.0]).mask.any()
    assert not find_sinks(np.zeros((2, 3))).mask.any()


def test_bad_arguments(norms) -> None:
    with pytest.raises(InputError, match="ratio"):
        find_sinks(norms, ratio=1)
    with pytest.raises(InputError, match="negative"):
        find_sinks([-1.0, 2.0])
    with pytest.raises(NotFiniteError):
        find_sinks([float("nan"), 2.0])
    with pytest.raises(ShapeError, match="`norms` has shape"):
        find_sinks(np.ones((2, 2, 2)))
    with pytest.raises(ShapeError, match="`positions` has 3 entries"):
        find_sinks(norms, positions=[0, 1, 2])
    with pytest.raises(ShapeError, match="`layers` has 2"):
        find_sinks(norms, layers=[0, 1])
    with pytest.raises(ShapeError, match="`thresholds` has 1"):
        find_sinks(norms, thresholds=[1.0])
