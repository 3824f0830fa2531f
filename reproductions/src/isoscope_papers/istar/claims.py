"""The claims of Rudman and Eickhoff 2024, each with the bound it is tested by, on what was run.

A difference counts only beyond the spread of the seeds, and a trend only beyond both that and chance; what
lies within is said to depend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from isoscope_papers.claims import Claim, Holding
from isoscope_papers.istar.comparison import Difference, Sweep, Trend, difference, trend
from isoscope_papers.istar.estimators import (
    BATCH,
    DEBIASED,
    INDEPENDENT,
    JACKKNIFE,
    STRETCHES,
    ZETAS,
    Cell,
    Estimator,
    Known,
    Spread,
    Study,
)
from isoscope_papers.istar.populations import FRESH, STALE

NEAR = 0.01
PAPER_ZETA = 0.2
SMALL = 0.3
_CHANCE = 0.05

STEERS = "λ steers isotropy: IsoScore* rises with λ"
FALLS = "performance falls as IsoScore* rises, over all λ"
FALLS_SMALL = f"performance falls as IsoScore* rises, over |λ| ≤ {SMALL:g}"
FALLS_ABOVE = "performance falls as IsoScore* rises, over λ ≥ 0"
RISES_BELOW = "ours: performance rises with IsoScore*, over λ ≤ 0: it is highest in the middle"
BEATS_NONE = "the best negative λ beats no regularisation"
BEATS_NONE_DEBIASED = "the best negative λ of the debiased penalty beats no regularisation"
BEATS_COSREG = "the best negative λ beats the best CosReg"
MOVES = "TwoNN of token states moves with λ"
MOVES_SENTENCES = "TwoNN of sentence vectors moves with λ (figure 7)"
CHOSEN = f"IsoScore* comes within {NEAR} of the truth at a well-chosen ζ (n = {BATCH}, C₀ of the population)"
CHOSEN_STALE = f"the same with a C₀ that is not the population's (n = {BATCH})"
PAPERS_ZETA = f"IsoScore* comes within {NEAR} of the truth at the paper's ζ = {PAPER_ZETA} (n = {BATCH})"
UNBIASED = f"ours: the debiased score comes within {NEAR} of the truth (n = {BATCH}, independent vectors)"
UNBIASED_JACKKNIFE = "ours: the same of the debiased score with a jackknife"
UNBIASED_STRETCHES = f"ours: the same on whole stretches of {BATCH} tokens, as training takes them"


def sweep_claims(sweeps: Sequence[Sweep]) -> list[Claim]:
    """Every claim on every task, and those on performance on all tasks of a model together."""
    found: list[Claim | None] = []
    for sweep in sweeps:
        subject = subject_of(sweep, sweeps)
        strengths = sweep.strengths("istar")
        small, above, below = (
            {s for s in strengths if abs(s) <= SMALL},
            {s for s in strengths if s >= 0},
            {s for s in strengths if s <= 0},
        )
        trends = (
            (STEERS, _with_strength(sweep, "isoscore_star"), 1),
            (FALLS, _pairs(sweep), -1),
            (FALLS_SMALL, _pairs(sweep, small), -1),
            (FALLS_ABOVE, _pairs(sweep, above), -1),
            (RISES_BELOW, _pairs(sweep, below), 1),
            (MOVES, _with_strength(sweep, "twonn"), 0),
            (MOVES_SENTENCES, _with_strength(sweep, "sentence_twonn"), 0),
        )
        found += [_trend_claim(claim, subject, curves, sign, len(sweeps)) for claim, curves, sign in trends]
        found += _beats([sweep], subject, n_tests=len(sweeps))
    for model in dict.fromkeys(one.settings.title for one in sweeps):
        own = [one for one in sweeps if one.settings.title == model]
        if len({one.task for one in own}) == len(own) > 1:
            words = f"mean of {len(own)} tasks" + _model_words(own[0], sweeps)
            found += _beats(own, words)
    return [claim for claim in found if claim is not None]


def subject_of(sweep: Sweep, sweeps: Sequence[Sweep]) -> str:
    """The task; with the model, or the settings, where there are several."""
    alike = [one for one in sweeps if (one.task, one.settings.title) == (sweep.task, sweep.settings.title)]
    words = sweep.title + _model_words(sweep, sweeps)
    if len(alike) > 1:
        s = sweep.settings
        words += (
            f" ({s.epochs} epochs of {s.max_train or 'all'}, lr {s.learning_rate:g}, batch {s.batch_size})"
        )
    return words


def _model_words(sweep: Sweep, sweeps: Sequence[Sweep]) -> str:
    several = len({one.settings.title for one in sweeps}) > 1
    return f", {sweep.settings.title}" if several else ""


def _pairs(sweep: Sweep, only: set[float] | None = None) -> list[np.ndarray]:
    found = sweep.curve("istar", "isoscore_star", "score")
    return [values for strength, values in found.items() if only is None or strength in only]


def _with_strength(sweep: Sweep, name: str) -> list[np.ndarray]:
    found = sweep.curve("istar", name)
    return [np.vstack([np.full(values.shape[1], strength), values]) for strength, values in found.items()]


def _trend_claim(claim: str, subject: str, curves: list[np.ndarray], sign: int, n_tests: int) -> Claim | None:
    """sign: of the ρ that is claimed; 0 is either."""
    found = trend(curves)
    if found is None:
        return None
    return Claim(claim, subject, judged_trend(found, sign, n_tests=n_tests), _trend_words(found))


def judged_trend(found: Trend, sign: int, *, n_tests: int = 1) -> Holding:
    """Held where ρ has the sign, beyond seeds and chance; not held where it has the other; else it depends.

    n_tests: on how many tasks the claim is tested; chance is 5 % for all of them together (Bonferroni).

    >>> str(judged_trend(Trend(-0.9, -1.0, -0.7, 0.001, 9), -1))
    'held'
    """
    beyond = (found.low > 0 or found.high < 0) and found.p < _CHANCE / n_tests
    if not beyond:
        return Holding.DEPENDS
    return Holding.HELD if sign == 0 or np.sign(found.rho) == sign else Holding.NOT_HELD


def _trend_words(found: Trend) -> str:
    return (
        f"ρ {signed(found.rho, 2)} [{signed(found.low, 2)}, {signed(found.high, 2)}] over {found.n} λ, "
        f"p {_p(found.p)}"
    )


def _p(value: float) -> str:
    return "0.0001 or less" if value <= 1.01e-4 else f"{value:.2g}"


def _beats(sweeps: Sequence[Sweep], subject: str, *, n_tests: int = 1) -> list[Claim | None]:
    """Differences of the mean over the sweeps, in pairs by seed."""
    none = {0.0: _mean_by_seed(sweeps, "istar", 0.0)}
    negative, debiased = (_scores(sweeps, name, below=True) for name in ("istar", "istar-debiased"))
    contests = (
        (BEATS_NONE, negative, none),
        (BEATS_NONE_DEBIASED, debiased, none),
        (BEATS_COSREG, negative, _scores(sweeps, "cosreg")),
    )
    step = float(np.mean([sweep.step for sweep in sweeps]))
    return [_best(claim, subject, ours, theirs, n_tests, step) for claim, ours, theirs in contests]


def _scores(
    sweeps: Sequence[Sweep], regularizer: str, *, below: bool = False
) -> dict[float, dict[int, float]]:
    shared = set.intersection(*(set(one.strengths(regularizer)) for one in sweeps)) - {0.0}
    found = {s: _mean_by_seed(sweeps, regularizer, s) for s in sorted(shared) if s < 0 or not below}
    return {strength: values for strength, values in found.items() if values}


def _mean_by_seed(sweeps: Sequence[Sweep], regularizer: str, strength: float) -> dict[int, float]:
    found = [one.by_seed(regularizer, strength) for one in sweeps]
    shared = set.intersection(*(set(one) for one in found))
    return {seed: float(np.mean([one[seed] for one in found])) for seed in sorted(shared)}


def _best(
    claim: str,
    subject: str,
    ours: Mapping[float, Mapping[int, float]],
    theirs: Mapping[float, Mapping[int, float]],
    n_tests: int,
    step: float,
) -> Claim | None:
    """The best of ours against the best of theirs; the interval allows for the choice, and for all tasks."""
    if not ours or not any(theirs.values()):
        return None
    first, second = (max(one, key=lambda s: np.mean(list(one[s].values()))) for one in (ours, theirs))
    n_choices = len(ours) * len(theirs) * n_tests
    found = difference(ours[first], theirs[second], n_choices=n_choices, step=step)
    if found is None:
        return None
    alone = [one for s in ours if (one := difference(ours[s], theirs[second], step=step)) is not None]
    return Claim(claim, subject, judged_difference(found), _best_words(first, second, found, alone))


def _best_words(first: float, second: float, found: Difference, alone: Sequence[Difference]) -> str:
    against = f" against {signed(second, None)}" if second else ""
    interval = f"[{signed(found.low)}, {signed(found.high)}]"
    words = f"λ {signed(first, None)}{against}: {signed(found.mean)} {interval}, {found.n} seeds"
    if len(alone) == 1:
        return words
    better, worse = sum(one.low > 0 for one in alone), sum(one.high < 0 for one in alone)
    return f"{words}; of {len(alone)} λ, each by itself, {better} better, {worse} worse"


def judged_difference(found: Difference) -> Holding:
    """Held where the whole interval is above zero, not held where it is below, else it depends."""
    if found.low > 0:
        return Holding.HELD
    return Holding.NOT_HELD if found.high < 0 else Holding.DEPENDS


def estimator_claims(study: Study) -> list[Claim]:
    """What is said of the estimators, on every population."""
    found: list[Claim | None] = []
    for known in study.populations:
        cell = study.cell(known.name, BATCH)
        found += [
            _near(UNBIASED, known, cell, [DEBIASED]),
            _near(UNBIASED_JACKKNIFE, known, cell, [JACKKNIFE]),
            _near(CHOSEN, known, cell, [Estimator("star", zeta, FRESH) for zeta in ZETAS[:-1]]),
            _near(PAPERS_ZETA, known, cell, [Estimator("star", PAPER_ZETA, FRESH)]),
            _near(CHOSEN_STALE, known, cell, [Estimator("star", zeta, STALE) for zeta in ZETAS[:-1]]),
        ]
        together = study.cells_of(known.name, STRETCHES)
        found.append(_near(UNBIASED_STRETCHES, known, together[0] if together else None, [DEBIASED]))
    return [claim for claim in found if claim is not None]


def best_zeta(known: Known, cell: Cell, reference: str) -> Estimator:
    """The ζ below 1 with the least bias; ζ = 1 does not look at the batch."""
    return _least(known, cell, [Estimator("star", zeta, reference) for zeta in ZETAS[:-1]])


def _least(known: Known, cell: Cell, estimators: Sequence[Estimator]) -> Estimator:
    def size(one: Estimator) -> float:
        bias = cell.of(one, known.truth).bias
        return np.inf if bias is None else abs(bias)

    return min(estimators, key=size)


def _near(claim: str, known: Known, cell: Cell | None, estimators: Sequence[Estimator]) -> Claim | None:
    if cell is None:
        return None
    best = _least(known, cell, estimators)
    found = cell.of(best, known.truth)
    if found.bias is None:
        return Claim(claim, known.title, Holding.NOT_HELD, "undefined on these batches")
    words = f"bias {signed(found.bias)} ± {found.error:.4f} of {known.truth:.4f}"
    if len(estimators) > 1:
        words = f"ζ {best.zeta:g}: {words}"
    if cell.sampling != INDEPENDENT:
        words += f", n = {cell.n}"
    return Claim(claim, known.title, judged_near(found), words)


def judged_near(found: Spread) -> Holding:
    """Within the bound with 95 % certainty, beyond it, or too near to tell."""
    assert found.bias is not None
    assert found.error is not None
    size, room = abs(found.bias), 1.96 * found.error
    if size + room < NEAR:
        return Holding.HELD
    return Holding.NOT_HELD if size - room > NEAR else Holding.DEPENDS


def signed(value: float, digits: int | None = 4) -> str:
    """A number with its sign.

    >>> signed(-0.5, 2), signed(0.25, None)
    ('−0.50', '+0.25')
    """
    return (f"{value:+g}" if digits is None else f"{value:+.{digits}f}").replace("-", "−")
