"""Moments that are checked together are those of each block alone."""

import torch

from isoscope.statistics.deferred import can_defer, checked, unchecked
from isoscope.statistics.moments import Moments


def _blocks() -> dict[str, torch.Tensor]:
    plain = torch.randn(400, 24, generator=torch.Generator().manual_seed(0))
    few = plain.clone()
    few[0] *= 1e6  # one row that makes nearly all of the fourth powers
    return {
        "plain": plain,
        "offset": plain + 50,
        "tiny": 1e-25 * plain,  # squares vanish in float32
        "equal": torch.full((400, 24), 0.1),
        "few": few,
    }


def test_every_block_has_the_moments_of_one_alone():
    blocks = _blocks()
    found = checked([unchecked(rows) for rows in blocks.values()])
    for moments, (name, rows) in zip(found, blocks.items(), strict=True):
        alone = Moments.of(rows)
        scale = float(alone.spread) or 1.0
        assert torch.allclose(moments.scatter / scale, alone.scatter / scale, rtol=0, atol=1e-6), name
        assert torch.allclose(moments.mean, alone.mean, rtol=1e-6), name


def test_blocks_that_lost_digits_are_taken_again(monkeypatch):
    again = []
    taken = Moments.of
    monkeypatch.setattr(Moments, "of", lambda rows: (again.append(rows), taken(rows))[1])
    blocks = _blocks()
    checked([unchecked(rows) for rows in blocks.values()])
    assert [next(name for name, rows in blocks.items() if rows is one) for one in again] == [
        "tiny", "equal", "few",
    ]  # fmt: skip


def test_rows_on_the_cpu_are_not_deferred():
    assert not can_defer(torch.ones(400, 24))
