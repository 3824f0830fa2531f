"""`Trainer`: train the vectors and classifiers of several seeds together, on all rows at every step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from isoscope.training.checkpoint import SeedState, Wanted
from isoscope.training.classifier import Classifier, layer_sizes
from isoscope.training.configuration import Configuration
from isoscope.training.objectives import classifier_loss, triplet_loss
from isoscope.training.problem import Problem

_OPTIMIZER = "optimizer."  # prefix of the optimiser's tensors in a checkpoint


class Trainer:
    """Trains B seeds in step: one (B, n, d) tensor of vectors (the table), B classifiers, one optimiser.

    The optimisers are elementwise and the losses are summed, so a seed in a batch is trained as it would be
    alone, up to rounding.
    """

    def __init__(self, problem: Problem, configuration: Configuration, seeds: Sequence[int]) -> None:
        self.problem = problem
        self.configuration = configuration
        self.seeds = list(seeds)
        self.step = 0
        self.table = problem.table.repeat(len(self.seeds), 1, 1)
        self.classifier = Classifier.of(problem, configuration, self.seeds)
        self._parameters = {"table": self.table, **self.classifier.parameters}
        for parameter in self._parameters.values():
            parameter.requires_grad_()
        self._optimizer = configuration.make_optimizer(list(self._parameters.values()))

    def forward(self) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Return (B,) losses with their autograd graph, (B,) accuracies and (B, m, width) hidden layers."""
        hidden, scores = self.classifier(self.table, self.problem)
        if scores is not None:
            losses, accuracies = classifier_loss(scores, self.problem)
        else:
            points = hidden[-1] if hidden else self.problem.items(self.table)
            losses, accuracies = triplet_loss(
                points,
                self.problem.clusters,
                n_triplets=self.configuration.n_triplets,
                seeds=self.seeds,
                step=self.step,
            )
        return losses, accuracies, [layer.detach() for layer in hidden]

    def update(self, losses: Tensor) -> None:
        """Take one step of the optimiser."""
        self._optimizer.zero_grad(set_to_none=True)
        losses.sum().backward()
        self._optimizer.step()
        self.step += 1

    def states(self, *, done: Collection[int] = ()) -> dict[int, SeedState]:
        """Return the state of each seed; that of a finished seed has only its parameters."""
        states = {}
        for b, seed in enumerate(self.seeds):
            tensors = {name: parameter[b] for name, parameter in self._parameters.items()}
            if seed not in done:
                tensors |= {
                    f"{_OPTIMIZER}{name}.{key}": value[b] if value.ndim else value
                    for name, parameter in self._parameters.items()
                    for key, value in self._optimizer.state[parameter].items()
                    if isinstance(value, Tensor)
                }
            states[seed] = SeedState(tensors, self.step, seed in done)
        return states

    def restore(self, states: Sequence[SeedState]) -> None:
        """Restore the states of all seeds, which are at the same step and in the order of `seeds`."""
        self.step = states[0].step
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(torch.stack([state.tensors[name] for state in states]))
                state_of: dict[str, Tensor] = {}
                for key in states[0].tensors:
                    if key.startswith(f"{_OPTIMIZER}{name}."):
                        parts = [state.tensors[key] for state in states]
                        whole = torch.stack(parts) if parts[0].ndim else parts[0].clone()
                        # a scalar is the step counter, which stays on the CPU unless the optimiser is fused
                        here = whole.ndim > 0 or self.configuration.fused
                        short = key.removeprefix(f"{_OPTIMIZER}{name}.")
                        state_of[short] = whole.to(parameter.device if here else "cpu")
                if state_of:
                    self._optimizer.state[parameter] = state_of


def wanted_state(problem: Problem, configuration: Configuration) -> Wanted:
    """Return the names and shapes of the tensors of a seed's state."""
    shapes: dict[str, tuple[int, ...]] = {"table": tuple(problem.table.shape)}
    for layer, (n_in, n_out) in enumerate(pairwise(layer_sizes(problem, configuration))):
        shapes[f"weight{layer}"] = (n_out, n_in)
        if configuration.bias:
            shapes[f"bias{layer}"] = (n_out,)
    optimizer = {
        f"{_OPTIMIZER}{name}.{key}": shape if as_large else ()
        for name, shape in shapes.items()
        for key, as_large in configuration.optimizer_tensors().items()
    }
    return Wanted(shapes, optimizer, configuration.steps)
