"""Equation 17 and what leads to it, against the loss itself on vectors that have those cosines."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import pytest
import torch

from isoscope.errors import InputError
from isoscope.losses import MultipleNegativesLoss
from isoscope_papers.dynamics import bounds
from isoscope_papers.dynamics.bounds import (
    attainable_loss,
    contrastive_loss,
    doubling_ratio,
    lower_loss,
    thrust,
    upper_loss,
)

TAUS, SIZES, POSITIVES = (0.01, 0.025, 0.05, 0.1, 1.0), (2, 4, 64), (1.0, 0.95, 0.8)


def brute_force(tau: float, n: int, positive: float, negative: float) -> float:
    """Equation 12 term by term, with 120 digits."""
    with localcontext() as context:
        context.prec = 120
        terms = [(Decimal(cosine) / Decimal(tau)).exp() for cosine in [positive] + [negative] * (n - 1)]
        return float(-(terms[0] / sum(terms)).ln())


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("s", POSITIVES)
def test_closed_forms_are_equation_12(tau: float, n: int, s: float) -> None:
    for found, negative in (
        (upper_loss(tau, n, positive=s), 0.0),
        (lower_loss(tau, n, positive=s), -1.0),
    ):
        assert found == pytest.approx(brute_force(tau, n, s, negative), rel=1e-9)


def test_the_loss_of_training_is_the_same_on_vectors_with_these_cosines() -> None:
    anchors = torch.eye(8, dtype=torch.float64)
    assert MultipleNegativesLoss(0.1)(anchors, anchors).item() == pytest.approx(upper_loss(0.1, 8))
    corners = anchors - 1 / 8  # of a simplex about its centre: all cosines −1/7
    found = MultipleNegativesLoss(0.2)(corners, corners).item()
    assert found == pytest.approx(attainable_loss(0.2, 8))
    assert found > lower_loss(0.2, 8)
    source = torch.Generator().manual_seed(0)
    for _ in range(20):  # nothing is below what is said to be the lowest
        vectors = torch.randn(8, 7, generator=source, dtype=torch.float64)
        assert MultipleNegativesLoss(0.2)(vectors, vectors).item() > found


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("n", SIZES)
def test_equation_17_is_an_identity_where_the_positive_is_reached(tau: float, n: int) -> None:
    assert doubling_ratio(tau, n) == pytest.approx(1, abs=1e-12)
    for s in (0.95, 0.8):  # with the last line of equation 16 in its place, 17 is an identity for every s
        written = contrastive_loss(2 * tau, n, positive=2 * s)
        assert written == pytest.approx(upper_loss(tau, n, positive=s), rel=1e-12)
        assert lower_loss(2 * tau, n, positive=s) < written


def test_figures_decide_on_equation_17(monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> dict[str, str]:
        return {one.claim: one.shown for one in bounds.findings()}

    assert found()["equation-17"].endswith("condition: for 1 − s ≤ 0.21·τ, within 10 %")
    monkeypatch.setattr(bounds, "doubling_ratio", lambda *_, positive=1.0: 1.0)
    assert found()["equation-17"] == "✓ held"
    monkeypatch.setattr(bounds, "doubling_ratio", lambda *_, positive=1.0: 0.5)
    assert found()["equation-17"] == "✗ not held"


def test_how_good_the_approximation_is() -> None:
    for tau, s in ((0.05, 0.9), (0.025, 0.95), (0.01, 0.99)):
        for n in (4, 64, 256):
            assert doubling_ratio(tau, n, positive=s) == pytest.approx(
                math.exp(-(1 - s) / (2 * tau)), rel=1e-3
            )
    assert doubling_ratio(0.05, 64, positive=1 - 0.21 * 0.05) == pytest.approx(0.9, abs=0.002)
    assert doubling_ratio(1.0, 64, positive=0.8) == pytest.approx(
        1, abs=0.03
    )  # high τ: nothing is told apart


@pytest.mark.parametrize(("tau", "negative"), [(0.05, 0.0), (0.1, -1.0), (1.0, 0.3)])
def test_thrust_is_the_derivative(tau: float, negative: float) -> None:
    cosine = torch.tensor(negative, dtype=torch.float64, requires_grad=True)
    scores = torch.cat([torch.ones(1, dtype=torch.float64), cosine.expand(63)]) / tau
    (scores.logsumexp(0) - scores[0]).backward()
    assert thrust(tau, 64, negative=negative) == pytest.approx(cosine.grad.item(), rel=1e-9)
    assert thrust(0.1, 64, negative=-1.0) == pytest.approx(thrust(0.05, 64) / 2, rel=1e-12)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="`temperature` must be a positive number, got 0"):
        contrastive_loss(0, 4)
    with pytest.raises(InputError, match="`n` must be at least 2"):
        contrastive_loss(0.1, 1)
