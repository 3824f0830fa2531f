"""What the runs say of the claims of Cai et al. 2021, each by a stated bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import torch
from scipy.stats import spearmanr

from isoscope import twonn
from isoscope_papers.manifolds.layers import Followed, LayerFigures, LayerParts, followed
from isoscope_papers.manifolds.run import Outcome
from isoscope_papers.manifolds.setups import SETUPS
from isoscope_papers.rows import OTHER_DATA, Row, number, signed, span, unpublished, within
from isoscope_papers.verdict import Finding, Verdict, by_interval, judged, ranges, rho_interval

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
_OURS = ("manifolds/frequency-types", "manifolds/position-structure")
_BESIDE = "it is tested beside what the paper says of GPT models only"

Value = Callable[[Any], float | None]
Holds = Callable[[float], bool]
_OF_LAYERS: tuple[tuple[str, Value, Holds], ...] = (
    ("manifolds/s-inter-high", attrgetter("cosines.s_inter"), lambda x: x > HIGH_INTER),
    ("manifolds/s-intra-high", attrgetter("cosines.s_intra"), lambda x: x > HIGH_INTRA),
    ("manifolds/adjusted-inter", attrgetter("adjusted.s_inter"), lambda x: abs(x) < NEAR_ZERO),
)


def _nearby(name: str) -> Value:
    def value(one: LayerFigures) -> float | None:
        told: Followed | None = getattr(one, name)
        return None if told is None else told.nearby

    return value


_OF_FIRST_LAYERS: tuple[tuple[str, Value, Holds], ...] = (
    ("manifolds/low-dimensional", attrgetter("top_variance"), lambda x: x > MOST),
    ("manifolds/frequency-types", _nearby("log_frequency"), lambda x: x > TELLS),
    ("manifolds/position-structure", _nearby("position"), lambda x: x > TELLS),
)
_OF_PARTS: tuple[tuple[str, Value, Holds], ...] = (
    ("manifolds/contextual-anisotropic", attrgetter("isoscore"), lambda x: x < STRONG),
)


def findings(outcomes: Sequence[Outcome]) -> Iterator[Finding]:
    """Yield every claim on every model: with all tokens, and without attention sinks where there are any."""
    for outcome in outcomes:
        evidence = _evidence(outcome)
        for one in _of_outcome(outcome, outcomes):
            yield replace(one, evidence=evidence)


def _of_outcome(outcome: Outcome, outcomes: Sequence[Outcome]) -> Iterator[Finding]:
    for subject, blocks in views(outcome):
        yield from _of_view(outcome, subject, blocks, [one for one in outcomes if one.static is not None])
    if outcome.shown is not None:
        yield from _of_shown(outcome)
    if outcome.parts:
        layers = [one.blocks() for one in outcomes if one.model == outcome.model and one.layers]
        yield from _of_parts(outcome, layers[0] if layers else {})
    else:
        claim = "manifolds/lid-static" if outcome.static else "manifolds/lid-contextual"
        why = OTHER_DATA if outcome.published else "another model than the paper's"
        yield lid_row(outcome).finding(claim, why=why)


def views(outcome: Outcome) -> list[tuple[str, dict[int, LayerFigures]]]:
    """Return the blocks of a model by number: all tokens, then without sinks where there are any."""
    found = [
        (outcome.title, outcome.blocks(outcome.layers)),
        (f"{outcome.title}, no sinks", outcome.blocks(outcome.without_sinks)),
    ]
    return [(words, blocks) for words, blocks in found if blocks]


def first_layers(blocks: Mapping[int, Any]) -> dict[int, Any]:
    """Return the first quarter of the blocks, at least two."""
    return {n: one for n, one in blocks.items() if n <= max(2, FIRST * max(blocks))}


def _of_view(
    outcome: Outcome, subject: str, blocks: Mapping[int, LayerFigures], tables: Sequence[Outcome]
) -> Iterator[Finding]:
    for claim, value, holds in _OF_LAYERS:
        yield from _judge(claim, subject, blocks, value, holds)
    yield from _narrow_cone(outcome, subject, blocks)
    yield from _isolated(subject, blocks)
    yield from _adjusted_intra(subject, blocks)
    for claim, value, holds in _OF_FIRST_LAYERS:
        why = "" if outcome.is_causal else _BESIDE if claim in _OURS else _GPT_ONLY
        yield from _judge(claim, subject, first_layers(blocks), value, holds, why=why)
    dimensions = [one.lid for one in blocks.values() if one.lid is not None]
    yield Finding(
        "manifolds/lid-by-layer", subject, Verdict.NOT_TESTABLE, span(dimensions, 1),
        "the paper's values are in a picture only, of other models",
    )  # fmt: skip
    for claim, kind in (("lid-lower", "lid_cosine"), ("lid-lower-euclidean", "lid")):
        for table in tables:
            theirs = getattr(table.static, kind)
            if theirs is None:
                continue
            against = f" against {theirs:.1f} of {table.title}"
            lower = float(theirs).__gt__
            yield from _judge(
                f"manifolds/{claim}", subject, blocks, attrgetter(kind), lower, digits=1, also=against
            )


def _narrow_cone(outcome: Outcome, subject: str, blocks: Mapping[int, LayerFigures]) -> Iterator[Finding]:
    setup = SETUPS.get(outcome.setup)
    why = _TUNED if setup is not None and setup.is_tuned else ""
    values = [x for one in blocks.values() if (x := one.cosines.s_inter) is not None]
    high = values and HIGH_INTER < min(values) <= max(values) <= NEAR_ONE
    yield from _judge(
        "istar/narrow-cone", subject, blocks, attrgetter("cosines.s_inter"), lambda x: x > NEAR_ONE, why=why,
        also=", high but not near 1" if high else "",
    )  # fmt: skip


def _isolated(subject: str, blocks: Mapping[int, LayerFigures]) -> Iterator[Finding]:
    """Yield whether clusters stand apart, and of what the smallest of those that do mostly is."""
    smallest = [one.smallest for one in blocks.values() if (one.silhouette or 0) >= ISOLATED and one.smallest]
    made_of = dict.fromkeys(
        "attention sinks" if one.sinks > MOST else repr(one.token.lstrip("Ġ▁"))
        for one in smallest
        if max(one.sinks, one.of_token) > MOST
    )
    for found in _judge(
        "manifolds/isolated-clusters", subject, blocks, attrgetter("silhouette"), lambda x: x >= ISOLATED
    ):
        mostly = f"; the smallest is mostly {' or '.join(made_of)}" if made_of and found.condition else ""
        yield replace(found, condition=found.condition + mostly)


def _adjusted_intra(subject: str, blocks: Mapping[int, LayerFigures]) -> Iterator[Finding]:
    """Yield whether S_intra is near zero once clusters are centred; else where it falls at all."""
    pairs = {n: (one.cosines.s_intra, one.adjusted.s_intra) for n, one in blocks.items()}
    both = {n: (x, y) for n, (x, y) in pairs.items() if x is not None and y is not None}
    falls = [str(n) for n, (before, after) in both.items() if after < before]
    for found in _judge(
        "manifolds/adjusted-intra", subject, blocks, attrgetter("adjusted.s_intra"),
        lambda x: abs(x) < NEAR_ZERO,
    ):  # fmt: skip
        if found.verdict is Verdict.NOT_HELD and falls:
            means = (sum(each) / len(both) for each in zip(*both.values(), strict=True))
            where = (
                f"falls in layers {ranges(falls)}, near zero in none; mean {' → '.join(map(number, means))}"
            )
            found = replace(found, verdict=Verdict.CONDITION, condition=where)
        yield found


def _judge(
    claim: str,
    subject: str,
    blocks: Mapping[int, Any],
    value: Value,
    holds: Holds,
    *,
    why: str = "",
    digits: int = 3,
    what: str = "",
    also: str = "",
) -> Iterator[Finding]:
    """Yield the verdict on a claim that has to hold in every block; none where nothing has a value."""
    values = {n: x for n, one in blocks.items() if (x := value(one)) is not None}
    if not values:
        return
    signs = {str(n): holds(x) for n, x in values.items()}
    n_held = sum(signs.values())
    count = "" if n_held == len(signs) else f" ({n_held} of {len(signs)} layers)"
    verdict, condition = (Verdict.NOT_TESTABLE, why) if why else judged(signs, where="in layers {}")
    ours = f"{what}{span(list(values.values()), digits)}{also}{count}"
    yield Finding(claim, subject, verdict, ours, condition)


def _of_shown(outcome: Outcome) -> Iterator[Finding]:
    """Yield what the tokens in the figures show: frequency along the components, a sheet, clusters."""
    shown = outcome.shown
    assert shown is not None
    why = "" if outcome.is_causal else _GPT_ONLY
    subject = f"{outcome.title}, no sinks" if outcome.without_sinks else outcome.title
    told = {layer: told_by(outcome, layer, "log_frequencies") for layer in first_layers(outcome.blocks())}
    frequency = _nearby("log_frequency")
    of_types = [x for one in first_layers(outcome.blocks()).values() if (x := frequency(one)) is not None]
    for found in _judge(
        "manifolds/frequency-structure", subject, told, lambda one: one and one.nearby, lambda x: x > TELLS,
        why=why, what="R² ",
    ):  # fmt: skip
        if found.verdict is Verdict.HELD and of_types and min(of_types) <= TELLS:
            where = f"in that tokens of one type lie together; among types R² {span(of_types, 2)}"
            found = replace(found, verdict=Verdict.CONDITION, condition=where)
        yield found
    layer = early_layer(outcome)
    dimension = twonn(torch.from_numpy(shown.at(layer)[0]))
    verdict = Verdict.HELD if dimension < SHEET else Verdict.NOT_HELD
    why = "" if outcome.is_causal and outcome.published else _NOT_GPT
    yield Finding(
        "manifolds/swiss-roll", subject, Verdict.NOT_TESTABLE if why else verdict,
        f"layer {layer} on its three components has {dimension:.1f} dimensions (TwoNN)", why,
    )  # fmt: skip
    best = max((-1.0 if one.silhouette is None else one.silhouette) for one in outcome.blocks().values())
    yield Finding(
        "manifolds/cluster-pictures", subject, Verdict.NOT_TESTABLE,
        f"highest silhouette of a layer {best:.2f}; see the figure", "other models than the paper's",
    )  # fmt: skip


def _of_parts(outcome: Outcome, layers: Mapping[int, LayerFigures]) -> Iterator[Finding]:
    blocks = outcome.blocks(outcome.parts)
    for claim, value, holds in _OF_PARTS:
        yield from _judge(claim, outcome.title, blocks, value, holds, what="IsoScore ")
    yield from _isotropic_within(outcome.title, blocks, layers)
    claim = "manifolds/symbols-words-gpt" if outcome.is_causal else "manifolds/symbols-words-bert"
    yield from _judge(
        claim, outcome.title, blocks, attrgetter("probe"), lambda x: x > APART, what="balanced accuracy "
    )
    lids = {n: one.lid for n, one in layers.items() if one.lid is not None}
    shares = {n: _by_clusters(one) for n, one in blocks.items()}
    yield from _judge(
        "manifolds/global-view", outcome.title, shares, lambda one: one, lambda x: x > MOST, digits=2,
        also=" of S_inter goes with the clusters beyond the common mean",
    )  # fmt: skip
    pairs = [(lids[n], one.isoscore_within) for n, one in blocks.items() if n in lids]
    if len(pairs) > 3:
        rho = spearmanr(*zip(*pairs, strict=True))
        interval = rho_interval(float(rho.statistic), len(pairs))
        yield Finding(
            "manifolds/lid-local-anisotropy", outcome.title, by_interval(*interval),
            f"ρ {signed(rho.statistic, 2)} of LID and IsoScore within clusters over {len(pairs)} layers, "
            f"95 % {signed(interval[0], 2)} … {signed(interval[1], 2)}",
        )  # fmt: skip


def _isotropic_within(
    subject: str, blocks: Mapping[int, LayerParts], layers: Mapping[int, LayerFigures]
) -> Iterator[Finding]:
    """Yield whether clusters are isotropic by IsoScore; else where by S_inter, the paper's measure."""
    values = {str(n): x for n, one in layers.items() if (x := one.adjusted.s_inter) is not None}
    near = [n for n, x in values.items() if abs(x) < NEAR_ZERO]
    for claim in ("manifolds/nearly-perfect", "classifiers/local-isotropy"):
        for found in _judge(
            claim, subject, blocks, attrgetter("isoscore_within"), lambda x: x > NEAR_ONE, what="IsoScore ",
        ):  # fmt: skip
            if found.verdict is Verdict.NOT_HELD and near:
                where = f"by mean cosine in layers {ranges(near)}; by IsoScore in none"
                said = f"{found.ours}; S_inter {span(list(values.values()))} ({len(near)} of {len(values)})"
                found = replace(found, verdict=Verdict.CONDITION, condition=where, ours=said)
            yield found


