"""Ours beside published for the contrastive paper's geometry, and two models beside each other."""

from __future__ import annotations

import torch

from isoscope.errors import UndefinedError
from isoscope.metrics.contextual_change import RunningCorrelation, running_correlation
from isoscope.metrics.dimensions import DimensionShares
from isoscope_papers.contrastive.run import Geometry
from isoscope_papers.contrastive.setups import N_SENTENCES, SETUPS, Setup
from isoscope_papers.verdicts import Row, Verdict, below, unpublished, within

SIMILARITY, NORM, R2 = 0.0005, 0.002, 0.04  # tolerances
N_SD = 4  # the tolerance of what is sampled, in standard deviations over the seeds
READINGS = {
    "self-similarity": "self_similarity",
    "intra-sentence": "intra_similarity",
    "anisotropy": "anisotropy",
    "norm": "norm",
    "adjusted self-similarity": "adjusted_self_similarity",
    "adjusted intra-sentence": "adjusted_intra_similarity",
}


def setup_of(found: Geometry) -> Setup:
    """The setup a run is of; one without published figures where the paper has none."""
    return SETUPS.get(found.setup, Setup(found.setup, found.setup, found.model))


def adjusted(reading: dict[str, float]) -> dict[str, float]:
    """A layer's readings, with both similarities less the anisotropy."""
    less = {
        f"adjusted_{name}": reading[name] - reading["anisotropy"]
        for name in ("self_similarity", "intra_similarity")
    }
    return {**reading, **less}


def rows(found: Geometry) -> list[Row]:
    """Ours beside published, quantity by quantity."""
    setup = setup_of(found)
    theirs = setup.published
    same = found.n_sentences == N_SENTENCES and len(found.paper) == len(theirs.self_similarity)
    result: list[Row] = []
    for layer, reading in enumerate(map(adjusted, found.paper)):
        result += [_layer_row(setup, layer, words, reading, same) for words in READINGS]
    result += _dimension_rows(setup, found, same)
    return [*result, *_claims(setup.title, found, same)] if theirs.is_contrastive else result


def _layer_row(setup: Setup, layer: int, words: str, reading: dict[str, float], same: bool) -> Row:
    name = READINGS[words]
    listed = getattr(setup.published, name)
    value = listed[layer] if layer < len(listed) else None
    sampled = N_SD * reading["anisotropy_sd"]
    tolerance = {
        "anisotropy": sampled,
        "norm": NORM,
        "adjusted_self_similarity": SIMILARITY + sampled,
        "adjusted_intra_similarity": SIMILARITY + sampled,
    }.get(name, SIMILARITY)
    digits = 4 if name in ("self_similarity", "intra_similarity") else 3
    return within(
        setup.title, f"{words}, layer {layer}", reading[name], value,
        tolerance=tolerance, comparable=same, digits=digits,
    )  # fmt: skip


def _dimension_rows(setup: Setup, found: Geometry, same: bool) -> list[Row]:
    theirs, last = setup.published, found.paper[-1]
    half = within(
        setup.title, "dimensions for 50 %", last["dimensions_for_half"], theirs.dimensions_for_half,
        tolerance=1, comparable=same, digits=0,
    )  # fmt: skip
    result = [
        unpublished(setup.title, f"top {place} share", share, 4)
        for place, share in enumerate(found.shares["paper"][:3], 1)
    ]
    result += [
        unpublished(setup.title, f"dimensions for {share:.0%}".replace("%", " %"), n_for(found, share), 0)
        for share in (0.1, 0.2)
    ]
    result.append(half)
    for place, k in enumerate(found.informativity["k"]):
        value = theirs.informativity[place] if place < len(theirs.informativity) else None
        mean = found.informativity["paper"]["mean"][place]
        result.append(
            within(setup.title, f"r², k = {k}", mean, value, tolerance=R2, comparable=same, digits=3)
        )
    return result


def n_for(found: Geometry, share: float, protocol: str = "paper") -> int:
    """How many of the top dimensions make a share of the last layer's self-similarity."""
    return DimensionShares(torch.tensor(found.shares[protocol], dtype=torch.float64)).n_for(share)


def _claims(title: str, found: Geometry, same: bool) -> list[Row]:
    """What the paper says in words of the models after contrastive training."""
    layers = [adjusted(reading) for reading in found.paper]
    last, intra = layers[-1], [layer["adjusted_intra_similarity"] for layer in layers]
    ratio = last["norm"] / layers[-2]["norm"]
    gain = intra[-1] - max(intra[:-1])
    return [
        below(title, "last layer: anisotropy", last["anisotropy"], 0.02, comparable=same, digits=3),
        _above(title, "last layer: adjusted intra-sentence over the highest before", gain, 0, same),
        below(title, "last layer: norm over that of the one before", ratio, 1, comparable=same, digits=3),
        below(title, "last layer: top 1 share", last["top_share"], 0.01, comparable=same, digits=4),
    ]


def _above(setup: str, quantity: str, ours: float, bound: float, same: bool) -> Row:
    verdict = Verdict.REPRODUCED if ours > bound else Verdict.DIFFERS
    return Row(setup, quantity, ours, f"> {bound}", verdict if same else Verdict.NOT_COMPARABLE, 3)


def word(token: str) -> str:
    """A token for reading: without its tokenizer's mark of a space.

    >>> word("Ġthe")
    'the'
    """
    return token.replace("Ġ", "").replace("▁", "") or token


def token_values(found: Geometry) -> dict[str, float]:
    """The adjusted self-similarity of the most frequent tokens, the most frequent first."""
    return dict(zip(found.tokens["name"], found.tokens["adjusted_self_similarity"], strict=True))


def token_correlation(first: Geometry, second: Geometry) -> RunningCorrelation | None:
    """How two models agree on their tokens as tokens are added; None where they share too few."""
    return _running(token_values(first), token_values(second))


def change_correlation(first: Geometry, second: Geometry) -> RunningCorrelation | None:
    """The same of the changes against the models before them."""
    pairs = [dict(zip(run.change["name"], run.change["change"], strict=True)) for run in (first, second)]
    return _running(pairs[0], pairs[1])


def _running(first: dict[str, float], second: dict[str, float]) -> RunningCorrelation | None:
    try:
        curve = running_correlation(first, second)
        if len(curve.names) < min(len(first), len(second)) / 2:  # other tokens, split by another rule
            return None
        curve.highest()
    except UndefinedError:
        return None
    return curve
