"""Who does the work, and what is said when it cannot be done."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import ClusterError, FileError, InputError

distributed = pytest.importorskip("distributed", reason="dask is not installed")


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
    from isoscope.scale import runners

    def submitted(self: Any, job: Any) -> Any:
        raise distributed.KilledWorker("task", None, 3)

    monkeypatch.setattr(runners.OnDask, "_submitted", submitted)
    source = iso.open_vectors(shards, key="vectors")
    source.client = client
    with pytest.raises(ClusterError, match="do workers have memory enough"):
        iso.measure(source, metrics="isoscore", skip_bad=True)


def test_without_dask(shards: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"scheduler needs Dask: pip install 'isoscope\[scale\]'"):
        iso.measure(iso.open_vectors(shards, key="vectors"), scheduler="local")


@pytest.mark.parametrize("address", ["nonsense://here", "10.0.0.1", "tcp://10.0.0.1"])
def test_an_address_that_is_none(shards: Path, monkeypatch: Any, address: str) -> None:
    monkeypatch.setattr(distributed, "Client", None)  # none is made: it would be long in going away
    with pytest.raises(InputError, match=rf"scheduler is '{address}'.*wanted tcp://host:port or local"):
        iso.measure(iso.open_vectors(shards, key="vectors"), scheduler=address)


def test_workers_started_here_leave_interrupts_alone(shards: Path) -> None:
    """Ctrl-C ends the run; what would a worker say of it?"""
    from isoscope.scale.runners import runner

    with runner("local") as run:
        handlers = run._client.run(lambda: signal.getsignal(signal.SIGINT))
    assert set(handlers.values()) == {signal.SIG_IGN}
