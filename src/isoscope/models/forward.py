"""`hidden_states`: run a model on batches and yield the states of its layers.

Every hidden state that isoscope takes of a model comes through here. The model is left as it was: modes,
random states and gradients.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.arrays import working_dtype
from isoscope.errors import FileError, InputError
from isoscope.io.files import reason
from isoscope.models.batches import InputBatch
from isoscope.models.language_models import LanguageModel
from isoscope.models.model_files import running
from isoscope.models.untouched import device_of, untouched

Layer = int | str
OUTPUT = "output"
# where outputs that are mappings keep their vectors, the first that is there
_KEYS = ("sentence_embedding", "last_hidden_state", "token_embeddings", "logits")
_AT_MOST = 12  # names of modules shown in an error


@dataclass(frozen=True, eq=False)
class StateBatch:
    """The states of one batch, on the model's device, padding still in.

    Attributes:
        batch: what the model was called with.
        hidden: one (b, t, d) tensor a hidden state, the embedding layer first.
        named: by the name of a module, or "output", what it returned.
    """

    batch: InputBatch
    hidden: tuple[Tensor, ...]
    named: Mapping[Layer, Tensor] = field(default_factory=dict)

    def __getitem__(self, layer: Layer) -> Tensor:
        return self.named[layer] if layer in self.named else self.hidden[layer]  # type: ignore[index]

    def rows(self, layer: int) -> Tensor:
        """Return the (m, d) states of the tokens present in float32, item by item."""
        return self.present(self.hidden[layer]).float()

    def norms(self) -> Tensor:
        """Return the (layers, m) lengths of the tokens present in float32; no state is copied for it."""
        wide = working_dtype(self.hidden[0].dtype)
        lengths = [torch.linalg.vector_norm(states, dim=-1, dtype=wide) for states in self.hidden]
        return torch.stack([self.present(one) for one in lengths]).float()

    def present(self, values: Tensor) -> Tensor:
        """Return the entries of (b, t, …) values that are of tokens present, item by item."""
        flat = values.flatten(0, 1)
        return flat if self._places is None else flat.index_select(0, self._places.to(values.device))

    @property
    def is_of_tokens(self) -> bool:
        """Whether each hidden state has one vector for each token of the batch."""
        present = self.batch.present
        return bool(self.hidden) and present is not None and present.shape == self.hidden[0].shape[:2]

    @cached_property
    def _places(self) -> Tensor | None:
        mask = self.batch.present
        if mask is None or not self.is_of_tokens or bool(mask.all()):
            return None
        return mask.flatten().nonzero().squeeze(1).to(self.hidden[0].device)


def hidden_states(
    model: Any, batches: Iterable[InputBatch | Mapping[str, Any]], *, layers: Sequence[Layer] | None = None
) -> Iterator[StateBatch]:
    """Run a model on batches and yield the states of its layers, batch by batch; nothing is kept.

    Args:
        model: a `LanguageModel`, a model of transformers or sentence-transformers, or anything callable.
        batches: mappings such as {"input_ids": …, "attention_mask": …}.
        layers: numbers of hidden states (0 is the embedding layer, −1 the last), names of modules, or
            "output". By default every hidden state. A model without hidden states has one layer by number:
            −1, its output.

    Modes, random states and gradients of the model are as before whenever a batch is yielded.
    """
    run = _Forward(model, layers)
    for batch in batches:
        own = batch if isinstance(batch, InputBatch) else InputBatch.of(batch)
        with untouched(run.owner):
            found = run(own)
        yield found


def unwrapped(model: Any) -> Any:
    """Return the model itself, out of what spreads it over devices or compiles it.

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


