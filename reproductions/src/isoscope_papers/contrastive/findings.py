"""Our figures beside the published ones, and what they say of the paper's claims on trained models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from isoscope_papers.contrastive.last_layer import N_TOP
from isoscope_papers.contrastive.run import Geometry
from isoscope_papers.contrastive.setups import N_SENTENCES
from isoscope_papers.contrastive.tokens import agreement
from isoscope_papers.rows import Row, above, below, span, unpublished, within
from isoscope_papers.verdict import Finding, Verdict, by_interval, judged, ranges, rho_interval

SIMILARITY, NORM, R2 = 0.0005, 0.002, 0.04  # tolerances
N_SD = 4  # the tolerance of what is sampled, in standard deviations over the seeds
CONE = 0.5  # the mean cosine from which a layer is called a narrow cone
ALMOST_NONE = 0.05  # the mean cosine under which anisotropy is almost gone
NOT_STRONG, WEAK = 0.5, 0.1  # rank correlations under which there is no strong one, and only a weak one
READINGS = {
    "self-similarity": "self_similarity",
    "intra-sentence": "intra_similarity",
    "anisotropy": "anisotropy",
    "norm": "norm",
    "adjusted self-similarity": "adjusted_self_similarity",
    "adjusted intra-sentence": "adjusted_intra_similarity",
}
LAST = "last layer: "  # how the quantities of what the paper says in words begin
HALF = "dimensions for 50 %"
OFTEN, N_OFTEN, PEAK = 9, 204, 0.857  # the paper's 204 tokens, over which changes correlate most
SHARPLY = 0.1  # what adjusted intra-sentence similarity must rise by
_CURVES = {"figure-2-self": "self-similarity, ", "figure-3-intra": "intra-sentence, "}
_FIGURES = {  # claims on every layer, before training and after
    "norm-output": "norm, ",
    "self-higher-after": "adjusted self-similarity, ",
}
_GRAMMAR = (
    "function tokens and the content of their sentence",
    "function tokens and the content of another",
    "sentence and its content",
    "sentence and its function tokens",
)
_WORDS = {  # claims on the last layer before training and after
    "intra-rises": "adjusted intra-sentence over the highest before",
    "space-toward-origin": "norm over that of the one before",
    "dimensions-flattened": "top 1 share",
}


def rows(run: Geometry) -> list[Row]:
    """Return ours beside published, quantity by quantity."""
    theirs, title = run.declared.published, run.title
    n_published = len(theirs.self_similarity) or len(run.paper)
    same = run.n_sentences == N_SENTENCES and len(run.paper) == n_published
    result = [
        _layer_row(run, layer, words, reading, same)
        for layer, reading in enumerate(run.layers())
        for words in READINGS
    ]
    result += [
        unpublished(title, f"top {place} share", share, 4)
        for place, share in enumerate(run.shares["paper"][:3], 1)
    ]
    for share in (10, 20):
        result.append(unpublished(title, f"dimensions for {share} %", run.n_for(share / 100), 0))
    last, half = run.layers()[-1], theirs.dimensions_for_half
    result.append(
        within(title, HALF, last["dimensions_for_half"], half, tolerance=1, comparable=same,
               digits=0)
    )  # fmt: skip
    for place, (k, mean) in enumerate(
        zip(run.informativity["k"], run.informativity["paper"]["mean"], strict=True)
    ):
        value = theirs.informativity[place] if place < len(theirs.informativity) else None
        result.append(within(title, f"r², k = {k}", mean, value, tolerance=R2, comparable=same, digits=3))
    return result + (_in_words(run, same) if theirs.is_contrastive else [])


def _layer_row(run: Geometry, layer: int, words: str, reading: dict[str, float], same: bool) -> Row:
    name = READINGS[words]
    published = getattr(run.declared.published, name)
    sampled = N_SD * reading["anisotropy_sd"]
    tolerance = {"anisotropy": sampled, "norm": NORM}.get(
        name, SIMILARITY + (sampled if name.startswith("adjusted") else 0)
    )
    return within(
        run.title, f"{words}, layer {layer}", reading[name],
        published[layer] if layer < len(published) else None, tolerance=tolerance, comparable=same,
        digits=4 if name in ("self_similarity", "intra_similarity") else 3,
    )  # fmt: skip


def _in_words(run: Geometry, same: bool) -> list[Row]:
    """Return what the paper says in words of the models after contrastive training; the bounds are ours."""
    layers, title = run.layers(), run.title
    last, intra = layers[-1], [layer["adjusted_intra_similarity"] for layer in layers]
    gain, ratio = intra[-1] - max(intra[:-1]), last["norm"] / layers[-2]["norm"]
    return [
        below(title, f"{LAST}anisotropy", last["anisotropy"], ALMOST_NONE, comparable=same, digits=3),
        above(title, f"{LAST}adjusted intra-sentence over the highest before", gain, 0, comparable=same,
              digits=3),
        below(title, f"{LAST}norm over that of the one before", ratio, 1, comparable=same, digits=3),
        below(title, f"{LAST}top 1 share", last["top_share"], 0.01, comparable=same, digits=4),
    ]  # fmt: skip


def findings(runs: Sequence[Geometry]) -> Iterator[Finding]:
    """Yield what the runs say of the paper's claims."""
    for run in runs:
        about = f"{run.model}, {run.n_sentences:,} sentences of STS-B, {len(run.seeds)} seeds"
        for claim, (verdict, condition), ours in _of_run(run):
            yield Finding(f"contrastive/{claim}", run.title, verdict, ours, condition, about)
    by_setup = {run.setup: run for run in runs}
    changes = {run.title: change for run in runs if (change := change_of(run, by_setup))}
    yield from change_findings(changes, "STS-B, clean definitions")


