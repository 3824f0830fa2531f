from __future__ import annotations

import os
from pathlib import Path

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


@pytest.fixture
def data_folder() -> Path:
    """The larger data sets; tests that ask for it are skipped, by name, where it is absent."""
    folder = os.environ.get("ISOSCOPE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("ISOSCOPE_DATA is not set to a folder of data sets")
    return Path(folder)
