from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises
from torch import Tensor

import isoscope as iso
from isoscope.errors import InputError, IsoscopeError, NotFiniteError, ShapeError
from isoscope.losses import IStarLoss

KINDS = ("plain", "star", "debiased")
SHAPES = ((6, 9), (30, 5))  # fewer rows than dimensions, and more


def cloud(n: int, d: int, *, seed: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=draw, dtype=torch.float64) * torch.linspace(1, 3, d) + 2


def some_covariance(d: int) -> Tensor:
    return torch.cov(cloud(50, d, seed=9).T)


def penalty(kind: str, d: int, strength: float = 1.0, **more: object) -> IStarLoss:
    if kind == "debiased":
        return IStarLoss(strength, debias=True, **more)
    if kind == "plain":
        return IStarLoss(strength, zeta=0.0, **more)
    return IStarLoss(strength, covariance=some_covariance(d), zeta=0.2, **more)


def metric(kind: str, X: Tensor) -> Tensor:
    """The same score through the graph of the metric: another way to its value and its gradient."""
    if kind == "debiased":
        return iso.isoscore(X, debias=True)
    return iso.isoscore(X) if kind == "plain" else iso.isoscore_star(X, some_covariance(X.shape[1]), zeta=0.2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_value_is_the_metrics(kind: str, shape: tuple[int, int]) -> None:
    X = cloud(*shape)
    assert float(penalty(kind, shape[1], -0.7)(X)) == pytest.approx(-0.7 * (1 - metric(kind, X)), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_is_that_of_the_metrics_graph(kind: str, shape: tuple[int, int]) -> None:
    ours, graph = cloud(*shape).requires_grad_(), cloud(*shape).requires_grad_()
    (3 * penalty(kind, shape[1], 2.0)(ours)).backward()
    (3 * 2.0 * (1 - metric(kind, graph))).backward()
    torch.testing.assert_close(ours.grad, graph.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_gradcheck(kind: str, shape: tuple[int, int]) -> None:
    assert torch.autograd.gradcheck(penalty(kind, shape[1], 1.5), cloud(*shape).requires_grad_())


@pytest.mark.parametrize(("n", "d", "zeta"), [(32, 24, 0.2), (20, 48, 0.2), (40, 16, 0.75)])
def test_value_and_gradient_agree_with_the_published_package(n: int, d: int, zeta: float) -> None:
    published = pytest.importorskip("IsoScore.IsoScore").istar()
    C0 = some_covariance(d)
    theirs, ours = cloud(n, d).requires_grad_(), cloud(n, d).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = 1 - published.IsoScore_star(theirs, C0, zeta, is_eval=False)
    expected.backward()
    found = IStarLoss(1.0, covariance=C0, zeta=zeta)(ours)
    found.backward()
    assert found.item() == pytest.approx(expected.item(), abs=3e-7)  # they take √d in float32
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-5, atol=1e-8)


def test_a_negative_strength_turns_the_gradient_round() -> None:
    up, down = cloud(12, 4).requires_grad_(), cloud(12, 4).requires_grad_()
    IStarLoss(1.0, zeta=0)(up).backward()
    IStarLoss(-1.0, zeta=0)(down).backward()
    torch.testing.assert_close(up.grad, -down.grad)
    lower = up.detach() - 0.5 * up.grad / up.grad.norm()
    assert iso.isoscore(lower) > iso.isoscore(up.detach())


def test_zeta_one_ignores_the_batch_and_another_zeta_counts() -> None:
    X = cloud(12, 4).requires_grad_()
    loss = IStarLoss(1.0, covariance=torch.eye(4), zeta=1.0)
    found = loss(X)
    found.backward()
    assert found.item() == pytest.approx(0, abs=1e-12)
    assert not X.grad.any()
    loss.zeta = 0.5
    assert loss(X).item() > 1e-3


# ---------------------------------------------------------------- what counts


def states_and_mask() -> tuple[Tensor, Tensor]:
    states = cloud(12, 5).view(3, 4, 5)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]])
    return states, mask


def test_masked_tokens_do_not_count_and_get_no_gradient() -> None:
    states, mask = states_and_mask()
    states.requires_grad_()
    loss = IStarLoss(1.0, debias=True)
    found = loss(states, mask)
    found.backward()
    assert found.item() == pytest.approx(
        1 - iso.isoscore(states.detach()[mask.bool()], debias=True), rel=1e-12
    )
    assert not states.grad[mask == 0].any()
    assert states.grad[mask == 1].all()
    assert abs(found.item() - loss(states, torch.ones_like(mask)).item()) > 1e-3


