"""Where the benchmarks of a GPU run: on CUDA, or tiny on the CPU, to see that they run."""

from __future__ import annotations

from typing import Any

import torch

_where = {"device": "cuda", "shrink": 1}


def try_on_cpu() -> None:
    """Run on the CPU from now on, with a hundredth of the rows."""
    _where.update(device="cpu", shrink=100)
    torch.set_num_threads(1)


def device() -> str:
    """Return the device to compute on."""
    return str(_where["device"])


def is_small() -> bool:
    """Return whether sizes are tiny."""
    return _where["shrink"] != 1


def rows(n: int) -> int:
    """Return n rows, or few where sizes are tiny."""
    return n if n < 100 or not is_small() else max(100, min(n // int(_where["shrink"]), 1000))


def few(n: int) -> int:
    """Return n rounds, or one where sizes are tiny."""
    return 1 if is_small() else n


def steps(n: int) -> int:
    """Return n steps of training, or ten where sizes are tiny."""
    return 10 if is_small() else n


def name() -> str:
    """Return the name of the device."""
    return torch.cuda.get_device_name() if device() == "cuda" else "CPU"


def generator() -> torch.Generator:
    """Return a generator of numbers there, with a seed."""
    return torch.Generator(device()).manual_seed(0)


def wait() -> None:
    """Wait for what has been launched."""
    if device() == "cuda":
        torch.cuda.synchronize()


def fresh() -> None:
    """Give back memory that nothing holds, and forget how much was held."""
    if device() == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak_gb() -> float:
    """Return the most memory that was held, in GB."""
    return torch.cuda.max_memory_allocated() / 1e9 if device() == "cuda" else 0.0


def put(array: Any) -> torch.Tensor:
    """Return an array there."""
    return torch.as_tensor(array).to(device())
