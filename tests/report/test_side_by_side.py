from __future__ import annotations

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.labels import as_labels
from isoscope.report import side_by_side as module
from isoscope.report.side_by_side import side_by_side


@pytest.fixture
def labelled(rng) -> tuple[torch.Tensor, np.ndarray]:
    y = rng.integers(0, 3, 300)
    return torch.from_numpy(rng.normal(size=(300, 5)) * [3, 2, 1, 1, 1] + 2 + np.eye(5)[y] * 3), y


def test_each_row_is_the_corrected_space(labelled) -> None:
    X, y = labelled
    found = {row["name"]: row for row in side_by_side(X, as_labels(y))["rows"]}
    corrected = {
        "as it is": X,
        "Center": X - X.mean(dim=0),
        "Standardize": (X - X.mean(dim=0)) / X.std(dim=0, correction=0),
        "Normalize": X / X.norm(dim=1, keepdim=True),
        "Whiten()": torch.from_numpy(iso.Whiten().fit_transform(X.numpy())),
    }
    for name, Y in corrected.items():
        assert found[name]["isoscore"] == pytest.approx(iso.isoscore(Y), abs=1e-9), name
        assert found[name]["mean_cosine"] == pytest.approx(iso.mean_cosine(Y), abs=1e-9), name
        assert found[name]["effective_rank"] == pytest.approx(iso.effective_rank(Y), abs=1e-7), name
        assert found[name]["silhouette"] == pytest.approx(iso.silhouette_score(Y, y), abs=1e-7), name


def test_many_rows_are_sampled(labelled, monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 100)
    X, y = labelled
    shares: list[float] = []
    found = side_by_side(X, as_labels(y), progress=shares.append)
    assert found["n"] == 100
    assert shares == sorted(shares)
    assert len(shares) == len(found["rows"]) - 1


def test_what_cannot_be_corrected_says_why(monkeypatch) -> None:
    class Never:
        def fit(self, X: object) -> None:
            raise iso.InputError("not this one")

    monkeypatch.setattr(module, "_corrections", lambda d: [("Never", "what", Never())])
    row = side_by_side(torch.eye(3), None)["rows"][1]
    assert row == {"name": "Never", "what": "what", "why_not": "not this one"}
