"""The figures: correlations of every metric with every group of tasks, and the regret of every rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.typing import LineStyleType

from isoscope.figures import INK, PALETTE
from isoscope_papers.figures import Drawing
from isoscope_papers.predicts.analysis import Analysis, sign_of
from isoscope_papers.predicts.associations import ALL, ALL_GROUPS, DIRECTIONS
from isoscope_papers.predicts.choices import AS_SAID, CHOICES, DEFAULT, LEARNT, OTHER_TASKS, RANDOM
from isoscope_papers.predicts.wide import VIEWS
from isoscope_papers.words import minus

_WEAK = 0.4  # |ρ| up to which a cell is so light that dark digits are read on it


def shown(metric: str) -> str:
    """Return the name of a metric as a figure and a table show it.

    >>> shown("rankme_debiased"), shown("alpha_req_from_1"), shown("mean_cosine")
    ('RankMe, debiased', '|α-ReQ − 1|', 'mean cosine')
    """
    names = {
        "isoscore_debiased": "IsoScore, debiased", "rankme": "RankMe", "rankme_debiased": "RankMe, debiased",
        "alpha_req": "α-ReQ", "alpha_req_from_1": "|α-ReQ − 1|", "twonn": "TwoNN dimension",
        "gride": "Gride dimension", "lid": "local dimension", "n_dims": "number of dimensions",
        "top_dimension_share": "share of top dimension", "lidar": "LiDAR", "nc1_debiased": "NC1, debiased",
    }  # fmt: skip
    return names.get(metric, metric.replace("_", " "))


def figures(found: Analysis) -> Iterator[Drawing]:
    """Yield the heat map of correlations, and the regrets."""
    yield Drawing(
        "Rank correlation of each metric with each group of tasks: within models over their layers and "
        "checkpoints, within models over the corrections of their last layer, and across models. Blue: high "
        "values go with high scores. Framed: p < 0.05 after correction for the number of all cells",
        "predicts-correlations", (6.9, 0.95 + 0.178 * len(DIRECTIONS)), partial(_correlations, found),
    )  # fmt: skip
    yield Drawing(
        "Regret in points of 100 against the best space, mean over tasks and models with 95 % intervals over "
        "models, where a layer, a checkpoint or a correction is chosen by each metric: in the direction it "
        "is said to have, and in the one learnt on the other models. Lines: choosing nothing, choosing at "
        "random, and by tasks on other texts",
        "predicts-regret", (6.9, 0.95 + 0.168 * len(DIRECTIONS)), partial(_regrets, found),
    )  # fmt: skip


def _correlations(found: Analysis, figure: Figure) -> None:
    panels = figure.subplots(1, len(VIEWS), sharey=True)
    names, groups = list(DIRECTIONS), list(ALL_GROUPS)
    for panel, view in zip(panels, VIEWS, strict=True):
        values = np.full((len(names), len(groups)), np.nan)
        for row, metric in enumerate(names):
            own = found.association(view, metric)
            for column, group in enumerate(groups):
                if group in own.index:
                    values[row, column] = own.loc[group, "rho"]
                    _cell(panel, row, column, own.loc[group, "rho"], bool(sign_of(own.loc[group])))
        image = panel.imshow(values, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        of_view = found.found[found.found["view"] == view]
        counts = [int(of_view[name].max()) for name in ("n_spaces", "n_lineages") if len(of_view)]
        counted = "\n{} spaces, {} models".format(*counts) if counts else ""
        panel.set_title(f"{view}{counted}", loc="center", fontsize=7.5)
        panel.set_xticks(range(len(groups)), groups, rotation=40, ha="right", fontsize=6.5)
        panel.set_yticks(range(len(names)), map(shown, names), fontsize=6.5)
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
    figure.colorbar(image, ax=panels, shrink=0.5, pad=0.01, label="Spearman's ρ")


def _cell(panel: Axes, row: int, column: int, rho: float, is_significant: bool) -> None:
    ink = INK if abs(rho) <= _WEAK else "white"
    text = minus(f"{rho:z.1f}").replace("0.", ".").replace(".0", "0" if abs(rho) < 0.5 else "")
    panel.text(
        column, row, text, ha="center", va="center", fontsize=5, color=ink,
        weight="bold" if is_significant else "normal",
    )  # fmt: skip
    if is_significant:
        panel.add_patch(
            Rectangle((column - 0.46, row - 0.44), 0.92, 0.88, fill=False, edgecolor=INK, linewidth=0.9)
        )


def _regrets(found: Analysis, figure: Figure) -> None:
    panels = figure.subplots(1, len(CHOICES), sharey=True)
    names = list(DIRECTIONS)
    for panel, choice in zip(panels, CHOICES, strict=True):
        for offset, how, color in ((-0.17, AS_SAID, PALETTE[0]), (0.17, LEARNT, PALETTE[1])):
            for row, metric in enumerate(names):
                one = found.rule(choice, f"{metric}, {how}", ALL)
                if one is not None:
                    place = row + offset
                    panel.plot([max(one["low"], 0), one["high"]], [place, place], color=color, linewidth=0.7)
                    panel.plot(one["regret"], place, "o", color=color, markersize=2.6)
        for rule, style in _lines(choice):
            one = found.rule(choice, rule, ALL)
            if one is not None:
                panel.axvline(one["regret"], color=INK, linestyle=style, linewidth=0.9)
        panel.set_title(f"the {choice}", loc="center", fontsize=7.5)
        panel.set_yticks(range(len(names)), map(shown, names), fontsize=6.5)
        panel.set_ylim(len(names) - 0.4, -0.6)
        panel.set_xlim(left=0)
        panel.set_xlabel("regret, points")
        panel.grid(visible=True, axis="x", linewidth=0.3, color="#e5e5e5")
    handles = [Line2D([], [], color=PALETTE[i], marker="o", markersize=3, linewidth=0.8) for i in (0, 1)]
    handles += [Line2D([], [], color=INK, linestyle=style) for _, style in _lines(CHOICES[0])]
    labels = [
        "metric, as said",
        "metric, direction learnt",
        "default",
        "at random",
        "by tasks on other texts",
    ]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=6.5)


def _lines(choice: str) -> Sequence[tuple[str, LineStyleType]]:
    return ((DEFAULT[choice], "-"), (RANDOM, (0, (4, 2))), (OTHER_TASKS, (0, (1, 1))))
