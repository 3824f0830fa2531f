"""Measure the layers of one model, of one model over training, or of one model in bfloat16."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import isoscope as iso
from isoscope.errors import InputError
from isoscope_papers.corpora import Corpus, load_texts
from isoscope_papers.layers import setups
from isoscope_papers.layers.options import Options
from isoscope_papers.layers.rounding import VARIANTS, variant
from isoscope_papers.layers.setups import DEPTH, METRICS, ROUNDED, ROUNDED_METRICS, SETUPS, TRAINED, Setup
from isoscope_papers.layers.training import masked_model, snapshots_of
from isoscope_papers.study import Place

Values = dict[str, list[float | None]]  # by metric, one value a layer


@dataclass(frozen=True)
class Profile:
    """The metrics of every layer of one model.

    Attributes:
        name: the checkpoint, or what was rounded; empty for a model on its own.
        values: by metric, with all tokens.
        without_sinks: by metric, without attention sinks.
        sinks: the attention sinks in words.
    """

    name: str
    values: Values
    without_sinks: Values
    sinks: tuple[str, ...] = ()

    def largest_change(self, other: Profile, metric: str) -> float:
        """Return the largest relative change of a metric over the layers, from this profile to another.

        It is that of all tokens: which tokens count as attention sinks can change too.
        """
        pairs = zip(self.values[metric], other.values[metric], strict=True)
        return max(abs(after / before - 1) for before, after in pairs if before and after is not None)


@dataclass(frozen=True)
class Layers:
    """A setup that was run."""

    setup: str
    title: str
    model: str
    kind: str
    layers: tuple[int, ...]
    n_dims: int
    about: Mapping[str, Any]  # source, tokens, texts, window, sample, sinks, seconds, seed, what was trained
    profiles: tuple[Profile, ...]

    @property
    def last(self) -> Profile:
        """Return the only profile, or the one at the end of training."""
        return self.profiles[-1]

    def depths(self) -> list[float]:
        """Return the depth of each layer: 0 for the embedding layer, 1 for the last."""
        return [layer / max(1, self.layers[-1]) for layer in self.layers]

    def blocks(self, metric: str, profile: Profile | None = None) -> dict[int, float]:
        """Return a metric of each block without attention sinks, by its number; layer 0 is no block."""
        values = (profile or self.last).without_sinks[metric]
        pairs = zip(self.layers, values, strict=True)
        return {layer: value for layer, value in pairs if layer and value is not None}


def run_setup(setup: Setup, options: Options, place: Place, *, progress: bool | None = None) -> list[Layers]:
    """Run one setup."""
    if options.seed < 0:
        raise InputError(argument="seed", got=options.seed, wanted="a whole number of at least 0")
    began = time.perf_counter()
    texts = load_texts("wikitext2", data=place.data, split="test", download=place.download)
    run = {DEPTH: _along_depth, TRAINED: _over_training, ROUNDED: _rounded}[setup.kind]
    found = run(setup, texts, options, place, progress)
    about = {"source": texts.source, "licence": texts.licence, "seed": options.seed, **found.about}
    return [replace(found, about=about | {"seconds": round(time.perf_counter() - began, 1)})]


def _options(options: Options, window: int) -> dict[str, Any]:
    return {
        "window": window, "max_tokens": options.max_tokens or setups.MAX_TOKENS, "metrics": METRICS,
        "sample": setups.SAMPLE, "clusters": False, "seed": options.seed,
    }  # fmt: skip


def _along_depth(
    setup: Setup, texts: Corpus, options: Options, place: Place, progress: bool | None
) -> Layers:
    model = iso.models.load_language_model(setup.model, device=place.device, download=place.download)
    reading = _options(options, min(setups.WINDOW, model.max_length or setups.WINDOW))
    profile = iso.layers(model, list(texts), progress=progress, **reading)
    return _layers(setup, {"": profile}, {"window": reading["window"], "sample": reading["sample"]})


def _over_training(
    setup: Setup, texts: Corpus, options: Options, place: Place, progress: bool | None
) -> Layers:
    trained = masked_model(place, progress=progress)
    assert place.runs is not None
    reading = _options(options, setups.TRAINING["window"])
    followed = iso.models.measure_checkpoints(
        snapshots_of(trained), list(texts), folder=place.runs.parent / "models" / "layers-profiles",
        device=place.device, progress=progress, **reading,
    )  # fmt: skip
    names = ("steps", "batch_size", "window", "n_tokens", "n_layers", "n_dims", "learning_rate")
    about = {name: trained.configuration[name] for name in names}
    about |= {"held_out_loss": trained.held_out_loss, "unigram_loss": trained.unigram_loss}
    about |= {"losses": {str(step): _loss(trained.loss, step) for step in setups.SNAPSHOTS if step}}
    by_step = {name.removeprefix("step-"): profile for name, profile in followed.profiles.items()}
    return _layers(
        setup, by_step, {"window": reading["window"], "sample": reading["sample"], "training": about}
    )


def _loss(losses: np.ndarray, step: int) -> float:
    """Return the mean loss of the updates since half as many."""
    return float(losses[step // 2 : step].mean())


def _rounded(setup: Setup, texts: Corpus, options: Options, place: Place, progress: bool | None) -> Layers:
    model = iso.models.load_language_model(setup.model, device=place.device, download=place.download)
    short = list(_short(texts))[: setups.ROUNDED_TEXTS]
    profiles = {
        name: iso.layers(
            variant(model, name), short, metrics=ROUNDED_METRICS, sample=100, seed=options.seed,
            max_tokens=options.max_tokens, progress=progress,
        )
        for name in VARIANTS
    }  # fmt: skip
    return _layers(setup, profiles, {"window": 0, "sample": 0})


def _short(texts: Corpus) -> Iterator[str]:
    """Yield texts of about a sentence, which begin with no heading's mark."""
    for text in texts:
        if 60 <= len(text) <= 300 and "=" not in text:
            yield text


def _layers(setup: Setup, profiles: Mapping[str, iso.models.LayerProfile], about: dict[str, Any]) -> Layers:
    last = list(profiles.values())[-1]
    about |= {"n_tokens": last.n_tokens, "n_texts": last.n_texts, "n_types": last.n_types}
    about |= {"n_sinks": last.n_sinks, "isoscope": iso.__version__}
    return Layers(
        setup.name, setup.title, setup.model, setup.kind, tuple(last.layers), last.n_dims, about,
        tuple(_profile(name, profile) for name, profile in profiles.items()),
    )  # fmt: skip


def _profile(name: str, profile: iso.models.LayerProfile) -> Profile:
    with_sinks, without = (
        {metric: profile.values(metric, sinks=sinks) for metric in profile.metrics} for sinks in (True, False)
    )
    return Profile(name, with_sinks, without, tuple(profile.sinks))


def own_setup(name: str, model: str, is_vectors: bool) -> Setup:
    """Return the setup of a model that none declares."""
    if is_vectors:
        raise InputError(argument="model", got=model, wanted="a language model, which has layers")
    return SETUPS.get(name, Setup(name, Path(name).name, model))
