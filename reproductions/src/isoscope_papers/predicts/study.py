"""The study of what geometry predicts: its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from isoscope_papers.page import Section
from isoscope_papers.predicts import setups
from isoscope_papers.predicts.analysis import Analysis, analysed
from isoscope_papers.predicts.answers import answers
from isoscope_papers.predicts.associations import ALL, ALL_GROUPS, DIRECTIONS
from isoscope_papers.predicts.choices import AS_SAID, CHOICES, LEARNT
from isoscope_papers.predicts.figures import figures, shown
from isoscope_papers.predicts.findings import findings
from isoscope_papers.predicts.options import DEFAULT
from isoscope_papers.predicts.run import run_setup
from isoscope_papers.predicts.scores import TASKS
from isoscope_papers.predicts.setups import (
    CHECKPOINTS,
    CORRECTIONS,
    LAYERS,
    MATERIALS,
    METRICS,
    SETUPS,
    Setup,
)
from isoscope_papers.predicts.table import FILE, Spaces, keep, load
from isoscope_papers.predicts.wide import UNCORRECTED, VIEWS, lineage
from isoscope_papers.study import Study
from isoscope_papers.words import number, signed

_INTRO = (
    "Is isotropy good? Is a low intrinsic dimension? Can RankMe choose a layer? Many spaces, each measured "
    "without labels on the texts of a task and then scored on that task, and how the two go together: within "
    "a model, across models, and when one space is to be chosen."
)


def sections(runs: Sequence[Spaces]) -> list[Section]:
    """Return the answers, the spaces, the correlations, the choices and the method."""
    found = analysed(runs)
    drawings = list(figures(found))
    return [
        Section("Answers", "", tuple(answers(found))),
        _spaces(found),
        Section("Correlations", _CORRELATIONS, (), *_correlation_table(found), figures=(drawings[0],)),
        Section("With depth held constant", _PARTIAL, (), *_partial_table(found)),
        Section("Choosing without labels", _CHOICES, (), *_regret_table(found), figures=(drawings[1],)),
        Section("Metrics with labels", _LABELS, (), *_label_table(found)),
        _method(),
    ]


def _spaces(found: Analysis) -> Section:
    about = found.wide.about
    cells = []
    for name, setup in SETUPS.items():
        own = about[about["model"] == name]
        if len(own):
            counts = [
                str((own["family"] == family).sum() or "") for family in (LAYERS, CHECKPOINTS, CORRECTIONS)
            ]
            cells.append((setup.title, setup.about, str(own["n_dims"].max()), *counts))
    text = (
        f"{len(about):,} spaces of {about['model'].nunique()} models, which count as "
        f"{len({lineage(str(model)) for model in about['model']})}: a contrastive run and the masked model "
        "that it begins from are one. A pooling is the mean of token states, the first token, the last one, "
        "their maximum, or the mean without the first token, which is an attention sink of SmolLM2. "
        f"Every number is in `runs/{FILE}`."
    )
    heads = ("model", "what it is", "dimensions", "layers × poolings", "checkpoints × layers", "corrections")
    return Section("The spaces", text, (), heads, tuple(cells))


_CORRELATIONS = (
    "Spearman's ρ of metric and score over the spaces of a model, averaged over the tasks of a group and "
    "then over models; a star: p < 0.05 after Benjamini and Hochberg, over all cells of groups, and over the "
    "metrics and views for all tasks together. Models are averaged as Fisher's z, and the p-value is that of "
    "Student's t over models; `predicts.json` has every interval, that by drawing models with replacement, "
    "and the ρ of each model. A caution on TwoNN: the texts of similarity and search come in pairs, so that "
    "the nearest neighbour of a text is often the other text of its pair. A low TwoNN dimension there can "
    "say that pairs are found, which is the task itself; Gride, which looks at farther neighbours, has the "
    "other sign."
)
_PARTIAL = (
    "The same within models over layers and checkpoints, after a linear fit on the ranks of depth, its "
    "square, the updates of training and the pooling. What is left is not explained by where in the model a "
    "space lies."
)
_CHOICES = (
    "A layer is chosen among those of one model, pooling and checkpoint; a checkpoint among those of one "
    "training, in the last layer; a correction among all of the last layer and none. The regret is the score "
    "of the best space minus that of the chosen one, in points of 100, as a mean over tasks and models. “As "
    "said” takes the space with the highest or the lowest value, as the literature has it; “learnt” takes "
    "the direction that was right on the other models, which needs labels there. Best on the other tasks is "
    "what labels of other texts achieve. A star: better than the default with p < 0.05 after Benjamini and "
    "Hochberg over all rules and choices."
)
_LABELS = (
    "The same as the first table, for metrics that are told the labels, or the pairs to be found. They are "
    "compared with tasks of the same labels, so that they are no predictors without labels."
)


def _correlation_table(found: Analysis) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    chosen = [name for name in DIRECTIONS if name in _TABLE]
    cells = []
    for view in VIEWS:
        for place, metric in enumerate(chosen):
            rows = found.association(view, metric)
            if len(rows):
                cells.append((view if not place else "", shown(metric), *_rho_cells(rows, "rho")))
    return ("", "metric", *ALL_GROUPS), tuple(cells)


_TABLE = (
    "isoscore_debiased", "mean_cosine", "uniformity", "effective_rank", "rankme_debiased", "alpha_req_from_1",
    "twonn", "gride", "hubness", "cluster_learnability", "norm_variation", "n_dims",
)  # fmt: skip


def _rho_cells(rows: pd.DataFrame, name: str) -> Iterator[str]:
    for group in ALL_GROUPS:
        if group not in rows.index or not np.isfinite(rows.loc[group, name]):
            yield "—"
            continue
        row = rows.loc[group]
        adjusted = row["p_adjusted" if name == "rho" else "partial_p_adjusted"]
        yield signed(float(row[name]), 2) + (" ★" if adjusted < 0.05 else "")


def _partial_table(found: Analysis) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    cells = []
    for metric in (name for name in _TABLE if name != "n_dims"):
        rows = found.association(UNCORRECTED, metric)
        if len(rows):
            cells.append((shown(metric), *_rho_cells(rows, "partial")))
    return ("metric", *ALL_GROUPS), tuple(cells)


def _regret_table(found: Analysis) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    rows = found.regrets[found.regrets["group"] == ALL]
    cells = []
    for choice in CHOICES:
        own = rows[rows["choice"] == choice]
        named = own[~own["rule"].str.contains(",")]
        metrics = own[own["rule"].str.endswith(AS_SAID)].sort_values("regret")
        chosen = [name for name in metrics.index if metrics.loc[name, "rule"].split(",")[0] in _TABLE]
        learnt = own[own["rule"].str.endswith(LEARNT)].sort_values("regret")[:1]
        for place, (_, row) in enumerate(pd.concat([named, metrics.loc[chosen], learnt]).iterrows()):
            cells.append((choice if not place else "", *_regret_cells(row)))
    return ("choice", "rule", "regret", "95 %", "gain over the default", "95 %"), tuple(cells)


def _regret_cells(row: pd.Series) -> tuple[str, ...]:
    metric, _, how = row["rule"].partition(", ")
    rule = f"{shown(metric)}, {how}" if how else metric
    star = " ★" if row["p_adjusted"] < 0.05 and row["gain"] > 0 else ""
    own = _ends(row["low"], row["high"])
    gain, ends = (signed(row["gain"], 1), _ends(row["gain_low"], row["gain_high"]))
    return rule, number(row["regret"], 1), own, gain + star, ends


def _ends(low: float, high: float) -> str:
    return "—" if not np.isfinite(low) else f"{number(low, 1)} … {number(high, 1)}"


def _label_table(found: Analysis) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    table = found.of_labels
    cells = []
    for view in VIEWS:
        own = table[table["view"] == view]
        for place, (metric, rows) in enumerate(own.groupby("metric", sort=False)):
            by_group = rows.set_index("group")
            cells.append((view if not place else "", shown(str(metric)), *_rho_cells(by_group, "rho")))
    return ("", "metric", *ALL_GROUPS), tuple(cells)


def _method() -> Section:
    """Return the texts, tasks, metrics and limits."""
    heads = ("texts", "tasks", "items")
    cells = []
    for one in MATERIALS.values():
        tasks = {
            setups.PAIRS: ("similarity",), setups.SEARCH: ("search",), setups.ANALOGIES: ("analogies",),
        }.get(one.kind, one.tasks)  # fmt: skip
        of_what = {setups.LABELS: "of each label", setups.PAIRS: "pairs", setups.SEARCH: "pairs"}
        count = f"{one.n_items:,} {of_what.get(one.kind, 'questions')}"
        count += " of each year" if len(one.corpora) > 1 else ""
        cells.append((one.title, ", ".join(TASKS[task] for task in tasks), count))
    text = (
        f"{len(METRICS)} metrics of the registry, computed on at most {setups.MAX_ROWS} of the very texts "
        "whose task is scored, so that no metric is credited or blamed for other texts. Corrections are "
        "fitted without labels on all sentences or all words. The ridge classifier is fitted to one half and "
        "scored on the other, in both directions; the search finds the other text of each pair among all of "
        "them. Within a model, spaces are not independent: a p-value counts models, not spaces, and with so "
        "few models only large and consistent correlations can be significant. What is inconclusive here is "
        "not shown to be absent. Across models, p-values are from shuffled scores, and models that differ in "
        "size, data and aim are compared: no correlation there says that changing the metric would change "
        "the score. The texts are short and English, the encoders have at most 135 million parameters, and "
        "the models trained here are trained briefly."
    )
    return Section("Texts, tasks and limits", text, (), heads, tuple(cells))


def _results(runs: Sequence[Spaces]) -> dict[str, Any]:
    """Return every correlation, and every regret over all tasks, unrounded."""
    found = analysed(runs)
    return {
        "correlations": _records(found.found),
        "correlations_with_labels": _records(found.of_labels),
        "regrets": _records(found.regrets[found.regrets["group"] == ALL]),
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            name: None if isinstance(value, float) and not np.isfinite(value) else _plain(value)
            for name, value in row.items()
        }
        for row in table.to_dict("records")
    ]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


STUDY: Study[Setup, Spaces] = Study(
    name="predicts",
    title="What does geometry predict?",
    intro=_INTRO,
    setups=SETUPS,
    default=DEFAULT,
    run=run_setup,
    kind=Spaces,
    keep=keep,
    load=load,
    findings=findings,
    sections=sections,
    results=_results,
    claims_at=1,
)
