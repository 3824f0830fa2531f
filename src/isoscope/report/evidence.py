"""`Evidence`: everything that a report computes, shared by the page and the plots."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from isoscope.engine.measure import measure
from isoscope.engine.plan import silhouette_policy
from isoscope.engine.readings import Reading, Readings
from isoscope.engine.sample import EqualRows
from isoscope.errors import UndefinedError
from isoscope.labels import Labels
from isoscope.matching.pair_cosines import PairCosines
from isoscope.measurement import Measurement
from isoscope.metrics.frontier import ScatterDecomposition, scatter_decomposition, share_beyond_chance
from isoscope.metrics.registry import KNOWN, choose, registered
from isoscope.metrics.silhouette_estimate import estimate_silhouette
from isoscope.progress import Bar
from isoscope.queries import Queries
from isoscope.report.clusters import Silhouettes, has_exact_silhouettes
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.principal import Principal
from isoscope.tracking.trajectory import Trajectory

MOST_POINTS = 3000  # in the scatter plot
_ESTIMATED = {"silhouette": "micro", "silhouette_macro": "macro"}  # metrics of all pairs, and their average


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that a report computes of one space.

    Attributes:
        shelf: the statistics, each computed once.
        measurement: the default metrics.
        principal: the principal directions.
        cosines: the cosines of pairs; None where fewer than two vectors have a direction.
        rows: the row numbers of the points that are shown, in random order.
        silhouettes: the silhouettes by label; None without labels.
        split: the variance within and between labels; None without labels.
        fair_share: the share of the variance between labels, corrected for chance; None where undefined.
        equal: the zero vectors, and the rows that have an exact copy.
        run: the trajectory of the training run, if one was passed.
        queries: queries beside the rows; None without.
    """

    shelf: Statistics
    measurement: Measurement
    principal: Principal
    cosines: PairCosines | None
    rows: Tensor
    silhouettes: Silhouettes | None
    split: ScatterDecomposition | None
    fair_share: float | None
    equal: EqualRows
    run: Trajectory | None
    queries: Queries | None = None

    @property
    def space(self) -> Space:
        """The space."""
        return self.shelf.space

    @property
    def labels(self) -> Labels | None:
        """The labels, checked to be clusters."""
        return None if self.space.labels is None else self.shelf.labels

    @property
    def seed(self) -> int:
        """The seed of everything sampled."""
        return self.shelf.seed


def gather(
    shelf: Statistics,
    measured: Measurement | None,
    *,
    run: Trajectory | None,
    queries: Queries | None,
    progress: bool | None,
) -> Evidence:
    """Compute everything that a report shows; `measured` is used where the space is measured already."""
    space, has_labels = shelf.space, shelf.n_labels is not None
    measured = measured or _measured(shelf, progress=progress)
    with Bar(show=progress) as bar:
        bar.step("principal directions", at_once=True)
        # whitening divides by the smallest variances: they need products in float64
        principal = Principal.of(shelf.moments if space.vectors.dtype == torch.float64 else space)
        bar.step("cosines of pairs")
        try:
            cosines = PairCosines.of(space, shelf.labels if has_labels else None, seed=shelf.seed)
        except UndefinedError:
            cosines = None
        generator = torch.Generator().manual_seed(shelf.seed)
        rows = torch.randperm(len(space), generator=generator)[:MOST_POINTS]
        bar.step("silhouettes")
        silhouettes = Silhouettes.of(shelf, rows=rows) if has_labels else None
        split = scatter_decomposition(shelf.moments, shelf.label_moments) if has_labels else None
        fair = share_beyond_chance(shelf.label_moments) if has_labels else None
    equal = EqualRows.of(space)
    return Evidence(shelf, measured, principal, cosines, rows, silhouettes, split, fair, equal, run, queries)


def _measured(shelf: Statistics, *, progress: bool | None) -> Measurement:
    """Return the default metrics; silhouettes of many points are estimated, in linear time."""
    if shelf.n_labels is None or has_exact_silhouettes(shelf):
        return measure(shelf, seed=shelf.seed, progress=progress)
    missing = {name for name in KNOWN if getattr(shelf.space, name, None) is None}
    names = [one.name for one in choose(None) if one.name not in _ESTIMATED and not one.needs & missing]
    measured = measure(shelf, metrics=names, seed=shelf.seed, progress=progress)
    readings = {reading.name: reading for reading in measured.readings}
    tolerance = silhouette_policy(len(shelf.space)).tolerance
    for name, average in _ESTIMATED.items():
        estimate = estimate_silhouette(shelf.space, tolerance=tolerance, average=average, seed=shelf.seed)
        metric, is_exact = registered()[name], estimate.standard_error == 0
        how = "" if is_exact else f"; estimated from {estimate.n_anchors:,} points"
        meaning = metric.sentence(estimate.value) + how
        error = None if is_exact else estimate.standard_error
        readings[name] = Reading(name, estimate.value, error, None, meaning, metric.range)
    order = [name for name in registered() if name in readings]
    return replace(measured, readings=Readings([readings[name] for name in order]))
