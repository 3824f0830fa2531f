"""All cores at once: independent tasks on threads of one core each, their results in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

_R = TypeVar("_R")
AHEAD = 4  # tasks handed out for each worker before the first result is asked for
_worker = threading.local()


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
