"""Past memory: a large file streamed, exact pairs on Dask's workers, and what that makes of larger runs.

python -m benchmarks.scale                       20 M × 384 float16 on disk (15 GB), as the figures want it
python -m benchmarks.scale --share 0.02          a fiftieth of it, to try: fixed costs weigh, nothing is kept
python -m benchmarks.scale --folder /big/disk    where the files are made (and deleted afterwards)
python -m benchmarks.scale --part per_core       one part, the others as kept
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import isoscope as iso
from benchmarks.reasons import REASONS
from benchmarks.timing import machine, on_machine
from isoscope.engine.costs import cost
from isoscope.metrics.registry import KNOWN

N, D, SHARDS = 20_000_000, 384, 40
PAIRS_N, PAIRS_D, PAIRS_K = 100_000, 128, 10
PER_CORE_N, PER_CORE_TURNS = 40_000, 3
SCALING_N = 60_000  # some 15 s on one worker: what is fixed, a second, does not weigh
WANTED = {"share": 0.7, "peak_mb": 2000.0, "scaling": 1.7, "over_memory": 1.3}
RESULTS = Path(__file__).parent / "results" / "scale.json"
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=1.0, help="of the rows; results are kept of all only")
    parser.add_argument("--folder", type=Path, default=None, help="where 15 GB fit")
    parser.add_argument("--part", choices=("stream", "pairs", "per_core", "all"), default="all")
    asked = parser.parse_args()
    kept = {} if asked.part == "all" else json.loads(RESULTS.read_text())
    results = run(asked.share, asked.folder, asked.part, kept)
    print(json.dumps(results, indent=2))
    if asked.share == 1:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")


def run(share: float, folder: Path | None, part: str, kept: Row) -> Row:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        room = shutil.disk_usage(place).free
        wanted = int(2.2 * N * D * share) if part in ("stream", "all") else 10**9
        if room < wanted:
            raise SystemExit(f"{place} has {room / 1e9:.0f} GB free; wanted {wanted / 1e9:.0f} GB")
        results: Row = {**kept, "share": share}
        if part in ("stream", "all"):
            results["stream"] = {
                "machine": machine(),
                **stream(Path(place) / "shards", round(N * share)),
            }
            shutil.rmtree(Path(place) / "shards")
        if part in ("per_core", "all"):
            results["per_core"] = {
                "machine": machine(),
                **per_core(Path(place), round(PER_CORE_N * share**0.5)),
            }
        if part in ("pairs", "all"):
            sizes = round(PAIRS_N * share**0.5), round(SCALING_N * share**0.5)
            results["pairs"] = {"machine": machine(), **pairs(Path(place), *sizes)}
        results["elsewhere"] = elsewhere(results)
    return results


def moment_metrics() -> list[iso.Metric]:
    """Every metric on moments and directions alone."""
    held = {"moments", "directions"}
    return [metric for metric in iso.registered().values() if metric.needs and metric.needs <= held]


_MEASURE = """
import json, sys, time
import isoscope as iso
source = iso.open_vectors(sys.argv[1])
began = time.perf_counter()
found = iso.measure(source, metrics=sys.argv[2].split(","), errors=False, memory="2GB")
seconds = time.perf_counter() - began
lines = open("/proc/self/status").read().splitlines()
peak = next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM"))
print(json.dumps({"seconds": seconds, "peak_mb": peak, "isoscore": found["isoscore"], "n": found.n}))
"""


def stream(folder: Path, n: int) -> Row:
    """All moment and direction metrics, against reading the files and against the products alone."""
    write_shards(folder, n, D, SHARDS, np.float16)
    size = sum(path.stat().st_size for path in folder.iterdir())
    names = ",".join(metric.name for metric in moment_metrics())
    best: Row = {}
    for _ in range(2):  # contenders take turns
        forget(folder)
        read = seconds(lambda: [drain(path) for path in sorted(folder.iterdir())])
        product = seconds(lambda: products(min(n, 400_000))) * max(1.0, n / 400_000)
        forget(folder)
        command = [sys.executable, "-c", _MEASURE, str(folder), names]
        done = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        turn = {**done, "read_seconds": read, "product_seconds": product}
        best = {key: min(value, best.get(key, value)) for key, value in turn.items()}
    floor = max(best["read_seconds"], best["product_seconds"])
    return {
        "what": f"{len(moment_metrics())} metrics of moments and directions, {n:,} × {D} float16",
        "n": n,
        "bytes": size,
        **best,
        "read_bytes_per_s": size / best["read_seconds"],
        "product_operations_per_s": 2.0 * n * D * D / best["product_seconds"],
        "share_of_what_binds": floor / best["seconds"],
        "wanted_share": WANTED["share"],
        "wanted_peak_mb": WANTED["peak_mb"],
    }


def pairs(place: Path, n: int, n_scaling: int) -> Row:
    """Time the exact silhouette on workers, and two workers against one."""
    from distributed import Client, LocalCluster

    write_shards(place / "scaling", n_scaling, PAIRS_D, 8, np.float32, labels=True)
    write_shards(place / "pairs", n, PAIRS_D, 20, np.float32, labels=True)
    found: Row = {"n": n, "d": PAIRS_D, "n_scaling": n_scaling}
    for n_workers in (1, 2):
        options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
        with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
            address = client.scheduler_info()["address"]
            on_dask(place / "scaling", address)  # every worker has imported all
            turns = [seconds(lambda at=address: on_dask(place / "scaling", at)) for _ in range(3)]
            found[f"seconds_{n_workers}_workers"] = min(turns)
            if n_workers == 2:
                began = time.perf_counter()
                found["silhouette"] = on_dask(place / "pairs", address)
                found["seconds"] = time.perf_counter() - began
    found["scaling"] = found["seconds_1_workers"] / found["seconds_2_workers"]
    found["wanted_scaling"] = WANTED["scaling"]
    began = time.perf_counter()
    found["in_memory"] = in_memory(place / "pairs")
    found["in_memory_seconds"] = time.perf_counter() - began
    found["difference"] = abs(found["silhouette"] - found["in_memory"])
    found["pair_operations_per_s"] = float(n) * n * (2 * PAIRS_D + 6) / 2 / found["seconds"]
    return found


def per_core(place: Path, n: int) -> Row:
    """Compare the CPU time that two workers of one core take with that of memory, in turns.

    CPU time does not count what other processes take of the cores.
    """
    from distributed import Client, LocalCluster

    folder = place / "per_core"
    write_shards(folder, n, PAIRS_D, 8, np.float32, labels=True)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    turns = []
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        address = client.scheduler_info()["address"]

        def of_workers() -> float:
            return sum(client.run(time.process_time).values())

        on_dask(folder, address), in_memory(folder)  # every process has imported all
        for _ in range(PER_CORE_TURNS):
            before = of_workers()
            on_dask(folder, address)
            own = of_workers() - before
            before = time.process_time()
            in_memory(folder)
            turns.append((own, time.process_time() - before))
    return {
        "n": n,
        "d": PAIRS_D,
        "cpu_seconds": min(own for own, _ in turns),
        "in_memory_cpu_seconds": min(other for _, other in turns),
        "over_memory": median(own / other for own, other in turns),
        "wanted_over_memory": WANTED["over_memory"],
    }


def in_memory(folder: Path) -> float:
    score: float = iso.silhouette_score(iso.open_vectors(folder, key="vectors", labels="labels").load())
    return score


def on_dask(folder: Path, address: str) -> float:
    source = iso.open_vectors(folder, key="vectors", labels="labels")
    found = iso.measure(source, metrics="silhouette", errors=False, scheduler=address)["silhouette"]
    assert found is not None
    return found


def page_lines() -> list[str]:
    """Return the text of docs/benchmarks.md from the saved results."""
    if not RESULTS.exists():
        return []
    results = json.loads(RESULTS.read_text())
    stream, pairs = results["stream"], results["pairs"]
    return [
        "",
        "## Past memory",
        "",
        f"{_where(stream)}: {stream['what']}:",
        f"{stream['seconds']:.0f} s, {stream['share_of_what_binds']:.2f} of what binds",
        f"(wanted ≥ {stream['wanted_share']:g}; reading alone {stream['read_seconds']:.0f} s, the general",
        f"products alone {stream['product_seconds']:.0f} s), {stream['peak_mb']:.0f} MB at most "
        f"(wanted < {stream['wanted_peak_mb']:.0f}).",
        *_missed(stream),
        "",
        f"{_where(pairs)}: exact silhouette of {pairs['n']:,} × {pairs['d']} on two Dask workers of one core",
        f"each: {pairs['seconds']:.0f} s, {pairs['difference']:.1e} from the value in memory, which takes",
        f"{pairs['in_memory_seconds']:.0f} s on two cores. Two workers against one: {pairs['scaling']:.2f} "
        f"times faster (wanted ≥ {pairs['wanted_scaling']:g}).",
        *_per_core_lines(results.get("per_core"), pairs),
        "",
        "Worked out for 10⁹ × 768 in half precision by the rates above: the longer of bytes over the rate of",
        "reading and operations over the rate of the pass, divided by the machines. Each is as if alone;",
        "measured together, metrics share their passes.",
        "",
        "| metric | passes | TB read | operations | 1 machine | 100 machines | 8 GPUs |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {row['metric']} | {row['passes']:,} | {row['bytes_read'] / 1e12:,.1f} "
            f"| {row['operations']:.1e} "
            f"| {lasting(row['seconds_here'])} | {lasting(row['seconds_on_100_machines'])} "
            f"| {lasting(row['seconds_on_8_gpus'])} |"
            for row in results["elsewhere"]
        ),
        "",
        "The GPUs are reckoned at the rate of the fused silhouette kernel on one, measured, and as read from",
        "memory that holds the vectors. The ring over several is tested on the CPU, not timed on GPUs.",
    ]


def _where(part: Row) -> str:
    return f"On {on_machine(part['machine'])}"


def _missed(stream: Row) -> list[str]:
    """Why the rate is not what was wanted, where it is not."""
    if stream["share_of_what_binds"] >= stream["wanted_share"]:
        return []
    return ["", f"Missed, and why: {REASONS.get(stream['what'], 'no reason known yet')}."]


def _per_core_lines(found: Row | None, pairs: Row) -> list[str]:
    """Return what the workers take of the cores beside memory."""
    if found is None:
        if "over_memory" not in pairs:
            return []
        return [
            "",
            f"By the clock that was {pairs['over_memory']:.2f} times as long as memory (wanted ≤ "
            f"{WANTED['over_memory']:g}), timed once, on shared cores, before a block was",
            "sorted and centred once for all strips. In CPU time, which other processes do not lengthen:",
            "not measured yet (`python -m benchmarks.scale --part per_core`).",
        ]
    over, wanted = found["over_memory"], found["wanted_over_memory"]
    missed = [] if over <= wanted else ["", f"Missed, and why: {REASONS['exact silhouette on Dask']}."]
    return [
        "",
        f"{_where(found)}, in CPU time, of {found['n']:,} × {found['d']}: two workers take "
        f"{found['cpu_seconds']:.1f} s, memory",
        f"{found['in_memory_cpu_seconds']:.1f} s; {over:.2f} times as long by the median of "
        f"{PER_CORE_TURNS} turns (wanted ≤ {wanted:g}).",
        *missed,
    ]


def lasting(seconds: float | None) -> str:
    """Seconds as a reader takes them in."""
    if seconds is None:
        return ""
    for size, unit in ((365 * 86_400, "years"), (86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.2g} s"


def gpu_rate() -> float | None:
    """Operations a second of the fused silhouette on one GPU, where that was measured."""
    path = RESULTS.with_name("gpu.json")
    rows = json.loads(path.read_text())["silhouette"] if path.exists() else []
    return max((1e12 * row["tflops"] for row in rows if "tflops" in row), default=None)


def elsewhere(results: Row) -> list[Row]:
    """10⁹ × 768 float16, by the rates measured here: the arithmetic, not a promise."""
    n, d = 10**9, 768
    rates = results["stream"]
    rate = {
        "bytes_per_s": rates["read_bytes_per_s"],
        "operations_per_s": rates["n"] * (D * (D + 1) + 16 * D) / rates["seconds"],
    }
    rows, gpu = [], gpu_rate()
    for metric in iso.registered().values():
        needed = cost(metric, n=n, d=d, item_bytes=2)
        if needed is None:
            continue
        if "separation" in metric.needs:
            rate_here = {**rate, "operations_per_s": results["pairs"]["pair_operations_per_s"]}
        else:
            rate_here = rate
        one = needed.seconds(**rate_here)
        many = needed.seconds(**rate_here, n_machines=100)
        rows.append(
            {
                "metric": metric.name,
                "needs": sorted(metric.needs - set(KNOWN)),
                "passes": needed.passes,
                "bytes_read": needed.bytes_read,
                "operations": needed.operations,
                "seconds_here": max(one),
                "seconds_on_100_machines": max(many),
                "seconds_on_8_gpus": None if gpu is None else needed.operations / (8 * gpu),
            }
        )
    return rows


def write_shards(folder: Path, n: int, d: int, n_shards: int, dtype: type, labels: bool = False) -> None:
    """Clustered vectors away from the origin, drawn from one pool: making them is not measured."""
    from safetensors.numpy import save_file

    folder.mkdir()
    rng = np.random.default_rng(0)
    edges = [n * part // n_shards for part in range(n_shards + 1)]
    pool = rng.normal(size=(200_000, d)).astype(np.float32) * np.linspace(0.5, 2, d, dtype=np.float32) + 0.3
    centers = rng.normal(size=(PAIRS_K, d)).astype(np.float32)
    for number in range(n_shards):
        size = edges[number + 1] - edges[number]
        rows = pool[rng.integers(0, len(pool), size)]
        codes = rng.integers(0, PAIRS_K, size)
        rows += centers[codes] + rng.normal(scale=0.05, size=(1, d)).astype(np.float32)
        if labels:
            save_file({"vectors": rows.astype(dtype), "labels": codes}, folder / f"{number}.safetensors")
        else:
            np.save(folder / f"{number}.npy", rows.astype(dtype))


def forget(folder: Path) -> None:
    """Drop the files from the cache, so that the disk is read."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def drain(path: Path) -> None:
    with path.open("rb") as file:
        while file.read(2**24):
            pass


def products(n: int) -> None:
    """Time only the general products XᵀX, on a block in memory."""
    block = torch.ones(10_000, D)
    for _ in range(max(1, n // 10_000)):
        _ = block.T @ block


def seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
