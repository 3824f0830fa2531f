from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "isoscope", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("isoscope")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
