from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises
from torch import Tensor
from torch.nn import functional

import isoscope as iso
from isoscope.errors import InputError, IsoscopeError, ShapeError
from isoscope.losses import AlignmentLoss, MultipleNegativesLoss, UniformityLoss


def pairs(n: int = 7, d: int = 5) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    first = torch.randn(n, d, generator=draw, dtype=torch.float64)
    return first, first + torch.randn(n, d, generator=draw, dtype=torch.float64)


# ---------------------------------------------------------------- multiple negatives


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_agrees_with_sentence_transformers(symmetric: bool, similarity: str) -> None:
    losses = pytest.importorskip("sentence_transformers.losses")
    util = pytest.importorskip("sentence_transformers.util")
    kind = losses.MultipleNegativesSymmetricRankingLoss if symmetric else losses.MultipleNegativesRankingLoss
    similarity_fct = util.cos_sim if similarity == "cosine" else util.dot_score
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the symmetric one is an option of the other now
        peer = kind(model=torch.nn.Identity(), scale=4.0, similarity_fct=similarity_fct)
    theirs, ours = ([X.clone().requires_grad_() for X in pairs()] for _ in range(2))
    expected = peer.compute_loss_from_embeddings(theirs, None)
    expected.backward()
    found = MultipleNegativesLoss(0.25, symmetric=symmetric, similarity=similarity)(*ours)
    found.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-10)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def brute(a: Tensor, candidates: Tensor, tau: float) -> float:
    a, c = (functional.normalize(X, dim=1).numpy() for X in (a, candidates))
    return -np.mean(
        [math.log(math.exp(x @ c[i] / tau) / sum(math.exp(x @ y / tau) for y in c)) for i, x in enumerate(a)]
    )


