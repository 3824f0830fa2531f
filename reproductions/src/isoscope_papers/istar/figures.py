"""The figures of *Stable Anisotropic Regularization* in the paper's arrangement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.figures import INK, PALETTE, new_figure, save_figure
from isoscope_papers.istar.comparison import Sweep
from isoscope_papers.istar.estimators import (
    BATCH,
    DEBIASED,
    JACKKNIFE,
    PLAIN,
    ZETAS,
    Cell,
    Estimator,
    Known,
    Study,
)
from isoscope_papers.istar.populations import FRESH, STALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN = ("flat", "power", "rogue-50", "all-mpnet-base-v2-all")  # populations of the figures
_LINES = (
    ("IsoScore", PLAIN, PALETTE[0], "-"),
    ("IsoScore*, ζ = 0.2", Estimator("star", 0.2, FRESH), PALETTE[1], "-"),
    ("IsoScore*, ζ = 0.8", Estimator("star", 0.8, FRESH), PALETTE[2], "-"),
    ("IsoScore*, ζ = 0.8, other $C_0$", Estimator("star", 0.8, STALE), PALETTE[3], (0, (3, 1.5))),
    ("debiased, no $C_0$", DEBIASED, PALETTE[4], "-"),
    ("debiased, jackknife", JACKKNIFE, PALETTE[6], (0, (1, 1))),
)
_OFF_SCALE = 3.0  # a standard deviation over so many times the truth says nothing in a figure
_LINEAR = 0.01  # |λ| under which the axis is linear
_KINDS = (("istar", "I-STAR", "o"), ("istar-debiased", "debiased penalty", "s"), ("cosreg", "CosReg", "^"))


def draw_study(study: Study, folder: Path) -> dict[str, Path]:
    """Write the figures of the estimators, as .png and .pdf: where each .png lies, by its caption."""
    named = {known.name: known for known in study.populations}
    shown = [named[name] for name in _SHOWN if name in named] or list(study.populations[:4])
    return {
        "Estimates from mini-batches of n independent vectors, mean ± one standard deviation; dashed: the "
        f"truth. Where the deviation is over {_OFF_SCALE:g} times the truth, as of the debiased score at the "
        "smallest n, no band is drawn. The jackknife's band is left out; it was not taken of the smallest "
        "and the largest batches": _by_size(study, shown, folder),
        f"The paper's figure 4: the shrunk score against ζ at n = {BATCH}, with a C₀ of the population and "
        "with another; the debiased score needs neither": _by_zeta(study, shown, folder),
    }


def _by_size(study: Study, shown: Sequence[Known], folder: Path) -> Path:
    with new_figure((1.85 * max(len(shown), 2) + 1.2, 2.5)) as figure:
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        for panel, known in zip(panels, shown, strict=True):
            cells = study.cells_of(known.name)
            for label, estimator, color, style in _LINES:
                _line(panel, cells, known, estimator, color=color, label=label, style=style)
            _truth(panel, known)
            panel.set_xscale("log", base=2)
            panel.set_xticks([8, 32, 128, 512], ["8", "32", "128", "512"])
            panel.set_xlabel("n, vectors in the batch")
        panels[0].set_ylabel("estimate")
        _legend(figure, panels[0])
        return _save(figure, folder / "istar-batch-size")


def _line(
    panel: Axes,
    cells: Sequence[Cell],
    known: Known,
    estimator: Estimator,
    *,
    color: str,
    label: str,
    style: Any,
) -> None:
    """An estimator's mean by batch size, where it was taken, with its band."""
    found = [(cell.n, cell.of(estimator, known.truth)) for cell in cells]
    taken = [(n, one.mean, one.sd) for n, one in found if one.mean is not None and one.sd is not None]
    n, mean, sd = np.array(taken, dtype=float).reshape(-1, 3).T
    panel.plot(n, mean, color=color, linewidth=1.1, linestyle=style, label=label)
    if estimator != JACKKNIFE:
        on_scale = sd <= _OFF_SCALE * known.truth
        panel.fill_between(n, mean - sd, mean + sd, on_scale, color=color, alpha=0.18, linewidth=0)


