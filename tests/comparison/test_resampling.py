from __future__ import annotations

import numpy as np
import torch

from isoscope.comparison.resampling import differences, half_width, jackknife


def test_error_of_a_mean_is_the_standard_error(rng: np.random.Generator) -> None:
    """With as many groups as rows the jackknife of a mean is s/√n exactly."""
    x = torch.tensor(rng.normal(size=60))
    found = jackknife(lambda rows: {"mean": float(x[rows].mean())}, 60, n_groups=60)
    assert np.isclose(found.errors["mean"], float(x.std()) / np.sqrt(60))
    grouped = [
        jackknife(lambda rows: {"mean": float(x[rows].mean())}, 60, seed=s).errors["mean"] for s in range(30)
    ]
    assert np.isclose(np.mean(grouped), float(x.std()) / np.sqrt(60), rtol=0.1)


def test_a_part_of_the_rows_has_the_error_of_all(rng: np.random.Generator) -> None:
    x = torch.tensor(rng.normal(size=4000))
    found = jackknife(lambda rows: {"mean": float(x[rows].mean())}, 4000, n_groups=500, max_rows=500)
    assert found.n_rows == 500
    assert np.isclose(found.errors["mean"], float(x.std()) / np.sqrt(4000), rtol=0.1)


def test_labels_go_round_the_groups() -> None:
    strata = torch.tensor([0] * 40 + [1] * 160)
    seen = []
    jackknife(lambda rows: seen.append(strata[rows].tolist()) or {}, 200, strata=strata, n_groups=20)
    assert {(rows.count(0), rows.count(1)) for rows in seen} == {(38, 152)}


def test_undefined_in_one_group_is_undefined() -> None:
    found = jackknife(lambda rows: {"a": None if 3 in rows else 1.0, "b": 1.0}, 40)
    assert found.errors == {"a": None, "b": 0.0}
    assert differences({"a": None, "b": 1.0}, {"a": 2.0, "b": 4.0}, ("a", "b")) == {"a": None, "b": 3.0}
    assert np.isclose(half_width(1.0, 20), 2.093, atol=1e-3)
