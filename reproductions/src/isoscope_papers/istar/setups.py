"""Rudman and Eickhoff 2024, *Stable Anisotropic Regularization*: the estimators, the tasks and the strengths.

    isoscope reproduce istar --setup rte,mrpc --device cuda -o results

fine-tunes a model with λ·(1 − IsoScore*) added to its loss, for every λ, task and seed. The paper's models
are BERT, DistilBERT and ALBERT; a small encoder is the default, on which the claims are tested in direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from isoscope.errors import InputError

MODEL = "all-MiniLM-L6-v2"
PAPER_STRENGTHS = (-5.0, -3.0, -1.0, 0.5, 1.0, 3.0, 5.0)  # figure 5
PAPER_ZETA = 0.2
NONE = "none"  # the regulariser of λ = 0, whichever it would be
# smaller ones beside the paper's: what a small encoder bears is not what BERT bears
STRENGTHS = {
    "istar": tuple(sorted({*PAPER_STRENGTHS, -0.3, -0.1, -0.03, -0.01, 0.01, 0.03, 0.1, 0.3})),
    "cosreg": (-1.0, 0.1, 1.0),
    "istar-debiased": (-1.0, -0.1, 0.1, 1.0),
}


@dataclass(frozen=True)
class Setup:
    """The estimators, or a task to fine-tune on.

    Attributes:
        name: on the command line, and of the task as `load_task` has it.
        title: in figures and tables.
        commonest: how many texts of the dev set have its commonest label, and how many it has.
        max_train: train on at most so many texts, drawn once; None is all.
    """

    name: str
    title: str
    commonest: tuple[int, int] | None = None
    max_train: int | None = None


ESTIMATORS = "estimators"
TASKS = {
    setup.name: setup
    for setup in (
        Setup("rte", "RTE", (146, 277)),
        Setup("mrpc", "MRPC", (279, 408)),
        Setup("cola", "CoLA", (721, 1043)),
        Setup("sst2", "SST-2", (444, 872), max_train=10_000),
    )
}
SETUPS = {ESTIMATORS: Setup(ESTIMATORS, "Estimates from mini-batches"), **TASKS}


@dataclass(frozen=True)
class Settings:
    """How every run of a sweep is trained: the paper's settings but for the model and its learning rate.

    The paper takes 1e-5 for models of 110 million parameters. One of 22 million needs more: on CoLA, without
    a penalty, Matthews' correlation after each of three epochs was 0, 0.24, 0.30 at 2e-5 and 0.16, 0.24, 0.32
    at 5e-5 (one seed).
    """

    model: str = MODEL
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 5e-5
    max_length: int = 256
    zeta: float = PAPER_ZETA
    max_train: int | None = None

    @property
    def title(self) -> str:
        """Return the model's name without its folder."""
        return Path(self.model).name


@dataclass(frozen=True)
class Point:
    """One run of a sweep: a task, a regulariser with its strength λ, a seed."""

    task: str
    regularizer: str
    strength: float
    seed: int

    def stem(self, model: str) -> str:
        """Return the name of its file; models other than the usual one are named.

        >>> Point("rte", "istar", -0.1, 2).stem(MODEL)
        'istar-rte-istar--0.1-2'
        """
        named = "" if model == MODEL else f"-{Path(model).name}"
        return f"istar-{self.task}-{self.regularizer}-{self.strength:g}-{self.seed}{named}"


def chosen_strengths(regularizers: str | None, strengths: str | None) -> dict[str, tuple[float, ...]]:
    """Return the strengths of each regulariser without 0, which has a run of its own.

    Strengths without regularisers are those of I-STAR; regularisers without strengths have their usual ones.

    >>> chosen_strengths(None, "1, -0.03")
    {'istar': (-0.03, 1.0)}
    """
    named = list(STRENGTHS) if strengths is None else ["istar"]
    if regularizers is not None:
        named = [name.strip() for name in regularizers.split(",")]
    unknown = [name for name in named if name not in STRENGTHS]
    if unknown:
        raise InputError(argument="regularizers", got=unknown[0], wanted=f"some of {', '.join(STRENGTHS)}")
    if strengths is None:
        return {name: STRENGTHS[name] for name in named}
    try:
        numbers = [float(part) for part in strengths.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise InputError(
            argument="strengths",
            got=strengths,
            wanted="finite numbers with commas between them, such as -1,-0.1,0.1,1",
        )
    return dict.fromkeys(named, tuple(sorted({value for value in numbers if value})))


def points(task: str, strengths: Mapping[str, tuple[float, ...]], seeds: Iterable[int]) -> list[Point]:
    """Return the runs of a task seed by seed, so that a sweep cut short has whole seeds; λ = 0 first."""
    return [
        Point(task, name, strength, seed)
        for seed in seeds
        for name, values in ({NONE: (0.0,)} | dict(strengths)).items()
        for strength in values
    ]
