"""Run a setup of *Clusters and Manifolds*; keep what was found as JSON, with a few points for the figures."""

from __future__ import annotations

import time
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import isoscope as iso
from isoscope.arrays import as_matrix
from isoscope.cli import parse_numbers
from isoscope.errors import FileError, InputError
from isoscope.io import write_atomically
from isoscope.models import TokenStates, best_device, vocabulary
from isoscope.progress import Bar
from isoscope_papers import runs
from isoscope_papers.corpora import load_texts
from isoscope_papers.manifolds import layers as measures
from isoscope_papers.manifolds import setups
from isoscope_papers.manifolds.layers import LayerFigures, LayerParts, MeasuredLayer
from isoscope_papers.manifolds.options import Options
from isoscope_papers.manifolds.setups import GLOVE, PUBLISHED, SETUPS, WINDOW, Published, Setup
from isoscope_papers.study import Place

CORPUS = "wikitext2"
N_SHOWN = 1500  # tokens of each layer that are kept for the figures


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
    """Some tokens for the figures, the same in every layer, attention sinks left out."""

    layers: np.ndarray  # (L,) their numbers
    axes: np.ndarray  # (L, m, 3) float16 on the first principal components, scaled to 1
    clusters: np.ndarray  # (L, m) uint8
    positions: np.ndarray  # (m,) in the window
    log_frequencies: np.ndarray  # (m,) log₁₀ of how often the type occurs

    def at(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the (m, 3) places of the tokens in a layer, and their clusters."""
        place = self.layers.tolist().index(layer)
        return self.axes[place].astype(float), self.clusters[place]


@dataclass(frozen=True)
class Outcome:
    """A setup that was run."""

    setup: str
    model: str
    title: str
    is_static: bool
    about: Mapping[str, Any]  # source, split, tokens, types, dimensions, window, device, seconds, seed, …
    sinks: tuple[str, ...] = ()  # attention sinks, in words
    layers: tuple[LayerFigures, ...] = ()  # with all tokens, the embedding layer first
    without_sinks: tuple[LayerFigures, ...] = ()  # the same without sinks, where there are any
    static: StaticFigures | None = None
    parts: tuple[LayerParts, ...] = ()  # of the setups for this alone, without sinks
    shown: Shown | None = field(default=None, repr=False, compare=False)  # kept in a file of its own

    @property
    def declared(self) -> Setup:
        """Return the setup it is of; of a model that none declares, what its name says."""
        own = Setup(self.setup, self.title, self.model, is_causal="gpt" in self.setup.lower())
        return SETUPS.get(self.setup, own)

    @property
    def published(self) -> Published | None:
        """Return the line of the paper's table 3, where this is its very model."""
        return PUBLISHED.get(Path(self.model).name)

    @property
    def size(self) -> tuple[int, int]:
        """Return the number of vectors, and of their dimensions."""
        if self.static is not None:
            return self.static.n_vectors, self.static.n_dims
        return self.about["n_tokens"], self.about["n_dims"]

    @property
    def is_causal(self) -> bool:
        """Return whether the model is GPT-like."""
        return self.declared.is_causal

    @property
    def plain_layers(self) -> tuple[LayerFigures, ...]:
        """Return the layers, without sinks where there are any."""
        return self.without_sinks or self.layers

    def blocks(self, layers: Iterable[Any] | None = None) -> dict[int, Any]:
        """Return figures by number, without the embedding layer: the paper's layer 0 is the first block."""
        chosen = self.plain_layers if layers is None else layers
        return {n: one for n, one in zip(self.about.get("layers", ()), chosen, strict=False) if n > 0}


def run_setup(setup: Setup, options: Options, place: Place, *, progress: bool | None = None) -> Outcome:
    """Measure every layer of a model on WikiText-2, or a table of word vectors."""
    if options.seed < 0:
        raise InputError(argument="seed", got=options.seed, wanted="a whole number of at least 0")
    device = best_device(place.device)
    began = time.perf_counter()
    if setup.is_static:
        return _static(setup, device, options.seed, began)
    texts = load_texts(CORPUS, data=place.data, split=options.split, download=place.download)
    model = iso.models.load_language_model(setup.model, device=device, download=place.download)
    window = min(WINDOW, model.max_length or WINDOW)
    max_tokens = setups.PARTS_TOKENS if setup.parts and options.max_tokens is None else options.max_tokens
    if max_tokens is not None and max_tokens < window:
        raise InputError(
            argument="max_tokens", got=max_tokens, wanted=f"at least {window}, the window of {model.name}"
        )
    layers = None if options.layers is None else parse_numbers("layers", options.layers)
    states = iso.models.token_states(
        list(texts), model=model, layers=layers, window=window, max_tokens=max_tokens,
        keep_on=device, progress=progress,
    )  # fmt: skip
    measured = _measure_states(setup, states, options.seed, progress)
    about = {"source": texts.source, "split": options.split, "window": window, "licence": texts.licence}
    return replace(measured, about=about | dict(measured.about) | _machine(device, began))


def _measure_states(setup: Setup, states: TokenStates, seed: int, progress: bool | None) -> Outcome:
    """Measure every layer: with all tokens but special ones, and without attention sinks; or its parts."""
    counted = ~(states.rows.is_special | states.rows.is_padding)
    norms = torch.stack([states.vectors(layer).norm(dim=1).cpu() for layer in states.layers])
    rows = states.rows.select(counted)
    sinks = iso.metrics.find_sinks(
        norms[:, counted], positions=rows.positions, token_types=rows.types, layers=states.layers
    )
    places = counted.nonzero().flatten()
    kept = places[~sinks.mask]
    whole: list[MeasuredLayer] = []
    without: list[MeasuredLayer] = []
    parts: list[LayerParts] = []
    with Bar(show=progress) as bar:
        for number, layer in enumerate(states.layers):
            bar.step(f"{setup.title}, layer {layer} of {states.layers[-1]}")
            bar.share(number / len(states.layers))
            if setup.parts:
                vectors, types = states.vectors(layer), states.rows.select(kept).types.seen()
                parts.append(measures.measure_parts(vectors[kept.to(vectors.device)], types, seed=seed))
                continue
            whole.append(_measured(states, layer, places, sinks.mask, seed))
            if len(sinks):
                without.append(_measured(states, layer, kept, sinks.mask[~sinks.mask], seed))
    about = {
        "model": states.model, "n_tokens": len(places), "n_types": rows.types.seen().n_labels,
        "n_sinks": len(sinks), "n_dims": states.n_dims, "layers": states.layers, "seed": seed,
    }  # fmt: skip
    return replace(
        _outcome(setup, about),
        sinks=tuple(sinks.names),
        layers=tuple(one.figures for one in whole),
        without_sinks=tuple(one.figures for one in without),
        parts=tuple(parts),
        shown=None if setup.parts else _shown(states, kept, without or whole, seed),
    )


def _outcome(setup: Setup, about: Mapping[str, Any]) -> Outcome:
    return Outcome(setup.name, setup.model, setup.title, setup.is_static, about)


def _measured(states: TokenStates, layer: int, places: Tensor, is_sink: Tensor, seed: int) -> MeasuredLayer:
    vectors, rows = states.vectors(layer), states.rows.select(places)
    return measures.measure_layer(
        vectors[places.to(vectors.device)], rows.types.seen(), positions=rows.positions,
        log_frequencies=rows.counts.double().log10(), is_sink=is_sink, seed=seed,
    )  # fmt: skip


def _shown(states: TokenStates, places: Tensor, measured: list[MeasuredLayer], seed: int) -> Shown:
    some = measures.drawn(len(places), N_SHOWN, seed)
    axes = [one.axes[some.to(one.axes.device)].cpu() for one in measured]
    clusters = [one.clusters[some.to(one.clusters.device)].cpu() for one in measured]
    rows = states.rows.select(places)
    return Shown(
        np.array(states.layers),
        # half precision, whatever the scale
        np.stack([(one / (float(one.abs().max()) or 1.0)).numpy().astype(np.float16) for one in axes]),
        np.stack([one.numpy().astype(np.uint8) for one in clusters]),
        rows.positions[some].numpy().astype(np.int32),
        rows.counts[some].double().log10().numpy().astype(np.float32),
    )


def _static(setup: Setup, device: torch.device, seed: int, began: float) -> Outcome:
    """Measure all vectors of a static table."""
    is_glove = setup.model == GLOVE
    table = iso.models.static_vectors(vocabulary(), model=GLOVE)[0] if is_glove else iso.read(setup.model)
    X = as_matrix(table).float().to(device)
    figures = StaticFigures(
        len(X), int(X.shape[1]), float(iso.mean_cosine(X)), *measures.mean_lids(X, seed=seed)
    )
    facts = {"model": Path(setup.model).name, "source": "its own words", "seed": seed}
    return replace(_outcome(setup, facts | _machine(device, began)), static=figures)


def _machine(device: torch.device, began: float) -> dict[str, Any]:
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "lid_points": setups.LID_POINTS,
        "seconds": round(time.perf_counter() - began, 1),
    }


def keep_outcome(found: Outcome, path: Path) -> None:
    """Write a run, and beside it an .npz with the tokens for the figures."""
    runs.keep(replace(found, shown=None), path)
    if found.shown is not None:
        arrays = vars(found.shown)
        write_atomically(path.with_suffix(".npz"), lambda path: _save(path, arrays))


def _save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    with path.open("wb") as file:  # given a name, NumPy would add a suffix of its own
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read_outcomes(folder: Path) -> list[Outcome]:
    """Read the runs a folder keeps, with the tokens for the figures."""
    found = runs.read_all(folder, "manifolds", Outcome, SETUPS)
    return [replace(one, shown=_read_shown(folder / f"manifolds-{one.setup}.npz")) for one in found]


def _read_shown(path: Path) -> Shown | None:
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:  # a zip has checksums of its own
            return Shown(**arrays)
    except (OSError, ValueError, TypeError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise FileError(f"{path} does not hold tokens for figures: {error}") from error
