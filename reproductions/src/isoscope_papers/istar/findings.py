"""What the runs say of the claims of Rudman and Eickhoff 2024.

A difference counts only beyond the spread of the seeds. A trend over λ counts only beyond both the seeds and
chance; on the paper's own λ, which are given and not drawn, the seeds decide. What lies within is
inconclusive. A bias counts as none up to `NEAR`, and up to `SHARE` of the truth or `NOTHING`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import numpy as np

from isoscope_papers.istar.closed_forms import closed_forms
from isoscope_papers.istar.comparison import (
    Difference,
    Sweep,
    Trend,
    difference,
    sweeps_of,
    trend,
)
from isoscope_papers.istar.estimators import (
    BATCH,
    DEBIASED,
    INDEPENDENT,
    JACKKNIFE,
    PAPER_ESTIMATOR,
    PLAIN,
    STARS,
    STRETCHES,
    Cell,
    Estimates,
    Estimator,
    Spread,
)
from isoscope_papers.istar.populations import FRESH, STALE, Known
from isoscope_papers.istar.setups import NONE, PAPER_STRENGTHS
from isoscope_papers.verdict import Finding, Verdict, by_interval, decide, judged, on
from isoscope_papers.words import number, signed, span

NEAR, SHARE, NOTHING = 0.01, 0.1, 0.001
SMALL = 0.3
CONE = 0.9  # a mean cosine from here on "approaches 1"
_CHANCE = 0.05
_NAMES = {"mean_cosine": "mean cosine", "isoscore_star": "IsoScore*", "score": "score"}
_CONTRARY = {Verdict.HELD: Verdict.NOT_HELD, Verdict.NOT_HELD: Verdict.HELD}
_SIGNS = {Verdict.HELD: 1, Verdict.NOT_HELD: -1}

Strengths = Callable[[float], bool]


def _papers(strength: float) -> bool:
    return strength in PAPER_STRENGTHS


def _every(strength: float) -> bool:
    return np.isfinite(strength)


# claim, two quantities, the sign of the ρ that is claimed (0 is either), over which λ
_TRENDS: tuple[tuple[str, tuple[str, str], int, Strengths], ...] = (
    ("performance-falls", ("isoscore_star", "score"), -1, _papers),
    ("istar-loss", ("strength", "isoscore_star"), 1, _every),
    ("falls-all", ("isoscore_star", "score"), -1, _every),
    ("falls-small", ("isoscore_star", "score"), -1, lambda strength: abs(strength) <= SMALL),
    ("falls-above", ("isoscore_star", "score"), -1, lambda strength: strength >= 0),
    ("rises-below", ("isoscore_star", "score"), 1, lambda strength: strength <= 0),
    ("dimension-moves", ("strength", "sentence_twonn"), 0, _every),
    ("token-dimension-moves", ("strength", "twonn"), 0, _every),
    ("low-dimension-performs", ("sentence_twonn", "score"), -1, _every),
    ("low-token-dimension-performs", ("twonn", "score"), -1, _every),
    ("isotropy-silhouette", ("isoscore_star", "silhouette"), -1, lambda s: s == 0 or _papers(s)),
)
# parts of the λ on which a claim is judged, beside all of them where those are more than the paper's
_PARTS: dict[str, dict[str, Strengths]] = {
    "low-dimension-performs": {"on the paper's λ": _papers},
    "low-token-dimension-performs": {"on the paper's λ": _papers},
    "isotropy-silhouette": {"over λ ≥ 0": lambda s: s >= 0, "over λ ≤ 0": lambda s: s <= 0},
}
# claims, a regulariser, which of its λ, and what the best of them is set against
_CONTESTS: tuple[tuple[tuple[str, ...], str, Strengths, str], ...] = (
    (("istar/negative-beats-none",), "istar", lambda s: s < 0 and _papers(s), NONE),
    (
        ("istar/small-negative-beats-none", "classifiers/anisotropic-training-helps"),
        "istar",
        lambda s: s < 0,
        NONE,
    ),
    (("istar/debiased-beats-none",), "istar-debiased", lambda s: s < 0, NONE),
    (("istar/negative-beats-cosreg",), "istar", lambda s: s < 0 and _papers(s), "cosreg"),
    (("istar/small-negative-beats-cosreg",), "istar", lambda s: s < 0, "cosreg"),
    (("istar/uniform-improves", "classifiers/isotropy-as-regulariser"), "istar", lambda s: s > 0, NONE),
)
# claim, λ of CosReg, the quantity it moves against λ = 0, and the sign that is claimed
_COSREG = (
    ("cosreg", 1.0, "mean_cosine", -1),
    ("cosreg-isotropy", 1.0, "isoscore_star", 1),
    ("cone-limits-expressiveness", -1.0, "score", -1),
)
# claim, the estimators of which the least biased counts, how vectors are drawn
_BIASES: tuple[tuple[str, tuple[Estimator, ...], str], ...] = (
    ("star-stable", (PAPER_ESTIMATOR,), INDEPENDENT),
    ("star-best-zeta", STARS[FRESH][:-1], INDEPENDENT),  # ζ = 1 does not look at the batch
    ("star-other-covariance", STARS[STALE][:-1], INDEPENDENT),
    ("isoscore-unstable", (PLAIN,), INDEPENDENT),
    ("debiased-near", (DEBIASED,), INDEPENDENT),
    ("debiased-jackknife-near", (JACKKNIFE,), INDEPENDENT),
    ("debiased-stretches", (DEBIASED,), STRETCHES),
)


def findings(runs: Sequence[object]) -> Iterator[Finding]:
    """Yield what the runs, and closed forms, say of the paper's claims."""
    sweeps = sweeps_of(runs)
    for own, subject in by_model(sweeps):
        yield from on("istar", subject, (*mean_fall(own), *_contests(own)), _evidence(own))
    for sweep in sweeps:
        found = (*_trends(sweep, len(sweeps)), *_contests([sweep], n_tests=len(sweeps)), *_cosines(sweep))
        yield from on("istar", sweep.subject, found, _evidence([sweep]))
    for run in runs:
        if isinstance(run, Estimates):
            for known in run.populations:
                yield from on("istar", known.title, _of_population(run, known))
    yield from on("istar", "closed form", closed_forms(), "no data")


