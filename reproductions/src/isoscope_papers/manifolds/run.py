"""Run a setup of *Clusters and Manifolds*; keep what was found as JSON, with a few points for the figures."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope import (
    TokenStates,
    find_sinks,
    load_language_model,
    mean_cosine,
    read,
    static_vectors,
    token_states,
)
from isoscope.arrays import as_matrix
from isoscope.encoders import best_device, vocabulary
from isoscope.errors import FileError, InputError
from isoscope.progress import Bar
from isoscope_papers.corpora import load_texts
from isoscope_papers.manifolds.layers import (
    LayerFigures,
    LayerParts,
    MeasuredLayer,
    drawn,
    mean_lids,
    measure_layer,
    measure_parts,
)
from isoscope_papers.manifolds.setups import (
    GLOVE,
    LID_POINTS,
    PARTS_TOKENS,
    PUBLISHED,
    SETUPS,
    WINDOW,
    Published,
    Setup,
)
from isoscope_papers.runs import keep as keep_run
from isoscope_papers.runs import read_all

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
        layers: (L,) their numbers.
        axes: (L, m, 3) float16 on the first principal components, scaled to 1.
        clusters: (L, m) uint8.
        positions: (m,) in the window.
        log_frequencies: (m,) log₁₀ of how often the type occurs.
    """

    layers: np.ndarray
    axes: np.ndarray
    clusters: np.ndarray
    positions: np.ndarray
    log_frequencies: np.ndarray

    def at(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the (m, 3) places of the tokens in a layer, and their clusters."""
        place = self.layers.tolist().index(layer)
        return self.axes[place].astype(float), self.clusters[place]


@dataclass(frozen=True)
class Outcome:
    """A setup that was run.

    Attributes:
        setup, model, title, is_static: of the setup.
        about: source, split, tokens, types, dimensions, window, device, seconds, seed, library versions.
        sinks: what attention sinks there are, in words.
        layers: figures of every layer with all tokens, the embedding layer first; none of a static table.
        without_sinks: the same without attention sinks; empty where there are none.
        static: figures of a static table.
        parts: what each layer is made of, without sinks; of the setups for this alone.
        shown: tokens for the figures, kept in a file of their own.
    """

    setup: str
    model: str
    title: str
    is_static: bool
    about: Mapping[str, Any]
    sinks: tuple[str, ...] = ()
    layers: tuple[LayerFigures, ...] = ()
    without_sinks: tuple[LayerFigures, ...] = ()
    static: StaticFigures | None = None
    parts: tuple[LayerParts, ...] = ()
    shown: Shown | None = field(default=None, repr=False, compare=False)

    @property
    def published(self) -> Published | None:
        """The line of the paper's table 3, where this is its very model."""
        return PUBLISHED.get(Path(self.model).name)

    @property
    def is_causal(self) -> bool:
        """Whether the model is GPT-like."""
        declared = SETUPS.get(self.setup)
        return declared.is_causal if declared else "gpt" in self.setup.lower()

    @property
    def plain_layers(self) -> tuple[LayerFigures, ...]:
        """Without sinks where there are any."""
        return self.without_sinks or self.layers

    def blocks(self, layers: Iterable[Any] | None = None) -> dict[int, Any]:
        """Figures by the number of the layer, without the embedding layer: the paper's layer 0 is a block."""
        chosen = self.plain_layers if layers is None else layers
        return {n: one for n, one in zip(self.about.get("layers", ()), chosen, strict=False) if n > 0}


def run_setup(
    setup: Setup,
    *,
    data: Path | None = None,
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
    if seed < 0:
        raise InputError(f"seed is {seed}; wanted a whole number from 0 on")
    place = best_device(device)
    began = time.perf_counter()
    if setup.is_static:
        return _static(setup, place, seed, began)
    texts = load_texts(CORPUS, data=data, split=split, download=download)
    model = load_language_model(setup.model, device=place, download=download)
    window = min(WINDOW, model.max_length or WINDOW)
    if setup.parts and max_tokens is None:
        max_tokens = PARTS_TOKENS
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
    about: Mapping[str, Any],
    seed: int,
    began: float,
    progress: bool | None = None,
) -> Outcome:
    """Measure every layer: with all tokens but special ones, and without attention sinks; or its parts."""
    counted = ~(states.rows.is_special | states.rows.is_padding)
    norms = torch.stack([states.vectors(layer).norm(dim=1).cpu() for layer in states.layers])
    rows = states.rows.select(counted)
    sinks = find_sinks(
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
                vectors = states.vectors(layer)
                of_kept = states.rows.select(kept)
                parts.append(measure_parts(vectors[kept.to(vectors.device)], of_kept.types.seen(), seed=seed))
                continue
            whole.append(_measured(states, layer, places, sinks.mask, seed))
            if len(sinks):
                without.append(_measured(states, layer, kept, sinks.mask[~sinks.mask], seed))
    facts = dict(about) | {
        "model": states.model,
        "n_tokens": len(places),
        "n_types": rows.types.seen().n_labels,
        "n_sinks": len(sinks),
        "n_dims": states.n_dims,
        "layers": states.layers,
        "seed": seed,
        **_machine(states.vectors(states.layers[0]).device, began),
    }
    return replace(
        _outcome(setup, facts),
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
    return measure_layer(
        vectors[places.to(vectors.device)], rows.types.seen(), positions=rows.positions,
        log_frequencies=rows.counts.double().log10(), is_sink=is_sink, seed=seed,
    )  # fmt: skip


def _shown(states: TokenStates, places: Tensor, measured: list[MeasuredLayer], seed: int) -> Shown:
    some = drawn(len(places), N_SHOWN, seed)
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
    table = static_vectors(vocabulary(), model=GLOVE)[0] if setup.model == GLOVE else read(setup.model)
    X = as_matrix(table).float().to(device)
    figures = StaticFigures(len(X), int(X.shape[1]), float(mean_cosine(X)), *mean_lids(X, seed=seed))
    facts = {"model": Path(setup.model).name, "source": "its own words", "seed": seed}
    return replace(_outcome(setup, facts | _machine(device, began)), static=figures)


def _machine(device: torch.device, began: float) -> dict[str, Any]:
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "lid_points": LID_POINTS,
        "seconds": round(time.perf_counter() - began, 1),
    }


def keep(found: Outcome, folder: Path) -> None:
    """Write `manifolds-NAME.json`, and `manifolds-NAME.npz` with the tokens for the figures."""
    keep_run(replace(found, shown=None), folder / f"{_STEM}{found.setup}.json")
    if found.shown is not None:
        np.savez_compressed(folder / f"{_STEM}{found.setup}.npz", allow_pickle=False, **vars(found.shown))


def read_outcomes(folder: Path) -> list[Outcome]:
    """Read the runs a folder keeps, those of `SETUPS` first and in their order."""
    order = list(SETUPS)
    found = sorted(
        read_all(folder, _STEM, Outcome),
        key=lambda one: order.index(one.setup) if one.setup in order else len(order),
    )
    return [replace(one, shown=_read_shown(folder / f"{_STEM}{one.setup}.npz")) for one in found]


def _read_shown(path: Path) -> Shown | None:
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:  # a zip has checksums of its own
            return Shown(**arrays)
    except (OSError, ValueError, TypeError) as error:
        raise FileError(f"{path} does not hold tokens for figures: {error}") from error
