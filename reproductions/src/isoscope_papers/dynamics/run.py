"""Train a sentence encoder as one setup of the paper's section 4 says, follow its geometry, keep the run."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from scipy.stats import spearmanr
from torch import Tensor

import isoscope as iso
from isoscope.errors import InputError, Setting
from isoscope.models import load_tokenizer
from isoscope.training import Contrasted, MaskedLM, train_masked_lm
from isoscope_papers.contrastive.run import token_rows
from isoscope_papers.contrastive.setups import CLEAN, N_TOKENS, SPLIT, TEXTS
from isoscope_papers.corpora import Corpus, load_corpus, load_pairs, load_texts
from isoscope_papers.dynamics import setups
from isoscope_papers.dynamics.setups import BASE, EPOCHS, MASKED_STEPS, MAX_LENGTH, PRECISIONS, Setup, Start
from isoscope_papers.study import Place

METRICS = ("mean_cosine", "self_similarity", "intra_similarity")
_TOKENIZER = "all-MiniLM-L6-v2"  # whose words the masked model reads
# WikiText-2 as it was tokenised, to words as they are written
_WRITTEN = ((" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", "."))
Columns = dict[str, list[float | None]]


@dataclass(frozen=True)
class Dynamics:
    """One run."""

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
    n_pairs: int  # it was trained on
    n_sentences: int  # it was followed on
    # by column, one value a measurement: step, loss (the mean since the one before), and the metrics of the
    # last layer, with `_without_sinks` a second time, and sink_share
    rows: Columns
    layers: dict[str, Columns]  # "before" and "after": by metric, one value a layer; only of the base run
    task: dict[str, float]  # "before" and "after": Spearman's ρ of cosines and scores of STS-B's test pairs
    change: dict[str, Any]  # of self-similarity by token; only of the base run
    pretraining: dict[str, Any]  # of a masked model trained here, what it lost on held-out texts
    seconds: float

    @property
    def changes(self) -> dict[str, float]:
        """Return the change of self-similarity by token; empty but for the base run."""
        return dict(zip(self.change.get("name", ()), self.change.get("change", ()), strict=True))


class Material:
    """What several runs share, each part loaded when the first asks for it."""

    def __init__(self, place: Place, *, progress: bool | None = None) -> None:
        self.place, self.progress = place, progress
        self._at: dict[str, Any] = {"data": place.data, "download": place.download}
        self.begin, self.states = cache(self._begin), cache(self._states)

    @cached_property
    def pairs(self) -> Corpus:
        """Return the pairs that encoders are trained on."""
        return load_pairs(setups.PAIRS, **self._at)

    @cached_property
    def probe(self) -> list[str]:
        """Return the sentences on which the geometry is followed."""
        return list(load_texts(TEXTS, split=SPLIT, **self._at).columns[0])

    @cached_property
    def scored(self) -> Corpus:
        """Return the pairs that encoders are scored on."""
        return load_corpus(TEXTS, **self._at)

    def _begin(self, start: Start) -> tuple[iso.models.LanguageModel, dict[str, Any]]:
        """Return the model a run begins from, and how it was trained where that is ours."""
        place = self.place
        if start.model is not None:
            loaded = iso.models.load_language_model(start.model, device=place.device, download=place.download)
            return replace(loaded, tokenizer=load_tokenizer(loaded.path)), {}
        if place.runs is None:
            raise InputError(
                f"{start.name} is trained first, and saved", hint=Setting("output", to="say in which folder")
            )
        trained = self._masked_model(place.runs.parent / "models" / start.name)
        assert trained.model_folder is not None
        names = ("steps", "batch_size", "window", "n_tokens", "n_layers", "n_dims")
        about = {"held_out_loss": trained.held_out_loss, "unigram_loss": trained.unigram_loss}
        about |= {name: trained.configuration[name] for name in names}
        return iso.models.load_language_model(trained.model_folder, device=place.device), about

    def _states(self, start: Start) -> tuple[iso.models.TokenStates, Tensor]:
        """Return the token states of the probe before training."""
        return read_states(self.begin(start)[0], self.probe)

    def _masked_model(self, folder: Path) -> MaskedLM:
        if (folder / "result.json").exists():
            return MaskedLM.load(folder)
        device = self.place.device
        tokenizer = load_tokenizer(iso.models.resolve_model(_TOKENIZER, download=self.place.download))
        fitted, valid = (load_texts("wikitext2", split=split, **self._at) for split in ("train", "valid"))
        has_cuda = torch.cuda.is_available() and (device or "cuda").startswith("cuda")
        return train_masked_lm(
            as_written(fitted, tokenizer), tokenizer=tokenizer, held_out=as_written(valid, tokenizer),
            steps=MASKED_STEPS, precision="bf16" if has_cuda else "float32", run=folder, resume=True,
            device=device, progress=self.progress,
        )  # fmt: skip


def as_written(texts: Corpus, tokenizer: Any) -> list[str]:
    """Return WikiText-2 without its marks: unknown words are the tokenizer's, numbers and hyphens whole."""
    found = []
    for text in texts:
        for mark, written in (*_WRITTEN, ("<unk>", tokenizer.unk_token)):
            text = text.replace(mark, written)
        found.append(text)
    return found


