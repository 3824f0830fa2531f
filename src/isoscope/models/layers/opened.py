"""Open the states of a model on texts, images, recordings or batches, and the plan of their rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from isoscope.errors import InputError
from isoscope.models.batch_states import BatchStates
from isoscope.models.input_models import InputModel, Processed, kind_of_items, load_model
from isoscope.models.language_models import LanguageModel, load_language_model, pair_of
from isoscope.models.layers.plan import LayerPlan, OpenPlan
from isoscope.models.states import States
from isoscope.progress import Bar


def open_states(
    model: Any,
    inputs: Any,
    *,
    tokenizer: Any,
    layers: Iterable[int] | None,
    modules: str | Iterable[str] | None,
    sink_ratio: float,
    batch_tokens: int | None,
    batch_size: int,
    loading: Mapping[str, Any],
    reading: Mapping[str, Any],
    bar: Bar,
) -> States:
    """Return the states of a model that is loaded here, or of a loaded model on batches."""
    chosen: dict[str, Any] = {"layers": layers, "modules": modules, "sink_ratio": sink_ratio}
    by_name = isinstance(model, str | os.PathLike)
    if not by_name:
        model, tokenizer = pair_of(model, tokenizer)
    is_known = by_name or _are_texts(inputs) or isinstance(model, LanguageModel | InputModel)
    kind = kind_of_items(inputs) if is_known else None
    bar.step("loading the model", at_once=True)
    if kind in (None, "batches") and not isinstance(model, InputModel):
        _check_batches(inputs)
    if kind == "texts" and isinstance(model, InputModel):
        raise InputError(
            f"has texts, but {model.name} reads {model.kind}", argument="inputs", wanted=model.kind
        )
    if kind == "texts":
        loaded = load_language_model(model, tokenizer=tokenizer, **loading)
        bar.step("tokenizing")
        return States(inputs, model=loaded, batch_tokens=batch_tokens, **chosen, **reading)
    of_texts = {**reading, "side": loading.get("side")}
    special = of_texts.pop("special") if kind in (None, "batches") else False
    given = [name for name, value in of_texts.items() if value not in (None, False)]
    if given:
        raise InputError("goes with texts", argument=given[0])
    if kind in ("images", "recordings"):
        if by_name:
            model = load_model(model, kind, **loading)
        if not isinstance(model, InputModel):
            wanted = "texts, or batches of token ids"
            raise InputError(f"has {kind}, but {model.name} reads texts", argument="inputs", wanted=wanted)
        return BatchStates(Processed(inputs, model, batch_size), model=model.model, name=model.name, **chosen)
    if by_name:
        model = load_language_model(model, tokenizer=tokenizer, **loading)
    name = model.name if isinstance(model, LanguageModel | InputModel) else None
    batches = [inputs] if isinstance(inputs, Mapping | torch.Tensor) else inputs
    model = model.model if isinstance(model, InputModel) else model
    return BatchStates(batches, model=model, name=name, tokenizer=tokenizer, special=special, **chosen)


def plans_of(states: States, sample: int, seed: int) -> list[LayerPlan] | list[OpenPlan]:
    """Return the plan of each set of rows; the rows of texts are known, those of batches are not."""
    if isinstance(states, BatchStates):
        return [OpenPlan(sample=sample, seed=seed) for _ in range(states.n_row_sets)]
    return [LayerPlan.of(states, sample=sample, seed=seed)]


def _are_texts(inputs: Any) -> bool:
    return isinstance(inputs, str) or (
        isinstance(inputs, Sequence) and bool(inputs) and isinstance(inputs[0], str)
    )


def _check_batches(inputs: Any) -> None:
    if not isinstance(inputs, Iterable):
        raise InputError(argument="inputs", got=inputs, wanted="texts, or batches for the model")
