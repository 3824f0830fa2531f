"""The study of the theory: what was found of each claim, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from isoscope.training import TradeOff
from isoscope_papers.page import Section
from isoscope_papers.rows import Row, Table, equal
from isoscope_papers.runs import as_plain, keep
from isoscope_papers.study import Study
from isoscope_papers.theory.deep import deep_findings, deep_table
from isoscope_papers.theory.figures import chord_figure, deep_figure, followed_figure, trade_figure
from isoscope_papers.theory.run import FOLLOWED, Followed, Run, run_setup
from isoscope_papers.theory.setups import N_CASES, N_TRIPLETS, SETUPS, Setup
from isoscope_papers.theory.statements import STATEMENTS, statement_findings
from isoscope_papers.verdict import Finding, Verdict
from isoscope_papers.words import number, span

_INTRO = (
    "Every statement of Mickus, Grönroos and Attieh 2024 that mathematics decides, checked on random cases; "
    "their conjecture on deep classifiers and their remark on triplet losses put to the test; and what "
    "isotropy and clusters can have at once on real embeddings. The proofs are on the page on theory."
)
_DEEP = (
    "Networks of 1 to 5 hidden layers of ReLU units, trained full batch by Adam on fixed vectors; means over "
    "seeds, which are no spaces themselves: the frontier is not concave, and a mean may lie above it. With "
    "fewer dimensions than labels (d ≤ K − 1) the frontier asks for no anisotropy. The table has the last "
    "hidden layer at the end of training. The ceiling is the largest IsoScore at its ρ, the simplex that of "
    "collapsed labels; the last column is the IsoScore of the K scores."
)


def findings(runs: Sequence[Run]) -> Iterator[Finding]:
    """Yield what the runs say of the claims."""
    for run in runs:
        yield from statement_findings(run.held, N_CASES)
        yield from deep_findings(run.deep)
        yield from (_training_finding(one) for one in run.followed if one.objective == "triplet")


def _training_finding(one: Followed) -> Finding:
    """Return whether training with a triplet loss lowered IsoScore."""
    scores, silhouettes = one.mean("isoscore"), one.mean("silhouette")
    ours = (
        f"IsoScore {scores[0]:.3f} → {scores[-1]:.3f}, silhouette {silhouettes[0]:.3f} → "
        f"{silhouettes[-1]:.3f}, r {number(one.r)} (seeds {span(one.r_by_seed)}); "
        f"triplets in order {one.mean('accuracy')[-1]:.4f}"
    )
    falls = all(curve[-1] < curve[0] for curve in one.curves["isoscore"])
    evidence = f"{one.n:,} vectors, {one.steps[-1]} updates, {len(one.r_by_seed)} seeds"
    verdict = Verdict.HELD if falls else Verdict.NOT_HELD
    return Finding("classifiers/triplet-training", one.data, verdict, ours, evidence=evidence)


def sections(runs: Sequence[Run]) -> list[Section]:
    """Return statements, networks, triplets and trade-offs."""
    deep = [one for run in runs for one in run.deep]
    followed = [one for run in runs for one in run.followed]
    parts = []
    if held := _held(runs):
        text = (
            "Random cases in which what is said of the statement was so; what does not hold has its "
            "counterexample in the table of claims. The figure is the paper's figure 1."
        )
        cells = tuple((key, str(STATEMENTS[key].verdict), f"{n} of {N_CASES}") for key, n in held.items())
        heads = ("statement", "verdict", "cases")
        parts.append(Section("The statements", text, (), heads, cells, (chord_figure(),)))
    if deep:
        pictures = tuple(deep_figure(run.deep) for run in runs if run.deep)
        parts.append(Section("Deep classifiers", _DEEP, (), *deep_table(deep), pictures))
    if followed:
        text = (
            f"The vectors themselves trained without margin on {N_TRIPLETS:,} triplets drawn at each update, "
            "beside a linear classifier on the same vectors. Nothing forces a triplet loss to make a space "
            "anisotropic, and yet it does so here; it stops once all triplets are in order, long before the "
            "labels have collapsed. Accuracy is the share of triplets in order, or of vectors classified "
            "right."
        )
        table = _training_table(followed)
        parts.append(Section("Training with triplets", text, (), *table, (followed_figure(followed),)))
    for name, one in _trades(runs).items():
        text = (
            f"{one.n} vectors, {one.n_labels} labels, {one.n_dims} dimensions, moved for {one.objectives[0]} "
            f"and {one.objectives[1]} at once ({one.configuration['scalarization']}, "
            f"{one.configuration['steps']} steps). No point can pass the frontier of so many points; "
            "`distance` says how near it came."
        )
        (grid,) = one.grids()
        table = tuple(grid.names()), tuple(map(tuple, grid.cells()))
        parts.append(Section(f"Traded: {name}", text, (), *table, (trade_figure(name, one),)))
    return parts


def _training_table(followed: Sequence[Followed]) -> Table:
    """Return start and end of what was followed, and how IsoScore and silhouette went together."""
    cells = []
    for one in followed:
        ends = (
            f"{number(one.mean(name)[0])} → {number(one.mean(name)[-1])}" for name in ("accuracy", *FOLLOWED)
        )
        cells.append((one.objective, one.data, str(one.steps[-1]), *ends, number(one.r), span(one.r_by_seed)))
    heads = ("objective", "on", "updates", "accuracy", "IsoScore", "silhouette", "ρ", "r", "r of the seeds")
    return heads, tuple(cells)


def _held(runs: Sequence[Run]) -> dict[str, int]:
    return {key: n for run in runs for key, n in run.held.items()}


def _failed(runs: Sequence[Run]) -> list[Row]:
    """Return the checks that failed on some case: they end the command with an error."""
    return [equal(key, "cases", n, N_CASES, comparable=True) for key, n in _held(runs).items() if n < N_CASES]


def _trades(runs: Sequence[Run]) -> dict[str, TradeOff]:
    return {name: TradeOff.from_dict(trade) for run in runs for name, trade in run.trades.items()}


def _results(runs: Sequence[Run]) -> dict[str, Any]:
    """Return everything that was kept, in the order of the setups."""
    return {
        "n_cases": N_CASES,
        "held": _held(runs),
        "deep": [as_plain(one) for run in runs for one in run.deep],
        "trades": {name: trade for run in runs for name, trade in run.trades.items()},
        "followed": [as_plain(one) for run in runs for one in run.followed],
    }


STUDY: Study[Setup, Run] = Study(
    name="theory",
    title="Isotropy, clusters and classifiers: the theory, tested",
    intro=_INTRO,
    setups=SETUPS,
    run=run_setup,
    kind=Run,
    keep=keep,
    findings=findings,
    sections=sections,
    rows=_failed,
    results=_results,
    notes=lambda runs: [f"{name}\n{trade.summary()}\n" for name, trade in _trades(runs).items()],
)
