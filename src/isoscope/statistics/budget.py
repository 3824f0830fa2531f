"""How much memory exact pair sums take beyond the points, and the tiles that keep within a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.arguments import parse_memory
from isoscope.errors import InputError, Setting
from isoscope.kernels.precision import DIRECT_BYTES, pair_dtype
from isoscope.kernels.tiles import CUDA_TILE_ROWS, TILE_ROWS
from isoscope.kernels.workers import AHEAD
from isoscope.labels import Labels

MEMORY_MB = 256.0  # what tiles and sums may take where nothing else is asked for
_LEAST_ROWS = 48
_QUICK_ROWS = 192  # under this, products of tiles are so slow that each pair twice in larger ones is quicker
_SHARED_ROWS = 256  # up to here points are not worth sharing out among cores
_LEAST_CUDA_ROWS = 256
_SCRATCH_BYTES = 48 * 2**20  # kept by the allocator, the threads' products and the reduction of sums
_VECTORS = 12  # of n numbers of 8 bytes: order, codes, squares, terms, results


@dataclass(frozen=True)
class TilePlan:
    """Rows of a tile, whether all sums over large clusters are kept, and the memory beyond the points.

    Attributes:
        tile_rows: the most rows a tile has.
        keeps_sums: each pair once and all sums kept; if not, whole rows at a time, each pair twice.
        arranged_bytes: for the sorted points, about one copy of them.
        working_bytes: for tiles and sums.
    """

    tile_rows: int
    keeps_sums: bool
    arranged_bytes: int
    working_bytes: int

    @property
    def n_bytes(self) -> int:
        """All of it."""
        return self.arranged_bytes + self.working_bytes

    @classmethod
    def of(cls, X: Tensor, labels: Labels, tile_rows: int, keeps_sums: bool) -> TilePlan:
        """Return the plan with an upper bound of its memory."""
        n, d = X.shape
        n_rows, size = min(tile_rows, n), pair_dtype(X).itemsize
        n_large = int((labels.counts >= tile_rows // 2).sum())
        n_workers = 1 if X.is_cuda else torch.get_num_threads()
        sums = 8 * (2 + n_large) * (n if keeps_sums else 3 * n_rows)
        sums += 8 * d * (1 + n_large + n // n_rows)  # centres, and what they are made of
        working = n_workers * _tile_bytes(n_rows, d, min(n_rows, labels.n_labels), size) + sums
        arranged = n * ((d + 2) * size + 8 * _VECTORS)
        return cls(tile_rows, keeps_sums, arranged, working + _SCRATCH_BYTES)


def _tile_bytes(n_rows: int, d: int, n_clusters: int, size: int) -> int:
    """Return the most memory of a thread: rows and distances of a tile, those redone in float64, and sums."""
    pairs = n_rows * n_rows
    direct_again = 4 * min(DIRECT_BYTES, pairs * d) + 4 * pairs
    all_again = 16 * pairs + 32 * n_rows * d
    to_come = 2 * AHEAD * 3 * 8 * n_rows
    sums = size * 2 * n_clusters * n_rows
    return size * (2 * pairs + 3 * n_rows * d) + sums + to_come + pairs + max(direct_again, all_again)


def tile_plans(X: Tensor, labels: Labels, memory: str | float | None = None) -> list[TilePlan]:
    """Return the plans to try in turn: on the CPU the fastest within the limit, on CUDA ever smaller tiles.

    Without a bound, tiles and sums take at most 256 MB, and the sorted points what they need.
    """
    if X.is_cuda:
        if memory is not None:
            raise InputError(
                f"bounds the memory of the CPU, and `X` is on {X.device}",
                argument="memory",
                hint=Setting("memory", verb="leave out"),
            )
        sides = _halved(CUDA_TILE_ROWS, _LEAST_CUDA_ROWS)
        return [TilePlan.of(X, labels, side, side == CUDA_TILE_ROWS) for side in sides]
    most = max(_SHARED_ROWS, len(X) / (2 * torch.get_num_threads() ** 0.5))  # tiles enough for all cores
    sides = [side for side in _halved(TILE_ROWS, _LEAST_ROWS) if side <= most]
    once = [TilePlan.of(X, labels, side, True) for side in sides if side >= _QUICK_ROWS]
    plans = once + [TilePlan.of(X, labels, side, False) for side in sides]
    limit = parse_memory(memory)
    if limit is None:
        fitting = [plan for plan in plans if plan.working_bytes <= MEMORY_MB * 2**20]
        return fitting[:1] or [min(plans, key=lambda plan: plan.n_bytes)]
    fitting = [plan for plan in plans if plan.n_bytes <= limit]
    if not fitting:
        least = math.ceil(min(plan.n_bytes for plan in plans) / 10**6)
        raise InputError(
            f"leaves no room for one tile of {len(labels):,} points of {X.shape[1]} dimensions",
            argument="memory",
            got=memory,
            wanted=f"at least {least:,} MB",
            hint=Setting("tolerance", to="estimate the metric from a sample"),
        )
    return fitting[:1]


def no_room(plan: TilePlan, device: torch.device) -> InputError:
    """Return the error for a device without memory for the smallest tiles."""
    return InputError(
        f"does not fit on {device}, since tiles of {plan.tile_rows} rows need "
        f"{math.ceil(plan.n_bytes / 10**6):,} MB more",
        argument="X",
        hint=[
            "free that much memory",
            "pass `X.cpu()`",
            Setting("tolerance", to="estimate the metric from a sample"),
        ],
    )


def _halved(largest: int, least: int) -> list[int]:
    """Return the numbers from the largest down to the least, each half of the one before."""
    return [largest >> step for step in range(int(math.log2(largest / least)) + 1)]
