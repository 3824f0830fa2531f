"""The closed forms of the collapse law, against points at the corners and against autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.metrics.collapse_law import collapse_value, collapse_value_of_sets, isoscore_derivative


def simplex(K: int, d: int, seed: int = 0) -> np.ndarray:
    """Return K points of equal distances in d ≥ K − 1 dimensions, turned at random."""
    corners = np.eye(K) - 1 / K
    axes = np.linalg.svd(corners)[2][: K - 1]  # the corners span K − 1 dimensions
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0][: K - 1]
    return corners @ axes.T @ turn


@pytest.mark.parametrize(("counts", "d"), [([4, 4, 4], 2), ([1, 7, 30, 2], 12), ([5] * 10, 9), ([99, 1], 6)])
def test_collapsed_labels_at_the_corners_of_a_simplex_have_the_collapse_value(
    counts: list[int], d: int
) -> None:
    X = np.repeat(simplex(len(counts), d), counts, axis=0)
    assert collapse_value(counts, d) == pytest.approx(iso.isoscore(X), abs=1e-12)


def test_balanced_labels_have_k_minus_2_over_d_minus_1() -> None:
    for K, d in [(2, 50), (10, 64), (77, 384), (65, 64)]:
        assert collapse_value([3] * K, d) == pytest.approx((K - 2) / (d - 1), abs=1e-14)
    assert collapse_value([3] * 100, 64) == 1


def test_labels_that_do_not_fit_a_simplex_have_the_upper_bound() -> None:
    """No theorem says where they end, and the formula of the simplex would be no bound."""
    counts = [50, 50, 1, 1, 1, 1]
    assert collapse_value(counts, 4) == collapse_value([*counts, 0, 0], 4) == 1
    assert collapse_value(counts, 5) < 0.1
    indicator = torch.eye(6).repeat_interleave(torch.tensor(counts), dim=0)
    for d in (3, 4, 5, 6):
        assert collapse_value_of_sets(indicator, d) == pytest.approx(collapse_value(counts, d))


def test_sets_of_labels_add_up_directions() -> None:
    rng = np.random.default_rng(0)
    indicator = (rng.random((200, 7)) < rng.random(7)).astype(float)
    directions = np.linalg.qr(rng.normal(size=(20, 20)))[0][:7]
    found = collapse_value_of_sets(torch.from_numpy(indicator), 20)
    assert found == pytest.approx(iso.isoscore(indicator @ directions), abs=1e-12)


def test_the_derivative_is_that_of_autograd() -> None:
    X = torch.randn(40, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    V = torch.randn(40, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    (gradient,) = torch.autograd.grad(iso.isoscore(X), X)
    centred = (X - X.mean(dim=0)).detach()
    motion = centred.T @ V
    found = isoscore_derivative(centred.T @ centred, motion + motion.T)
    assert found == pytest.approx(float((gradient * V).sum()), rel=1e-10)
