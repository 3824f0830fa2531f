"""A conjecture of Mickus et al. 2024, put to the test: deep classifiers give anisotropic outputs.

Networks of 1 to 5 hidden layers are trained to classify fixed vectors; the last hidden layer and the scores
are measured along the way and held against the frontier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import check_seed
from isoscope.labels import Labels, as_clusters
from isoscope.metrics.frontier import isotropy_ceiling, scatter_decomposition
from isoscope_papers.claims import Claim, judged

DEPTHS = (1, 2, 3, 4, 5)
WIDTHS = (64, 8)
STEPS = 400
SEEDS = (0, 1)
LEARNING_RATE = 3e-3
N_MEASURED = 9  # times along training, the start and the end among them
_SETTLED = 0.9  # a share of variance between labels from which on they count as collapsed
_ANISOTROPIC = 0.5  # an IsoScore under this
_ROOM = 0.05  # of IsoScore: how near the simplex counts as there


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

    @property
    def simplex(self) -> float:
        """IsoScore of balanced labels collapsed to a simplex in the last hidden layer."""
        return isotropy_ceiling(self.n_labels, self.width)

    @property
    def ceiling(self) -> float:
        """The largest IsoScore at the share between labels at the end."""
        return isotropy_ceiling(self.n_labels, self.width, between=self.between_share[-1])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> DeepRun:
        """What `to_dict` gave."""
        fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in kept.items()}
        return cls(**fields)


def run_deep(
    X: Any,
    y: Any,
    *,
    data: str,
    depths: Sequence[int] = DEPTHS,
    widths: Sequence[int] = WIDTHS,
    steps: int = STEPS,
    seeds: Sequence[int] = SEEDS,
    progress: Callable[[str], None] = lambda _: None,
) -> list[DeepRun]:
    """Train a network of each depth and width on vectors scaled to a variance of 1, full batch, by Adam."""
    matrix = as_matrix(X).detach().float()
    labels = as_clusters(y, n=len(matrix))
    rows = matrix - matrix.mean(dim=0)
    rows = rows / rows.square().mean().sqrt()
    at = sorted({round(step) for step in np.linspace(0, math.sqrt(steps), N_MEASURED) ** 2})
    found = []
    for width in widths:
        for depth in depths:
            progress(f"{data}: {depth} hidden layers of {width}")
            curves = np.array([list(_trained(rows, labels, depth, width, at, seed)) for seed in seeds])
            mean = curves.mean(axis=0)  # (times, 4)
            columns = [tuple(column) for column in mean.T.tolist()]
            found.append(
                DeepRun(
                    data=data, depth=depth, width=width, n=len(rows), n_labels=labels.n_labels,
                    steps=tuple(at),
                    isoscore=columns[0], between_share=columns[1], accuracy=columns[2],
                    input_isoscore=scatter_decomposition(rows, labels).isoscore, score_isoscore=columns[3],
                )
            )  # fmt: skip
    return found


def _trained(
    rows: Tensor, labels: Labels, depth: int, width: int, at: Sequence[int], seed: int
) -> Iterator[tuple[float, float, float, float]]:
    """IsoScore and ρ of the last hidden layer, accuracy, and IsoScore of the scores, at each step of `at`."""
    check_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = [rows.shape[1], *[width] * depth]
        body = torch.nn.Sequential(
            *(
                part
                for n_in, n_out in pairwise(sizes)
                for part in (torch.nn.Linear(n_in, n_out), torch.nn.ReLU())
            )
        )
        head = torch.nn.Linear(width, labels.n_labels)
    adam = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=LEARNING_RATE)
    for step in range(at[-1] + 1):
        hidden = body(rows)
        scores = head(hidden)
        if step in at:
            yield _measured(hidden.detach(), scores.detach(), labels)
        adam.zero_grad()
        torch.nn.functional.cross_entropy(scores, labels.codes).backward()
        adam.step()


def _measured(hidden: Tensor, scores: Tensor, labels: Labels) -> tuple[float, float, float, float]:
    """IsoScore and ρ of the last layer, accuracy, IsoScore of the scores; all units off is an error."""
    accuracy = float((scores.argmax(dim=1) == labels.codes).float().mean())
    split = scatter_decomposition(hidden.double(), labels)
    outputs = scatter_decomposition(scores.double(), labels)
    return split.isoscore, split.between_share, accuracy, outputs.isoscore


def deep_claims(runs: Sequence[DeepRun]) -> list[Claim]:
    """The conjecture in parts, each with the bound it is tested by."""
    claims = []
    for data in dict.fromkeys(run.data for run in runs):
        for width in dict.fromkeys(run.width for run in runs if run.data == data):
            own = [run for run in runs if (run.data, run.width) == (data, width)]
            claims += _claims(f"{data}, width {width}", own)
    return claims


def _claims(subject: str, runs: Sequence[DeepRun]) -> list[Claim]:
    ends = ", ".join(f"{run.isoscore[-1]:.3f}" for run in runs)
    depths = ", ".join(str(run.depth) for run in runs)
    falls = [run.isoscore[-1] < run.isoscore[0] for run in runs]
    few = runs[0].n_labels <= runs[0].width
    anisotropic = [run.isoscore[-1] < _ANISOTROPIC for run in runs]
    found = [
        Claim(
            f"The last hidden layer ends anisotropic: IsoScore under {_ANISOTROPIC}",
            subject,
            judged(anisotropic),
            f"depth {depths}: {ends}; inputs {runs[0].input_isoscore:.3f}",
        ),
        Claim(
            "Training lowers the IsoScore of the last hidden layer",
            subject,
            judged(falls),
            "; ".join(f"{run.isoscore[0]:.3f} → {run.isoscore[-1]:.3f}" for run in runs),
        ),
    ]
    settled = [run for run in runs if run.between_share[-1] > _SETTLED]
    if few and settled:
        found.append(
            Claim(
                f"Where labels have collapsed (ρ > {_SETTLED}), IsoScore is that of a simplex, ± {_ROOM}",
                subject,
                judged([abs(run.isoscore[-1] - run.simplex) < _ROOM for run in settled]),
                f"simplex {runs[0].simplex:.3f}; "
                + ", ".join(f"depth {run.depth}: {run.isoscore[-1]:.3f}" for run in settled),
            )
        )
    return found
