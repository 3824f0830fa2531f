"""Rows held by several processes, one a GPU: statistics reduced over all, row blocks passed round a ring.

Every process calls the same function with its own rows; each gets the whole answer, or its own rows' share
of it. torch.distributed must be initialised: nccl for CUDA, gloo for the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import load, save
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.engine.checkpoint import laid_out, rebuilt
from isoscope.engine.passes import Outcome
from isoscope.engine.run import gather
from isoscope.engine.runners import Here, Job
from isoscope.errors import InputError
from isoscope.kernels.precision import Frame
from isoscope.labels import Labels
from isoscope.metrics.silhouettes import silhouettes
from isoscope.space import Space
from isoscope.statistics.anchors import AnchorRows
from isoscope.statistics.directions import Directions
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.moments import Moments
from isoscope.statistics.nearest_clusters import reduce_sums
from isoscope.statistics.pairs import Separation
from isoscope.statistics.processes import summed
from isoscope.statistics.rows import HeldRows
from isoscope.statistics.tree import Tree

_FRAME_ROWS = 256
_BATCH_BYTES = 64 * 2**20  # of sums of own rows at a time


def ring_statistics(X: Any, needs: Iterable[str], *, labels: Any = None, seed: int = 0) -> Statistics:
    """Return a shelf with mergeable statistics of the rows of all processes, by the same passes and merges.

    Args:
        X: (n_p, d) this process's own rows, at least one.
        needs: the names of the statistics, the same in all processes.
        labels: the label of each own row.
        seed: of everything sampled, the same in all processes.
    """
    _need_processes()
    return gather(Space(X, labels=labels), needs, seed=seed, own_runner=AcrossProcesses())


def ring_moments(X: Any) -> Moments:
    """Return the moments of the rows of all processes; X is this process's own (n_p, d)."""
    moments: Moments = ring_statistics(X, ["moments"]).moments
    return moments


def ring_directions(X: Any) -> Directions:
    """Return the sums of unit vectors and lengths of the rows of all processes."""
    directions: Directions = ring_statistics(X, ["directions"]).directions
    return directions


class AcrossProcesses(Here):
    """Jobs of this process, each merged with those of all others, in the order of their ranks."""

    def outcomes(
        self, jobs: Iterable[Job], done: Callable[[int], None] | None = None, *, one_core: bool = False
    ) -> Iterator[Outcome]:
        """Return the outcome of each job over all processes, which have equal numbers of jobs."""
        for outcome in super().outcomes(jobs, done, one_core=one_core):
            yield _merged(outcome)


def _merged(outcome: Outcome) -> Outcome:
    """Return the merged outcomes of all processes; they are sent as tensors and JSON, never unpickled."""
    layout, tensors = laid_out(outcome)
    device = _device()
    tensors["layout"] = torch.frombuffer(bytearray(layout, "utf-8"), dtype=torch.uint8)
    mine = torch.frombuffer(bytearray(save(tensors)), dtype=torch.uint8).to(device)
    sizes = mine.new_zeros(dist.get_world_size(), dtype=torch.int64)
    sizes[dist.get_rank()] = len(mine)
    sizes = summed(sizes)
    room = mine.new_zeros(int(sizes.max()))
    room[: len(mine)] = mine
    all_rooms = [torch.empty_like(room) for _ in sizes]
    dist.all_gather(all_rooms, room)
    tree = Tree()
    for sent, size in zip(all_rooms, sizes.tolist(), strict=True):
        by_name = {
            name: tensor.to(device) for name, tensor in load(sent[:size].cpu().numpy().tobytes()).items()
        }
        text = by_name.pop("layout").cpu().numpy().tobytes().decode()
        tree.add({"outcome": rebuilt(text, by_name)})
    total: Outcome = tree.total()["outcome"]
    return total


