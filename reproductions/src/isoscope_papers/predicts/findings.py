"""What the table shows, each by a stated bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from isoscope_papers.predicts.analysis import Analysis, analysed, gain_of, sign_of
from isoscope_papers.predicts.associations import ALL, DIRECTIONS, LEVEL, t_interval
from isoscope_papers.predicts.choices import AS_SAID, CHOICES, DEFAULT, LEARNT, OTHER_TASKS
from isoscope_papers.predicts.table import Spaces
from isoscope_papers.predicts.wide import VIEWS
from isoscope_papers.verdict import Finding, Verdict, by_interval, decide, on
from isoscope_papers.words import between, number, signed

# claim, metric; the direction is that in which the metric is said to be good
CORRELATIONS = (
    ("isotropy-good", "isoscore_debiased"),
    ("cosine-low-good", "mean_cosine"),
    ("dimension-low-good", "twonn"),
    ("rankme-good", "rankme_debiased"),
    ("hubness-low-good", "hubness"),
)
CHOOSERS = (
    ("isotropy-chooses", "isoscore_debiased"),
    ("dimension-chooses", "twonn"),
    ("rankme-chooses", "rankme_debiased"),
    ("alpha-req-chooses", "alpha_req_from_1"),
)


def findings(runs: Sequence[Spaces]) -> Iterator[Finding]:
    """Yield every finding, by view or by what is chosen."""
    found = analysed(runs)
    for view in VIEWS:
        yield from on("predicts", view, _of_view(found, view), _evidence(found, view))
    for choice in CHOICES:
        if found.rule(choice, DEFAULT[choice], ALL) is not None:
            yield from on("predicts", f"the {choice}", _of_choice(found, choice), _sets(found, choice))


def _evidence(found: Analysis, view: str) -> str:
    rows = found.found[found.found["view"] == view]
    if rows.empty:
        return ""
    return f"{rows['n_spaces'].max()} spaces of {rows['n_lineages'].max()} models"


def _sets(found: Analysis, choice: str) -> str:
    rows = found.regrets[found.regrets["choice"] == choice]
    return f"{rows['n_sets'].max()} sets of {choice}s, {rows['n_lineages'].max()} models"


def _of_view(found: Analysis, view: str) -> Iterator[Finding]:
    for claim, metric in CORRELATIONS:
        rows = found.association(view, metric)
        if rows.empty:
            continue
        signs = {group: sign_of(row, DIRECTIONS[metric]) for group, row in rows.iterrows()}
        words = "; ".join(f"{group} {signed(row['rho'], 2)}" for group, row in rows.iterrows())
        yield decide(
            claim, {str(group): sign for group, sign in signs.items()}, f"ρ: {words}", where="for {}"
        )


def _of_choice(found: Analysis, choice: str) -> Iterator[Finding]:
    for claim, metric in CHOOSERS:
        row = found.rule(choice, f"{metric}, {AS_SAID}", ALL)
        assert row is not None
        words = f"gain {gain_of(row)}"
        yield decide(
            claim, _by(row["gain_low"], row["gain_high"]), f"{words}, regret {number(row['regret'], 1)}"
        )
    yield _any(found, choice)
    yield _labels(found, choice)


def _by(low: float, high: float) -> Verdict:
    return Verdict.INCONCLUSIVE if not np.isfinite(low) else by_interval(low, high)


def _any(found: Analysis, choice: str) -> Finding:
    """Return whether some metric chooses better than not choosing, after correction for their number."""
    rows = found.regrets
    rows = rows[(rows["choice"] == choice) & (rows["group"] == ALL) & rows["rule"].str.contains(",")]
    best = rows.loc[rows["gain"].idxmax()]
    survives = rows[(rows["p_adjusted"] < LEVEL) & (rows["gain"] > 0)]
    verdict = Verdict.INCONCLUSIVE if survives.empty else Verdict.HELD
    words = (
        f"{len(survives)} of {len(rows)} rules; the largest gain, of {best['rule'].replace('_', ' ')}, is "
        f"{gain_of(best)}"
    )
    return decide("some-metric-chooses", verdict, words)


def _labels(found: Analysis, choice: str) -> Finding:
    """Return whether scores in other tasks choose better than every metric, by lineage."""
    rows = found.regrets
    rows = rows[(rows["choice"] == choice) & (rows["group"] == ALL)].set_index("rule")
    metrics = rows[rows.index.str.contains(f", {AS_SAID}") | rows.index.str.contains(f", {LEARNT}")]
    best = metrics["regret"].idxmin()
    labelled = rows.loc[OTHER_TASKS, "regret"]
    with_labels, with_metric = rows.loc[OTHER_TASKS, "by_lineage"], rows.loc[best, "by_lineage"]
    _, low, high, _ = t_interval([with_metric[name] - with_labels[name] for name in with_labels])
    words = (
        f"regret {number(labelled, 1)}, against {number(metrics['regret'].min(), 1)} of the best metric "
        f"({best.replace('_', ' ')}), which is the best of {len(metrics)} with hindsight; "
        + (f"difference {between(low, high, 1)}" if np.isfinite(low) else "too few models for an interval")
    )
    return decide("labels-choose-better", _by(low, high), words)
