from __future__ import annotations

import pytest
import torch
from tests.raising import raises

from isoscope.errors import InputError
from isoscope.models.pooling import TOKEN_POOLINGS, pool, pool_padded


@pytest.mark.parametrize("pooling", TOKEN_POOLINGS)
def test_padded_states_pool_as_packed_ones(pooling: str) -> None:
    lengths = torch.tensor([3, 1, 5])
    states = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(5) < lengths[:, None]).long()
    packed = pool(states[mask.bool()], torch.arange(3).repeat_interleave(lengths), pooling=pooling)
    torch.testing.assert_close(pool_padded(states, mask, pooling=pooling), packed)


def test_padding_gets_no_gradient() -> None:
    states = torch.randn(2, 3, 4, requires_grad=True)
    pool_padded(states, torch.tensor([[1, 1, 0], [1, 1, 1]]), pooling="max").sum().backward()
    assert states.grad is not None
    assert not states.grad[0, 2].any()


def test_an_unknown_pooling() -> None:
    with raises(InputError, argument="pooling", wanted="one of mean"):
        pool_padded(torch.zeros(1, 1, 1), torch.ones(1, 1), pooling="sum")
