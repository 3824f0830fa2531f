"""The tables of *Stable Anisotropic Regularization*: for the page, and with all numbers as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from isoscope_papers.istar.comparison import Sweep, difference
from isoscope_papers.istar.estimators import (
    BATCH,
    DEBIASED,
    ESTIMATORS,
    JACKKNIFE,
    PAPER_ESTIMATOR,
    PLAIN,
    STARS,
    STRETCHES,
    Estimates,
    Spread,
)
from isoscope_papers.istar.figures import estimates_figures, sweeps_figures
from isoscope_papers.istar.populations import FRESH, N_REFERENCE, STALE, STRETCH, WINDOW
from isoscope_papers.istar.setups import NONE, PAPER_STRENGTHS, STRENGTHS, TASKS
from isoscope_papers.page import Section
from isoscope_papers.words import number, signed

QUANTITIES = (
    "score", "isoscore_star", "isoscore_debiased", "mean_cosine", "twonn", "sentence_twonn", "silhouette",
)  # fmt: skip
_TIE = 1e-9  # scores are shares of texts: what differs by less is equal
_TESTED = (
    "Trends are Spearman's ρ over λ of the means over seeds (equal means share their average rank), with a "
    "95 % interval from drawing the seeds anew, which few seeds make too narrow, and p from permuting λ. "
    "Both have to tell, p under 0.05 over the number of tasks; on the paper's own λ the interval alone. A ρ "
    "does not see a score that is highest in the middle. Differences are paired by seed, with a 95 % "
    "interval by Student's t, widened where the best of several λ was chosen and by the number of tasks; "
    "seeds that happen to agree are taken to differ by one text of the dev set. The table has the score ± "
    "its standard deviation over seeds, and IsoScore* of all states above the embedding layer; † marks the "
    "paper's λ. The file istar-strengths.csv has every mean, deviation and interval, also of the debiased "
    "score, mean cosine and TwoNN of token states, and of TwoNN and silhouette (where a run recorded it) of "
    "sentence vectors."
)
_BIASES = (
    "Bias ± its standard error (standard deviation of one batch) at n = {batch} independent vectors. A bias "
    "counts as none within 0.01 and within 10 % of the truth (or 0.001), and as one beyond, where 1.96 "
    "standard errors do not change that. C₀ is made of {reference:,} vectors of the population; the other C₀ "
    "is a flat one of the same total variance (a geometric one for the flat spectrum), or that of another "
    "layer. Token states are of WikiText-2's test split, {window} tokens at a time: a finite population, "
    "from which vectors are drawn with replacement. Best ζ: that of least bias below 1, which nobody knows "
    "without the truth. The debiased score is a ratio of two unbiased estimates; the bias that is left grows "
    "with the spread of its denominator, at few vectors and where one direction or a few tokens dwarf the "
    "rest, and a jackknife removes its next order. It pays with variance: the mean over many batches, which "
    "training takes, comes out right; a single batch says little. The file istar-estimators.csv has every "
    "population, sampling, n and estimator with mean, bias, standard error, standard deviation and root mean "
    "square error."
)
_STRETCHES = (
    "A batch in training has all tokens of a few texts, in all layers that are penalised. Here it is made of "
    "whole stretches of {stretch} tokens, each with its states in the layers named, drawn with replacement. "
    "Vectors of one text are alike, so a batch holds fewer independent ones than it has rows, and no "
    "estimator that takes them for independent is without bias; it shrinks with the number of texts. Biases "
    "for the fewest and the most stretches; the last column has the debiased score on as many independent "
    "vectors, where that was taken."
)


def sweep_section(sweeps: Sequence[Sweep]) -> Section:
    """Return score and IsoScore* by λ and task, with what to know of each task."""
    lines = []
    for kind, strength in dict.fromkeys(point for sweep in sweeps for point in _points(sweep)):
        mark = " †" if kind == "istar" and strength in PAPER_STRENGTHS else ""
        shown = f"{signed(strength, None)}{mark}" if strength else "0"
        lines.append((kind, shown, *(_cell(sweep, kind, strength) for sweep in sweeps)))
    told = [f"{one.subject}: {note}" for one in sweeps for note in (_about(one), *sweep_notes(one))]
    if missing := [setup.title for name, setup in TASKS.items() if name not in {one.task for one in sweeps}]:
        told.append(f"Tasks declared but not run: {', '.join(missing)}")
    heads = ("regulariser", "λ", *(f"{one.subject}: {one.metric}; IsoScore*" for one in sweeps))
    return Section("Fine-tuning, λ by λ", _TESTED, tuple(told), heads, tuple(lines), sweeps_figures(sweeps))


def _points(sweep: Sweep) -> list[tuple[str, float]]:
    """Return the regularisers with the strengths that were run; λ = 0 once, first."""
    return [(NONE, 0.0), *((kind, s) for kind in STRENGTHS for s in sweep.strengths(kind) if s)]


def _name(kind: str, strength: float) -> str:
    return f"{kind} {signed(strength, None)}"


def _cell(sweep: Sweep, kind: str, strength: float) -> str:
    scores, isotropy = (list(sweep.by_seed(kind, strength, name).values()) for name in QUANTITIES[:2])
    if not scores:
        return "—"
    spread = f" ± {stdev(scores):.3f}" if len(scores) > 1 else ""
    return f"{number(fmean(scores))}{spread}; {number(fmean(isotropy) if isotropy else None)}"


def _about(sweep: Sweep) -> str:
    s, about = sweep.settings, max((run.about for run in sweep.runs), key=lambda about: "n_cut" in about)
    seconds = sorted(run.about["seconds"] for run in sweep.runs)
    return (
        f"{s.title}, {about['n_train']:,} texts or pairs ({about.get('n_cut', '—')} cut at {s.max_length} "
        f"tokens), {s.epochs} epochs, batches of {s.batch_size}, AdamW at {s.learning_rate:g} (the paper: "
        f"1e-5 for BERT), ζ = {s.zeta:g}; scored on {about['n_test']:,} of the dev set; {about['device']}, "
        f"{seconds[len(seconds) // 2]:,.0f} s a run"
    )


def sweep_notes(sweep: Sweep) -> Iterator[str]:
    """Yield runs without a score, what the scores are worth, which stand apart, and what was not run."""
    if failed := [
        f"{one.regularizer}, λ {one.strength:g}, seed {one.seed}" for one in sweep.runs if one.failed
    ]:
        yield f"{len(failed)} runs have no score, their loss turned NaN: {'; '.join(failed)}"
    base = sweep.by_seed(NONE, 0.0)
    named = {_name(*point): point for point in _points(sweep)[1:]}
    scores = {name: own for name, point in named.items() if (own := sweep.by_seed(*point))}
    count, n_test = TASKS[sweep.task].commonest or (0, 0)
    if n_test == sweep.runs[0].about["n_test"]:
        guess = 0.0 if sweep.runs[0].metric == "matthews" else count / n_test
        if (above := difference(base, dict.fromkeys(base, guess), step=sweep.step)) is not None:
            learnt = "the task is learnt" if above.low > 0 else "that the task is learnt at all is not shown"
            yield (
                f"the commonest label for all texts scores {guess:.4f}, the model without a penalty "
                f"{above.words} more: {learnt}"
            )
            if low := [name for name, own in scores.items() if fmean(own.values()) < guess + _TIE]:
                yield f"no better than the commonest label on average: {', '.join(low)}"
    if known := {name: one for name in scores if (one := sweep.gain(*named[name]))}:
        above_none = ", ".join(name for name, one in known.items() if one.low > 0) or "none"
        below_none = ", ".join(name for name, one in known.items() if one.high < 0) or "none"
        yield f"of {len(known)} intervals, each by itself, above λ = 0: {above_none}; below: {below_none}"
    declared = {_name(kind, strength) for kind, own in STRENGTHS.items() for strength in own}
    if missing := sorted(declared - set(scores)):
        yield f"declared but not run: {', '.join(missing)}"


def strength_rows(sweep: Sweep) -> Iterator[dict[str, Any]]:
    """Yield a row for each regulariser and λ: means and deviations over seeds, the score less λ = 0."""
    for kind, strength in _points(sweep):
        scores = sweep.by_seed(kind, strength)
        apart = sweep.gain(kind, strength) if strength else None
        mean, low, high = apart[:3] if apart else (None, None, None)
        row: dict[str, Any] = {
            "subject": sweep.subject, "regularizer": kind, "strength": strength, "n_seeds": len(scores),
            "difference": mean, "low": low, "high": high,
        }  # fmt: skip
        for name in QUANTITIES:
            values = list(sweep.by_seed(kind, strength, name).values())
            row[name] = fmean(values) if values else None
            row[f"{name}_sd"] = stdev(values) if len(values) > 1 else None
        yield row


def estimate_rows(estimates: Estimates) -> list[dict[str, Any]]:
    """Return a row for each population, sampling, n and estimator."""
    truth = {known.name: known.truth for known in estimates.populations}
    return [
        {
            "population": cell.population,
            "truth": truth[cell.population],
            "sampling": cell.sampling,
            "n": cell.n,
        }
        | one._asdict()
        | cell.of(one, truth[cell.population])._asdict()
        for cell in estimates.cells
        for one in ESTIMATORS
        if one != JACKKNIFE or cell.mean[-1] is not None  # not taken of large batches
    ]


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as comma-separated values, to six digits."""
    lines = [",".join(rows[0])]
    for row in rows:
        cells = ("" if v is None else f"{v:.6g}" if isinstance(v, float) else str(v) for v in row.values())
        lines.append(",".join(f'"{cell}"' if "," in cell else cell for cell in cells))
    return "\n".join(lines) + "\n"


