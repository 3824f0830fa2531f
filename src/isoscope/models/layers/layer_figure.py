"""The layers of one model or two as curves: eight panels, with and without attention sinks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isoscope.figures import PALETTE, figure_of, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isoscope.models.layers.layer_profile import LayerProfile

# title, and the quantities drawn: the second one dotted
_PANELS = (
    ("anisotropy (mean cosine)", ("mean_cosine",)),
    ("self-similarity, adjusted", ("adjusted_self_similarity",)),
    ("intra-similarity, adjusted", ("adjusted_intra_similarity",)),
    ("norm", ("mean_norm",)),
    ("IsoScore, debiased", ("isoscore_debiased",)),
    ("share of the top dimension", ("top_dimension_share",)),
    ("$S_{inter}$ (dotted: centred)", ("s_inter", "cluster_s_inter")),
    ("local intrinsic dimension", ("lid",)),
)
_FEW = 0.05  # a norm under this share of another is drawn on a logarithmic axis


def draw_layers(
    profiles: Sequence[LayerProfile], path: str | os.PathLike[str] | None = None, *, axes: Any = None
) -> Figure:
    """Draw one profile, or several side by side in colours, on eight panels: two rows of four."""
    same_layers = len({len(profile.layers) for profile in profiles}) == 1
    with panels(2, 4, (7.2, 3.5), axes=axes, path=path, sharex=same_layers) as drawn:
        from matplotlib.ticker import MaxNLocator  # panels say so where matplotlib is missing

        for panel, (title, names) in zip(drawn, _PANELS, strict=True):
            _panel(panel, profiles, names)
            panel.set_title(title, loc="left")
            panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for panel in drawn[4:]:
            panel.set_xlabel("layer")
        lines, labels = drawn[0].get_legend_handles_labels()
        figure = figure_of(drawn[0])
        figure.legend(lines, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _panel(axes: Any, profiles: Sequence[LayerProfile], names: tuple[str, ...]) -> None:
    drawn: list[float] = []
    for colour, profile in zip(PALETTE, profiles, strict=False):
        for style, name in zip(("-", ":"), names, strict=False):
            drawn += _curve(axes, profile, name, colour=colour, style=style, sinks=True)
        if profile.sinks:
            drawn += _curve(axes, profile, names[0], colour=colour, style="--", sinks=False)
    if names == ("mean_norm",) and drawn and min(drawn) < _FEW * max(drawn):
        axes.set_yscale("log")
    elif drawn and min(drawn) >= 0:
        axes.set_ylim(bottom=0)


def _curve(
    axes: Any, profile: LayerProfile, name: str, *, colour: str, style: str, sinks: bool
) -> list[float]:
    """One line, and the values on it."""
    pairs = zip(profile.layers, profile.values(name, sinks=sinks), strict=True)
    points = [(layer, value) for layer, value in pairs if value is not None]
    if not points:
        return []
    label = f"{profile.model}{'' if sinks else ', without sinks'}" if style != ":" else None
    axes.plot(
        *zip(*points, strict=True), style, color=colour, label=label, linewidth=1, markersize=2.5, marker="."
    )
    return [value for _, value in points]
