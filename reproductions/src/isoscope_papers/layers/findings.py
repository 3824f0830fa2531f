"""What the runs show, each by a stated bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scipy.stats import spearmanr

from isoscope_papers.layers.rounding import EXACT, HALF, OTHER_SUMS, SINK_SUMS, SUMS, WEIGHTS
from isoscope_papers.layers.run import Layers
from isoscope_papers.layers.setups import DEPTH, ROUNDED, ROUNDED_METRICS, TRAINED
from isoscope_papers.verdict import Finding, Verdict, by_interval, decide, on, rho_interval
from isoscope_papers.words import between, number, signed

AGREE = 0.5  # ρ from which two measures put blocks into the same order
TENFOLD = 10.0
WITHIN, LEAST = 2.0, 2e-4  # a change is explained up to twice another's, and 0.0002 more
TUNED = ("all-MiniLM-L6-v2", "all-mpnet-base-v2")
_FEW = 4  # blocks with which a rank correlation has no interval


def findings(runs: Sequence[Layers]) -> Iterator[Finding]:
    """Yield every finding on every model."""
    for run in runs:
        evidence = f"{run.model or 'trained here'}; {run.about['n_tokens']:,} tokens of {run.about['source']}"
        found = list(_of_rounding(run) if run.kind == ROUNDED else _of_depth(run))
        found += _of_training(run) if run.kind == TRAINED else ()
        yield from on("layers", run.title, found, evidence)


def _of_depth(run: Layers) -> Iterator[Finding]:
    for claim, metric, sign in (
        ("cosine-rises", "mean_cosine", 1),
        ("context-accumulates", "adjusted_self_similarity", -1),
    ):
        values = run.blocks(metric)
        rho = float(spearmanr(list(values), list(values.values())).statistic)
        first, last = (values[block] for block in (min(values), max(values)))
        ours = f"ρ = {signed(rho, 2)}, {number(first)} → {number(last)}"
        yield decide(claim, _sign(sign * rho, len(values)), ours)
    yield _inside(run, "dimension-peaks", "twonn", 1)
    yield _inside(run, "rank-least-inside", "rankme_debiased", -1)
    if run.model in TUNED:
        cosines = run.blocks("mean_cosine")
        least = min(cosines, key=cosines.__getitem__)
        ours = f"block {least} of {max(cosines)}, {number(cosines[least])}"
        yield decide("tuning-opens-the-cone", least == max(cosines), ours)
    if run.kind == DEPTH:
        yield _agreement(run)
    if run.last.sinks:
        yield _sinks(run)


def _sign(rho: float, n: int) -> Verdict:
    """Return the verdict on ρ > 0, by its interval where there are enough blocks for one."""
    if n <= _FEW:
        return Verdict.HELD if rho > 0 else Verdict.NOT_HELD
    return by_interval(*rho_interval(rho, n))


def _inside(run: Layers, claim: str, metric: str, sign: int) -> Finding:
    """Return whether the largest value, or with sign −1 the smallest, is in an inner block."""
    values = run.blocks(metric)
    place = max(values, key=lambda block: sign * values[block])
    first, last = min(values), max(values)
    ends = f"{number(values[first], 1)} in block {first}, {number(values[last], 1)} in block {last}"
    return decide(claim, first < place < last, f"block {place}: {number(values[place], 1)}; {ends}")


def _agreement(run: Layers) -> Finding:
    scores, ranks = run.blocks("isoscore_debiased"), run.blocks("rankme_debiased")
    shared = [block for block in scores if block in ranks]
    rho = float(spearmanr([scores[b] for b in shared], [ranks[b] for b in shared]).statistic)
    interval = rho_interval(rho, len(shared))
    ours = f"ρ = {signed(rho, 2)} ({between(*interval, 2)})"
    return decide("measures-agree", by_interval(*interval, AGREE), ours)


def _sinks(run: Layers) -> Finding:
    ratios = {
        layer: without / score
        for layer, score, without in zip(
            run.layers, run.last.values["isoscore"], run.last.without_sinks["isoscore"], strict=True
        )
        if layer and score and without is not None
    }
    place = max(ratios, key=ratios.__getitem__)
    n = run.about["n_sinks"]
    ours = f"{number(ratios[place], 0)}-fold in block {place}, by {n} of {run.about['n_tokens']:,} tokens"
    return decide("sinks-decide", ratios[place] >= TENFOLD, ours)


def _of_training(run: Layers) -> Iterator[Finding]:
    ranks = {one.name: run.blocks("rankme_debiased", one)[run.layers[-1]] for one in run.profiles}
    least = min(ranks, key=ranks.__getitem__)
    first, *_, last = ranks
    ours = ", ".join(f"{number(ranks[step], 1)} after {step}" for step in dict.fromkeys((first, least, last)))
    yield decide("collapse-then-recovery", least not in (first, last), ours)


def _of_rounding(run: Layers) -> Iterator[Finding]:
    by_name = {one.name: one for one in run.profiles}
    exact = by_name[EXACT]
    for claim, name in (("bfloat16-of-weights", WEIGHTS), ("bfloat16-of-sums", SUMS)):
        signs, parts = {}, []
        for metric in ROUNDED_METRICS:
            seen, explained = (exact.largest_change(by_name[one], metric) for one in (HALF, name))
            signs[metric.replace("_", " ")] = seen <= WITHIN * explained + LEAST
            parts.append(f"{metric.replace('_', ' ')} {percent(seen)} against {percent(explained)}")
        yield decide(claim, signs, "; ".join(parts), where="for {}")
    if run.last.sinks:
        sinks, others = (exact.largest_change(by_name[one], "isoscore") for one in (SINK_SUMS, OTHER_SUMS))
        ours = f"{percent(sinks)} by sums of attention sinks, {percent(others)} by those of other tokens"
        yield decide("bfloat16-acts-on-sinks", sinks > others, ours)


def percent(share: float) -> str:
    """Format a share in per cent with two digits that count.

    >>> percent(0.0921), percent(0.00034)
    ('9.2 %', '0.034 %')
    """
    return f"{100 * share:.2g} %"
