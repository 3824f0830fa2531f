"""`untouched`: run a model in the middle of its training and leave no trace; `own_randomness` alone."""

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
    """Eval mode, no gradients, no autocast; then modes and random states as they were.

    What draws random numbers afterwards (dropout, shuffling) draws those it would have drawn anyway.

    >>> layer = nn.Dropout()
    >>> with untouched(layer):
    ...     layer.training, torch.is_grad_enabled()
    (False, False)
    >>> layer.training
    True
    """
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    modes = [(module, module.training) for module in modules]
    device = device_of(model).type
    with own_randomness(_cuda_devices(model)), torch.no_grad():
        try:
            if isinstance(model, nn.Module):
                model.eval()
            with torch.autocast(device, enabled=False):
                yield
        finally:
            for module, mode in modes:  # one by one: a frozen part may be in eval mode on purpose
                module.training = mode


@contextmanager
def own_randomness(devices: list[int] | None = None) -> Iterator[None]:
    """Whatever is seeded and drawn inside, the caller's random numbers go on as if nothing was.

    Args:
        devices: the CUDA devices whose numbers may be drawn; None for all.
    """
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


def device_of(model: Any) -> torch.device:
    """Where a model's first parameter or buffer is; the CPU where it has none."""
    if isinstance(model, nn.Module):
        for tensors in (model.parameters(), model.buffers()):
            for tensor in tensors:
                return tensor.device
    return torch.device("cpu")


def _cuda_devices(model: Any) -> list[int]:
    """The CUDA devices whose random state a model could move: its own, and the current one."""
    if not torch.cuda.is_initialized():
        return []
    parameters = model.parameters() if isinstance(model, nn.Module) else ()
    own = {p.device.index for p in parameters if p.device.type == "cuda" and p.device.index is not None}
    return sorted(own | {torch.cuda.current_device()})
