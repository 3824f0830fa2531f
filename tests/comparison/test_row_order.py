from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from isoscope.comparison import compare
from isoscope.comparison.row_order import order_note, reordered_column
from isoscope.space import Space


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


NAMES = [f"item {i}" for i in range(100)]


@pytest.mark.parametrize("kind", ["frame", "parquet", "csv"])
def test_rows_are_matched_by_a_column_of_ids_in_another_order(
    rows: torch.Tensor, tmp_path: Path, kind: str
) -> None:
    vectors = {f"d{i}": rows[:, i].numpy() for i in range(6)}
    A = pd.DataFrame({"id": NAMES, **vectors})
    moved = A.sample(frac=1, random_state=0)
    B = moved.assign(**{name: -moved[name] for name in vectors})
    how = {"metrics": "isoscore", "errors": False, "n_moved": 1}
    matched, kept = compare(A, B, ids="id", **how), compare(rows, B[list(vectors)].to_numpy(), **how)
    if kind != "frame":
        for name, frame in (("a", A), ("b", B)):
            getattr(frame, f"to_{kind}")(tmp_path / f"{name}.{kind}", index=False)
        A, B = (tmp_path / f"{name}.{kind}" for name in "ab")
    found = compare(A, B, **how)
    assert found.correspondence("cka") == pytest.approx(matched.correspondence("cka"))
    assert found.notes[0].startswith("rows are matched by column 'id'")
    assert found.moved_rows[0].id in NAMES
    found = compare(A, B, ids="none", **how)
    assert found.correspondence("cka") == pytest.approx(kept.correspondence("cka"))
    assert not any("matched" in note for note in found.notes)


def test_another_column_in_another_order_is_noted(rows: torch.Tensor) -> None:
    A = Space(rows, texts=NAMES)
    assert "column 'texts' has the same values" in compare(A, Space(-rows, texts=NAMES[::-1])).notes[0]
    frames = [pd.DataFrame({"name": some, "v": list(rows.numpy())}) for some in (NAMES, NAMES[::-1])]
    assert "--ids name" in compare(*frames).notes[0]
    # the same order, other values, values that repeat, values that are missing
    for other in (NAMES, [*NAMES[:-1], "other"], ["one"] * 100, [None, *NAMES[:-1]]):
        frames[1] = frames[1].assign(name=other)
        assert reordered_column(*frames) is None
