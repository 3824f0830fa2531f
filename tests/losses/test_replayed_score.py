"""The score and gradient that CUDA replays, computed on the CPU by the same function."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.raising import raises
from torch import Tensor

from isoscope.errors import InputError, NotFiniteError
from isoscope.kernels import recorded
from isoscope.losses import IStarLoss, replayed_score

D = 12
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"zeta": 0.0},
    "star": {
        "zeta": 0.2,
        "covariance": torch.cov(torch.randn(D, 50, generator=torch.Generator().manual_seed(5))),
    },
    "debiased": {"debias": True},
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Take the way of CUDA on the CPU; the shapes of its rows are noted."""
    made: list[tuple[int, ...]] = []

    def plainly(function: Any, *inputs: Tensor, **options: Any) -> Any:
        made.append(tuple(inputs[0].shape))
        return function(*inputs, **options)

    monkeypatch.setattr(replayed_score, "replayed", plainly)
    monkeypatch.setattr(replayed_score, "_is_on_cuda", lambda layer: True)
    return made


def token_states(*, n_layers: int = 3, dtype: torch.dtype = torch.float32, seed: int = 0) -> list[Tensor]:
    draw = torch.Generator().manual_seed(seed)
    scale = torch.linspace(1, 3, D)
    return [(torch.randn(6, 10, D, generator=draw) * scale + 2 + i).to(dtype) for i in range(n_layers)]


def mask_of(kind: str) -> Tensor:
    lengths = torch.tensor([10, 3, 7, 1, 10, 5])
    mask = (torch.arange(10) < lengths[:, None]).long()
    return mask if kind == "padding" else torch.ones_like(mask)


def taken(states: list[Tensor], mask: Tensor | None, kind: str) -> tuple[Tensor, list[Tensor]]:
    """The penalty and its gradient in every layer."""
    leaves = [state.clone().requires_grad_() for state in states]
    loss = IStarLoss(0.7, layers=range(len(states)), **KINDS[kind])(leaves, mask)
    (2.0 * loss).backward()
    return loss.detach(), [leaf.grad for leaf in leaves]


@pytest.mark.parametrize("mask", ["padding", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_value_and_gradient_are_those_in_float64(kind: str, mask: str, calls: list[Any]) -> None:
    states = token_states()
    loss, gradients = taken(states, mask_of(mask), kind)
    assert calls == [(192, D)]  # 180 rows, padded
    expected, expected_gradients = taken([state.double() for state in states], mask_of(mask), kind)
    assert len(calls) == 1  # float64 goes the other way
    assert loss.dtype == torch.float32
    assert float(loss) == pytest.approx(float(expected), abs=2e-6)
    for gradient, other in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(
            gradient.double(), other, rtol=1e-4, atol=2e-6 * float(other.abs().max()) + 1e-8
        )
        assert not gradient[mask_of(mask) == 0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_one_tensor_without_a_mask_and_half_precision(kind: str, calls: list[Any]) -> None:
    (state,) = token_states(n_layers=1)
    for dtype in (torch.float32, torch.bfloat16):
        rows = state.flatten(0, 1).to(dtype).requires_grad_()
        loss = IStarLoss(1.0, **KINDS[kind])(rows)
        loss.backward()
        wide = rows.detach().double().requires_grad_()
        other = IStarLoss(1.0, **KINDS[kind])(wide)
        other.backward()
        assert rows.grad.dtype == dtype
        assert float(loss.detach()) == pytest.approx(float(other.detach()), abs=2e-6)
        tolerance = 1e-4 if dtype == torch.float32 else 1e-2
        torch.testing.assert_close(rows.grad.double(), wide.grad, rtol=tolerance, atol=1e-6)
    assert calls == [(64, D)] * 2


def test_batches_of_near_sizes_share_a_recording(calls: list[Any]) -> None:
    for n in range(60, 129):
        IStarLoss(1.0, zeta=0.0)(torch.randn(n, D))
    assert {shape[0] for shape in calls} == {64, 80, 96, 112, 128}


@pytest.mark.parametrize(
    ("change", "error"),
    [(torch.nan, NotFiniteError), (torch.inf, NotFiniteError)],
)
def test_states_that_are_not_finite(change: float, error: type[Exception], calls: list[Any]) -> None:
    X = torch.randn(40, D)
    X[3, 2] = change
    with raises(error, argument="states"):
        IStarLoss(1.0, zeta=0.0)(X)
    masked = torch.arange(40) != 3  # where it does not count it is left out
    assert float(IStarLoss(1.0, zeta=0.0)(X, masked)) == pytest.approx(
        float(IStarLoss(1.0, zeta=0.0)(X[masked].double())), abs=1e-6
    )


@pytest.mark.parametrize("scale", [1e-20, 1e15])
def test_what_float32_cannot_sum_goes_the_other_way(scale: float, calls: list[Any]) -> None:
    X = torch.randn(40, D) * scale
    expected = IStarLoss(1.0, zeta=0.0)(X.double())
    assert float(IStarLoss(1.0, zeta=0.0)(X)) == pytest.approx(float(expected), rel=1e-5)
    assert calls == [(40, D)]


def test_few_or_equal_rows(calls: list[Any]) -> None:
    assert float(IStarLoss(1.0, zeta=0.0)(torch.ones(40, D))) == 1
    outlier = torch.zeros(40, D)
    outlier[0] = 1
    IStarLoss(1.0, debias=True)(outlier)
    with raises(InputError):
        IStarLoss(1.0, debias=True)(torch.randn(40, D), torch.arange(40) < 3)
    with raises(InputError, argument="mask"):
        IStarLoss(1.0, zeta=0.0)(torch.randn(40, D), torch.zeros(40, dtype=torch.bool))
    n_calls = len(calls)
    IStarLoss(1.0, zeta=0.0)(torch.randn(D - 2, D))  # fewer rows than dimensions: on their Gram matrix
    assert len(calls) == n_calls


def test_recordings_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call of a shape is recorded, with everything but the rows and weights as options."""
    recordings = []

    class Plain:
        n_bytes = 0

        def __init__(self, function: Any, inputs: Any) -> None:
            recordings.append(function.keywords)
            self._function = function

        def __call__(self, inputs: Any) -> Any:
            return self._function(*inputs)

    monkeypatch.setattr(recorded, "Recording", Plain)
    monkeypatch.setattr(recorded, "_recordings", type(recorded._recordings)())
    monkeypatch.setattr(replayed_score, "_is_on_cuda", lambda layer: True)
    penalty = IStarLoss(1.0, debias=True)
    values = [
        float(penalty(torch.randn(40, D, generator=torch.Generator().manual_seed(1)))) for _ in range(4)
    ]
    assert len(recordings) == 1
    assert recordings[0]["debias"] is True
    assert len(set(values)) == 1


def test_without_a_gradient(calls: list[Any]) -> None:
    with torch.no_grad():
        assert not IStarLoss(1.0, zeta=0.0)(torch.randn(40, D)).requires_grad
    assert calls
