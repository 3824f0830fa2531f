"""The participation ratio by sums about a point near the mean."""

import pytest
import torch

from isoscope.statistics.device_participation import _participation, quick_participation
from isoscope.statistics.moments import Moments


@pytest.mark.parametrize("offset", [0, 50])
def test_the_sums_of_the_recording_are_those_of_the_moments(offset: float) -> None:
    rows = torch.randn(400, 24, generator=torch.Generator().manual_seed(0)) + offset
    (values,) = _participation(rows, n_rows=256)
    moments = Moments.of(rows)
    wanted = [float(moments.participation), moments.spread, float(moments.mean @ moments.mean)]
    assert values[:3].tolist() == pytest.approx(wanted, rel=1e-5)


def test_rows_on_the_cpu_take_the_plain_way() -> None:
    assert quick_participation(torch.ones(400, 24)) is None
