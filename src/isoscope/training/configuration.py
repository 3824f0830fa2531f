"""`Configuration`: how a run trains and what it measures, checked once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from isoscope.errors import InputError, check_choice, check_positive, check_seed, check_whole
from isoscope.metrics.registry import KNOWN, choose, named

OBJECTIVES = ("classifier", "triplet")
ACTIVATIONS = {
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
# each moves every number by its own gradient alone, so that seeds trained as one batch do not meet
OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "nadam": torch.optim.NAdam,
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
}
_MAX_SEEDS = 10_000
# what is drawn at an update, and the numbers that tell one use from another: changing them changes results
USES = {"sample": (1,), "triplets": (3,), "metrics": tuple(b"metrics")}
_FUSED = ("adam", "adamw")
_WITH_BETAS = ("adam", "adamw", "nadam")


@dataclass(frozen=True)
class Configuration:
    """The settings of a run; `train_embeddings` describes each."""

    steps: int = 1000
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    every: int = 1
    metrics: tuple[str, ...] = ("isoscore", "silhouette")
    objective: str = "classifier"
    n_triplets: int | None = None
    bias: bool = True
    hidden: tuple[int, ...] = ()
    activation: str = "relu"
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    sample_above: int | None = 20_000
    sample_table: bool = False
    silhouette_tolerance: float | None = None
    patience: int | None = None
    min_improvement: float = 0.0
    target_accuracy: float | None = None

    def __post_init__(self) -> None:
        self._check_counts()
        self._check_choices()
        check_positive("learning_rate", self.learning_rate)
        if self.silhouette_tolerance is not None:
            check_positive("silhouette_tolerance", self.silhouette_tolerance)
        if self.target_accuracy is not None and not 0 < self.target_accuracy <= 1:
            raise InputError(
                argument="target_accuracy", got=self.target_accuracy, wanted="a share over 0, at most 1"
            )
        check_positive("min_improvement", self.min_improvement, or_zero=True)

    def _check_counts(self) -> None:
        for name in ("steps", "every", "n_triplets", "sample_above", "patience"):
            value = getattr(self, name)
            if value is not None or name in ("steps", "every"):
                check_whole(name, value)
        for width in self.hidden:
            check_whole("hidden", width)
        for seed in self.seeds:
            check_seed(seed)
        if len(set(self.seeds)) != len(self.seeds):
            raise InputError(f"has {list(self.seeds)}; wanted each seed once", argument="seeds")

    def _check_choices(self) -> None:
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        if self.n_triplets is not None and self.objective != "triplet":
            raise InputError("n_triplets goes with objective='triplet'; leave it out")
        if self.silhouette_tolerance is not None and "silhouette" not in self.metrics:
            raise InputError("silhouette_tolerance goes with the metric 'silhouette'; add it to metrics")

    @property
    def stops_early(self) -> bool:
        """Whether a seed may end before its last step."""
        return self.patience is not None or self.target_accuracy is not None

    @property
    def fused(self) -> bool:
        """Whether the optimiser takes one pass over memory, and counts its steps on the device."""
        return self.optimizer in _FUSED

    def measured_steps(self) -> list[int]:
        """The updates after which metrics are taken: 0, every k-th, and the last."""
        return sorted({*range(0, self.steps + 1, self.every), self.steps})

    def make_optimizer(self, parameters: Sequence[torch.Tensor]) -> torch.optim.Optimizer:
        """The optimiser over parameters of any number of seeds."""
        options: dict[str, Any] = {"lr": self.learning_rate}
        if self.optimizer in _WITH_BETAS:
            options["betas"] = self.betas
        if self.fused:
            options["fused"] = True
        return OPTIMIZERS[self.optimizer](parameters, **options)

    def optimizer_tensors(self) -> dict[str, bool]:
        """What the optimiser keeps of each parameter, and whether it is as large or one number."""
        probe = torch.zeros(1, requires_grad=True)
        probe.grad = torch.zeros(1)
        optimizer = self.make_optimizer([probe])
        optimizer.step()
        return {
            key: value.ndim > 0
            for key, value in optimizer.state[probe].items()
            if isinstance(value, torch.Tensor)
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: tuples as lists."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }


def as_seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """A number of seeds 0 … n−1, or the seeds themselves."""
    if isinstance(seeds, Iterable):
        listed = tuple(seeds)
        if not listed:
            raise InputError("is empty; wanted at least one seed, or how many", argument="seeds")
        return listed
    if check_whole("seeds", seeds) > _MAX_SEEDS:
        raise InputError(
            argument="seeds", got=seeds, wanted=f"at most {_MAX_SEEDS:,}, or the seeds themselves"
        )
    return tuple(range(seeds))


def derived_seed(seed: int, step: int, use: str) -> np.random.SeedSequence:
    """A source of its own for each seed, step and use (a key of USES): what one draws, no other does."""
    return np.random.SeedSequence([seed, step, *USES[use]])


def as_betas(betas: Sequence[float]) -> tuple[float, float]:
    """Two numbers from 0 up to 1."""
    listed = tuple(betas) if isinstance(betas, Sequence) else ()
    if len(listed) != 2 or not all(isinstance(beta, int | float) and 0 <= beta < 1 for beta in listed):
        raise InputError(f"betas is {betas!r}; wanted two numbers from 0 up to 1")
    return listed[0], listed[1]


def as_metrics(metrics: str | Iterable[str]) -> tuple[str, ...]:
    """Registered names from names and families, in the order asked; what rows cannot know is refused."""
    asked = named(metrics)
    found: dict[str, None] = {}
    for part in asked:
        for metric in choose(part):
            missing = [known for known in KNOWN if known in metric.needs and known != "labels"]
            if not missing:
                found[metric.name] = None
            elif metric.name == part:
                raise InputError(
                    f"metrics: {part} needs {missing[0]}, which a training run has not: leave it out"
                )
    if not found:
        raise InputError(f"metrics: nothing in {', '.join(asked)} can be measured on vectors and labels")
    return tuple(found)
