"""The penalty of I-STAR, forward and backward: against PyPI IsoScore's module, and beside a training step.

    python -m benchmarks.losses                 on the CPU
    python -m benchmarks.losses --device cuda   on a CUDA device; needs only torch

Where PyPI IsoScore is not installed its steps, written out below, take its place.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks import on_gpu
from benchmarks.timing import take_turns
from isoscope.losses import IStarLoss

ZETA = 0.2
# vectors, dimensions, how many times faster is wanted on the CPU, and on CUDA
CASES = ((32, 768, 100.0, 20.0), (4_096, 768, 1.8, 20.0))
BATCH, LENGTH, WANTED_SHARE = 32, 32, 5.0


def run(device: str = "cpu") -> list[dict[str, Any]]:
    """Compare the penalty with each estimator to the published steps with the same ζ."""
    return [row for case in CASES for row in _case(*case, device)]


def _case(n: int, d: int, wanted_cpu: float, wanted_cuda: float, device: str) -> list[dict[str, Any]]:
    draw = torch.Generator().manual_seed(0)
    X = (torch.randn(n, d, generator=draw) * torch.linspace(1, 3, d)).to(device)
    C0 = torch.cov(torch.randn(d, 4 * d, generator=draw)).to(device)
    ours = {
        "no shrinkage": IStarLoss(1.0, zeta=0.0),
        f"ζ = {ZETA}": IStarLoss(1.0, covariance=C0, zeta=ZETA).to(device),
        "debiased": IStarLoss(1.0, debias=True),
    }
    peer, name = _peer()
    zetas = {what: loss.zeta if not loss.debias else 0.0 for what, loss in ours.items()}
    contenders: dict[str, Callable[[], Tensor]] = {
        f"theirs {zeta}": _step(lambda points, zeta=zeta: 1 - peer(points, C0, zeta), X)
        for zeta in sorted(set(zetas.values()))
    } | {what: _step(loss, X) for what, loss in ours.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {what: call() for what, call in contenders.items()}
        seconds = take_turns(contenders, rounds=on_gpu.few(7))
    return [
        {
            "what": f"penalty of {n:,} × {d}, {what}",
            "device": _device_name(device),
            "peer": name,
            "peer_ms": 1e3 * seconds[f"theirs {zetas[what]}"],
            "ours_ms": 1e3 * seconds[what],
            "times_faster": seconds[f"theirs {zetas[what]}"] / seconds[what],
            "wanted": wanted_cpu if device == "cpu" else wanted_cuda,
            "gradient_difference": _difference(found[what], found[f"theirs {zetas[what]}"])
            if what != "debiased"
            else None,
        }
        for what in ours
    ]


def _step(loss: Callable[[Tensor], Tensor], X: Tensor) -> Callable[[], Tensor]:
    """One forward and one backward pass; waits for the device."""

    def step() -> Tensor:
        points = X.clone().requires_grad_()
        loss(points).backward()
        if points.is_cuda:
            torch.cuda.synchronize()
        assert points.grad is not None
        return points.grad

    return step


def _difference(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).norm() / theirs.norm())


def _peer() -> tuple[Callable[[Tensor, Tensor, float], Tensor], str]:
    if importlib.util.find_spec("IsoScore") is None:
        return _published_steps, "the published steps"
    from IsoScore.IsoScore import istar

    module = istar()
    return lambda points, C0, zeta: module.IsoScore_star(
        points, C0, zeta, is_eval=False
    ), "PyPI IsoScore 2.0.1"


def _published_steps(points: Tensor, C0: Tensor, zeta: float) -> Tensor:
    """IsoScore* as the paper describes it: PCA of the shrunk covariance, and two rescalings."""
    d = points.shape[1]
    variances = torch.linalg.svdvals((1 - zeta) * torch.cov(points.T) + zeta * C0)
    profile = math.sqrt(d) * variances / torch.linalg.vector_norm(variances)
    defect = torch.linalg.vector_norm(profile - 1) / math.sqrt(2 * (d - math.sqrt(d)))
    return ((d - defect**2 * (d - math.sqrt(d))) ** 2 - d) / (d * (d - 1))


def step_share(device: str = "cpu") -> list[dict[str, Any]]:
    """Time the penalty over all layers relative to a training step of MiniLM (forward, backward, AdamW)."""
    model = _minilm().to(device).train().requires_grad_(True)
    head = torch.nn.Linear(model.config.hidden_size, 2).to(device)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-5)
    draw, batch = torch.Generator().manual_seed(0), min(BATCH, on_gpu.few(BATCH) + 1)
    ids = torch.randint(1000, 20_000, (batch, LENGTH), generator=draw).to(device)
    labels = torch.randint(0, 2, (batch,), generator=draw).to(device)
    mask = torch.ones_like(ids)
    states = model(ids, attention_mask=mask, output_hidden_states=True).hidden_states
    kept = [state.detach() for state in states]
    losses = {
        f"ζ = {ZETA}": IStarLoss(1.0, covariance=torch.eye(kept[0].shape[2]), zeta=ZETA).to(device),
        "debiased": IStarLoss(1.0, debias=True),
    }

    def step(penalty: IStarLoss | None = None) -> None:
        optimizer.zero_grad()
        output = model(ids, attention_mask=mask, output_hidden_states=True)
        loss = torch.nn.functional.cross_entropy(head(output.last_hidden_state.mean(dim=1)), labels)
        if penalty is not None:
            loss = loss + penalty(output.hidden_states, mask)
        loss.backward()
        optimizer.step()
        _wait(device)

    def alone(penalty: IStarLoss) -> None:
        penalty([state.requires_grad_() for state in kept], mask).backward()
        _wait(device)
        for state in kept:
            state.grad = None

    contenders: dict[str, Callable[[], None]] = {"step": step}
    for what, penalty in losses.items():
        contenders[what] = lambda penalty=penalty: alone(penalty)
        contenders[f"step, {what}"] = lambda penalty=penalty: step(penalty)
    seconds = take_turns(contenders, rounds=on_gpu.few(7))
    n_vectors = (len(kept) - 1) * batch * LENGTH
    return [
        {
            "what": f"penalty of {n_vectors:,} vectors, {what}, in a step of MiniLM, {batch} × {LENGTH}",
            "device": _device_name(device),
            "step_ms": 1e3 * seconds["step"],
            "with_penalty_ms": 1e3 * seconds[f"step, {what}"],
            "penalty_ms": 1e3 * seconds[what],
            "share_percent": 100 * seconds[what] / seconds["step"],
            "wanted_percent": WANTED_SHARE,
        }
        for what in losses
    ]


def _minilm() -> Any:
    """Return the model, or one of its shape on a machine that has no weights: a step takes as long."""
    from isoscope.errors import IsoscopeError
    from isoscope.models import load_language_model

    try:
        return load_language_model("all-MiniLM-L6-v2", device="cpu").model
    except (IsoscopeError, OSError):
        from transformers import BertConfig, BertModel

        shape = {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}
        return BertModel(BertConfig(num_attention_heads=12, **shape))


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device != "cpu" else "CPU"


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the penalty of I-STAR.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--step", action="store_true", help="beside a training step of MiniLM too")
    asked = parser.parse_args()
    results = {"losses": run(asked.device), "loss_share": step_share(asked.device) if asked.step else []}
    print(json.dumps(results, indent=2))
    if "OUT" in os.environ:
        (Path(os.environ["OUT"]) / "losses.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
