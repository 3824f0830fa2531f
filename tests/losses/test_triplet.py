from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tests.raising import raises
from torch import Tensor

import isoscope as iso
from isoscope.errors import InputError, IsoscopeError, LabelError, ShapeError
from isoscope.losses import TripletLoss

LABELS = torch.tensor([0, 1, 0, 2, 1, 1, 0, 2, 5])


def cloud(n: int = 9, d: int = 4, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def brute(X: Tensor, labels: Tensor, margin: float) -> float:
    D = [[math.dist(x, y) for y in X.tolist()] for x in X.tolist()]
    n = range(len(X))
    losses = [
        max(D[a][p] + margin - D[a][q], 0)
        for a in n
        for p in n
        for q in n
        if a != p and labels[a] == labels[p] != labels[q]
    ]
    return sum(losses) / len(losses)


@pytest.mark.parametrize("margin", [0.0, 0.5, 10.0])
def test_all_triplets_of_labels_by_brute_force(margin: float) -> None:
    X = cloud()
    assert float(TripletLoss(margin)(X, labels=LABELS)) == pytest.approx(brute(X, LABELS, margin), rel=1e-10)


def test_without_a_margin_it_is_the_objective_of_the_paper() -> None:
    X = cloud()
    n_triplets = 3 * 2 * 6 + 3 * 2 * 6 + 2 * 1 * 7
    expected = -iso.metrics.triplet_objective(X, LABELS.tolist()) / n_triplets
    assert float(TripletLoss(0.0)(X, labels=LABELS)) == pytest.approx(expected, rel=1e-10)


def test_given_triplets_agree_with_torch() -> None:
    theirs, ours = ([cloud(seed=seed).requires_grad_() for seed in range(3)] for _ in range(2))
    expected = torch.nn.TripletMarginLoss(margin=0.7, eps=0)(*theirs)
    expected.backward()
    found = TripletLoss(0.7)(*ours)
    found.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def test_names_serve_as_labels() -> None:
    X, names = cloud(), [f"label {code}" for code in LABELS.tolist()]
    assert float(TripletLoss()(X, labels=names)) == pytest.approx(float(TripletLoss()(X, labels=LABELS)))


def test_gradcheck() -> None:
    assert torch.autograd.gradcheck(lambda X: TripletLoss(0.3)(X, labels=LABELS), cloud().requires_grad_())
    given = tuple(cloud(seed=seed).requires_grad_() for seed in range(3))
    assert torch.autograd.gradcheck(TripletLoss(0.3), given)


@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_collapse_is_finite(margin: float) -> None:
    X = torch.full((4, 3), 0.1, requires_grad=True)
    found = TripletLoss(margin)(X, labels=torch.tensor([0, 0, 1, 1]))
    found.backward()
    assert found.item() == margin
    assert torch.isfinite(X.grad).all()


def test_autocast_changes_nothing() -> None:
    X = cloud(60, 16).bfloat16()
    labels = torch.arange(60) % 4
    expected = TripletLoss()(X.float(), labels=labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = TripletLoss()(X, labels=labels)
    assert found.dtype == torch.float32
    assert found.item() == expected.item()


@pytest.mark.parametrize(
    ("error", "fields", "call"),
    [
        (InputError, {"argument": "margin", "wanted": "finite"}, lambda X: TripletLoss(math.nan)),
        (InputError, {"argument": "margin", "got": 1e39, "wanted": "float32"}, lambda X: TripletLoss(1e39)),
        (
            InputError,
            {"argument": "X", "message": "list"},
            lambda X: TripletLoss()(X.tolist(), labels=LABELS),
        ),
        (
            InputError,
            {"argument": "positives", "message": "ndarray"},
            lambda X: TripletLoss()(X, X.numpy(), X),
        ),
        (InputError, {"argument": "margin", "got": -1}, lambda X: TripletLoss(-1)),
        (InputError, {"hint": "labels"}, lambda X: TripletLoss()(X, X)),
        (
            InputError,
            {"argument": "labels", "message": "combined"},
            lambda X: TripletLoss()(X, X, labels=LABELS),
        ),
        (
            ShapeError,
            {"argument": "labels", "message": "8 entries for 9"},
            lambda X: TripletLoss()(X, labels=LABELS[:8]),
        ),
        (ShapeError, {"argument": "negatives", "wanted": "X"}, lambda X: TripletLoss()(X, X, X[:3])),
        (InputError, {"message": "0 vectors"}, lambda X: TripletLoss()(X[:0], X[:0], X[:0])),
        (
            InputError,
            {"message": "1 vector ", "wanted": "3"},
            lambda X: TripletLoss()(X[:1], labels=LABELS[:1]),
        ),
        (
            LabelError,
            {"argument": "labels", "message": "no triplet"},
            lambda X: TripletLoss()(X, labels=torch.zeros(9).long()),
        ),
        (
            LabelError,
            {"argument": "labels", "message": "no triplet"},
            lambda X: TripletLoss()(X, labels=torch.arange(9)),
        ),
    ],
)
def test_bad_input_is_refused(error: type[IsoscopeError], fields: dict[str, Any], call: Any) -> None:
    with raises(error, **fields):
        call(cloud())
    assert "margin=1.0" in repr(TripletLoss())
