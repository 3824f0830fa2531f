"""States of chosen layers of any model on a probe: hidden states by number, modules by name, the output."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.errors import InputError, ShapeError
from isoscope.io.files import reason
from isoscope.metrics.sinks import sink_thresholds
from isoscope.models.pooling import pool
from isoscope.models.untouched import device_of
from isoscope.tracking.probe import ProbeBatch

Layer = int | str
OUTPUT = "output"
# where outputs that are mappings keep their vectors, the first that is there
_KEYS = ("sentence_embedding", "last_hidden_state", "token_embeddings", "logits")
_AT_MOST = 12  # names of modules shown in an error


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
    batches: Sequence[ProbeBatch],
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
    model = unwrapped(model)
    core = _core(model)
    if sinks and (core is None or pooling is not None or any(isinstance(layer, str) for layer in layers)):
        raise InputError(
            "sinks are found among token states: wanted a model with hidden states, layers by number, and "
            "pooling=None"
        )
    by_number = [layer for layer in layers if isinstance(layer, int)]
    by_name = [layer for layer in layers if isinstance(layer, str)]
    if core is None:
        _check_output_only(model, by_number)
    _check_names(model, by_name)
    parts: dict[Layer, list[LayerRows]] = {layer: [] for layer in layers}
    norms: list[Tensor] = []
    for batch in batches:
        states: dict[Layer, Tensor] = {}
        if core is not None and by_number:
            hidden = _hidden_states(core, batch, by_number)
            states |= {layer: hidden[layer] for layer in by_number}
            if sinks:
                norms.append(_norms(hidden, batch))
        if by_name or (core is None and by_number):
            states |= _named_states(model, batch, by_name, by_number if core is None else [])
        for layer in layers:
            parts[layer].append(_rows(states[layer], batch, layer, pooling))
    is_sink = _is_sink(torch.cat(norms, dim=1)) if sinks else None
    return {layer: _joined(own, is_sink) for layer, own in parts.items()}


def unwrapped(model: Any) -> Any:
    """The model itself, out of what spreads it over devices or compiles it: a probe needs neither.

    >>> layer = nn.Linear(2, 2)
    >>> unwrapped(nn.DataParallel(layer)) is layer
    True
    """
    while True:
        if isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel):
            model = model.module
        elif isinstance(model, nn.Module) and isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod
        else:
            return model


def _core(model: Any) -> Any:
    """The transformer within that returns hidden states, without its head; None where there is none."""
    inner = model
    if _is_sentence_model(model):
        inner = getattr(model, "transformers_model", None) or getattr(model[0], "auto_model", None)
    config = getattr(inner, "config", None)
    if not hasattr(config, "get_text_config"):
        return None
    if getattr(config, "is_encoder_decoder", False):
        return inner.get_encoder()
    return getattr(inner, "base_model", inner)


def _is_sentence_model(model: Any) -> bool:
    return isinstance(model, nn.Sequential) and hasattr(model, "encode")


def _check_output_only(model: Any, layers: list[int]) -> None:
    wrong = [layer for layer in layers if layer != -1]
    if wrong:
        raise InputError(
            f"layers has {wrong[0]}, and {_name(model)} returns no hidden states; wanted {_names(model)}"
        )


def _check_names(model: Any, layers: list[str]) -> None:
    known = dict(model.named_modules()) if isinstance(model, nn.Module) else {}
    for layer in layers:
        if layer != OUTPUT and layer not in known:
            raise InputError(f"layers has {layer!r}, which {_name(model)} does not have; {_names(model)}")


def _names(model: Any) -> str:
    names = [name for name, _ in model.named_modules() if name] if isinstance(model, nn.Module) else []
    shown = ", ".join([*(repr(name) for name in names[:_AT_MOST]), repr(OUTPUT)])
    return f"there are {shown}" + (f" and {len(names) - _AT_MOST} more" if len(names) > _AT_MOST else "")


def _name(model: Any) -> str:
    return str(getattr(model, "__name__", type(model).__name__))


def _hidden_states(core: Any, batch: ProbeBatch, layers: list[int]) -> Sequence[Tensor]:
    if not isinstance(batch.inputs, Mapping):
        raise InputError(
            f"probe is a tensor, and {_name(core)} takes inputs by name; pass texts, or a mapping such as "
            "{'input_ids': …, 'attention_mask': …}"
        )
    options: dict[str, Any] = {"output_hidden_states": True}
    if "use_cache" in inspect.signature(core.forward).parameters:
        options["use_cache"] = False  # no text is continued
    inputs = _placed(batch.inputs, core)
    with _on_the_probe(core, inputs):
        found = core(**inputs, **options)
    hidden = getattr(found, "hidden_states", None)
    if not hidden:
        raise InputError(
            f"{_name(core)} returned no hidden states, though asked to; name modules in layers instead: "
            f"{_names(core)}"
        )
    for layer in layers:
        if not -len(hidden) <= layer < len(hidden):
            raise InputError(
                f"layers has {layer}; {_name(core)} has 0 (the embedding layer) … {len(hidden) - 1}"
            )
    return tuple(hidden)


def _norms(hidden: Sequence[Tensor], batch: ProbeBatch) -> Tensor:
    """(L, n) the length of each token's vector in every hidden state."""
    lengths = torch.stack([states.float().norm(dim=-1) for states in hidden])
    if batch.counted is not None and batch.counted.shape == lengths.shape[1:]:
        return lengths[:, batch.counted.to(lengths.device)].cpu()
    return lengths.flatten(1).cpu()


