"""The figures of *Stable Anisotropic Regularization* in the paper's arrangement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from isoscope.figures import INK, PALETTE
from isoscope_papers.figures import DASHED, Drawing
from isoscope_papers.istar.comparison import Sweep
from isoscope_papers.istar.estimators import (
    BATCH,
    DEBIASED,
    JACKKNIFE,
    PLAIN,
    ZETAS,
    Estimates,
    Estimator,
)  # fmt: skip
from isoscope_papers.istar.populations import FRESH, STALE, Known
from isoscope_papers.istar.setups import PAPER_STRENGTHS

_SHOWN = ("flat", "power", "rogue-50", "all-mpnet-base-v2-all")  # populations of the figures
_LINES: tuple[tuple[str, Estimator, str, Any], ...] = (
    ("IsoScore", PLAIN, PALETTE[0], "-"),
    ("IsoScore*, ζ = 0.2", Estimator("star", 0.2, FRESH), PALETTE[1], "-"),
    ("IsoScore*, ζ = 0.8", Estimator("star", 0.8, FRESH), PALETTE[2], "-"),
    ("IsoScore*, ζ = 0.8, other $C_0$", Estimator("star", 0.8, STALE), PALETTE[3], DASHED),
    ("debiased, no $C_0$", DEBIASED, PALETTE[4], "-"),
    ("debiased, jackknife", JACKKNIFE, PALETTE[6], (0, (1, 1))),
)
_LEVEL = (0, (4, 2))  # dashes of the truth, and of no regularisation
_OFF_SCALE = 3.0  # a standard deviation over so many times the truth says nothing in a figure
_LINEAR = 0.01  # |λ| under which the axis is linear
_KINDS = (("istar", "I-STAR", "o"), ("istar-debiased", "debiased penalty", "s"), ("cosreg", "CosReg", "^"))
_SCORES = (("score", ""), ("isoscore_star", "IsoScore*"))
_TWONN = (("twonn", "TwoNN, tokens"), ("sentence_twonn", "TwoNN, sentences"))


def estimates_figures(estimates: Estimates) -> tuple[Drawing, ...]:
    """Return the figures of the estimators, a panel a population."""
    named = {known.name: known for known in estimates.populations}
    shown = [named[name] for name in _SHOWN if name in named] or list(estimates.populations[:4])
    inches = (1.85 * max(len(shown), 2) + 1.2, 2.5)
    by_size = (
        "Estimates from mini-batches of n independent vectors, mean ± one standard deviation; dashed: the "
        f"truth. No band is drawn where the deviation is over {_OFF_SCALE:g} times the truth, nor for the "
        "jackknife, which was not taken of the smallest and the largest batches"
    )
    by_zeta = (
        f"The paper's figure 4: IsoScore* against ζ at n = {BATCH}, with a C₀ of the population and with "
        "another; the debiased score needs neither"
    )
    return (
        _columns(by_size, "istar-batch-size", inches, shown, partial(_by_size, estimates)),
        _columns(by_zeta, "istar-zeta", inches, shown, partial(_by_zeta, estimates)),
    )


def sweeps_figures(sweeps: Sequence[Sweep]) -> tuple[Drawing, ...]:
    """Return the figures of the sweeps, a column a task."""
    width = 2.0 * max(len(sweeps), 2) + 1.1
    score = (
        "The paper's figure 5: score against isotropy, a point a λ, bars one standard deviation over seeds; "
        "the ring is no regularisation, filled points are the paper's λ"
    )
    strength = (
        "Score and isotropy of all states against λ, mean ± one standard deviation over seeds; dashed: no "
        "regularisation"
    )
    dimension = (
        "The paper's figure 7: TwoNN against λ, of token states in all layers and of the sentence vectors "
        "the classifier reads"
    )
    scores, twonn = partial(_against_strength, _SCORES), partial(_against_strength, _TWONN)
    return (
        _columns(score, "istar-score", (width, 2.4), sweeps, _against_isotropy),
        _columns(strength, "istar-strength", (width, 3.6), sweeps, scores, n_rows=2),
        _columns(dimension, "istar-dimension", (width, 3.6), sweeps, twonn, n_rows=2),
    )


def _columns(
    caption: str,
    stem: str,
    inches: tuple[float, float],
    items: Sequence[Any],
    draw: Callable[..., None],
    n_rows: int = 1,
) -> Drawing:
    """Return a figure with a column an item, filled by `draw(item, *panels)`, and the legend of the first."""

    def fill(figure: Figure) -> None:
        panels = figure.subplots(n_rows, len(items), squeeze=False, sharex=n_rows > 1)
        for item, column in zip(items, panels.T, strict=True):
            draw(item, *column)
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize=7)

    return Drawing(caption, stem, inches, fill)


def _is_first(panel: Axes) -> bool:
    place = panel.get_subplotspec()
    return place is not None and place.is_first_col()


def _by_size(estimates: Estimates, known: Known, panel: Axes) -> None:
    for label, estimator, color, style in _LINES:
        spreads = [(cell.n, cell.of(estimator, known.truth)) for cell in estimates.cells_of(known.name)]
        taken = [(n, one.mean, one.sd) for n, one in spreads if one.mean is not None]
        n, mean, sd = np.array(taken, dtype=float).reshape(-1, 3).T
        panel.plot(n, mean, color=color, linewidth=1.1, linestyle=style, label=label)
        if estimator != JACKKNIFE:
            on_scale = sd <= _OFF_SCALE * known.truth
            panel.fill_between(n, mean - sd, mean + sd, on_scale, color=color, alpha=0.18, linewidth=0)
    _truth(panel, known)
    panel.set_xscale("log", base=2)
    panel.set_xticks([8, 32, 128, 512], ["8", "32", "128", "512"])
    panel.set_xlabel("n, vectors in the batch")


def _truth(panel: Axes, known: Known) -> None:
    panel.axhline(known.truth, color=INK, linewidth=0.8, linestyle=_LEVEL)
    panel.set_ylim(0, min(1.6 * known.truth, 1.35))
    panel.set_title(known.title.replace(", layers", "\nlayers"))
    if _is_first(panel):
        panel.set_ylabel("estimate")


def _by_zeta(estimates: Estimates, known: Known, panel: Axes) -> None:
    cell = estimates.cell(known.name, BATCH)
    if cell is None:
        return
    zetas = np.array([0.0, *ZETAS])
    references = ((PALETTE[0], FRESH, "$C_0$ of the population"), (PALETTE[1], STALE, "another $C_0$"))
    for color, reference, label in references:
        ours = [PLAIN, *(Estimator("star", zeta, reference) for zeta in ZETAS)]
        mean, sd = np.array([cell.of(one, known.truth)[:4:3] for one in ours], float).T
        panel.plot(zetas, mean, color=color, linewidth=1.1, marker="o", markersize=2.2, label=label)
        panel.fill_between(zetas, mean - sd, mean + sd, color=color, alpha=0.18, linewidth=0)
    level = cell.of(DEBIASED, known.truth)
    if level.mean is not None and level.sd is not None:
        color, ends = PALETTE[4], (level.mean - level.sd, level.mean + level.sd)
        panel.axhline(level.mean, color=color, linewidth=1.1, label="debiased, no $C_0$")
        panel.axhspan(*ends, color=color, alpha=0.18, linewidth=0)
    _truth(panel, known)
    panel.set_xlabel("ζ, weight of $C_0$")


def _against_strength(rows: Sequence[tuple[str, str]], sweep: Sweep, *panels: Axes) -> None:
    """Draw one row a quantity; an empty label is the task's own metric."""
    for panel, (name, label) in zip(panels, rows, strict=True):
        _curves(panel, sweep, name)
        panel.set_xscale("symlog", linthresh=_LINEAR, linscale=0.4)
        panel.set_xticks([-5, -1, -0.1, 0, 0.1, 1, 5], ["−5", "−1", "−.1", "0", ".1", "1", "5"])
        panel.minorticks_off()
        if not label or _is_first(panel):
            panel.set_ylabel(label or sweep.metric)
    panels[0].set_title(sweep.subject)
    panels[-1].set_xlabel("λ")