_Answer = tuple[str, tuple[Verdict, str], str]  # claim, verdict with its condition, our figures


def _of_run(run: Geometry) -> Iterator[_Answer]:
    total = sum(run.shares["paper"])
    adds_up = judged({"": abs(total - 1) < 1e-9})
    yield "dimension-contributions", adds_up, f"shares of {run.n_dims} dimensions add up to {total:.6f}"
    more, often = (sum(count > least for count in run.tokens["count"]) for least in (OFTEN, OFTEN - 1))
    ours = (
        f"{often} tokens appear {OFTEN} times or more, with [PAD], [CLS] and [SEP] {often + 3}; more than "
        f"{OFTEN} times: {more}"
    )
    signs = {
        f"more than {OFTEN} times": N_OFTEN in (more, more + 3),
        f"{OFTEN} times or more, special tokens counted": often + 3 == N_OFTEN,
    }
    other = Verdict.NOT_TESTABLE, "another tokenizer than that of the paper's models"
    same_tokens = bool(run.declared.published.informativity)
    yield "ssc-nine-times", judged(signs, where="{}") if same_tokens else other, ours
    r2 = {row.quantity: row for row in rows(run) if row.quantity.startswith("r²") and row.verdict}
    if r2:
        claim = run.setup if run.declared.published.is_contrastive else "vanilla"
        listed = " ".join(row.ours_shown.lstrip("0") for row in r2.values())
        yield f"informativity-{claim}", (_reached(list(r2.values())), ""), listed
    middle = [r2[name] for name in ("r², k = 100", "r², k = 300") if name in r2]
    if run.setup == "minilm" and len(middle) == 2:
        yield "information-reallocated", _half(middle), " → ".join(row.ours_shown for row in middle)
    yield from _of_tuned(run) if run.declared.published.is_contrastive else _of_untuned(run)
    if run.last:
        yield from _of_last(run)