def test_brute_force_with_further_negatives() -> None:
    a, p = pairs()
    hard = torch.randn(4, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    there, back = brute(a, torch.cat([p, hard]), 0.3), brute(p, a, 0.3)
    assert float(MultipleNegativesLoss(0.3, symmetric=False)(a, p, hard)) == pytest.approx(there, rel=1e-10)
    assert float(MultipleNegativesLoss(0.3)(a, p, hard)) == pytest.approx((there + back) / 2, rel=1e-10)


@pytest.mark.slow
def test_many_negatives_come_to_alignment_and_uniformity() -> None:
    """The relation its documentation states: log n + alignment/(2τ) + uniformity with t = 1/(2τ)."""
    a, p = pairs(2000, 16)
    limit = math.log(2000) + float(AlignmentLoss()(a, p)) + float(UniformityLoss(t=1.0)(torch.cat([a, p])))
    assert float(MultipleNegativesLoss(0.5)(a, p)) == pytest.approx(limit, rel=0.01)


def test_nothing_told_apart_is_log_n() -> None:
    X = torch.ones(6, 3)
    assert float(MultipleNegativesLoss(0.05)(X, X)) == pytest.approx(math.log(6), rel=1e-6)


# ---------------------------------------------------------------- alignment and uniformity


@pytest.mark.parametrize("alpha", [1.0, 2.0, 3.0])
def test_alignment_is_the_metrics(alpha: float) -> None:
    X, Y = pairs()
    assert float(AlignmentLoss(alpha)(X, Y)) == pytest.approx(iso.alignment(X, Y, alpha=alpha), rel=1e-12)


@pytest.mark.parametrize("t", [0.5, 2.0, 500.0])
def test_uniformity_is_brute_force(t: float) -> None:
    X, _ = pairs()
    u = functional.normalize(X, dim=1)
    exponents = torch.tensor([-t * float((u[i] - u[j]).square().sum()) for i in range(7) for j in range(i)])
    expected = float(torch.logsumexp(exponents.double(), 0)) - math.log(21)
    assert float(UniformityLoss(t)(X)) == pytest.approx(expected, rel=1e-7)
    if t == 2:
        assert float(UniformityLoss()(X)) == pytest.approx(iso.uniformity(X), rel=1e-12)


def test_zero_vectors_are_left_out() -> None:
    X, Y = pairs()
    zero = torch.zeros(1, 5, dtype=torch.float64)
    more = torch.cat([X, zero]).requires_grad_()
    assert UniformityLoss()(more).item() == pytest.approx(float(UniformityLoss()(X)), rel=1e-12)
    partners = torch.cat([Y, Y[:1]])
    assert AlignmentLoss()(more, partners).item() == pytest.approx(float(AlignmentLoss()(X, Y)), rel=1e-12)
    (UniformityLoss()(more) + AlignmentLoss()(more, partners)).backward()
    assert torch.isfinite(more.grad).all()


# ---------------------------------------------------------------- all three


@pytest.mark.parametrize(
    "loss",
    [
        MultipleNegativesLoss(0.5),
        MultipleNegativesLoss(0.5, symmetric=False, similarity="dot"),
        AlignmentLoss(),
        AlignmentLoss(1.0),
    ],
    ids=str,
)
def test_gradcheck_of_pairs(loss: torch.nn.Module) -> None:
    assert torch.autograd.gradcheck(loss, tuple(X.requires_grad_() for X in pairs()))


def test_gradcheck_of_uniformity() -> None:
    assert torch.autograd.gradcheck(UniformityLoss(), pairs()[0].requires_grad_())


@pytest.mark.parametrize("n", [2, 4])
def test_collapse_is_finite(n: int) -> None:
    for loss in (MultipleNegativesLoss(0.05), AlignmentLoss(1.0), AlignmentLoss(2.0), AlignmentLoss(3.0)):
        X, Y = (torch.full((n, 3), 0.1, requires_grad=True) for _ in range(2))
        loss(X, Y).backward()
        assert torch.isfinite(X.grad).all()
        assert torch.isfinite(Y.grad).all()
    X = torch.full((n, 3), 0.1, requires_grad=True)
    UniformityLoss()(X).backward()
    assert float(X.grad.abs().max()) < 1e-4


def test_autocast_changes_nothing() -> None:
    X, Y = (Z.bfloat16() for Z in pairs(40, 16))
    for loss, inputs in (
        (MultipleNegativesLoss(0.05), (X, Y)),
        (AlignmentLoss(), (X, Y)),
        (UniformityLoss(), (X,)),
    ):
        expected = loss(*(Z.float() for Z in inputs))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = loss(*inputs)
        assert found.dtype == torch.float32
        assert found.item() == expected.item()


@pytest.mark.parametrize(
    ("error", "fields", "call"),
    [
        (
            InputError,
            {"argument": "temperature", "got": 0, "wanted": "positive"},
            lambda X: MultipleNegativesLoss(0),
        ),
        (
            InputError,
            {"argument": "temperature", "wanted": "positive"},
            lambda X: MultipleNegativesLoss(math.nan),
        ),
        (
            InputError,
            {"argument": "temperature", "got": 1e-39, "wanted": "float32"},
            lambda X: MultipleNegativesLoss(1e-39),
        ),
        (InputError, {"argument": "t", "got": 1e39, "wanted": "float32"}, lambda X: UniformityLoss(1e39)),
        (InputError, {"argument": "alpha", "got": 1e39, "wanted": "float32"}, lambda X: AlignmentLoss(1e39)),
        (
            InputError,
            {"argument": "similarity", "got": "l2", "wanted": "cosine"},
            lambda X: MultipleNegativesLoss(similarity="l2"),
        ),
        (InputError, {"argument": "alpha", "got": -1}, lambda X: AlignmentLoss(-1)),
        (InputError, {"argument": "t", "wanted": "positive"}, lambda X: UniformityLoss(None)),
        (
            InputError,
            {"message": "1 vector ", "wanted": "2"},
            lambda X: MultipleNegativesLoss()(X[:1], X[:1]),
        ),
        (InputError, {"message": "1 vector ", "wanted": "2"}, lambda X: UniformityLoss()(X[:1])),
        (InputError, {"message": "0 vectors"}, lambda X: AlignmentLoss()(0 * X, X)),
        (
            ShapeError,
            {"argument": "positives", "wanted": "anchors"},
            lambda X: MultipleNegativesLoss()(X, X[:3]),
        ),
        (
            ShapeError,
            {"argument": "negatives", "message": "4", "wanted": "anchors"},
            lambda X: MultipleNegativesLoss()(X, X, X[:, :4]),
        ),
        (ShapeError, {"argument": "Y", "wanted": "X"}, lambda X: AlignmentLoss()(X, X[:3])),
        (ShapeError, {"argument": "X", "wanted": "two axes"}, lambda X: UniformityLoss()(X[0])),
        (InputError, {"argument": "X", "message": "ndarray"}, lambda X: UniformityLoss()(X.numpy())),
        (
            InputError,
            {"argument": "X", "message": "list", "wanted": "floating"},
            lambda X: UniformityLoss()([1.0, 2.0]),
        ),
        (
            InputError,
            {"argument": "positives", "message": "ndarray"},
            lambda X: MultipleNegativesLoss()(X, X.numpy()),
        ),
        (
            InputError,
            {"argument": "negatives", "message": "ndarray"},
            lambda X: MultipleNegativesLoss()(X, X, X.numpy()),
        ),
        (InputError, {"argument": "Y", "message": "list"}, lambda X: AlignmentLoss()(X, X.tolist())),
    ],
)
def test_bad_input_is_refused(error: type[IsoscopeError], fields: dict[str, Any], call: Any) -> None:
    with raises(error, **fields):
        call(pairs()[0])


def test_repr_says_the_settings() -> None:
    assert "temperature=0.1" in repr(MultipleNegativesLoss(0.1))
    assert "alpha=1.0" in repr(AlignmentLoss(1.0))
    assert "t=3.0" in repr(UniformityLoss(3.0))
