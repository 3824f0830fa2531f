"""The layers of one model or two as curves: eight panels, with and without attention sinks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.figures import PALETTE, new_figure, save_figure

if TYPE_CHECKING:
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


def draw_layers(profiles: Sequence[LayerProfile], path: Path) -> Path:
    """Write the figure of one profile, or of several side by side in colours."""
    from matplotlib.ticker import MaxNLocator

    with new_figure((7.2, 3.5)) as figure:
        grid: Any = figure.subplots(2, 4, sharex=len({len(p.layers) for p in profiles}) == 1)
        for axes, (title, names) in zip(grid.flat, _PANELS, strict=True):
            _panel(axes, profiles, names)
            axes.set_title(title, loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for axes in grid[-1]:
            axes.set_xlabel("layer")
        lines, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=4, frameon=False)
        return save_figure(figure, path)


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
