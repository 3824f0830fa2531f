"""Trajectories of the geometry in the arrangement of the paper's figures 8 to 23, and equation 17."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from isoscope.figures import PALETTE
from isoscope_papers.dynamics.bounds import lower_loss, upper_loss
from isoscope_papers.dynamics.views import TITLES, View
from isoscope_papers.figures import DASHED, Drawing

# from dark to light in even steps of grey too: an order that can be seen without hues
_ORDERED = ("#14213d", "#2c3f8f", "#4f6fc0", "#c4572e", "#e39a3b", "#efcf6d")
_DWARFS = 30  # times the smallest value of a panel
_POSITIVES = (1.0, 0.95, 0.9, 0.8)  # cosines of the positive pair in the figure of equation 17
_WORDS = {
    "temperatures": "each temperature (the paper's figures 8 to 15)",
    "batches": "each batch size, against the pairs seen (figures 16 to 19)",
    "poolings": "each pooling (figures 20 to 23)",
}
Lines = Sequence[tuple[View, Mapping[str, str]]]  # views with the runs of each by label


def trajectories_figure(part: str, shown: Sequence[View]) -> Drawing:
    """Return the last layer along the runs of a part, a row a view."""
    lines = [
        (view, {f"{key:g}" if part == "temperatures" else str(key): name
                for key, name in getattr(view, part)().items()})
        for view in shown
    ]  # fmt: skip
    caption = f"The last layer along training with {_WORDS[part]}, a row for each start"
    inches = (7.0, 0.5 + 1.5 * len(lines))
    return Drawing(caption, f"dynamics-{part}", inches, partial(_trajectories, part, lines), dpi=200)


def bounds_figure() -> Drawing:
    """Return both sides of equation 17."""
    caption = (
        "Equation 17, batches of 64: left, ℓ_upper(τ) as lines and ℓ_lower(2τ) dashed, for the positive pair "
        "at cosine 1, where they are one line, and 0.8; right, their ratio"
    )
    return Drawing(caption, "dynamics-bounds", (7.0, 2.5), _bounds, dpi=200)


def _trajectories(part: str, lines: Lines, figure: Figure) -> None:
    labels = list(dict.fromkeys(label for _, own in lines for label in own))
    if part == "temperatures":
        labels.sort(key=float)
    colors = dict(zip(labels, _spread(len(labels)) if part != "poolings" else PALETTE, strict=False))
    panels = figure.subplots(len(lines), len(TITLES), squeeze=False, sharex="row")
    for row, (view, own) in zip(panels, lines, strict=True):
        for panel, metric in zip(row, TITLES, strict=True):
            for label, name in own.items():
                x, y = _curve(view, name, metric, by_pairs=part == "batches")
                panel.plot(x, y, color=colors[label], linewidth=1.1)
        row[0].set_ylabel(view.title)
    for column, (metric, title) in zip(panels.T, TITLES.items(), strict=True):
        column[0].set_title(title)
        column[-1].set_xlabel("pairs seen, thousands" if part == "batches" else "update")
        _scaled(column, [[v for name in own.values() for v in view.curve(name, metric)]
                         for view, own in lines])  # fmt: skip
    before = {"temperatures": "τ = ", "batches": "batch ", "poolings": ""}[part]
    handles = [Line2D([], [], color=color, linewidth=1.4, label=before + label)
               for label, color in colors.items()]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))


def _curve(view: View, name: str, metric: str, *, by_pairs: bool) -> tuple[list[float], list[float]]:
    run = view.runs[name]
    values = zip(run.rows["step"], run.rows[f"{metric}{view.suffix}"], strict=True)
    known = [(step, value) for step, value in values if step is not None and value is not None]
    scale = run.batch_size / 1000 if by_pairs else 1.0
    return [step * scale for step, _ in known], [value for _, value in known]


def _scaled(panels: Iterable[Axes], values: Sequence[Sequence[float]]) -> None:
    """Use one kind of scale for all rows of a metric: logarithmic where one run dwarfs the others in any."""
    positive = all(min(own) > 0 for own in values)
    is_log = positive and any(max(own) > _DWARFS * min(own) for own in values)
    for panel, own in zip(panels, values, strict=True):
        if is_log:
            panel.set_yscale("log")
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            panel.yaxis.set_minor_locator(NullLocator())
        elif min(own) < 0 < max(own):
            panel.axhline(0, color="#bbbbbb", linewidth=0.5, zorder=0)


def _spread(n: int) -> list[str]:
    """Return n colours of the ordered ones, as far apart as they come."""
    return [_ORDERED[round(place * (len(_ORDERED) - 1) / max(n - 1, 1))] for place in range(n)]


def _bounds(figure: Figure) -> None:
    taus = [10 ** (-2.5 + 2.8 * place / 120) for place in range(121)]
    left, right = figure.subplots(1, 2)
    for s, color in zip(_POSITIVES, _spread(len(_POSITIVES)), strict=True):
        upper = [upper_loss(tau, 64, positive=s) for tau in taus]
        lower = [lower_loss(2 * tau, 64, positive=s) for tau in taus]
        if s in (_POSITIVES[0], _POSITIVES[-1]):  # the others lie between
            left.plot(taus, upper, color=color)
            left.plot(taus, lower, color=color, linestyle=DASHED)
        ratio = [b / a if a else 1.0 for a, b in zip(upper, lower, strict=True)]
        right.plot(taus, ratio, color=color, label=f"s = {s:g}")
    left.set(xscale="log", yscale="log", xlabel="τ", ylim=(1e-9, 10), title="(a) both losses")
    left.set_xlim(left=0.03)
    right.set(xscale="log", xlabel="τ", ylim=(0, 1.05))
    right.set_title(r"(b) $\ell_\mathrm{lower}(2\tau)\,/\,\ell_\mathrm{upper}(\tau)$")
    right.legend(loc="lower right")
