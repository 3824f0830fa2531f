"""Read-ahead: what comes next is made by a thread of its own while what is here is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import torch

T = TypeVar("T")
DEPTH = 2  # items under way or waiting: one is read while another lies ready
_END: Any = object()


def ahead(items: Iterable[T], *, depth: int = DEPTH) -> Generator[T, None, None]:
    """Yield the items in order, each computed while those before it are used; errors are raised in order.

    The thread works on one core, so that products elsewhere keep theirs. Whoever stops early waits for the
    item under way, no more.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    source = iter(items)
    n_threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,))
    waiting: deque[Future[T]] = deque()
    try:
        while True:
            while len(waiting) < depth:
                waiting.append(pool.submit(next, source, _END))
            item = waiting.popleft().result()
            if item is _END:
                return
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(n_threads)  # what threads yet to start will use
        if hasattr(source, "close"):
            source.close()
