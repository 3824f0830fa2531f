"""The figures of *Stable Anisotropic Regularization* in the paper's arrangement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    Estimates,
    Estimator,
    Known,
)  # fmt: skip
from isoscope_papers.istar.populations import FRESH, STALE
from isoscope_papers.istar.setups import PAPER_STRENGTHS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = ("flat", "power", "rogue-50", "all-mpnet-base-v2-all")  # populations of the figures
_LINES: tuple[tuple[str, Estimator, str, Any], ...] = (
    ("IsoScore", PLAIN, PALETTE[0], "-"),
    ("IsoScore*, ζ = 0.2", Estimator("star", 0.2, FRESH), PALETTE[1], "-"),
    ("IsoScore*, ζ = 0.8", Estimator("star", 0.8, FRESH), PALETTE[2], "-"),
    ("IsoScore*, ζ = 0.8, other $C_0$", Estimator("star", 0.8, STALE), PALETTE[3], (0, (3, 1.5))),
    ("debiased, no $C_0$", DEBIASED, PALETTE[4], "-"),
    ("debiased, jackknife", JACKKNIFE, PALETTE[6], (0, (1, 1))),
)
_DASHED = (0, (4, 2))
_OFF_SCALE = 3.0  # a standard deviation over so many times the truth says nothing in a figure
_LINEAR = 0.01  # |λ| under which the axis is linear
_KINDS = (("istar", "I-STAR", "o"), ("istar-debiased", "debiased penalty", "s"), ("cosreg", "CosReg", "^"))
_SCORES = (("score", ""), ("isoscore_star", "IsoScore*"))
_TWONN = (("twonn", "TwoNN, tokens"), ("sentence_twonn", "TwoNN, sentences"))


def draw_estimates(estimates: Estimates, folder: Path) -> dict[str, Path]:
    """Write the figures of the estimators, as .png and .pdf: where each .png lies, by its caption."""
    named = {known.name: known for known in estimates.populations}
    shown = [named[name] for name in _SHOWN if name in named] or list(estimates.populations[:4])
    return {
        "Estimates from mini-batches of n independent vectors, mean ± one standard deviation; dashed: the "
        f"truth. No band is drawn where the deviation is over {_OFF_SCALE:g} times the truth, nor for the "
        "jackknife, which was not taken of the smallest and the largest batches": _by_size(
            estimates, shown, folder / "istar-batch-size"
        ),
        f"The paper's figure 4: IsoScore* against ζ at n = {BATCH}, with a C₀ of the population and with "
        "another; the debiased score needs neither": _by_zeta(estimates, shown, folder / "istar-zeta"),
    }


@contextmanager
def _panels(stem: Path, n: int, inches: tuple[float, float], n_rows: int = 1) -> Iterator[np.ndarray]:
    """Yield (n_rows, n) panels, then add the legend of the first and write stem.pdf and stem.png."""
    with new_figure(inches) as figure:
        panels = figure.subplots(n_rows, n, squeeze=False, sharex=n_rows > 1)
        yield panels
        lines, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside right center", frameon=False, fontsize=7)
        for suffix in (".pdf", ".png"):
            save_figure(figure, stem.with_name(stem.name + suffix))


def _by_size(estimates: Estimates, shown: Sequence[Known], stem: Path) -> Path:
    with _panels(stem, len(shown), (1.85 * max(len(shown), 2) + 1.2, 2.5)) as panels:
        for panel, known in zip(panels[0], shown, strict=True):
            for label, estimator, color, style in _LINES:
                spreads = [
                    (cell.n, cell.of(estimator, known.truth)) for cell in estimates.cells_of(known.name)
                ]
                taken = [(n, one.mean, one.sd) for n, one in spreads if one.mean is not None]
                n, mean, sd = np.array(taken, dtype=float).reshape(-1, 3).T
                panel.plot(n, mean, color=color, linewidth=1.1, linestyle=style, label=label)
                if estimator != JACKKNIFE:
                    on_scale = sd <= _OFF_SCALE * known.truth
                    panel.fill_between(
                        n, mean - sd, mean + sd, on_scale, color=color, alpha=0.18, linewidth=0
                    )
            _truth(panel, known)
            panel.set_xscale("log", base=2)
            panel.set_xticks([8, 32, 128, 512], ["8", "32", "128", "512"])
            panel.set_xlabel("n, vectors in the batch")
        panels[0, 0].set_ylabel("estimate")
    return stem.with_name(f"{stem.name}.png")


def _truth(panel: Axes, known: Known) -> None:
    panel.axhline(known.truth, color=INK, linewidth=0.8, linestyle=_DASHED)
    panel.set_ylim(0, min(1.6 * known.truth, 1.35))
    panel.set_title(known.title.replace(", layers", "\nlayers"), loc="left", color=INK)


def _by_zeta(estimates: Estimates, shown: Sequence[Known], stem: Path) -> Path:
    zetas = np.array([0.0, *ZETAS])
    references = ((PALETTE[0], FRESH, "$C_0$ of the population"), (PALETTE[1], STALE, "another $C_0$"))
    with _panels(stem, len(shown), (1.85 * max(len(shown), 2) + 1.2, 2.5)) as panels:
        for panel, known in zip(panels[0], shown, strict=True):
            cell = estimates.cell(known.name, BATCH)
            if cell is None:
                continue
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
        panels[0, 0].set_ylabel("estimate")
    return stem.with_name(f"{stem.name}.png")


def draw_sweeps(sweeps: Sequence[Sweep], folder: Path) -> dict[str, Path]:
    """Write the figures of the sweep, as .png and .pdf: where each .png lies, by its caption."""
    if not sweeps:
        return {}
    return {
        "The paper's figure 5: score against isotropy, a point a λ, bars one standard deviation over seeds; "
        "the ring is no regularisation, filled points are the paper's λ": _against_isotropy(
            sweeps, folder / "istar-score"
        ),
        "Score and isotropy of all states against λ, mean ± one standard deviation over seeds; dashed: no "
        "regularisation": _against_strength(sweeps, folder / "istar-strength", _SCORES),
        "The paper's figure 7: TwoNN against λ, of token states in all layers and of the sentence vectors "
        "the classifier reads": _against_strength(sweeps, folder / "istar-dimension", _TWONN),
    }


def _against_strength(sweeps: Sequence[Sweep], stem: Path, rows: Sequence[tuple[str, str]]) -> Path:
    """Draw one row a quantity, one column a task; an empty label is the task's own metric."""
    with _panels(stem, len(sweeps), (max(2.0 * len(sweeps), 4.0) + 1.1, 3.6), 2) as panels:
        for place, sweep in enumerate(sweeps):
            for panel, (name, label) in zip(panels[:, place], rows, strict=True):
                _curves(panel, sweep, name)
                panel.set_xscale("symlog", linthresh=_LINEAR, linscale=0.4)
                panel.set_xticks([-5, -1, -0.1, 0, 0.1, 1, 5], ["−5", "−1", "−.1", "0", ".1", "1", "5"])
                panel.minorticks_off()
                if not label or place == 0:
                    panel.set_ylabel(label or sweep.metric)
            panels[0, place].set_title(sweep.subject, loc="left", color=INK)
            panels[1, place].set_xlabel("λ")
    return stem.with_name(f"{stem.name}.png")


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
        panel.axhline(float(np.mean(list(base.values()))), color=INK, linewidth=0.6, linestyle=_DASHED)


def _means(curve: Mapping[float, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return (strengths, quantities) means, and standard deviations over seeds, 0 of one seed."""
    mean = np.array([values.mean(axis=1) for values in curve.values()])
    spread = [
        values.std(axis=1, ddof=1) if values.shape[1] > 1 else 0 * values[:, 0] for values in curve.values()
    ]
    return mean, np.array(spread)


def _against_isotropy(sweeps: Sequence[Sweep], stem: Path) -> Path:
    with _panels(stem, len(sweeps), (max(2.0 * len(sweeps), 4.0) + 1.1, 2.4)) as panels:
        for panel, sweep in zip(panels[0], sweeps, strict=True):
            curve = sweep.curve("istar", "isoscore_star", "score")
            for label, color, sign in (("λ < 0", PALETTE[0], -1), ("λ > 0", PALETTE[1], 1)):
                for papers in (True, False):
                    some = {
                        s: v for s, v in curve.items() if s * sign > 0 and (s in PAPER_STRENGTHS) == papers
                    }
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
            panel.set_title(sweep.subject, loc="left", color=INK)
            panel.set_xlabel("IsoScore*")
            panel.set_ylabel(sweep.metric)
    return stem.with_name(f"{stem.name}.png")
