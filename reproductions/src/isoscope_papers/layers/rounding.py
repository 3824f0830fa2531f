"""A model in bfloat16, and in float32 with weights and results of operations rounded to bfloat16."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from isoscope.models import LanguageModel

EXACT, HALF = "float32", "bfloat16"
WEIGHTS, SUMS_ALONE, SUMS, OPERATIONS = "weights", "sums", "weights and sums", "weights and operations"
SINK_SUMS, OTHER_SUMS = "sums of attention sinks", "sums of other tokens"
VARIANTS = (EXACT, WEIGHTS, SINK_SUMS, OTHER_SUMS, SUMS_ALONE, SUMS, OPERATIONS, HALF)
_OF_WEIGHTS = {WEIGHTS, SUMS, OPERATIONS, HALF}
_SINK_RATIO = 10.0  # times the median norm, as in `isoscope.layers`
_ADDITIONS = {torch.add, torch.Tensor.add, torch.Tensor.__add__, torch.Tensor.__radd__, torch.Tensor.add_,
              torch.Tensor.__iadd__}  # fmt: skip


def variant(model: LanguageModel, name: str) -> LanguageModel:
    """Return a copy of a model in float32 with rounded numbers, or in bfloat16.

    "sums" are the states to which the parts of a block are added, rounded whenever they are added, of all
    tokens or of some; "operations" are the results of all operations.
    """
    core = copy.deepcopy(model.model)
    for weight in core.parameters() if name in _OF_WEIGHTS else ():
        rounded = weight.data.bfloat16()
        weight.data = rounded if name == HALF else rounded.float()
    if name not in (EXACT, WEIGHTS, HALF):
        core.forward = _within(_Rounding(core.config.hidden_size, name), core.forward)
    return replace(model, model=core)


class _Rounding(TorchFunctionMode):
    """Rounds results to bfloat16 and leaves them in float32."""

    def __init__(self, n_dims: int, name: str) -> None:
        super().__init__()
        self._n_dims, self._name = n_dims, name

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if self._name == OPERATIONS:
            return _rounded(result)
        is_sum = func in _ADDITIONS and isinstance(result, Tensor)
        if not is_sum or result.ndim != 3 or result.shape[-1] != self._n_dims:
            return result
        if self._name in (SINK_SUMS, OTHER_SUMS):
            chosen = _are_sinks(result) == (self._name == SINK_SUMS)
            return torch.where(chosen[..., None], _rounded(result), result)
        return _rounded(result)


def _are_sinks(states: Tensor) -> Tensor:
    """Return which of (b, t, d) states are far longer than the others."""
    norms = torch.linalg.vector_norm(states, dim=-1)
    return norms > _SINK_RATIO * norms.median()


def _within(mode: TorchFunctionMode, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*inputs: Any, **options: Any) -> Any:
        with mode:
            return function(*inputs, **options)

    return run


def _rounded(output: Any) -> Any:
    if isinstance(output, Tensor):
        is_wide = output.dtype == torch.float32 and output.device.type != "meta"
        return output.bfloat16().float() if is_wide else output
    return tuple(map(_rounded, output)) if type(output) is tuple else output
