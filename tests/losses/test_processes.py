"""A batch spread over two processes gives the loss and, after averaging, the gradients of one process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests import distributed
from torch import Tensor, nn

from isoscope.losses import (
    AlignmentLoss,
    CosineRegularizer,
    IStarLoss,
    MultipleNegativesLoss,
    TripletLoss,
    UniformityLoss,
    reference_covariance,
)

N, D_IN, D = 11, 6, 5  # 11 does not split evenly
SPLITS = {"uneven": (7, 4), "one has none": (11, 0)}
LABELS = torch.arange(N) % 3


def inputs() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    X = torch.randn(N, D_IN, generator=draw, dtype=torch.float64) + 1
    return X, X + torch.randn(N, D_IN, generator=draw, dtype=torch.float64)


def make_model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(D_IN, 8), nn.Tanh(), nn.Linear(8, D)).double()


def istar(X: Tensor, Y: Tensor, labels: Tensor, model: nn.Module) -> Tensor:
    loss = IStarLoss(2.0, zeta=0.3)
    with torch.no_grad():
        loss.set_covariance(reference_covariance([model(Y)]))
    return loss(model(X))


LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor, nn.Module], Tensor]] = {
    "istar": istar,
    "istar plain": lambda X, Y, labels, model: IStarLoss(2.0, zeta=0)(model(X)),
    "istar debiased": lambda X, Y, labels, model: IStarLoss(2.0, debias=True)(model(X)),
    "cosine": lambda X, Y, labels, model: CosineRegularizer(2.0)(model(X)),
    "multiple negatives": lambda X, Y, labels, model: MultipleNegativesLoss(0.5)(model(X), model(Y)),
    "with negatives": lambda X, Y, labels, model: MultipleNegativesLoss(0.5)(
        model(X), model(Y), model(X + Y)
    ),
    "alignment": lambda X, Y, labels, model: AlignmentLoss()(model(X), model(Y)),
    "uniformity": lambda X, Y, labels, model: UniformityLoss()(model(X)),
    "triplets": lambda X, Y, labels, model: TripletLoss(0.2)(model(X), model(Y), model(Y * X)),
    "labels": lambda X, Y, labels, model: TripletLoss(0.2)(model(X), labels=labels),
}


def outcome(name: str, rows: slice, wrap: Callable[[nn.Module], nn.Module]) -> dict[str, Tensor]:
    X, Y = (Z[rows] for Z in inputs())
    model = make_model()
    wrapped = wrap(model)  # held until the backward pass: the averaging goes with it
    loss = LOSSES[name](X, Y, LABELS[rows], wrapped)
    loss.backward()
    return gradients(loss, model)


def gradients(loss: Tensor, model: nn.Module) -> dict[str, Tensor]:
    return {"loss": loss.detach(), **{key: value.grad for key, value in model.named_parameters()}}


def accumulated(rows: slice) -> dict[str, Tensor]:
    """In micro-batches of three with the moments of the whole; gradients averaged as DDP does."""
    X, loss, model = inputs()[0][rows], IStarLoss(2.0, debias=True), make_model()
    whole = loss.moments(model(part) for part in X.split(3))
    for part in X.split(3):
        value = loss(model(part), whole=whole)
        value.backward()
    for parameter in model.parameters():
        torch.distributed.all_reduce(parameter.grad.div_(2))
    return gradients(value, model)


def work(rank: int) -> dict[str, dict[str, Tensor]]:
    """Compute every loss and its gradients from the rows of one process."""
    results = {}
    for split, (first, _) in SPLITS.items():
        rows = slice(0, first) if rank == 0 else slice(first, N)
        for name in LOSSES:
            results[f"{split}: {name}"] = outcome(name, rows, nn.parallel.DistributedDataParallel)
        alone = IStarLoss(1.0, zeta=0, across_processes=False)
        if rank == 0:  # nobody else takes part: this would wait for ever if it asked
            results[f"{split}: alone"] = {"loss": alone(inputs()[0])}
    results["accumulated"] = accumulated(slice(0, 7) if rank == 0 else slice(7, N))
    both = IStarLoss(1.0, zeta=0)
    results["too few"] = {"loss": torch.tensor(_refused(lambda: both(inputs()[0][: 1 if rank == 0 else 0])))}
    names = TripletLoss()
    results["names"] = {
        "loss": torch.tensor(_refused(lambda: names(inputs()[0][:3], labels=["a", "a", "b"])))
    }
    return results


def _refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except ValueError:
        return True
    return False


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, Tensor]]]:
    return distributed.run(__file__, tmp_path_factory.mktemp("processes"))


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", LOSSES)
def test_two_processes_are_one(results: list[dict[str, dict[str, Tensor]]], split: str, name: str) -> None:
    expected = outcome(name, slice(None), lambda model: model)
    for process in results:
        got = process[f"{split}: {name}"]
        for key, value in expected.items():
            torch.testing.assert_close(
                got[key], value, rtol=1e-9, atol=1e-12, msg=lambda m, k=key: f"{k}: {m}"
            )


@pytest.mark.slow
def test_a_process_can_be_left_alone(results: list[dict[str, dict[str, Tensor]]]) -> None:
    expected = IStarLoss(1.0, zeta=0)(inputs()[0])
    assert results[0]["uneven: alone"]["loss"] == expected


@pytest.mark.slow
def test_every_process_refuses_what_one_would(results: list[dict[str, dict[str, Tensor]]]) -> None:
    assert all(bool(process["too few"]["loss"]) for process in results)
    assert all(bool(process["names"]["loss"]) for process in results)


@pytest.mark.slow
def test_micro_batches_within_processes(results: list[dict[str, dict[str, Tensor]]]) -> None:
    """Three micro-batches in one process and two in the other."""
    expected = outcome("istar debiased", slice(None), lambda model: model)
    for process in results:
        for key, value in expected.items():
            torch.testing.assert_close(process["accumulated"][key], value, rtol=1e-9, atol=1e-12)


if __name__ == "__main__":
    distributed.main(work)
