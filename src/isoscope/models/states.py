"""`States`: the hidden states of a model on texts, as a source of vectors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError, NotFiniteError, Setting, ShapeError
from isoscope.metrics.sinks import Sinks, find_sinks, sink_thresholds
from isoscope.models.batches import text_batches, token_batches, usual_batch
from isoscope.models.cache import weights_fingerprint
from isoscope.models.forward import Layer, StateBatch, hidden_states
from isoscope.models.language_models import LanguageModel, load_language_model
from isoscope.models.module_names import matching_modules
from isoscope.models.state_budget import most_state_bytes
from isoscope.models.tokens import tokenize
from isoscope.models.untouched import dtype_of
from isoscope.space import Space


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """The states of one batch, for layers with the same rows, and the attention sinks among them.

    Attributes:
        layers: the layers that are measured.
        vectors: a function from a layer to the (m, d) states in their type, on the model's device.
        norms: by layer, the (m,) norms of the states, on the model's device.
        sinks: the attention sinks among the rows that are counted.
        is_sink: (m,) bool on the CPU.
        items: (m,) int64 on the CPU, the item (text, image, …) of each row.
        rows: (m,) int64 on the CPU, the position of each token among all tokens, where it is known.
    """

    layers: Sequence[Layer]
    vectors: Callable[[Layer], Tensor]
    norms: Mapping[Layer, Tensor]
    sinks: Sinks
    is_sink: Tensor
    items: Tensor
    rows: Tensor | None = None


class States:
    """The hidden states of a model on texts as a source: one row for each token and layer.

    No state is stored: each call of `blocks` runs the model. Rows come batch by batch, and within a batch
    layer by layer. The columns, which `measure(States(texts), by=("layer", "view"))` slices by, are:

    - layer, token_type, sentence, position: where the state comes from;
    - is_sink: whether the token is an attention sink: in some layer its norm exceeds `sink_ratio` times the
      median;
    - view: "sinks" for attention sinks, "without sinks" for all other tokens.

    Args:
        texts: strings; empty ones are allowed only with `window`.
        model: a short name, folder, .gguf file or hub id (see `resolve_model`), or a loaded LanguageModel.
        layers: the numbers of the layers, 0 for the embedding layer and −1 for the last; by default all.
        modules: measure the outputs of these modules instead: names, patterns such as
            "encoder.layer.*.attention", or "residual", "attention" and "mlp" of every block.
        window: join the texts into one stream and cut it into windows of this many tokens.
        truncate: truncate texts that exceed the model's maximum length; otherwise they raise an error.
        max_tokens: stop before the text or window that would exceed this many tokens.
        padding: add one padding token to each text that is shorter than the longest of all texts, as in the
            protocol of Xiao et al. 2023.
        special: also count special tokens ([CLS], [SEP], <s>).
        sinks: also count attention sinks.
        sink_ratio: a token is an attention sink if its norm exceeds this many times the median.
        batch_tokens: tokens in a batch; by default 4,096, and 32,768 on CUDA, or fewer in a large model.
        device: the device to run the model on; by default a CUDA device if there is one.
        download: download the model if it is not on this machine.
    """

    columns: tuple[str, ...] = ("layer", "token_type", "sentence", "position", "is_sink", "view")
    labels = weights = None
    first_seconds = 0.0  # the time in the model before the first pass

    def __init__(
        self,
        texts: Sequence[str],
        *,
        model: str | os.PathLike[str] | LanguageModel = "all-MiniLM-L6-v2",
        layers: Iterable[int] | None = None,
        modules: str | Iterable[str] | None = None,
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
        self.layers: list[Any] = chosen_layers(layers, self.model.n_layers)
        if modules is not None:
            if layers is not None:
                raise InputError("cannot be given with modules", argument="layers")
            self.layers = matching_modules(self.model.model, modules)
        self._of_modules = modules is not None
        self.sink_ratio, self._include_sinks = sink_ratio, sinks
        self._thresholds: dict[int, Tensor] = {}
        if batch_tokens is None:
            dtype, n_dims = dtype_of(self.model.model) or torch.float32, self.model.n_dims
            most = most_state_bytes(self.model.device, n_dims) // (
                self.model.n_layers * n_dims * dtype.itemsize
            )
            batch_tokens = max(1, min(usual_batch(self.model.device), most))
        self.groups = text_batches(self.tokenized, batch_tokens)
        tokens = self.tokenized.rows
        self.counted = ~tokens.is_padding if special else ~(tokens.is_padding | tokens.is_special)

    def __repr__(self) -> str:
        return f"States({self.title}, {len(self.tokenized.ids):,} tokens, {len(self.layers)} layers)"

    @property
    def n_rows(self) -> int | None:
        """The number of tokens that are counted, times the number of layers; None until sinks are found."""
        if not self._include_sinks and "_is_sink" not in vars(self):
            return None
        return len(self.layers) * int(self._is_row.sum())

    @property
    def n_dims(self) -> int:
        """The number of dimensions of a state."""
        return one_width(self.widths)

    @cached_property
    def widths(self) -> dict[Layer, int]:
        """The number of dimensions of each layer."""
        if not self._of_modules:
            return dict.fromkeys(self.layers, self.model.n_dims)
        first = next(hidden_states(self.model, token_batches(self.tokenized, [[0]]), layers=self.layers))
        return {layer: first[layer].shape[-1] for layer in self.layers}

    @property
    def n_bytes(self) -> int:
        """The size of the states in memory, as float32."""
        return 4 * self.n_dims * len(self.layers) * int(self.counted.sum())

    @property
    def identity(self) -> list[Any]:
        """The model and its weights, its layers, the tokens, the sinks and the batches.

        These are all that the rows depend on: the batches determine their order, and the first batch the
        thresholds of the sinks.
        """
        contents = (
            self.tokenized.ids.numpy().tobytes() + self.tokenized.starts.numpy().tobytes(),
            self.counted.numpy().tobytes(),
            str(self.groups).encode(),
        )
        digests = [hashlib.sha256(content).hexdigest() for content in contents]
        digests.append(weights_fingerprint(self.model.model))
        return [str(self.model.path), self.layers, self._include_sinks, self.sink_ratio, *digests]

    @property
    def device(self) -> torch.device:
        """The device that the model runs on."""
        return self.model.device

    @property
    def notes(self) -> Sequence[str]:
        """Remarks for the user, such as how many texts were truncated."""
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
        """Run the model on all texts and yield its hidden states batch by batch, with padding."""
        chosen = self.layers if self._of_modules else None
        return hidden_states(self.model, token_batches(self.tokenized, self.groups), layers=chosen)

    @property
    def n_tokens(self) -> int | None:
        """The number of tokens that pass through the model; None if it is not known in advance."""
        return len(self.counted)

    def row_sets(self, number: int, states: StateBatch) -> Sequence[TokenBatch]:
        """Split a batch of `forward` into groups of layers with the same rows; here there is one group."""
        return [self.with_sinks(number, states)]

    def batches(self) -> Iterator[TokenBatch]:
        """Run the model on all texts and yield the batches of `forward` with their attention sinks."""
        return map(self.with_sinks, count(), self.forward())

    def with_sinks(self, number: int, states: StateBatch) -> TokenBatch:
        """Return a batch of `forward` with its attention sinks; batch 0 determines the thresholds."""
        rows, norms = states.batch.rows, self._norms(states)
        assert rows is not None
        counted = self.counted[rows]
        of_counted = norms[:, counted.to(norms.device)]
        tokens = self.tokenized.rows.select(rows[counted])
        layers = self.layers if self._of_modules else range(len(norms))
        sinks = self._sinks(
            number, 0, of_counted, layers=layers, positions=tokens.positions, token_types=tokens.types
        )
        is_sink = torch.zeros(len(rows), dtype=torch.bool)
        is_sink[counted] = sinks.mask
        by_layer = dict(zip(layers, norms, strict=True))
        items = self.tokenized.rows.sentences.codes[rows]
        return TokenBatch(self.layers, states.kept, by_layer, sinks, is_sink, items, rows)

    def _norms(self, states: StateBatch) -> Tensor:
        """Return the (layers, m) norms in all hidden states, or in the modules that are measured."""
        if not self._of_modules:
            return states.norms()
        for layer in self.layers:
            if states[layer].ndim != 3 or states[layer].shape[:2] != states.batch.inputs["input_ids"].shape:
                raise ShapeError(
                    f"the output of {layer} has shape {tuple(states[layer].shape)}",
                    wanted="one vector for each token",
                    hint=Setting("modules", to="name other modules"),
                )
        return torch.stack([states.rows(layer).norm(dim=1) for layer in self.layers])

    def _sinks(self, number: int, row_set: int, norms: Tensor, **about: Any) -> Sinks:
        """Return the tokens whose norm makes them sinks; batch 0 sets the thresholds of each set of rows."""
        try:
            if number == 0:
                self._thresholds[row_set] = sink_thresholds(norms, ratio=self.sink_ratio)
            return find_sinks(norms, ratio=self.sink_ratio, thresholds=self._thresholds[row_set], **about)
        except NotFiniteError:
            raise self._not_finite(norms, about["layers"]) from None

    def _not_finite(self, norms: Tensor, layers: Sequence[Layer]) -> NotFiniteError:
        """Return the error that names the layers whose norms are not finite."""
        bad = (~norms.isfinite()).any(dim=1).nonzero().flatten().tolist()
        others = f", and {len(bad) - 1} other layers" if len(bad) > 1 else ""
        return NotFiniteError(
            f"layer {layers[bad[0]]}{others} of {self.name} has states with NaN or infinity",
            hint=Setting("dtype", "float32", to="avoid overflow"),
        )

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the states batch by batch and layer by layer, as Spaces with token types and sentences."""
        for number, batch in enumerate(self.forward()):
            rows = batch.batch.rows
            assert rows is not None
            chosen = self.counted[rows]
            if not self._include_sinks:
                chosen = chosen & ~self.with_sinks(number, batch).is_sink
            tokens = self.tokenized.rows.select(rows[chosen])
            for layer in self.layers if len(tokens) else ():
                space = Space(
                    batch.rows(layer)[chosen.to(self.device)],
                    token_types=tokens.types.seen(),
                    sentences=tokens.sentences.seen(),
                    layer=layer,
                    name=self.name,
                )
                yield from space.blocks(n_rows or len(space))

    def load(self) -> Space:
        """Return all rows as one Space."""
        vectors = torch.cat([block.vectors for block in self.blocks()])
        token_types, sentences = (self.column(name) for name in ("token_type", "sentence"))
        return Space(vectors, token_types=token_types, sentences=sentences, name=self.name)

    def parts(self, n_rows: int) -> Sequence[States]:
        """Return one part, the source itself: the batches depend on all texts."""
        del n_rows
        return [self]

    def column(self, name: str) -> Sequence[Any]:
        """Return the values of a column, one for each row; is_sink and view run the model once."""
        if name not in self.columns:
            raise InputError(argument="by", got=name, wanted=f"one of {', '.join(self.columns)}")
        counted, rows = self._is_row, self.tokenized.rows
        batches = (batch.rows for batch in token_batches(self.tokenized, self.groups))
        by_batch = [batch[counted[batch]] for batch in batches if batch is not None]
        if name == "layer":
            return [layer for batch in by_batch for layer in self.layers for _ in batch]
        order = torch.cat([batch.repeat(len(self.layers)) for batch in by_batch])
        if name == "position":
            return list(rows.positions[order].tolist())
        if name in ("is_sink", "view"):
            marks = self._is_sink[order].tolist()
            return marks if name == "is_sink" else ["sinks" if mark else "without sinks" for mark in marks]
        labels = rows.types if name == "token_type" else rows.sentences
        return [labels.names[code] for code in labels.codes[order].tolist()]

    @property
    def _is_row(self) -> Tensor:
        """(n,) bool, the tokens whose states are rows of the source."""
        return self.counted if self._include_sinks else self.counted & ~self._is_sink

    @cached_property
    def _is_sink(self) -> Tensor:
        """(n,) bool, the attention sinks among all tokens."""
        is_sink = torch.zeros(len(self.counted), dtype=torch.bool)
        for batch in self.batches():
            assert batch.rows is not None
            is_sink[batch.rows] = batch.is_sink
        return is_sink