def _of_tuned(run: Geometry) -> Iterator[_Answer]:
    compared = {row.quantity: row for row in rows(run) if row.verdict}
    for claim, quantity in (_CURVES | _FIGURES).items():
        own = [row for name, row in compared.items() if name.startswith(quantity)]
        if own:
            n_reached = sum(row.verdict is Verdict.HELD for row in own)
            value = span([row.ours for row in own if row.ours is not None])
            verdict = (_reached(own), "") if claim in _CURVES else _half(own)
            yield claim, verdict, f"{n_reached} of {len(own)} published figures reached: {value}"
    for claim, quantity in _WORDS.items():
        row = compared[f"{LAST}{quantity}"]
        yield claim, _half([row]), f"{quantity} {row.ours_shown}"
    for claim, quantity in (("anisotropy-output", f"{LAST}anisotropy"), ("dimensions-for-half", HALF)):
        row = compared[quantity]
        yield claim, (row.verdict or Verdict.NOT_TESTABLE, ""), f"{row.ours_shown} ({row.published_shown})"
    last = run.clean[-1]
    signs = {"mean cosine": last["anisotropy"] < ALMOST_NONE, "IsoScore": last["isoscore"] > 0.9}
    ours = f"after training: mean cosine {last['anisotropy']:.3f}, IsoScore {last['isoscore']:.3f}"
    yield "contrastive-isotropy", judged(signs, where="by {} only"), ours


def _reached(own: Sequence[Row]) -> Verdict:
    """Judge published figures together."""
    verdicts = {row.verdict for row in own}
    if verdicts == {Verdict.HELD}:
        return Verdict.HELD
    return Verdict.NOT_HELD if Verdict.NOT_HELD in verdicts else Verdict.NOT_TESTABLE


def _half(own: Sequence[Row]) -> tuple[Verdict, str]:
    """Judge a claim on before and after of which only the model after training is at hand."""
    if _reached(own) is Verdict.HELD:
        return Verdict.NOT_TESTABLE, "the vanilla model, before training, is not at hand"
    return _reached(own), ""


def _of_untuned(run: Geometry) -> Iterator[_Answer]:
    view = "without_sinks" if run.without_sinks else "clean"
    layers = run.layers(view)
    cosines = [layer["anisotropy"] for layer in layers[1:]]
    scores = [layer["isoscore"] for layer in layers[1:]]
    signs = {**cone(cosines), "it limits them": 0}  # a training can tell
    ours = f"mean cosine {span(cosines)}, IsoScore {span(scores)} above the embedding layer"
    yield "vanilla-cone", judged(signs, where="in that {}"), ours
    intra = [layer["adjusted_intra_similarity"] for layer in layers]
    ours = f"adjusted intra-sentence {intra[-1]:.3f} in the last layer, at most {max(intra[:-1]):.3f} before"
    yield "intra-unique", no_rise(intra), ours
    top, even = run.shares["paper"][:3], 1 / run.n_dims
    ours = f"top 3 shares {', '.join(f'{share:.3f}' for share in top)}; even ones would be {even:.4f}"
    yield "dimensions-unequal", judged({"": top[0] > 10 * even}), ours


def cone(cosines: Sequence[float]) -> dict[str, bool]:
    """Return the parts of "every layer above the embedding layer is a narrow cone", by mean cosines."""
    high = [str(layer) for layer, value in enumerate(cosines, 1) if value > CONE]
    every = len(high) == len(cosines)
    named = {f"layers {ranges(high)} have a mean cosine over {CONE}": True} if high else {}
    return named if every else {**named, "all layers do": False}


def no_rise(intra: Sequence[float]) -> tuple[Verdict, str]:
    """Judge that the last layer of a vanilla model has no sharp rise, by its layers' similarities."""
    if intra[-1] - max(intra[:-1]) >= SHARPLY:
        return Verdict.NOT_HELD, ""
    return Verdict.CONDITION, "as to vanilla models; no other training than contrastive was tried"


