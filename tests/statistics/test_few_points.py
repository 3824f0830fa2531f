"""What recordings of few points compute, against the general ways; run on the CPU."""

from __future__ import annotations

import torch
from sklearn.metrics import silhouette_score

import isoscope as iso
from isoscope.labels import as_labels
from isoscope.metrics.silhouettes import silhouettes
from isoscope.statistics.few_points import _cosine_fields, distances_to
from isoscope.statistics.pairs import Separation


def space(n: int = 200, d: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    codes = torch.arange(n) % 5
    return torch.randn(n, d, generator=draw) + torch.randn(5, d, generator=draw)[codes], codes


def test_cosine_silhouettes_are_those_of_scikit_learn() -> None:
    X, codes = space()
    cohesion, separation, nearest, is_trusted = _cosine_fields(X, codes, 5)
    assert is_trusted
    general = Separation.of(X.double(), codes, metric="cosine")
    assert torch.allclose(cohesion / 2, general.cohesion, rtol=1e-6)
    assert torch.equal(nearest, general.nearest)
    found = silhouettes(Separation(cohesion / 2, separation / 2, nearest, as_labels(codes))).mean()
    assert abs(float(found) - silhouette_score(X.double(), codes, metric="cosine")) < 1e-7


def test_rows_without_a_direction_near_a_mean_or_in_a_cone_are_left_to_the_general_way() -> None:
    X, codes = space()
    zero, alone = X.clone(), codes.clone()
    zero[3], alone[7] = 0, 5
    cone = 1e-4 * X + torch.eye(X.shape[1])[0]
    for rows, labels, n in ((zero, codes, 5), (X, alone, 6), (cone, codes, 5)):
        assert not _cosine_fields(rows, labels, n)[3]


def test_distances_to_chosen_points() -> None:
    X, _ = space()
    chosen = torch.tensor([5, 0, 199])
    found = distances_to(X + 100, chosen)
    assert torch.allclose(found, torch.cdist(X.double() + 100, X[chosen].double() + 100), atol=1e-4)
    assert found[chosen, torch.arange(3)].eq(0).all()


def test_the_standard_error_is_that_of_blocks(monkeypatch) -> None:
    X, codes = space()
    expected = iso.measure(X, labels=codes, metrics="silhouette", progress=False).to_dict()
    monkeypatch.setattr("isoscope.statistics.few_points.takes", lambda _: True)
    monkeypatch.setattr("isoscope.metrics.silhouettes.replayed", lambda function, *inputs: function(*inputs))
    monkeypatch.setattr("isoscope.statistics.few_points.replayed", lambda f, *inputs, **o: f(*inputs, **o))
    found = iso.measure(X, labels=codes, metrics="silhouette", progress=False).to_dict()
    errors = [m["metrics"]["silhouette"]["standard_error"] for m in (expected, found)]
    assert abs(errors[0] - errors[1]) < 1e-6 * errors[0]
