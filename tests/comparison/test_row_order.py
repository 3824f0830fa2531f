from __future__ import annotations

import numpy as np
import pytest
import torch

from isoscope.comparison import compare
from isoscope.comparison.row_order import order_note


@pytest.fixture
def rows(rng: np.random.Generator) -> torch.Tensor:
    return torch.tensor(rng.normal(size=(100, 6)))


def test_equal_rows_in_another_order_are_noticed(rows: torch.Tensor) -> None:
    rows[:, 0] = 1  # a dimension that tells no rows apart
    assert order_note(rows, rows.flip(0)).startswith(
        "rows seem to be in another order: 100 of the 100 rows of A are equal"
    )
    shifted = rows.roll(-1, 0)
    shifted[0] = 5
    assert "99 of the 100" in order_note(rows, shifted)  # all but row 1
    ordered = torch.cat([rows[:90], rows[90:].flip(0)])
    assert "10 of the 100" in order_note(rows, ordered)
    assert "100 of the 100" in order_note(rows.float(), rows.float().double().flip(0))


def test_what_is_not_in_another_order(rows: torch.Tensor) -> None:
    for other in (rows, rows * 2, rows[:, :5], rows.round(), rows.flip(0) + 1e-9):
        assert order_note(rows, other) == ""
    few = rows.clone()
    few[:20] = rows[[30] * 20]  # texts that became alike are no other order
    assert order_note(rows, few) == ""
    first, second = rows.clone(), rows.clone()
    first[:30], second[20:50] = 0, 0
    assert order_note(first, second) == ""


def test_compare_says_so_unless_rows_are_matched(rows: torch.Tensor) -> None:
    turned = rows.flip(0)
    assert "another order" in compare(rows, turned, metrics="isoscore").notes[0]
    ids = (range(100), range(99, -1, -1))
    assert not any("another order" in note for note in compare(rows, turned, ids=ids).notes)
