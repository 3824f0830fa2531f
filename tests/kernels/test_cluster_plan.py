"""Plans that kernels make of labels, under Triton's interpreter, against the labels taken one by one."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

from isoscope.kernels.cluster_plan import Capacity, ClusterPlan, Tuning

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
HAS_TRITON = find_spec("triton") is not None
interpreted = pytest.mark.skipif(not (INTERPRETED and HAS_TRITON), reason="run by test_under_the_interpreter")
TUNING = Tuning(rows=16, columns=8, mixed=8)
COUNTS = [[5], [100], [3, 3, 3], [10, 1, 1, 1, 50, 2], [1] * 40, [0, 4, 0, 30, 0], [7, 9] * 20]


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED or not HAS_TRITON, reason="wants Triton, outside its interpreter")
def test_under_the_interpreter(interpret) -> None:
    assert " passed" in interpret(__file__)


def shuffled(counts: list[int], seed: int = 0) -> torch.Tensor:
    codes = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return codes[torch.randperm(len(codes), generator=torch.Generator().manual_seed(seed))]


def rows_of(table: torch.Tensor) -> list[int]:
    return [row for start, stop in table[:2].T.tolist() for row in range(start, stop)]


@interpreted
@pytest.mark.parametrize("roomy", [False, True], ids=["exact", "with room"])
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_a_plan_covers_every_row_once(counts: list[int], roomy: bool) -> None:
    codes, K = shuffled(counts), len(counts)
    capacity = Capacity.around(counts, tuning=TUNING) if roomy else Capacity.of(counts, tuning=TUNING)
    plan = ClusterPlan.of(codes, K, capacity=capacity, tuning=TUNING)
    n = len(codes)
    assert plan.counts[plan.places].tolist() == counts
    assert plan.origin[plan.places].tolist() == list(range(K))
    assert torch.equal(plan.places[codes[plan.order]], plan.codes)
    assert (plan.codes.diff() >= 0).all()
    assert torch.equal(plan.order[plan.inverse], torch.arange(n))
    is_large = torch.tensor(counts)[codes[plan.order]] >= TUNING.mixed
    assert (plan.frames[is_large] == plan.codes[is_large]).all()
    assert (plan.frames[~is_large] == plan.n_frames - 1).all()
    assert sorted(rows_of(plan.chunks)) == sorted(rows_of(plan.tiles)) == list(range(n))
    assert sorted(rows_of(plan.large)) == is_large.nonzero().flatten().tolist()
    assert sorted(rows_of(plan.tiles[:, : capacity.n_pure])) == is_large.nonzero().flatten().tolist()
    for table, side in ((plan.chunks, 64), (plan.large, TUNING.rows), (plan.tiles, TUNING.mixed)):
        assert all(0 <= stop - start <= side for start, stop in table[:2].T.tolist())
    for start, stop, frame in plan.chunks.T.tolist():
        assert (plan.frames[start:stop] == frame).all()
    for start, stop, cluster in plan.large.T.tolist():
        assert (plan.codes[start:stop] == cluster).all()
    for start, stop, first, last in plan.tiles.T.tolist():
        if start < stop:
            assert (int(plan.codes[start]), int(plan.codes[stop - 1])) == (first, last)
            assert last - first < capacity.n_labels
    for frame in range(plan.n_frames):
        start, stop = plan.starts[frame : frame + 2].tolist()
        assert (plan.frames == frame).nonzero().flatten().tolist() == list(range(start, stop))
        pieces = plan.chunks[:, plan.chunk_of[frame] : plan.chunk_of[frame + 1]]
        assert rows_of(pieces) == list(range(start, stop))
    in_groups = [tile for first, last in plan.groups.T.tolist() for tile in range(first, last)]
    assert len(set(in_groups)) == len(in_groups)
    assert sorted(rows_of(plan.tiles[:, in_groups])) == list(range(n))
    n_large = int((torch.tensor(counts) >= TUNING.mixed).sum())
    n_empty = counts.count(0)
    assert plan.fits[:4].tolist() == [0, n_large, K - n_large - n_empty, n_empty]


@interpreted
def test_a_plan_tells_of_labels_that_do_not_fit() -> None:
    capacity = Capacity.around([50, 40, 30], tuning=TUNING)
    assert (capacity.n_large, capacity.n_small) == (3, 0)
    for codes, n_outside in (
        (shuffled([50, 66, 4]), 0),  # a cluster is small now
        (shuffled([50, 40, 30]) + 1, 30),
        (shuffled([50, 40, 30]) - 1, 50),
    ):
        fits = ClusterPlan.of(codes, 3, capacity=capacity, tuning=TUNING).fits.tolist()
        assert fits[0] == n_outside
        assert fits[0] or not capacity.holds(fits[1], fits[2] + fits[3], fits[4])
    crowded = [1] * 17 + [7] * 16
    room = Capacity.around([7] * 33, tuning=Tuning(mixed=32))
    assert room.n_labels == 16
    assert ClusterPlan.of(shuffled(crowded), 33, capacity=room, tuning=Tuning(mixed=32)).fits[4] > 16


@interpreted
@pytest.mark.parametrize("n_clusters", [5, 3000], ids=["counted together", "counted one by one"])
def test_many_clusters_are_placed_block_by_block(n_clusters: int) -> None:
    codes = torch.randint(0, n_clusters, (4000,), generator=torch.Generator().manual_seed(0))
    plan = ClusterPlan.of(codes, n_clusters, tuning=TUNING)
    assert torch.equal(plan.counts[plan.places].long(), torch.bincount(codes, minlength=n_clusters))
    assert torch.equal(plan.places[codes[plan.order]], plan.codes)


def test_room_is_for_clusters_that_cross_the_size_of_a_large_one() -> None:
    room = Capacity.around([200, 70, 50, 3], tuning=Tuning())
    assert (room.n_large, room.n_small) == (3, 3)
    assert room.holds(2, 2, 16)
    assert not room.holds(4, 0, 16)
    assert not room.holds(0, 4, 16)
    assert Capacity.of([200, 70, 50, 3], tuning=Tuning()).holds(2, 2, 16)