def test_special_tokens_can_be_left_out() -> None:
    states, mask = states_and_mask()
    special = torch.tensor([[1, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0]])
    loss = IStarLoss(1.0, zeta=0)
    left = mask * (1 - special)
    assert float(loss(states, left)) == pytest.approx(1 - iso.isoscore(states[left == 1]), rel=1e-12)
    assert float(loss(states, left)) != pytest.approx(float(loss(states, mask)), rel=1e-3)


def test_layers_are_joined_without_the_embedding_layer() -> None:
    states, mask = states_and_mask()
    layers = (100 * states, states, states.flip(2) + 1, states**2)
    union = torch.cat([layer[mask.bool()] for layer in layers[1:]])
    assert float(IStarLoss(1.0, zeta=0)(layers, mask)) == pytest.approx(1 - iso.isoscore(union), rel=1e-12)
    last = IStarLoss(1.0, zeta=0, layers=[-1])
    assert float(last(list(layers), mask)) == pytest.approx(
        1 - iso.isoscore(layers[-1][mask.bool()]), rel=1e-12
    )


@pytest.mark.parametrize("all_count", [True, False])
def test_gradient_reaches_the_tokens_of_every_layer_that_count(all_count: bool) -> None:
    states, mask = states_and_mask()
    mask = torch.ones_like(mask) if all_count else mask
    layers = tuple((factor * states).requires_grad_() for factor in (1, 2, 3))
    loss = IStarLoss(1.0, zeta=0, layers=[1, 2])
    assert torch.autograd.gradcheck(lambda *given: loss((None, *given), mask), layers[1:])


def test_layers_may_differ_in_type() -> None:
    states, mask = states_and_mask()
    mixed = (states.float(), states.float().requires_grad_(), (states + 1).bfloat16().requires_grad_())
    found = IStarLoss(1.0, zeta=0)(mixed, mask)
    found.backward()
    union = torch.cat([layer.detach().double()[mask.bool()] for layer in mixed[1:]])
    assert found.item() == pytest.approx(1 - iso.isoscore(union), rel=1e-5)
    assert [layer.grad.dtype for layer in mixed[1:]] == [torch.float32, torch.bfloat16]


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("n", "d"), [(4, 768), (4, 3), (40, 8)])
@pytest.mark.parametrize("shape", ["collapse", "batch", "identity"])
def test_gradients_are_finite(kind: str, dtype: torch.dtype, n: int, d: int, shape: str) -> None:
    if shape == "collapse":
        X = torch.full((n, d), 0.1, dtype=dtype)
    elif shape == "batch":
        X = cloud(n, d).to(dtype)
    else:
        X = torch.cat([torch.eye(d), -torch.eye(d)]).to(dtype)
    X.requires_grad_()
    found = penalty(kind, d)(X)
    found.backward()
    assert torch.isfinite(found)
    assert torch.isfinite(X.grad).all()
    assert X.grad.dtype == dtype
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    if shape == "identity" and kind == "plain":
        assert found.item() == pytest.approx(0, abs=1e-6)
        assert float(X.grad.abs().max()) < 1e-6
    if shape == "collapse":
        assert kind == "star" or (found.item() == 1 and not X.grad.any())


def test_batch_where_no_direction_shows_twice_is_flat_not_infinite() -> None:
    X = torch.eye(4, dtype=torch.float64)
    orthogonal = torch.stack(
        [X[0], -X[0], X[1], X[2]]
    ).requires_grad_()  # differences are not all at right angles
    simplex = X.clone().requires_grad_()  # those of disjoint pairs of a simplex are
    for points in (orthogonal, simplex):
        found = IStarLoss(1.0, debias=True)(points)
        found.backward()
        assert torch.isfinite(found)
        assert torch.isfinite(points.grad).all()
    assert IStarLoss(1.0, debias=True)(simplex).item() == 0
    assert not simplex.grad.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("n", [300, 12])
def test_autocast_changes_nothing(kind: str, dtype: torch.dtype, n: int) -> None:
    """Statistics are float32 or wider whatever surrounds the call."""
    X = (cloud(n, 20) + 3).to(dtype)
    plain, cast = X.clone().requires_grad_(), X.clone().requires_grad_()
    expected = penalty(kind, 20)(plain)
    expected.backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = penalty(kind, 20)(cast)
        found.backward()
    assert found.dtype == torch.float32
    assert found.item() == expected.item()
    assert torch.equal(cast.grad, plain.grad)
    assert found.item() == pytest.approx(1 - float(metric(kind, X.double())), rel=1e-5)


def test_offset_keeps_its_digits_in_float32() -> None:
    X = cloud(200, 16) + 300
    narrow = X.float()
    assert float(IStarLoss(1.0, zeta=0)(narrow)) == pytest.approx(1 - iso.isoscore(narrow.double()), rel=1e-5)


