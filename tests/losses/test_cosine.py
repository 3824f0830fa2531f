from __future__ import annotations

import math

import pytest
import torch
from tests.raising import raises
from torch import Tensor

import isoscope as iso
from isoscope.errors import InputError
from isoscope.losses import CosineRegularizer


def cloud(n: int = 12, d: int = 5) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.5


def cosines(X: Tensor) -> Tensor:
    return torch.nn.functional.cosine_similarity(X[:, None], X[None], dim=2)


def test_is_the_mean_cosine_of_all_pairs() -> None:
    X = cloud()
    W = cosines(X)
    assert float(CosineRegularizer(0.3)(X)) == pytest.approx(0.3 * float(W.sum() - 12) / (12 * 11), rel=1e-12)
    assert float(CosineRegularizer(1.0)(X)) == pytest.approx(iso.mean_cosine(X), rel=1e-12)


def test_n_squared_is_the_papers() -> None:
    X = cloud()
    expected = 0.3 * float(cosines(X).sum() - 12) / 12**2
    assert float(CosineRegularizer(0.3, pairs="n_squared")(X)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("pairs", ["different", "n_squared"])
def test_gradcheck(pairs: str) -> None:
    assert torch.autograd.gradcheck(CosineRegularizer(1.5, pairs=pairs), cloud().requires_grad_())


def test_masks_and_layers() -> None:
    states, mask = cloud().view(3, 4, 5), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]])
    loss = CosineRegularizer(1.0)
    assert float(loss(states, mask)) == pytest.approx(iso.mean_cosine(states[mask.bool()]), rel=1e-12)
    assert float(loss(states, mask)) != pytest.approx(loss(states, torch.ones_like(mask)).item(), rel=1e-3)
    both = torch.cat([states[mask.bool()], states[mask.bool()] + 1])
    assert float(loss((9 * states, states, states + 1), mask)) == pytest.approx(
        iso.mean_cosine(both), rel=1e-12
    )


def test_zero_vectors_are_left_out_with_a_finite_gradient() -> None:
    X = torch.cat([cloud(), torch.zeros(2, 5, dtype=torch.float64)]).requires_grad_()
    found = CosineRegularizer(1.0)(X)
    found.backward()
    assert found.item() == pytest.approx(iso.mean_cosine(cloud()), rel=1e-12)
    assert torch.isfinite(X.grad).all()
    assert not X.grad[12:].any()


def test_collapse_is_finite() -> None:
    X = torch.full((4, 3), 0.1, requires_grad=True)
    found = CosineRegularizer(1.0)(X)
    found.backward()
    assert found.item() == pytest.approx(1, abs=1e-6)
    assert float(X.grad.abs().max()) < 1e-5


def test_autocast_changes_nothing() -> None:
    X = cloud(400, 20).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = CosineRegularizer(1.0)(X)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(iso.mean_cosine(X.double()), rel=1e-5)


def test_bad_input_is_refused() -> None:
    with raises(argument="strength", got=math.inf):
        CosineRegularizer(math.inf)
    with raises(argument="strength", got=1e39, wanted="float32"):
        CosineRegularizer(1e39)
    with raises(argument="states", message="ndarray", wanted="torch tensor"):
        CosineRegularizer()(cloud().numpy())
    with raises(argument="states", message="float", wanted="torch tensor"):
        CosineRegularizer()([0.5, 1.5])
    with raises(InputError, argument="pairs"):
        CosineRegularizer(1.0, pairs="all")
    with raises(message="1 vector ", wanted="2", hint="batch"):
        CosineRegularizer(1.0)(cloud(1))
    with raises(argument="mask", message="every vector"):
        CosineRegularizer(1.0)(cloud().view(3, 4, 5), torch.zeros(3, 4).bool())
    assert "n_squared" in repr(CosineRegularizer(pairs="n_squared"))
