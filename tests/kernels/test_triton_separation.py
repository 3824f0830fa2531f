"""The own and the nearest cluster under Triton's interpreter, against direct differences."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

from isoscope.kernels.cluster_plan import ClusterPlan, Tuning

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
HAS_TRITON = find_spec("triton") is not None
interpreted = pytest.mark.skipif(not (INTERPRETED and HAS_TRITON), reason="run by test_under_the_interpreter")
SMALL = Tuning(rows=64, columns=32, dims=32, mixed=32, group=2)


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED or not HAS_TRITON, reason="wants Triton, outside its interpreter")
def test_under_the_interpreter(interpret) -> None:
    assert " passed" in interpret(__file__)


@interpreted
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    "counts",
    [
        pytest.param([80, 70], id="two", marks=pytest.mark.nightly),
        pytest.param([3, 30, 1, 1, 20, 2, 40, 1], id="mixed"),
        pytest.param([1] * 25 + [2] * 5 + [0, 5, 40], id="many"),
    ],
)
def test_means_are_the_direct_ones(counts: list[int], deterministic: bool) -> None:
    from isoscope.kernels.triton_separation import cluster_separation

    g = torch.Generator().manual_seed(0)
    codes = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    codes = codes[torch.randperm(len(codes), generator=g)]
    X = torch.randn(2, len(codes), 33, generator=g) * 3 + 5
    plan = ClusterPlan.of(codes, len(counts), tuning=SMALL)
    *found, scores = cluster_separation(X, plan, deterministic=deterministic)
    sizes = torch.tensor(counts, dtype=torch.float64)
    for space, cohesion, separation, nearest, score in zip(X.double(), *found, scores, strict=True):
        distances = torch.cdist(space, space, compute_mode="donot_use_mm_for_euclid_dist")
        sums = distances.new_zeros(len(codes), len(counts)).index_add_(1, codes, distances)
        own = sums.gather(1, codes[:, None])[:, 0] / (sizes[codes] - 1).clamp(min=1)
        means = torch.where(sizes > 0, sums / sizes, torch.inf).scatter(1, codes[:, None], torch.inf)
        torch.testing.assert_close(cohesion, own, rtol=1e-6, atol=0)
        torch.testing.assert_close(separation, means.amin(dim=1), rtol=1e-6, atol=0)
        assert torch.equal(nearest, means.argmin(dim=1))
        silhouettes = (separation - cohesion) / torch.maximum(cohesion, separation)
        expected = torch.where(sizes[codes] > 1, silhouettes, 0.0).mean()
        torch.testing.assert_close(score, expected, rtol=1e-9, atol=1e-12)
