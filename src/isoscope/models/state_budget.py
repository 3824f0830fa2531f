"""How much memory the hidden states of a batch may take, and batches cut into parts that take no more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from isoscope.models.batches import InputBatch
from isoscope.models.untouched import device_of, dtype_of

if TYPE_CHECKING:
    from isoscope.models.forward import StateBatch

_BYTES = 2**29  # of which two may be held at a time: one is measured beside the model on the next
_NARROW, _NARROW_BYTES = 1024, 2**32  # on CUDA: dimensions of models that wait for launches of small batches


def most_state_bytes(device: torch.device, n_dims: int) -> int:
    """Return the memory for the hidden states of a batch."""
    return _NARROW_BYTES if device.type == "cuda" and n_dims <= _NARROW else _BYTES


class StateBudget:
    """The size of the states of a model, by its configuration or by its first batch.

    Args:
        model: the model.
        of_modules: whether the states are the outputs of modules, whose sizes no configuration tells.
    """

    def __init__(self, model: Any, *, of_modules: bool) -> None:
        config, dtype = getattr(model, "config", None), dtype_of(model)
        n_dims, n_blocks = (getattr(config, name, None) for name in ("hidden_size", "num_hidden_layers"))
        self._model, self._n_dims, self._bytes = model, 0, 0.0
        self._is_known = False
        if not of_modules and dtype is not None and isinstance(n_dims, int) and isinstance(n_blocks, int):
            self._n_dims, self._bytes = n_dims, float(n_dims * (n_blocks + 1) * dtype.itemsize)
            self._is_known = True

    def learn(self, first: StateBatch) -> None:
        """Take the size of the states from the first batch, unless the configuration tells it."""
        if self._is_known and first.batch.ids is not None:
            return
        states = (*first.hidden, *first.named.values())
        self._n_dims = max(one.shape[-1] for one in states)
        self._bytes = sum(one.nbytes for one in states) / max(1, first.batch.n_inputs)

    def parts(self, number: int, batch: InputBatch) -> Iterator[InputBatch]:
        """Yield batch `number` in parts. The first batch is whole where it tells the size, in every pass."""
        if number == 0 and not (self._is_known and batch.ids is not None):
            yield batch
            return
        most = most_state_bytes(device_of(self._model), self._n_dims)
        yield from batch.parts(math.ceil(batch.n_inputs * self._bytes / most))