def _evidence(sweeps: Sequence[Sweep]) -> str:
    counts = [len(one.by_seed("istar", strength)) for one in sweeps for strength in one.strengths("istar")]
    seeds = "–".join(str(count) for count in sorted({min(counts), max(counts)}))
    return f"{sweeps[0].settings.title}; {', '.join(one.subject for one in sweeps)}; {seeds} seeds a λ"


def by_model(sweeps: Sequence[Sweep]) -> Iterator[tuple[list[Sweep], str]]:
    """Yield the sweeps of each model that has several tasks, each once, and what they are called."""
    models = list(dict.fromkeys(one.settings.title for one in sweeps))
    for model in models:
        own = [one for one in sweeps if one.settings.title == model]
        if len({one.task for one in own}) == len(own) > 1:
            yield own, f"mean of {len(own)} tasks" + (f", {model}" if len(models) > 1 else "")


def _trends(sweep: Sweep, n_tests: int) -> Iterator[Finding]:
    for key, names, sign, chosen in _TRENDS:
        curves = {s: values for s, values in sweep.curve("istar", *names).items() if chosen(s)}
        found = trend(list(curves.values()))
        if found is None:
            continue
        verdict, condition = judged_trend(found, sign, n_tests=n_tests, given=chosen is _papers), ""
        words = _trend_words(found)
        parts = {}
        for part, within in _PARTS.get(key, {}).items():
            one = trend([values for s, values in curves.items() if within(s)])
            if one is not None:
                words += f"; {part} {_trend_words(one)}"
                parts[part] = judged_trend(one, sign, given=True)
        if parts:
            if chosen is _every:
                parts = {f"over all {found.n} λ": verdict, **parts}
            verdict, condition = judged({part: _SIGNS.get(one, 0) for part, one in parts.items()})
        yield decide(key, (verdict, condition), words)


def judged_trend(found: Trend, sign: int, *, n_tests: int = 1, given: bool = False) -> Verdict:
    """Return the verdict on a trend with this sign; 0 is either.

    Args:
        found: the trend.
        sign: of the ρ that is claimed.
        n_tests: on how many tasks it is tested; chance is 5 % for all of them together (Bonferroni).
        given: whether the claim is about these very λ, so that chance in their order does not enter.

    >>> str(judged_trend(Trend(-0.9, -1.0, -0.7, 0.001, 9), -1))
    'held'
    """
    if not given and found.p >= _CHANCE / n_tests:
        return Verdict.INCONCLUSIVE
    return by_interval(*sorted(end * (sign or np.sign(found.rho)) for end in (found.low, found.high)))


