"""`predict_collapse` against what training gives."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import isoscope as iso

X, y = load_digits(return_X_y=True)
X, y = (X[:300] / np.linalg.norm(X[:300], axis=1).mean()).astype("float32"), y[:300]


@pytest.mark.slow
@pytest.mark.parametrize("learning_rate", [1e-3, 1e-2])
@pytest.mark.parametrize("n_labels", [2, 10])
def test_the_end_is_that_of_training(n_labels: int, learning_rate: float) -> None:
    labels = y % n_labels
    predicted = iso.predict_collapse(X, labels, learning_rate=learning_rate)
    seen = iso.train_embeddings(X, labels, learning_rate=learning_rate, seeds=2, every=1000, progress=False)
    end = seen.mean()["isoscore"][-1]
    assert predicted.holds
    assert predicted.end == pytest.approx(end, rel=0.1)
    assert predicted.sign == np.sign(end - predicted.isoscore)
