"""`BatchStates`: the states of any model on any batches, as a source of vectors."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.errors import InputError, Setting, ShapeError
from isoscope.labels import Labels
from isoscope.models.batches import InputBatch
from isoscope.models.cache import weights_fingerprint
from isoscope.models.forward import OUTPUT, Layer, StateBatch, hidden_states, returns_hidden_states
from isoscope.models.inner import unwrapped
from isoscope.models.language_models import LanguageModel
from isoscope.models.module_names import matching_modules
from isoscope.models.state_budget import StateBudget
from isoscope.models.states import States, TokenBatch, chosen_layers, one_width
from isoscope.models.untouched import device_of
from isoscope.space import Space


class BatchStates(States):
    """The states of any model on batches as a source: one row for each token, patch or frame, and layer.

    No state is stored: each call of `blocks` runs the model on the batches. Padding is left out where the
    batches have an attention mask, and special tokens where the batches have a `special_tokens_mask` or the
    tokenizer is known. The columns are layer, item, position, is_sink and view, as in `States`.

    Args:
        batches: mappings of named inputs, tensors, or tuples that begin with one of them: a list, a
            DataLoader, or an iterator, which can be read once.
        model: any model: of transformers, of timm, or a module or function of your own.
        layers: the numbers of the hidden states, 0 for the embedding layer and −1 for the last; by default
            all.
        modules: measure the outputs of these modules instead: names, patterns such as "blocks.*.attn", or
            "residual", "attention" and "mlp" of every block. A model that returns no hidden states needs it.
        tokenizer: the tokenizer whose special tokens are left out; by default that of a LanguageModel.
        special: also count special tokens ([CLS], [SEP], <s>).
        sinks: also count attention sinks.
        sink_ratio: a vector is an attention sink if its norm exceeds this many times the median.
        name: the name of the model; by default that of its class.
    """

    columns = ("layer", "item", "position", "is_sink", "view")

    def __init__(
        self,
        batches: Iterable[Any],
        *,
        model: Any,
        layers: Iterable[int] | None = None,
        modules: str | Iterable[str] | None = None,
        tokenizer: Any = None,
        special: bool = False,
        sinks: bool = True,
        sink_ratio: float = 10.0,
        name: str | None = None,
    ) -> None:
        if layers is not None and modules is not None:
            raise InputError("cannot be given with modules", argument="layers")
        self._inputs, self._model = batches, model
        of_model = model.tokenizer if isinstance(model, LanguageModel) else None
        self._tokenizer, self._special = of_model if tokenizer is None else tokenizer, special
        self._core = unwrapped(model.model if isinstance(model, LanguageModel) else model)
        self._name = name or str(getattr(self._core, "__name__", type(self._core).__name__))
        self.sink_ratio, self._include_sinks = sink_ratio, sinks
        self._thresholds: dict[int, Tensor] = {}
        self._asked = self._modules(modules)
        self._budget = StateBudget(self._core, of_modules=self._asked is not None)
        self._running: Iterator[StateBatch] | None = hidden_states(model, self._checked(), layers=self._asked)
        began = time.perf_counter()
        first = next(self._running, None)
        self.first_seconds = time.perf_counter() - began
        if first is None:
            raise ShapeError("has no batches", argument="inputs", wanted="at least one batch")
        self._first: StateBatch | None = first
        self._budget.learn(first)
        if special and first.batch.ids is None:
            raise InputError("goes with tokens", argument="special")
        # the same mask: neither a special_tokens_mask nor a tokenizer tells special tokens from others
        self._knows_special = (
            special or first.batch.ids is None or first.batch.counted is not first.batch.present
        )
        keys: list[Any] = list(first.named) or list(range(len(first.hidden)))
        if layers is not None:
            keys = list(chosen_layers(layers, len(first.hidden)))
        self.layers = keys
        grids = {layer: self._grid(first, layer) for layer in keys}
        self.widths = {layer: grid.shape[-1] for layer, grid in grids.items()}
        sets: dict[Any, list[Layer]] = {}
        for layer, grid in grids.items():
            part = layer.partition(".")[0] if isinstance(layer, str) and first.hidden else ""
            sets.setdefault((part, grid.shape[:2]), []).append(layer)
        self._row_sets = list(sets.values())

    def _modules(self, modules: str | Iterable[str] | None) -> list[Layer] | None:
        if modules is None:
            if not returns_hidden_states(self._model):
                raise InputError(
                    f"{self._name} returns no hidden states",
                    hint=Setting("modules", "residual", to="measure the output of every block"),
                )
            return None
        if modules in (OUTPUT, [OUTPUT]):
            return [OUTPUT]
        if not isinstance(self._core, nn.Module):
            raise InputError(
                argument="modules", got=modules, wanted='"output", since the model is a function'
            )
        return list(matching_modules(self._core, modules))

    def _checked(self) -> Iterator[InputBatch]:
        """Yield the batches, large ones in parts, with their items numbered; refuse an empty one."""
        n_items = 0
        for number, batch in enumerate(self._inputs):
            inputs = batch
            if not isinstance(batch, InputBatch):
                inputs = InputBatch.of(batch, tokenizer=self._tokenizer, special=self._special)
            if not len(inputs.items):
                raise ShapeError("is empty", argument=f"inputs[{number}]", wanted="at least one item")
            for part in self._budget.parts(number, inputs):
                items = torch.arange(n_items, n_items + len(part.items))
                yield replace(part, items=items, rows=None)
                n_items += len(items)

    def __repr__(self) -> str:
        return f"BatchStates({self.title}, {len(self.layers)} layers)"

    @property
    def n_rows(self) -> int | None:
        """The number of rows of all layers; None before a pass."""
        return len(self._table["layer"]) if "_table" in vars(self) else None

    @property
    def n_dims(self) -> int:
        """The number of dimensions of a state."""
        return one_width(self.widths)

    @property
    def n_bytes(self) -> int:
        """The size of the states in memory, as float32; 0 before it is known."""
        return 4 * self.n_dims * (self.n_rows or 0)

    @property
    def identity(self) -> list[Any]:
        """The model and its weights, its layers, the sinks and the inputs: all that the rows depend on."""
        digest = hashlib.sha256()
        for batch in self._checked():
            values = batch.inputs.values() if isinstance(batch.inputs, Mapping) else [batch.inputs]
            for value in values:
                content = (
                    value.detach().cpu().contiguous().view(torch.uint8) if isinstance(value, Tensor) else 0
                )
                digest.update(
                    content.numpy().tobytes() if isinstance(content, Tensor) else repr(value).encode()
                )
        return [
            self.name,
            list(map(str, self.layers)),
            self._include_sinks,
            self.sink_ratio,
            digest.hexdigest(),
            weights_fingerprint(getattr(self._core, "__self__", self._core)),
        ]

    @property
    def device(self) -> torch.device:
        """The device that the model runs on."""
        return device_of(getattr(self._core, "__self__", self._core))

    @property
    def notes(self) -> Sequence[str]:
        """Remarks for the user: whether special tokens are counted because they are not known."""
        if self._knows_special:
            return ()
        return ("every token counts, and so do special tokens such as [CLS]: tokenizer= leaves them out",)

    @property
    def title(self) -> str:
        """The model's name."""
        return self._name

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def n_tokens(self) -> int | None:
        """None: the number of rows is not known before the model has run."""
        return None

    @property
    def n_row_sets(self) -> int:
        """The number of sets of layers with the same rows."""
        return len(self._row_sets)

    def forward(self) -> Iterator[StateBatch]:
        """Run the model on all batches and yield its states batch by batch."""
        first, running = self._first, self._running
        self._first = self._running = None
        if first is not None and running is not None:  # the batch that the layers are known from
            yield first
            yield from running
            return
        if isinstance(self._inputs, Iterator):
            raise InputError(
                "is an iterator, which can be read once",
                argument="inputs",
                wanted="a list or a DataLoader, since the batches are read again",
                hint=Setting("memory", to="measure all layers in one pass"),
            )
        yield from hidden_states(self._model, self._checked(), layers=self._asked)

    def row_sets(self, number: int, states: StateBatch) -> Sequence[TokenBatch]:
        """Return a batch of `forward` by the layers that have the same rows, with their attention sinks."""
        return [self._row_set(number, states, index) for index in range(len(self._row_sets))]

    def _row_set(self, number: int, states: StateBatch, index: int) -> TokenBatch:
        layers = self._row_sets[index]
        grids = {layer: self._grid(states, layer) for layer in layers}
        shapes = {grid.shape[:2] for grid in grids.values()}
        if len(shapes) > 1:
            raise ShapeError(
                f"layers {layers[0]} and {layers[-1]} have as many rows in the first batch, but not in batch "
                f"{number}",
                hint="measure them in two calls",
            )
        counted = self._counted_in(states.batch, grids[layers[0]].shape[1])
        places = counted.flatten().nonzero().flatten()
        if not len(places):
            raise ShapeError(
                "has no tokens to count, only special tokens or padding",
                argument=f"inputs[{number}]",
                wanted="at least one",
                hint=Setting("special", True, to="count special tokens"),
            )
        on_device = places.to(grids[layers[0]].device)

        def vectors(layer: Layer) -> Tensor:
            return grids[layer].flatten(0, 1).index_select(0, on_device)

        norms = torch.stack(
            [
                torch.linalg.vector_norm(grid, dim=-1, dtype=torch.float32).flatten()[on_device]
                for grid in grids.values()
            ]
        )
        n_places = counted.shape[1]
        sinks = self._sinks(number, index, norms, layers=layers, positions=places % n_places)
        return TokenBatch(
            layers, vectors, dict(zip(layers, norms, strict=True)), sinks, sinks.mask,
            states.batch.items[places // n_places], places % n_places,
        )  # fmt: skip

    def _grid(self, states: StateBatch, layer: Layer) -> Tensor:
        """Return the (items, places, d) states of a layer; the channels of an image are its dimensions."""
        values, n_items = states[layer], len(states.batch.items)
        if values.ndim == 2:
            values = values[:, None]
        elif values.ndim == 4:
            is_last = getattr(self._core, "output_fmt", "NCHW") == "NHWC"
            values = values.flatten(1, 2) if is_last else values.flatten(2).transpose(1, 2)
        if values.ndim != 3 or values.shape[0] != n_items or not values.is_floating_point():
            raise ShapeError(
                f"the output of layer {layer} has shape {tuple(states[layer].shape)} for {n_items} items",
                wanted="(items, d), (items, tokens, d) or (items, channels, height, width)",
                hint=Setting("modules", to="name other modules"),
            )
        return values

    def _counted_in(self, batch: InputBatch, n_places: int) -> Tensor:
        """Return the (items, places) mask of the rows that are counted."""
        shape = (len(batch.items), n_places)
        if batch.counted is not None and batch.counted.shape == shape:
            return batch.counted.cpu()
        mask = batch.inputs.get("attention_mask") if isinstance(batch.inputs, Mapping) else None
        if mask is None or mask.ndim != 2 or mask.shape[1] <= n_places or batch.ids is not None:
            return torch.ones(shape, dtype=torch.bool)
        frames = getattr(self._core, "_get_feature_vector_attention_mask", None)
        if frames is not None:  # the frames of wav2vec 2.0 are shorter than its strides
            return frames(n_places, mask.long()).bool().cpu()
        return mask[:, torch.arange(n_places) * mask.shape[1] // n_places].bool().cpu()

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the states batch by batch and layer by layer, as Spaces with the items as sentences."""
        for number, states in enumerate(self.forward()):
            for batch in self.row_sets(number, states):
                kept = ~batch.is_sink if not self._include_sinks else torch.ones_like(batch.is_sink)
                items = batch.items[kept].tolist()
                for layer in batch.layers if items else ():
                    vectors = batch.vectors(layer)[kept.to(self.device)].float()
                    labels = Labels(torch.tensor(items) - items[0], tuple(range(items[0], items[-1] + 1)))
                    space = Space(vectors, sentences=labels.seen(), layer=layer, name=self.name)
                    yield from space.blocks(n_rows or len(space))

    def load(self) -> Space:
        """Return all rows as one Space."""
        vectors = torch.cat([block.vectors for block in self.blocks()])
        return Space(vectors, sentences=self.column("item"), name=self.name)

    def column(self, name: str) -> Sequence[Any]:
        """Return the values of a column, one for each row, after one pass over the batches."""
        if name not in self.columns:
            raise InputError(argument="by", got=name, wanted=f"one of {', '.join(self.columns)}")
        return self._table[name]

    @cached_property
    def _table(self) -> dict[str, list[Any]]:
        """The columns of all rows, in the order of `blocks`."""
        table: dict[str, list[Any]] = {name: [] for name in self.columns}
        for number, states in enumerate(self.forward()):
            for batch in self.row_sets(number, states):
                assert batch.rows is not None
                kept = ~batch.is_sink if not self._include_sinks else torch.ones_like(batch.is_sink)
                marks = batch.is_sink[kept].tolist()
                for layer in batch.layers:
                    table["layer"] += [layer] * len(marks)
                    table["item"] += batch.items[kept].tolist()
                    table["position"] += batch.rows[kept].tolist()
                    table["is_sink"] += marks
                    table["view"] += ["sinks" if mark else "without sinks" for mark in marks]
        return table
