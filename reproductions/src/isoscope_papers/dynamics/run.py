"""Train a sentence encoder as one setup of the paper's section 4 says, follow its geometry, keep the run."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from isoscope.encoders.language_models import LanguageModel, load_language_model, load_tokenizer
from isoscope.encoders.models import resolve_model
from isoscope.errors import FileError, InputError
from isoscope.io.sealed import read_json, write_json
from isoscope.training.contrast import contrast
from isoscope.training.masked import MaskedLM, train_masked_lm
from isoscope.training.tracker import GeometryTracker
from isoscope_papers.contrastive.setups import SPLIT, TEXTS
from isoscope_papers.corpora import SimilarityPairs, Texts, load_pairs, load_similarity_pairs, load_texts
from isoscope_papers.dynamics.readings import layer_values, read_states, task_score, token_change
from isoscope_papers.dynamics.setups import (
    BASE,
    EPOCHS,
    MASKED_STEPS,
    MAX_LENGTH,
    PAIRS,
    PRECISIONS,
    WARMUP,
    Setup,
    Start,
)
from isoscope_papers.pages import make_folder

_PREFIX = "dynamics-"  # of the files that keep runs
METRICS = ("mean_cosine", "self_similarity", "intra_similarity")
_TOKENIZER = "all-MiniLM-L6-v2"  # whose words the masked model reads
# WikiText-2 as it was tokenised, to words as they are written
_WRITTEN = ((" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", "."))


@dataclass(frozen=True)
class Dynamics:
    """One run; everything is JSON-ready.

    Attributes:
        start, variant, title, model: what was trained, from where.
        temperature, batch_size, pooling, learning_rate, epochs, steps, seed, precision: how.
        n_pairs, n_sentences: on how many pairs, and followed on how many sentences.
        rows: by column, one value a measurement: step, loss (the mean since the one before), and the metrics
            of the last layer, with `_without_sinks` a second time, and sink_share.
        layers: "before" and "after": by metric, one value a layer; only of the base run.
        task: "before" and "after": Spearman's correlation of cosines with the scores of STS-B's test pairs.
        change: the self-similarity change by token; only of the base run.
        pretraining: of a masked model trained here, what it lost on held-out texts.
        seconds: how long it took.
    """

    start: str
    variant: str
    title: str
    model: str
    temperature: float
    batch_size: int
    pooling: str
    learning_rate: float
    epochs: int
    steps: int
    seed: int
    precision: str
    n_pairs: int
    n_sentences: int
    rows: dict[str, list[float | None]]
    layers: dict[str, dict[str, list[float | None]]]
    task: dict[str, float]
    change: dict[str, Any]
    pretraining: dict[str, Any]
    seconds: float


@dataclass
class Material:
    """What several runs share, each part loaded when the first asks for it.

    Attributes:
        output: folder for the masked model; kept with the process only where None.
        data: folder of the corpora; ISOSCOPE_DATA where not given.
        download: fetch what is not on this machine.
        device: where models compute.
        masked_options: other settings of `train_masked_lm` than the declared ones.
    """

    output: Path | None = None
    data: str | os.PathLike[str] | None = None
    download: bool = False
    device: str | None = None
    progress: bool | None = None
    masked_options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self._begun: dict[str, Begun] = {}

    @cached_property
    def pairs(self) -> Texts:
        """What is trained on."""
        return load_pairs(PAIRS, data=self.data, download=self.download)

    @cached_property
    def probe(self) -> tuple[str, ...]:
        """The sentences on which the geometry is followed."""
        return load_texts(TEXTS, split=SPLIT, data=self.data, download=self.download).columns[0]

    @cached_property
    def scored(self) -> SimilarityPairs:
        """What the encoder is scored on."""
        return load_similarity_pairs(TEXTS, data=self.data, download=self.download)

    def begin(self, start: Start) -> Begun:
        """The model a run begins from, loaded once."""
        if start.name not in self._begun:
            self._begun[start.name] = self._made(start)
        return self._begun[start.name]

    def _made(self, start: Start) -> Begun:
        if start.model is not None:
            loaded = load_language_model(start.model, device=self.device, download=self.download)
            return Begun(replace(loaded, tokenizer=load_tokenizer(loaded.path)), {})
        if self.output is None:
            raise InputError(f"{start.name} is trained first, and kept: pass --output with a folder for it")
        trained = self._masked_model(self.output / "models" / start.name)
        assert trained.model_folder is not None
        about = {
            "held_out_loss": trained.held_out_loss,
            "unigram_loss": trained.unigram_loss,
            **{
                name: trained.configuration[name]
                for name in ("steps", "batch_size", "window", "n_tokens", "n_layers", "n_dims")
            },
        }
        return Begun(load_language_model(trained.model_folder, device=self.device), about)

    def _masked_model(self, folder: Path) -> MaskedLM:
        if (folder / "result.json").exists():
            return MaskedLM.load(folder)
        tokenizer = load_tokenizer(resolve_model(_TOKENIZER, download=self.download))
        train, valid = (
            load_texts("wikitext2", split=split, data=self.data, download=self.download)
            for split in ("train", "valid")
        )
        has_cuda = torch.cuda.is_available() and (self.device or "cuda").startswith("cuda")
        options: dict[str, Any] = {"steps": MASKED_STEPS, "precision": "bf16" if has_cuda else "float32"}
        return train_masked_lm(
            as_written(train, tokenizer), tokenizer=tokenizer, held_out=as_written(valid, tokenizer),
            run=folder, resume=True, device=self.device, progress=self.progress,
            **options | (self.masked_options or {}),
        )  # fmt: skip


@dataclass
class Begun:
    """A model before its training, and what is read of it there."""

    model: LanguageModel
    pretraining: dict[str, Any]

    def __post_init__(self) -> None:
        self._states: Any = None

    def states(self, probe: Sequence[str]) -> Any:
        """The token states of the probe, read once."""
        if self._states is None:
            self._states = read_states(self.model, probe)
        return self._states


def as_written(texts: Texts, tokenizer: Any) -> list[str]:
    """WikiText-2 without its marks: unknown words are the tokenizer's, numbers and hyphens whole."""
    found = []
    for text in texts:
        for mark, written in (*_WRITTEN, ("<unk>", tokenizer.unk_token)):
            text = text.replace(mark, written)
        found.append(text)
    return found