def _curves(panel: Axes, sweep: Sweep, name: str) -> None:
    for color, (kind, label, marker) in zip(PALETTE, _KINDS, strict=False):
        curve = {s: values for s, values in sweep.curve(kind, name).items() if s or kind == "istar"}
        if curve:
            mean, sd = _means(curve)
            panel.errorbar(
                list(curve), mean[:, 0], sd[:, 0], color=color, linestyle="-" if kind == "istar" else "",
                linewidth=1.0, elinewidth=0.6, marker=marker, markersize=3, label=label,
            )  # fmt: skip
    if base := sweep.by_seed("istar", 0.0, name):
        panel.axhline(float(np.mean(list(base.values()))), color=INK, linewidth=0.6, linestyle=_LEVEL)


def _means(curve: Mapping[float, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return (strengths, quantities) means, and standard deviations over seeds, 0 of one seed."""
    mean = np.array([values.mean(axis=1) for values in curve.values()])
    spread = [
        values.std(axis=1, ddof=1) if values.shape[1] > 1 else 0 * values[:, 0] for values in curve.values()
    ]
    return mean, np.array(spread)


def _against_isotropy(sweep: Sweep, panel: Axes) -> None:
    curve = sweep.curve("istar", "isoscore_star", "score")
    for label, color, sign in (("λ < 0", PALETTE[0], -1), ("λ > 0", PALETTE[1], 1)):
        for papers in (True, False):
            some = {s: v for s, v in curve.items() if s * sign > 0 and (s in PAPER_STRENGTHS) == papers}
            if some:
                mean, sd = _means(some)
                panel.errorbar(
                    mean[:, 0], mean[:, 1], sd[:, 1], sd[:, 0], color=color, linestyle="", marker="o",
                    markersize=3, elinewidth=0.6, markerfacecolor=color if papers else "white",
                    label=label if papers else f"{label}, ours",
                )  # fmt: skip
    if 0.0 in curve:
        x, y = curve[0.0].mean(axis=1)
        panel.plot(x, y, "o", markersize=7, markerfacecolor="none", color=INK, label="λ = 0")
    panel.set(title=sweep.subject, xlabel="IsoScore*", ylabel=sweep.metric)
