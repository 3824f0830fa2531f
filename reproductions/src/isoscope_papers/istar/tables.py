"""The estimators of isotropy on mini-batches, as tables for the page and as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isoscope.io.atomic import write_atomically
from isoscope_papers.istar.claims import best_zeta, signed
from isoscope_papers.istar.estimators import (
    BATCH,
    DEBIASED,
    ESTIMATORS,
    INDEPENDENT,
    JACKKNIFE,
    PLAIN,
    STRETCHES,
    Estimator,
    Known,
    Spread,
    Study,
)
from isoscope_papers.istar.populations import FRESH, N_REFERENCE, STALE, STRETCH, WINDOW
from isoscope_papers.pages import Section

TABLE = "istar-estimators.csv"
_PAPER_ZETA = Estimator("star", 0.2, FRESH)


def estimator_sections(study: Study, notes: tuple[str, ...], figures: dict[str, Path]) -> list[Section]:
    """Bias at one batch size, bias with variance, by batch size, and on whole stretches of text."""
    return [
        _batch_section(study, notes, figures),
        _variance_section(study),
        _size_section(study),
        _stretch_section(study),
    ]


def _batch_section(study: Study, notes: tuple[str, ...], figures: dict[str, Path]) -> Section:
    heads = (
        "population", "d", "truth", "IsoScore", "IsoScore*, ζ = 0.2", "best ζ", "IsoScore*, best ζ",
        "best ζ, other C₀", "IsoScore*, other C₀", "debiased", "with a jackknife", "undefined",
        "above 1",
    )  # fmt: skip
    cells = []
    for known in study.populations:
        cell = study.cell(known.name, BATCH)
        if cell is None:
            continue
        fresh, stale = best_zeta(known, cell, FRESH), best_zeta(known, cell, STALE)
        debiased = cell.of(DEBIASED, known.truth)
        cells.append(
            (
                known.title, str(known.n_dims), f"{known.truth:.4f}",
                *(_bias(cell.of(one, known.truth)) for one in (PLAIN, _PAPER_ZETA)),
                f"{fresh.zeta:g}", _bias(cell.of(fresh, known.truth)),
                f"{stale.zeta:g}", _bias(cell.of(stale, known.truth)),
                _bias(debiased), _bias(cell.of(JACKKNIFE, known.truth)), str(debiased.n_undefined),
                str(debiased.n_outside),
            )
        )  # fmt: skip
    text = (
        f"Bias ± its standard error (standard deviation of one batch in brackets) at n = {BATCH} independent "
        f"vectors, {study.cells_of(study.populations[0].name)[0].n_draws:,} batches or as many as the table "
        f"{TABLE} says, which has every population, n and estimator: mean, bias, standard error, standard "
        f"deviation, root mean square error, undefined results. C₀ is made of {N_REFERENCE:,} vectors of the "
        "population; the other C₀ is a flat one of the same total variance (a geometric one for the flat "
        "spectrum), or for token states that of another layer. The truth of a spectrum is a closed form. "
        f"Token states are of WikiText-2's test split, read {WINDOW} tokens at a time: a finite population, "
        "from which vectors are drawn with replacement, so that its IsoScore is the truth exactly. Best ζ: "
        "that of least bias below 1, which nobody knows without knowing the truth."
    )
    return Section(f"Batches of {BATCH}: bias", text, notes, heads, tuple(cells), figures)


def _bias(found: Spread) -> str:
    if found.bias is None:
        return "—"
    return f"{signed(found.bias)} ± {found.error:.4f} ({found.sd:.4f})"


def _variance_section(study: Study) -> Section:
    """Where the debiased score's mean square error is larger than IsoScore*'s."""
    heads = (
        "population", "n", "debiased", "with a jackknife", "IsoScore", "ζ = 0.2", "best ζ",
        "best ζ, other C₀", "least",
    )  # fmt: skip
    cells = []
    for known in study.populations:
        for cell in study.cells_of(known.name):
            if cell.n not in (16, BATCH, 128):
                continue
            ours = {
                "debiased": DEBIASED, "with a jackknife": JACKKNIFE, "IsoScore": PLAIN,
                "ζ = 0.2": _PAPER_ZETA, "best ζ": best_zeta(known, cell, FRESH),
                "best ζ, other C₀": best_zeta(known, cell, STALE),
            }  # fmt: skip
            errors = {name: cell.of(one, known.truth).rmse for name, one in ours.items()}
            known_ones = {name: value for name, value in errors.items() if value is not None}
            least = min(known_ones, key=lambda name: known_ones[name]) if known_ones else "—"
            cells.append((known.title, str(cell.n), *map(_number, errors.values()), least))
    text = (
        "Root mean square error of one batch's estimate: bias and variance together. The debiased score pays "
        "for its small bias with variance: a single batch says little, and it is the mean over many, which "
        "training takes, that comes out right. IsoScore* at a large ζ hardly depends on the batch: with a C₀ "
        "of the very population that is the better estimate, with another it is the error of that C₀."
    )
    return Section("Bias and variance", text, _worse(study), heads, tuple(cells), {})


def _worse(study: Study) -> tuple[str, ...]:
    """In words: where one batch's debiased score is worse than IsoScore* at the paper's ζ."""
    rows = []
    for known in study.populations:
        cell = study.cell(known.name, BATCH)
        if cell is None:
            continue
        ours, theirs = (cell.of(one, known.truth) for one in (DEBIASED, _PAPER_ZETA))
        if ours.sd and theirs.sd and ours.rmse and theirs.rmse:
            rows.append((known.title, ours.sd / theirs.sd, ours.rmse > theirs.rmse))
    if not rows:
        return ()
    ratios = [ratio for _, ratio, _ in rows]
    worse = [title for title, _, is_worse in rows if is_worse]
    return (
        f"At n = {BATCH} the debiased score's standard deviation is {min(ratios):.1f} to {max(ratios):.0f} "
        "times that of IsoScore* at ζ = 0.2",
        f"Its root mean square error is the larger on {len(worse)} of {len(rows)} populations"
        + (f": {'; '.join(worse)}" if worse else ""),
    )


def _size_section(study: Study) -> Section:
    sizes = sorted({cell.n for cell in study.cells if cell.sampling == INDEPENDENT})
    cells = []
    for known in study.populations:
        found = {cell.n: cell.of(DEBIASED, known.truth) for cell in study.cells_of(known.name)}
        undefined = sum(one.n_undefined for one in found.values())
        shown = (_bias(found[n]) if n in found else "—" for n in sizes)
        cells.append((known.title, f"{known.truth:.4f}", *shown, str(undefined)))
    text = (
        "Bias of the debiased score ± its standard error (standard deviation). It is a ratio of two unbiased "
        "estimates: what bias is left is that of the ratio, which grows with the spread of its denominator, "
        "at few vectors and where one direction, or a few tokens, dwarf the rest. It may exceed 1. With a "
        "jackknife (debias='jackknife') the next order of that bias goes too, for variance; a batch that "
        "has not seen what dwarfs the rest cannot tell of it either way."
    )
    heads = ("population", "truth", *(f"n = {n}" for n in sizes), "undefined")
    return Section("The debiased score by batch size", text, (), heads, tuple(cells), {})


def _stretch_section(study: Study) -> Section:
    cells = []
    for known in study.populations:
        for cell in study.cells_of(known.name, STRETCHES):
            ours = [PLAIN, _PAPER_ZETA, best_zeta(known, cell, FRESH), DEBIASED]
            apart = _same_size(study, known, cell.n)
            cells.append(
                (
                    known.title, f"{known.truth:.4f}", f"{cell.n // (known.stretch or 1)} · {known.stretch}",
                    *(_bias(cell.of(one, known.truth)) for one in ours), apart,
                )
            )  # fmt: skip
    text = (
        f"A batch in training is no sample of independent vectors: it has all tokens of a few texts, in all "
        f"layers that are penalised. Here a batch is made of whole stretches of {STRETCH} tokens, each with "
        "its states in the layers named, drawn with replacement. Vectors of one text are alike, so a batch "
        "holds fewer independent ones than it has rows, and no estimator that takes them for independent is "
        "without bias, the debiased one included; it shrinks with the number of texts. The last column has "
        "the debiased score on as many independent vectors, where that was taken."
    )
    heads = (
        "population", "truth", "stretches · vectors", "IsoScore", "IsoScore*, ζ = 0.2", "IsoScore*, best ζ",
        "debiased", "debiased, independent vectors",
    )  # fmt: skip
    return Section("Batches as training makes them", text, _short(study), heads, tuple(cells), {})


def _short(study: Study) -> tuple[str, ...]:
    """In words: on how many populations the debiased score of one stretch falls short, and how it mends."""
    parts = []
    for known in study.populations:
        cells = study.cells_of(known.name, STRETCHES)
        biases = [cell.of(DEBIASED, known.truth).bias for cell in cells]
        if len(biases) > 1 and biases[0] is not None and biases[-1] is not None:
            parts.append((biases[0] < 0, abs(biases[-1]) < abs(biases[0])))
    if not parts:
        return ()
    below, mends = (sum(column) for column in zip(*parts, strict=True))
    return (
        f"With one stretch a batch the debiased score is below the truth on {below} of {len(parts)} "
        f"populations; with the most stretches it is nearer to it on {mends}",
    )


def _same_size(study: Study, known: Known, n: int) -> str:
    cell = study.cell(known.name, n)
    return "—" if cell is None else _bias(cell.of(DEBIASED, known.truth))


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.4f}"


def table_rows(study: Study) -> list[dict[str, Any]]:
    """A row for each population, sampling, n and estimator."""
    named = {known.name: known for known in study.populations}
    return [
        {"population": cell.population, "truth": named[cell.population].truth}
        | {"sampling": cell.sampling, "n": cell.n}
        | one._asdict()
        | cell.of(one, named[cell.population].truth)._asdict()
        for cell in study.cells
        for one in ESTIMATORS
        if one != JACKKNIFE or cell.mean[-1] is not None  # not taken of large batches
    ]


def write_table(study: Study, path: Path) -> Path:
    """The same as a file of comma-separated values, to six digits."""
    rows = table_rows(study)
    lines = [",".join(rows[0])]
    lines += [
        ",".join("" if v is None else f"{v:.6g}" if isinstance(v, float) else str(v) for v in row.values())
        for row in rows
    ]
    return write_atomically(path, lambda place: place.write_text("\n".join(lines) + "\n", encoding="utf-8"))
