"""The study of isotropy, clusters and classifiers: its claims and its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from isoscope.errors import InputError
from isoscope.terminal import say
from isoscope_papers.classifiers.figures import exception_figures, glue_figures, main_figures
from isoscope_papers.classifiers.options import DEFAULT, Options
from isoscope_papers.classifiers.run import Outcome, read_outcomes, run_setup, serves
from isoscope_papers.classifiers.setups import R_GLUE, RHO_GLUE, SETUPS, Setup
from isoscope_papers.page import Section
from isoscope_papers.rows import OTHER_DATA, Row, Table, table
from isoscope_papers.study import Study, chosen_setups
from isoscope_papers.verdict import Finding, Verdict, decide, judged, on, reached
from isoscope_papers.words import number, signed

_INTRO = (
    "Vectors and a linear classifier are trained together, full batch, while IsoScore and silhouette are "
    "measured at every update (Mickus, Grönroos and Attieh 2024, with five seeds). Each cell is our figure, "
    "with the paper's in brackets: ✓ reproduced (r and ρ within 0.003, or below the bound where only a bound "
    "is published; counts equal), ✗ not, ≠ other data, vectors or protocol than the paper's, so not "
    "comparable. Correlations are those of the curves averaged over the seeds, with the plain IsoScore. That "
    "IsoScore falls while clusters form is the case of few labels of a law with a sign: training goes toward "
    "(K − 2)/(d − 1), the IsoScore of K collapsed labels in d dimensions, from above or from below (see the "
    "page on the collapse law)."
)
_PARTS = {
    "main": ("Section 3: four setups", ""),
    "exception": (
        "The exception: a positive correlation",
        "With GloVe's vectors the supersenses move with a positive r. The number of label sets, larger "
        "than the number of dimensions, is not the reason: the same words, label sets and dimensions with "
        "the vectors divided by their mean length turn the sign. Both metrics ignore the scale; the "
        "optimiser does not: a vector of length 5 hardly turns in 1,000 updates of 0.001. Shorter vectors "
        "go further, and their curve turns twice (the figure): what r comes to depends on where training "
        "stops. With vectors short enough to move, the number of labels decides the sign (the page on the "
        "collapse law). The ceiling is the largest IsoScore that fully collapsed labels can have, (K − "
        "2)/(d − 1), or 1 from K = d + 1 on; labels that are not collapsed may lie above it, as they do "
        "at the start.",
    ),
    "glue": (
        "Appendix A: GLUE",
        "Sets over 20,000 items are measured on a fresh sample at each update. What is published of those "
        "fits only where the start, before the first update, is left out of the correlation; the paper does "
        "not say so. Another column has r with the start.",
    ),
}
_FIGURES = {"main": main_figures, "exception": exception_figures, "glue": glue_figures}


def _choose(names: Sequence[str], options: Options) -> list[Setup]:
    """Return the setups; an encoder that serves none of them is an error, one that serves some is said."""
    setups = chosen_setups(SETUPS, names)
    if options.encoder is None:
        return setups
    others = [setup.name for setup in setups if not serves(options.encoder, setup)]
    if len(others) == len(setups):
        is_file = Path(options.encoder).is_file()
        wanted = "the name or folder of a model" if is_file else "a file of word vectors"
        raise InputError(
            f"{options.encoder} serves none of {', '.join(others)}", argument="encoder", wanted=wanted
        )
    if others:
        say(f"{', '.join(others)}: own vectors, not {options.encoder}", err=True)
    return setups


def findings(outcomes: Sequence[Outcome]) -> Iterator[Finding]:
    """Yield what the runs say of the paper's claims."""
    for one in outcomes:
        evidence = f"{one.encoder}, {one.source}, {len(one.trajectory.configuration['seeds'])} seeds"
        yield from on("classifiers", one.title, _of_outcome(one), evidence)
    yield from on("classifiers", "all setups", _over_all(outcomes))


def _of_outcome(one: Outcome) -> Iterator[Finding]:
    name, by_name = one.setup.name, {row.quantity: row for row in one.rows()}

    def merged(claim: str, *quantities: str) -> Finding:
        own = [by_name[quantity] for quantity in quantities]
        verdict = reached(row.verdict for row in own)
        ours = ", ".join(f"{row.quantity} {row.cell}" for row in own)
        is_tested = verdict is not Verdict.NOT_TESTABLE and not one.is_short
        return decide(claim, verdict, ours, why="" if is_tested else one.why_not or OTHER_DATA)

    if one.setup.part == "glue":
        yield merged(f"parameters-{name}", "items", "parameters")
        yield merged(f"{name}-correlation", "r", "ρ")
        yield _moves(one, "figure-4", "silhouette", "isoscore")
    elif one.setup.published:
        yield merged(f"{name}-setup", "items", "parameters")
        why = one.why_not or OTHER_DATA
        yield by_name["r"].finding(f"{name}-r", why=why)
        yield by_name["ρ"].finding("spearman-main", why=why)
        yield _moves(one, "silhouette-rises", "silhouette")
        yield _moves(one, "isoscore-falls", "isoscore")
        if "sd, mean" in by_name:
            yield merged("seeds-spread", "sd, largest", "sd, mean")
    if one.setup.part == "main" and one.seconds is not None:
        ours = f"{one.seconds:.1f} s for {len(one.trajectory.seeds)} seeds"
        why = "another machine, and the share of the metrics is not recorded"
        yield decide("cost", True, ours, why=why)


