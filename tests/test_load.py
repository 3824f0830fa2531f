"""Many threads, forks, many calls, and a bound on memory. The long forms: `python tests/test_load.py`."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso

METRICS = ["isoscore", "mean_cosine", "effective_rank", "silhouette"]
_MEASURED = """
import sys
file, memory = sys.argv[1:]
sys.argv = ["isoscope", "measure", file, "-m", "isoscore,mean_cosine", "--memory", memory, "--json"]
from isoscope.cli import main
main()
# not ru_maxrss, which a process takes over from the one that started it
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) * 1024, file=sys.stderr)
"""


def space(seed: int) -> tuple[np.ndarray, list[int]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(120, 6)) + np.repeat(np.eye(6)[:3] * 3, 40, axis=0), [i // 40 for i in range(120)]


def values(seed: int) -> tuple[float, ...]:
    X, labels = space(seed)
    found = iso.measure(iso.Space(X, labels=labels), metrics=METRICS, progress=False)
    return (*(found[name] for name in METRICS), iso.isoscore(X), iso.silhouette_score(X, labels))


@pytest.mark.slow
def test_sixty_four_threads_at_once_give_the_numbers_of_one() -> None:
    expected = [values(seed) for seed in range(8)]
    start = threading.Barrier(64)

    def work(place: int) -> tuple[float, ...]:
        start.wait()
        return values(place % 8)

    with ThreadPoolExecutor(64) as pool:
        for place, found in enumerate(pool.map(work, range(64))):
            assert np.allclose(found, expected[place % 8], rtol=1e-9, atol=1e-12)


FORKS = """
import multiprocessing
import threading
from tests.test_load import space, values
import isoscope as iso

X, labels = space(0)
made = iso.Space(X, labels=labels)
expected = values(0)  # threads of the parent have run

def child(queue):
    thread = threading.Thread(target=values, args=(0,))  # the first to compute may be any thread
    thread.start()
    thread.join()
    queue.put((iso.measure(made, metrics=["isoscore"], progress=False)["isoscore"], values(0)))

fork = multiprocessing.get_context("fork")
queue = fork.Queue()
children = [fork.Process(target=child, args=(queue,), daemon=True) for _ in range(2)]
for each in children:
    each.start()
for each in children:
    one, several = queue.get(timeout=120)
    assert abs(one - expected[-2]) < 1e-12 and max(abs(a - b) for a, b in zip(several, expected)) < 1e-9
for each in children:
    each.join(timeout=60)
    assert each.exitcode == 0
print("the same")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("n_threads", [1, 4])
def test_forked_processes_measure_too(n_threads: int) -> None:
    """With several threads, those of the parent are gone in its children, and OpenMP would wait for them."""
    root = Path(__file__).parents[1]
    environment = os.environ | {
        "OMP_NUM_THREADS": str(n_threads),
        "PYTHONPATH": os.pathsep.join([str(root), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=240, env=environment, cwd=root
    )
    assert done.stdout == "the same\n", done.stderr


def grown(n_calls: int) -> tuple[int, int, int]:
    """Return how many bytes, threads and file descriptors are more after so many calls than before them."""
    X, labels = space(0)

    def counts() -> tuple[int, int, int]:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize(), threading.active_count(), len(os.listdir("/proc/self/fd"))

    for _ in range(100):  # until every cache is filled
        iso.measure(iso.Space(X, labels=labels), metrics=METRICS, progress=False)
    before = counts()
    for _ in range(n_calls):
        iso.measure(iso.Space(X, labels=labels), metrics=METRICS, progress=False)
    after = counts()
    return after[0] - before[0], after[1] - before[1], after[2] - before[2]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="counts by /proc")
def test_many_calls_leave_nothing_behind() -> None:
    """In a process of its own: the one that runs all tests has threads and files of others."""
    code = "from test_load import grown; print(*grown(250))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    n_bytes, n_threads, n_files = map(int, done.stdout.split())
    assert n_bytes < 16 * 2**20
    assert (n_threads, n_files) == (0, 0)


def peak(folder: Path, n_bytes: int, memory: str) -> int:
    """Return the most memory that measuring a file of so many bytes takes, in a process of its own."""
    n_dims = 64
    n = n_bytes // (4 * n_dims)
    rows = np.random.default_rng(0).normal(size=(4096, n_dims)).astype(np.float32)
    path = folder / "large.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_2_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (n, n_dims)}
        )
        start = file.tell()
        file.write(rows.tobytes())  # the rest is a hole: zero vectors that take no room on the disk
        file.truncate(start + 4 * n * n_dims)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(path), memory], capture_output=True, text=True, check=True
    )
    path.unlink()
    return int(done.stderr.split()[-1])


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory as Linux counts it")
def test_memory_is_kept_within_the_bound(tmp_path: Path) -> None:
    assert peak(tmp_path, 400 * 10**6, "330MB") <= 330 * 10**6


if __name__ == "__main__":
    import tempfile

    print("10,000 calls: bytes, threads, files more:", grown(10_000))
    with tempfile.TemporaryDirectory() as here:
        print("peak of --memory 300MB on 3 GB:", peak(Path(here), 3 * 10**9, "300MB"))
