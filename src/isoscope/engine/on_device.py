"""`OnDevice`: the vectors of another source, moved block by block to a device, or to several in turn."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import cycle
from operator import is_
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_device, block_rows
from isoscope.engine.source import Source, Wrapped
from isoscope.errors import InputError
from isoscope.space import Space

_SHARE = 4  # of a block on the device: one is read while others lie ready
_PARTS_TOGETHER = 16  # parts of the usual size
_STAGES = 2  # pinned places that blocks are copied from: one is filled while the other is sent
_LEAST_BYTES = 10**9  # below, which part of the work took longest is not worth a note


def as_devices(names: Any) -> tuple[torch.device, ...]:
    """Return devices by name, each checked to exist: "cuda:0,cuda:1", or a list of names; none for None.

    >>> as_devices("cpu"), as_devices(["cpu", "cpu"]), as_devices(None)
    ((device(type='cpu'),), (device(type='cpu'), device(type='cpu')), ())
    """
    if names is None:
        return ()
    listed = names.split(",") if isinstance(names, str) else names
    listed = list(listed) if isinstance(listed, list | tuple) else [listed]
    devices = [as_device(name.strip() if isinstance(name, str) else name) for name in listed]
    if not devices or None in devices:
        raise InputError(argument="device", got=names, wanted="a device, or several such as cuda:0,cuda:1")
    return tuple(device for device in devices if device is not None)


class OnDevice(Wrapped):
    """A source whose blocks lie on a device, or in turn on each of several; all rows lie on the first.

    Raises:
        InputError: torch does not know the device, or this machine does not have it.
    """

    def __init__(self, source: Source, device: Any, *, meter: Meter | None = None) -> None:
        super().__init__(source)
        self.devices = as_devices(device) or (source.device,)
        self._meter = meter or Meter()

    @property
    def device(self) -> torch.device:
        """Where the vectors live; of several devices, the first."""
        return self.devices[0]

    @property
    def notes(self) -> Sequence[str]:
        """The notes of the other source, and what the time of reading depends on."""
        return [*self.source.notes, *self._meter.notes()]

    def parts(self, n_rows: int) -> Sequence[Source]:
        """Return the parts of the other source, on the devices too."""
        if self.device.type == "cuda":  # read one after another: few, so that the device seldom waits
            n_rows *= _PARTS_TOGETHER
        return [OnDevice(part, self.devices, meter=self._meter) for part in self.source.parts(n_rows)]

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the rows in order; many at a time for CUDA, where every launch costs the same."""
        if self.device.type != "cuda":
            yield from map(self._moved, self.source.blocks(n_rows), cycle(self.devices))
            return
        n_rows = n_rows or rows_of_block(self.n_dims, self.device)
        stages = {device: cycle([_Stage(device) for _ in range(_STAGES)]) for device in self.devices}
        blocks, began = self.source.blocks(n_rows), time.perf_counter()
        for device in cycle(self.devices):
            asked = time.perf_counter()
            block = next(blocks, None)
            if block is None:
                break
            read = time.perf_counter()
            vectors = next(stages[device]).sent(block.vectors)
            self._meter.add(block.vectors, read - asked, time.perf_counter() - read)
            yield block.with_vectors(vectors)
        self._meter.seconds += time.perf_counter() - began

    def load(self) -> Space:
        """All rows, on the first device."""
        return self._moved(self.source.load(), self.device)

    def _moved(self, space: Space, device: torch.device) -> Space:
        return space.with_vectors(space.vectors.to(device))


def rows_of_block(n_dims: int, device: torch.device) -> int:
    """Return how many rows of a file make a block on a CUDA device."""
    return block_rows(n_dims, device) // _SHARE


def devices_of(source: Source) -> tuple[torch.device, ...]:
    """Return the devices that share the work of a source; none where it lies on one."""
    return source.devices if isinstance(source, OnDevice) and len(source.devices) > 1 else ()


class _Stage:
    """A place from which blocks are copied to a device while others are computed with.

    Blocks that do not lie in pinned memory are copied into it first.
    """

    def __init__(self, device: torch.device) -> None:
        self._device, self._sent = device, torch.cuda.Event()
        self._room = self._held = torch.empty(0, dtype=torch.uint8)

    def sent(self, block: Tensor) -> Tensor:
        """Return a block on the device; the copy may still be under way."""
        if block.is_cuda:
            return block.to(self._device)
        self._sent.synchronize()
        self._held = block  # until it has been copied
        if block.is_pinned():
            return self._copied(block)
        if self._room.numel() < block.nbytes:
            self._room = torch.empty(block.nbytes, dtype=torch.uint8, pin_memory=True)
        pinned = self._room[: block.nbytes].view(block.dtype).view(block.shape)
        return self._copied(pinned.copy_(block))

    def _copied(self, pinned: Tensor) -> Tensor:
        moved = pinned.to(self._device, non_blocking=True)
        self._sent.record(torch.cuda.current_stream(self._device))
        return moved


@dataclass
class Meter:
    """What passes over a source took: bytes, and seconds of reading, of copying and in all."""

    n_bytes: int = 0
    reading: float = 0.0
    copying: float = 0.0
    seconds: float = 0.0

    def add(self, block: Tensor, reading: float, copying: float) -> None:
        """Add a block."""
        self.n_bytes += block.nbytes
        self.reading += reading
        self.copying += copying

    def notes(self) -> list[str]:
        """Return a note on the speed and on what bound it; none for little data."""
        if self.n_bytes < _LEAST_BYTES or not self.seconds:
            return []
        waiting = self.seconds - self.reading - self.copying
        parts = {"reading the file": self.reading, "copying": self.copying, "the device": waiting}
        slowest = max(parts, key=parts.__getitem__)
        shares = ", ".join(f"{name} {seconds / self.seconds:.0%}" for name, seconds in parts.items())
        return [
            f"{self.n_bytes / 1e9:,.1f} GB came in at {self.n_bytes / self.seconds / 1e9:.1f} GB/s, bound by "
            f"{slowest} ({shares} of the time)"
        ]


def statistic_on(value: Any, device: torch.device) -> Any:
    """Return a statistic with its tensors on a device, or a mapping or tuple of them; itself where it is."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        by_key = {key: statistic_on(one, device) for key, one in value.items()}
        return value if all(value[key] is one for key, one in by_key.items()) else by_key
    if isinstance(value, tuple):
        if value and isinstance(value[0], str | int | float):  # names, of which there may be many
            return value
        parts = tuple(statistic_on(one, device) for one in value)
        return value if all(map(is_, value, parts)) else parts
    if is_dataclass(value) and not isinstance(value, type):
        own = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        moved = statistic_on(own, device)
        return value if moved is own else replace(value, **moved)
    return value
