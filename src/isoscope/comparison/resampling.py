"""Standard errors of differences between two spaces of the same rows, by leaving out groups of rows.

The rows are dealt into G groups at random. Leaving out one group, in both spaces at once, gives G values of
any figure θ, and with them its error (the delete-a-group jackknife; Kott 2001):

    s² = (G − 1)/G · Σ_g (θ_(g) − θ̄)²,      interval  θ ± t_{G−1} · s

Rows go out of both spaces together, so what both share cancels in a difference. Nothing is drawn twice, as
a bootstrap would, so that distances to neighbours stay what they are. Of many rows a random part is taken,
and its error carried over by √(m/n).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.kernels.tiles import Progress

N_GROUPS = 20
MAX_ROWS = 2500  # that errors are taken over
Figures = dict[str, float | None]


@dataclass(frozen=True)
class Resampled:
    """Standard errors by the figure's name, None where a figure was undefined in some group.

    n_rows: rows the errors were taken over. n_groups: G.
    """

    errors: dict[str, float | None]
    n_rows: int
    n_groups: int


def jackknife(
    figures: Callable[[Tensor], Figures],
    n: int,
    *,
    strata: Tensor | None = None,
    n_groups: int = N_GROUPS,
    max_rows: int = MAX_ROWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Resampled:
    """The errors of whatever `figures` makes of the rows it is given.

    Args:
        figures: named values from (m,) row numbers, in order.
        n: rows in all.
        strata: (n,) codes of labels, dealt evenly over the groups.
        n_groups: G.
        max_rows: rows taken at most.
        seed: of the draw and the groups.
        progress: told the share that is done.
    """
    rows, group = dealt(n, strata, n_groups, max_rows, seed)
    left_out = []
    for g in range(n_groups):
        left_out.append(figures(rows[group != g].sort().values))
        if progress:
            progress((g + 1) / n_groups)
    names = list(left_out[0])
    shrink = math.sqrt(len(rows) / n)
    return Resampled(
        {name: jackknife_error([one.get(name) for one in left_out], shrink) for name in names},
        len(rows),
        n_groups,
    )


def dealt(
    n: int, strata: Tensor | None = None, n_groups: int = N_GROUPS, max_rows: int = MAX_ROWS, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Rows drawn, and the group of each; rows of one label go round the groups."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(n, generator=generator)[:max_rows]
    if strata is not None:
        rows = rows[strata.cpu()[rows].argsort(stable=True)]
    return rows, torch.arange(len(rows)) % n_groups


def jackknife_error(values: Sequence[float | None], shrink: float) -> float | None:
    """s of the figures that leave each group out, carried over by `shrink`; None where one is undefined."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < len(values):
        return None
    mean = math.fsum(known) / len(known)
    spread = math.fsum((value - mean) ** 2 for value in known)
    return shrink * math.sqrt((len(known) - 1) / len(known) * spread)


def half_width(standard_error: float, n_groups: int) -> float:
    """Half the 95 % interval: Student's t with G − 1 degrees of freedom."""
    from scipy.stats import t

    return float(t.ppf(0.975, n_groups - 1)) * standard_error


def differences(first: Figures, second: Figures, names: Iterable[str]) -> Figures:
    """Second less first by name; None where either is."""
    pairs = ((name, first.get(name), second.get(name)) for name in names)
    return {name: None if a is None or b is None else b - a for name, a, b in pairs}