def _moves(one: Outcome, claim: str, *names: str) -> Finding:
    """Test whether the silhouette rises and IsoScore falls from the start to the end."""
    ends = {name: one.ends(name) for name in names}
    held = {name: (last > first) == (name == "silhouette") for name, (first, last) in ends.items()}
    ours = ", ".join(f"{name} {number(a)} → {number(b, 4)}" for name, (a, b) in ends.items())
    why = one.why_not if one.setup.part == "main" or one.is_short else ""
    return decide(claim, held, ours, where="for {}", why=why)


def _over_all(outcomes: Sequence[Outcome]) -> Iterator[Finding]:
    """Test the claims that are made of all setups together."""
    r, rho = ({o.title: row.ours for o in outcomes for row in o.rows() if row.quantity == q} for q in "rρ")
    whole = {one.title for one in outcomes if not one.is_short}
    known = {title: value for title, value in r.items() if value is not None and title in whole}
    if known:
        contrary = {title: value for title, value in known.items() if value >= 0}
        shortened = {o.title: known[o.title] for o in outcomes if o.setup.unit_length and o.title in known}
        verdict = judged({title: value < 0 for title, value in known.items()})[0]
        where = "where training moves the vectors far against their length" if contrary else ""
        ours = f"r is negative in {len(known) - len(contrary)} of {len(known)} setups" + "".join(
            f"; {title} {signed(value)}" for title, value in {**contrary, **shortened}.items()
        )
        yield decide("empirical-conflict", (verdict, where), ours)
    cells = [one.title for one in outcomes if one.setup.part == "glue" and one.comparable]
    if cells:
        tops = {"r": max(r[title] or 0 for title in cells), "ρ": max(rho[title] or 0 for title in cells)}
        held = {"r": tops["r"] < R_GLUE, "ρ": tops["ρ"] < RHO_GLUE}
        ours = ", ".join(f"largest {name} {number(value, 5)}" for name, value in tops.items())
        yield replace(decide("glue-bounds", held, ours, where="for {}"), subject=f"{len(cells)} cells")


def sections(outcomes: Sequence[Outcome]) -> list[Section]:
    """Return one section for each part of the paper, with its figures."""
    parts = []
    for part, (title, text) in _PARTS.items():
        some = [outcome for outcome in outcomes if outcome.setup.part == part]
        if not some:
            continue
        if part == "exception":  # beside the setup whose words they have
            some = [one for one in outcomes if one.setup.part == part or one.setup.name == "supersense"]
        heads, cells = _ceilings(some) if part == "exception" else table(rows(some))
        text = " ".join(words for words in (_protocol(some), text) if words)
        parts.append(Section(title, text, _notes(some), heads, cells, _FIGURES[part](some)))
    return parts


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """Return ours beside published, quantity by quantity."""
    return [row for outcome in outcomes for row in outcome.rows()]


def _protocol(outcomes: Sequence[Outcome]) -> str:
    """Say how the runs of a section were made, from the runs themselves."""
    settings = [outcome.trajectory.configuration for outcome in outcomes]
    updates, every = ({one[key] for one in settings} for key in ("steps", "every"))
    seeds = {len(one["seeds"]) for one in settings}
    devices = {str(one["device"]).partition(":")[0] for one in settings}
    measured = "every update" if every == {1} else f"every {_listed(every)} updates"
    return (
        f"{_listed(updates)} updates, {_listed(seeds)} seeds, measured at {measured}, on {_listed(devices)}; "
        "seconds, where noted, are of all seeds, metrics included."
    )


def _listed(values: set[Any]) -> str:
    return " or ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in sorted(values))


def _notes(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Say where the texts came from, and what departs from the paper."""
    notes = (
        f"{one.setup.title}: {'; '.join(filter(None, (one.source, one.setup.note)))}" for one in outcomes
    )
    return tuple(dict.fromkeys(notes))


def _ceilings(outcomes: Sequence[Outcome]) -> Table:
    """Return labels, dimensions, ceiling and correlation: why the sign turns."""
    cells = []
    for one in outcomes:
        K, d, ceiling = one.ceiling()
        shown = {row.quantity: row.ours_shown for row in one.rows()}
        ends = (f"{shown[f'{name}, start']} → {shown[f'{name}, end']}" for name in ("silhouette", "isoscore"))
        cells.append((one.title, f"{K:,}", str(d), f"{ceiling:.3f}", shown["r"], *ends))
    heads = ("setup", "label sets K", "dimensions d", "ceiling of IsoScore", "r", "silhouette", "IsoScore")
    return heads, tuple(cells)


def _results(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the settings of every run."""
    settings = ((one, dict(one.trajectory.configuration)) for one in outcomes)
    return {"runs": {one.title: {"source": one.source, "configuration": about} for one, about in settings}}


STUDY: Study[Setup, Outcome] = Study(
    name="classifiers",
    title="Isotropy, Clusters, and Classifiers: reproduced",
    intro=_INTRO,
    setups=SETUPS,
    default=DEFAULT,
    choose=_choose,
    run=lambda setup, options, place: [run_setup(setup, options, place)],
    load=read_outcomes,
    findings=findings,
    sections=sections,
    rows=rows,
    results=_results,
    notes=lambda runs: [f"{one.title}: sampled: {one.sampled}" for one in runs if one.sampled],
)
