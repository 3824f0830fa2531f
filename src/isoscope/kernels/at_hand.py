"""Few numbers of a device, read back together: formulas cost less on the CPU than launches."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import fields
from typing import Any, TypeVar

import torch
from torch import Tensor

_FEW_NUMBERS = 2**17  # a megabyte, copied in less time than some tens of launches take
_Statistic = TypeVar("_Statistic")


def at_hand(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return small tensors of a device on the CPU, by one copy: formulas cost less there than launches.

    Tensors are returned as they are where one carries a gradient, is large, or lies on the CPU already.
    """
    if not all(tensor.is_cuda and not tensor.requires_grad for tensor in tensors):
        return tensors
    if sum(tensor.numel() for tensor in tensors) > _FEW_NUMBERS:
        return tensors
    if len(tensors) == 1:
        return (tensors[0].cpu(),)
    numbers = torch.cat([tensor.flatten() for tensor in tensors]).cpu()
    parts = numbers.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))


def fields_at_hand(statistic: _Statistic) -> _Statistic:
    """Return a statistic with its tensors as `at_hand` gives them; read once, however often asked."""
    held: dict[str, Any] = vars(statistic)
    if "_at_hand" not in held:
        names = [field.name for field in fields(statistic) if isinstance(held[field.name], Tensor)]  # type: ignore[arg-type]
        values = at_hand(*(held[name] for name in names))
        held["_at_hand"] = type(statistic)(**{**_fields(statistic), **dict(zip(names, values, strict=True))})
    read: _Statistic = held["_at_hand"]
    return read


def numbers_at_hand(statistic: _Statistic, names: Iterable[str]) -> _Statistic:
    """Return a statistic with these numbers, which it computes, on the CPU; read once, likewise."""
    held: dict[str, Any] = vars(statistic)
    if "_at_hand" not in held:
        names = list(names)
        numbers = at_hand(torch.stack([getattr(statistic, name) for name in names]))[0]
        read = copy(statistic)
        vars(read).update(zip(names, numbers, strict=True))
        held["_at_hand"] = read
    found: _Statistic = held["_at_hand"]
    return found


def _fields(statistic: Any) -> dict[str, Any]:
    return {field.name: getattr(statistic, field.name) for field in fields(statistic)}
