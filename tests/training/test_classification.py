from __future__ import annotations

import numpy as np
import pytest

from isoscope.training.classification import classification_scores


def test_scores_of_three_labels() -> None:
    found = classification_scores(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 1, 2, 0]))
    assert found["accuracy"] == pytest.approx(4 / 6)
    assert found["f1"] == pytest.approx((1 / 2 + 4 / 5 + 2 / 3) / 3)
    # (n·tr C − t·p)/√((n² − ‖t‖²)(n² − ‖p‖²)) with n = 6, tr C = 4, t = (2, 2, 2), p = (2, 3, 1)
    assert found["matthews"] == pytest.approx((24 - 12) / np.sqrt((36 - 12) * (36 - 14)))


@pytest.mark.parametrize(
    ("labels", "predicted", "f1"),
    [([0, 0], [0, 0], 1), ([0, 1], [1, 1], 1 / 3), ([1, 1], [0, 1], 1 / 3), ([1], [1], 1)],
)
def test_one_label_alone(labels: list[int], predicted: list[int], f1: float) -> None:
    found = classification_scores(np.array(labels), np.array(predicted))
    assert found["matthews"] == 0
    assert found["f1"] == pytest.approx(f1)
