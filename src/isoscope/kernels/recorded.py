"""CUDA graphs: launches recorded once and replayed for new numbers.

At a few thousand points the kernels finish sooner than Python launches them, so calls that repeat a shape are
recorded the second time and replayed from then on.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from isoscope.kernels.cluster_plan import ClusterPlan

MOST_NUMBERS = 2**23  # of inputs that are replayed; larger ones keep a device busy while Python launches
_KEPT = 8  # recordings that belong to no plan: the least recently used goes first

_Tensors = tuple[Tensor, ...]
Recordings = OrderedDict[Hashable, "Recording | None"]
_of_shapes: Recordings = OrderedDict()
_of_plans: WeakKeyDictionary[ClusterPlan, Recordings] = WeakKeyDictionary()


class Recording:
    """The launches of one function for inputs of one shape."""

    def __init__(self, function: Callable[..., _Tensors], inputs: _Tensors) -> None:
        self._inputs = [tensor.clone() for tensor in inputs]
        device = inputs[0].device
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):  # a first run outside the recording compiles and allocates
            function(*self._inputs)
        torch.cuda.current_stream(device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._outputs = function(*self._inputs)

    def __call__(self, inputs: _Tensors) -> _Tensors:
        """Return the outputs for new inputs, in memory of their own."""
        for buffer, new in zip(self._inputs, inputs, strict=True):
            buffer.copy_(new)
        self._graph.replay()
        return tuple(tensor.clone() for tensor in self._outputs)


def replayed(
    function: Callable[..., _Tensors], *inputs: Tensor, plan: ClusterPlan | None = None, **options: Hashable
) -> _Tensors:
    """Return function(*inputs, **options): plainly at first, recorded the second time, replayed from then on.

    Threads other than the main one call it plainly, always.

    Args:
        function: launches on CUDA and waits for nothing.
        inputs: tensors on one device.
        plan: an option whose recordings are let go with it.
        options: what else the function takes.
    """
    call = partial(function, **options) if plan is None else partial(function, plan=plan, **options)
    if threading.current_thread() is not threading.main_thread():
        return call(*inputs)  # a recording has one place for its inputs, and none may launch beside it
    recordings = _of_shapes if plan is None else _of_plans.setdefault(plan, OrderedDict())
    key = (function, *options.items(), *((tensor.shape, tensor.dtype, tensor.device) for tensor in inputs))
    if key not in recordings:
        recordings[key] = None
        if plan is None and len(recordings) > _KEPT:
            recordings.popitem(last=False)
        return call(*inputs)
    recordings.move_to_end(key)
    recording = recordings[key]
    if recording is None:
        recording = recordings[key] = Recording(call, inputs)
    return recording(inputs)
