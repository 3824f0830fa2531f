"""Figures of quantities by layer: one Axes of the caller's, or a figure of several panels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isoscope.errors import UndefinedError
from isoscope.figures import PALETTE, axes_for, figure_of, panels
from isoscope.models.layers.quantities import Quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from isoscope.models.layers.layer_profile import LayerProfile

# the title of each panel and its quantities, of which the second has a dotted line
_PANELS = (
    ("mean cosine (anisotropy)", ("mean_cosine",)),
    ("adjusted self-similarity", ("adjusted_self_similarity",)),
    ("adjusted intra-similarity", ("adjusted_intra_similarity",)),
    ("mean norm", ("mean_norm",)),
    ("IsoScore, debiased", ("isoscore_debiased",)),
    ("share of the top dimension", ("top_dimension_share",)),
    ("$S_{inter}$ (dotted: centred)", ("s_inter", "cluster_s_inter")),
    ("local intrinsic dimension", ("lid",)),
)
_COLUMNS = 4
_MOST_LABELS = 8
_LOG_RATIO = 0.05  # norms have a logarithmic axis where the smallest is below this share of the largest


def plot_layers(
    profile: LayerProfile, metrics: str | Sequence[str] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot quantities of a `LayerProfile` by layer.

    Where the model has attention sinks, a dashed line has the values without them. A second call with the
    same Axes adds another profile.

    Args:
        profile: the result of `measure_layers`.
        metrics: the names of one or more quantities, such as "mean_cosine" and "lid"; by default mean_cosine,
            or the first quantity of a profile without it.
        ax: Axes to draw on; by default those of a new figure.
    """
    if metrics is None:
        metrics = "mean_cosine" if "mean_cosine" in profile.metrics else profile.metrics[0]
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    ax = axes_for(ax)
    for name in names:
        n_curves = sum(line.get_linestyle() == "-" for line in ax.get_lines())
        label = profile.model if len(names) == 1 else Quantity.named(name).title
        colour = PALETTE[n_curves % len(PALETTE)]
        if not _curve(ax, profile, name, colour=colour, style="-", label=label):
            reason = next(iter(profile.readings.where(metric=name)["reason"]), "it was not measured")
            raise UndefinedError(f"{name} has no value in any layer: {reason}")
        if profile.sinks:
            _curve(ax, profile, name, colour=colour, style="--", label=f"{label}, without sinks", sinks=False)
    ax.set_xlabel("layer")
    if len(names) == 1:
        ax.set_ylabel(Quantity.named(names[0]).title)
    if len(ax.get_lines()) > 1:
        ax.legend(frameon=False)
    return ax


def draw_layers(
    profiles: Sequence[LayerProfile],
    path: str | os.PathLike[str] | None = None,
    *,
    axes: Any = None,
    over_training: bool = False,
) -> Figure:
    """Draw one or more profiles: eight panels, or a panel for each quantity that was asked for.

    Over training, the curves are without sinks, from dark to light, and at most eight have a label.
    """
    same_layers = len({len(profile.layers) for profile in profiles}) == 1
    chosen: Sequence[tuple[str, tuple[str, ...]]] = _PANELS
    if not profiles[0].has_default_metrics:
        chosen = tuple((Quantity.named(name).title, (name,)) for name in profiles[0].metrics)
    n_columns = min(_COLUMNS, len(chosen))
    n_rows = -(-len(chosen) // n_columns)
    with panels(
        n_rows, n_columns, (1.8 * n_columns, 0.5 + 1.5 * n_rows), axes=axes, path=path, sharex=same_layers
    ) as drawn:
        from matplotlib.ticker import MaxNLocator  # `panels` raises where matplotlib is missing

        for panel, (title, own) in zip(drawn, chosen, strict=False):
            if over_training:
                _checkpoints(panel, profiles, own[0])
            else:
                _panel(panel, profiles, own)
            panel.set_title(title.partition(" (dotted")[0] if over_training else title, loc="left")
            panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for panel in drawn[len(chosen) :]:
            panel.set_axis_off()
        for panel in drawn[max(0, len(chosen) - n_columns) : len(chosen)]:
            panel.set_xlabel("layer")
        figure = figure_of(drawn[0])
        figure.legend(
            *drawn[0].get_legend_handles_labels(), loc="outside lower center", ncols=n_columns, frameon=False
        )
    return figure


def _checkpoints(ax: Axes, profiles: Sequence[LayerProfile], name: str) -> None:
    from matplotlib import colormaps

    n, values = len(profiles), list[float]()
    labelled = {round(i * (n - 1) / (_MOST_LABELS - 1)) for i in range(_MOST_LABELS)}
    for place, profile in enumerate(profiles):
        colour = colormaps["viridis"](0.9 * place / max(1, n - 1))
        label = profile.model if place in labelled else None
        values += _curve(ax, profile, name, colour=colour, style="-", label=label, sinks=False)
    _scale(ax, name, values)


def _scale(ax: Axes, name: str, values: Sequence[float]) -> None:
    if name == "mean_norm" and values and min(values) < _LOG_RATIO * max(values):
        ax.set_yscale("log")
    elif values and min(values) >= 0:
        ax.set_ylim(0, 1.05 * max(values) or None)


def _panel(ax: Axes, profiles: Sequence[LayerProfile], names: tuple[str, ...]) -> None:
    values: list[float] = []
    for colour, profile in zip(PALETTE, profiles, strict=False):
        for style, name, label in zip("-:", names, (profile.model, None), strict=False):
            values += _curve(ax, profile, name, colour=colour, style=style, label=label)
        if profile.sinks:
            label = f"{profile.model}, without sinks"
            values += _curve(ax, profile, names[0], colour=colour, style="--", label=label, sinks=False)
    _scale(ax, names[0], values)


def _curve(
    ax: Axes,
    profile: LayerProfile,
    name: str,
    *,
    colour: Any,
    style: str,
    label: str | None,
    sinks: bool = True,
) -> list[float]:
    """Draw one line and return its values."""
    pairs = zip(profile.layers, profile.values(name, sinks=sinks), strict=True)
    points = [(layer, value) for layer, value in pairs if value is not None]
    if points:
        x, y = zip(*points, strict=True)
        if isinstance(x[0], str):  # the positions of modules stand for their names
            x = tuple(profile.layers.index(layer) for layer in x)
        ax.plot(x, y, style, color=colour, label=label, linewidth=1, markersize=2.5, marker=".")
    return [value for _, value in points]
