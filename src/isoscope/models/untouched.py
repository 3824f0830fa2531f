"""Run a model during its training and restore its modes and the random states."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """Set eval mode without gradients and autocast, then restore the modes and the random states.

    Dropout and shuffling draw the same random numbers afterwards as they would have drawn without it.

    >>> layer = nn.Dropout()
    >>> with untouched(layer):
    ...     layer.training, torch.is_grad_enabled()
    (False, False)
    >>> layer.training
    True
    """
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    modes = [(module, module.training) for module in modules]
    kind = device_of(model).type
    device = "cpu" if kind == "meta" else kind  # autocast knows nothing of a model without values
    with own_randomness(_cuda_devices(model)), torch.no_grad():
        try:
            if isinstance(model, nn.Module):
                model.eval()
            with torch.autocast(device, enabled=False):
                yield
        finally:
            for module, mode in modes:  # each on its own: a frozen part may be in eval mode on purpose
                module.training = mode


@contextmanager
def own_randomness(devices: list[int] | None = None) -> Iterator[None]:
    """Restore the random states of Python, NumPy and torch afterwards.

    Args:
        devices: the CUDA devices whose random state is restored; None for all.
    """
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


def device_of(model: Any) -> torch.device:
    """Return the device of a model's first parameter or buffer; the CPU where it has none.

    Parameters that accelerate has offloaded are on no device: there, it is the device they are computed on.
    """
    if isinstance(model, nn.Module):
        for tensors in (model.parameters(), model.buffers()):
            for tensor in tensors:
                return tensor.device if tensor.device.type != "meta" else _execution_device(model)
    return torch.device("cpu")


def dtype_of(model: Any) -> torch.dtype | None:
    """Return the type of a model's first parameter of floating-point numbers; None where it has none."""
    parameters = model.parameters() if isinstance(model, nn.Module) else ()
    return next((values.dtype for values in parameters if values.is_floating_point()), None)


def _execution_device(model: nn.Module) -> torch.device:
    """Return the device of the first of accelerate's hooks that has one."""
    for module in model.modules():
        hook = getattr(module, "_hf_hook", None)
        for one in getattr(hook, "hooks", (hook,)):
            device = getattr(one, "execution_device", None)
            if device is not None:
                return torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    return torch.device("meta")


def _cuda_devices(model: Any) -> list[int]:
    """Return the CUDA devices of a model, and the current one: a model can change their random states."""
    if not torch.cuda.is_initialized():
        return []
    parameters = model.parameters() if isinstance(model, nn.Module) else ()
    devices = {p.device.index for p in parameters if p.device.type == "cuda" and p.device.index is not None}
    return sorted(devices | {torch.cuda.current_device()})
