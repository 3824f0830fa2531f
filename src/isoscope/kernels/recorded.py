"""CUDA graphs: launches recorded once and replayed for new numbers.

At a few thousand points the kernels finish sooner than Python launches them, so calls that repeat a shape are
recorded the second time and replayed from then on.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial

import torch
from torch import Tensor

MOST_NUMBERS = 2**23  # of inputs that are replayed; larger ones keep a device busy while Python launches
_FEW_NUMBERS = 2**21  # of the inputs of one step of many: a recording holds what it computes, too
_KEPT = 64  # recordings: the least recently used goes first
_KEPT_BYTES = 512 * 2**20  # of their inputs

_Tensors = tuple[Tensor, ...]
_recordings: OrderedDict[Hashable, Recording | Unrecorded | None] = OrderedDict()


class Recording:
    """The launches of one function for inputs of one shape."""

    def __init__(self, function: Callable[..., _Tensors], inputs: _Tensors) -> None:
        self._inputs = [tensor.clone() for tensor in inputs]
        self.n_bytes = _bytes_of(inputs)
        device = inputs[0].device
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):  # a first run outside the recording compiles and allocates
            function(*self._inputs)
        torch.cuda.current_stream(device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):  # others decompose meanwhile
            self._outputs = function(*self._inputs)

    def __call__(self, inputs: _Tensors) -> _Tensors:
        """Return the outputs for new inputs, in memory of their own."""
        for buffer, new in zip(self._inputs, inputs, strict=True):
            buffer.copy_(new)
        self._graph.replay()
        return tuple(tensor.clone() for tensor in self._outputs)


class Unrecorded:
    """A function that a device does not record, called plainly."""

    n_bytes = 0

    def __init__(self, function: Callable[..., _Tensors]) -> None:
        self._function = function

    def __call__(self, inputs: _Tensors) -> _Tensors:
        """Return the outputs."""
        return self._function(*inputs)


def replayed(function: Callable[..., _Tensors], *inputs: Tensor, **options: Hashable) -> _Tensors:
    """Return function(*inputs, **options): plainly at first, recorded the second time, replayed from then on.

    Threads other than the main one call it plainly, always.

    Args:
        function: launches on CUDA and waits for nothing.
        inputs: tensors on one device.
        options: what else the function takes.
    """
    call = partial(function, **options)
    if threading.current_thread() is not threading.main_thread():
        return call(*inputs)  # a recording has one place for its inputs, and none may launch beside it
    key = (function, *options.items(), *((tensor.shape, tensor.dtype, tensor.device) for tensor in inputs))
    if key not in _recordings:
        _recordings[key] = None
        _let_go()
        return call(*inputs)
    _recordings.move_to_end(key)
    recording = _recordings[key]
    if recording is None:
        _let_go(_bytes_of(inputs))
        recording = _recordings[key] = _recorded(call, inputs)
    return recording(inputs)


def _recorded(function: Callable[..., _Tensors], inputs: _Tensors) -> Recording | Unrecorded:
    """Record a function; where the device cannot, warn, and call it plainly from then on."""
    device = inputs[0].device
    stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
    try:
        return Recording(function, inputs)
    except RuntimeError as error:
        if stream is not None:
            torch.cuda.set_stream(stream)  # a recording that fails at its end leaves its own
        name = getattr(getattr(function, "func", function), "__qualname__", "a step")
        reason = str(error).partition("\n")[0]
        message = f"{device} cannot record {name}, which is slower: {reason}"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
        return Unrecorded(function)


def replayed_if_few(function: Callable[..., _Tensors], *inputs: Tensor, **options: Hashable) -> _Tensors:
    """Return function(*inputs, **options): by `replayed` where the inputs are few numbers on CUDA."""
    can_record = all(tensor.is_cuda and not tensor.requires_grad for tensor in inputs)
    if can_record and sum(map(Tensor.numel, inputs)) <= _FEW_NUMBERS:
        return replayed(function, *inputs, **options)
    return function(*inputs, **options)


def _bytes_of(inputs: _Tensors) -> int:
    return sum(tensor.nbytes for tensor in inputs)


def _let_go(n_bytes: int = 0) -> None:
    """Drop the least recently used recordings until there is room for one more with inputs of this size."""
    while len(_recordings) > _KEPT:
        _recordings.popitem(last=False)
    held = {key: recording.n_bytes for key, recording in _recordings.items() if recording is not None}
    for key in list(held):
        if sum(held.values()) + n_bytes <= _KEPT_BYTES:
            return
        del _recordings[key], held[key]
