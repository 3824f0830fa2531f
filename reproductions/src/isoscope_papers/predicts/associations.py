"""Rank correlations of metrics and tasks: within models, across them, and with depth held constant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from isoscope_papers.predicts.setups import METRICS
from isoscope_papers.predicts.wide import (
    ACROSS,
    ALPHA_FROM_1,
    CORRECTED,
    DIMENSIONS,
    DRAWS,
    FEWEST,
    UNCORRECTED,
    Wide,
    lineage,
)

GROUPS: dict[str, tuple[tuple[str, str], ...]] = {  # of tasks: corpus and task
    "similarity": (("stsb", "similarity"), ("sts12-16", "similarity"), ("sick", "similarity")),
    "search": (("qqp", "search"), ("snli", "search")),
    "neighbours": (("banking77", "knn"), ("stackoverflow", "knn"), ("sst2", "knn")),
    "clusters": (("banking77", "clustering"), ("stackoverflow", "clustering")),
    "probe": (("banking77", "probe"), ("stackoverflow", "probe"), ("sst2", "probe"), ("cola", "probe")),
    "words": (("men", "similarity"), ("simlex999", "similarity"), ("analogies", "analogies")),
}  # fmt: skip
TASKS = tuple(task for tasks in GROUPS.values() for task in tasks)
ALL = "all tasks"
ALL_GROUPS = {ALL: TASKS, **GROUPS}
LEVEL = 0.05  # false discoveries among what is called significant
COLUMNS = (
    "view", "metric", "group", "rho", "low", "high", "p", "low_drawn", "high_drawn", "partial", "partial_low",
    "partial_high", "partial_p", "n_lineages", "n_spaces", "by_model",
)  # fmt: skip
DIRECTIONS = METRICS | {ALPHA_FROM_1: -1, DIMENSIONS: 1}


def spearman(x: np.ndarray, y: np.ndarray, controls: np.ndarray | None = None) -> float:
    """Return Spearman's ρ, with controls that of what a linear fit on them leaves of both ranks.

    NaN where there are too few pairs, or all values of one are equal.

    >>> spearman(np.array([1, 2, 3, 4, 5.0]), np.array([1, 4, 9, 16, 25.0]))
    1.0
    """
    kept = np.isfinite(x) & np.isfinite(y)
    if kept.sum() < FEWEST:
        return float("nan")
    ranks = np.stack([stats.rankdata(x[kept]), stats.rankdata(y[kept])])
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    if controls is not None:
        design = np.column_stack([np.ones(kept.sum()), controls[kept]])
        if kept.sum() - np.linalg.matrix_rank(design) < FEWEST - 1:
            return float("nan")
        ranks = ranks - (design @ np.linalg.lstsq(design, ranks.T, rcond=None)[0]).T
    lengths = np.linalg.norm(ranks, axis=1)
    if lengths.min() < 1e-9 * len(ranks[0]):
        return float("nan")
    return float(np.clip(round(ranks[0] @ ranks[1] / lengths.prod(), 15), -1, 1))


def within(
    wide: Wide, view: str, metric: str, tasks: Sequence[tuple[str, str]], *, partial: bool
) -> dict[str, float]:
    """Return by model the mean over tasks of the rank correlation over its spaces."""
    found = {}
    for model, spaces in wide.of_view(view).items():
        controls = wide.controls(view, model) if partial else None
        values = [
            spearman(wide.metric(metric, task[0], spaces), wide.score(task, spaces), controls)
            for task in tasks
        ]
        known = [value for value in values if np.isfinite(value)]
        if known:
            found[model] = float(np.mean(known))
    return found


def by_lineage(values: Mapping[str, float]) -> dict[str, float]:
    """Return the mean over the models of each lineage."""
    lines: dict[str, list[float]] = {}
    for model, value in values.items():
        lines.setdefault(lineage(model), []).append(value)
    return {name: float(np.mean(own)) for name, own in lines.items()}


def t_interval(values: Sequence[float], *, fisher: bool = False) -> tuple[float, float, float, float]:
    """Return mean, 95 % interval and p-value of a mean over lineages, by Student's t.

    Args:
        values: one for each lineage.
        fisher: whether they are correlations, which are averaged as Fisher's z.

    >>> [round(x, 3) for x in t_interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484, 0.074]
    """
    known = np.asarray(values, dtype=float)
    points = np.arctanh(np.clip(known, -0.999, 0.999)) if fisher else known
    back = np.tanh if fisher else (lambda x: x)
    mean = points.mean()
    if len(points) < 3 or points.std() == 0:
        return float(back(mean)), float("nan"), float("nan"), float("nan")
    error = points.std(ddof=1) / np.sqrt(len(points))
    half = stats.t.ppf(0.975, len(points) - 1) * error
    p = 2 * stats.t.sf(abs(mean) / error, len(points) - 1)
    return float(back(mean)), float(back(mean - half)), float(back(mean + half)), float(p)


def bootstrap(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean when lineages are drawn with replacement."""
    known = np.asarray(values, dtype=float)
    draws = np.random.default_rng(seed).integers(len(known), size=(DRAWS, len(known)))
    low, high = np.percentile(known[draws].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def associations(wide: Wide, metrics: Sequence[str]) -> pd.DataFrame:
    """Return one row for each view, metric and group of tasks, with p-values corrected for their number.

    Those over all tasks are corrected for the number of metrics and views, those of groups for that of cells.
    """
    rows = [
        row
        for view in (UNCORRECTED, CORRECTED)
        for metric in metrics
        for group, tasks in ALL_GROUPS.items()
        for row in _within_row(wide, view, metric, group, tasks)
    ]
    rows += [
        row
        for metric in metrics
        for group, tasks in ALL_GROUPS.items()
        for row in _across(wide, metric, group, tasks)
    ]
    found = pd.DataFrame(rows, columns=list(COLUMNS))
    is_all = found["group"] == ALL
    for name in ("p", "partial_p"):
        for family in (is_all, ~is_all):
            own = found.loc[family, name].to_numpy(dtype=float)
            found.loc[family, f"{name}_adjusted"] = adjusted(own)
    return found


def _within_row(
    wide: Wide, view: str, metric: str, group: str, tasks: Sequence[tuple[str, str]]
) -> Iterator[dict[str, object]]:
    by_model = within(wide, view, metric, tasks, partial=False)
    if not by_model:
        return
    lines = list(by_lineage(by_model).values())
    rho, low, high, p = t_interval(lines, fisher=True)
    held = by_lineage(within(wide, view, metric, tasks, partial=True))
    if held:
        partial, partial_low, partial_high, partial_p = t_interval(list(held.values()), fisher=True)
    else:
        partial, partial_low, partial_high, partial_p = (float("nan"),) * 4
    yield dict(zip(COLUMNS, (
        view, metric, group, rho, low, high, p, *bootstrap(lines), partial, partial_low, partial_high,
        partial_p, len(lines), sum(len(wide.of_view(view)[model]) for model in by_model), by_model,
    ), strict=True))  # fmt: skip


def _across(
    wide: Wide, metric: str, group: str, tasks: Sequence[tuple[str, str]]
) -> Iterator[dict[str, object]]:
    """Yield the correlation over one space of each model.

    For the interval lineages are drawn, and one model of each; for the p-value scores are shuffled.
    """
    spaces = wide.of_view(ACROSS)[ACROSS]
    pairs = [(wide.metric(metric, task[0], spaces), wide.score(task, spaces)) for task in tasks]
    pairs = [(x, y) for x, y in pairs if np.isfinite(spearman(x, y))]
    if not pairs:
        return
    drawn, shuffled = wide.draws
    rho = float(np.mean([spearman(x, y) for x, y in pairs]))
    low, high = np.nanpercentile(
        np.mean([_rows_rho(x[drawn], y[drawn]) for x, y in pairs], axis=0), [2.5, 97.5]
    )
    at_random = np.mean([_rows_rho(x[shuffled], np.tile(y, (DRAWS, 1))) for x, y in pairs], axis=0)
    p = (1 + np.sum(np.abs(at_random) >= abs(rho) - 1e-12)) / (1 + DRAWS)
    ends = float(low), float(high)
    yield dict(zip(COLUMNS, (
        ACROSS, metric, group, rho, *ends, float(p), *ends, *4 * [float("nan")], drawn.shape[1],
        len(spaces), {},
    ), strict=True))  # fmt: skip


def _rows_rho(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Spearman's ρ of each row of two matrices, over the columns where both have a value."""
    kept = np.isfinite(x) & np.isfinite(y)
    ranks = [stats.rankdata(np.where(kept, one, np.inf), axis=1) for one in (x, y)]  # the others come last
    n = kept.sum(axis=1, keepdims=True)
    centered = [np.where(kept, one - (n + 1) / 2, 0.0) for one in ranks]
    lengths = np.prod([np.square(one).sum(axis=1) for one in centered], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((centered[0] * centered[1]).sum(axis=1) / np.sqrt(lengths))


def adjusted(p_values: np.ndarray) -> np.ndarray:
    """Return p-values after Benjamini and Hochberg; NaN stays NaN.

    >>> adjusted(np.array([0.01, 0.04, 0.03, np.nan])).round(3).tolist()
    [0.03, 0.04, 0.04, nan]
    """
    found = np.full(len(p_values), np.nan)
    known = np.flatnonzero(np.isfinite(p_values))
    order = known[np.argsort(p_values[known])]
    scaled = p_values[order] * len(order) / np.arange(1, len(order) + 1)
    found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return found
