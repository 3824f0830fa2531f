"""Machines that die: a worker changes nothing, a scheduler is said, and the run goes on from its folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoscope as iso
from isoscope.engine import runners, strips
from isoscope.errors import ClusterError

pytest.importorskip("distributed", reason="dask is not installed")

N, D, K = 8000, 32, 3
THIRD = "strip-000000000500-000000000750.safetensors"  # what is kept of the third strip


class Machines:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        quiet = ["--no-dashboard"]
        self.scheduler = self._start("scheduler", "--port", "0", "--host", "127.0.0.1", *quiet)
        deadline = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        options = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder), *quiet]
        self.workers = [self._start("worker", *options) for _ in range(2)]
        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(self.file), *options]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    machines = Machines(tmp_path_factory.mktemp("machines"))
    try:
        yield machines
    finally:
        machines.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards whose pairs take seconds."""
    from safetensors.numpy import save_file

    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, K, N)
    X = (rng.normal(size=(N, D)) + rng.normal(size=(K, D))[labels]).astype(np.float32)
    for part in range(4):
        rows = slice(part * N // 4, (part + 1) * N // 4)
        save_file({"vectors": X[rows], "labels": labels[rows]}, folder / f"{part}.safetensors")
    return folder


def once(path: Path, act: Callable[[], None]) -> threading.Thread:
    """Act as soon as a file is there."""

    def watch() -> None:
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def measured(folder: Path, **options: Any) -> Any:
    source = iso.open_vectors(folder, key="vectors", labels="labels")
    return iso.measure(source, metrics="isoscore,mean_cosine,silhouette", **options)


@pytest.mark.nightly
def test_machines_that_die(
    machines: Machines, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, for the processes take long to start: first a worker, then the scheduler."""
    monkeypatch.setattr(strips, "STRIP_ROWS", 250)  # 32 strips, 128 tasks
    expected = measured(large, checkpoint=tmp_path / "here")
    values = {name: expected[name] for name in expected}

    victim = machines.workers[0]
    killer = once(tmp_path / "one" / THIRD, lambda: victim.send_signal(signal.SIGKILL))
    found = measured(large, scheduler=machines.address, checkpoint=tmp_path / "one")
    killer.join()
    assert victim.wait(timeout=60) == -signal.SIGKILL  # it died before the end
    assert {name: found[name] for name in found} == pytest.approx(values, rel=1e-12)

    monkeypatch.setattr(runners, "PATIENCE", "5s")
    scheduler = machines.scheduler
    killer = once(tmp_path / "two" / THIRD, lambda: scheduler.send_signal(signal.SIGKILL))
    with pytest.raises(ClusterError, match=r"cannot be reached or went away.*with a checkpoint it goes on"):
        measured(large, scheduler=machines.address, checkpoint=tmp_path / "two")
    killer.join()
    finished = len(list((tmp_path / "two").glob("strip-*")))
    assert 3 <= finished < 32
    again = measured(large, checkpoint=tmp_path / "two")  # in this process, from what the workers finished
    assert {name: again[name] for name in again} == pytest.approx(values, rel=1e-12)
    assert any("were taken from" in note for note in again.notes)

    with pytest.raises(ClusterError, match=r"tcp://127.0.0.1:\d+ cannot be reached"):
        measured(large, scheduler=machines.address)
