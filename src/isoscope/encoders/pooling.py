"""Token states to one vector a text."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.errors import InputError

TOKEN_POOLINGS = ("mean", "max", "cls", "lasttoken")


def pool(states: Tensor, sentences: Tensor, *, pooling: str = "mean") -> Tensor:
    """(S, d) one vector a text from the states of its tokens.

    Args:
        states: (n, d).
        sentences: (n,) int64, the text of each token, 0 … S − 1, in order, none left out.
        pooling: "mean", "max", "cls" (the first token) or "lasttoken".

    >>> pool(torch.tensor([[1.0, 0.0], [3.0, 4.0], [5.0, 5.0]]), torch.tensor([0, 0, 1]), pooling="max")
    tensor([[3., 4.],
            [5., 5.]])
    """
    if pooling not in TOKEN_POOLINGS:
        raise InputError(f"pooling is {pooling!r}; wanted one of {', '.join(TOKEN_POOLINGS)}")
    lengths = torch.bincount(sentences).to(states.device)
    if pooling in ("mean", "max"):
        return torch.segment_reduce(states, pooling, lengths=lengths, axis=0)
    ends = lengths.cumsum(0)
    return states[ends - lengths] if pooling == "cls" else states[ends - 1]
