"""What is said beside the tables of *Stable Anisotropic Regularization*: worth of scores, what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from isoscope_papers.claims import Claim, Holding
from isoscope_papers.istar.claims import NEAR, UNBIASED, UNBIASED_JACKKNIFE, signed
from isoscope_papers.istar.comparison import Sweep, difference
from isoscope_papers.istar.setups import NONE, PAPER_STRENGTHS, SETUPS, STRENGTHS

_TIE = 1e-9  # scores are shares of texts: what differs by less is equal


def sweep_notes(sweep: Sweep) -> tuple[str, ...]:
    """Runs without a score, what the scores are worth, which stand apart, and what was not run."""
    return (*_failed(sweep), *_guessing(sweep), *_apart(sweep), *_not_run(sweep))


def _failed(sweep: Sweep) -> tuple[str, ...]:
    if not sweep.failed:
        return ()
    named = [f"{p.regularizer}, λ {p.strength:g}, seed {p.seed}" for p in (run.point for run in sweep.failed)]
    return (f"{len(named)} runs have no score, their loss turned NaN: {'; '.join(named)}",)


def _guessing(sweep: Sweep) -> tuple[str, ...]:
    """What one label for all texts scores, and whether the model without a penalty does better."""
    setup = SETUPS.get(sweep.task)
    if setup is None or sweep.metric != "accuracy" or sweep.runs[0].about["n_test"] != setup.commonest[1]:
        return ()
    guess = setup.commonest[0] / setup.commonest[1]
    base = sweep.by_seed(NONE, 0.0)
    above = difference(base, dict.fromkeys(base, guess), step=sweep.step)
    if above is None:
        return ()
    words = (
        "the task is learnt"
        if above.low > 0
        else "that the task is learnt at all is not shown, and its scores can bear no claim out"
    )
    found = [
        f"The commonest label for all texts scores {guess:.4f}, the model without a penalty "
        f"{signed(above.mean)} [{signed(above.low)}, {signed(above.high)}] more: {words}"
    ]
    scores = {one: fmean(values.values()) for one, values in _penalised(sweep).items()}
    low = [one for one, score in scores.items() if score < guess + _TIE]
    return (*found, f"No better than that on average: {', '.join(low)}") if low else tuple(found)


def _penalised(sweep: Sweep) -> dict[str, dict[int, float]]:
    """The scores by seed of every regulariser and strength, by their names."""
    found = {
        f"{kind} {signed(strength, None)}": sweep.by_seed(kind, strength)
        for kind in STRENGTHS
        for strength in sweep.strengths(kind)
        if strength
    }
    return {name: scores for name, scores in found.items() if scores}


def _apart(sweep: Sweep) -> tuple[str, ...]:
    """Which strengths score above or below no regularisation, each by itself."""
    base = sweep.by_seed(NONE, 0.0)
    found = {name: difference(scores, base, step=sweep.step) for name, scores in _penalised(sweep).items()}
    known = {name: one for name, one in found.items() if one is not None}
    above = [name for name, one in known.items() if one.low > 0]
    below = [name for name, one in known.items() if one.high < 0]
    if not known:
        return ()
    listed = (", ".join(names) or "none" for names in (above, below))
    return ("Of {} intervals, each by itself, above λ = 0: {}; below: {}".format(len(known), *listed),)


def _not_run(sweep: Sweep) -> tuple[str, ...]:
    """The strengths that are declared, or the paper's, and have no run."""
    parts = []
    for kind, declared in STRENGTHS.items():
        there = set(sweep.strengths(kind)) - {0.0}
        missing = sorted(set(declared) - there)
        if missing:
            parts.append(f"{kind} λ {_both_signs(missing)}" if there else f"{kind}, at any λ")
    if not parts:
        return ()
    papers = sorted(set(PAPER_STRENGTHS) - set(sweep.strengths("istar")))
    own = f"; of the paper's λ {', '.join(signed(one, None) for one in papers)} are missing" if papers else ""
    return (f"Declared but not run: {'; '.join(parts)}{own}",)


def _both_signs(strengths: Sequence[float]) -> str:
    """Strengths in words, ± where both signs are there.

    >>> _both_signs([-0.3, -0.01, 0.01])
    '±0.01, −0.3'
    """
    sizes = sorted({abs(one) for one in strengths})
    signs = {size: [one for one in strengths if abs(one) == size] for size in sizes}
    return ", ".join(f"±{size:g}" if len(own) > 1 else signed(own[0], None) for size, own in signs.items())


def beyond(claims: Sequence[Claim]) -> tuple[str, ...]:
    """In words: where the debiased score is not within its bound."""
    found = []
    for words, claim in (("The debiased score", UNBIASED), ("With a jackknife it", UNBIASED_JACKKNIFE)):
        for holding, verdict in ((Holding.NOT_HELD, "is beyond"), (Holding.DEPENDS, "may be beyond")):
            named = [one.subject for one in claims if one.claim == claim and one.holding is holding]
            if named:
                found.append(f"{words} {verdict} {NEAR} on {'; '.join(named)}")
    return tuple(found)


def tasks_not_run(sweeps: Sequence[Sweep]) -> tuple[str, ...]:
    """Those of the setups without a run."""
    there = {one.task for one in sweeps}
    missing = [setup.title for name, setup in SETUPS.items() if name not in there]
    return (f"Tasks declared but not run: {', '.join(missing)}",) if missing else ()