def _is_sink(norms: Tensor) -> Tensor:
    """(n,) whether a token's vector dwarfs the others' in any hidden state."""
    return (norms.double() > sink_thresholds(norms)[:, None]).any(dim=0)


def _named_states(model: Any, batch: ProbeBatch, names: list[str], numbers: list[int]) -> dict[Layer, Tensor]:
    """What named modules returned in one pass, and the model's own output under its name or number."""
    modules = dict(model.named_modules()) if isinstance(model, nn.Module) else {}
    hooked = {name: modules[name] for name in names if name in modules}
    caught: dict[Layer, Tensor] = {}
    with _hooks(hooked, caught):
        output = _called(model, batch)
    for name in hooked:
        if name not in caught:
            raise InputError(f"layers has {name!r}, which the forward pass did not reach; name another")
    own: list[Layer] = [*(name for name in names if name not in hooked), *numbers]
    for layer in own:
        caught[layer] = _tensor_of(output, f"the output of {_name(model)}")
    return caught


@contextmanager
def _hooks(modules: Mapping[str, nn.Module], caught: dict[Layer, Tensor]) -> Iterator[None]:
    """Note what each module returns, at its last call; nothing stays hooked."""

    def noting(name: str) -> Callable[..., None]:
        def note(_module: nn.Module, _inputs: Any, output: Any) -> None:
            caught[name] = _tensor_of(output, f"layer {name!r}").detach()

        return note

    handles = [module.register_forward_hook(noting(name)) for name, module in modules.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _called(model: Any, batch: ProbeBatch) -> Any:
    inputs = _placed(batch.inputs, model)
    if not isinstance(inputs, Mapping) or _is_sentence_model(model):
        with _on_the_probe(model, inputs):
            return model(inputs)
    taken = inspect.signature(model.forward if isinstance(model, nn.Module) else model).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
        inputs = {name: value for name, value in inputs.items() if name in taken}
    with _on_the_probe(model, inputs):
        return model(**inputs)


@contextmanager
def _on_the_probe(model: Any, inputs: Any) -> Iterator[None]:
    """Say that it was the probe that a model failed on, its own error kept as the cause.

    Kinds of their own (out of memory, not implemented) pass as they are: callers tell them apart.
    """
    try:
        yield
    except RuntimeError as error:
        if type(error) is not RuntimeError:
            raise
        came = f" of shape {tuple(inputs.shape)}" if isinstance(inputs, Tensor) else ""
        raise InputError(
            f"the model failed on the probe{came}: {reason(error)}; wanted inputs that {_name(model)} takes"
        ) from error


def _placed(inputs: Any, model: Any) -> Any:
    """Inputs on the model's device; numbers of its own precision, whole numbers as they are."""
    if isinstance(inputs, Mapping):
        return {name: _placed(value, model) for name, value in inputs.items()}
    if not isinstance(inputs, Tensor) or not isinstance(model, nn.Module):
        return inputs
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), inputs.dtype)
    return inputs.to(device_of(model), dtype if inputs.is_floating_point() else inputs.dtype)


def _tensor_of(output: Any, what: str) -> Tensor:
    """The vectors in what a module returned: a tensor, the first of several, or by its usual name."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, np.ndarray):
        return torch.from_numpy(output)
    if isinstance(output, Mapping):
        for key in _KEYS:
            if isinstance(output.get(key), Tensor):
                return output[key]
    elif isinstance(output, tuple | list) and output and isinstance(output[0], Tensor):
        return output[0]
    raise InputError(f"{what} is a {type(output).__name__}; wanted a tensor, or a tuple that begins with one")


def _rows(states: Tensor, batch: ProbeBatch, layer: Layer, pooling: str | None) -> LayerRows:
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
