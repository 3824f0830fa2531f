"""The classifiers of several seeds in one tensor, initialised as torch initialises nn.Linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from isoscope.training.configuration import ACTIVATIONS, Configuration
from isoscope.training.problem import Problem


@dataclass(frozen=True, eq=False)
class Classifier:
    """Linear layers with an activation between them; one layer is the linear classifier.

    Attributes:
        weights: (B, out, in) weights of each layer.
        biases: (B, out) bias of each layer; empty for a classifier without bias.
        activation: the function between layers; see ACTIVATIONS.
        scored: whether the last layer returns scores; otherwise every layer ends in the activation.
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    activation: str
    scored: bool

    @classmethod
    def of(cls, problem: Problem, configuration: Configuration, seeds: Sequence[int]) -> Classifier:
        """Return what nn.Linear draws for each seed after torch.manual_seed(seed), layer by layer.

        It is drawn on the CPU for every device, and the caller's random state does not change.
        """
        sizes = layer_sizes(problem, configuration)
        weights: list[list[Tensor]] = [[] for _ in sizes[1:]]
        biases: list[list[Tensor]] = [[] for _ in sizes[1:]] if configuration.bias else []
        with torch.random.fork_rng(devices=[]):
            for seed in seeds:
                torch.manual_seed(seed)
                for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
                    linear = torch.nn.Linear(
                        n_in, n_out, bias=configuration.bias, dtype=problem.table.dtype, device="cpu"
                    )
                    weights[layer].append(linear.weight.detach())
                    if configuration.bias:
                        biases[layer].append(linear.bias.detach())
        device = problem.table.device
        return cls(
            tuple(torch.stack(layer).to(device) for layer in weights),
            tuple(torch.stack(layer).to(device) for layer in biases),
            configuration.activation,
            configuration.objective == "classifier",
        )

    @property
    def parameters(self) -> dict[str, Tensor]:
        """All trained tensors, by name."""
        named = {f"weight{layer}": tensor for layer, tensor in enumerate(self.weights)}
        return named | {f"bias{layer}": tensor for layer, tensor in enumerate(self.biases)}

    def __call__(self, table: Tensor, problem: Problem) -> tuple[list[Tensor], Tensor | None]:
        """Return the hidden activations (B, m, width) and scores (B, m, L) of a table (B, n, d)."""
        hidden: list[Tensor] = []
        last = len(self.weights) - 1
        for layer, weight in enumerate(self.weights):
            values = hidden[-1] @ weight.mT if layer else _of_items(table, weight, problem)
            if self.biases:
                values = values + self.biases[layer][:, None]
            if self.scored and layer == last:
                return hidden, values
            hidden.append(ACTIVATIONS[self.activation](values))
        return hidden, None


def _of_items(table: Tensor, weight: Tensor, problem: Problem) -> Tensor:
    """Return the (B, m, out) products of the items with the first layer, without concatenating the items.

    A weight for c concatenated rows is c weights, one per row. Every row of the table is multiplied by all
    of them once, and an item is the sum of the products of its rows.
    """
    if problem.pairs is None:
        return table @ weight.mT
    B, n, d = table.shape
    n_out, c = weight.shape[1], problem.n_columns
    each = weight.view(B, n_out, c, d).transpose(1, 2).reshape(B, c * n_out, d)
    products = (table @ each.mT).view(B, n, c, n_out)
    return _PairSums.apply(products, problem.pairs)  # type: ignore[no-untyped-call]


class _PairSums(torch.autograd.Function):
    """Sums (B, m, out) over columns j of products[:, pairs[:, j], j], with a deterministic gradient."""

    @staticmethod
    def forward(context: Any, products: Tensor, pairs: Tensor) -> Tensor:
        context.save_for_backward(pairs)
        context.n_rows = products.shape[1]
        total = products[:, pairs[:, 0], 0]
        for column in range(1, pairs.shape[1]):
            total = total + products[:, pairs[:, column], column]
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (pairs,) = context.saved_tensors
        by_item = gradients[0].transpose(0, 1).contiguous()
        columns = [_row_sums(by_item, pairs[:, column], context.n_rows) for column in range(pairs.shape[1])]
        return torch.stack(columns, dim=1).permute(2, 0, 1, 3), None


def _row_sums(values: Tensor, rows: Tensor, n_rows: int) -> Tensor:
    """Return (n, …) sums of (m, …) values by row, always added in the same order."""
    if values.device.type == "cpu":
        return values.new_zeros(n_rows, *values.shape[1:]).index_add_(0, rows, values)
    return _sorted_sums(values, rows, n_rows)


def _sorted_sums(values: Tensor, rows: Tensor, n_rows: int) -> Tensor:
    """Return the sums on a device, where index_add_ would add in any order."""
    order = rows.argsort(stable=True)
    counts = torch.zeros(n_rows, dtype=torch.int64, device=rows.device)
    counts.scatter_add_(0, rows, torch.ones_like(rows))
    return torch.segment_reduce(values[order], "sum", lengths=counts, axis=0, unsafe=True)


def layer_sizes(problem: Problem, configuration: Configuration) -> list[int]:
    """Return the widths of the input, the hidden layers and the scores."""
    scores = [len(problem.label_names)] if configuration.objective == "classifier" else []
    return [problem.n_inputs, *configuration.hidden, *scores]


def n_parameters(problem: Problem, configuration: Configuration) -> int:
    """Return the number of parameters of one seed: n·d of the table, plus those of the classifier."""
    sizes = pairwise(layer_sizes(problem, configuration))
    return problem.table.numel() + sum((n_in + configuration.bias) * n_out for n_in, n_out in sizes)