def _bias(found: Spread) -> str:
    return "—" if found.bias is None else f"{signed(found.bias, 4)} ± {found.error:.4f} ({found.sd:.4f})"


def batch_section(estimates: Estimates) -> Section:
    """Return every estimator's bias at the batch size the claims are about."""
    heads = (
        "population", "d", "truth", "IsoScore", "IsoScore*, ζ = 0.2", "best ζ", "IsoScore*, best ζ",
        "best ζ, other C₀", "IsoScore*, other C₀", "debiased", "with a jackknife", "undefined", "above 1",
    )  # fmt: skip
    lines, ratios, worse = [], [], []
    for known in estimates.populations:
        cell = estimates.cell(known.name, BATCH)
        if cell is None:
            continue
        of = {one: cell.of(one, known.truth) for one in ESTIMATORS}
        fresh, stale = (cell.least_biased(STARS[name][:-1], known.truth) for name in (FRESH, STALE))
        lines.append((
            known.title, str(known.n_dims), f"{known.truth:.4f}", _bias(of[PLAIN]),
            _bias(of[PAPER_ESTIMATOR]), f"{fresh.zeta:g}", _bias(of[fresh]), f"{stale.zeta:g}",
            _bias(of[stale]), _bias(of[DEBIASED]), _bias(of[JACKKNIFE]), str(of[DEBIASED].n_undefined),
            str(of[DEBIASED].n_outside),
        ))  # fmt: skip
        ours, theirs = of[DEBIASED], of[PAPER_ESTIMATOR]
        if ours.sd and theirs.sd and ours.rmse and theirs.rmse:
            ratios.append(ours.sd / theirs.sd)
            worse += [known.title] * (ours.rmse > theirs.rmse)
    told = (
        f"The debiased score's standard deviation is {min(ratios):.1f} to {max(ratios):.0f} times that of "
        f"IsoScore* at ζ = 0.2; its root mean square error is the larger on {len(worse)} of {len(ratios)} "
        f"populations: {'; '.join(worse) or 'none'}",
    ) if ratios else ()  # fmt: skip
    text = _BIASES.format(batch=BATCH, reference=N_REFERENCE, window=WINDOW)
    title, figures = f"Batches of {BATCH}: bias", estimates_figures(estimates)
    return Section(title, text, told, heads, tuple(lines), figures)


