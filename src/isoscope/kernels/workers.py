"""All cores at once: independent tasks on threads of one core each, their results in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

_R = TypeVar("_R")
CUDA_WORKERS = 4  # tasks at a time on a CUDA device: while one waits for it, another launches
AHEAD = 4  # tasks handed out for each worker before the first result is asked for
_worker = threading.local()
_loading = threading.Lock()
_loaded: set[torch.device] = set()


class Room(threading.local):
    """Where a thread makes its tensors of one kind, one after another.

    A new place for each costs up to half as much again, where freed memory goes back to the system at once.
    """

    buffer: Tensor | None = None

    def of(self, n: int, m: int, like: Tensor) -> Tensor:
        """(n, m) to be overwritten, of the type of another tensor."""
        if self.buffer is None or self.buffer.numel() < n * m or self.buffer.dtype != like.dtype:
            self.buffer = like.new_empty(n * m)
        return self.buffer[: n * m].view(n, m)


class AbandonedError(Exception):
    """Raised in a task whose result nobody waits for any more."""


def in_order(tasks: Iterable[Callable[[], _R]], *, n_workers: int) -> Generator[_R, None, None]:
    """Yield the results of all tasks in order while others run; with one worker, run them in turn.

    What a task makes on one core stays in that core's cache until the task is done with it. Tasks run in
    the caller's inference mode, without autocast. While they do, threads that are started elsewhere begin
    with one core too: torch has one default for all.
    """
    if n_workers < 2:
        yield from (task() for task in tasks)
        return
    n_threads, inference = torch.get_num_threads(), torch.is_inference_mode_enabled()
    abandoned = threading.Event()
    pool = ThreadPoolExecutor(n_workers, initializer=_begin, initargs=(abandoned,))
    waiting: deque[Future[_R]] = deque()
    try:
        for task in tasks:
            if len(waiting) == AHEAD * n_workers:
                yield waiting.popleft().result()
            waiting.append(pool.submit(_run, task, inference))
        while waiting:
            yield waiting.popleft().result()
    finally:
        abandoned.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(n_threads)  # what threads yet to start will use


def n_workers_on(device: torch.device) -> int:
    """Return how many tasks run at a time that compute on a device.

    What torch loads at its first use on CUDA is loaded here: two threads that do so at once both fail.
    """
    if device.type != "cuda":
        return torch.get_num_threads()
    with _loading:
        if device not in _loaded:
            torch.linalg.eigh(torch.eye(2, device=device))
            torch.linalg.svdvals(torch.eye(2, device=device))
            _loaded.add(device)
    return CUDA_WORKERS


@contextmanager
def one_core() -> Iterator[int]:
    """Keep this thread's operations to one core; yield the number of cores it had.

    To share out what takes a millisecond costs as much, and many times that where other processes want the
    cores: each waits for all.
    """
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield n_threads
    finally:
        torch.set_num_threads(n_threads)


def go_on() -> None:
    """Raise AbandonedError in a long task where whoever asked for it has stopped; ask now and then."""
    abandoned: threading.Event | None = getattr(_worker, "abandoned", None)
    if abandoned is not None and abandoned.is_set():
        raise AbandonedError


def _begin(abandoned: threading.Event) -> None:
    torch.set_num_threads(1)
    _worker.abandoned = abandoned


def _run(task: Callable[[], _R], inference: bool) -> _R:
    with torch.inference_mode(inference):
        return task()
