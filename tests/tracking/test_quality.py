"""Every measure of representation quality follows a training, and equals the metric of the same states."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import isoscope as iso

QUALITY = (
    *("nc1", "nc2", "nc2_equinorm", "nc2_equiangular", "nc3", "nc4", "class_mean_simplex_angle"),
    *("nc1_debiased", "nc2_debiased", "nc4_debiased"),
    *("alpha_req", "rankme_debiased", "lidar", "clid", "stable_rank", "gride", "correlation_dimension"),
)


@pytest.mark.slow
def test_the_tracker_takes_every_measure_of_quality() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 240)
    X = torch.from_numpy(np.eye(4)[y] @ rng.normal(size=(4, 6)) + 0.5 * rng.normal(size=(240, 6)))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)).double()
    tracker = iso.GeometryTracker(X, layers=("0",), labels=y, metrics=QUALITY, every=1)
    tracker(model, 0)
    states = model[0](X).detach()
    measured = iso.measure(states, labels=y, metrics=QUALITY, errors=False)
    for name in QUALITY:
        assert tracker.trajectory[name][0] == pytest.approx(measured[name], rel=1e-6, nan_ok=False), name
