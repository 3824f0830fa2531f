"""`Mixture`: whether the rows are of two kinds that never meet, such as vectors of two models in one file."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from isoscope.statistics.neighbors import Neighbors

N_AXES = 5  # leading directions that are looked along
_MOST = 2000  # rows that are tested
_ROUNDS = 3
_FEWEST = 100
# √n times the dip of n uniform numbers exceeds this with the chance .002, in 20,000 simulations at n = 2,000
CRITICAL = 0.695
LEVEL = 0.01  # of all axes together: 5 times .002
_CROSSING = 0.01  # share of the neighbours across that random neighbours would have, below which none meet


@dataclass(frozen=True, eq=False)
class Mixture:
    """The split of the rows along a leading direction: significant, and without neighbours across it.

    Attributes:
        is_mixed: whether there are two kinds.
        dip: √n times the dip of the coordinates along the direction that is split most clearly.
        crossing: neighbours of the other side, as a share of those that random neighbours would have.
        smaller: (m,) which of the rows tested lie on the smaller side.
    """

    is_mixed: bool
    dip: float
    crossing: float
    smaller: Tensor

    @classmethod
    def of(cls, units: Tensor, neighbors: Neighbors) -> Mixture:
        """Test unit vectors, given their neighbours among themselves.

        The dip (Hartigan and Hartigan 1985) is the largest distance of a distribution to the nearest unimodal
        one. Of all unimodal distributions the uniform one has the largest dips, so the level holds for all.
        Where a side falls into two in the same way, the rows are of many kinds, which are clusters.
        """
        found = _split(units.double(), neighbors.indices.to(units.device))
        if not found.is_mixed:
            return found
        smaller = torch.zeros(len(units), dtype=torch.bool, device=units.device)
        smaller[found.smaller.to(units.device)] = True
        for side in (smaller, ~smaller):
            part = side.nonzero().flatten()
            order = torch.full((len(units),), -1, device=units.device).index_put_(
                (part,), torch.arange(len(part), device=units.device)
            )
            inside = order[neighbors.indices.to(units.device)[part]]
            inside = torch.where(inside < 0, torch.arange(len(part), device=units.device)[:, None], inside)
            if _split(units[part].double(), inside).is_mixed:  # of several kinds: they are clusters
                return replace(found, is_mixed=False)
        return found


def _split(rows: Tensor, neighbors: Tensor) -> Mixture:
    """Return the split with the fewest neighbours across, among those that are significant."""
    nothing = Mixture(False, 0.0, 1.0, torch.empty(0, dtype=torch.int64))
    if len(rows) < _FEWEST:
        return nothing
    centered = rows - rows.mean(dim=0)
    axes = torch.linalg.eigh(centered.T @ centered)[1][:, -N_AXES:]
    coordinates = (centered @ axes).T
    spread = torch.linspace(0, len(rows) - 1, min(_MOST, len(rows))).long()
    tested = coordinates.cpu()[:, spread].numpy()
    dips = [dip(line) * np.sqrt(tested.shape[1]) for line in tested]
    best = replace(nothing, dip=float(max(dips)))
    for line, depth in zip(coordinates, dips, strict=True):
        if depth > CRITICAL:
            smaller, crossing = _sides(line > _valley(line), neighbors)
            if crossing < best.crossing:
                is_mixed = crossing < _CROSSING and len(smaller) > 0
                best = Mixture(is_mixed, float(depth), crossing, smaller)
    return best


def _sides(side: Tensor, neighbors: Tensor) -> tuple[Tensor, float]:
    """Return the rows of the smaller side, and the share of neighbours across, over that of random ones."""
    for _ in range(_ROUNDS):  # a row near the cut goes where most of its neighbours are
        side = side[neighbors].double().mean(dim=1) > 0.5
    if int(side.sum()) * 2 > len(side):
        side = ~side
    share = float(side.double().mean())
    across = float((side[neighbors] != side[:, None]).double().mean())
    return side.nonzero().flatten().cpu(), across / max(2 * share * (1 - share), 1e-12)


def _valley(line: Tensor) -> float:
    """Return the cut into two parts with the least variance inside them (Otsu 1979)."""
    ordered = line.sort().values
    n = len(ordered)
    left = torch.arange(1, n, dtype=torch.float64, device=line.device)
    sums = ordered.cumsum(0)[:-1]
    gap = sums / left - (ordered.sum() - sums) / (n - left)
    place = int((left * (n - left) * gap.square()).argmax())
    return float((ordered[place] + ordered[place + 1]) / 2)


def dip(values: np.ndarray) -> float:
    """Return Hartigan's dip: the least h with a unimodal distribution within h of the empirical one.

    A distribution with the mode between two values is convex before and concave after it. The greatest convex
    minorant and the least concave majorant of the empirical distribution are taken between ever closer ends.

    >>> round(dip(np.array([0.0, 0.0, 1.0, 1.0]) + np.arange(4) * 1e-9), 3)
    0.25
    """
    x = np.sort(values).astype(np.float64)
    n = len(x)
    low, high = 0, n - 1
    depth = 1.0  # in steps of the distribution, 1/n each; the result is depth/2n
    if n < 4 or x[0] == x[-1]:
        return depth / (2 * n)
    while True:
        minorant, majorant = _hull(x, low, high, lower=True), _hull(x, low, high, lower=False)
        # distances of the two hulls at the corners of either
        at_minorant = np.interp(x[minorant], x[majorant], majorant) - minorant + 1
        at_majorant = majorant - np.interp(x[majorant], x[minorant], minorant) + 1
        first, second = at_minorant.max(), at_majorant.max()
        widest = max(first, second)
        if widest <= depth:
            break
        if first >= second:
            left = minorant[int(at_minorant.argmax())]
            right = majorant[np.searchsorted(majorant, left)]
        else:
            right = majorant[len(majorant) - 1 - int(at_majorant[::-1].argmax())]
            left = minorant[np.searchsorted(minorant, right, side="right") - 1]
        depth = max(
            depth, _gap(x, minorant, low, left, lower=True), _gap(x, majorant, right, high, lower=False)
        )
        if (left, right) == (low, high):
            break
        low, high = int(left), int(right)
    return float(depth / (2 * n))


def _hull(x: np.ndarray, low: int, high: int, *, lower: bool) -> np.ndarray:
    """Return the corners of the greatest convex minorant, or the least concave majorant, of some places."""
    sign = 1.0 if lower else -1.0
    corners: list[int] = []
    for place in range(low, high + 1):
        while len(corners) > 1:
            a, b = corners[-2], corners[-1]
            if sign * ((b - a) * (x[place] - x[b]) - (place - b) * (x[b] - x[a])) < 0:
                break
            corners.pop()
        corners.append(place)
    return np.array(corners)


def _gap(x: np.ndarray, hull: np.ndarray, start: int, stop: int, *, lower: bool) -> float:
    """Return the largest distance of the empirical distribution to the hull between two places."""
    if stop <= start:
        return 0.0
    places = np.arange(start, stop + 1)
    line = np.interp(x[places], x[hull], hull)
    return float((places - line).max() + 1) if lower else float((line - places).max() + 1)
