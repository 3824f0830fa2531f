"""`Configuration`: the checked settings of `train_embeddings`."""

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
# elementwise optimisers, so that seeds trained as one batch do not affect each other
OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "nadam": torch.optim.NAdam,
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
}
_MAX_SEEDS = 10_000
# the uses of random numbers at an update, and what seeds them; changing these numbers changes results
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
                argument="target_accuracy", got=self.target_accuracy, wanted="above 0 and at most 1"
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
            raise InputError(argument="seeds", got=list(self.seeds), wanted="different from each other")

    def _check_choices(self) -> None:
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        if self.n_triplets is not None and self.objective != "triplet":
            raise InputError("needs objective='triplet'", argument="n_triplets", hint="omit it")
        if self.silhouette_tolerance is not None and "silhouette" not in self.metrics:
            raise InputError(
                "needs the metric 'silhouette'", argument="silhouette_tolerance", hint="add it to metrics"
            )

    @property
    def stops_early(self) -> bool:
        """Whether a seed may end before its last step."""
        return self.patience is not None or self.target_accuracy is not None

    @property
    def fused(self) -> bool:
        """Whether the optimiser is fused, and counts its steps on the device."""
        return self.optimizer in _FUSED

    def measured_steps(self) -> list[int]:
        """Return the updates after which metrics are computed: 0, every k-th, and the last."""
        return sorted({*range(0, self.steps + 1, self.every), self.steps})

    def make_optimizer(self, parameters: Sequence[torch.Tensor]) -> torch.optim.Optimizer:
        """Return the optimiser of the parameters of any number of seeds."""
        options: dict[str, Any] = {"lr": self.learning_rate}
        if self.optimizer in _WITH_BETAS:
            options["betas"] = self.betas
        if self.fused:
            options["fused"] = True
        return OPTIMIZERS[self.optimizer](parameters, **options)

    def optimizer_tensors(self) -> dict[str, bool]:
        """Return the names of the optimiser's state of a parameter, and whether each has its shape."""
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
        """Return JSON-ready values, with lists in place of tuples."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }


def as_seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Return the seeds 0 … n−1, or the given seeds."""
    if isinstance(seeds, Iterable):
        listed = tuple(seeds)
        if not listed:
            raise InputError(argument="seeds", got=listed, wanted="a number of seeds, or at least one seed")
        return listed
    if check_whole("seeds", seeds) > _MAX_SEEDS:
        raise InputError(
            argument="seeds", got=seeds, wanted=f"at most {_MAX_SEEDS:,}, or the seeds themselves"
        )
    return tuple(range(seeds))


def derived_seed(seed: int, step: int, use: str) -> np.random.SeedSequence:
    """Return an independent seed sequence for each seed, step and use (a key of USES)."""
    return np.random.SeedSequence([seed, step, *USES[use]])


def as_betas(betas: Sequence[float]) -> tuple[float, float]:
    """Return two numbers, each at least 0 and below 1."""
    listed = tuple(betas) if isinstance(betas, Sequence) else ()
    if len(listed) != 2 or not all(isinstance(beta, int | float) and 0 <= beta < 1 for beta in listed):
        raise InputError(argument="betas", got=betas, wanted="two numbers, each at least 0 and below 1")
    return listed[0], listed[1]


def as_metrics(metrics: str | Iterable[str]) -> tuple[str, ...]:
    """Return the registered names of metrics and families, in order; refuse those a run cannot compute."""
    parts = named(metrics)
    names: dict[str, None] = {}
    for part in parts:
        for metric in choose(part):
            missing = [known for known in KNOWN if known in metric.needs and known != "labels"]
            if not missing:
                names[metric.name] = None
            elif metric.name == part:
                raise InputError(
                    f"has {part}, which needs {missing[0]}; a training run has none",
                    argument="metrics",
                    hint="omit it",
                )
    if not names:
        raise InputError(
            f"has nothing that vectors and labels suffice for: {', '.join(parts)}", argument="metrics"
        )
    return tuple(names)
