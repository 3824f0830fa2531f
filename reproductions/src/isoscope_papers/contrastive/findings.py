"""Our figures beside the published ones, and what they say of the paper's claims on trained models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from isoscope_papers.contrastive.last_layer import N_TOP
from isoscope_papers.contrastive.run import Geometry
from isoscope_papers.contrastive.setups import N_SENTENCES
from isoscope_papers.contrastive.tokens import agreements
from isoscope_papers.rows import Row, above, below, unpublished, within
from isoscope_papers.verdict import Finding, Verdict, by_interval, decide, on, ranges, reached, rho_interval
from isoscope_papers.words import span

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
_OF_LAYERS = {"figure-2-self": "self-similarity, ", "figure-3-intra": "intra-sentence, "}
_OF_LAYERS_BEFORE_AND_AFTER = {"norm-output": "norm, ", "self-higher-after": "adjusted self-similarity, "}
_OF_OUTPUT_BEFORE_AND_AFTER = {
    "intra-rises": "adjusted intra-sentence over the highest before",
    "space-toward-origin": "norm over that of the one before",
    "dimensions-flattened": "top 1 share",
}
_GRAMMAR = (
    "function tokens and the content of their sentence",
    "function tokens and the content of another",
    "sentence and its content",
    "sentence and its function tokens",
)


def rows(run: Geometry) -> list[Row]:
    """Return ours beside published, quantity by quantity."""
    theirs, title = run.declared.published, run.title
    n_published = len(theirs.self_similarity) or len(run.paper)
    same = run.n_sentences == N_SENTENCES and len(run.paper) == n_published

    def compared(quantity: str, ours: float, published: float | None, tolerance: float, digits: int) -> Row:
        return within(title, quantity, ours, published, tolerance=tolerance, comparable=same, digits=digits)

    layers, result = run.layers(), []
    for layer, reading in enumerate(layers):
        sampled = N_SD * reading["anisotropy_sd"]
        for words, name in READINGS.items():
            published = dict(enumerate(getattr(theirs, name))).get(layer)
            raw = name in ("self_similarity", "intra_similarity")
            tolerance = {"anisotropy": sampled, "norm": NORM}.get(name, SIMILARITY + (0 if raw else sampled))
            quantity = f"{words}, layer {layer}"
            result.append(compared(quantity, reading[name], published, tolerance, 4 if raw else 3))
    shares = enumerate(run.shares["paper"][:3], 1)
    result += [unpublished(title, f"top {place} share", share, 4) for place, share in shares]
    result += [unpublished(title, f"dimensions for {n} %", run.n_for(n / 100), 0) for n in (10, 20)]
    last = layers[-1]
    result.append(compared(HALF, last["dimensions_for_half"], theirs.dimensions_for_half, 1, 0))
    for place, (k, mean) in enumerate(run.r2("paper").items()):
        published = dict(enumerate(theirs.informativity)).get(place)
        result.append(compared(f"r², k = {k}", mean, published, R2, 3))
    if not theirs.is_contrastive:
        return result
    # what the paper says in words of the models after contrastive training; the bounds are ours
    intra = [layer["adjusted_intra_similarity"] for layer in layers]
    gain, ratio = intra[-1] - max(intra[:-1]), last["norm"] / layers[-2]["norm"]
    return [
        *result,
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
        yield from on("contrastive", run.title, _of_run(run), about)
    yield from change_findings(changes_of(runs), "STS-B, clean definitions")


def _of_run(run: Geometry) -> Iterator[Finding]:
    total, published = sum(run.shares["paper"]), run.declared.published
    ours = f"shares of {run.n_dims} dimensions add up to {total:.6f}"
    yield decide("dimension-contributions", abs(total - 1) < 1e-9, ours)
    more, often = (sum(count > least for count in run.tokens["count"]) for least in (OFTEN, OFTEN - 1))
    signs = {
        f"more than {OFTEN} times": N_OFTEN in (more, more + 3),
        f"{OFTEN} times or more, special tokens counted": often + 3 == N_OFTEN,
    }
    ours = (
        f"{often} tokens appear {OFTEN} times or more, with [PAD], [CLS] and [SEP] {often + 3}; more than "
        f"{OFTEN} times: {more}"
    )
    why = "" if published.informativity else "another tokenizer than that of the paper's models"
    yield decide("ssc-nine-times", signs, ours, why=why)
    compared = {row.quantity: row for row in rows(run) if row.verdict}
    r2 = {name: row for name, row in compared.items() if name.startswith("r²")}
    if r2:
        claim = run.setup if published.is_contrastive else "vanilla"
        listed = " ".join(row.ours_shown.lstrip("0") for row in r2.values())
        yield decide(f"informativity-{claim}", _reached(r2.values()), listed)
    middle = [r2[name] for name in ("r², k = 100", "r², k = 300") if name in r2]
    if run.setup == "minilm" and len(middle) == 2:
        listed = " → ".join(row.ours_shown for row in middle)
        yield decide("information-reallocated", _half(middle), listed)
    yield from _of_tuned(run, compared) if published.is_contrastive else _of_untuned(run)
    if run.last:
        yield from _of_last(run)


def _of_tuned(run: Geometry, compared: Mapping[str, Row]) -> Iterator[Finding]:
    for claim, quantity in (_OF_LAYERS | _OF_LAYERS_BEFORE_AND_AFTER).items():
        own = [row for name, row in compared.items() if name.startswith(quantity)]
        if own:
            n_reached = sum(row.verdict is Verdict.HELD for row in own)
            value = span([row.ours for row in own if row.ours is not None])
            holds = _reached(own) if claim in _OF_LAYERS else _half(own)
            yield decide(claim, holds, f"{n_reached} of {len(own)} published figures reached: {value}")
    for claim, quantity in _OF_OUTPUT_BEFORE_AND_AFTER.items():
        row = compared[f"{LAST}{quantity}"]
        yield decide(claim, _half([row]), f"{quantity} {row.ours_shown}")
    for claim, quantity in (("anisotropy-output", f"{LAST}anisotropy"), ("dimensions-for-half", HALF)):
        row = compared[quantity]
        yield decide(claim, _reached([row]), f"{row.ours_shown} ({row.published_shown})")
    last = run.clean[-1]
    signs = {"mean cosine": last["anisotropy"] < ALMOST_NONE, "IsoScore": last["isoscore"] > 0.9}
    ours = f"after training: mean cosine {last['anisotropy']:.3f}, IsoScore {last['isoscore']:.3f}"
    yield decide("contrastive-isotropy", signs, ours, where="by {} only")


def _reached(own: Iterable[Row]) -> Verdict:
    return reached(row.verdict for row in own)


def _half(own: Iterable[Row]) -> tuple[Verdict, str]:
    """Judge a claim on before and after of which only the model after training is at hand."""
    verdict = _reached(own)
    if verdict is Verdict.HELD:
        return Verdict.NOT_TESTABLE, "the vanilla model, before training, is not at hand"
    return verdict, ""


def _of_untuned(run: Geometry) -> Iterator[Finding]:
    layers = run.layers("without_sinks" if run.without_sinks else "clean")
    cosines, scores = ([layer[name] for layer in layers[1:]] for name in ("anisotropy", "isoscore"))
    ours = f"mean cosine {span(cosines)}, IsoScore {span(scores)} above the embedding layer"
    # whether it limits them, a training can tell
    yield decide("vanilla-cone", {**cone(cosines), "it limits them": 0}, ours, where="in that {}")
    intra = [layer["adjusted_intra_similarity"] for layer in layers]
    ours = f"adjusted intra-sentence {intra[-1]:.3f} in the last layer, at most {max(intra[:-1]):.3f} before"
    yield decide("intra-unique", no_rise(intra), ours)
    top, even = run.shares["paper"][:3], 1 / run.n_dims
    ours = f"top 3 shares {', '.join(f'{share:.3f}' for share in top)}; even ones would be {even:.4f}"
    yield decide("dimensions-unequal", top[0] > 10 * even, ours)


def cone(cosines: Sequence[float]) -> dict[str, bool]:
    """Return the parts of "every layer above the embedding layer is a narrow cone", by mean cosines."""
    high = [str(layer) for layer, value in enumerate(cosines, 1) if value > CONE]
    named = {f"layers {ranges(high)} have a mean cosine over {CONE}": True} if high else {}
    return named if len(high) == len(cosines) else {**named, "all layers do": False}


def no_rise(intra: Sequence[float]) -> tuple[Verdict, str]:
    """Judge that the last layer of a vanilla model has no sharp rise, by its layers' similarities."""
    if intra[-1] - max(intra[:-1]) >= SHARPLY:
        return Verdict.NOT_HELD, ""
    return Verdict.CONDITION, "as to vanilla models; no other training than contrastive was tried"


