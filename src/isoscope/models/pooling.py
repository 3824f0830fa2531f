"""Pool the states of a text's tokens into one vector."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.errors import check_choice

TOKEN_POOLINGS = ("mean", "max", "cls", "lasttoken")


def pool(states: Tensor, sentences: Tensor, *, pooling: str = "mean") -> Tensor:
    """Return (S, d) vectors, one for each text, from the states of its tokens.

    Args:
        states: (n, d).
        sentences: (n,) int64, the number of each token's text, 0 … S − 1 in ascending order, without gaps.
        pooling: "mean", "max", "cls" (the first token) or "lasttoken".

    >>> pool(torch.tensor([[1.0, 0.0], [3.0, 4.0], [5.0, 5.0]]), torch.tensor([0, 0, 1]), pooling="max")
    tensor([[3., 4.],
            [5., 5.]])
    """
    check_choice("pooling", pooling, TOKEN_POOLINGS)
    lengths = torch.bincount(sentences).to(states.device)
    if pooling in ("mean", "max"):
        return torch.segment_reduce(states, pooling, lengths=lengths, axis=0)
    ends = lengths.cumsum(0)
    return states[ends - lengths] if pooling == "cls" else states[ends - 1]


def pool_padded(states: Tensor, mask: Tensor, *, pooling: str = "mean") -> Tensor:
    """Return (S, d) vectors from states that are padded on the right, without a device synchronization.

    Args:
        states: (S, T, d).
        mask: (S, T) 1 for tokens and 0 for padding; each text has at least one token.
        pooling: as in `pool`.

    >>> states = torch.tensor([[[1.0, 0.0], [3.0, 4.0]], [[5.0, 5.0], [9.0, 9.0]]])
    >>> pool_padded(states, torch.tensor([[1, 1], [1, 0]]), pooling="mean")
    tensor([[2., 2.],
            [5., 5.]])
    """
    check_choice("pooling", pooling, TOKEN_POOLINGS)
    present = mask.bool().unsqueeze(-1)
    if pooling == "mean":
        return (states * present).sum(dim=1) / mask.sum(dim=1, keepdim=True)
    if pooling == "max":
        return states.masked_fill(~present, -torch.inf).amax(dim=1)
    if pooling == "cls":
        return states[:, 0]
    last = mask.sum(dim=1) - 1
    return states[torch.arange(len(states), device=states.device), last]
