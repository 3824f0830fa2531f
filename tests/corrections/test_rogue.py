from __future__ import annotations

import numpy as np
import pytest

import isoscope as iso


@pytest.fixture(name="X")
def rogue(rng) -> np.ndarray:
    """Dimension 3 pulls all vectors one way, dimension 5 varies most."""
    return rng.normal(size=(300, 8)) * (1 + 4 * np.eye(8)[5]) + 20 * np.eye(8)[3]


def test_by_the_mean_cosine(X: np.ndarray) -> None:
    fitted = iso.corrections.RemoveDimensions(3).fit(X)
    strongest = np.argsort(-iso.metrics.dimension_contributions(X))[:3]
    assert fitted.dimensions_.tolist() == strongest.tolist()
    assert fitted.dimensions_[0] == 3
    kept = np.setdiff1d(np.arange(8), strongest)
    assert np.array_equal(fitted.transform(X), X[:, kept])


def test_by_the_variance(X: np.ndarray) -> None:
    assert iso.corrections.RemoveDimensions(by="variance").fit(X).dimensions_.tolist() == [5]


def test_given_and_zero(X: np.ndarray) -> None:
    Y = iso.corrections.RemoveDimensions(dimensions=[7, 0], zero=True).fit_transform(X)
    assert np.array_equal(Y[:, 1:7], X[:, 1:7])
    assert not Y[:, [0, 7]].any()
    short = iso.corrections.RemoveDimensions(dimensions=[7, 0]).fit_transform(X)
    assert iso.mean_cosine(Y) == pytest.approx(iso.mean_cosine(short))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_dimensions": 8}, "`n_dimensions` must be .* n_features = 8, got 8"),
        ({"n_dimensions": 0}, "`n_dimensions` must be .*, got 0"),
        ({"by": "luck"}, "`by` must be one of mean_cosine, variance, got 'luck'"),
        ({"dimensions": [1, 1]}, r"`dimensions` must be different whole numbers, got \[1, 1\]"),
        ({"dimensions": [8]}, "`dimensions` must be a whole number from 0 to 7, got 8"),
        ({"dimensions": []}, "`dimensions` must be different whole numbers"),
        ({"dimensions": [1.5]}, "`dimensions` must be .*, got 1.5"),
        ({"dimensions": "12"}, "`dimensions` must be .*, got '1'"),
        ({"n_dimensions": True}, "`n_dimensions` must be .*, got True"),
    ],
)
def test_bad_requests(X: np.ndarray, parameters: dict, message: str) -> None:
    with pytest.raises(iso.InputError, match=message):
        iso.corrections.RemoveDimensions(**parameters).fit(X)


def test_vectors_without_directions() -> None:
    with pytest.raises(iso.InputError, match="2 vectors with a direction"):
        iso.corrections.RemoveDimensions().fit(np.zeros((4, 3)))
