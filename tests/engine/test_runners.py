"""Who does the work, and what is said when it cannot be done."""

from __future__ import annotations

import importlib
import itertools
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.engine.passes import Outcome
from isoscope.engine.runners import Here, Job
from isoscope.engine.strips import PairSums
from isoscope.errors import ClusterError, FileError, InputError

distributed = pytest.importorskip("distributed", reason="dask is not installed")


@pytest.mark.slow
def test_a_local_cluster_is_started(
    shards: Path, vectors: np.ndarray, labels: np.ndarray, monkeypatch: Any
) -> None:
    started = []

    def cluster(**options: Any) -> Any:
        started.append(options)
        return real(processes=False, n_workers=2, **options)

    real = distributed.LocalCluster
    monkeypatch.setattr(distributed, "LocalCluster", cluster)
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    found = iso.measure(source, metrics="isoscore,silhouette", scheduler="local")
    assert started == [{"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}]
    assert found["silhouette"] == pytest.approx(iso.silhouette_score(vectors, labels), rel=1e-9)


def test_a_shard_that_breaks_on_a_worker_is_named(client: Any, shards: Path) -> None:
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    path = shards / "part-4.safetensors"
    path.write_bytes(path.read_bytes()[:-16])
    source.client = client
    with pytest.raises(FileError, match=r"part-4\.safetensors"):
        iso.measure(source, metrics="isoscore", checkpoint=shards.parent / "kept")
    found = iso.measure(source, metrics="isoscore", skip_bad=True)
    assert found.n == 240 - 50
    assert any("part-4.safetensors" in note for note in found.notes)


def test_workers_that_die_over_and_over(client: Any, shards: Path, monkeypatch: Any) -> None:
    from isoscope.engine import runners

    def submitted(self: Any, job: Any) -> Any:
        raise distributed.KilledWorker("task", None, 3)

    monkeypatch.setattr(runners.OnDask, "_submitted", submitted)
    source = iso.open_vectors(shards, key="vectors")
    with raises(ClusterError, message="killed", hint="memory"):
        iso.measure(source, metrics="isoscore", skip_bad=True, scheduler=client.scheduler.address)


def test_without_dask(shards: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with raises(InputError, message="Dask, which is not installed", hint=r"isoscope\[scale\]"):
        iso.measure(iso.open_vectors(shards, key="vectors"), scheduler="local")


@pytest.mark.parametrize("address", ["nonsense://here", "10.0.0.1", "tcp://10.0.0.1"])
def test_an_address_that_is_none(shards: Path, monkeypatch: Any, address: str) -> None:
    monkeypatch.setattr(distributed, "Client", None)  # none is made: it would be long in going away
    with raises(argument="scheduler", message=f"'{address}'", wanted="tcp://host:port or local"):
        iso.measure(iso.open_vectors(shards, key="vectors"), scheduler=address)


@pytest.mark.slow
def test_workers_started_here_leave_interrupts_alone(shards: Path) -> None:
    """Ctrl-C ends the run; what would a worker say of it?"""
    from isoscope.engine.runners import runner

    with runner("local") as run:
        handlers = run._client.run(lambda: signal.getsignal(signal.SIGINT))
    assert set(handlers.values()) == {signal.SIG_IGN}


class TestHere:
    """Calls of several jobs, on a core each or one by one: the same outcomes in the same order."""

    @staticmethod
    def jobs(sizes: list[int]) -> list[Job]:
        def task(place: int, shared: int) -> Outcome:
            time.sleep(0.001 * (place % 3))
            return Outcome({"sum": PairSums(torch.tensor([float(place + shared)]))}, {place: 1})

        edges = np.cumsum([0, *sizes])
        return [
            Job(task, [(place,) for place in range(start, stop)], (int, (1000 * number,)))
            for number, (start, stop) in enumerate(itertools.pairwise(edges))
        ]

    @pytest.mark.parametrize("one_core", [False, True])
    @pytest.mark.parametrize("sizes", [[1], [3, 1, 5], [2, 2], [7] * 9])
    def test_every_job_has_its_own_outcome(self, sizes: list[int], one_core: bool, set_threads: Any) -> None:
        set_threads(2)  # with one, calls never run at once
        told: list[int] = []
        found = list(Here().outcomes(self.jobs(sizes), told.append, one_core=one_core))
        edges = np.cumsum([0, *sizes])
        assert [list(one.rows) for one in found] == [list(range(a, b)) for a, b in itertools.pairwise(edges)]
        wanted = [sum(range(a, b)) + 1000 * k * (b - a) for k, (a, b) in enumerate(itertools.pairwise(edges))]
        assert [float(one.statistics["sum"].sums) for one in found] == wanted
        assert told == [number + 1 for size in sizes for number in range(size)]

    def test_several_calls_run_at_once_only_on_a_core_each(self, set_threads: Any) -> None:
        set_threads(2)
        beside: list[int] = []
        others = set(threading.enumerate())  # that tests before have left

        def task(place: int) -> Outcome:
            own = set(threading.enumerate()) - others
            beside.append(len([one for one in own if one.name.startswith("ThreadPool")]))
            return Outcome({}, {place: 1})

        jobs = [Job(task, [(0,), (1,)]), Job(task, [(2,), (3,)])]
        for one_core in (True, False):
            beside.clear()
            found = list(Here().outcomes(jobs, one_core=one_core))
            assert [one.rows for one in found] == [{0: 1, 1: 1}, {2: 1, 3: 1}]
            assert (max(beside) > 0) == one_core


@pytest.fixture
def two_cores() -> Iterator[None]:
    """With one, parts never run at once."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_many_parts_are_the_same_on_a_core_each(tmp_path: Path, monkeypatch: Any, two_cores: None) -> None:
    rng = np.random.default_rng(0)
    for number in range(9):
        np.save(tmp_path / f"{number}.npy", rng.normal(size=(300 + number, 12)).astype(np.float32))
    asked: list[bool] = []
    real = Here.outcomes

    def noting(self: Here, *args: Any, one_core: bool = False) -> Any:
        asked.append(one_core)
        return real(self, *args, one_core=one_core)

    monkeypatch.setattr(Here, "outcomes", noting)
    found = []
    for share in (0, 10**6):
        monkeypatch.setattr(importlib.import_module("isoscope.engine.run"), "_PARTS_A_CORE", share)
        kept = tmp_path.with_name(f"kept-{share}")
        source = iso.open_vectors(tmp_path)
        measured = iso.measure(source, metrics="isoscore,mean_cosine", checkpoint=kept)
        found.append((measured["isoscore"], measured["mean_cosine"]))
    assert found[0] == found[1]  # to the last bit
    assert {True, False} == set(asked)
