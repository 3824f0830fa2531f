"""The readings of all layers, from their statistics: on the CPU, and on CUDA beside the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from queue import SimpleQueue
from typing import Any

import torch

from isoscope.engine.readings import Reading, Readings
from isoscope.kernels.tiles import Progress
from isoscope.kernels.workers import CUDA_WORKERS, in_order, n_workers_on
from isoscope.models.forward import Layer
from isoscope.models.layers.layer_profile import VIEWS
from isoscope.models.layers.quantities import (
    PREPARED,
    LayerStatistics,
    Quantity,
    sums_on_host,
    take,
    take_sample,
    take_samples,
)

_HOST_DIMS = 1024  # up to here a core takes eigenvalues in a tenth of a second


def readings_of(
    found: Mapping[Layer, tuple[LayerStatistics, LayerStatistics]],
    quantities: list[Quantity],
    *,
    space: str,
    has_sinks: bool,
    progress: Progress,
) -> Readings:
    """Return every quantity of every layer, with and without sinks; one layer on each core."""
    views = VIEWS if has_sinks else VIEWS[:1]
    take_one = partial(take, quantities, space=space)
    tasks: Iterator[Callable[[], list[Reading]]] = (
        partial(take_one, layer=statistics, group={"layer": layer, "view": view})
        for layer, both in found.items()
        for view, statistics in zip(views, both, strict=False)
    )
    device = next(iter(found.values()))[0].vectors.device
    n_workers = n_workers_on(device)
    if device.type == "cuda":
        tasks, n_workers = _beside_the_device(found, len(views), {one.name for one in quantities}, tasks)
    readings: list[Reading] = []
    for number, own in enumerate(in_order(tasks, n_workers=n_workers), 1):
        readings += own
        if len(views) == 1:  # both are the same tokens
            readings += [replace(one, group={**one.group, "view": VIEWS[1]}) for one in own]
        progress(number / (len(found) * len(views)))
    return Readings(readings)


def _beside_the_device(
    found: Mapping[Layer, tuple[LayerStatistics, LayerStatistics]],
    n_views: int,
    names: set[str],
    tasks: Iterator[Callable[[], list[Reading]]],
) -> tuple[Iterator[Callable[[], list[Reading]]], int]:
    """Return tasks, and how many run at a time, where the samples are on a CUDA device.

    What needs the vectors is launched here, for all layers together or for each before its task, while tasks
    before it take eigenvalues on the CPU. Large matrices stay on the device, and so do quantities that no one
    has prepared for: then each task has a stream of its own.
    """
    for view in range(n_views):
        shapes: dict[Any, list[LayerStatistics]] = {}
        for both in found.values():
            shapes.setdefault(both[view].vectors.shape, []).append(both[view])
        for alike in shapes.values():
            take_samples(alike, names)
    layers = [both[view] for both in found.values() for view in range(n_views)]
    n_dims, device = max(layer.space.n_dims for layer in layers), layers[0].vectors.device
    if n_dims <= _HOST_DIMS and names <= PREPARED:
        return _prepared(layers, names, tasks), torch.get_num_threads()
    n_workers = n_workers_on(device)
    torch.cuda.synchronize(device)
    free: SimpleQueue[torch.cuda.Stream] = SimpleQueue()
    for stream in streams_of(device):
        free.put(stream)
    return (partial(_in_own_stream, task, free) for task in tasks), n_workers


def _prepared(
    layers: list[LayerStatistics], names: set[str], tasks: Iterator[Callable[[], list[Reading]]]
) -> Iterator[Callable[[], list[Reading]]]:
    """Yield each task when what it needs of the device has been computed."""
    for layer, task in zip(layers, tasks, strict=True):
        sums_on_host(layer)
        take_sample(layer, names)
        yield task


def _in_own_stream(task: Callable[[], list[Reading]], free: SimpleQueue[torch.cuda.Stream]) -> list[Reading]:
    stream = free.get()
    try:
        with torch.cuda.stream(stream):
            return task()
    finally:
        free.put(stream)


@cache
def streams_of(device: torch.device) -> tuple[torch.cuda.Stream, ...]:
    """Return the streams that measure beside the model; memory is kept for each, so they are made once."""
    return tuple(torch.cuda.Stream(device, priority=-1) for _ in range(CUDA_WORKERS))
