"""Batches of inputs for a model: token ids padded to one length, and masks of the tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError
from isoscope.models.tokens import Tokenized

BATCH_TOKENS, CUDA_BATCH_TOKENS = 4096, 32768
_SORTED_TEXTS = 2048  # texts are sorted by length within chunks of this size


@dataclass(frozen=True, eq=False)
class InputBatch:
    """A batch of items.

    Attributes:
        inputs: the arguments of the model by name, a tensor, or texts.
        items: (b,) int64, the position of each item among all items.
        ids: (b, t) token ids; None where the items have no tokens.
        present: (b, t) bool, the tokens that are not padding; None where `ids` is None.
        counted: (b, t) bool, the tokens that are measured; None where `ids` is None.
        rows: (m,) int64, the position of each token that is present among all tokens, where it is known.
    """

    inputs: Any
    items: Tensor
    ids: Tensor | None = None
    present: Tensor | None = None
    counted: Tensor | None = None
    rows: Tensor | None = None

    @classmethod
    def of(
        cls, inputs: Any, items: Tensor | None = None, *, tokenizer: Any = None, special: bool = False
    ) -> InputBatch:
        """Return a batch of named inputs, of a tensor, or of the first entry of a tuple (inputs, labels, …).

        Tokens that `attention_mask` excludes are padding. Special tokens are not counted unless `special` is
        true: those marked in `special_tokens_mask`, or without it those of the tokenizer, where there is one.
        """
        if isinstance(inputs, tuple | list) and inputs:
            inputs = inputs[0]
        if not isinstance(inputs, Mapping):
            return cls(inputs, torch.arange(len(inputs)) if items is None else items)
        arguments = dict(inputs)
        marks, ids = arguments.pop("special_tokens_mask", None), arguments.get("input_ids")
        if not arguments:
            raise InputError("is an empty mapping", argument="inputs", wanted="inputs by name")
        if items is None:
            items = torch.arange(len(next(iter(arguments.values()))))
        if ids is None:
            return cls(arguments, items)
        mask = arguments.get("attention_mask")
        present = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
        if marks is None and tokenizer is not None:
            marks = torch.isin(ids, torch.tensor(_special_ids(tokenizer), dtype=ids.dtype, device=ids.device))
        counted = present if special or marks is None else present & ~marks.bool()
        return cls(arguments, items, ids, present, counted)

    @property
    def n_inputs(self) -> int:
        """The number of token ids, or of numbers in the first input."""
        values = self.inputs.values() if isinstance(self.inputs, Mapping) else [self.inputs]
        tensors = [value for value in values if isinstance(value, Tensor)]
        return self.ids.numel() if self.ids is not None else tensors[0].numel() if tensors else 0

    def parts(self, n_parts: int) -> Iterator[InputBatch]:
        """Yield the items in up to so many batches; one where an input is not a tensor by item.

        >>> batch = InputBatch.of({"input_ids": torch.zeros(5, 3, dtype=torch.int64)})
        >>> [part.items.tolist() for part in batch.parts(2)]
        [[0, 1, 2], [3, 4]]
        """
        n = len(self.items)
        values = list(self.inputs.values()) if isinstance(self.inputs, Mapping) else [self.inputs]
        if n_parts < 2 or not all(isinstance(value, Tensor) and len(value) == n for value in values):
            yield self
            return
        size = -(-n // min(n_parts, n))
        of_items = self.inputs, self.items, self.ids, self.present, self.counted
        for start in range(0, n, size):
            yield InputBatch(*(_rows(values, slice(start, start + size)) for values in of_items))


def _rows(value: Any, part: slice) -> Any:
    if isinstance(value, Mapping):
        return {name: _rows(one, part) for name, one in value.items()}
    return None if value is None else value[part]


def _special_ids(tokenizer: Any) -> list[int]:
    """Return the ids of special tokens; the unknown token is not one of them, since it stands for a word."""
    return sorted(set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})


def token_batches(
    tokenized: Tokenized, groups: Sequence[Sequence[int]], *, special: bool = False
) -> Iterator[InputBatch]:
    """Yield the texts of each group as a batch; special tokens are counted if `special` is true."""
    tokens = tokenized.rows
    counted = ~tokens.is_padding if special else ~(tokens.is_padding | tokens.is_special)
    for texts in groups:
        lengths = tokenized.lengths[list(texts)]
        present = torch.arange(int(lengths.max())) < lengths[:, None]
        rows = torch.cat([torch.arange(*tokenized.starts[s : s + 2].tolist()) for s in texts])
        ids = torch.zeros(present.shape, dtype=torch.int64)  # padding has id 0 and is masked
        ids[present] = tokenized.ids[rows]
        attended, measured = present.clone(), present.clone()
        attended[present], measured[present] = ~tokens.is_padding[rows], counted[rows]
        inputs = {"input_ids": ids, "attention_mask": attended.long()}
        if tokenized.sources is not None:
            read = torch.zeros_like(ids)
            read[present] = tokenized.sources[rows]
            inputs = {"input_ids": read, "attention_mask": present.long(), "decoder_input_ids": ids}
        yield InputBatch(inputs, torch.tensor(texts), ids, present, measured, rows)


def usual_batch(device: torch.device) -> int:
    """Return the default number of tokens in a batch; it is larger on CUDA, where each launch has a cost."""
    return CUDA_BATCH_TOKENS if device.type == "cuda" else BATCH_TOKENS


def text_batches(tokenized: Tokenized, batch_tokens: int) -> list[list[int]]:
    """Return the texts of each batch: of similar length, and near to each other in their order.

    A batch has at most `batch_tokens` tokens, including padding; a longer text is a batch on its own.
    """
    if batch_tokens < 1:
        raise InputError(argument="batch_tokens", got=batch_tokens, wanted="at least 1")
    lengths = tokenized.lengths.tolist()
    batches: list[list[int]] = []
    for start in range(0, len(lengths), _SORTED_TEXTS):
        chunk = sorted(range(start, min(start + _SORTED_TEXTS, len(lengths))), key=lambda s: -lengths[s])
        while chunk:
            n = max(1, batch_tokens // lengths[chunk[0]])
            batches.append(chunk[:n])
            chunk = chunk[n:]
    return batches
