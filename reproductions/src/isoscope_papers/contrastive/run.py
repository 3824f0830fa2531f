"""Run a model over the sentences of the contrastive paper: every layer by its protocol, and by clean ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

import isoscope as iso
from isoscope.errors import InputError
from isoscope_papers.contrastive import setups
from isoscope_papers.contrastive.last_layer import last_layer, one_each
from isoscope_papers.contrastive.setups import CLEAN, N_SEEDS, PAPER, SETUPS, Protocol, Setup
from isoscope_papers.corpora import load_texts
from isoscope_papers.study import Place


@dataclass(frozen=True)
class Geometry:
    """What was measured of one model."""

    setup: str
    model: str
    source: str  # of the sentences
    n_sentences: int
    n_tokens: int
    n_special: int
    n_types: int  # that count in the paper's self-similarity
    n_dims: int
    seeds: list[int]  # of what is sampled
    paper: list[dict[str, float]]  # the readings of each layer by the paper's protocol,
    clean: list[dict[str, float]]  # by the clean one,
    without_sinks: list[dict[str, float]]  # and over tokens that are no attention sinks; empty without sinks
    sinks: dict[str, Any]  # in words, their share of tokens, and by layer their median norm and that of all
    shares: dict[
        str, list[float]
    ]  # of the last layer's dimensions, the largest first, by "paper" and "clean"
    informativity: dict[str, Any]  # k; mean and standard deviation of r² with special tokens and without
    tokens: dict[str, list[Any]]  # the most frequent: name, count, adjusted self-similarity in the last layer
    last: dict[str, float] = field(default_factory=dict)  # readings that single claims are about
    seconds: float = 0.0

    @property
    def declared(self) -> Setup:
        """Return the setup it is of; one without published figures where the paper has none."""
        return SETUPS.get(self.setup, Setup(self.setup, self.setup, self.model))

    @property
    def title(self) -> str:
        """Return its name in figures and tables."""
        return self.declared.title

    @property
    def token_values(self) -> dict[str, float]:
        """Return the adjusted self-similarity of the most frequent tokens, the most frequent first."""
        return dict(zip(self.tokens["name"], self.tokens["adjusted_self_similarity"], strict=True))

    def r2(self, view: str) -> dict[int, float]:
        """Return the mean r² without the top k dimensions by k, with special tokens ("paper") or without."""
        return dict(zip(self.informativity["k"], self.informativity[view]["mean"], strict=True))

    def layers(self, view: str = "paper") -> list[dict[str, float]]:
        """Return the readings of every layer, with both similarities less the anisotropy."""
        return [
            reading | {f"adjusted_{name}": reading[name] - reading["anisotropy"]
                       for name in ("self_similarity", "intra_similarity")}
            for reading in getattr(self, view)
        ]  # fmt: skip

    def n_for(self, share: float, view: str = "paper") -> int:
        """Return how many of the top dimensions make a share of the last layer's self-similarity."""
        return iso.metrics.DimensionShares(torch.tensor(self.shares[view], dtype=torch.float64)).n_for(share)


def measure_geometry(
    setup: Setup, place: Place, *, seeds: int | Sequence[int] = N_SEEDS, progress: bool | None = None
) -> Geometry:
    """Read the sentences with a model and measure every layer."""
    began = time.perf_counter()
    texts = load_texts(setups.TEXTS, split=setups.SPLIT, data=place.data, download=place.download)
    loaded = iso.models.load_language_model(setup.model, device=place.device, download=place.download)
    can_pad = loaded.tokenizer.pad_token_id is not None and not loaded.is_causal
    states = iso.models.token_states(
        texts.columns[0], model=loaded, padding=can_pad, truncate=True, progress=progress
    )
    found = geometry_of(setup, states, seeds=seeds, source=texts.source)
    return replace(found, seconds=time.perf_counter() - began)


def geometry_of(
    setup: Setup, states: iso.models.TokenStates, *, seeds: int | Sequence[int] = N_SEEDS, source: str = ""
) -> Geometry:
    """Measure states that are there already."""
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if len(numbers) < 2:
        raise InputError(
            argument="seeds", got=seeds, wanted="at least 2, to estimate the spread over samples"
        )
    rows, last = states.rows, states.layers[-1]
    sinks, keep = _sinks(states)

    def view(protocol: Protocol, mask: Tensor | None = None) -> list[dict[str, float]]:
        return [layer_readings(states, layer, protocol, numbers, mask) for layer in states.layers]

    shares = {
        name: iso.metrics.self_similarity_shares(_types(states, last, protocol), diagonal=protocol.diagonal)
        for name, protocol in (("paper", PAPER), ("clean", CLEAN))
    }
    return Geometry(
        setup=setup.name, model=setup.model, source=source, n_sentences=rows.sentences.n_labels,
        n_tokens=int((~rows.is_padding).sum()), n_special=int(rows.is_special.sum()),
        n_types=int((_types(states, last, PAPER).counts >= 2).sum()), n_dims=states.n_dims, seeds=numbers,
        paper=view(PAPER), clean=view(CLEAN), without_sinks=[] if keep is None else view(CLEAN, keep),
        sinks=sinks, shares={name: found.shares[found.order].tolist() for name, found in shares.items()},
        informativity=_informativity(states, last, shares["paper"].order, numbers),
        tokens=_tokens(states.space(last, rows=token_rows(rows, CLEAN))),
        last=last_layer(
            states.space(last, rows=token_rows(rows, CLEAN, keep)),
            states.space(last, rows=token_rows(rows, PAPER, keep)), seed=numbers[0],
        ),
    )  # fmt: skip