def _of_last(run: Geometry) -> Iterator[Finding]:
    """Judge claims by the readings of the last layer."""
    last, d, n = run.last, run.n_dims, int(run.last["types"])
    by_mean, by_variance = last["dominance and squared mean"], last["dominance and variance"]
    ours = f"rank correlation of dominance with squared mean {by_mean:+.2f}, with variance {by_variance:+.2f}"
    yield decide("dominance-by-mean", by_mean > max(0.5, by_variance), ours)
    rho = last["variance and r² lost, dominant dimensions"]
    low, high = rho_interval(rho, N_TOP)
    ours = f"of the {N_TOP} dominant dimensions, rank correlation of variance and r² lost {rho:+.2f}"
    yield decide("low-variance-removable", by_interval(low, high), f"{ours} [{low:+.2f}, {high:+.2f}]")
    rho = last["dominance and r² lost"]
    low, high = rho_interval(rho, d)
    least, most = rho_interval(abs(rho), d)
    ours = f"rank correlation over {d} dimensions {rho:+.2f} [{low:+.2f}, {high:+.2f}]"
    yield decide("dominance-not-informativity", by_interval(-most, -least, -NOT_STRONG), ours)
    rhos = {name: last[f"frequency and {name}"] for name in ("norm", "cosine to the mean")}
    signs = {name: by_interval(*rho_interval(abs(rho), n)) is Verdict.HELD for name, rho in rhos.items()}
    weak = all(signs.values()) and min(map(abs, rhos.values())) < WEAK
    holds = (Verdict.CONDITION, f"weakly: a rank correlation under {WEAK}") if weak else signs
    listed = ", ".join(f"{name} {rho:+.2f}" for name, rho in rhos.items())
    ours = f"over {n:,} types, rank correlation of frequency with {listed}"
    yield decide("frequency-anisotropy", holds, ours, where="as to the {}")
    own, other, content, function = (last[name] for name in _GRAMMAR)
    # that content is the nearer to the sentence says nothing of training: an untrained SmolLM2 has more of it
    parts = {"function tokens follow": own - other > SHARPLY, "content drives": 0}
    ours = (
        f"function tokens' cosine with the content of their sentence {own:.3f}, of another {other:.3f}; "
        f"the sentence's with its content {content:.3f}, with its function tokens {function:.3f}"
    )
    why = "" if run.declared.published.is_contrastive else "not trained contrastively; for comparison"
    yield decide("function-follow", parts, ours, where="in that {}", why=why)
    if run.setup == "mpnet":
        yield _intra_088(run)