def stretch_section(estimates: Estimates) -> Section:
    """Return the biases on batches of whole stretches of text."""
    lines, below, nearer = [], 0, 0
    for known in estimates.populations:
        cells = estimates.cells_of(known.name, STRETCHES)
        biases = [cell.of(DEBIASED, known.truth).bias or 0.0 for cell in cells]
        below += len(biases) > 1 and biases[0] < 0
        nearer += len(biases) > 1 and abs(biases[-1]) < abs(biases[0])
        for cell in dict.fromkeys(cells[:1] + cells[-1:]):
            ours = (PLAIN, PAPER_ESTIMATOR, cell.least_biased(STARS[FRESH][:-1], known.truth), DEBIASED)
            alone = estimates.cell(known.name, cell.n)
            shown = (signed(cell.of(one, known.truth).bias, 4) for one in ours)
            apart = "—" if alone is None else signed(alone.of(DEBIASED, known.truth).bias, 4)
            size = f"{cell.n // (known.stretch or 1)} · {known.stretch}"
            lines.append((known.title, f"{known.truth:.4f}", size, *shown, apart))
    heads = (
        "population", "truth", "stretches · vectors", "IsoScore", "IsoScore*, ζ = 0.2", "IsoScore*, best ζ",
        "debiased", "debiased, independent vectors",
    )  # fmt: skip
    n = len({line[0] for line in lines})
    told = (
        f"With one stretch a batch the debiased score is below the truth on {below} of {n} populations; with "
        f"the most stretches it is nearer to it on {nearer}",
    )
    text = _STRETCHES.format(stretch=STRETCH)
    return Section("Batches as training makes them", text, told, heads, tuple(lines))
