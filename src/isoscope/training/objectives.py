"""The losses of `train_embeddings`: cross-entropy, binary cross-entropy per label, and the triplet loss."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from isoscope.labels import Labels
from isoscope.metrics.objectives import triplet_excess
from isoscope.training.configuration import derived_seed
from isoscope.training.problem import Problem

_BLOCK_NUMBERS = 2**24  # distances computed at a time


def classifier_loss(scores: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
    """Return the (B,) mean loss and (B,) accuracy of (B, m, L) scores.

    With one label per item, the loss is cross-entropy, and the accuracy is the share of items whose label
    has the highest score. With sets of labels, the loss is the mean binary cross-entropy over items and
    labels, and the accuracy is the share of items for which exactly their labels have scores above 0.
    """
    B, m, n_labels = scores.shape
    if problem.indicator is None:
        codes = problem.clusters.codes
        losses = functional.cross_entropy(
            scores.reshape(B * m, n_labels), codes.repeat(B), reduction="none"
        ).view(B, m)
        right = scores.detach().argmax(dim=-1) == codes
        return losses.mean(dim=1), right.double().mean(dim=1)
    target = problem.indicator.expand(B, m, n_labels)
    losses = functional.binary_cross_entropy_with_logits(scores, target, reduction="none")
    right = ((scores.detach() > 0) == (target > 0)).all(dim=-1)
    return losses.mean(dim=(1, 2)), right.double().mean(dim=1)


def triplet_loss(
    points: Tensor, labels: Labels, *, n_triplets: int | None, seeds: list[int], step: int
) -> tuple[Tensor, Tensor]:
    """Return the (B,) mean triplet loss and (B,) share of satisfied triplets of (B, m, d) points.

        max(‖a − p‖ − ‖a − q‖, 0)   over anchors a, p of the same label, q of another

    There is no margin, as in appendix B of Mickus et al. 2024. All triplets are used (the distances of each
    anchor are sorted once), or `n_triplets` new ones for each seed and step.
    """
    if n_triplets is None:
        parts = [_all_triplets(own, labels) for own in points]
    else:
        parts = [
            _some_triplets(own, _drawn(labels, n_triplets, seed, step).to(own.device))
            for own, seed in zip(points, seeds, strict=True)
        ]
    losses, right = zip(*parts, strict=True)
    return torch.stack(losses), torch.stack(right)


def _all_triplets(points: Tensor, labels: Labels) -> tuple[Tensor, Tensor]:
    order = torch.argsort(labels.codes, stable=True)
    placed = points[order] - points.detach().mean(dim=0)  # near the origin products cancel less
    total, violated = points.new_zeros(()), points.new_zeros((), dtype=torch.float64)
    n_triplets = start = 0
    for count in labels.counts.tolist():
        stop = start + count
        n_rows = max(1, _BLOCK_NUMBERS // len(placed))
        for first in range(start, stop, n_rows):
            last = min(first + n_rows, stop)
            distances = torch.cdist(placed[first:last], placed)
            own = distances[:, start:stop]
            others = torch.cat([distances[:, :start], distances[:, stop:]], dim=1)
            excess, nearer = triplet_excess(own, others)
            total = total + excess.sum()
            violated = violated + nearer.sum()
        n_triplets += count * (count - 1) * (len(placed) - count)
        start = stop
    return total / n_triplets, 1 - violated / n_triplets


def _some_triplets(points: Tensor, triplets: Tensor) -> tuple[Tensor, Tensor]:
    anchor, same, other = points[triplets]
    own = torch.linalg.vector_norm(anchor - same, dim=1)
    far = torch.linalg.vector_norm(anchor - other, dim=1)
    excess = own - far
    return excess.clamp(min=0).mean(), (excess.detach() <= 0).double().mean()


def _drawn(labels: Labels, n_triplets: int, seed: int, step: int) -> Tensor:
    """Draw (3, t) anchors, points of the same label, and points of other labels, uniformly over triplets."""
    rng = np.random.default_rng(derived_seed(seed, step, "triplets"))
    order = torch.argsort(labels.codes, stable=True).cpu().numpy()
    counts = labels.counts.cpu().numpy().astype(np.float64)
    n = len(order)
    n_of_label = counts * (counts - 1) * (n - counts)
    label = rng.choice(len(counts), size=n_triplets, p=n_of_label / n_of_label.sum())
    size = counts[label].astype(np.int64)
    start = (np.cumsum(counts) - counts).astype(np.int64)[label]
    anchor = rng.integers(0, size)
    same = (anchor + rng.integers(1, size)) % size
    outside = rng.integers(0, n - size)
    other = outside + size * (outside >= start)
    return torch.from_numpy(np.stack([order[start + anchor], order[start + same], order[other]]))
