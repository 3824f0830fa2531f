"""Run a setup of *Clusters and Manifolds*; keep what was found as JSON, with a few points for the figures."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.encoders.language_models import best_device, load_language_model
from isoscope.encoders.states import TokenStates, token_states
from isoscope.encoders.static import GLOVE, static_vectors, vocabulary
from isoscope.errors import FileError, InputError, check_seed
from isoscope.io import read
from isoscope.io.atomic import write_atomically
from isoscope.io.files import reading
from isoscope.io.sealed import read_json, write_json
from isoscope.metrics.cosine import mean_cosine
from isoscope.metrics.sinks import find_sinks
from isoscope.progress import Bar
from isoscope_papers.corpora import load_texts
from isoscope_papers.manifolds.layers import (
    LID_POINTS,
    LayerFigures,
    MeasuredLayer,
    SmallestCluster,
    directions_of,
    mean_lid,
    measure_layer,
)
from isoscope_papers.manifolds.setups import SETUPS, WINDOW, Published, Setup, own_setup, published_of
from isoscope_papers.pages import make_folder

CORPUS = "wikitext2"
N_SHOWN = 1500  # tokens of each layer that are kept for the figures
_STEM = "manifolds-"


@dataclass(frozen=True)
class StaticFigures:
    """A table of word vectors: its mean cosine and its dimension, as of `LayerFigures`."""

    n_vectors: int
    n_dims: int
    mean_cosine: float
    lid: float | None
    lid_squared: float | None
    lid_cosine: float | None


@dataclass(frozen=True, eq=False)
class Shown:
    """Some tokens for the figures, the same in every layer, attention sinks left out.

    Attributes:
        axes: by layer, (m, 3) float16 on the first principal components.
        clusters: by layer, (m,) uint8.
        positions: (m,) in the window.
        log_frequencies: (m,) log₁₀ of how often the type occurs.
    """

    axes: Mapping[int, np.ndarray]
    clusters: Mapping[int, np.ndarray]
    positions: np.ndarray
    log_frequencies: np.ndarray


@dataclass(frozen=True, eq=False)
class Outcome:
    """A setup that was run.

    Attributes:
        setup: what was run.
        about: source, split, tokens, types, dimensions, window, device, seconds, seed, library versions.
        layers: figures of every layer with all tokens, the embedding layer first; none of a static table.
        without_sinks: the same without attention sinks; empty where there are none.
        sinks: what these are, in words.
        static: figures of a static table.
        shown: tokens for the figures.
    """

    setup: Setup
    about: Mapping[str, Any]
    layers: tuple[LayerFigures, ...] = ()
    without_sinks: tuple[LayerFigures, ...] = ()
    sinks: tuple[str, ...] = ()
    static: StaticFigures | None = None
    shown: Shown | None = field(default=None, repr=False)

    @property
    def title(self) -> str:
        """In tables and figures."""
        return self.setup.title

    @property
    def published(self) -> Published | None:
        """The line of the paper's table 3, where this is its very model."""
        return published_of(self.setup)

    @property
    def plain_layers(self) -> tuple[LayerFigures, ...]:
        """Without sinks where there are any."""
        return self.without_sinks or self.layers