def _trend_words(found: Trend) -> str:
    p = "" if np.isnan(found.p) else f", p {'0.0001 or less' if found.p <= 1.01e-4 else f'{found.p:.2g}'}"
    return f"ρ {signed(found.rho, 2)} [{signed(found.low, 2)}, {signed(found.high, 2)}] over {found.n} λ{p}"


def _on_papers(sweep: Sweep) -> list[np.ndarray]:
    """Return (IsoScore* and score, seeds) at each of the paper's λ."""
    curve = sweep.curve("istar", "isoscore_star", "score")
    return [values for strength, values in curve.items() if _papers(strength)]


def rho_by_task(sweeps: Sequence[Sweep]) -> str:
    """Return ρ(score, IsoScore*) of each sweep on the paper's λ."""
    trends = {one.subject: trend(_on_papers(one)) for one in sweeps}
    return ", ".join(f"{name} {signed(found.rho, 2)}" for name, found in trends.items() if found)


def mean_fall(sweeps: Sequence[Sweep]) -> Iterator[Finding]:
    """Yield the mean over the tasks of a model of ρ(score, IsoScore*) on the paper's λ."""
    if (found := trend(*map(_on_papers, sweeps))) is not None:
        verdict = judged_trend(found, -1, given=True)
        yield decide("performance-falls", verdict, f"mean {_trend_words(found)}")


def _contests(sweeps: Sequence[Sweep], *, n_tests: int = 1) -> Iterator[Finding]:
    """Yield the best of some λ against another, of the mean over the sweeps, in pairs by seed.

    The interval allows for the choice of the best, and for all tasks.
    """
    step = fmean(sweep.step for sweep in sweeps)
    for claims, regularizer, chosen, against in _CONTESTS:
        ours = {s: values for s, values in _scores(sweeps, regularizer).items() if s and chosen(s)}
        theirs = {s: values for s, values in _scores(sweeps, against).items() if against == NONE or s}
        if not ours or not theirs:
            continue
        first, second = (_best(one) for one in (ours, theirs))
        n_choices = len(ours) * len(theirs) * n_tests
        found = difference(ours[first], theirs[second], n_choices=n_choices, step=step)
        if found is None:
            continue
        each = {s: difference(ours[s], theirs[second], step=step) for s in ours}
        alone = {s: one for s, one in each.items() if one is not None}
        words = f"λ {signed(first, None)}" + (f" against {signed(second, None)}" if second else "")
        words += f": {found.words}, {found.n} seeds"
        if len(alone) > 1:
            words += f"; of {len(alone)} λ, each by itself, {_tally(alone.values())}"
        papers = [one for s, one in alone.items() if _papers(s)]
        added = f"with {len(alone) - len(papers)} λ of ours; of the paper's {len(papers)}, {_tally(papers)}"
        for claim in claims:
            condition = added if claim.startswith("classifiers/") and 0 < len(papers) < len(alone) else ""
            yield decide(claim, (by_interval(found.low, found.high), condition), words)


def _tally(found: Iterable[Difference]) -> str:
    ends = [(one.low, one.high) for one in found]
    return f"{sum(low > 0 for low, _ in ends)} better, {sum(high < 0 for _, high in ends)} worse"


def _best(scores: Mapping[float, Mapping[int, float]]) -> float:
    return max(scores, key=lambda strength: fmean(scores[strength].values()))


def _scores(sweeps: Sequence[Sweep], regularizer: str) -> dict[float, dict[int, float]]:
    """Return the mean score over the sweeps by strength and seed, of those that all have."""
    scores = {}
    for strength in sorted(set.intersection(*(set(one.strengths(regularizer)) for one in sweeps))):
        by_seed = [one.by_seed(regularizer, strength) for one in sweeps]
        shared = sorted(set.intersection(*map(set, by_seed)))
        scores[strength] = {seed: fmean(one[seed] for one in by_seed) for seed in shared}
    return {strength: values for strength, values in scores.items() if values}