def one_width(widths: Mapping[Layer, int]) -> int:
    """Return the number of dimensions that all layers have; raise ShapeError if they differ."""
    if len(set(widths.values())) > 1:
        first, last = min(widths, key=widths.__getitem__), max(widths, key=widths.__getitem__)
        raise ShapeError(
            f"layer {first} has {widths[first]} dimensions and layer {last} has {widths[last]}",
            wanted="layers of one width",
            hint="measure each layer with isoscope.layers",
        )
    return next(iter(widths.values()))


def chosen_layers(layers: Any, n_layers: int) -> list[int]:
    """Return the numbers of the chosen layers in ascending order; negative ones count from the end.

    >>> chosen_layers([0, -1], 7)
    [0, 6]
    """
    if layers is None:
        return list(range(n_layers))
    chosen: list[Any] = list(layers) if isinstance(layers, Iterable) else [layers]
    for layer in chosen:
        if not isinstance(layer, Integral) or not -n_layers <= int(layer) < n_layers:
            wanted = f"numbers from 0 (the embedding layer) to {n_layers - 1}"
            raise InputError(argument="layers", got=layer, wanted=wanted)
    if not chosen:
        raise InputError(argument="layers", got=chosen, wanted="at least one layer")
    return sorted({int(layer) % n_layers for layer in chosen})
