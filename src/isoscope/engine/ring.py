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
from isoscope.statistics.pairs import Separation, reduce_sums
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
    return gather(Space(X, labels=labels), needs, seed=seed, own=AcrossProcesses())


def ring_moments(X: Any) -> Moments:
    """Return the moments of the rows of all processes; X is this process's own (n_p, d)."""
    found: Moments = ring_statistics(X, ["moments"]).moments
    return found


def ring_directions(X: Any) -> Directions:
    """Return the sums of unit vectors and lengths of the rows of all processes."""
    found: Directions = ring_statistics(X, ["directions"]).directions
    return found


class AcrossProcesses(Here):
    """Jobs of this process, each merged with those of all others, in the order of their ranks."""

    def outcomes(
        self, jobs: Iterable[Job], done: Callable[[int], None] | None = None, *, one_core: bool = False
    ) -> Iterator[Outcome]:
        """Return the outcome of each job over all processes, which have equal numbers of jobs."""
        for outcome in super().outcomes(jobs, done, one_core=one_core):
            yield _merged(outcome)


def _merged(own: Outcome) -> Outcome:
    """Return the merged outcomes of all processes; they are sent as tensors and JSON, never unpickled."""
    layout, tensors = laid_out(own)
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
        held = {name: one.to(device) for name, one in load(sent[:size].cpu().numpy().tobytes()).items()}
        text = held.pop("layout").cpu().numpy().tobytes().decode()
        tree.add({"outcome": rebuilt(text, held)})
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
    own = as_matrix(X, finite=False).detach() if len(X) else torch.as_tensor(X).detach()
    labels = Labels(torch.as_tensor(codes, device=own.device).long(), tuple(range(n_labels)))
    counts = summed(labels.counts.double())
    frame = _common_frame(own)
    sums = own.new_zeros(len(own), n_labels, dtype=torch.float64)
    index = torch.arange(len(own), device=own.device)
    for visiting, visiting_codes, is_own in _round(own, labels.codes):
        if not len(visiting) or not len(own):
            continue
        here = AnchorRows.of(HeldRows(visiting), Labels(visiting_codes, labels.names))
        here = replace(here, frame=frame)
        batch = max(1, _BATCH_BYTES // (8 * max(n_labels, own.shape[1])))
        for start in range(0, len(own), batch):
            rows = slice(start, start + batch)
            place = index[rows] if is_own else index[rows] - len(own)  # elsewhere: before the first
            sums[rows] += here.sums(own[rows], place).T
    if not len(own):
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


def _round(own: Tensor, codes: Tensor) -> Iterator[tuple[Tensor, Tensor, bool]]:
    """Yield the blocks of all processes, own first, and pass each one on to the next process."""
    rank, size = dist.get_rank(), dist.get_world_size()
    lengths = codes.new_zeros(size)
    lengths[rank] = len(own)
    longest = summed(lengths)
    room = int(longest.max())
    rows = own.new_zeros(room, own.shape[1])
    rows[: len(own)] = own
    marks = codes.new_zeros(room)
    marks[: len(own)] = codes
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


def _common_frame(own: Tensor) -> Frame:
    """One frame for all: about the mean of each process's first rows, in the largest unit."""
    first = own[:_FRAME_ROWS].double()
    sums = own.new_zeros(own.shape[1] + 1, dtype=torch.float64)
    sums[:-1], sums[-1] = first.sum(dim=0), len(first)
    sums = summed(sums)
    center = sums[:-1] / sums[-1]
    spread = own.new_zeros(1, dtype=torch.float64)
    if len(first):
        spread[0] = (first - center).square().sum(dim=1).mean().sqrt()
    dist.all_reduce(spread, op=dist.ReduceOp.MAX)
    step = center.new_zeros(own.shape[1])
    step[0] = float(spread[0]) or 1.0
    return Frame.of(torch.stack([center - step, center + step]).to(own.dtype))


def _need_processes() -> None:
    if not (dist.is_available() and dist.is_initialized()):
        raise InputError(
            "torch.distributed is not initialised",
            hint="start the processes with torchrun and call `init_process_group('nccl')`, "
            "or 'gloo' without CUDA",
        )
