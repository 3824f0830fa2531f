"""States of chosen layers of any model on a probe: hidden states by number, modules by name, the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError, ShapeError
from isoscope.metrics.sinks import sink_thresholds
from isoscope.models.batches import InputBatch
from isoscope.models.forward import Layer, StateBatch, hidden_states
from isoscope.models.pooling import pool

_NO_SINKS = (
    "sinks are found among token states: wanted a model with hidden states, layers by number, "
    "and pooling=None"
)


@dataclass(frozen=True, eq=False)
class LayerRows:
    """The vectors of a layer, and what each is of.

    Attributes:
        vectors: (n, d), on the model's device.
        items: (n,) int64 on the CPU, the item of the probe each belongs to.
        ids: (n,) int64 on the CPU, the token each is the state of; None where a vector is of a whole item.
        is_sink: (n,) bool on the CPU, the attention sinks; None where they were not asked for.
    """

    vectors: Tensor
    items: Tensor
    ids: Tensor | None
    is_sink: Tensor | None = None

    def without_sinks(self) -> LayerRows:
        """The rows that are no attention sinks."""
        if self.is_sink is None:
            return self
        kept = ~self.is_sink
        vectors = self.vectors[kept.to(self.vectors.device)]
        return LayerRows(vectors, self.items[kept], None if self.ids is None else self.ids[kept])


def layer_rows(
    model: Any,
    batches: Sequence[InputBatch],
    layers: Sequence[Layer],
    *,
    pooling: str | None = None,
    sinks: bool = False,
) -> dict[Layer, LayerRows]:
    """The rows of each layer asked for, over all batches.

    Args:
        model: see `unwrapped`; whatever is callable is called.
        batches: what it is called with.
        layers: whole numbers for hidden states (0 the embedding layer, −1 the last), names of modules, or
            "output". A model without hidden states has one layer by number: −1, its output.
        pooling: token states to one vector an item; None leaves the tokens.
        sinks: find the attention sinks among the tokens, by their norms in all hidden states.
    """
    if sinks and (pooling is not None or any(isinstance(layer, str) for layer in layers)):
        raise InputError(_NO_SINKS)
    parts: dict[Layer, list[LayerRows]] = {layer: [] for layer in layers}
    norms: list[Tensor] = []
    for found in hidden_states(model, batches, layers=layers):
        for layer in layers:
            parts[layer].append(_rows(found[layer], found.batch, layer, pooling))
        if sinks:
            norms.append(_norms(found))
    is_sink = _is_sink(torch.cat(norms, dim=1)) if sinks else None
    return {layer: _joined(own, is_sink) for layer, own in parts.items()}


def _norms(found: StateBatch) -> Tensor:
    """(L, n) the length of each token's vector that counts, in every hidden state."""
    if not found.hidden:
        raise InputError(_NO_SINKS)
    norms, counted = found.norms().cpu(), found.batch.counted
    return norms if counted is None or not found.is_of_tokens else norms[:, found.present(counted)]


def _is_sink(norms: Tensor) -> Tensor:
    """(n,) whether a token's vector dwarfs the others' in any hidden state."""
    return (norms.double() > sink_thresholds(norms)[:, None]).any(dim=0)


def _rows(states: Tensor, batch: InputBatch, layer: Layer, pooling: str | None) -> LayerRows:
    """One vector a row: items as they are, tokens one by one or pooled."""
    n_items = len(batch.items)
    if states.ndim not in (2, 3) or states.shape[0] != n_items:
        raise ShapeError(
            f"layer {layer!r} has shape {tuple(states.shape)} for {n_items} items; wanted (items, d) or "
            "(items, tokens, d): name another layer"
        )
    if states.dtype in (torch.float16, torch.bfloat16):
        states = states.float()
    if states.ndim == 2:
        return LayerRows(states, batch.items, None)
    known = batch.present is not None and batch.present.shape == states.shape[:2]
    mask = batch.counted if pooling is None else batch.present
    chosen = mask if known and mask is not None else torch.ones(states.shape[:2], dtype=torch.bool)
    places = torch.arange(n_items).repeat_interleave(chosen.sum(dim=1))
    vectors = states[chosen.to(states.device)]
    if pooling is not None:
        return LayerRows(pool(vectors, places, pooling=pooling), batch.items, None)
    ids = batch.ids[chosen] if known and batch.ids is not None else None
    return LayerRows(vectors, batch.items[places], ids)


def _joined(parts: list[LayerRows], is_sink: Tensor | None) -> LayerRows:
    ids = [part.ids for part in parts if part.ids is not None]
    return LayerRows(
        torch.cat([part.vectors for part in parts]),
        torch.cat([part.items for part in parts]),
        torch.cat(ids) if len(ids) == len(parts) else None,
        is_sink,
    )
