"""Labels that move as rigid bodies: a model of training vectors that costs a small part of training them.

The rows of a label, or of a set of labels, all move as their label does. So the spread within labels stays
as it is, and only one displacement a label and the classifier are to be found, K·d numbers each in place of
n·d. The optimiser's updates are taken one by one while scores change fast, and many at once when they do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.labels import Labels
from isoscope.statistics.group_sums import group_sums
from isoscope.training.problem import Problem

OPTIMIZERS = ("adam", "adamw", "sgd")
BETAS, EPS, DECAY = (0.9, 0.999), 1e-8, 0.01  # torch's defaults; the decay is AdamW's
_CHANGE = 0.3  # the root mean square change of a score in a step
_GROWTH = 0.2  # of the updates so far, the most that one step takes
_MOST_ROWS = 2000
_MOST_SCORES = 2**23  # numbers in the scores of all rows, labels and draws


@dataclass(frozen=True, eq=False)
class RigidLabels:
    """The rows and labels of a problem, of which each label moves as one body.

    Attributes:
        rows: (m, d) float32: all rows, or some of each label.
        labels: the label, or set of labels, of each row.
        shares: (C,) the share of all rows that a label has.
        targets: (C, L) 1 where a label, or a set, has the class that is scored.
        has_sets: the loss is binary cross-entropy of each class.
        n: the number of rows of the problem.
    """

    rows: Tensor
    labels: Labels
    shares: Tensor
    targets: Tensor
    has_sets: bool
    n: int

    @classmethod
    def of(cls, problem: Problem, *, seed: int) -> Self:
        """Return the bodies of a problem whose items are its rows; of many rows, some of each label."""
        clusters = problem.clusters
        if problem.indicator is None:
            targets = torch.eye(clusters.n_labels, device=problem.table.device)
        else:
            first = torch.zeros(clusters.n_labels, dtype=torch.int64, device=problem.table.device)
            places = torch.arange(len(clusters), device=problem.table.device)
            targets = problem.indicator[first.scatter_(0, clusters.codes, places)].float()
        chosen = _some_of_each(clusters, seed)
        labels = Labels(clusters.codes[chosen], clusters.names)
        shares = clusters.counts.float() / len(clusters)
        return cls(
            problem.table[chosen].float(), labels, shares, targets, problem.indicator is not None,
            len(clusters),
        )  # fmt: skip

    def displacements(
        self, *, learning_rate: float, steps: int, optimizer: str, n_draws: int, seed: int
    ) -> tuple[Tensor, float]:
        """Return (B, C, d) how far each label has moved, for each of B drawn classifiers.

        Beside it, the factor that weight decay leaves of the vectors.
        """
        C, L, d = *self.targets.shape, self.rows.shape[1]
        B = max(1, min(n_draws, _MOST_SCORES // (len(self.rows) * L)))
        W, b = _drawn_classifiers(B, L, d, seed, self.rows.device)
        D = torch.zeros(B, C, d, device=self.rows.device)
        updates = [_Updates(one, learning_rate, optimizer) for one in (D, W, b)]
        decay = 1 - learning_rate * DECAY if optimizer == "adamw" else 1.0
        done, size = 0, 1
        last: Tensor | None = None
        while done < steps:
            scores, gradients = self._gradients(D, W, b, decay**done)
            if last is not None:
                change = float((scores - last).square().mean(dim=(0, 2)).max().sqrt()) / size
                most = min(steps - done, _GROWTH * done)
                size = max(1, int(min(most, _CHANGE / change if change > 0 else math.inf)))
            for update, gradient in zip(updates, gradients, strict=True):
                update.take(gradient, size, decay)
            done, last = done + size, scores
        return D, decay**steps

    def _gradients(self, D: Tensor, W: Tensor, b: Tensor, factor: float) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the (m, B, L) scores and the gradients of the loss: of a row of each label, of W and b."""
        B, L, _ = W.shape
        scores = factor * (self.rows @ W.flatten(0, 1).T).view(-1, B, L)
        scores = scores + (D @ W.mT).transpose(0, 1)[self.labels.codes] + b
        found = scores.sigmoid() / L if self.has_sets else scores.softmax(dim=-1)
        wanted = self.targets / L if self.has_sets else self.targets
        residuals = found - wanted[self.labels.codes][:, None]
        means = group_sums(residuals, self.labels) / self.labels.counts[:, None, None]
        of_label = means.transpose(0, 1) @ W / self.n
        weighted = residuals * (self.shares / self.labels.counts)[self.labels.codes][:, None, None]
        of_weights = factor * (weighted.flatten(1).T @ self.rows).view(B, L, -1)
        summed = (means * self.shares[:, None, None]).permute(1, 2, 0)  # (B, L, C)
        return scores, (of_label, of_weights + summed @ D, summed.sum(dim=2))


class _Updates:
    """The updates of an optimiser to one tensor, in place, any number of them at a constant gradient."""

    def __init__(self, values: Tensor, learning_rate: float, optimizer: str) -> None:
        self._values, self._rate, self._optimizer = values, learning_rate, optimizer
        self._mean, self._square = torch.zeros_like(values), torch.zeros_like(values)
        self._done = 0

    def take(self, gradient: Tensor, size: int, decay: float) -> None:
        """Take `size` updates."""
        self._values.mul_(decay**size)
        self._values.sub_(
            self._rate * size * (gradient if self._optimizer == "sgd" else self._adam(gradient, size))
        )
        self._done += size

    def _adam(self, gradient: Tensor, size: int) -> Tensor:
        """Return the mean over the updates of m̂/(√v̂ + ε): m averaged over them, v as it is half-way."""
        beta, beta_squares = BETAS
        half = (size + 1) / 2
        kept = beta * (1 - beta**size) / (1 - beta) / size
        mean = gradient + (self._mean - gradient) * kept
        old = beta_squares**half
        square = self._square * old + gradient.square() * (1 - old)
        self._mean.lerp_(gradient, 1 - beta**size)
        self._square.lerp_(gradient.square(), 1 - beta_squares**size)
        at = self._done + half
        return mean / (1 - beta**at) / ((square / (1 - beta_squares**at)).sqrt() + EPS)


def _drawn_classifiers(B: int, L: int, d: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return (B, L, d) weights and (B, L) biases, distributed as those of nn.Linear."""
    generator = torch.Generator().manual_seed(seed)
    both = (2 * torch.rand(B, L, d + 1, generator=generator) - 1) / math.sqrt(d)
    return both[..., :d].contiguous().to(device), both[..., d].contiguous().to(device)


def _some_of_each(labels: Labels, seed: int) -> Tensor:
    """Return the numbers of all rows, or of about _MOST_ROWS in the proportions of the labels."""
    if len(labels) <= _MOST_ROWS:
        return torch.arange(len(labels), device=labels.codes.device)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed)).to(labels.codes.device)
    order = order[labels.codes[order].argsort(stable=True)]
    share = _MOST_ROWS / len(labels)
    parts: Iterator[Tensor] = iter(order.split(labels.sizes))
    return torch.cat([part[: max(2, round(share * len(part)))] for part in parts])
