"""`hidden_states`: run a model on batches and yield the states of its layers.

All of isoscope obtains hidden states here. The model's modes, gradients and random states are restored.
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
from isoscope.models.inner import is_sentence_model, transformer_of, unwrapped
from isoscope.models.language_models import LanguageModel
from isoscope.models.model_files import running
from isoscope.models.module_names import listed
from isoscope.models.untouched import device_of, dtype_of, untouched

Layer = int | str
OUTPUT = "output"
# the keys of the vectors in an output that is a mapping; the first that is present is used
_KEYS = ("sentence_embedding", "last_hidden_state", "token_embeddings", "logits")
# the parts of a model of two modalities, such as CLIP, with the prefix of their layers
_TOWERS = {"text_model": "text", "vision_model": "vision", "audio_model": "audio"}


@dataclass(frozen=True, eq=False)
class StateBatch:
    """The states of one batch, on the model's device, with padding.

    Attributes:
        batch: the inputs of the model.
        hidden: the hidden states, each (b, t, d), the embedding layer first.
        named: the outputs of modules by their names; "output" is the output of the model.
    """

    batch: InputBatch
    hidden: tuple[Tensor, ...]
    named: Mapping[Layer, Tensor] = field(default_factory=dict)

    def __getitem__(self, layer: Layer) -> Tensor:
        return self.named[layer] if layer in self.named else self.hidden[layer]  # type: ignore[index]

    def kept(self, layer: Layer) -> Tensor:
        """Return the (m, d) states of the tokens that are not padding, item by item."""
        return self.present(self[layer])

    def rows(self, layer: Layer) -> Tensor:
        """Return the same in float32."""
        return self.kept(layer).float()

    def norms(self) -> Tensor:
        """Return the (layers, m) norms of the tokens that are not padding in float32, without a copy."""
        wide = working_dtype(self.hidden[0].dtype)
        lengths = [torch.linalg.vector_norm(states, dim=-1, dtype=wide) for states in self.hidden]
        return torch.stack([self.present(one) for one in lengths]).float()

    def present(self, values: Tensor) -> Tensor:
        """Return the entries of (b, t, …) values for tokens that are not padding, item by item."""
        flat = values.flatten(0, 1)
        return flat if self._places is None else flat.index_select(0, self._places_on(values.device))

    @property
    def is_of_tokens(self) -> bool:
        """Whether the hidden states have one vector for each token of the batch."""
        present, first = self.batch.present, next(iter((*self.hidden, *self.named.values())), None)
        return first is not None and present is not None and present.shape == first.shape[:2]

    def _places_on(self, device: torch.device) -> Tensor:
        """Return the places on a device; they are moved once."""
        assert self._places is not None
        if device not in self._moved:
            self._moved[device] = self._places.to(device)
        return self._moved[device]

    @cached_property
    def _moved(self) -> dict[torch.device, Tensor]:
        return {}

    @cached_property
    def _places(self) -> Tensor | None:
        mask = self.batch.present
        if mask is None or not self.is_of_tokens or bool(mask.all()):
            return None
        return mask.flatten().nonzero().squeeze(1)


def hidden_states(
    model: Any, batches: Iterable[InputBatch | Mapping[str, Any]], *, layers: Sequence[Layer] | None = None
) -> Iterator[StateBatch]:
    """Run a model on batches and yield the states of its layers, batch by batch.

    The modes, gradients and random states of the model are restored before a batch is yielded.

    Args:
        model: a `LanguageModel`, a model of transformers or sentence-transformers, or any callable.
        batches: mappings such as {"input_ids": …, "attention_mask": …}.
        layers: numbers of hidden states (0 is the embedding layer, −1 the last), names of modules, or
            "output"; by default all hidden states. For a model without hidden states, −1 is its output.
    """
    run = _Forward(model, layers)
    for batch in batches:
        inputs = batch if isinstance(batch, InputBatch) else InputBatch.of(batch)
        with untouched(run.owner):
            states = run(inputs)
        yield states


def returns_hidden_states(model: Any) -> bool:
    """Return whether a model returns hidden states, as those of transformers do."""
    return isinstance(model, LanguageModel) or _core(unwrapped(model)) is not None


class _Forward:
    """A function from a batch to the states of the chosen layers of a model."""

    def __init__(self, model: Any, layers: Sequence[Layer] | None) -> None:
        self._language = model if isinstance(model, LanguageModel) else None
        self.model = unwrapped(model if self._language is None else self._language.model)
        self.owner = getattr(self.model, "__self__", self.model)  # the model of a method such as model.encode
        self.core = _core(self.model)
        is_pair = getattr(getattr(self.model, "config", None), "is_encoder_decoder", False)
        self._whole = self.model if is_pair and hasattr(self.model, "get_encoder") else None
        self.names = [layer for layer in layers or () if isinstance(layer, str)]
        self.numbers = [layer for layer in layers or () if isinstance(layer, int)]
        self.wants_hidden = layers is None or bool(self.numbers)
        if self.core is None:
            wrong = [layer for layer in self.numbers if layer != -1]
            if wrong or layers is None:
                chosen = f"has {wrong[0]}, but " if wrong else ""
                raise InputError(
                    f"{chosen}{_name(self.model)} returns no hidden states",
                    argument="layers" if wrong else None,
                    wanted=f"one of {_names(self.model)}",
                )
        self.modules = dict(self.model.named_modules()) if isinstance(self.model, nn.Module) else {}
        for layer in self.names:
            if layer != OUTPUT and layer not in self.modules:
                wanted = f"one of {_names(self.model)}"
                raise InputError(argument="layers", got=layer, wanted=wanted)

    def __call__(self, batch: InputBatch) -> StateBatch:
        parts = self._parts(batch) if self.core is not None and self.wants_hidden else {}
        hidden: tuple[Tensor, ...] = next(iter(parts.values()), ())
        for layer in self.numbers if parts else ():
            if not -len(hidden) <= layer < len(hidden):
                wanted = f"numbers from 0 (the embedding layer) to {len(hidden) - 1} for {_name(self.core)}"
                raise InputError(argument="layers", got=layer, wanted=wanted)
        outputs = [] if self.core is not None else self.numbers
        named = self._named(batch, outputs) if self.names or outputs else {}
        for part, states in parts.items() if len(parts) > 1 else ():
            named |= {f"{part}.{layer}": one for layer, one in enumerate(states)}
        return StateBatch(batch, hidden, named)

    def _parts(self, batch: InputBatch) -> dict[str, tuple[Tensor, ...]]:
        """Return the hidden states of each part of the model that the inputs are for: one, or two.

        A model of two modalities runs the towers whose inputs are given, and an encoder-decoder runs its
        decoder if `decoder_input_ids` are.
        """
        core, inputs = self.core, self._by_name(batch.inputs)
        towers = {name: part for name in _TOWERS if isinstance(part := getattr(core, name, None), nn.Module)}
        if len(towers) > 1:
            given = {name: part for name, part in towers.items() if part.main_input_name in inputs}
            if given:
                return {_TOWERS[name]: self._states(part, inputs) for name, part in given.items()}
        if self._whole is not None and "decoder_input_ids" in inputs:
            output = self._output(self._whole, inputs)
            sides = {"encoder": output.encoder_hidden_states, "decoder": output.decoder_hidden_states}
            if self._language is not None:  # it was loaded for one side
                sides = {"decoder": sides["decoder"]}
            return {side: self._checked(states, self._whole) for side, states in sides.items()}
        return {"": self._states(core, inputs)}

    def _by_name(self, inputs: Any) -> dict[str, Any]:
        main = getattr(self.core, "main_input_name", None)
        if isinstance(inputs, Tensor) and inputs.is_floating_point() and main not in (None, "input_ids"):
            inputs = {main: inputs}
        if not isinstance(inputs, Mapping):
            raise InputError(
                f"the input is a tensor, but {_name(self.core)} takes inputs by name",
                wanted="texts, or a mapping such as {'input_ids': …, 'attention_mask': …}",
            )
        return dict(inputs)

    def _states(self, core: Any, inputs: Mapping[str, Any]) -> tuple[Tensor, ...]:
        main = getattr(core, "main_input_name", None)
        if main is not None and not {main, "inputs_embeds"} & inputs.keys():
            raise InputError(
                f"has {', '.join(inputs)}, but {_name(core)} takes {main}", argument="inputs", wanted=main
            )
        return self._checked(getattr(self._output(core, inputs), "hidden_states", None), core)

    def _output(self, core: Any, inputs: Mapping[str, Any]) -> Any:
        parameters = inspect.signature(core.forward).parameters
        options = {"output_hidden_states": True} | ({"use_cache": False} if "use_cache" in parameters else {})
        if core is self.core:
            inputs = {name: value for name, value in inputs.items() if name != "labels" or name in parameters}
        else:
            inputs = {name: value for name, value in inputs.items() if name in parameters}
        return self._call(core, **_placed(inputs, core), **options)

    def _checked(self, hidden: Sequence[Tensor] | None, core: Any) -> tuple[Tensor, ...]:
        if not hidden:
            raise InputError(
                f"{_name(core)} returned no hidden states", hint=f"name a module in layers: {_names(core)}"
            )
        if self._language is not None:
            _check_width(hidden, self._language)
        return tuple(_valued(states, layer, core) for layer, states in enumerate(hidden))

    def _named(self, batch: InputBatch, outputs: Sequence[Layer]) -> dict[Layer, Tensor]:
        """Return the outputs of the named modules in one forward pass, and the output of the model."""
        model, inputs = self.model, _placed(batch.inputs, self.model)
        hooked = {name: self.modules[name] for name in self.names if name in self.modules}
        by_name: dict[Layer, Tensor] = {}
        with _hooks(hooked, by_name, model):
            if not isinstance(inputs, Mapping) or is_sentence_model(model):
                output = self._call(model, inputs)
            else:
                function = model.forward if isinstance(model, nn.Module) else model
                parameters = inspect.signature(function).parameters
                if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
                    inputs = {name: value for name, value in inputs.items() if name in parameters}
                output = self._call(
                    model, **inputs, **({"use_cache": False} if "use_cache" in parameters else {})
                )
        for name in hooked:
            if name not in by_name:
                raise InputError(
                    f"has {name!r}, which the forward pass did not reach",
                    argument="layers",
                    hint="name another module",
                )
        for layer in (*(name for name in self.names if name not in hooked), *outputs):
            by_name[layer] = _tensor_of(output, f"the output of {_name(model)}")
        return by_name

    def _call(self, model: Any, *inputs: Any, **named: Any) -> Any:
        """Call a model, and convert what it raises for inputs that it cannot take into an InputError.

        Subclasses of RuntimeError (out of memory, not implemented) are not converted.
        """
        if self._language is not None:
            with running(self._language.path, "run"):
                return model(*inputs, **named)
        try:
            return model(*inputs, **named)
        except (RuntimeError, ValueError, IndexError) as error:
            if type(error) not in (RuntimeError, ValueError, IndexError):
                raise
            shape = f" of shape {tuple(inputs[0].shape)}" if inputs and isinstance(inputs[0], Tensor) else ""
            raise InputError(
                f"the model failed on the probe{shape}: {reason(error)}",
                wanted=f"inputs that {_name(model)} accepts",
            ) from error


def _core(model: Any) -> Any:
    """Return the transformer that returns hidden states, without its head; None where there is none."""
    inner = transformer_of(model)
    if inner is None:
        parameters = inspect.signature(model.forward).parameters if isinstance(model, nn.Module) else {}
        return model if "output_hidden_states" in parameters else None
    return inner.get_encoder() if getattr(inner.config, "is_encoder_decoder", False) else inner


def _valued(states: Tensor, layer: Layer, model: Any) -> Tensor:
    """Return states on the model's device; raise InputError if they have no values."""
    if states.device.type == "meta":
        raise InputError(
            f"layer {layer} of {_name(model)} has states on the meta device, which have no values",
            hint="load the weights of every module",
        )
    return states.to(device_of(model))


