"""The vectors of chosen layers of any model on a probe, with the item and token of each."""

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

_NO_SINKS = "need token states"
_NO_SINKS_WANTED = "a model with hidden states, layers given by number, and pooling=None"


@dataclass(frozen=True, eq=False)
class LayerRows:
    """The vectors of a layer, with the item and token of each.

    Attributes:
        vectors: (n, d), on the model's device.
        items: (n,) int64 on the CPU, the position of each vector's item in the probe.
        ids: (n,) int64 on the CPU, the id of each vector's token; None where a vector is of an item.
        is_sink: (n,) bool on the CPU, the attention sinks; None where they were not asked for.
    """

    vectors: Tensor
    items: Tensor
    ids: Tensor | None
    is_sink: Tensor | None = None

    def without_sinks(self) -> LayerRows:
        """Return the rows that are not attention sinks."""
        if self.is_sink is None:
            return self
        others = ~self.is_sink
        vectors = self.vectors[others.to(self.vectors.device)]
        return LayerRows(vectors, self.items[others], None if self.ids is None else self.ids[others])


def layer_rows(
    model: Any,
    batches: Sequence[InputBatch],
    layers: Sequence[Layer],
    *,
    pooling: str | None = None,
    sinks: bool = False,
) -> dict[Layer, LayerRows]:
    """Return the vectors of each layer, over all batches.

    Args:
        model: a model or any callable, as in `hidden_states`.
        batches: its inputs.
        layers: numbers of hidden states (0 is the embedding layer, −1 the last), names of modules, or
            "output". For a model without hidden states, −1 is its output.
        pooling: pool token states into one vector for each item; None leaves one for each token.
        sinks: find the attention sinks among the tokens, by their norms in all hidden states.
    """
    if sinks and (pooling is not None or any(isinstance(layer, str) for layer in layers)):
        raise InputError(_NO_SINKS, argument="sinks", wanted=_NO_SINKS_WANTED)
    parts: dict[Layer, list[LayerRows]] = {layer: [] for layer in layers}
    norms: list[Tensor] = []
    for states in hidden_states(model, batches, layers=layers):
        for layer in layers:
            parts[layer].append(_rows(states[layer], states.batch, layer, pooling))
        if sinks:
            norms.append(_norms(states))
    is_sink = None
    if sinks:
        joined = torch.cat(norms, dim=1)
        is_sink = (joined.double() > sink_thresholds(joined)[:, None]).any(dim=0)
    return {layer: _joined(batches, is_sink) for layer, batches in parts.items()}


def _norms(states: StateBatch) -> Tensor:
    """Return the (L, n) norms of the tokens that are counted, in every hidden state."""
    if not states.hidden:
        raise InputError(_NO_SINKS, argument="sinks", wanted=_NO_SINKS_WANTED)
    norms, counted = states.norms().cpu(), states.batch.counted
    return norms if counted is None or not states.is_of_tokens else norms[:, states.present(counted)]


def _rows(states: Tensor, batch: InputBatch, layer: Layer, pooling: str | None) -> LayerRows:
    """Return one row for each item, or for each token unless they are pooled."""
    n_items = len(batch.items)
    if states.ndim not in (2, 3) or states.shape[0] != n_items:
        raise ShapeError(
            f"layer {layer!r} has shape {tuple(states.shape)} for {n_items} items",
            wanted="(items, d) or (items, tokens, d)",
            hint="name another layer",
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
