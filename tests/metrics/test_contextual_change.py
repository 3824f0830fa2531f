from __future__ import annotations

import itertools

import numpy as np
import pytest

from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.contextual_change import (
    adjusted_type_similarities,
    extremes,
    running_correlation,
    self_similarity_change,
)
from isoscope.space import Space
from isoscope.statistics import GroupDirections

RNG = np.random.default_rng(3)
BEFORE, AFTER = RNG.normal(size=(50, 5)) + 0.5, RNG.normal(size=(50, 4)) - 0.2
TYPES = np.array([f"t{k}" for k in RNG.integers(0, 7, size=48)] + ["x", "x"])


def pair_mean(rows) -> float:
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return float(np.mean([a @ b for a, b in itertools.combinations(units, 2)]))


def adjusted(rows, types) -> dict[str, float]:
    names = [name for name in np.unique(types) if (types == name).sum() > 1]
    return {str(name): pair_mean(rows[types == name]) - pair_mean(rows) for name in names}


def test_adjusted_type_similarities_by_brute_force_in_the_order_of_frequency() -> None:
    found = adjusted_type_similarities(BEFORE, token_types=TYPES)
    assert found == pytest.approx(adjusted(BEFORE, TYPES), rel=1e-11)
    counts = [int((name == TYPES).sum()) for name in found]
    assert counts == sorted(counts, reverse=True)
    given = adjusted_type_similarities(BEFORE, token_types=TYPES, anisotropy=0.0)
    assert given["x"] == pytest.approx(pair_mean(BEFORE[-2:]))


def test_change_by_brute_force_with_types_that_only_one_model_has() -> None:
    other = TYPES.copy()
    other[-1] = "y"  # x stands alone afterwards
    other[:3] = "n"
    change = self_similarity_change(
        Space(BEFORE, token_types=TYPES), GroupDirections.of(AFTER, other), n_types=None
    )
    first, second = adjusted(BEFORE, TYPES), adjusted(AFTER, other)
    assert change.changes == pytest.approx({n: second[n] - first[n] for n in first if n in second}, rel=1e-10)
    assert (change.only_before, change.only_after) == (("x",), ("n",))
    assert all(change.counts[name] == (other == name).sum() for name in change.changes)
    ranked = sorted(change.changes, key=change.changes.get)
    assert list(change.falling(2)) == ranked[:2]
    assert list(change.rising(2)) == ranked[::-1][:2]
    most = self_similarity_change(
        Space(BEFORE, token_types=TYPES), Space(AFTER, token_types=other), n_types=2
    )
    assert list(most.changes) == list(change.changes)[:2]


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_running_correlation_is_numpys_of_every_prefix(offset) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=60) + offset, rng.normal(size=60)
    b += 0.5 * (a - offset)
    names = [f"w{k}" for k in range(60)]
    curve = running_correlation(
        dict(zip(names, a, strict=True)), dict(zip(names[::-1], b[::-1], strict=True))
    )
    assert curve.names == tuple(names)
    assert curve.values[0] is None
    expected = [np.corrcoef(a[:n], b[:n])[0, 1] for n in range(2, 61)]
    assert curve.values[1:] == pytest.approx(expected, rel=1e-6 if offset else 1e-10)
    n, r = curve.highest(from_n=10)
    assert (n, r) == (int(np.argmax(expected[8:])) + 10, pytest.approx(max(expected[8:])))


def test_running_correlation_says_where_it_is_undefined() -> None:
    curve = running_correlation({"a": 0.1, "b": 0.1, "c": 0.3}, {"a": 1.0, "b": 2.0, "c": 3.0, "z": 0.0})
    assert curve.values[:2] == (None, None)
    assert curve.values[2] == pytest.approx(np.corrcoef([0.1, 0.1, 0.3], [1, 2, 3])[0, 1])
    with pytest.raises(UndefinedError, match="there are 3"):
        curve.highest()
    with pytest.raises(UndefinedError, match="no token in common"):
        running_correlation({"a": 1.0}, {"b": 1.0})


def test_extremes_of_a_few() -> None:
    assert extremes({"a": 1.0}, 5) == ({"a": 1.0}, {"a": 1.0})


def test_undefined_and_bad_arguments() -> None:
    alone = Space(BEFORE[:3], token_types=["a", "b", "c"])
    with pytest.raises(UndefinedError, match="no token type has two vectors"):
        self_similarity_change(alone, Space(AFTER, token_types=TYPES))
    with pytest.raises(UndefinedError, match="twice or more in both"):
        self_similarity_change(
            Space(BEFORE[:2], token_types=["a", "a"]), Space(AFTER[:2], token_types=["b", "b"])
        )
    with pytest.raises(InputError, match="n_types"):
        self_similarity_change(alone, alone, n_types=0)
    with pytest.raises(InputError, match="`token_types` is missing"):
        self_similarity_change(Space(BEFORE), Space(AFTER))