def _intra_088(run: Geometry) -> Finding:
    """Judge whether the paper's 0.88 is any reading of the last layer's intra-sentence similarity."""
    paper, clean = run.layers()[-1], run.layers("clean")[-1]
    readings = {name: value for name, value in run.last.items() if name.startswith("intra, ")}
    readings["adjusted"] = paper["adjusted_intra_similarity"]
    nearest = min(readings, key=lambda name: abs(readings[name] - 0.88))
    near = abs(readings[nearest] - 0.88) < 0.005
    pairs = [value for name, value in readings.items() if "pairs" in name]
    ours = (
        f"{paper['intra_similarity']:.3f}; less anisotropy {readings['adjusted']:.3f}; without special "
        f"tokens {clean['intra_similarity']:.3f}; pairs of tokens {span(pairs)}; of these and the "
        f"{len(readings) - 1} readings of the last layer the nearest is {readings[nearest]:.3f} "
        f"({nearest.removeprefix('intra, ')}){'' if near else '; 0.88 is none of them'}"
    )
    return decide("intra-088", near, ours)


def changes_of(runs: Sequence[Geometry]) -> dict[str, dict[str, float]]:
    """Return by model each token's self-similarity change from the vanilla model, where both were run."""
    values = {run.setup: run.token_values for run in runs}
    found = {}
    for run in runs:
        before = values.get(run.declared.vanilla, {})
        if change := {name: x - before[name] for name, x in run.token_values.items() if name in before}:
            found[run.title] = change
    return found


def change_findings(changes: Mapping[str, Mapping[str, float]], evidence: str) -> Iterator[Finding]:
    """Yield how far two models' self-similarity changes agree."""
    for pair, n_all, last, n, peak in agreements(changes):
        why = "" if set(pair) == {"MiniLM", "mpnet"} else "other models than the paper's"
        ours = f"highest {peak:.3f} over the {n} most frequent of {n_all} shared tokens"
        both = [
            decide("ssc-peak", abs(peak - PEAK) < 0.01, ours, why=why),
            decide("ssc-all", last > 0.8, f"{last:.3f} over all {n_all} shared tokens", why=why),
        ]
        yield from on("contrastive", " and ".join(pair), both, evidence)
