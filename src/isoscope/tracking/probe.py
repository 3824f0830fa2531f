"""`Probe`: the fixed inputs that a model is measured on, in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError, Setting, ShapeError
from isoscope.models.batches import InputBatch, text_batches, token_batches, usual_batch
from isoscope.models.language_models import UNLIMITED, LanguageModel
from isoscope.models.texts import checked_texts
from isoscope.models.tokens import check_length, tokenize


class Probe:
    """Texts, a batch of named inputs, or a tensor with one entry for each item.

    Args:
        inputs: strings; a mapping such as {"input_ids": …, "attention_mask": …}; or an array.
        tokenizer: the tokenizer for texts; by default the model's own, if it has one.
        special: also measure special tokens ([CLS], [SEP], <s>).
        max_length: the maximum number of tokens of a text; by default that of the tokenizer and the model.
        batch_size: items in a batch; by default as many as have 4,096 tokens (32,768 on CUDA), or all if the
            items have no tokens.
    """

    def __init__(
        self,
        inputs: Any,
        *,
        tokenizer: Any = None,
        special: bool = False,
        max_length: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        for name, size in (("max_length", max_length), ("batch_size", batch_size)):
            if size is not None and size < 1:
                raise InputError(argument=name, got=size, wanted="at least 1")
        self._tokenizer, self._special = tokenizer, special
        self._max_length, self._batch_size = max_length, batch_size
        self._inputs = _checked(inputs)
        self._batches: list[InputBatch] | None = None
        self.notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        first = next(iter(self._inputs.values())) if isinstance(self._inputs, dict) else self._inputs
        return len(first)

    @property
    def is_texts(self) -> bool:
        """Whether the items are texts."""
        return isinstance(self._inputs, list)

    @property
    def may_have_tokens(self) -> bool:
        """Whether the items have tokens: texts or token ids."""
        return self.is_texts or (isinstance(self._inputs, dict) and "input_ids" in self._inputs)

    def batches(self, model: Any, device: torch.device) -> list[InputBatch]:
        """Return the batches, which are created for the model of the first call."""
        if self._batches is None:
            self._batches = self._create(model, device)
        return self._batches

    def _create(self, model: Any, device: torch.device) -> list[InputBatch]:
        if not isinstance(self._inputs, list):
            return self._split(self._inputs, usual_batch(device))
        tokenizer = getattr(model, "tokenizer", None) if self._tokenizer is None else self._tokenizer
        if hasattr(tokenizer, "convert_ids_to_tokens"):
            return self._tokenized(self._inputs, tokenizer, model, usual_batch(device))
        preprocess = getattr(model, "preprocess", getattr(model, "tokenize", None))
        if preprocess is None and isinstance(model, torch.nn.Module):
            raise InputError(
                f"has texts, but {type(model).__name__} has no tokenizer",
                argument="probe",
                hint=Setting("tokenizer", to="tokenize the texts"),
            )
        return self._plain_texts(self._inputs, preprocess)

    def _split(self, inputs: dict[str, Tensor] | Tensor, budget: int) -> list[InputBatch]:
        n = len(self)
        if isinstance(inputs, Tensor):
            parts = torch.arange(n).split(self._batch_size or n)
            return [InputBatch(inputs[part], part) for part in parts]
        ids = inputs.get("input_ids")
        fitting = n if ids is None else max(1, budget // ids.shape[1])
        size = self._batch_size or fitting
        return [
            InputBatch.of(
                {name: values[part] for name, values in inputs.items()},
                part,
                tokenizer=self._tokenizer,
                special=self._special,
            )
            for part in torch.arange(n).split(size)
        ]

    def _tokenized(self, texts: list[str], tokenizer: Any, model: Any, budget: int) -> list[InputBatch]:
        if self._max_length is not None:
            check_length(tokenizer, self._max_length)
        read = tokenize(texts, _reader(tokenizer, model, self._max_length), truncate=True)
        self.notes = read.notes
        groups = text_batches(read, budget)
        if self._batch_size:
            groups = [g[i : i + self._batch_size] for g in groups for i in range(0, len(g), self._batch_size)]
        return list(token_batches(read, groups, special=self._special))

    def _plain_texts(self, texts: list[str], preprocess: Callable[..., Any] | None) -> list[InputBatch]:
        """Return batches of texts, or of what the model's own function makes of them."""
        batches = []
        for part in torch.arange(len(texts)).split(self._batch_size or len(texts)):
            batch = [texts[i] for i in part.tolist()]
            batches.append(InputBatch(batch if preprocess is None else preprocess(batch), part))
        return batches


def _checked(inputs: Any) -> list[str] | dict[str, Tensor] | Tensor:
    """Return the items as texts, named tensors or a tensor; raise an error if there is none."""
    if isinstance(inputs, Mapping):
        return _checked_mapping(inputs)
    if isinstance(inputs, str | bytes) or (
        isinstance(inputs, Sequence) and (not inputs or isinstance(inputs[0], str))
    ):
        return checked_texts(inputs, name="probe", filled=True)
    tensor = _tensor(inputs, "probe")
    if tensor.ndim == 0 or not len(tensor):
        raise ShapeError(f"has shape {tuple(tensor.shape)}", argument="probe", wanted="at least 2 items")
    return tensor


def _checked_mapping(inputs: Mapping[str, Any]) -> dict[str, Tensor]:
    tensors = {
        name: _tensor(values, f"probe[{name!r}]") for name, values in inputs.items() if name != "labels"
    }
    lengths = {name: len(values) if values.ndim else 0 for name, values in tensors.items()}
    if not any(lengths.values()):
        raise ShapeError("is empty", argument="probe", wanted="inputs by name, such as input_ids")
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise ShapeError(
            f"has inputs of several lengths ({listed})", argument="probe", wanted="one entry for each item"
        )
    mask = tensors.get("attention_mask")
    if mask is not None and mask.ndim == 2 and not bool(mask.any(dim=1).all()):
        row = int((~mask.any(dim=1)).nonzero()[0])
        raise ShapeError(
            "masks every token", argument=f"probe['attention_mask'][{row}]", wanted="at least one token"
        )
    return tensors


def _tensor(values: Any, name: str) -> Tensor:
    try:
        return torch.as_tensor(values).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"is a {type(values).__name__} that cannot be converted to a tensor ({error})",
            argument=name,
            wanted="texts, a batch of named inputs, or a tensor",
        ) from None


def _reader(tokenizer: Any, model: Any, max_length: int | None) -> LanguageModel:
    """Return the tokenizer and the maximum length in the form that `tokenize` takes."""
    config = getattr(model, "config", None)
    limits = (
        max_length,
        getattr(tokenizer, "model_max_length", None),
        getattr(model, "max_seq_length", None),
        getattr(config, "max_position_embeddings", None),
    )
    finite = [int(limit) for limit in limits if limit and limit < UNLIMITED]
    return LanguageModel(
        name=type(model).__name__,
        path=Path(),
        model=None,
        tokenizer=tokenizer,
        n_layers=0,
        n_dims=0,
        max_length=min(finite) if finite else None,
        is_causal=False,
    )
