"""Eigendecompositions on CUDA that run beside other work.

They take milliseconds on a few multiprocessors, so each has a thread that waits for it, and a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from isoscope.statistics.moments import Moments

_N_THREADS = 2  # of the centred and of the uncentred matrix


@contextmanager
def decomposing(moments: Moments, *, eigenvalues: bool, principal: bool) -> Iterator[None]:
    """Begin what is asked of the spectra of moments on CUDA; inside, it is waited for when it is used."""
    if not moments.mean.is_cuda or moments.mean.requires_grad:
        yield
        return
    wanted: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {}
    if eigenvalues:
        wanted["eigenvalues"] = torch.linalg.eigvalsh, moments.smaller_side
    if principal:
        wanted["principal"] = torch.linalg.eigh, moments.second_moment
    stream = torch.cuda.current_stream(moments.mean.device)
    ready = stream.record_event()
    begun = {
        name: _pool(moments.mean.device).submit(_decomposed, function, matrix, ready, stream)
        for name, (function, matrix) in wanted.items()
        if name not in vars(moments)
    }
    vars(moments)["_begun"] = begun
    try:
        yield
    finally:
        for future in begun.values():
            future.exception()  # nothing may run on when the vectors are gone
        vars(moments).pop("_begun", None)


def begun_or(moments: Moments, name: str, decompose: Callable[[], Any]) -> Any:
    """Return the decomposition that was begun under a name, or else a new one."""
    begun = vars(moments).get("_begun", {}).get(name)
    return decompose() if begun is None else begun.result()


@cache
def _pool(device: torch.device) -> ThreadPoolExecutor:
    torch.linalg.eigvalsh(torch.eye(2, device=device))  # two threads may not load what it needs at once
    return ThreadPoolExecutor(_N_THREADS)


def _decomposed(
    function: Callable[[Tensor], Any], matrix: Tensor, ready: torch.cuda.Event, user: torch.cuda.Stream
) -> Any:
    """Return what a function makes of a matrix, ahead of what its user has launched since."""
    stream = torch.cuda.Stream(matrix.device, priority=-1)
    with torch.cuda.stream(stream):
        stream.wait_event(ready)
        found = function(matrix)
        stream.synchronize()
    for tensor in (found,) if isinstance(found, Tensor) else found:
        tensor.record_stream(user)
    return found
