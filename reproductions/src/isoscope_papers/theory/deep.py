"""Networks of several hidden layers trained to classify fixed vectors, their last hidden layer measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope import isotropy_ceiling
from isoscope.metrics import scatter_decomposition
from isoscope_papers.rows import Table
from isoscope_papers.theory.setups import DEEP_SEEDS, DEEP_STEPS, DEPTHS, LEARNING_RATE, N_MEASURED, WIDTHS
from isoscope_papers.verdict import Finding, judged

_ANISOTROPIC = 0.5  # an IsoScore under this


@dataclass(frozen=True)
class DeepRun:
    """One network, mean over seeds; curves begin before the first update.

    Attributes:
        data: which vectors.
        depth, width: hidden layers, and the dimensions of each.
        n, n_labels: points and K.
        steps: updates at which it was measured.
        isoscore, between_share, accuracy: of the last hidden layer, and of the network, at each.
        input_isoscore: of the vectors that go in.
        score_isoscore: of the K scores, at each.
    """

    data: str
    depth: int
    width: int
    n: int
    n_labels: int
    steps: tuple[int, ...]
    isoscore: tuple[float, ...]
    between_share: tuple[float, ...]
    accuracy: tuple[float, ...]
    input_isoscore: float
    score_isoscore: tuple[float, ...]


def run_deep(
    X: Any,
    y: Any,
    *,
    data: str,
    depths: Sequence[int] = DEPTHS,
    widths: Sequence[int] = WIDTHS,
    steps: int = DEEP_STEPS,
    seeds: Sequence[int] = DEEP_SEEDS,
) -> list[DeepRun]:
    """Train a network of each depth and width on vectors scaled to a variance of 1, full batch, by Adam."""
    rows = torch.as_tensor(X).float()
    rows = rows - rows.mean(dim=0)
    rows = rows / rows.square().mean().sqrt()
    codes = torch.as_tensor(np.unique(y, return_inverse=True)[1], device=rows.device)
    at = tuple(sorted({round(step) for step in np.linspace(0, math.sqrt(steps), N_MEASURED) ** 2}))
    runs = []
    for width in widths:
        for depth in depths:
            curves = np.array([list(_trained(rows, codes, depth, width, at, seed)) for seed in seeds])
            isoscore, share, accuracy, score_isoscore = map(tuple, curves.mean(axis=0).T.tolist())
            own = scatter_decomposition(rows, codes).isoscore
            runs.append(
                DeepRun(
                    data, depth, width, len(rows), int(codes.max()) + 1, at, isoscore, share, accuracy, own,
                    score_isoscore,
                )
            )  # fmt: skip
    return runs


def _trained(
    rows: Tensor, codes: Tensor, depth: int, width: int, at: Sequence[int], seed: int
) -> Iterator[tuple[float, float, float, float]]:
    """Yield IsoScore and ρ of the last hidden layer, accuracy, and IsoScore of the scores at some updates."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[torch.nn.Module] = []
        for n_in, n_out in pairwise([rows.shape[1], *[width] * depth]):
            layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
        body, head = torch.nn.Sequential(*layers), torch.nn.Linear(width, int(codes.max()) + 1)
    for part in (body, head):
        part.to(rows.device)
    adam = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=LEARNING_RATE)
    for step in range(at[-1] + 1):
        hidden = body(rows)
        scores = head(hidden)
        if step in at:
            accuracy = float((scores.argmax(dim=1) == codes).float().mean())
            split = scatter_decomposition(hidden.detach().double(), codes)
            outputs = scatter_decomposition(scores.detach().double(), codes)
            yield split.isoscore, split.between_share, accuracy, outputs.isoscore
        adam.zero_grad()
        torch.nn.functional.cross_entropy(scores, codes).backward()
        adam.step()


def deep_findings(runs: Sequence[DeepRun]) -> Iterator[Finding]:
    """Yield the conjecture, tested on each space and width, and whether training lowers IsoScore."""
    for data, width in dict.fromkeys((run.data, run.width) for run in runs):
        own = [run for run in runs if (run.data, run.width) == (data, width)]
        depths = ", ".join(str(run.depth) for run in own)
        ends = ", ".join(f"{run.isoscore[-1]:.3f}" for run in own)
        moves = "; ".join(f"{run.isoscore[0]:.3f} → {run.isoscore[-1]:.3f}" for run in own)
        for claim, signs, ours in (
            (
                "deep-output-anisotropic",
                {str(run.depth): run.isoscore[-1] < _ANISOTROPIC for run in own},
                f"IsoScore under {_ANISOTROPIC}? depth {depths}: {ends}; inputs {own[0].input_isoscore:.3f}",
            ),
            (
                "deep-training-lowers",
                {str(run.depth): run.isoscore[-1] < run.isoscore[0] for run in own},
                moves,
            ),
        ):
            verdict, condition = judged(signs, where="depth {}")
            evidence = f"{own[0].n:,} vectors, {own[0].n_labels} labels, {len(DEEP_SEEDS)} seeds"
            yield Finding(
                f"classifiers/{claim}", f"{data}, width {width}", verdict, ours, condition, evidence
            )


def deep_table(runs: Sequence[DeepRun]) -> Table:
    """Return heads and cells: the last hidden layer of every network at the end."""
    heads = (
        "on", "width", "depth", "accuracy", "ρ", "IsoScore, start", "end", "ceiling at ρ", "simplex",
        "scores",
    )  # fmt: skip
    cells = []
    for run in runs:
        share = run.between_share[-1]
        ceilings = (isotropy_ceiling(run.n_labels, run.width, between=rho) for rho in (share, 1.0))
        values = (
            run.accuracy[-1], share, run.isoscore[0], run.isoscore[-1], *ceilings, run.score_isoscore[-1],
        )  # fmt: skip
        cells.append((run.data, str(run.width), str(run.depth), *(f"{value:.3f}" for value in values)))
    return heads, tuple(cells)
