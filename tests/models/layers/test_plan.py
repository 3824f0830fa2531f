from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from isoscope.models.layers.plan import TypePlan


@given(
    rows=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), min_size=1, max_size=60),
)
def test_no_two_open_types_share_a_place(rows: list[tuple[int, int]]) -> None:
    codes, batches = (torch.tensor(column) for column in zip(*rows, strict=True))
    plan = TypePlan.of(codes, batches, 9, 6)
    for code in range(9):
        occurs = batches[codes == code]
        assert (int(plan.slots[code]) >= 0) == (len(occurs) > 1)
        completed = [number for number, types in enumerate(plan.completed) if code in types.tolist()]
        assert completed == ([int(occurs.max())] if len(occurs) > 1 else [])
    for batch in range(6):
        still_open = [
            int(plan.slots[code])
            for code in range(9)
            if (codes == code).sum() > 1
            and int(batches[codes == code].min()) <= batch <= int(batches[codes == code].max())
        ]
        assert len(set(still_open)) == len(still_open)
        assert all(0 <= slot < plan.n_slots for slot in still_open)


def test_places_are_used_again() -> None:
    """A hundred types, each twice in one batch of its own, need one place."""
    codes = torch.arange(100).repeat_interleave(2)
    assert TypePlan.of(codes, codes, 100, 100).n_slots == 1