def layer_readings(
    states: iso.models.TokenStates,
    layer: int,
    protocol: Protocol,
    seeds: Sequence[int],
    keep: Tensor | None = None,
) -> dict[str, float]:
    """Read one layer by one protocol; `keep` is a mask of the tokens that are looked at."""
    tokens = states.space(layer, rows=token_rows(states.rows, protocol, keep))
    types = _types(states, layer, protocol, keep)
    shares = iso.metrics.self_similarity_shares(types, diagonal=protocol.diagonal)
    found = {
        "self_similarity": float(iso.metrics.self_similarity(types)),
        "intra_similarity": float(iso.metrics.intra_similarity(tokens)),
        "norm": iso.metrics.norm_statistics(tokens).mean,
        "top_share": shares.top(1)[0],
        "dimensions_for_half": shares.n_for(0.5),
    }
    if protocol.sampled:
        sample = torch.tensor(
            [
                iso.metrics.sampled_anisotropy(tokens, n_sentences=setups.N_SAMPLED, seed=seed)
                for seed in seeds
            ]
        )
        return found | {"anisotropy": float(sample.mean()), "anisotropy_sd": float(sample.std())}
    exact = {"anisotropy": float(iso.mean_cosine(tokens)), "isoscore": float(iso.isoscore(tokens))}
    return found | exact | {"anisotropy_sd": 0.0}


def token_rows(rows: iso.models.TokenRows, protocol: Protocol, keep: Tensor | None = None) -> Tensor:
    """Mark the (n,) tokens that count in anisotropy, intra-sentence similarity and norms; never padding."""
    mask = ~rows.is_padding if protocol.special else ~(rows.is_padding | rows.is_special)
    return mask if keep is None else mask & keep


def type_rows(rows: iso.models.TokenRows, protocol: Protocol, keep: Tensor | None = None) -> Tensor:
    """Mark the (n,) tokens that count in self-similarity."""
    mask = rows.counts >= protocol.min_count
    if not protocol.padding:
        mask &= ~rows.is_padding
    if not protocol.special:
        mask &= ~rows.is_special
    if protocol.first_only:
        keys = rows.sentences.codes * rows.types.n_labels + rows.types.codes
        order = keys.sort(stable=True)
        is_first = torch.ones(len(rows), dtype=torch.bool)
        is_first[order.indices[1:]] = order.values[1:] != order.values[:-1]
        mask &= is_first
    return mask if keep is None else mask & keep


def _types(
    states: iso.models.TokenStates, layer: int, protocol: Protocol, keep: Tensor | None = None
) -> iso.statistics.GroupDirections:
    """Sum a layer's unit vectors by token type, over the tokens that count in self-similarity."""
    space = states.space(layer, rows=type_rows(states.rows, protocol, keep))
    return iso.statistics.GroupDirections.of(space, space.token_types, squares=not protocol.diagonal)


def _informativity(
    states: iso.models.TokenStates, layer: int, order: Tensor, seeds: Sequence[int]
) -> dict[str, Any]:
    """Return r² over one random token from each of the first 1,000 sentences, by protocol."""
    ks = [k for k in setups.REMOVED if k < states.n_dims]
    early = states.rows.sentences.codes < setups.N_SAMPLED
    found: dict[str, Any] = {"k": ks}
    for name, protocol in (("paper", PAPER), ("clean", CLEAN)):
        space = states.space(layer, rows=token_rows(states.rows, protocol, early))
        samples = (one_each(space, seed) for seed in seeds)
        curves = torch.tensor(
            [
                list(iso.metrics.informativity_curve(sample, n_dimensions=ks, order=order).values())
                for sample in samples
            ]
        )
        found[name] = {"mean": curves.mean(dim=0).tolist(), "sd": curves.std(dim=0).tolist()}
    return found


def _sinks(states: iso.models.TokenStates) -> tuple[dict[str, Any], Tensor | None]:
    """Return what the attention sinks are, and a mask of the other tokens; None where there are no sinks."""
    real = ~states.rows.is_padding
    known = states.rows.select(real)
    norms = torch.stack([states.vectors(layer)[real].double().norm(dim=1).cpu() for layer in states.layers])
    sinks = iso.metrics.find_sinks(
        norms, positions=known.positions, token_types=known.types, layers=states.layers
    )
    about = {"names": list(sinks.names), "share": len(sinks) / sinks.n_rows, "median": sinks.medians.tolist()}
    if not len(sinks):
        return about | {"norm": []}, None
    keep = torch.ones(len(states), dtype=torch.bool)
    keep[real.nonzero().flatten()[sinks.mask]] = False
    return about | {"norm": sinks.sink_norms.quantile(0.5, dim=0).tolist()}, keep


def _tokens(space: iso.Space) -> dict[str, list[Any]]:
    """Return the most frequent tokens with their adjusted self-similarity."""
    types = iso.statistics.GroupDirections.of(space, space.token_types)
    counts = dict(zip(types.names, types.counts.long().tolist(), strict=True))
    adjusted = dict(list(iso.metrics.adjusted_type_similarities(types).items())[: setups.N_TOKENS])
    return {
        "name": list(adjusted),
        "count": [counts[name] for name in adjusted],
        "adjusted_self_similarity": list(adjusted.values()),
    }
