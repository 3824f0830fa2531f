"""Run a model over the sentences of the contrastive paper: every layer by its protocol, and by clean ones."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope.encoders import TokenRows, TokenStates, load_language_model, token_states
from isoscope.errors import FileError, InputError
from isoscope.io.sealed import read_json, write_json
from isoscope.metrics.contextual import draw_rows, intra_similarity, sampled_anisotropy, self_similarity
from isoscope.metrics.contextual_change import adjusted_type_similarities, self_similarity_change
from isoscope.metrics.cosine import mean_cosine, norm_statistics
from isoscope.metrics.dimensions import DimensionShares, self_similarity_shares
from isoscope.metrics.informativity import informativity_curve
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.sinks import find_sinks
from isoscope.space import Space
from isoscope.statistics.groups import GroupDirections
from isoscope_papers.contrastive.setups import (
    CLEAN,
    N_SAMPLED,
    N_SEEDS,
    N_TOKENS,
    PAPER,
    REMOVED,
    SPLIT,
    TEXTS,
    Protocol,
    Setup,
)
from isoscope_papers.corpora import load_texts
from isoscope_papers.pages import make_folder

_PREFIX = "contrastive-"  # of the files that keep runs


@dataclass(frozen=True)
class Geometry:
    """What was measured of one model; everything is JSON-ready.

    Attributes:
        setup, model: what was run.
        source: where the sentences came from.
        n_sentences, n_tokens, n_special, n_types, n_dims: how much there is; types are those that count in
            the paper's self-similarity.
        seeds: of what is sampled.
        paper, clean, without_sinks: a dict of readings for each layer, by each protocol; the last one is
            the clean one over tokens that are no attention sinks, empty where there are none.
        sinks: the sinks in words, their share of tokens, and by layer their median norm and that of all.
        shares: of the last layer's dimensions in self-similarity, the largest first, by "paper" and "clean".
        informativity: k, then mean and standard deviation over the seeds of r² with and without special
            tokens.
        tokens: name, count and adjusted self-similarity in the last layer of the most frequent tokens.
        change: the self-similarity change against another model; empty where none was given.
        seconds: how long it took.
    """

    setup: str
    model: str
    source: str
    n_sentences: int
    n_tokens: int
    n_special: int
    n_types: int
    n_dims: int
    seeds: list[int]
    paper: list[dict[str, float]]
    clean: list[dict[str, float]]
    without_sinks: list[dict[str, float]]
    sinks: dict[str, Any]
    shares: dict[str, list[float]]
    informativity: dict[str, Any]
    tokens: dict[str, list[Any]]
    change: dict[str, Any]
    seconds: float


def measure_geometry(
    setup: Setup,
    *,
    before: str | None = None,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    device: str | None = None,
    seeds: int | Sequence[int] = N_SEEDS,
    progress: bool | None = None,
) -> Geometry:
    """Read the sentences with a model and measure every layer.

    Args:
        setup: which model; of `SETUPS`, or any.
        before: a model to compare with, such as the same one before contrastive training.
        data: folder of the corpora; ISOSCOPE_DATA where not given.
        download: fetch sentences and models where they are not on this machine.
        device: where the model computes.
        seeds: how many samples, or their seeds.
        progress: show a bar.
    """
    began = time.perf_counter()
    texts = load_texts(TEXTS, split=SPLIT, data=data, download=download)
    states = _states(texts.columns[0], setup.model, download=download, device=device, progress=progress)
    change: dict[str, Any] = {}
    if before is not None:
        earlier = _states(texts.columns[0], before, download=download, device=device, progress=progress)
        change = token_changes(earlier, states)
    found = geometry_of(setup, states, seeds=seeds, change=change, source=texts.source)
    return Geometry(**{**asdict(found), "seconds": time.perf_counter() - began})


def _states(texts: Sequence[str], model: str, *, progress: bool | None, **options: Any) -> TokenStates:
    loaded = load_language_model(model, **options)
    can_pad = loaded.tokenizer.pad_token_id is not None and not loaded.is_causal
    return token_states(texts, model=loaded, padding=can_pad, truncate=True, progress=progress)


def geometry_of(
    setup: Setup,
    states: TokenStates,
    *,
    seeds: int | Sequence[int] = N_SEEDS,
    change: dict[str, Any] | None = None,
    source: str = "",
) -> Geometry:
    """Measure states that are there already."""
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if len(numbers) < 2:
        raise InputError(f"seeds is {seeds}; wanted at least 2, whose spread says how near a sample is")
    rows, last = states.rows, states.layers[-1]
    sinks, keep = _sinks(states)
    views = {
        name: [layer_readings(states, layer, protocol, seeds=numbers, keep=mask) for layer in states.layers]
        for name, protocol, mask in (
            ("paper", PAPER, None),
            ("clean", CLEAN, None),
            ("sinkless", CLEAN, keep),
        )
        if name != "sinkless" or mask is not None
    }
    shares = {
        name: _shares(states, last, protocol) for name, protocol in (("paper", PAPER), ("clean", CLEAN))
    }
    return Geometry(
        setup=setup.name,
        model=setup.model,
        source=source,
        n_sentences=rows.sentences.n_labels,
        n_tokens=int((~rows.is_padding).sum()),
        n_special=int(rows.is_special.sum()),
        n_types=int((type_directions_of(states, last, PAPER).counts >= 2).sum()),
        n_dims=states.n_dims,
        seeds=numbers,
        paper=views["paper"],
        clean=views["clean"],
        without_sinks=views.get("sinkless", []),
        sinks=sinks,
        shares={name: found.shares[found.order].tolist() for name, found in shares.items()},
        informativity=_informativity(states, last, shares["paper"].order, numbers),
        tokens=_tokens(states, last),
        change=change or {},
        seconds=0.0,
    )


def layer_readings(
    states: TokenStates,
    layer: int,
    protocol: Protocol,
    *,
    seeds: Sequence[int],
    keep: Tensor | None = None,
) -> dict[str, float]:
    """One layer by one protocol; `keep` is a mask of the tokens that are looked at."""
    tokens = states.space(layer, rows=token_rows(states.rows, protocol, keep))
    types = type_directions_of(states, layer, protocol, keep)
    if protocol.sampled:
        draws = torch.tensor([sampled_anisotropy(tokens, n_sentences=N_SAMPLED, seed=seed) for seed in seeds])
        anisotropy, spread = float(draws.mean()), float(draws.std())
    else:
        anisotropy, spread = float(mean_cosine(tokens)), 0.0
    shares = self_similarity_shares(types, diagonal=protocol.diagonal)
    found = {
        "self_similarity": float(self_similarity(types)),
        "intra_similarity": float(intra_similarity(tokens)),
        "anisotropy": anisotropy,
        "anisotropy_sd": spread,
        "norm": norm_statistics(tokens).mean,
        "top_share": shares.top(1)[0],
        "dimensions_for_half": shares.n_for(0.5),
    }
    if not protocol.sampled:
        found["isoscore"] = float(isoscore(tokens))
    return found


def token_rows(rows: TokenRows, protocol: Protocol, keep: Tensor | None = None) -> Tensor:
    """(n,) the tokens that count in anisotropy, intra-sentence similarity and norms; padding never does."""
    mask = ~rows.is_padding
    if not protocol.special:
        mask &= ~rows.is_special
    return mask if keep is None else mask & keep


def type_rows(rows: TokenRows, protocol: Protocol, keep: Tensor | None = None) -> Tensor:
    """(n,) the tokens that count in self-similarity."""
    mask = rows.counts >= protocol.min_count
    if not protocol.padding:
        mask &= ~rows.is_padding
    if not protocol.special:
        mask &= ~rows.is_special
    if protocol.first_only:
        mask &= _is_first(rows)
    return mask if keep is None else mask & keep


def _is_first(rows: TokenRows) -> Tensor:
    """(n,) whether a token is the first of its type in its sentence."""
    keys = rows.sentences.codes * rows.types.n_labels + rows.types.codes
    _, places = torch.unique(keys, return_inverse=True)
    first = torch.full((int(places.max()) + 1,), len(rows)).scatter_reduce(
        0, places, torch.arange(len(rows)), "amin"
    )
    mask = torch.zeros(len(rows), dtype=torch.bool)
    mask[first] = True
    return mask


def type_directions_of(
    states: TokenStates, layer: int, protocol: Protocol, keep: Tensor | None = None
) -> GroupDirections:
    """The unit vectors of a layer summed by token type, of the tokens that count in self-similarity."""
    space = states.space(layer, rows=type_rows(states.rows, protocol, keep))
    return GroupDirections.of(space, space.token_types, squares=not protocol.diagonal)


def _shares(states: TokenStates, layer: int, protocol: Protocol) -> DimensionShares:
    return self_similarity_shares(type_directions_of(states, layer, protocol), diagonal=protocol.diagonal)


def _informativity(states: TokenStates, layer: int, order: Tensor, seeds: Sequence[int]) -> dict[str, Any]:
    """r² over one random token from each of the first 1,000 sentences, with special tokens and without."""
    ks = [k for k in REMOVED if k < states.n_dims]
    early = states.rows.sentences.codes < N_SAMPLED
    found: dict[str, Any] = {"k": ks}
    for name, protocol in (("paper", PAPER), ("clean", CLEAN)):
        space = states.space(layer, rows=token_rows(states.rows, protocol, early))
        curves = torch.tensor([list(_curve(space, ks, order, seed).values()) for seed in seeds])
        found[name] = {"mean": curves.mean(dim=0).tolist(), "sd": curves.std(dim=0).tolist()}
    return found


def _curve(space: Space, ks: Sequence[int], order: Tensor, seed: int) -> dict[int, float]:
    assert space.sentences is not None
    drawn = draw_rows(space.sentences, at_most=1, generator=torch.Generator().manual_seed(seed))
    return informativity_curve(space.vectors[drawn], ks=ks, order=order)


def _sinks(states: TokenStates) -> tuple[dict[str, Any], Tensor | None]:
    """What the attention sinks are, and a mask of the tokens that are none; None where there are no sinks."""
    real = ~states.rows.is_padding
    known = states.rows.select(real)
    norms = torch.stack([states.vectors(layer)[real].double().norm(dim=1).cpu() for layer in states.layers])
    sinks = find_sinks(norms, positions=known.positions, token_types=known.types, layers=states.layers)
    if not len(sinks):
        return {"names": [], "share": 0.0, "median": sinks.medians.tolist(), "norm": []}, None
    keep = torch.ones(len(states), dtype=torch.bool)
    keep[real.nonzero().flatten()[sinks.mask]] = False
    about = {
        "names": list(sinks.names),
        "share": len(sinks) / sinks.n_rows,
        "median": sinks.medians.tolist(),
        "norm": sinks.sink_norms.quantile(0.5, dim=0).tolist(),
    }
    return about, keep


def _tokens(states: TokenStates, layer: int) -> dict[str, list[Any]]:
    """The most frequent tokens by the clean protocol, with their adjusted self-similarity."""
    space = states.space(layer, rows=token_rows(states.rows, CLEAN))
    types = GroupDirections.of(space, space.token_types)
    counts = dict(zip(types.names, types.counts.long().tolist(), strict=True))
    adjusted = dict(list(adjusted_type_similarities(types).items())[:N_TOKENS])
    return {
        "name": list(adjusted),
        "count": [counts[name] for name in adjusted],
        "adjusted_self_similarity": list(adjusted.values()),
    }


def token_changes(before: TokenStates, after: TokenStates) -> dict[str, Any]:
    """The change of self-similarity by token between the last layers of two models, by the clean protocol."""
    spaces = [
        states.space(states.layers[-1], rows=token_rows(states.rows, CLEAN)) for states in (before, after)
    ]
    change = self_similarity_change(*spaces, n_types=N_TOKENS)
    return {
        "before": before.model,
        "name": list(change.changes),
        "count": list(change.counts.values()),
        "change": list(change.changes.values()),
        "only_before": len(change.only_before),
        "only_after": len(change.only_after),
    }


def keep_run(found: Geometry, folder: Path) -> Path:
    """Write a run below a folder of runs, by its setup's name."""
    name = re.sub(r"[^\w.-]", "_", found.setup)
    make_folder(folder)
    return write_json(folder / f"{_PREFIX}{name}.json", asdict(found))


def read_runs(folder: Path) -> list[Geometry]:
    """The runs kept below a folder, by name."""
    found = [_read(path) for path in sorted(folder.glob(f"{_PREFIX}*.json"))]
    if not found:
        raise InputError(f"{folder} holds no runs; wanted {_PREFIX}….json, as --output keeps them")
    return found


def _read(path: Path) -> Geometry:
    try:
        about = read_json(path, sealed=False)
        return Geometry(**{field.name: about[field.name] for field in fields(Geometry)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path} is not a kept run: {type(error).__name__}: {error}") from error
