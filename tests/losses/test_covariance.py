from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from tests.raising import raises
from torch import Tensor, nn

from isoscope.losses import reference_covariance, token_covariance


def test_blocks_are_joined() -> None:
    X = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(reference_covariance(X.split(7)), torch.cov(X.T))


def test_stops_at_max_vectors_and_asks_for_no_more() -> None:
    X = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def blocks() -> Iterator[Tensor]:
        yield X[:20]
        yield X[20:40]
        raise AssertionError("asked for more than was needed")

    torch.testing.assert_close(reference_covariance(blocks(), max_vectors=30), torch.cov(X[:30].T))


def test_masks_leave_tokens_out() -> None:
    states = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])
    found = reference_covariance([(states, mask), (states[:1], torch.zeros(1, 5).long())])
    torch.testing.assert_close(found.float(), torch.cov(states[mask.bool()].T))


def test_nothing_that_counts_is_an_error() -> None:
    with raises(argument="blocks", message="0 vectors", wanted="2"):
        reference_covariance([])
    with raises(argument="blocks", message="0 vectors", wanted="2"):
        reference_covariance([(torch.zeros(1, 2, 3), torch.zeros(1, 2).bool())])


class Model(nn.Module):
    """Two layers of states; dropout shows whether it runs in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.layer, self.dropout = nn.Embedding(9, 4), nn.Linear(4, 4), nn.Dropout(0.9)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, output_hidden_states: bool) -> Any:
        assert output_hidden_states
        assert not torch.is_grad_enabled()
        first = self.table(input_ids)
        return SimpleNamespace(hidden_states=(first, self.dropout(self.layer(first))))


def test_of_a_model_over_a_loader() -> None:
    model = Model().train()
    ids = torch.arange(8).view(2, 4) + 1
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    special = torch.tensor([[1, 0, 0, 0], [1, 0, 0, 0]])
    batch = {"input_ids": ids, "attention_mask": mask}
    states = model.layer(model.table(ids)).detach()
    torch.testing.assert_close(token_covariance(model, [batch]).float(), torch.cov(states[mask.bool()].T))
    assert model.training
    without = token_covariance(model, [batch | {"special_tokens_mask": special}])
    torch.testing.assert_close(without.float(), torch.cov(states[(mask * (1 - special)).bool()].T))
    with raises(message="no attention_mask"):
        token_covariance(model, [{"input_ids": ids}])
    assert model.training