def _truth(panel: Axes, known: Known) -> None:
    panel.axhline(known.truth, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
    panel.set_ylim(0, min(1.6 * known.truth, 1.35))
    panel.set_title(known.title.replace(", layers", "\nlayers"), loc="left", color=INK)


def _by_zeta(study: Study, shown: Sequence[Known], folder: Path) -> Path:
    with new_figure((1.85 * max(len(shown), 2) + 1.2, 2.5)) as figure:
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        zetas = np.array([0.0, *ZETAS])
        for panel, known in zip(panels, shown, strict=True):
            cell = study.cell(known.name, BATCH)
            if cell is None:
                continue
            for color, reference, label in (
                (PALETTE[0], FRESH, "$C_0$ of the population"),
                (PALETTE[1], STALE, "another $C_0$"),
            ):
                ours = [PLAIN, *(Estimator("star", zeta, reference) for zeta in ZETAS)]
                values = [cell.of(one, known.truth) for one in ours]
                mean, sd = (np.array([getattr(v, name) for v in values], float) for name in ("mean", "sd"))
                panel.plot(zetas, mean, color=color, linewidth=1.1, marker="o", markersize=2.2, label=label)
                panel.fill_between(zetas, mean - sd, mean + sd, color=color, alpha=0.18, linewidth=0)
            level = cell.of(DEBIASED, known.truth)
            if level.mean is not None and level.sd is not None:
                panel.axhline(level.mean, color=PALETTE[4], linewidth=1.1, label="debiased, no $C_0$")
                panel.axhspan(
                    level.mean - level.sd, level.mean + level.sd, color=PALETTE[4], alpha=0.18, linewidth=0
                )
            _truth(panel, known)
            panel.set_xlabel("ζ, weight of $C_0$")
        panels[0].set_ylabel("estimate")
        _legend(figure, panels[0])
        return _save(figure, folder / "istar-zeta")


def draw_sweeps(sweeps: Sequence[Sweep], titles: Sequence[str], folder: Path) -> dict[str, Path]:
    """Write the figures of the sweep, as .png and .pdf: where each .png lies, by its caption."""
    if not sweeps:
        return {}
    return {
        "Score and isotropy of all states against λ, mean ± one standard deviation over seeds; dashed: no "
        "regularisation": _against_strength(sweeps, titles, folder, "istar-strength", _SCORE_ROWS),
        "The paper's figure 5: score against isotropy, a point a λ, bars one standard deviation over seeds; "
        "the ring is no regularisation": _against_isotropy(sweeps, titles, folder),
        "The paper's figure 7: TwoNN against λ, of token states in all layers and of the sentence vectors "
        "the classifier reads": _against_strength(sweeps, titles, folder, "istar-dimension", _TWONN_ROWS),
    }


_SCORE_ROWS = (("score", None), ("isoscore_star", "IsoScore*"))
_TWONN_ROWS = (("twonn", "TwoNN, tokens"), ("sentence_twonn", "TwoNN, sentences"))


def _against_strength(
    sweeps: Sequence[Sweep],
    titles: Sequence[str],
    folder: Path,
    stem: str,
    rows: Sequence[tuple[str, str | None]],
) -> Path:
    with new_figure((max(2.0 * len(sweeps), 4.0) + 1.1, 3.6)) as figure:
        panels = figure.subplots(2, len(sweeps), squeeze=False, sharex=True)
        for place, (sweep, title) in enumerate(zip(sweeps, titles, strict=True)):
            for row, (name, label) in enumerate(rows):
                panel = panels[row, place]
                _curves(panel, sweep, name)
                panel.set_xscale("symlog", linthresh=_LINEAR, linscale=0.4)
                panel.set_xticks([-5, -1, -0.1, 0, 0.1, 1, 5], ["−5", "−1", "−.1", "0", ".1", "1", "5"])
                panel.minorticks_off()
                if label is None or place == 0:
                    panel.set_ylabel(label or _metric(sweep))
            panels[0, place].set_title(title, loc="left", color=INK)
            panels[1, place].set_xlabel("λ")
        _legend(figure, panels[0, 0])
        return _save(figure, folder / stem)


def _metric(sweep: Sweep) -> str:
    return "Matthews' correlation" if sweep.metric == "matthews" else sweep.metric


def _curves(panel: Axes, sweep: Sweep, name: str) -> None:
    for color, (kind, label, marker) in zip(PALETTE, _KINDS, strict=False):
        found = sweep.curve(kind, name)
        if kind != "istar":
            found.pop(0.0, None)
        if not found:
            continue
        mean, sd = _means(found)
        line = "-" if kind == "istar" else ""
        panel.errorbar(
            list(found), mean[:, 0], sd[:, 0], color=color, linestyle=line, linewidth=1.0, elinewidth=0.6,
            marker=marker, markersize=3, label=label,
        )  # fmt: skip
    base = sweep.by_seed("istar", 0.0, name)
    if base:
        panel.axhline(float(np.mean(list(base.values()))), color=INK, linewidth=0.6, linestyle=(0, (4, 2)))


def _means(found: dict[float, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(strengths, quantities) means, and standard deviations over seeds, 0 of one seed."""
    mean = np.array([values.mean(axis=1) for values in found.values()])
    spreads = [
        values.std(axis=1, ddof=1) if values.shape[1] > 1 else 0 * values[:, 0] for values in found.values()
    ]
    return mean, np.array(spreads)


def _against_isotropy(sweeps: Sequence[Sweep], titles: Sequence[str], folder: Path) -> Path:
    with new_figure((max(2.0 * len(sweeps), 4.0) + 1.1, 2.4)) as figure:
        panels = figure.subplots(1, len(sweeps), squeeze=False)[0]
        for panel, sweep, title in zip(panels, sweeps, titles, strict=True):
            found = sweep.curve("istar", "isoscore_star", "score")
            for label, color, chosen in (
                ("λ < 0", PALETTE[0], [s for s in found if s < 0]),
                ("λ > 0", PALETTE[1], [s for s in found if s > 0]),
            ):
                if chosen:
                    mean, sd = _means({s: found[s] for s in chosen})
                    panel.errorbar(
                        mean[:, 0], mean[:, 1], sd[:, 1], sd[:, 0], color=color, linestyle="", marker="o",
                        markersize=3, elinewidth=0.6, label=label,
                    )  # fmt: skip
            if 0.0 in found:
                x, y = found[0.0].mean(axis=1)
                panel.plot(x, y, "o", markersize=7, markerfacecolor="none", color=INK, label="λ = 0")
            panel.set_title(title, loc="left", color=INK)
            panel.set_xlabel("IsoScore*")
            panel.set_ylabel(_metric(sweep))
        _legend(figure, panels[0])
        return _save(figure, folder / "istar-score")


def _legend(figure: Figure, panel: Axes) -> None:
    lines, labels = panel.get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside right center", frameon=False, fontsize=7)


def _save(figure: Figure, stem: Path) -> Path:
    save_figure(figure, stem.with_name(f"{stem.name}.pdf"))
    return save_figure(figure, stem.with_name(f"{stem.name}.png"))
