from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.engine import plan
from isoscope.report import side_by_side as module
from isoscope.report.side_by_side import side_by_side as of_shelf
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics


def side_by_side(X: torch.Tensor, labels: np.ndarray | None, **options: Any) -> dict[str, Any]:
    return of_shelf(Statistics(Space(X, labels=labels)), **options)


@pytest.fixture
def labelled(rng) -> tuple[torch.Tensor, np.ndarray]:
    y = rng.integers(0, 3, 300)
    return torch.from_numpy(rng.normal(size=(300, 5)) * [3, 2, 1, 1, 1] + 2 + np.eye(5)[y] * 3), y


def test_each_row_is_the_corrected_space(labelled) -> None:
    X, y = labelled
    found = {row["name"]: row for row in side_by_side(X, y)["rows"]}
    corrected = {
        "uncorrected": X,
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
    found = side_by_side(X, y, progress=shares.append)
    assert found["n"] == 100
    assert shares == sorted(shares)
    assert len(shares) == len(found["rows"]) - 1


def test_silhouettes_are_exact_up_to_a_bound_and_said_to_be_estimates_beyond(
    labelled, rng, monkeypatch
) -> None:
    X, y = labelled
    assert side_by_side(X, None)["tolerance"] is None
    y2 = rng.integers(0, 4, 2000)
    many = torch.from_numpy(rng.normal(size=(2000, 5)) + np.eye(5)[y2])  # enough for an estimate to miss
    found = side_by_side(many, y2)
    assert found["tolerance"] is None
    assert found["rows"][0]["silhouette"] == pytest.approx(iso.silhouette_score(many, y2), abs=1e-9)
    monkeypatch.setattr(plan, "EXACT_PAIRS", 200**2)
    found = side_by_side(X, y)
    assert found["tolerance"] == pytest.approx(plan.silhouette_policy(300, times=6).tolerance, rel=0.05)
    assert found["rows"][0]["silhouette"] == pytest.approx(
        iso.silhouette_score(X, y), abs=2 * found["tolerance"]
    )


def test_a_shrunk_covariance_is_said(labelled, rng) -> None:
    full = {row["name"]: row["what"] for row in side_by_side(labelled[0], None)["rows"]}
    assert full["Whiten()"] == "the mean is subtracted, all variances are made equal"
    few = {
        row["name"]: row["what"]
        for row in side_by_side(torch.from_numpy(rng.normal(size=(9, 20))), None)["rows"]
    }
    assert "; the covariance is regularised by " in few["Whiten()"]
    assert "regularised" not in few["Center"]


def test_what_cannot_be_corrected_says_why(monkeypatch) -> None:
    class Never:
        def fit(self, X: object) -> None:
            raise iso.InputError("not this one")

    monkeypatch.setattr(module, "_corrections", lambda d: [("Never", "what", Never())])
    row = side_by_side(torch.eye(3), None)["rows"][1]
    assert row == {"name": "Never", "what": "what", "why_not": "not this one"}