def run_setup(
    setup: Setup,
    *,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    device: str | None = None,
    split: str = "test",
    max_tokens: int | None = None,
    layers: Iterable[int] | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Outcome:
    """Measure every layer of a model on WikiText-2, or a table of word vectors.

    Args:
        setup: of `SETUPS`, or `own_setup(model)`.
        data: folder of the corpora; ISOSCOPE_DATA where not given.
        download: fetch texts and model where they are not on this machine.
        device: where the model runs and its states are kept and measured: "cpu", "cuda".
        split: of WikiText-2: "test", "valid" or "train".
        max_tokens: at most so many tokens, whole windows; all where not given.
        layers: which to measure; all by default.
        seed: of the paper's draws, of k-means and of samples.
        progress: show a bar.
    """
    check_seed(seed)
    place = best_device(device)
    began = time.perf_counter()
    if setup.is_static:
        return _static(setup, place, seed, began)
    texts = load_texts(CORPUS, data=data, split=split, download=download)
    model = load_language_model(setup.model, device=place, download=download)
    window = min(WINDOW, model.max_length or WINDOW)
    if max_tokens is not None and max_tokens < window:
        raise InputError(
            f"max_tokens is {max_tokens}; wanted at least {window}, the window {model.name} reads"
        )
    states = token_states(
        list(texts), model=model, layers=layers, window=window, max_tokens=max_tokens, keep_on=place,
        progress=progress,
    )  # fmt: skip
    about = {"source": texts.source, "split": split, "window": window, "licence": texts.licence}
    return measure_states(setup, states, about=about, seed=seed, began=began, progress=progress)


def measure_states(
    setup: Setup,
    states: TokenStates,
    *,
    about: Mapping[str, Any] | None = None,
    seed: int = 0,
    began: float | None = None,
    progress: bool | None = None,
) -> Outcome:
    """Every layer of states at hand: with all tokens but special ones, and without attention sinks."""
    counted = ~(states.rows.is_special | states.rows.is_padding)
    norms = torch.stack([states.vectors(layer).norm(dim=1).cpu() for layer in states.layers])
    rows = states.rows.select(counted)
    sinks = find_sinks(
        norms[:, counted], positions=rows.positions, token_types=rows.types, layers=states.layers
    )
    places = counted.nonzero().flatten()
    kept = places[~sinks.mask]
    found: dict[str, list[MeasuredLayer]] = {"all": [], "without": []}
    with Bar(show=progress) as bar:
        for number, layer in enumerate(states.layers):
            bar.step(f"{setup.title}, layer {layer} of {states.layers[-1]}")
            found["all"].append(_measured(states, layer, places, sinks.mask, seed))
            bar.share((number + 0.5) / len(states.layers))
            if len(sinks):
                none = torch.zeros(len(kept), dtype=torch.bool)
                found["without"].append(_measured(states, layer, kept, none, seed))
    shown = _shown(states, kept, found["without"] or found["all"], seed)
    device = states.vectors(states.layers[0]).device
    facts = dict(about or {}) | {
        "model": states.model,
        "n_tokens": len(places),
        "n_types": rows.types.seen().n_labels,
        "n_sinks": len(sinks),
        "n_dims": states.n_dims,
        "layers": states.layers,
        "seed": seed,
        **_machine(device, began),
    }
    return Outcome(
        setup,
        facts,
        tuple(one.figures for one in found["all"]),
        tuple(one.figures for one in found["without"]),
        sinks.names,
        shown=shown,
    )


def _measured(states: TokenStates, layer: int, places: Tensor, is_sink: Tensor, seed: int) -> MeasuredLayer:
    vectors = states.vectors(layer)
    rows = states.rows.select(places)
    found = measure_layer(
        vectors[places.to(vectors.device)],
        rows.types.seen(),
        positions=rows.positions,
        log_frequencies=rows.counts.double().log10(),
        seed=seed,
    )
    smallest = SmallestCluster.of(found.clusters, rows.types, is_sink)
    return replace(found, figures=replace(found.figures, smallest=smallest))


def _shown(states: TokenStates, places: Tensor, measured: list[MeasuredLayer], seed: int) -> Shown:
    some = torch.randperm(len(places), generator=torch.Generator().manual_seed(seed))[:N_SHOWN].sort().values
    axes, clusters = {}, {}
    for layer, one in zip(states.layers, measured, strict=True):
        points = one.axes[some.to(one.axes.device)].cpu()
        largest = float(points.abs().max()) or 1.0
        axes[layer] = (points / largest).numpy().astype(np.float16)  # half precision, whatever the scale
        clusters[layer] = one.clusters[some.to(one.clusters.device)].cpu().numpy().astype(np.uint8)
    rows = states.rows.select(places)
    return Shown(
        axes,
        clusters,
        rows.positions[some].numpy().astype(np.int32),
        rows.counts[some].double().log10().numpy().astype(np.float32),
    )


def _static(setup: Setup, device: torch.device, seed: int, began: float) -> Outcome:
    X = _table(setup).to(device)
    euclidean, cosine = mean_lid(X, seed=seed), mean_lid(directions_of(X), seed=seed)
    figures = StaticFigures(
        n_vectors=len(X),
        n_dims=int(X.shape[1]),
        mean_cosine=float(mean_cosine(X)),
        lid=euclidean,
        lid_squared=None if euclidean is None else euclidean / 2,
        lid_cosine=None if cosine is None else cosine / 2,
    )
    facts = {"model": Path(setup.model).name, "source": "its own words", "seed": seed}
    return Outcome(setup, facts | _machine(device, began), static=figures)


def _table(setup: Setup) -> Tensor:
    """All vectors of a static table."""
    if setup.model == GLOVE:
        return static_vectors(vocabulary(), model=GLOVE)[0]
    return as_matrix(read(setup.model)).float()


def _machine(device: torch.device, began: float | None) -> dict[str, Any]:
    named = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return {
        "device": named,
        "torch": torch.__version__,
        "lid_points": LID_POINTS,
        "seconds": None if began is None else round(time.perf_counter() - began, 1),
    }


def keep(found: Outcome, folder: Path) -> list[Path]:
    """Write `manifolds-NAME.json`, and `manifolds-NAME.npz` with the tokens for the figures."""
    stem = folder / f"{_STEM}{found.setup.name}"
    facts = {
        "setup": found.setup.name,
        "model": found.setup.model,
        "title": found.setup.title,
        "is_static": found.setup.is_static,
        "about": dict(found.about),
        "sinks": list(found.sinks),
        "layers": [one.to_dict() for one in found.layers],
        "without_sinks": [one.to_dict() for one in found.without_sinks],
        "static": None if found.static is None else vars(found.static),
    }
    make_folder(folder)
    written = [write_json(stem.with_name(stem.name + ".json"), facts, indent=1)]
    if found.shown is not None:
        arrays = _arrays(found.shown)
        written.append(
            write_atomically(
                stem.with_name(stem.name + ".npz"),
                lambda path: _save_arrays(path, arrays),
            )
        )
    return written


def _save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    with path.open("wb") as file:  # given a name, NumPy would add a suffix of its own
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _arrays(shown: Shown) -> dict[str, np.ndarray]:
    layers = sorted(shown.axes)
    return {
        "layers": np.array(layers),
        "axes": np.stack([shown.axes[layer] for layer in layers]),
        "clusters": np.stack([shown.clusters[layer] for layer in layers]),
        "positions": shown.positions,
        "log_frequencies": shown.log_frequencies,
    }


def read_outcomes(folder: str | os.PathLike[str]) -> list[Outcome]:
    """The runs a folder keeps, those of `SETUPS` first and in their order."""
    files = sorted(Path(folder).glob(f"{_STEM}*.json"))
    if not files:
        raise InputError(f"{folder} holds no runs; wanted {_STEM}NAME.json, as --output keeps them")
    found = [_read(path) for path in files]
    order = list(SETUPS)
    return sorted(
        found, key=lambda one: order.index(one.setup.name) if one.setup.name in order else len(order)
    )


def _read(path: Path) -> Outcome:
    try:
        facts = read_json(path, sealed=False)
        setup = SETUPS.get(facts["setup"]) or own_setup(facts["model"])
        if setup.name != facts["setup"] or setup.is_static != facts["is_static"]:
            setup = Setup(facts["setup"], facts["title"], facts["model"], is_static=facts["is_static"])
        return Outcome(
            setup,
            dict(facts["about"]),
            tuple(LayerFigures.from_dict(one) for one in facts["layers"]),
            tuple(LayerFigures.from_dict(one) for one in facts["without_sinks"]),
            tuple(facts["sinks"]),
            None if facts["static"] is None else StaticFigures(**facts["static"]),
            _read_shown(path.with_suffix(".npz")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{path} does not hold a run of manifolds: {error}") from error


def _read_shown(path: Path) -> Shown | None:
    if not path.exists():
        return None
    with reading(path), np.load(path, allow_pickle=False) as arrays:  # a zip has checksums of its own
        layers = arrays["layers"].tolist()
        return Shown(
            dict(zip(layers, arrays["axes"], strict=True)),
            dict(zip(layers, arrays["clusters"], strict=True)),
            arrays["positions"],
            arrays["log_frequencies"],
        )
