from __future__ import annotations

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope import Moments
from isoscope.metrics.cosine import mean_cosine_error
from isoscope.metrics.isotropy import isoscore_jackknife
from isoscope.statistics import Directions
from isoscope.statistics.leave_one_out import LeftOutCosines, LeftOutMoments, jackknife


@pytest.mark.parametrize("shape", [(20, 4), (8, 15)])
@pytest.mark.parametrize("scale", [1.0, 1e20, 1e-30])
def test_every_vector_really_left_out(rng, shape: tuple[int, int], scale: float) -> None:
    X = (rng.normal(size=shape) + 2) * scale
    moments = Moments.of(X)
    left_out = LeftOutMoments.of(X, moments)
    for i in range(shape[0]):
        others = Moments.of(np.delete(X, i, axis=0))
        for name in ("trace", "squared_frobenius", "quartic"):
            got, expected = float(getattr(left_out, name)[i]), float(getattr(others, name))
            assert got == pytest.approx(expected, rel=1e-9), (name, i)


def test_blocks_merge(rng) -> None:
    X = rng.normal(size=(30, 4))
    moments, directions = Moments.of(X), Directions.of(X)
    whole = LeftOutMoments.of(X, moments)
    split = LeftOutMoments.of(X[:11], moments).merge(LeftOutMoments.of(X[11:], moments))
    assert torch.allclose(whole.quartic, split.quartic)
    cosines = LeftOutCosines.of(X, directions)
    both = LeftOutCosines.of(X[:11], directions).merge(LeftOutCosines.of(X[11:], directions))
    assert torch.allclose(cosines.projections, both.projections)


@pytest.mark.parametrize("debias", [False, True])
def test_isoscore_jackknife_is_the_jackknife(rng, debias: bool) -> None:
    X = rng.normal(size=(15, 4)) * [1, 2, 3, 4]
    scores = np.array([iso.isoscore(np.delete(X, i, axis=0), debias=debias) for i in range(15)])
    error = np.sqrt(14 / 15 * ((scores - scores.mean()) ** 2).sum())
    bias = 14 * (scores.mean() - iso.isoscore(X, debias=debias))
    moments = Moments.of(X)
    got = isoscore_jackknife(moments, LeftOutMoments.of(X, moments), debias=debias)
    assert got == pytest.approx((error, bias), rel=1e-9)


@pytest.mark.parametrize("shape", [(200, 40), (30, 40)])
@pytest.mark.parametrize("debias", [False, True])
def test_float32_vectors_with_one_far_from_all_others(rng, shape: tuple[int, int], debias: bool) -> None:
    """Without the far one IsoScore is another; in float32 the difference of the sums would be rounding."""
    X = rng.normal(size=shape).astype(np.float32)
    X[7] *= 1000
    scores = np.array([iso.isoscore(np.delete(X, i, axis=0), debias=debias) for i in range(len(X))])
    error = np.sqrt((len(X) - 1) * scores.var())
    moments = Moments.of(X)
    got = isoscore_jackknife(moments, LeftOutMoments.of(X, moments), debias=debias)[0]
    assert got == pytest.approx(error, rel=2e-3)


def test_mean_cosine_jackknife_is_the_jackknife(rng) -> None:
    X = rng.normal(size=(15, 4)) + 0.5
    scores = np.array([iso.mean_cosine(np.delete(X, i, axis=0)) for i in range(15)])
    error = np.sqrt(14 / 15 * ((scores - scores.mean()) ** 2).sum())
    directions = Directions.of(X)
    assert mean_cosine_error(directions, LeftOutCosines.of(X, directions)) == pytest.approx(error, rel=1e-9)


def test_errors_match_the_spread_over_fresh_samples(rng) -> None:
    """The reported standard errors are the real ones, within what 150 draws can tell."""
    scale = np.linspace(1, 3, 6)
    values: dict[str, list[float]] = {"isoscore": [], "isoscore_debiased": [], "mean_cosine": []}
    errors: dict[str, list[float]] = {name: [] for name in values}
    for _ in range(150):
        measured = iso.measure(rng.normal(size=(120, 6)) * scale + 0.5, metrics=list(values))
        for reading in measured.readings:
            values[reading.name].append(reading.value)
            errors[reading.name].append(reading.standard_error)
    for name in values:
        assert np.mean(errors[name]) == pytest.approx(np.std(values[name]), rel=0.2), name


def test_jackknife_of_the_mean_is_the_usual_error(rng) -> None:
    x = torch.from_numpy(rng.normal(size=50))
    left_out = (x.sum() - x) / 49
    error, bias = jackknife(x.mean(), left_out, 50)
    assert error == pytest.approx(float(x.std() / 50**0.5))
    assert bias == pytest.approx(0.0, abs=1e-12)
