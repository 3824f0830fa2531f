from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from isoscope.errors import InputError
from isoscope.training.classification import check_metric, classification_scores


@pytest.mark.parametrize("n_labels", [2, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_scikit_learn(n_labels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels, 25)
    predicted = np.where(rng.random(25) < 0.6, labels, rng.integers(0, n_labels - seed % 2, 25))
    found = classification_scores(labels, predicted)
    assert found["accuracy"] == pytest.approx(accuracy_score(labels, predicted))
    assert found["f1"] == pytest.approx(f1_score(labels, predicted, average="macro"))
    assert found["matthews"] == pytest.approx(matthews_corrcoef(labels, predicted))


@pytest.mark.parametrize(
    ("labels", "predicted"), [([0, 0], [0, 0]), ([0, 1], [1, 1]), ([1, 1], [0, 1]), ([1], [1])]
)
def test_one_label_alone(labels: list[int], predicted: list[int]) -> None:
    found = classification_scores(np.array(labels), np.array(predicted))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found["matthews"] == matthews_corrcoef(labels, predicted) == 0
        assert found["f1"] == pytest.approx(f1_score(labels, predicted, average="macro"))


def test_an_unknown_metric() -> None:
    with pytest.raises(InputError, match="metric is 'auc'; wanted one of accuracy, f1, matthews"):
        check_metric("auc")
