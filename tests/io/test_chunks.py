from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isoscope.io.chunks import Chunk, regroup, stack


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 12))
def test_regroup_keeps_every_row_in_order(lengths: list[int], n_rows: int) -> None:
    rows = np.arange(sum(lengths))
    starts = np.cumsum([0, *lengths])
    pieces = [Chunk(rows[a:b, None], [str(i) for i in rows[a:b]]) for a, b in itertools.pairwise(starts)]
    blocks = list(regroup(pieces, n_rows, stack))
    assert all(len(block) == n_rows for block in blocks[:-1])
    assert [int(row) for block in blocks for row in block.vectors[:, 0]] == rows.tolist()
    assert [text for block in blocks for text in block.texts or []] == [str(i) for i in rows]


def test_one_piece_is_not_copied() -> None:
    X = np.ones((3, 2))
    assert stack([Chunk(X)]).vectors is X


def test_pieces_of_two_types_take_the_wider() -> None:
    pieces = [Chunk(np.ones((1, 2), np.float32)), Chunk(np.ones((1, 2), np.float64))]
    assert stack(pieces).vectors.dtype == np.float64
    assert pieces == []  # each is let go once copied