def run_dynamics(
    setup: Setup,
    material: Material,
    *,
    epochs: int = EPOCHS,
    seed: int = 0,
    precision: str = "float32",
) -> Dynamics:
    """One run: what is read before, the training with its measurements, what is read after.

    Args:
        setup: of `chosen_setups`.
        material: what runs share.
        epochs: passes over the pairs.
        seed: of order and dropout.
        precision: of the training: "float32"; "tf32", whose products have 10 bits, on CUDA; or "bf16".
    """
    if precision not in PRECISIONS:
        raise InputError(f"precision is {precision!r}; wanted one of {', '.join(PRECISIONS)}")
    began = time.perf_counter()
    begun = material.begin(setup.start)
    before, probe = begun.model, list(material.probe)
    if before.is_causal and setup.pooling == "cls":
        raise InputError(f"{setup.name}: the first token of a causal model sees no other; take lasttoken")
    tracker = GeometryTracker(
        probe, tokenizer=before.tokenizer, every=setup.every, metrics=METRICS, contextual=True, sinks=True,
        max_length=MAX_LENGTH, seed=seed,
    )  # fmt: skip
    with products(precision):
        found = contrast(
            before, list(zip(*material.pairs.columns, strict=True)), temperature=setup.temperature,
            batch_size=setup.batch_size, pooling=setup.pooling, epochs=epochs, warmup=WARMUP,
            learning_rate=setup.start.learning_rate, max_length=MAX_LENGTH, seed=seed, tracker=tracker,
            precision="bf16" if precision == "bf16" else "float32", device=material.device,
            progress=material.progress,
        )  # fmt: skip
    after = replace(before, model=found.model)
    is_base = setup.variant == BASE
    return Dynamics(
        start=setup.start.name, variant=setup.variant, title=setup.start.title,
        model=setup.start.model or setup.start.title, temperature=setup.temperature,
        batch_size=setup.batch_size, pooling=setup.pooling, learning_rate=setup.start.learning_rate,
        epochs=epochs, steps=len(found.loss), seed=seed, precision=precision, n_pairs=len(material.pairs),
        n_sentences=len(probe), rows=rows_of(found.trajectory, found.loss.tolist()),
        layers={
            when: layer_values(model, probe, METRICS)
            for when, model in (("before", before), ("after", after))
            if is_base
        },
        task={
            when: task_score(model, material.scored, pooling=setup.pooling)
            for when, model in (("before", before), ("after", after))
        },
        change=token_change(begun.states(probe), read_states(after, probe)) if is_base else {},
        pretraining=begun.pretraining, seconds=time.perf_counter() - began,
    )  # fmt: skip


@contextmanager
def products(precision: str) -> Iterator[None]:
    """float32 products on CUDA with 10 bits inside, where "tf32" is asked for; then as it was."""
    was = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = was or precision == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = was


def rows_of(trajectory: Any, losses: Sequence[float]) -> dict[str, list[float | None]]:
    """The columns of a trajectory; the loss is the mean over the updates since the row before."""
    steps = [int(step) for step in trajectory["step"]]
    means: list[float | None] = [None]
    for first, last in pairwise(steps):
        means.append(math.fsum(losses[first:last]) / (last - first))
    found: dict[str, list[float | None]] = {"step": list(map(float, steps)), "loss": means}
    for name in trajectory.metrics:
        found[name] = [None if value != value else float(value) for value in trajectory[name]]
    return found


def run_path(folder: Path, setup: Setup, seed: int) -> Path:
    """Where a run is kept below a folder of runs."""
    name = re.sub(r"[^\w.-]", "-", f"{setup.start.name}-{setup.variant}")
    return folder / f"{_PREFIX}{name}{f'-seed-{seed}' if seed else ''}.json"


def keep_dynamics(found: Dynamics, path: Path) -> Path:
    """Write a run, all or nothing."""
    make_folder(path.parent)
    return write_json(path, asdict(found))


def read_dynamics(folder: Path) -> list[Dynamics]:
    """The runs kept below a folder, by name; none where there are none."""
    return [read_one(path) for path in sorted(folder.glob(f"{_PREFIX}*.json"))]


def same_run(path: Path, **settings: object) -> Dynamics:
    """A kept run, which must have been made with these settings."""
    found = read_one(path)
    for name, wanted in settings.items():
        if getattr(found, name) != wanted:
            raise InputError(
                f"{path} was run with {name} {getattr(found, name)}, now {wanted}; delete it, or choose "
                "another folder"
            )
    return found


def read_one(path: Path) -> Dynamics:
    """A kept run."""
    try:
        about = read_json(path, sealed=False)
        return Dynamics(**{field.name: about[field.name] for field in fields(Dynamics)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path} is not a kept run: {type(error).__name__}: {error}") from error