def _by_clusters(one: LayerParts) -> float | None:
    """Return the share of S_inter that centring clusters takes off beyond taking off the common mean."""
    if one.s_inter is None or one.s_inter_centred is None or one.s_inter_within is None:
        return None
    return (abs(one.s_inter_centred) - abs(one.s_inter_within)) / one.s_inter


def lid_row(found: Outcome) -> Row:
    """Return the mean LID with 1 − cos beside the paper's, which is comparable for its own models."""
    ours, line = mean_dimensions(found)[2], found.published
    if line is None:
        return unpublished(found.title, "LID, 1 − cos", ours, 1)
    n = found.static.n_vectors if found.static is not None else found.about["n_tokens"]
    return within(
        found.title, "LID, 1 − cos", ours, line.lid, tolerance=LID_TOLERANCE * line.lid,
        comparable=n >= _SAME_SIZE * line.n_vectors, digits=1,
    )  # fmt: skip


def mean_dimensions(found: Outcome) -> list[float | None]:
    """Return LID, from squared distances, and from 1 − cos; of a model the means over its blocks."""
    spaces = [found.static] if found.static is not None else list(found.blocks().values())
    means = []
    for kind in ("lid", "lid_squared", "lid_cosine"):
        values = [value for one in spaces if (value := getattr(one, kind)) is not None]
        means.append(sum(values) / len(values) if values else None)
    return means


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
        return f"{outcome.title}, {outcome.static.n_vectors:,} words"
    about = outcome.about
    return (
        f"{outcome.title}, {about['n_tokens']:,} tokens of {about.get('source', 'texts')}, "
        f"seed {about.get('seed', 0)}"
    )
