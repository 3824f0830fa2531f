"""The mean silhouette on CUDA by one recording: labels are planned on the device, and it is read once.

A recording is for a shape of points and a range of labels, with room for clusters of about the sizes seen.
What it returns says whether the labels fitted and the numbers can be trusted. The plain way does the rest,
and tells what is wrong with input that is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.kernels.cluster_plan import MOST_SUMS, Capacity, ClusterPlan
from isoscope.kernels.recorded import MOST_NUMBERS, replayed
from isoscope.labels import Labels
from isoscope.statistics.fused import FEW_POINTS, all_at_once, can_launch, room_for

_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_KEPT = 64  # ranges of labels, by shape
_WIDEST = 2**15  # range of labels


@dataclass(frozen=True)
class _Range:
    """Labels low … low + n_clusters − 1, and room for their clusters."""

    low: int
    n_clusters: int
    room: Capacity


_ranges: OrderedDict[Hashable, _Range] = OrderedDict()


def quick_score(X: Any, labels: Any) -> float | None:
    """Return the mean silhouette of (n, d) points; None where the plain way has to compute it."""
    codes = _codes(X, labels)
    if codes is None:
        return None
    known = _ranges.get(_key(X, codes))
    if known is None:
        return None
    few = len(X) <= FEW_POINTS
    options: dict[str, Any] = {"low": known.low, "n_clusters": known.n_clusters}
    if few:
        values = replayed(_of_few_points, X.detach(), codes, **options)[0]
    else:
        values = replayed(_of_points, X.detach(), codes, **options, room=known.room)[0]
    score, is_valid, n_outside, n_large, n_small, n_empty, n_labels = values.tolist()
    fits = few or known.room.holds(n_large, n_small + n_empty, n_labels)
    if is_valid and not n_outside and fits and 2 <= n_large + n_small < len(X):
        return float(score)
    return None


def learn_range(X: Any, labels: Any, coded: Labels) -> None:
    """Remember the range of labels and the sizes of their clusters for the next call with this shape."""
    codes = _codes(X, labels)
    if codes is None:
        return
    names = range(labels.n_labels) if isinstance(labels, Labels) else coded.names
    low, n_clusters = names[0], names[-1] - names[0] + 1
    if n_clusters > _WIDEST or len(X) * n_clusters > MOST_SUMS:
        return
    sizes = [0] * n_clusters
    of_names = labels.sizes if isinstance(labels, Labels) else coded.sizes
    for name, size in zip(names, of_names, strict=True):
        sizes[name - low] = size
    key = _key(X, codes)
    _ranges[key] = _Range(low, n_clusters, room_for(sizes, X.device))
    _ranges.move_to_end(key)
    if len(_ranges) > _KEPT:
        _ranges.popitem(last=False)


def _codes(X: Any, labels: Any) -> Tensor | None:
    """Return labels as whole numbers on the device of the points, where both are what a recording takes."""
    codes = labels.codes if isinstance(labels, Labels) else labels
    if not (isinstance(X, Tensor) and isinstance(codes, Tensor) and can_launch(X)):
        return None
    taken = X.ndim == 2 and X.numel() <= MOST_NUMBERS and codes.shape == X.shape[:1]
    return codes if taken and codes.device == X.device and codes.dtype in _WHOLE else None


def _key(X: Tensor, codes: Tensor) -> Hashable:
    return X.shape, X.dtype, codes.dtype, X.device


def _of_points(X: Tensor, labels: Tensor, low: int, n_clusters: int, room: Capacity) -> tuple[Tensor]:
    """Return the score and what `quick_score` looks at, in float64; nothing waits for the device."""
    from isoscope.kernels.triton_separation import cluster_separation

    plan = ClusterPlan.of(labels.long() - low, n_clusters, capacity=room)
    score = cluster_separation(X[None], plan)[3]
    is_finite = torch.isfinite(X.sum(dtype=torch.float32))
    return (torch.cat([score, is_finite[None].double(), plan.fits.double()]),)


def _of_few_points(X: Tensor, labels: Tensor, low: int, n_clusters: int) -> tuple[Tensor]:
    codes = labels.long() - low
    n_outside = ((codes < 0) | (codes >= n_clusters)).sum()
    codes = codes.clamp(0, n_clusters - 1)
    cohesion, separation, _, is_trusted = all_at_once(X, codes, n_clusters)
    counts = X.new_zeros(n_clusters, dtype=torch.float64).scatter_add_(
        0, codes, torch.ones_like(codes, dtype=torch.float64)
    )
    larger = torch.maximum(cohesion, separation)
    scores = torch.where((larger > 0) & (counts[codes] > 1), (separation - cohesion) / larger, 0.0)
    nothing = n_outside * 0
    values = [scores.mean(), is_trusted, n_outside, (counts > 0).sum(), nothing, nothing, nothing]
    return (torch.stack([value.double() for value in values]),)
