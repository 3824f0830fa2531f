"""Optimise several copies of a labelled space at once, each for its own mix of two objectives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isoscope.labels import Labels

OBJECTIVES = ("isoscore", "silhouette", "between_share", "cross_entropy", "accuracy")
_TRAINED = ("cross_entropy", "accuracy")  # accuracy has no gradient: cross-entropy is optimised in its place
_NOISE = 1e-3  # standard deviations: a direction without variance has no gradient, and would never get any
_TINY = 1e-24  # a squared distance under this has no direction


class Problems:
    """Copies of (n, d) rows, each with its own mix of two objectives."""

    def __init__(
        self, rows: Tensor, labels: Labels, objectives: tuple[str, str], weight_decay: float, seed: int = 0
    ) -> None:
        self.rows, self.labels, self.objectives = rows, labels, objectives
        self.weight_decay, self.seed = weight_decay, seed
        self.members = torch.nn.functional.one_hot(labels.codes, labels.n_labels).to(rows)  # (n, K)
        self.counts = self.members.sum(dim=0)

    def optimised(
        self, weights: Tensor, goal: Callable[[Tensor], Tensor], *, steps: int, learning_rate: float,
        share: Callable[[float], None],
    ) -> Tensor:  # fmt: skip
        """Return (B, n, d) copies that minimise `goal` of their (B, 2) objectives."""
        noise = torch.randn(
            self.rows.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(self.seed)
        )
        start = self.rows + _NOISE * noise.to(self.rows)
        Z = start.expand(len(weights), -1, -1).clone().requires_grad_()
        C = torch.zeros(len(weights), self.labels.n_labels, Z.shape[2] + 1, dtype=Z.dtype, device=Z.device)
        C.requires_grad_()
        adam = torch.optim.Adam([Z, C], lr=learning_rate)
        rate = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
        for step in range(steps):
            share(step / steps)
            adam.zero_grad()
            goal(self._values(Z, C)).sum().backward()
            adam.step()
            rate.step()
        return Z.detach()

    def values(self, spaces: Tensor) -> Tensor:
        """Return the (B, 2) objectives of (B, n, d) spaces, after fitting classifiers where needed."""
        if not set(self.objectives) & set(_TRAINED):
            return self._values(spaces, None).detach()
        C = torch.zeros(
            len(spaces), self.labels.n_labels, spaces.shape[2] + 1, dtype=spaces.dtype, device=spaces.device
        )
        C.requires_grad_()
        solver = torch.optim.LBFGS([C], max_iter=200, line_search_fn="strong_wolfe")

        def closure() -> Any:
            solver.zero_grad()
            loss = -self._cross_entropy(_scaled(spaces), C).sum()
            loss.backward()
            return loss

        solver.step(closure)
        return self._values(spaces, C).detach()

    def _values(self, Z: Tensor, C: Tensor | None) -> Tensor:
        scaled = _scaled(Z)
        gram = scaled @ scaled.mT
        values: dict[str, Tensor] = {}
        for name in self.objectives:
            if name == "isoscore":
                values[name] = _isoscore(scaled, gram)
            elif name == "silhouette":
                values[name] = self._silhouette(gram)
            elif name == "between_share":
                means = self.members.T @ scaled / self.counts[:, None]
                values[name] = (self.counts[:, None] * means.square()).sum(dim=(1, 2)) / scaled[0].numel()
            else:
                assert C is not None
                values[name] = self._cross_entropy(scaled, C)
        return torch.stack([values[name] for name in self.objectives], dim=1)

    def _silhouette(self, gram: Tensor) -> Tensor:
        """Return (B,) mean silhouettes from (B, n, n) products, with gradients almost everywhere."""
        squares = gram.diagonal(dim1=1, dim2=2)
        squared = squares[:, :, None] + squares[:, None] - 2 * gram
        sums = squared.clamp(min=_TINY).sqrt() @ self.members  # (B, n, K)
        own = self.members.bool()
        within = (sums * self.members).sum(dim=2) / (self.counts - 1).clamp(min=1)[self.labels.codes]
        nearest = (sums / self.counts).masked_fill(own, math.inf).amin(dim=2)
        scores = (nearest - within) / torch.maximum(nearest, within)
        return (scores * (self.counts > 1)[self.labels.codes]).mean(dim=1)

    def _cross_entropy(self, scaled: Tensor, C: Tensor) -> Tensor:
        """Return (B,) 1 minus the penalised cross-entropy divided by log K: 0 for uniform scores."""
        scores = scaled @ C[:, :, :-1].mT + C[:, None, :, -1]
        own = scores.log_softmax(dim=2)[:, torch.arange(len(self.labels)), self.labels.codes]
        penalty = self.weight_decay / 2 * C[:, :, :-1].square().sum(dim=(1, 2))
        return 1 + (own.mean(dim=1) - penalty) / math.log(self.labels.n_labels)


def _scaled(Z: Tensor) -> Tensor:
    centred = Z - Z.mean(dim=1, keepdim=True)
    return centred / centred.square().mean(dim=(1, 2), keepdim=True).sqrt()


def _isoscore(scaled: Tensor, gram: Tensor) -> Tensor:
    n, d = scaled.shape[1:]
    smaller = gram if n < d else scaled.mT @ scaled
    return ((n * d) ** 2 / smaller.square().sum(dim=(1, 2)) - 1) / (d - 1)
