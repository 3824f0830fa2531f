"""Run a test file as two processes of `torch.distributed` and collect what each of them returns.

The file ends in

    if __name__ == "__main__":
        distributed.main(work)

and its fixture calls `distributed.run(__file__, folder)`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
N_PROCESSES = 2


def run(file: str, folder: Path) -> list[dict[str, Any]]:
    """Run the test file in two processes, and return what `work` returned in each of them."""
    if not torch.distributed.is_available():
        pytest.skip("torch without torch.distributed")
    module = ".".join(Path(file).resolve().relative_to(ROOT).with_suffix("").parts)
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo"}
    processes = []
    for rank in range(N_PROCESSES):
        command = [sys.executable, "-m", module, str(rank), str(folder)]
        with (folder / f"{rank}.txt").open("w") as errors:
            processes.append(subprocess.Popen(command, cwd=ROOT, env=environment, stderr=errors))
    try:
        for rank, process in enumerate(processes):
            assert process.wait(timeout=120) == 0, (folder / f"{rank}.txt").read_text()[-3000:]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(N_PROCESSES)]


def main(work: Callable[[int], dict[str, Any]]) -> None:
    """Be one of the processes: join the others, call `work` with the rank, and save its result."""
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=N_PROCESSES
    )
    torch.save(work(rank), folder / f"{rank}.pt")
    torch.distributed.destroy_process_group()
