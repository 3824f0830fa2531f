"""Run the tests as other machines would: other instructions, threads, loads and orders.

    python -m tests.settings                  every setting, one after the other
    python -m tests.settings avx2 busy        some of them
    python -m tests.settings -- tests/io      what follows -- goes to pytest

Prints a table in Markdown. What pytest wrote is in build/settings/, one file for each setting.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "settings"
NICENESS = 5  # of the busy processes: at 0 they would leave the tests a fifth of two cores, at 5 two fifths
COUNTED = ("passed", "failed", "skipped")


@dataclass(frozen=True)
class Setting:
    """How the tests are run.

    Attributes:
        about: what is particular about it, for the table.
        seed: of the order of the tests.
        n_threads: of each process of tests; there are two.
        n_busy: processes that do nothing but keep a core busy.
        environment: what chooses the instructions.
    """

    about: str
    seed: int
    n_threads: int = 1
    n_busy: int = 0
    environment: dict[str, str] = field(default_factory=dict)


AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
SETTINGS = {
    "native": Setting("the CPU's own instructions", seed=1),
    "avx2": Setting("no AVX-512", seed=2, n_threads=2, environment=AVX2),
    "default": Setting(
        "no vector instructions in torch", seed=3, environment={"ATEN_CPU_CAPABILITY": "default"}
    ),
    # products that add row after row, as MKL does on CPUs it does not know
    "compatible": Setting(
        "MKL's oldest kernels", seed=1, n_threads=2, environment={"MKL_CBWR": "COMPATIBLE"}
    ),
    "busy": Setting(f"eight busy processes beside, at nice {NICENESS}", seed=2, n_busy=8),
}


@contextlib.contextmanager
def busy(n: int) -> Iterator[None]:
    """Keep n cores busy for as long as the block lasts."""
    spin = f"import os; os.nice({NICENESS})\nwhile True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def counts(output: str) -> dict[str, int]:
    """Return the numbers of pytest's last line; errors count as failures."""
    last = output.strip().rpartition("\n")[2]
    found = {name: int(number) for number, name in re.findall(r"(\d+) ([a-z]+)", last)}
    found["failed"] = found.get("failed", 0) + found.get("error", 0) + found.get("errors", 0)
    return {name: found.get(name, 0) for name in COUNTED}


def run(name: str, options: list[str]) -> bool:
    """Run the tests under one setting, print its row, and return whether pytest was content."""
    setting = SETTINGS[name]
    command = [sys.executable, "-m", "pytest", "--verbose", "--numprocesses=2", "--dist=worksteal"]
    command += [f"--randomly-seed={setting.seed}", "-p", "no:cacheprovider", *options]
    environment = os.environ | {"OMP_NUM_THREADS": str(setting.n_threads)} | setting.environment
    started = time.monotonic()
    with busy(setting.n_busy), open(FOLDER / f"{name}.txt", "w") as log:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False
        )
    seconds = time.monotonic() - started
    cells = [name, setting.about, setting.n_threads, setting.seed]
    cells += [*counts((FOLDER / f"{name}.txt").read_text()).values(), f"{seconds:.0f}"]
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    return done.returncode == 0


def main() -> None:
    """Run the settings asked for; exit with 1 where a test failed."""
    given = sys.argv[1:]
    end = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(description="Run the tests as other machines would.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SETTINGS)}; all by default")
    names = parser.parse_args(given[:end]).names or list(SETTINGS)
    unknown = sorted(set(names) - set(SETTINGS))
    if unknown:
        parser.error(f"no setting called {', '.join(unknown)}; there are {', '.join(SETTINGS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    heads = ["setting", "", "threads", "seed", *COUNTED, "seconds"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
    content = [run(name, given[end + 1 :]) for name in names]
    sys.exit(0 if all(content) else 1)


if __name__ == "__main__":
    main()
