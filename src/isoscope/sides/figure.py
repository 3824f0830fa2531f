"""The figure of sides: how soon each finds its partners."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from isoscope.figures import PALETTE, panels
from isoscope.printable import printable, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isoscope.sides.result import Sides


def draw(found: Sides, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the share of each side's rows that have a partner among the first k, against k."""
    with panels(1, 1, (4.2, 2.8), axes=None if ax is None else [ax], path=path) as (ax,):
        names = list(found.sizes)
        longest = 1.0
        for (side, vectors), ranks in found.ranks.items():
            color = PALETTE[names.index(side) % len(PALETTE)]
            ordered = ranks.sort().values.tolist()
            shares = [100 * (place + 1) / len(ordered) for place in range(len(ordered))]
            longest = max(longest, sum(found.sizes.values()) - found.sizes[side])
            label = printable(shortened(side, 24)).replace("$", r"\$")
            is_centred = vectors == "centred"
            ax.step(
                [ordered[0], *ordered, longest], [0.0, *shares, 100.0], where="post", color=color,
                linewidth=1.2, linestyle="--" if is_centred else "-",
                label=f"{label}, centred" if is_centred else label,
            )  # fmt: skip
        ax.set_xscale("log")
        ax.set_xlim(1, max(longest, 2))
        ax.set_ylim(0, 101)
        ax.set_xlabel("first k rows of the other side")
        ax.set_ylabel("rows with a partner (%)")
        ax.legend(frameon=False, fontsize=7, loc="lower right")
    return ax
