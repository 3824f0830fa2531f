"""Runners: this process, or the workers of a Dask scheduler, with the same merges in the same order."""

from __future__ import annotations

import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch

from isoscope.engine.dask_arrays import DaskChunk
from isoscope.engine.passes import Outcome
from isoscope.errors import ClusterError, InputError, IsoscopeError, Setting, not_installed
from isoscope.kernels.workers import in_order
from isoscope.statistics.tree import Tree

PATIENCE = "10s"  # with a scheduler that does not answer
_JOBS_AHEAD = 2  # jobs handed to workers before the first one's outcome is asked for: none waits idle


@dataclass(frozen=True, eq=False)
class Job:
    """Tasks whose outcomes are merged into one.

    Attributes:
        task: makes an outcome of the arguments of each call.
        calls: the arguments, in order.
        shared: arguments that come last in every call, made once for all calls by a function of its own.
    """

    task: Callable[..., Outcome]
    calls: Sequence[tuple[Any, ...]]
    shared: tuple[Callable[..., Any], tuple[Any, ...]] | None = None


class Runner(Protocol):
    """What runs jobs."""

    def outcomes(
        self, jobs: Iterable[Job], done: Callable[[int], None] | None = None, *, one_core: bool = False
    ) -> Iterator[Outcome]:
        """Yield the outcome of each job, in order; `done` gets the number of finished calls of a job.

        one_core: whether calls in this process run on a core each, as many at once as there are cores; else
            one after another, each on all of them.
        """
        ...


class Here:
    """Jobs in this process."""

    def outcomes(
        self, jobs: Iterable[Job], done: Callable[[int], None] | None = None, *, one_core: bool = False
    ) -> Iterator[Outcome]:
        """Yield the outcome of each job, in order, while calls of the next ones may run."""
        sizes: deque[int] = deque()
        outcomes = in_order(_calls(jobs, sizes), n_workers=torch.get_num_threads() if one_core else 1)
        for outcome in outcomes:
            tree = Tree()
            for number in range(sizes.popleft()):
                tree.add({"outcome": next(outcomes) if number else outcome})
                if done:
                    done(number + 1)
            yield tree.total()["outcome"]


def _calls(jobs: Iterable[Job], sizes: deque[int]) -> Iterator[Callable[[], Outcome]]:
    """Yield the calls of all jobs, in order; append the number of calls of each job to `sizes`."""
    for job in jobs:
        sizes.append(len(job.calls))
        shared = () if job.shared is None else (job.shared[0](*job.shared[1]),)
        for call in job.calls:
            yield partial(job.task, *call, *shared)


class OnDask:
    """Jobs on the workers of a Dask scheduler: one task a call, merges as a tree of tasks.

    What tasks are made of lies with the scheduler, so that whatever a lost worker held is made again.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def outcomes(
        self, jobs: Iterable[Job], done: Callable[[int], None] | None = None, *, one_core: bool = False
    ) -> Iterator[Outcome]:
        """Yield the outcome of each job, in order, while the next ones run."""
        del done, one_core
        waiting: deque[Any] = deque()
        with reaching("the scheduler"):
            for job in jobs:
                if len(waiting) == _JOBS_AHEAD:
                    yield waiting.popleft().result()
                waiting.append(self._submitted(job))
            while waiting:
                yield waiting.popleft().result()

    def _there(self, argument: Any) -> Any:
        """Return an argument that is made on the workers as a future, and any other unchanged."""
        return argument.on(self._client) if isinstance(argument, DaskChunk) else argument

    def _submitted(self, job: Job) -> Any:
        submit = self._client.submit
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*[Ll]arge (graph|object).*")
            shared = (
                ()
                if job.shared is None
                else (submit(job.shared[0], *map(self._there, job.shared[1]), pure=False),)
            )
            futures = [submit(job.task, *map(self._there, call), *shared, pure=False) for call in job.calls]
        while len(futures) > 1:
            pairs = [futures[i : i + 2] for i in range(0, len(futures), 2)]
            futures = [
                submit(Outcome.merge, *pair, pure=False, priority=1) if len(pair) == 2 else pair[0]
                for pair in pairs
            ]
        return futures[0]


@contextmanager
def runner(scheduler: str | None, client: Any = None) -> Iterator[Runner]:
    """Return a runner: this process, or a client of the scheduler's workers; "local" starts them here."""
    if scheduler is None and client is None:
        yield Here()
        return
    if client is not None:
        yield OnDask(client)
        return
    distributed = library()
    if scheduler == "local":
        with (
            distributed.LocalCluster(threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
            distributed.Client(cluster, set_as_default=False) as own_client,
        ):
            own_client.run(_leave_interrupts)
            yield OnDask(own_client)
        return
    import dask

    with reaching(str(scheduler)):  # a client of an address that is none is long in going away
        distributed.comm.resolve_address(scheduler)
    with (
        reaching(str(scheduler)),
        dask.config.set({"distributed.comm.timeouts.connect": PATIENCE}),
        distributed.Client(scheduler, set_as_default=False, timeout=PATIENCE) as own_client,
    ):
        yield OnDask(own_client)


def _leave_interrupts() -> None:
    """Ignore Ctrl-C on a worker that was started here: the main process ends its workers."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def library() -> Any:
    """Return the `distributed` library, or raise InputError where it is not installed."""
    try:
        import distributed
    except ImportError as error:
        raise not_installed("A scheduler", "Dask", extra="scale") from error
    return distributed


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """Turn the errors that Dask raises over lost or absent machines into ClusterError."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        yield
    except IsoscopeError:
        raise
    except KilledWorker as error:
        raise ClusterError(
            f"a task killed {error.last_worker.address if error.last_worker else 'its worker'} and others "
            "before it",
            hint=["give the workers more memory", Setting("memory", to="make blocks smaller")],
        ) from error
    except ValueError as error:
        if "address" not in str(error):
            raise
        raise InputError(
            f"is {what!r}: {error}", argument="scheduler", wanted="tcp://host:port or local"
        ) from error
    except (CancelledError, CommClosedError, TimeoutError, OSError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
        raise ClusterError(
            f"{what} cannot be reached or went away ({first}); start it again, and the run again: with a "
            "checkpoint it goes on from there"
        ) from error
