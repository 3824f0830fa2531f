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

WEIGHTS, SUMS, OPERATIONS, HALF = "weights", "weights and sums", "weights and operations", "bfloat16"
VARIANTS = ("float32", WEIGHTS, SUMS, OPERATIONS, HALF)
_ADDITIONS = {torch.add, torch.Tensor.add, torch.Tensor.__add__, torch.Tensor.__radd__, torch.Tensor.add_,
              torch.Tensor.__iadd__}  # fmt: skip


def variant(model: LanguageModel, name: str) -> LanguageModel:
    """Return a copy of a model in float32 with rounded numbers, or in bfloat16.

    "weights and sums" rounds the states to which the parts of a block are added, whenever they are added;
    "weights and operations" rounds the result of every operation.
    """
    core = copy.deepcopy(model.model)
    for weight in core.parameters() if name != "float32" else ():
        rounded = weight.data.bfloat16()
        weight.data = rounded if name == HALF else rounded.float()
    if name in (SUMS, OPERATIONS):
        core.forward = _within(
            _Rounding(core.config.hidden_size, everything=name == OPERATIONS), core.forward
        )
    return replace(model, model=core)


class _Rounding(TorchFunctionMode):
    """Rounds results to bfloat16 and leaves them in float32."""

    def __init__(self, n_dims: int, *, everything: bool) -> None:
        super().__init__()
        self._n_dims, self._everything = n_dims, everything

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_sum = func in _ADDITIONS and isinstance(result, Tensor)
        if self._everything or (is_sum and result.ndim == 3 and result.shape[-1] == self._n_dims):
            return _rounded(result)
        return result


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