def _of_last(run: Geometry) -> Iterator[_Answer]:
    """Judge claims by the readings of the last layer."""
    last, d, tuned = run.last, run.n_dims, run.declared.published.is_contrastive
    by_mean, by_variance = last["dominance and squared mean"], last["dominance and variance"]
    ours = f"rank correlation of dominance with squared mean {by_mean:+.2f}, with variance {by_variance:+.2f}"
    yield "dominance-by-mean", judged({"": by_mean > max(0.5, by_variance)}), _minus(ours)
    rho = last["variance and r² lost, dominant dimensions"]
    low, high = rho_interval(rho, N_TOP)
    ours = (
        f"of the {N_TOP} dominant dimensions, rank correlation of variance and r² lost {rho:+.2f} "
        f"[{low:+.2f}, {high:+.2f}]"
    )
    yield "low-variance-removable", (by_interval(low, high), ""), _minus(ours)
    rho = last["dominance and r² lost"]
    low, high = rho_interval(rho, d)
    ours = f"rank correlation over {d} dimensions {rho:+.2f} [{low:+.2f}, {high:+.2f}]"
    least, most = rho_interval(abs(rho), d)
    yield "dominance-not-informativity", (by_interval(-most, -least, -NOT_STRONG), ""), _minus(ours)
    n = int(last["types"])
    rhos = {name: last[f"frequency and {name}"] for name in ("norm", "cosine to the mean")}
    signs = {name: not rho_interval(rho, n)[0] < 0 < rho_interval(rho, n)[1] for name, rho in rhos.items()}
    ours = f"over {n:,} types, rank correlation of frequency with " + ", ".join(
        f"{name} {rho:+.2f}" for name, rho in rhos.items()
    )
    verdict = judged(signs, where="as to the {}")
    if all(signs.values()) and min(map(abs, rhos.values())) < WEAK:
        verdict = Verdict.CONDITION, f"weakly: a rank correlation under {WEAK}"
    yield "frequency-anisotropy", verdict, _minus(ours)
    own, other, content, function = (last[name] for name in _GRAMMAR)
    # that content is the nearer to the sentence says nothing of training: an untrained SmolLM2 has more of it
    parts = {"function tokens follow": own - other > SHARPLY, "content drives": 0}
    ours = (
        f"function tokens' cosine with the content of their sentence {own:.3f}, of another {other:.3f}; "
        f"the sentence's with its content {content:.3f}, with its function tokens {function:.3f}"
    )
    untrained = Verdict.NOT_TESTABLE, "not trained contrastively; for comparison"
    yield "function-follow", judged(parts, where="in that {}") if tuned else untrained, ours
    if run.setup == "mpnet":
        paper, clean = run.layers()[-1], run.layers("clean")[-1]
        readings = {name: value for name, value in last.items() if name.startswith("intra, ")}
        readings["adjusted"] = paper["adjusted_intra_similarity"]
        nearest = min(readings, key=lambda name: abs(readings[name] - 0.88))
        pairs = [value for name, value in readings.items() if "pairs" in name]
        ours = (
            f"{paper['intra_similarity']:.3f}; less anisotropy {readings['adjusted']:.3f}; without special "
            f"tokens {clean['intra_similarity']:.3f}; pairs of tokens {span(pairs)}; of these and the "
            f"{len(readings) - 1} readings of the last layer the nearest is {readings[nearest]:.3f} "
            f"({nearest.removeprefix('intra, ')})"
        )
        near = abs(readings[nearest] - 0.88) < 0.005
        ours += "" if near else "; 0.88 is none of them"
        yield "intra-088", judged({"": near}), ours


def _minus(text: str) -> str:
    return re.sub(r"-(?=\d)", "−", text)


def change_of(run: Geometry, runs: Mapping[str, Geometry]) -> dict[str, float]:
    """Return each token's self-similarity change from the vanilla model, where that was run too."""
    before = runs.get(run.declared.vanilla)
    values = before.token_values if before else {}
    return {name: value - values[name] for name, value in run.token_values.items() if name in values}


def change_findings(changes: Mapping[str, Mapping[str, float]], evidence: str) -> Iterator[Finding]:
    """Yield how far two models' self-similarity changes agree."""
    for (one, first), (other, second) in combinations(changes.items(), 2):
        if (curve := agreement(first, second)) is not None:
            n, peak = curve.highest()
            subject, last = f"{one} and {other}", curve.values[-1] or 0.0
            theirs, n_all = {one, other} == {"MiniLM", "mpnet"}, len(curve.names)
            why = "" if theirs else "other models than the paper's"
            for claim, holds, ours in (
                ("peak", abs(peak - PEAK) < 0.01,
                 f"highest {peak:.3f} over the {n} most frequent of {n_all} shared tokens"),
                ("all", last > 0.8, f"{last:.3f} over all {n_all} shared tokens"),
            ):  # fmt: skip
                verdict = judged({"": holds})[0] if theirs else Verdict.NOT_TESTABLE
                yield Finding(f"contrastive/ssc-{claim}", subject, verdict, ours, why, evidence)
