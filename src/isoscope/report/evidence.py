"""`Evidence`: what was found out about a space, behind the page and the figures alike."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from isoscope.engine.measure import measure
from isoscope.engine.readings import Reading, Readings
from isoscope.errors import UndefinedError
from isoscope.labels import Labels, as_clusters
from isoscope.measurement import Measurement
from isoscope.metrics.frontier import ScatterDecomposition, scatter_decomposition, share_beyond_chance
from isoscope.metrics.registry import choose, registered
from isoscope.metrics.silhouette_estimate import SilhouetteEstimate, estimate_silhouette
from isoscope.progress import Bar
from isoscope.report.clusters import EXACT_ROWS, Silhouettes
from isoscope.report.pair_cosines import PairCosines
from isoscope.space import Space
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.principal import Principal
from isoscope.tracking.trajectory import Trajectory

MOST_POINTS = 3000  # in the picture
_SILHOUETTE_TOLERANCE = 5e-4


@dataclass(frozen=True, eq=False)
class Evidence:
    """The statistics of one space.

    Attributes:
        space, labels: what was measured; the labels checked to be clusters.
        measurement: the default metrics.
        principal: its principal directions.
        cosines: of pairs; None where fewer than two vectors have a direction.
        rows: numbers of the points that are shown, in random order.
        silhouettes, split: by label, and the variance within and between labels; None without labels.
        fair_share: of the variance between labels, without what chance adds; None where it is undefined.
        run: how it was trained, where that is told.
        seed: of everything sampled.
    """

    space: Space
    labels: Labels | None
    measurement: Measurement
    principal: Principal
    cosines: PairCosines | None
    rows: Tensor
    silhouettes: Silhouettes | None
    split: ScatterDecomposition | None
    fair_share: float | None
    run: Trajectory | None
    seed: int


def gather(space: Space, *, run: Trajectory | None, seed: int, progress: bool | None) -> Evidence:
    """Measure a space for a report; nothing is drawn yet."""
    labels = None if space.labels is None else as_clusters(space.labels, n=len(space))
    measured = _measured(space, seed=seed, progress=progress)
    with Bar(show=progress) as bar:
        bar.step("principal directions", at_once=True)
        principal = Principal.of(space)
        bar.step("cosines of pairs")
        cosines = _cosines(space, labels, seed)
        rows = torch.randperm(len(space), generator=torch.Generator().manual_seed(seed))[:MOST_POINTS]
        bar.step("silhouettes")
        found = None if labels is None else _silhouettes(space, labels, rows, seed)
        groups = None if labels is None else GroupMoments.of(space, labels)
        split = None if groups is None else scatter_decomposition(space, groups)
        fair = None if groups is None else share_beyond_chance(groups)
    return Evidence(space, labels, measured, principal, cosines, rows, found, split, fair, run, seed)


def _measured(space: Space, *, seed: int, progress: bool | None) -> Measurement:
    """The default metrics; the silhouette of many points is estimated, in linear time."""
    if space.labels is None or len(space) <= EXACT_ROWS:
        return measure(space, seed=seed, progress=progress)
    estimated = ("silhouette", "silhouette_macro")
    names = [metric.name for metric in choose(None) if metric.name not in estimated]
    known = [name for name in names if _is_known(space, name)]
    measured = measure(space, metrics=known, seed=seed, progress=progress)
    readings = {reading.name: reading for reading in measured.readings}
    for name, average in zip(estimated, ("micro", "macro"), strict=True):
        found = estimate_silhouette(space, tolerance=_SILHOUETTE_TOLERANCE, average=average, seed=seed)
        readings[name] = _estimated(name, found)
    order = [name for name in registered() if name in readings]
    return replace(measured, readings=Readings([readings[name] for name in order]))


def _is_known(space: Space, name: str) -> bool:
    needs = registered()[name].needs
    told = ("token_types", "sentences", "partners")
    return "covariance" not in needs and all(getattr(space, t) is not None for t in told if t in needs)


def _estimated(name: str, found: SilhouetteEstimate) -> Reading:
    metric = registered()[name]
    exact = found.standard_error == 0
    how = "" if exact else f"; estimated from {found.n_anchors:,} points, ± is about the exact value"
    error = None if exact else found.standard_error
    return Reading(name, found.value, error, None, metric.sentence(found.value) + how, metric.range)


def _silhouettes(space: Space, labels: Labels, rows: Tensor, seed: int) -> Silhouettes:
    return Silhouettes.of(space, labels, rows=rows, seed=seed, exact_rows=EXACT_ROWS)


def _cosines(space: Space, labels: Labels | None, seed: int) -> PairCosines | None:
    try:
        return PairCosines.of(space, labels, seed=seed)
    except UndefinedError:
        return None