def run_dynamics(
    setup: Setup, material: Material, *, epochs: int = EPOCHS, seed: int = 0, precision: str = "float32"
) -> Dynamics:
    """Run one setup: what is read before, the training with its measurements, what is read after."""
    if precision not in PRECISIONS:
        raise InputError(argument="precision", got=precision, wanted=f"one of {', '.join(PRECISIONS)}")
    began = time.perf_counter()
    before, pretraining = material.begin(setup.start)
    probe = material.probe
    if before.is_causal and setup.pooling == "cls":
        raise InputError(
            f"{setup.name} uses the first token of a causal model, which sees no other",
            hint="use the pooling lasttoken",
        )
    tracker = iso.GeometryTracker(
        probe, tokenizer=before.tokenizer, every=setup.every, metrics=METRICS, contextual=True, sinks=True,
        max_length=MAX_LENGTH, seed=seed,
    )  # fmt: skip
    found = train(setup, material, epochs=epochs, seed=seed, precision=precision, tracker=tracker)
    both = {"before": before, "after": replace(before, model=found.model)}
    is_base = setup.variant == BASE
    return Dynamics(
        start=setup.start.name, variant=setup.variant, title=setup.start.title,
        model=setup.start.model or setup.start.title, temperature=setup.temperature,
        batch_size=setup.batch_size, pooling=setup.pooling, learning_rate=setup.start.learning_rate,
        epochs=epochs, steps=len(found.loss), seed=seed, precision=precision, n_pairs=len(material.pairs),
        n_sentences=len(probe), rows=rows_of(found.trajectory, found.loss.tolist()),
        layers={when: _layers(model, probe) for when, model in both.items() if is_base},
        task={when: task_score(model, material.scored, setup.pooling) for when, model in both.items()},
        change=token_change(material.states(setup.start), read_states(both["after"], probe))
        if is_base else {},
        pretraining=pretraining, seconds=time.perf_counter() - began,
    )  # fmt: skip


def train(setup: Setup, material: Material, *, precision: str = "float32", **options: Any) -> Contrasted:
    """Train the start of a setup as it says; options go to `isoscope.contrast`."""
    with _products(precision):
        return iso.contrast(
            material.begin(setup.start)[0], list(zip(*material.pairs.columns, strict=True)),
            temperature=setup.temperature, batch_size=setup.batch_size, pooling=setup.pooling,
            warmup=setups.WARMUP, learning_rate=setup.start.learning_rate, max_length=MAX_LENGTH,
            precision="bf16" if precision == "bf16" else "float32", device=material.place.device,
            progress=material.progress, **options,
        )  # fmt: skip


@contextmanager
def _products(precision: str) -> Iterator[None]:
    """Give float32 products on CUDA 10 bits inside, where "tf32" is asked for; then as it was."""
    was = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else was)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(was)


def rows_of(trajectory: Any, losses: Sequence[float]) -> Columns:
    """Return the columns of a trajectory; the loss is the mean over the updates since the row before."""
    steps = [int(step) for step in trajectory["step"]]
    means = [math.fsum(losses[first:last]) / (last - first) for first, last in pairwise(steps)]
    found: Columns = {"step": list(map(float, steps)), "loss": [None, *means]}
    return found | {name: _known(trajectory[name]) for name in trajectory.metrics}


def _known(values: Sequence[float]) -> list[float | None]:
    return [None if value != value else float(value) for value in values]


def _layers(model: iso.models.LanguageModel, probe: Sequence[str]) -> Columns:
    """Return by metric one value a layer, the embedding layer first; with and without attention sinks."""
    tracker = iso.GeometryTracker(
        list(probe), tokenizer=model.tokenizer, layers=range(model.n_layers), metrics=METRICS,
        contextual=True, sinks=True, max_length=MAX_LENGTH,
    )  # fmt: skip
    values = tracker.read(model.model)
    return {name: _known([values[f"{name}@{layer}"] for layer in tracker.layers]) for name in tracker.metrics}


def task_score(model: iso.models.LanguageModel, pairs: Corpus, pooling: str) -> float:
    """Return Spearman's correlation of the cosines of pairs with what people scored."""
    last = model.n_layers - 1
    first, second = (
        iso.models.token_states(texts, model=model, layers=[last], truncate=True, progress=False)
        .sentence_space(last, pooling=pooling).vectors.double()
        for texts in pairs.columns
    )  # fmt: skip
    return float(spearmanr(torch.nn.functional.cosine_similarity(first, second), pairs.labels).statistic)


def read_states(
    model: iso.models.LanguageModel, probe: Sequence[str]
) -> tuple[iso.models.TokenStates, Tensor]:
    """Return the last layer's states of the probe, and (n,) which tokens are sinks in any layer."""
    states = iso.models.token_states(
        list(probe), model=model, truncate=True, keep_on=model.device, progress=False
    )
    norms = torch.stack([states.vectors(layer).norm(dim=1).cpu() for layer in states.layers])
    is_sink = (norms.double() > iso.metrics.sink_thresholds(norms)[:, None]).any(dim=0)
    last = states.layers[-1]
    return iso.models.TokenStates(states.rows, {last: states.vectors(last).cpu()}, states.model), is_sink


def token_change(
    before: tuple[iso.models.TokenStates, Tensor], after: tuple[iso.models.TokenStates, Tensor]
) -> dict[str, Any]:
    """Return each token's change of adjusted self-similarity, without sinks of before or after."""
    is_sink = before[1] | after[1]
    spaces = [
        states.space(states.layers[-1], rows=token_rows(states.rows, CLEAN, ~is_sink))
        for states, _ in (before, after)
    ]
    change = iso.metrics.self_similarity_change(*spaces, n_types=N_TOKENS)
    return {
        "name": list(change.changes),
        "count": list(change.counts.values()),
        "change": list(change.changes.values()),
        "sinks": float(is_sink.double().mean()),
    }


def run_path(folder: Path, setup: Setup, seed: int) -> Path:
    """Return where a run is kept below a folder of runs."""
    name = re.sub(r"[^\w.-]", "-", f"{setup.start.name}-{setup.variant}")
    return folder / f"dynamics-{name}{f'-seed-{seed}' if seed else ''}.json"
