"""Xiao, Long and Al Moubayed 2023, section 4 and appendices A, B and D: what is trained, and on what.

    isoscope reproduce dynamics --setup masked --data data -o results

trains one small masked model, then from it one sentence encoder for each temperature, batch size and pooling
of the paper, and follows the geometry of the last layer. The paper trains mpnet-base on 314,000 entailment
pairs for 4,912 updates, with a checkpoint every 200; learning rate, warm-up and length are not disclosed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isoscope.errors import InputError

PAIRS = "nli"  # the entailment of SNLI's dev and test and MNLI's dev
TEMPERATURES = (0.001, 0.01, 0.025, 0.05, 0.1, 1.0)
CLOSE = (0.025, 0.05, 0.1)  # those of section 4; appendix A has the powers of ten
BATCHES = (16, 64, 256)
BASE_TEMPERATURE, BASE_BATCH, BASE_POOLING = 0.05, 64, "mean"
BASE = "tau=0.05"
EPOCHS = 3
EVERY = 20  # updates between measurements with batches of 64; with others, as many pairs
MAX_LENGTH = 64
WARMUP = 0.1
MASKED_STEPS = 4000  # updates of the masked model
PRECISIONS = ("float32", "tf32", "bf16")


@dataclass(frozen=True)
class Start:
    """A model that training begins from."""

    name: str
    title: str
    model: str | None  # what is loaded; None where the command trains it first
    learning_rate: float
    poolings: tuple[str, ...] = ("mean", "cls", "max")  # that of the base run, that of [CLS], and the maximum
    note: str = ""


@dataclass(frozen=True)
class Setup:
    """One run: where it begins, and what is set otherwise than in the base run."""

    start: Start
    variant: str
    temperature: float = BASE_TEMPERATURE
    batch_size: int = BASE_BATCH
    pooling: str = BASE_POOLING

    @property
    def name(self) -> str:
        """Return the name it has on the command line."""
        return f"{self.start.name}:{self.variant}"

    @property
    def every(self) -> int:
        """Return the updates between measurements, as many pairs for every batch size."""
        return max(1, EVERY * BASE_BATCH // self.batch_size)


_DECLARED = (
    Start(
        "masked", "masked LM", None, 2e-4,
        note="a BERT of 4 layers and 256 dimensions, which this command trains on WikiText-2 with the "
        "tokenizer of MiniLM before anything else",
    ),
    Start(
        "smollm2", "SmolLM2", "smollm2-135m", 5e-5, ("mean", "lasttoken", "max"),
        note="a causal model: its first token sees no other, so that [CLS] pooling means nothing, and the "
        "last token takes its part; its attention sinks are left out in the second view",
    ),
)  # fmt: skip
STARTS: dict[str, Start] = {start.name: start for start in _DECLARED}
OWN_RATE = 2e-5  # learning rate for a model of the user's


def variants(start: Start) -> list[Setup]:
    """Return all runs from one start: each temperature, batch size and pooling; the base run is in all three.

    >>> [setup.variant for setup in variants(STARTS["masked"])][-4:]
    ['batch=16', 'batch=256', 'pooling=cls', 'pooling=max']
    """
    found = [Setup(start, f"tau={tau:g}", temperature=tau) for tau in TEMPERATURES]
    found += [Setup(start, f"batch={n}", batch_size=n) for n in BATCHES if n != BASE_BATCH]
    found += [Setup(start, f"pooling={how}", pooling=how) for how in start.poolings if how != BASE_POOLING]
    return found


SETUPS = {setup.name: setup for start in _DECLARED for setup in variants(start)}


def chosen_runs(names: Sequence[str], model: str | None = None) -> list[Setup]:
    """Return the runs with these names: `masked` all of one start, `masked:tau=0.1` one, or `all`.

    With a model of one's own, names are those of its runs: `tau=0.1`.

    >>> [setup.name for setup in chosen_runs(["smollm2:batch=16", "masked:tau=1"])]
    ['masked:tau=1', 'smollm2:batch=16']
    >>> chosen_runs(["tau=0.05"], "microsoft/mpnet-base")[0].name
    'mpnet-base:tau=0.05'
    """
    setups = list(SETUPS.values())
    if model is not None:
        own = Start(Path(model).name, Path(model).name, model, OWN_RATE)
        setups = variants(next((start for start in _DECLARED if start.model == model), own))

    def named(setup: Setup) -> set[str]:
        return {"all", setup.name, setup.start.name} | ({setup.variant} if model is not None else set())

    unknown = [name for name in names if not any(name in named(setup) for setup in setups)]
    if unknown:
        starts = ", ".join(dict.fromkeys(setup.start.name for setup in setups))
        raise InputError(
            argument="setup",
            got=unknown[0],
            wanted=f"all, {starts}, or one run of it such as "
            f"{setups[0].name}: {', '.join(setup.variant for setup in variants(setups[0].start))}",
        )
    return [setup for setup in setups if named(setup) & set(names)]
