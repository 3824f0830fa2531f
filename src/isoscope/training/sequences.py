"""Tokenised texts for training: padded by batch, in an order that depends on the epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import InputError

Batch = dict[str, Tensor]
_TEXTS_AT_ONCE = 4096
_FIELDS = ("input_ids", "token_type_ids")


@dataclass(frozen=True, eq=False)
class Sequences:
    """The tokens of n texts, or of pairs joined to one sequence, concatenated.

    Attributes:
        fields: the inputs of the model but the attention mask, each (tokens,) int64.
        starts: (n + 1,) int64; text i has the tokens starts[i] … starts[i + 1] − 1.
        padding: the id of the padding token.
    """

    fields: dict[str, Tensor]
    starts: Tensor
    padding: int

    @classmethod
    def of(cls, fields: Mapping[str, Sequence[Sequence[int]]], padding: int) -> Sequences:
        """Concatenate one list of numbers per field and text."""
        lengths = torch.tensor([0, *map(len, fields["input_ids"])])
        flat = {name: torch.tensor(list(chain.from_iterable(rows))) for name, rows in fields.items()}
        return cls(flat, lengths.cumsum(0), padding)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Tensor:
        """(n,) number of tokens of each text."""
        return self.starts.diff()

    def batch(self, places: Sequence[int]) -> Batch:
        """Return some texts, padded on the right to the longest."""
        chosen = torch.tensor(places)
        lengths = self.lengths[chosen][:, None]
        steps = torch.arange(int(lengths.max()))
        present = steps < lengths
        tokens = (self.starts[chosen][:, None] + steps).where(present, 0)
        made = {
            name: values[tokens].where(present, self.padding if name == "input_ids" else 0)
            for name, values in self.fields.items()
        }
        return made | {"attention_mask": present.long()}

    def by_length(self, batch_size: int) -> Iterator[tuple[list[int], Batch]]:
        """Yield the row numbers and the batch of texts of similar length, longest first."""
        order = self.lengths.argsort(descending=True, stable=True).tolist()
        for first in range(0, len(order), batch_size):
            places = order[first : first + batch_size]
            yield places, self.batch(places)


def tokenized(
    tokenizer: Any,
    texts: Sequence[str],
    seconds: Sequence[str] | None = None,
    *,
    max_length: int,
    segments: bool = False,
) -> Sequences:
    """Tokenise texts, or pairs of texts as one sequence, truncated to `max_length` tokens.

    segments: whether the model uses token_type_ids, which say to which of two texts a token belongs. Some
    tokenizers return them for any model, and GPT-2 would take them for tokens.
    """
    fields: dict[str, list[list[int]]] = {}
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        piece = slice(first, first + _TEXTS_AT_ONCE)
        columns = [list(texts[piece])] if seconds is None else [list(texts[piece]), list(seconds[piece])]
        encoded = tokenizer(
            *columns, truncation=True, max_length=max_length, return_token_type_ids=segments, verbose=False
        )
        for name in _FIELDS if segments else _FIELDS[:1]:
            if name in encoded:
                fields.setdefault(name, []).extend(encoded[name])
    empty = [place for place, ids in enumerate(fields["input_ids"]) if not ids]
    if empty:
        raise InputError(
            f"has no tokens ({len(empty):,} of {len(texts):,} texts have none)",
            argument=f"texts[{empty[0]}]",
            wanted="at least one word in each text",
        )
    return Sequences.of(fields, int(tokenizer.pad_token_id))


class EpochOrder:
    """Batches of row numbers, in a new order for each epoch; the same seed gives the same orders.

    >>> order = EpochOrder(4, 2, seed=0)
    >>> sorted(sum(order, [])), len(order)
    ([0, 1, 2, 3], 2)
    """

    def __init__(self, n: int, batch_size: int, *, seed: int, drop_last: bool = False) -> None:
        self.n, self.batch_size, self.seed, self.drop_last = n, batch_size, seed, drop_last
        self.epoch = 0

    def __len__(self) -> int:
        whole, rest = divmod(self.n, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        source = np.random.SeedSequence([self.seed, self.epoch, *b"order"])
        order = np.random.default_rng(source).permutation(self.n).tolist()
        for batch in range(len(self)):
            yield order[batch * self.batch_size : (batch + 1) * self.batch_size]