def _cosines(sweep: Sweep) -> Iterator[Finding]:
    """Yield the mean cosine by layer without a penalty, and what CosReg moves."""
    by_layer = {
        str(layer): fmean(values.values())
        for layer in sweep.layers
        if (values := sweep.by_seed(NONE, 0.0, "mean_cosine", layer))
    }
    if by_layer:
        signs = {layer: value >= CONE for layer, value in by_layer.items()}
        words = f"mean cosine {span(list(by_layer.values()))} over {len(by_layer)} layers after fine-tuning"
        yield decide("narrow-cone", signs, words, where="in layers {}")
    for key, strength, name, sign in _COSREG:
        if (found := sweep.gain("cosreg", strength, name)) is not None:
            verdict = by_interval(*sorted(end * sign for end in (found.low, found.high)))
            cosine = number(fmean(sweep.by_seed("cosreg", strength, "mean_cosine").values()))
            words = (
                f"CosReg λ {signed(strength, None)} (mean cosine {cosine}): {_NAMES[name]} less that of "
                f"λ = 0 {found.words}, {found.n} seeds"
            )
            condition = ""
            if key == "cone-limits-expressiveness" and verdict is Verdict.HELD:
                verdict, condition = _beyond_penalty(sweep, sweep.by_seed("cosreg", strength))
            yield decide(key, (verdict, condition), words)


def _beyond_penalty(sweep: Sweep, scores: Mapping[int, float]) -> tuple[Verdict, str]:
    """Return whether a cone costs more than a strong penalty that makes none, I-STAR at its least λ."""
    least = min(sweep.strengths("istar"))
    apart = difference(scores, sweep.by_seed("istar", least), step=sweep.step)
    if apart is None:
        return Verdict.INCONCLUSIVE, "it may be the penalty that costs this: none without a cone was run"
    cosine = number(fmean(sweep.by_seed("istar", least, "mean_cosine").values()))
    name = f"I-STAR λ {signed(least, None)}, without a cone (mean cosine {cosine})"
    words = f"{name}, scores as low: {apart.words}"
    verdict = by_interval(-apart.high, -apart.low)
    return verdict, "" if verdict is Verdict.HELD else words


def _of_population(estimates: Estimates, known: Known) -> Iterator[Finding]:
    for key, estimators, sampling in _BIASES:
        cell = estimates.cell(known.name, BATCH)
        if sampling == STRETCHES:
            cell = next(iter(estimates.cells_of(known.name, STRETCHES)), None)
        if cell is None:
            continue
        best = cell.least_biased(estimators, known.truth)
        found = cell.of(best, known.truth)
        verdict, words = judged_near(found, known.truth), "undefined on these batches"
        if found.bias is not None:
            words = f"bias {signed(found.bias, 4)} ± {found.error:.4f} of {known.truth:.4f}"
        words = f"ζ {best.zeta:g}: {words}" if len(estimators) > 1 else words
        words += f", n = {cell.n}" if sampling == STRETCHES else ""
        if key == "isoscore-unstable":
            verdict = _CONTRARY.get(verdict, verdict)
        condition = ""
        if key == "star-stable" and verdict is Verdict.HELD and known.truth < 2 * NOTHING:
            verdict, condition = Verdict.CONDITION, f"where the true score is under {2 * NOTHING:g}"
        yield replace(decide(key, (verdict, condition), words), evidence=f"{cell.n_draws:,} batches")
    if (at_batch := estimates.cell(known.name, BATCH)) is not None:
        yield _shrinkage(known, at_batch)


def _shrinkage(known: Known, cell: Cell) -> Finding:
    """Return whether the bias falls with ζ, step by step, up to two standard errors of either."""
    sizes = {
        words: [
            (abs(one.bias or 0.0), 2 * (one.error or 0.0))
            for one in (cell.of(each, known.truth) for each in (PLAIN, *STARS[reference][:-1]))
        ]
        for reference, words in ((STALE, "with another C₀"), (FRESH, "with a C₀ of the population"))
    }
    falls = {
        words: all(b - b_error <= a + a_error for (a, a_error), (b, b_error) in pairwise(own))
        for words, own in sizes.items()
    }
    zero, _, low, *_, high = (size for size, _ in sizes["with a C₀ of the population"])
    words = f"|bias| {zero:.4f} at ζ = 0, {low:.4f} at 0.2, {high:.4f} at 0.9"
    return replace(decide("figure-4-zeta", falls, words), evidence=f"{cell.n_draws:,} batches")


def judged_near(found: Spread, truth: float) -> Verdict:
    """Return whether a bias is within the bounds with 95 % certainty, beyond them, or too near to tell."""
    if found.bias is None or found.error is None:
        return Verdict.NOT_HELD
    room, left = 1.96 * found.error, min(NEAR, max(SHARE * truth, NOTHING)) - abs(found.bias)
    return by_interval(left - room, left + room)