def _device() -> torch.device:
    """Where the statistics of this process are, and its messages have to be."""
    if dist.get_backend() == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def ring_separation(X: Any, codes: Any, *, n_labels: int) -> Separation:
    """For each own row the mean distance to its own cluster and the nearest other one, among all rows.

    At every step each process sends the block it holds to the next one and meets the one that comes. So a
    process holds its own rows and two blocks, and every pair of rows is met on the device of each.

    Args:
        X: (n_p, d) this process's own rows; processes may hold different numbers, none included.
        codes: (n_p,) the cluster of each, 0 … n_labels − 1, the same in all processes.
        n_labels: K.
    """
    _need_processes()
    own_rows = as_matrix(X, finite=False).detach() if len(X) else torch.as_tensor(X).detach()
    labels = Labels(torch.as_tensor(codes, device=own_rows.device).long(), tuple(range(n_labels)))
    counts = summed(labels.counts.double())
    frame = _common_frame(own_rows)
    sums = own_rows.new_zeros(len(own_rows), n_labels, dtype=torch.float64)
    index = torch.arange(len(own_rows), device=own_rows.device)
    for visiting, visiting_codes, is_own in _round(own_rows, labels.codes):
        if not len(visiting) or not len(own_rows):
            continue
        here = AnchorRows.of(HeldRows(visiting), Labels(visiting_codes, labels.names))
        here = replace(here, frame=frame)
        batch = max(1, _BATCH_BYTES // (8 * max(n_labels, own_rows.shape[1])))
        for start in range(0, len(own_rows), batch):
            rows = slice(start, start + batch)
            place = index[rows] if is_own else index[rows] - len(own_rows)  # elsewhere: before the first
            sums[rows] += here.sums(own_rows[rows], place).T
    if not len(own_rows):
        nothing = sums.new_empty(0)
        return Separation(nothing, nothing, labels.codes, labels)
    return Separation(*reduce_sums(sums, labels.codes, counts), labels)


def ring_silhouette(X: Any, codes: Any, *, n_labels: int) -> float:
    """Return the mean silhouette of the rows of all processes; arguments as for `ring_separation`."""
    separation = ring_separation(X, codes, n_labels=n_labels)
    counts = summed(separation.labels.counts.double())
    alone = counts[separation.labels.codes] <= 1
    scores = silhouettes(separation, counted=False).masked_fill(alone, 0.0)
    total = summed(torch.stack([scores.sum(), scores.new_tensor(float(len(scores)))]))
    return float(total[0] / total[1])


def _round(own_rows: Tensor, codes: Tensor) -> Iterator[tuple[Tensor, Tensor, bool]]:
    """Yield the blocks of all processes, own first, and pass each one on to the next process."""
    rank, size = dist.get_rank(), dist.get_world_size()
    lengths = codes.new_zeros(size)
    lengths[rank] = len(own_rows)
    longest = summed(lengths)
    room = int(longest.max())
    rows = own_rows.new_zeros(room, own_rows.shape[1])
    rows[: len(own_rows)] = own_rows
    marks = codes.new_zeros(room)
    marks[: len(own_rows)] = codes
    for step in range(size):
        source = (rank - step) % size
        n = int(longest[source])
        requests = []
        if step < size - 1:  # what comes next travels while this block is met
            next_rows, next_marks = torch.empty_like(rows), torch.empty_like(marks)
            to, of = (rank + 1) % size, (rank - 1) % size
            exchange = [
                dist.P2POp(dist.isend, rows, to),
                dist.P2POp(dist.irecv, next_rows, of),
                dist.P2POp(dist.isend, marks, to),
                dist.P2POp(dist.irecv, next_marks, of),
            ]
            requests = dist.batch_isend_irecv(exchange)
        yield rows[:n], marks[:n], step == 0
        for request in requests:
            request.wait()
        if requests:
            rows, marks = next_rows, next_marks


def _common_frame(own_rows: Tensor) -> Frame:
    """One frame for all: about the mean of each process's first rows, in the largest unit."""
    first = own_rows[:_FRAME_ROWS].double()
    sums = own_rows.new_zeros(own_rows.shape[1] + 1, dtype=torch.float64)
    sums[:-1], sums[-1] = first.sum(dim=0), len(first)
    sums = summed(sums)
    center = sums[:-1] / sums[-1]
    spread = own_rows.new_zeros(1, dtype=torch.float64)
    if len(first):
        spread[0] = (first - center).square().sum(dim=1).mean().sqrt()
    dist.all_reduce(spread, op=dist.ReduceOp.MAX)
    step = center.new_zeros(own_rows.shape[1])
    step[0] = float(spread[0]) or 1.0
    return Frame.of(torch.stack([center - step, center + step]).to(own_rows.dtype))


def _need_processes() -> None:
    if not (dist.is_available() and dist.is_initialized()):
        raise InputError(
            "torch.distributed is not initialised",
            hint="start the processes with torchrun and call `init_process_group('nccl')`, "
            "or 'gloo' without CUDA",
        )
