"""What the runs say of the claims of Cai et al. 2021, each by a stated bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import torch
from scipy.stats import spearmanr

from isoscope import twonn
from isoscope_papers.manifolds.layers import Followed, LayerFigures, figure_of, followed
from isoscope_papers.manifolds.run import Outcome
from isoscope_papers.rows import OTHER_DATA, Row, unpublished, within
from isoscope_papers.verdict import Finding, Verdict, by_interval, decide, on, ranges, rho_interval
from isoscope_papers.words import between, number, signed, span

HIGH_INTER, HIGH_INTRA = 0.2, 0.4  # what the paper's first figure shows every layer of every model above
NEAR_ZERO = 0.05
NEAR_ONE = 0.9  # a mean cosine of a narrow cone; an IsoScore that is nearly perfect
STRONG = 0.2  # an IsoScore below is strong anisotropy
TELLS = 0.5  # share of the variance of position or frequency that the first three components must tell
MOST = 0.5  # share of the variance the first three components must have for the space to be low-dimensional
ISOLATED = 0.5  # a silhouette of clusters that stand apart
APART = 0.9  # balanced accuracy of a linear classifier of symbols and words
SHEET = 2.5  # dimension of the points on three components; that of a rolled sheet is 2
FIRST = 0.25  # share of the layers that count as the first ones
LID_TOLERANCE = 0.1  # of the published mean: texts and their number differ
_SAME_SIZE = 0.5  # of the paper's number of vectors, to be comparable at all
_GPT_ONLY = "the paper says it of GPT models only"
_NOT_GPT = "the paper says it of GPT and GPT-2, whose positions are learned"
_TUNED = "tuned with a contrastive loss, which takes a cone apart"
_BESIDE = "it is tested beside what the paper says of GPT models only"

_OF_LAYERS: dict[str, tuple[str, Callable[[float], bool]]] = {  # the figure that decides, and its bound
    "s-inter-high": ("cosines.s_inter", lambda x: x > HIGH_INTER),
    "s-intra-high": ("cosines.s_intra", lambda x: x > HIGH_INTRA),
    "isolated-clusters": ("silhouette", lambda x: x >= ISOLATED),
    "adjusted-inter": ("adjusted.s_inter", lambda x: abs(x) < NEAR_ZERO),
    "adjusted-intra": ("adjusted.s_intra", lambda x: abs(x) < NEAR_ZERO),
    "istar/narrow-cone": ("cosines.s_inter", lambda x: x > NEAR_ONE),
}
_OF_FIRST_LAYERS = {  # the figure that has to be above a bound, and why an encoder cannot decide
    "low-dimensional": ("top_variance", MOST, _GPT_ONLY),
    "frequency-types": ("log_frequency.nearby", TELLS, _BESIDE),
    "position-structure": ("position.nearby", TELLS, _BESIDE),
}


def findings(outcomes: Sequence[Outcome]) -> Iterator[Finding]:
    """Yield every claim on every model: with all tokens, and without attention sinks where there are any."""
    tables = [one for one in outcomes if one.static is not None]
    for outcome in outcomes:
        evidence, subject = _evidence(outcome), outcome.title
        for subject, blocks in views(outcome):
            yield from on("manifolds", subject, _of_view(outcome, blocks, tables), evidence)
        if outcome.shown is not None:
            yield from on("manifolds", subject, _of_shown(outcome), evidence)
        if outcome.parts:
            layers = [one.blocks() for one in outcomes if one.model == outcome.model and one.layers]
            found = _of_parts(outcome, layers[0] if layers else {})
            yield from on("manifolds", outcome.title, found, evidence)
        else:
            claim = "manifolds/lid-static" if outcome.static else "manifolds/lid-contextual"
            why = OTHER_DATA if outcome.published else "another model than the paper's"
            yield lid_row(outcome).finding(claim, why=why, evidence=evidence)


def views(outcome: Outcome) -> list[tuple[str, dict[int, LayerFigures]]]:
    """Return the blocks of a model by number: all tokens, then without sinks where there are any."""
    both = {"": outcome.layers, ", no sinks": outcome.without_sinks}
    found = [(outcome.title + words, outcome.blocks(layers)) for words, layers in both.items() if layers]
    return [(subject, blocks) for subject, blocks in found if blocks]


def first_layers(blocks: Mapping[int, Any]) -> dict[int, Any]:
    """Return the first quarter of the blocks, at least two."""
    return {n: one for n, one in blocks.items() if n <= max(2, FIRST * max(blocks))}


def _values(blocks: Mapping[int, Any], path: str) -> dict[int, float]:
    """Return a figure of each block that has it, by number."""
    return {n: value for n, one in blocks.items() if (value := figure_of(one, path)) is not None}


def _over(
    claim: str, values: Mapping[int, float], holds: Callable[[float], bool], *, why: str = "",
    digits: int = 3, what: str = "", also: str = "",
) -> list[Finding]:  # fmt: skip
    """Return the finding on a claim that has to hold in every block; none where nothing has a value."""
    signs = {str(n): holds(value) for n, value in values.items()}
    n_held = sum(signs.values())
    count = "" if n_held == len(signs) else f" ({n_held} of {len(signs)} layers)"
    ours = f"{what}{span(list(values.values()), digits)}{also}{count}"
    return [decide(claim, signs, ours, where="in layers {}", why=why)] if signs else []


def _of_view(
    outcome: Outcome, blocks: Mapping[int, LayerFigures], tables: Sequence[Outcome]
) -> Iterator[Finding]:
    for claim, (path, holds) in _OF_LAYERS.items():
        values = _values(blocks, path)
        why = _TUNED if outcome.declared.is_tuned and path == "cosines.s_inter" else ""
        cone = claim == "istar/narrow-cone" and all(
            HIGH_INTER < value <= NEAR_ONE for value in values.values()
        )
        for one in _over(claim, values, holds, why=why, also=", high but not near 1" if cone else ""):
            if claim == "isolated-clusters" and one.condition:
                one = replace(one, condition=one.condition + _made_of(blocks))
            yield _falling(one, blocks) if claim == "adjusted-intra" else one
    first = first_layers(blocks)
    for claim, (path, bound, why) in _OF_FIRST_LAYERS.items():
        yield from _over(
            claim, _values(first, path), float(bound).__lt__, why="" if outcome.is_causal else why
        )
    dimensions = span(list(_values(blocks, "lid").values()), 1)
    why = "the paper's values are in a picture only, of other models"
    yield decide("lid-by-layer", True, dimensions, why=why)
    for claim, kind in (("lid-lower", "lid_cosine"), ("lid-lower-euclidean", "lid")):
        for table in tables:
            if (theirs := getattr(table.static, kind)) is not None:
                also = f" against {theirs:.1f} of {table.title}"
                yield from _over(claim, _values(blocks, kind), float(theirs).__gt__, digits=1, also=also)


def _made_of(blocks: Mapping[int, LayerFigures]) -> str:
    """Say of what the smallest of isolated clusters mostly is."""
    smallest = [one.smallest for one in blocks.values() if (one.silhouette or 0) >= ISOLATED and one.smallest]
    names = dict.fromkeys(
        "attention sinks" if one.sinks > MOST else repr(one.token.lstrip("Ġ▁"))
        for one in smallest
        if max(one.sinks, one.of_token) > MOST
    )
    return f"; the smallest is mostly {' or '.join(names)}" if names else ""


def _falling(one: Finding, blocks: Mapping[int, LayerFigures]) -> Finding:
    """Say where S_intra falls once clusters are centred, though it is near zero in no layer."""
    before, after = (_values(blocks, f"{part}.s_intra") for part in ("cosines", "adjusted"))
    both = [n for n in before if n in after]
    falls = [str(n) for n in both if after[n] < before[n]]
    if one.verdict is not Verdict.NOT_HELD or not falls:
        return one
    means = " → ".join(number(sum(part[n] for n in both) / len(both)) for part in (before, after))
    where = f"falls in layers {ranges(falls)}, near zero in none; mean {means}"
    return replace(one, verdict=Verdict.CONDITION, condition=where)


def _of_shown(outcome: Outcome) -> Iterator[Finding]:
    """Yield what the tokens in the figures show: frequency along the components, a sheet, clusters."""
    assert outcome.shown is not None
    first, why = first_layers(outcome.blocks()), "" if outcome.is_causal else _GPT_ONLY
    told = {n: told_by(outcome, n, "log_frequencies") for n in first}
    of_types = list(_values(first, "log_frequency.nearby").values())
    for one in _over(
        "frequency-structure", _values(told, "nearby"), lambda x: x > TELLS, why=why, what="R² "
    ):
        if one.verdict is Verdict.HELD and of_types and min(of_types) <= TELLS:
            where = f"in that tokens of one type lie together; among types R² {span(of_types, 2)}"
            one = replace(one, verdict=Verdict.CONDITION, condition=where)
        yield one
    layer = early_layer(outcome)
    dimension = twonn(torch.from_numpy(outcome.shown.at(layer)[0]))
    why = "" if outcome.is_causal and outcome.published else _NOT_GPT
    ours = f"layer {layer} on its three components has {dimension:.1f} dimensions (TwoNN)"
    yield decide("swiss-roll", dimension < SHEET, ours, why=why)
    best = max(_values(outcome.blocks(), "silhouette").values(), default=-1.0)
    ours = f"highest silhouette of a layer {best:.2f}; see the figure"
    yield decide("cluster-pictures", True, ours, why="other models than the paper's")


def _of_parts(outcome: Outcome, layers: Mapping[int, LayerFigures]) -> Iterator[Finding]:
    blocks = outcome.blocks(outcome.parts)
    yield from _over(
        "contextual-anisotropic", _values(blocks, "isoscore"), lambda x: x < STRONG, what="IsoScore "
    )
    claim = "symbols-words-gpt" if outcome.is_causal else "symbols-words-bert"
    yield from _over(claim, _values(blocks, "probe"), lambda x: x > APART, what="balanced accuracy ")
    inter, centred, within_clusters = (
        _values(blocks, path) for path in ("s_inter", "s_inter_centred", "s_inter_within")
    )
    shares = {
        n: (abs(centred[n]) - abs(within_clusters[n])) / value
        for n, value in inter.items()
        if n in centred and n in within_clusters
    }
    also = " of S_inter goes with the clusters beyond the common mean"
    yield from _over("global-view", shares, lambda x: x > MOST, digits=2, also=also)
    isoscores, adjusted = _values(blocks, "isoscore_within"), _values(layers, "adjusted.s_inter")
    near = [str(n) for n, value in adjusted.items() if abs(value) < NEAR_ZERO]
    for claim in ("nearly-perfect", "classifiers/local-isotropy"):
        for one in _over(claim, isoscores, lambda x: x > NEAR_ONE, what="IsoScore "):
            if one.verdict is Verdict.NOT_HELD and near:  # by S_inter, the paper's measure
                where = f"by mean cosine in layers {ranges(near)}; by IsoScore in none"
                ours = f"{one.ours}; S_inter {span(list(adjusted.values()))} ({len(near)} of {len(adjusted)})"
                one = replace(one, verdict=Verdict.CONDITION, condition=where, ours=ours)
            yield one
    lids = _values(layers, "lid")
    both = [n for n in isoscores if n in lids]
    if len(both) > 3:
        rho = float(spearmanr([lids[n] for n in both], [isoscores[n] for n in both]).statistic)
        low, high = rho_interval(rho, len(both))
        ours = (
            f"ρ {signed(rho, 2)} of LID and IsoScore within clusters over {len(both)} layers, "
            f"95 % {between(low, high, 2)}"
        )
        yield decide("lid-local-anisotropy", by_interval(low, high), ours)


def lid_row(found: Outcome) -> Row:
    """Return the mean LID with 1 − cos beside the paper's, which is comparable for its own models."""
    ours, line = mean_dimensions(found)[2], found.published
    if line is None:
        return unpublished(found.title, "LID, 1 − cos", ours, 1)
    return within(
        found.title, "LID, 1 − cos", ours, line.lid, tolerance=LID_TOLERANCE * line.lid,
        comparable=found.size[0] >= _SAME_SIZE * line.n_vectors, digits=1,
    )  # fmt: skip


def mean_dimensions(found: Outcome) -> list[float | None]:
    """Return LID, from squared distances, and from 1 − cos; of a model the means over its blocks."""
    spaces = {0: found.static} if found.static is not None else found.blocks()
    known = [_values(spaces, kind).values() for kind in ("lid", "lid_squared", "lid_cosine")]
    return [fmean(values) if values else None for values in known]


def early_layer(model: Outcome) -> int:
    """Return the second block, as the paper shows, or the last layer there is before it."""
    numbers = model.about["layers"]
    return int(max((n for n in numbers if n <= 2), default=numbers[0]))


def told_by(model: Outcome, layer: int, name: str) -> Followed | None:
    """Return how well the components tell "positions" or "log_frequencies" of the tokens in the figures."""
    assert model.shown is not None
    axes, _ = model.shown.at(layer)
    return followed(torch.from_numpy(axes), torch.from_numpy(getattr(model.shown, name)))


def _evidence(outcome: Outcome) -> str:
    if outcome.static is not None:
        return f"{outcome.title}, {outcome.size[0]:,} words"
    about = outcome.about
    return (
        f"{outcome.title}, {about['n_tokens']:,} tokens of {about.get('source', 'texts')}, "
        f"seed {about.get('seed', 0)}"
    )
