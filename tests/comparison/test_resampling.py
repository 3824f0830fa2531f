from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from isoscope.comparison.resampling import CrossLeftOut, Figures, Groups, LeftOut
from isoscope.space import Space
from isoscope.statistics.cross import CrossMoments
from isoscope.statistics.pairs import Separation


def errors_of(figures: Callable[[torch.Tensor], Figures], groups: Groups) -> Figures:
    return groups.jackknife(lambda group: figures(groups.rows[groups.codes != group]))


def test_error_of_a_mean_is_the_standard_error(rng: np.random.Generator) -> None:
    """With as many groups as rows the jackknife of a mean is s/√n exactly."""
    x = torch.tensor(rng.normal(size=60))

    def mean(rows: torch.Tensor) -> Figures:
        return {"mean": float(x[rows].mean())}

    found = errors_of(mean, Groups.dealt(60, n_groups=60))
    assert np.isclose(found["mean"], float(x.std()) / np.sqrt(60))
    grouped = [errors_of(mean, Groups.dealt(60, seed=seed))["mean"] for seed in range(30)]
    assert np.isclose(np.mean(grouped), float(x.std()) / np.sqrt(60), rtol=0.1)


def test_a_part_of_the_rows_has_the_error_of_all(rng: np.random.Generator) -> None:
    x = torch.tensor(rng.normal(size=4000))
    groups = Groups.dealt(4000, n_groups=500, max_rows=500)
    assert len(groups.rows) == 500
    found = errors_of(lambda rows: {"mean": float(x[rows].mean())}, groups)
    assert np.isclose(found["mean"], float(x.std()) / np.sqrt(4000), rtol=0.1)


def test_labels_go_round_the_groups() -> None:
    strata = torch.tensor([0] * 40 + [1] * 160)
    groups = Groups.dealt(200, strata, n_groups=20)
    assert groups.rows.equal(torch.arange(200))
    for code, n in ((0, 2), (1, 8)):
        assert groups.codes[strata == code].bincount().tolist() == [n] * 20


def test_undefined_in_one_group_is_undefined() -> None:
    groups = Groups.dealt(40)
    assert errors_of(lambda rows: {"a": None if 3 in rows else 1.0, "b": 1.0}, groups) == {
        "a": None,
        "b": 0.0,
    }
    assert np.isclose(groups.half_width(1.0), 2.093, atol=1e-3)


@pytest.mark.parametrize("n_labels", [3, 45])  # and labels of two rows, which groups may leave alone
def test_distances_without_a_group_are_those_of_the_rows_that_stay(
    rng: np.random.Generator, n_labels: int
) -> None:
    space = Space(rng.normal(size=(90, 4)), labels=np.arange(90) % n_labels)
    groups = Groups.dealt(90, seed=2)
    left_out = LeftOut(space, groups, ["silhouette"], 0)
    for group in (0, 19):
        shelf = left_out.without(group)
        assert "separation" in vars(shelf)
        wanted = Separation.of(shelf.space, shelf.space.labels)
        for name in ("cohesion", "separation"):
            torch.testing.assert_close(
                getattr(shelf.separation, name), getattr(wanted, name), rtol=1e-12, atol=0
            )
        assert shelf.separation.nearest.equal(wanted.nearest)


def test_cross_moments_without_a_group_are_those_of_the_rows_that_stay(rng) -> None:
    X, Y = torch.tensor(rng.normal(size=(60, 5)) + 3), torch.tensor(rng.normal(size=(60, 2)))
    groups = Groups.dealt(60, seed=1)
    for group in (0, 7):
        stays = groups.codes != group
        found, wanted = CrossLeftOut(X, Y, groups).without(group), CrossMoments.of(X[stays], Y[stays])
        for name, value in vars(wanted).items():
            if name != "cubics":  # only merging needs them
                np.testing.assert_allclose(getattr(found, name), value, rtol=1e-11, atol=1e-13, err_msg=name)