# ---------------------------------------------------------------- parts of a batch


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d"), [(12, 40), (40, 6)])
def test_micro_batches_with_the_moments_of_the_whole_add_up_exactly(kind: str, n: int, d: int) -> None:
    loss = penalty(kind, d, 1.5)
    whole, parts = cloud(n, d).requires_grad_(), cloud(n, d).requires_grad_()
    expected = loss(whole)
    expected.backward()
    sizes = [5, 3, n - 8]
    moments = loss.moments(parts.split(sizes))
    for part in parts.split(sizes):
        found = loss(part, whole=moments)
        assert found.item() == pytest.approx(expected.item(), rel=1e-9)
        found.backward()
    torch.testing.assert_close(parts.grad, whole.grad, rtol=1e-8, atol=1e-12)


def test_moments_take_masks_and_layers() -> None:
    states, mask = states_and_mask()
    layers = (states, states + 1, 2 * states)
    loss = IStarLoss(1.0, zeta=0)
    moments = loss.moments([(layers, mask), (layers, mask)])
    rows = torch.cat([layer[mask.bool()] for layer in layers[1:]]).repeat(2, 1)
    assert moments.count == len(rows)
    assert float(loss(layers, mask, whole=moments)) == pytest.approx(1 - iso.isoscore(rows), rel=1e-10)


def test_mean_of_debiased_micro_batches_is_near_the_whole_and_the_plain_mean_is_not() -> None:
    """What the documentation says of gradient accumulation."""
    X = cloud(3200, 64) - 2
    truth = 1 - iso.isoscore(X, debias=True)
    mean = {
        kind: np.mean([float(penalty(kind, 64)(part)) for part in X.split(32)])
        for kind in ("plain", "debiased")
    }
    assert mean["debiased"] == pytest.approx(truth, abs=0.02)
    assert abs(mean["plain"] - truth) > 0.3


# ---------------------------------------------------------------- the module


def test_covariance_is_saved_and_loaded() -> None:
    loss = IStarLoss(1.0, covariance=some_covariance(5))
    fresh = torch.nn.ModuleDict({"penalty": IStarLoss(1.0)})
    fresh.load_state_dict({f"penalty.{name}": value for name, value in loss.state_dict().items()})
    X = cloud(9, 5)
    assert float(fresh["penalty"](X)) == float(loss(X))
    assert float(copy.deepcopy(loss)(X)) == float(loss(X))
    loss(X)
    loss.load_state_dict({"covariance": torch.eye(5, dtype=torch.float64)})  # in place, where one is in use
    assert float(loss(X)) == pytest.approx(1 - iso.isoscore_star(X, torch.eye(5), zeta=0.2), rel=1e-12)


def test_set_covariance_takes_effect_and_keeps_a_copy() -> None:
    X, C0 = cloud(9, 5), torch.eye(5)
    loss = IStarLoss(1.0)
    loss.set_covariance(C0)
    first = float(loss(X))
    C0[0, 0] = 7
    assert float(loss(X)) == first
    loss.set_covariance(C0)
    assert float(loss(X)) != pytest.approx(first, rel=1e-3)
    assert "zeta=0.2" in repr(loss)
    assert "debias" in repr(IStarLoss(debias=True))


X3 = torch.zeros(2, 3, 4)