def _check_width(hidden: Sequence[Tensor], model: LanguageModel) -> None:
    widths = {states.shape[-1] for states in hidden} - {model.n_dims}
    if widths:
        raise FileError(
            f"{model.path} has states of {widths.pop():,} dimensions",
            wanted=f"{model.n_dims:,} in every layer, as in its configuration",
        )


def _names(model: Any) -> str:
    names = [name for name, _ in model.named_modules() if name] if isinstance(model, nn.Module) else []
    return listed([*names, OUTPUT])


def _name(model: Any) -> str:
    return str(getattr(model, "__name__", type(model).__name__))


@contextmanager
def _hooks(
    modules: Mapping[str, nn.Module], outputs: dict[Layer, Tensor], model: nn.Module
) -> Iterator[None]:
    """Record the output of each module's last call in `outputs`; remove the hooks afterwards."""

    def hook(name: str) -> Callable[..., None]:
        def record(_module: nn.Module, _inputs: Any, output: Any) -> None:
            outputs[name] = _valued(_tensor_of(output, f"layer {name!r}").detach(), name, model)

        return record

    handles = [module.register_forward_hook(hook(name)) for name, module in modules.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _placed(inputs: Any, model: Any) -> Any:
    """Return the inputs on the model's device, and floating-point numbers in the model's precision."""
    if isinstance(inputs, Mapping):
        return {name: _placed(value, model) for name, value in inputs.items()}
    if not isinstance(inputs, Tensor) or not isinstance(model, nn.Module):
        return inputs
    dtype = dtype_of(model) if inputs.is_floating_point() else None
    return inputs.to(device_of(model), dtype or inputs.dtype)


def _tensor_of(output: Any, what: str) -> Tensor:
    """Return the vectors of an output: a tensor, the first of a tuple, or the value of a usual key."""
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
        f"is a {type(output).__name__}", argument=what, wanted="a tensor, or a tuple that begins with one"
    )
