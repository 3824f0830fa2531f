"""Texts as token numbers ready for training: tokenised once, padded a batch at a time, ordered by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import InputError, ShapeError

Batch = dict[str, Tensor]
_TEXTS_AT_ONCE = 4096
_FIELDS = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True, eq=False)
class Sequences:
    """n tokenised texts, or pairs joined to one.

    Attributes:
        fields: what the model takes besides the attention mask, each a list of n lists of numbers.
        padding: the number of the padding token.
    """

    fields: dict[str, list[list[int]]]
    padding: int

    def __len__(self) -> int:
        return len(self.fields["input_ids"])

    @property
    def lengths(self) -> list[int]:
        """Tokens of each."""
        return [len(ids) for ids in self.fields["input_ids"]]

    def batch(self, places: Sequence[int]) -> Batch:
        """Some of them, padded on the right to the longest."""
        rows = self.fields["input_ids"]
        longest = max(len(rows[place]) for place in places)
        made = {
            name: torch.full((len(places), longest), self.padding if name == "input_ids" else 0)
            for name in self.fields
        }
        mask = torch.zeros((len(places), longest), dtype=torch.int64)
        for row, place in enumerate(places):
            n = len(rows[place])
            mask[row, :n] = 1
            for name, values in self.fields.items():
                made[name][row, :n] = torch.tensor(values[place])
        return made | {"attention_mask": mask}

    def by_length(self, batch_size: int) -> Iterator[tuple[list[int], Batch]]:
        """All of them, those of like length together: the places, and the batch."""
        lengths = self.lengths
        order = sorted(range(len(self)), key=lambda place: (-lengths[place], place))
        for first in range(0, len(order), batch_size):
            places = order[first : first + batch_size]
            yield places, self.batch(places)


def tokenized(
    tokenizer: Any, texts: Sequence[str], seconds: Sequence[str] | None = None, *, max_length: int
) -> Sequences:
    """Texts, or texts with their partners as one sequence, cut to `max_length` tokens."""
    kept: dict[str, list[list[int]]] = {}
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        piece = slice(first, first + _TEXTS_AT_ONCE)
        columns = [list(texts[piece])] if seconds is None else [list(texts[piece]), list(seconds[piece])]
        found = tokenizer(*columns, truncation=True, max_length=max_length, verbose=False)
        for name in _FIELDS:
            if name in found and name != "attention_mask":
                kept.setdefault(name, []).extend(found[name])
    empty = [place for place, ids in enumerate(kept["input_ids"]) if not ids]
    if empty:
        raise InputError(
            f"texts[{empty[0]}] has no tokens ({len(empty):,} of {len(texts):,} have none); wanted words "
            "in each"
        )
    return Sequences(kept, int(tokenizer.pad_token_id))


def checked_texts(texts: Sequence[str], name: str, n: int | None = None) -> list[str]:
    """A list of strings with words in each, as many as wanted."""
    if isinstance(texts, str | bytes):
        raise InputError(f"{name} is one {type(texts).__name__}; wanted a sequence of strings: pass [text]")
    listed = list(texts)
    if not listed:
        raise ShapeError(f"{name} is empty; wanted at least one string")
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputError(f"{name}[{row}] is a {type(text).__name__} ({text!r:.40}); wanted a string")
        if not text.strip():
            raise InputError(f"{name}[{row}] is empty; wanted words in each: leave it out, and its label")
    if n is not None and len(listed) != n:
        raise ShapeError(f"{name} has {len(listed):,} entries for {n:,} texts; wanted one for each")
    return listed


class EpochOrder:
    """Batches of places, in an order of its own for each epoch; the same seed gives the same orders.

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