@pytest.mark.parametrize(
    ("error", "fields", "call"),
    [
        (InputError, {"argument": "strength", "wanted": "finite"}, lambda: IStarLoss(math.nan)),
        (InputError, {"argument": "strength", "got": "high"}, lambda: IStarLoss("high")),
        (InputError, {"argument": "strength", "got": True}, lambda: IStarLoss(True)),
        (
            InputError,
            {"argument": "strength", "got": 1e300, "wanted": "float32"},
            lambda: IStarLoss(1e300, debias=True),
        ),
        (
            InputError,
            {"argument": "strength", "got": -3.5e38, "wanted": "float32"},
            lambda: IStarLoss(-3.5e38),
        ),
        (
            InputError,
            {"argument": "strength", "message": "digits", "wanted": "float32"},
            lambda: IStarLoss(10**400),
        ),
        (InputError, {"argument": "zeta", "got": 1.2}, lambda: IStarLoss(1.0, zeta=1.2)),
        (
            InputError,
            {"argument": "covariance", "message": "debias", "hint": "debias"},
            lambda: IStarLoss(covariance=torch.eye(2), debias=True),
        ),
        (
            InputError,
            {"message": "not symmetric"},
            lambda: IStarLoss(covariance=torch.tensor([[1.0, 2.0], [0.0, 1.0]])),
        ),
        (InputError, {"message": "negative eigenvalues"}, lambda: IStarLoss(covariance=-torch.eye(2))),
        (
            NotFiniteError,
            {"argument": "covariance", "wanted": "finite", "hint": "reference_covariance"},
            lambda: IStarLoss(covariance=torch.eye(2).fill_diagonal_(math.nan)),
        ),
        (
            InputError,
            {"argument": "covariance", "message": "missing", "hint": "zeta"},
            lambda: IStarLoss(1.0)(cloud(5, 3)),
        ),
        (
            ShapeError,
            {"argument": "covariance", "message": "shape", "wanted": r"\(3, 3\)"},
            lambda: IStarLoss(covariance=torch.eye(2))(cloud(5, 3)),
        ),
        (InputError, {"message": "1 vector ", "wanted": "2"}, lambda: IStarLoss(zeta=0)(cloud(1, 3))),
        (
            InputError,
            {"message": "3 vectors", "wanted": "4"},
            lambda: IStarLoss(debias=True)(cloud(3, 3)),
        ),
        (
            ShapeError,
            {"argument": "states", "message": "1 dimension"},
            lambda: IStarLoss(zeta=0)(cloud(5, 1)),
        ),
        (
            InputError,
            {"argument": "mask", "message": "missing", "hint": "attention"},
            lambda: IStarLoss(zeta=0)(X3),
        ),
        (
            InputError,
            {"argument": "mask", "message": "every vector"},
            lambda: IStarLoss(zeta=0)(X3, torch.zeros(2, 3).long()),
        ),
        (
            ShapeError,
            {"argument": "mask", "message": r"\(2, 4\)", "wanted": r"\(2, 3\)"},
            lambda: IStarLoss(zeta=0)(X3, torch.ones(2, 4).long()),
        ),
        (
            InputError,
            {"argument": "mask", "message": "float32"},
            lambda: IStarLoss(zeta=0)(X3, torch.zeros(2, 3)),
        ),
        (
            InputError,
            {"argument": "mask", "message": "ndarray", "wanted": r"\(2, 3\)"},
            lambda: IStarLoss(zeta=0)(X3, np.ones((2, 3), int)),
        ),
        (
            InputError,
            {"argument": "states", "message": "ndarray", "wanted": "torch"},
            lambda: IStarLoss(zeta=0)(cloud(5, 3).numpy()),
        ),
        (
            InputError,
            {"argument": "states", "message": "ndarray"},
            lambda: IStarLoss(zeta=0)(X3.numpy(), torch.ones(2, 3).long()),
        ),
        (InputError, {"argument": "states", "message": "NoneType"}, lambda: IStarLoss(zeta=0)(None)),
        (
            InputError,
            {"argument": "states", "message": "entry .* float", "wanted": "torch"},
            lambda: IStarLoss(zeta=0)([1.0, 2.0, 3.0]),
        ),
        (
            InputError,
            {"argument": "states", "message": "entry .* list", "wanted": "torch"},
            lambda: IStarLoss(zeta=0)([[1.0, 2.0]]),
        ),
        (
            InputError,
            {"argument": "states", "message": "entry .* NoneType"},
            lambda: IStarLoss(zeta=0, layers=[0])((None, cloud(5, 3))),
        ),
        (ShapeError, {"argument": "states", "message": "shape"}, lambda: IStarLoss(zeta=0)(torch.zeros(4))),
        (
            InputError,
            {"argument": "states", "message": "int64", "wanted": "floating"},
            lambda: IStarLoss(zeta=0)(torch.zeros(4, 2).long()),
        ),
        (
            InputError,
            {"argument": "states", "hint": "layers"},
            lambda: IStarLoss(zeta=0, layers=[1])(cloud(5, 3)),
        ),
        (
            ShapeError,
            {"argument": "states", "message": "length 1", "hint": "layers"},
            lambda: IStarLoss(zeta=0)((cloud(5, 3),)),
        ),
        (
            ShapeError,
            {"argument": "layers", "got": [4], "wanted": "length 2"},
            lambda: IStarLoss(zeta=0, layers=[4])((cloud(5, 3), cloud(5, 3))),
        ),
        (
            ShapeError,
            {"argument": "states", "message": "layers of shapes"},
            lambda: IStarLoss(zeta=0, layers=[0, 1])((cloud(5, 3), cloud(5, 4))),
        ),
        (
            NotFiniteError,
            {"argument": "states", "message": "2 of 5 vectors"},
            lambda: IStarLoss(zeta=0)(cloud(5, 3).index_fill(0, torch.tensor([1, 4]), math.nan)),
        ),
    ],
)
def test_bad_input_is_refused(error: type[IsoscopeError], fields: dict[str, Any], call: Any) -> None:
    with raises(error, **fields):
        call()


def test_every_strength_that_float32_holds_is_taken() -> None:
    largest = torch.finfo(torch.float32).max
    for strength in (largest, -largest, 1e-45, 0.0, np.float64(2.5), 3):
        assert IStarLoss(strength, zeta=0).strength == strength
        IStarLoss(strength, zeta=0)(cloud(9, 4).float())