class _Forward:
    """One model and the layers asked for, checked; called with a batch."""

    def __init__(self, model: Any, layers: Sequence[Layer] | None) -> None:
        self._language = model if isinstance(model, LanguageModel) else None
        self.model = unwrapped(model if self._language is None else self._language.model)
        self.owner = getattr(self.model, "__self__", self.model)  # of a method such as model.encode
        self.core = _core(self.model)
        self.names = [layer for layer in layers or () if isinstance(layer, str)]
        self.numbers = [layer for layer in layers or () if isinstance(layer, int)]
        self.wants_hidden = layers is None or bool(self.numbers)
        if self.core is None:
            wrong = [layer for layer in self.numbers if layer != -1]
            if wrong or layers is None:
                asked = f"layers has {wrong[0]}, and " if wrong else ""
                raise InputError(
                    f"{asked}{_name(self.model)} returns no hidden states; wanted {_names(self.model)}"
                )
        self.modules = dict(self.model.named_modules()) if isinstance(self.model, nn.Module) else {}
        for layer in self.names:
            if layer != OUTPUT and layer not in self.modules:
                raise InputError(
                    f"has {layer!r}, which {_name(self.model)} does not have; {_names(self.model)}",
                    argument="layers",
                )

    def __call__(self, batch: InputBatch) -> StateBatch:
        hidden = self._hidden(batch) if self.core is not None and self.wants_hidden else ()
        outputs = [] if self.core is not None else self.numbers
        return StateBatch(batch, hidden, self._named(batch, outputs) if self.names or outputs else {})

    def _hidden(self, batch: InputBatch) -> tuple[Tensor, ...]:
        core = self.core
        if not isinstance(batch.inputs, Mapping):
            raise InputError(
                f"is a tensor, and {_name(core)} takes inputs by name; pass texts, or a mapping such "
                "as {'input_ids': …, 'attention_mask': …}",
                argument="probe",
            )
        taken = inspect.signature(core.forward).parameters
        options = {"output_hidden_states": True} | ({"use_cache": False} if "use_cache" in taken else {})
        inputs = {name: values for name, values in batch.inputs.items() if name != "labels" or name in taken}
        found = self._call(core, **_placed(inputs, core), **options)
        hidden = getattr(found, "hidden_states", None)
        if not hidden:
            raise InputError(
                f"{_name(core)} returned no hidden states, though asked to; name modules in layers instead: "
                f"{_names(core)}"
            )
        for layer in self.numbers:
            if not -len(hidden) <= layer < len(hidden):
                raise InputError(
                    f"has {layer}; {_name(core)} has 0 (the embedding layer) … {len(hidden) - 1}",
                    argument="layers",
                )
        if self._language is not None:
            _check_width(hidden, self._language)
        return tuple(hidden)

    def _named(self, batch: InputBatch, outputs: Sequence[Layer]) -> dict[Layer, Tensor]:
        """Return what named modules returned in one pass, and the model's own output."""
        model, inputs = self.model, _placed(batch.inputs, self.model)
        hooked = {name: self.modules[name] for name in self.names if name in self.modules}
        caught: dict[Layer, Tensor] = {}
        with _hooks(hooked, caught):
            if not isinstance(inputs, Mapping) or _is_sentence_model(model):
                output = self._call(model, inputs)
            else:
                function = model.forward if isinstance(model, nn.Module) else model
                taken = inspect.signature(function).parameters
                if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
                    inputs = {name: value for name, value in inputs.items() if name in taken}
                output = self._call(model, **inputs)
        for name in hooked:
            if name not in caught:
                raise InputError(
                    f"has {name!r}, which the forward pass did not reach; name another", argument="layers"
                )
        for layer in (*(name for name in self.names if name not in hooked), *outputs):
            caught[layer] = _tensor_of(output, f"the output of {_name(model)}")
        return caught

    def _call(self, model: Any, *inputs: Any, **named: Any) -> Any:
        """Call a model; an error over its inputs says so, with the model's own error as the cause.

        Errors of other kinds (out of memory, not implemented) pass as they are: callers tell them apart.
        """
        if self._language is not None:
            with running(self._language.path, "run"):
                return model(*inputs, **named)
        try:
            return model(*inputs, **named)
        except RuntimeError as error:
            if type(error) is not RuntimeError:
                raise
            came = f" of shape {tuple(inputs[0].shape)}" if inputs and isinstance(inputs[0], Tensor) else ""
            raise InputError(
                f"the model failed on the probe{came}: {reason(error)}; wanted inputs that {_name(model)} "
                "takes"
            ) from error


def _core(model: Any) -> Any:
    """Return the transformer within that gives hidden states, without its head; None where there is none."""
    inner = model
    if _is_sentence_model(model):
        inner = getattr(model, "transformers_model", None) or getattr(model[0], "auto_model", None)
    config = getattr(inner, "config", None)
    if not hasattr(config, "get_text_config"):
        says_so = isinstance(model, nn.Module) and inspect.signature(model.forward).parameters
        return model if says_so and "output_hidden_states" in says_so else None
    if getattr(config, "is_encoder_decoder", False):
        return inner.get_encoder()
    return getattr(inner, "base_model", inner)


def _is_sentence_model(model: Any) -> bool:
    return isinstance(model, nn.Sequential) and hasattr(model, "encode")


def _check_width(hidden: Sequence[Tensor], model: LanguageModel) -> None:
    widths = {states.shape[-1] for states in hidden} - {model.n_dims}
    if widths:
        raise FileError(
            f"{model.path} has states of {widths.pop():,} dimensions where its configuration has "
            f"{model.n_dims:,}; wanted layers of one width: is the file damaged?"
        )


def _names(model: Any) -> str:
    names = [name for name, _ in model.named_modules() if name] if isinstance(model, nn.Module) else []
    shown = ", ".join([*(repr(name) for name in names[:_AT_MOST]), repr(OUTPUT)])
    return f"there are {shown}" + (f" and {len(names) - _AT_MOST} more" if len(names) > _AT_MOST else "")


def _name(model: Any) -> str:
    return str(getattr(model, "__name__", type(model).__name__))


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


def _placed(inputs: Any, model: Any) -> Any:
    """Return inputs on the model's device, floats in its own precision, whole numbers as they are."""
    if isinstance(inputs, Mapping):
        return {name: _placed(value, model) for name, value in inputs.items()}
    if not isinstance(inputs, Tensor) or not isinstance(model, nn.Module):
        return inputs
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), inputs.dtype)
    return inputs.to(device_of(model), dtype if inputs.is_floating_point() else inputs.dtype)


def _tensor_of(output: Any, what: str) -> Tensor:
    """Return the vectors in what a module returned: a tensor, the first of several, or by its usual name."""
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
    raise InputError(
        f"is a {type(output).__name__}; wanted a tensor, or a tuple that begins with one", argument=what
    )
