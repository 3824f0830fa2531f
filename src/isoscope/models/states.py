"""`States`: every hidden state of a model over texts, as a source of vectors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError
from isoscope.metrics.sinks import Sinks, find_sinks, sink_thresholds
from isoscope.models.batches import text_batches, token_batches, usual_batch
from isoscope.models.forward import StateBatch, hidden_states
from isoscope.models.language_models import LanguageModel, load_language_model
from isoscope.models.tokens import tokenize
from isoscope.space import Space


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """The states of some texts in every layer, and which of their tokens are attention sinks.

    Attributes:
        states: what the model returned.
        rows: (m,) int64 on the CPU, the places of the tokens among all.
        norms: (layers, m) lengths in every hidden state, on the model's device.
        sinks: the sinks among the tokens that count.
        is_sink: (m,) bool on the CPU.
    """

    states: StateBatch
    rows: Tensor
    norms: Tensor
    sinks: Sinks
    is_sink: Tensor


class States:
    """The hidden states of a model over texts as a source: one row for each token and layer.

    Nothing is kept: each call of `blocks` runs the model. Rows come batch by batch, in a batch layer by
    layer. Columns are the row's layer, token_type, sentence, position, is_sink, whether the token is an
    attention sink (its vector is over `sink_ratio` times as long as the median in any layer), and view:
    "sinks" or "without sinks". `measure(States(texts), by=("layer", "view"))` slices by them.

    Args:
        texts: strings, none empty (unless they are read as one stream).
        model: a short name, folder, .gguf file or hub id (see `resolve_model`), or a loaded LanguageModel.
        layers: which to take, 0 being the embedding layer and −1 the last; by default all.
        window: join the texts to one stream and cut it into windows of so many tokens.
        truncate: cut texts that are longer than the model takes; else they are refused.
        max_tokens: stop before the text or window that would pass so many.
        padding: also one padding token behind each text that is shorter than the longest.
        special: count special tokens ([CLS], [SEP], <s>) too.
        sinks: count attention sinks too.
        sink_ratio: how many times the median norm makes a token a sink.
        batch_tokens: how many tokens at a time; by default 4,096, and 32,768 on CUDA.
        device: where the model computes; by default a CUDA device where there is one.
        download: fetch the model where it is not on this machine.
    """

    columns = ("layer", "token_type", "sentence", "position", "is_sink", "view")
    labels = weights = None

    def __init__(
        self,
        texts: Sequence[str],
        *,
        model: str | os.PathLike[str] | LanguageModel = "all-MiniLM-L6-v2",
        layers: Iterable[int] | None = None,
        window: int | None = None,
        truncate: bool = False,
        max_tokens: int | None = None,
        padding: bool = False,
        special: bool = False,
        sinks: bool = True,
        sink_ratio: float = 10.0,
        batch_tokens: int | None = None,
        device: str | torch.device | None = None,
        download: bool = False,
    ) -> None:
        self.model = load_language_model(model, device=device, download=download)
        self.tokenized = tokenize(
            texts, self.model, window=window, truncate=truncate, max_tokens=max_tokens, padding=padding
        )
        self.layers = chosen_layers(layers, self.model.n_layers)
        self.sink_ratio, self._with_sinks = sink_ratio, sinks
        at_once = usual_batch(self.model.device) if batch_tokens is None else batch_tokens
        self.groups = text_batches(self.tokenized, at_once)
        known = self.tokenized.rows
        self.counted = ~known.is_padding if special else ~(known.is_padding | known.is_special)

    def __repr__(self) -> str:
        return f"States({self.title}, {len(self.tokenized.ids):,} tokens, {len(self.layers)} layers)"

    @property
    def n_rows(self) -> int | None:
        """How many vectors: the tokens that count, in every layer."""
        if not self._with_sinks and "_is_sink" not in vars(self):
            return None
        return len(self.layers) * int(self._kept.sum())

    @property
    def n_dims(self) -> int:
        """How many dimensions a state has."""
        return self.model.n_dims

    @property
    def n_bytes(self) -> int:
        """What the states take in memory as float32."""
        return 4 * self.n_dims * len(self.layers) * int(self.counted.sum())

    @property
    def identity(self) -> list[Any]:
        """What tells these states from others: the model, its layers, the tokens, the sinks and the batches.

        The batches set the order of the rows, and the first one sets the thresholds of the sinks.
        """
        read = hashlib.sha256(self.tokenized.ids.numpy().tobytes() + self.tokenized.starts.numpy().tobytes())
        kept = hashlib.sha256(self.counted.numpy().tobytes())
        batches = hashlib.sha256(str(self.groups).encode())
        digests = [digest.hexdigest() for digest in (read, kept, batches)]
        return [str(self.model.path), self.layers, self._with_sinks, self.sink_ratio, *digests]

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return self.model.device

    @property
    def notes(self) -> Sequence[str]:
        """What a user should know, such as how many texts were cut."""
        return self.tokenized.notes

    @property
    def title(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    def forward(self) -> Iterator[StateBatch]:
        """Run the model on all texts and yield its hidden states batch by batch, padding still in."""
        return hidden_states(self.model, token_batches(self.tokenized, self.groups))

    def batches(self) -> Iterator[TokenBatch]:
        """Yield the same with the sinks of each batch."""
        return map(self.with_sinks, count(), self.forward())

    def with_sinks(self, number: int, found: StateBatch) -> TokenBatch:
        """Return a batch of `forward` with its sinks, which are judged by the median of batch 0."""
        rows, norms = found.batch.rows, found.norms()
        assert rows is not None
        counted = self.counted[rows]
        of_counted = norms[:, counted.to(norms.device)]
        if number == 0:
            self._thresholds = sink_thresholds(of_counted, ratio=self.sink_ratio)
        known = self.tokenized.rows.select(rows[counted])
        sinks = find_sinks(
            of_counted, positions=known.positions, token_types=known.types, ratio=self.sink_ratio,
            thresholds=self._thresholds,
        )  # fmt: skip
        is_sink = torch.zeros(len(rows), dtype=torch.bool)
        is_sink[counted] = sinks.mask
        return TokenBatch(found, rows, norms, sinks, is_sink)

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the states of a batch, a layer at a time, each a Space that knows types and sentences."""
        for number, found in enumerate(self.forward()):
            rows = found.batch.rows
            assert rows is not None
            chosen = self.counted[rows]
            if not self._with_sinks:
                chosen = chosen & ~self.with_sinks(number, found).is_sink
            known = self.tokenized.rows.select(rows[chosen])
            for layer in self.layers if len(known) else ():
                space = Space(
                    found.rows(layer)[chosen.to(self.device)],
                    token_types=known.types.seen(),
                    sentences=known.sentences.seen(),
                    layer=layer,
                    name=self.name,
                )
                yield from space.blocks(n_rows or len(space))

    def load(self) -> Space:
        """Return all rows as one Space."""
        vectors = torch.cat([block.vectors for block in self.blocks()])
        known = [self.column(name) for name in ("token_type", "sentence")]
        return Space(vectors, token_types=known[0], sentences=known[1], name=self.name)

    def parts(self, n_rows: int) -> Sequence[States]:
        """Return itself: texts that go through the model together are not read alone."""
        del n_rows
        return [self]

    def column(self, name: str) -> Sequence[Any]:
        """Return one value a row; is_sink and view run the model once."""
        if name not in self.columns:
            raise InputError(
                f"there is no column {name!r}; there are {', '.join(self.columns)}", argument="by"
            )
        kept, rows = self._kept, self.tokenized.rows
        batches = (batch.rows for batch in token_batches(self.tokenized, self.groups))
        places = [own[kept[own]] for own in batches if own is not None]
        if name == "layer":
            return [layer for own in places for layer in self.layers for _ in own]
        order = torch.cat([own.repeat(len(self.layers)) for own in places])
        if name == "position":
            return list(rows.positions[order].tolist())
        if name in ("is_sink", "view"):
            marks = self._is_sink[order].tolist()
            return marks if name == "is_sink" else ["sinks" if mark else "without sinks" for mark in marks]
        known = rows.types if name == "token_type" else rows.sentences
        return [known.names[code] for code in known.codes[order].tolist()]

    @property
    def _kept(self) -> Tensor:
        """(n,) bool, the tokens whose states are rows."""
        return self.counted if self._with_sinks else self.counted & ~self._is_sink

    @cached_property
    def _is_sink(self) -> Tensor:
        """(n,) bool, the attention sinks among all tokens."""
        found = torch.zeros(len(self.counted), dtype=torch.bool)
        for batch in self.batches():
            found[batch.rows] = batch.is_sink
        return found


def chosen_layers(layers: Iterable[int] | None, n_layers: int) -> list[int]:
    """Return the layers asked for by number, negative ones from the end; all by default.

    >>> chosen_layers([0, -1], 7)
    [0, 6]
    """
    if layers is None:
        return list(range(n_layers))
    asked = list(layers)
    for layer in asked:
        if not -n_layers <= layer < n_layers:
            raise InputError(
                f"has {layer}; wanted 0 (the embedding layer) … {n_layers - 1}", argument="layers"
            )
    if not asked:
        raise InputError("is empty; wanted at least one", argument="layers")
    return sorted({layer % n_layers for layer in asked})
