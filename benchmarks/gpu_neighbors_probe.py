"""Which way of finding neighbours is fastest on this GPU: python -m benchmarks.gpu_neighbors_probe"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import torch
from torch import Tensor

import isoscope as iso
from isoscope.kernels import nearest, selection
from isoscope.kernels.nearest import Search
from isoscope.kernels.selection import smallest

N, D, K = 100_000, 384, 100
CHECKED = 500


def milliseconds(run: Callable[[], object], *, rounds: int = 3) -> float:
    run()
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return 1e3 * best


@contextmanager
def settings(
    *, coarse: bool = True, group: int = 32, strip: int = 2**31, spare: int = 28, gather: int = 2**29
) -> Iterator[None]:
    held = (
        nearest._has_tensor_cores,
        selection._CUDA_GROUP,
        nearest.CUDA_STRIP_BYTES,
        nearest._COARSE_SPARE,
        nearest._CUDA_GATHER_BYTES,
    )
    nearest._has_tensor_cores = lambda points: points.is_cuda and coarse
    selection._CUDA_GROUP, nearest.CUDA_STRIP_BYTES = group, strip
    nearest._COARSE_SPARE, nearest._CUDA_GATHER_BYTES = spare, gather
    try:
        yield
    finally:
        nearest._has_tensor_cores, selection._CUDA_GROUP, nearest.CUDA_STRIP_BYTES = held[:3]
        nearest._COARSE_SPARE, nearest._CUDA_GATHER_BYTES = held[3:]


def spaces() -> dict[str, Tensor]:
    generator = torch.Generator("cuda").manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, device="cuda", generator=generator)

    clusters = normal(200, D)[torch.randint(0, 200, (N,), device="cuda", generator=generator)]
    return {
        "normal": normal(N, D),
        "clusters": clusters + 0.3 * normal(N, D),
        "anisotropic": normal(N, D) * torch.logspace(1, -1, D, device="cuda") + 5,
        "collapsed": clusters + 1e-3 * normal(N, D),
    }


def error(X: Tensor) -> float:
    """Largest relative error of the distances of some rows, against float64."""
    some = torch.linspace(0, N - 1, CHECKED, device="cuda").long()
    exact = torch.cdist(X[some].double(), X.double(), compute_mode="donot_use_mm_for_euclid_dist")
    exact[torch.arange(CHECKED, device="cuda"), some] = torch.inf
    exact = exact.topk(K, dim=1, largest=False).values
    found = iso.Neighbors.of(X, k=K).distances[some]
    return float(((found - exact).abs() / exact).max())


def levels(X: Tensor) -> str:
    """How many rows each level was asked for."""
    seen: list[str] = []
    run = Search._run

    def counted(self: Search, level: nearest.Level, places: Tensor, *rest: object) -> Tensor:
        seen.append(f"{'coarse' if level.coarse else level.columns.dtype}:{len(places)}")
        return run(self, level, places, *rest)  # type: ignore[arg-type]

    with patch.object(Search, "_run", counted):
        iso.Neighbors.of(X, k=K)
    return " ".join(seen).replace("torch.", "")


def pieces(X: Tensor) -> None:
    """What the steps of one strip cost, times the number of strips."""
    search = Search.of(X, X, own=True, dtype=torch.float32)
    n_rows = nearest.CUDA_STRIP_BYTES // (4 * N)
    places = torch.arange(n_rows, device="cuda")
    strip = torch.empty(n_rows, N, device="cuda")
    made = search._levels()
    coarse, plain = next(made), next(made)
    rows = search._placed(X[places], torch.float32)
    times = {
        "levels made": milliseconds(lambda: next(search._levels())) * n_rows / N,
        "product tf32": milliseconds(lambda: coarse.products(rows, strip)),
        "product fp32": milliseconds(lambda: plain.products(rows, strip)),
        "minima of 32": milliseconds(lambda: strip[:, : N // 32 * 32].view(n_rows, 32, -1).amin(dim=1)),
        "smallest, 16": milliseconds(lambda: smallest(strip, K + 28, group=16)),
        "smallest, 32": milliseconds(lambda: smallest(strip, K + 28, group=32)),
        "smallest, 64": milliseconds(lambda: smallest(strip, K + 28, group=64)),
        "topk whole": milliseconds(lambda: strip.topk(K + 8, dim=1, largest=False, sorted=False), rounds=1),
    }
    _, indices = smallest(strip, K + 28)
    assert coarse.vectors is not None
    vectors = coarse.vectors
    times["differences"] = milliseconds(lambda: nearest._differences(rows, vectors, indices))
    found = nearest._differences(rows, vectors, indices)
    times["sort"] = milliseconds(lambda: found.sort(dim=1))
    times["strip, all"] = milliseconds(lambda: search._strip(coarse, places, K, strip))
    for name, each in times.items():
        print(f"  {name:14s} {each * N / n_rows:8.1f} ms")


def main() -> None:
    made = spaces()
    X = made["normal"]
    print(torch.cuda.get_device_name(), torch.__version__)
    print("steps, over all strips")
    pieces(X)
    print("lid, k = 100, normal")
    for options in (
        {},
        {"group": 16},
        {"group": 64},
        {"strip": 2**29},
        {"strip": 2**30},
        {"strip": 2**32},
        {"gather": 2**25},
        {"gather": 2**27},
        {"spare": 12},
        {"coarse": False},
    ):
        with settings(**options):
            print(f"  {options!s:20s} {milliseconds(lambda: iso.lid(X, k=K)):8.1f} ms")
    print("spaces: ms, relative error of distances, rows a level")
    for name, space in made.items():
        for coarse in (True, False):
            with settings(coarse=coarse):
                ms = milliseconds(partial(iso.Neighbors.of, space, k=K), rounds=1)
                print(f"  {name:12s} coarse={coarse!s:6s} {ms:8.1f} ms  {error(space):.1e}  {levels(space)}")
    print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
