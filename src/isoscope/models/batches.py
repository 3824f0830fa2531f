"""Items in batches, as a model takes them: token numbers padded to one length, with what is known of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError
from isoscope.models.tokens import Tokenized

BATCH_TOKENS, CUDA_BATCH_TOKENS = 4096, 32768
_TEXTS_SORTED = 2048  # texts of one length are put together within so many


@dataclass(frozen=True, eq=False)
class InputBatch:
    """Some items, as a model takes them.

    Attributes:
        inputs: arguments by name, a tensor, or texts.
        items: (b,) int64, the places of the items among all.
        ids: (b, t) the number of each token; None where items have no tokens.
        present: (b, t) bool, the tokens that are no padding; None where ids is.
        counted: (b, t) bool, the tokens that are measured; None where ids is.
        rows: (m,) int64, the places of the tokens present among all tokens, where those are numbered.
    """

    inputs: Any
    items: Tensor
    ids: Tensor | None = None
    present: Tensor | None = None
    counted: Tensor | None = None
    rows: Tensor | None = None

    @classmethod
    def of(
        cls, inputs: Mapping[str, Any], items: Tensor | None = None, *, special_ids: Sequence[int] = ()
    ) -> InputBatch:
        """Return a batch of named inputs.

        Padding is what `attention_mask` leaves out. Special tokens are not counted: those marked in
        `special_tokens_mask`, else those with a number in `special_ids`.
        """
        own = dict(inputs)
        special, ids = own.pop("special_tokens_mask", None), own.get("input_ids")
        if items is None:
            items = torch.arange(len(next(iter(own.values()))))
        if ids is None:
            return cls(own, items)
        mask = own.get("attention_mask")
        present = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
        if special is None and len(special_ids):
            special = torch.isin(ids, torch.tensor(special_ids, dtype=ids.dtype))
        return cls(own, items, ids, present, present if special is None else present & ~special.bool())


def token_batches(
    tokenized: Tokenized, groups: Sequence[Sequence[int]], *, special: bool = False
) -> Iterator[InputBatch]:
    """Yield the texts of each group as a batch; special tokens are counted if `special` is true."""
    known = tokenized.rows
    counted = ~known.is_padding if special else ~(known.is_padding | known.is_special)
    for texts in groups:
        lengths = tokenized.lengths[list(texts)]
        present = torch.arange(int(lengths.max())) < lengths[:, None]
        rows = torch.cat([torch.arange(*tokenized.starts[s : s + 2].tolist()) for s in texts])
        ids = torch.zeros(present.shape, dtype=torch.int64)  # behind the end token 0, not attended to
        ids[present] = tokenized.ids[rows]
        attended, measured = present.clone(), present.clone()
        attended[present], measured[present] = ~known.is_padding[rows], counted[rows]
        inputs = {"input_ids": ids, "attention_mask": attended.long()}
        yield InputBatch(inputs, torch.tensor(texts), ids, present, measured, rows)


def usual_batch(device: torch.device) -> int:
    """Return how many tokens go through a model at a time: many on CUDA, where each launch has its price."""
    return CUDA_BATCH_TOKENS if device.type == "cuda" else BATCH_TOKENS


def text_batches(tokenized: Tokenized, batch_tokens: int) -> list[list[int]]:
    """Return which texts go together: of one length where possible, near the order they came in.

    A batch has at most `batch_tokens` tokens, padding included; a single longer text is one batch.
    """
    if batch_tokens < 1:
        raise InputError(f"batch_tokens is {batch_tokens}; wanted at least one token a batch")
    lengths = tokenized.lengths.tolist()
    batches: list[list[int]] = []
    for start in range(0, len(lengths), _TEXTS_SORTED):
        chunk = sorted(range(start, min(start + _TEXTS_SORTED, len(lengths))), key=lambda s: -lengths[s])
        while chunk:
            n = max(1, batch_tokens // lengths[chunk[0]])
            batches.append(chunk[:n])
            chunk = chunk[n:]
    return batches
