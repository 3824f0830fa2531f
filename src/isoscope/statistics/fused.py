"""Whether and how summed distances are taken by the fused CUDA kernels; None where they cannot."""

from __future__ import annotations

import contextlib
import warnings
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from isoscope.kernels.cluster_plan import MOST_SUMS, Capacity, ClusterPlan, Tuning
from isoscope.kernels.many_kmeans import CLOSE
from isoscope.kernels.precision import full_precision
from isoscope.kernels.products import sum_of_squares
from isoscope.kernels.recorded import MOST_NUMBERS, replayed
from isoscope.labels import Labels

Fields = tuple[Tensor, Tensor, Tensor]  # cohesion, separation and nearest cluster
FEW_POINTS = 3072  # whose distances are all held at once: 75 MB
_FUSED_TYPES = (torch.float32, torch.float16, torch.bfloat16)
_KEPT_ROOMS = 64
_plans: WeakKeyDictionary[Labels, ClusterPlan] = WeakKeyDictionary()
_rooms: OrderedDict[Hashable, Capacity] = OrderedDict()


def can_launch(X: Any) -> bool:
    """Whether Triton's kernels take these numbers: on CUDA, float32 or narrower, with Triton installed."""
    if not isinstance(X, Tensor) or not X.is_cuda or X.dtype not in _FUSED_TYPES:
        return False
    from isoscope.kernels.triton_residuals import AVAILABLE

    return AVAILABLE


def can_fuse(X: Tensor, labels: Labels) -> bool:
    """Whether the kernels over clusters take these points: their tables have to fit too."""
    return can_launch(X) and X.shape[:-1].numel() * labels.n_labels <= MOST_SUMS


def fused_sums(X: Tensor, labels: Labels) -> Tensor | None:
    """(n, K) float32 summed distances to every cluster, or None where the torch tiles have to do."""
    if not can_fuse(X, labels):
        return None
    from isoscope.kernels.triton_clusters import cluster_sums

    with contextlib.suppress(torch.cuda.OutOfMemoryError):
        return cluster_sums(X, labels.codes, labels.n_labels, plan=_plan(labels))
    torch.cuda.empty_cache()
    return None  # smaller tiles in torch need less


def fused_separation(X: Tensor, labels: Labels, *, deterministic: bool = False) -> Fields | None:
    """(B, n) cohesion, separation and nearest cluster of (B, n, d) spaces; None where the tiles have to do.

    Of few numbers, the launches are replayed from a recording from the third call with a shape on. Of many,
    what depends on the labels alone is kept with them.
    """
    if not can_fuse(X, labels):
        return None
    if len(X) == 1 and X.shape[1] <= FEW_POINTS:
        few = _of_few_points(X[0], labels)
        if few is not None:
            return few
    from isoscope.kernels.triton_separation import cluster_separation

    with contextlib.suppress(torch.cuda.OutOfMemoryError):
        if len(X) == 1 and X.numel() > MOST_NUMBERS:  # a recording would keep memory of that size
            return cluster_separation(X, _plan(labels), deterministic=deterministic)[:3]
        room = room_for(labels.sizes, X.device)
        fields = replayed(
            _separation, X, labels.codes, n_clusters=labels.n_labels, room=room, deterministic=deterministic
        )
        return fields[0], fields[1], fields[2]
    torch.cuda.empty_cache()
    return None


def _separation(
    X: Tensor, codes: Tensor, n_clusters: int, room: Capacity, deterministic: bool
) -> tuple[Tensor, ...]:
    """Nothing waits for the device."""
    from isoscope.kernels.triton_separation import cluster_separation

    plan = ClusterPlan.of(codes, n_clusters, capacity=room)
    return cluster_separation(X, plan, deterministic=deterministic)[:3]


def room_for(sizes: Sequence[int], device: torch.device) -> Capacity:
    """Return room for clusters of these sizes: that of the last ones of as many rows, if it suffices."""
    exact = Capacity.of(sizes, tuning=Tuning())
    key = (sum(sizes), len(sizes), device)
    room = _rooms.pop(key, None)
    if room is None or not room.holds(exact.n_large, exact.n_small, exact.n_labels):
        room = Capacity.around(sizes)
    _rooms[key] = room
    if len(_rooms) > _KEPT_ROOMS:
        _rooms.popitem(last=False)
    return room


def _plan(labels: Labels) -> ClusterPlan:
    plan = _plans.get(labels)
    if plan is None:
        plan = _plans[labels] = ClusterPlan.of(labels.codes, labels.n_labels, sizes=labels.sizes)
    return plan


def _of_few_points(X: Tensor, labels: Labels) -> Fields | None:
    """All distances of one space at once, in float64: fewer launches than the kernels take.

    None where some point's means are so small that the digits lost by products would show.
    """
    *fields, is_trusted = replayed(all_at_once, X, labels.codes, n_clusters=labels.n_labels)
    cohesion, separation, nearest = fields
    return (cohesion, separation, nearest) if bool(is_trusted) else None


@full_precision
def all_at_once(X: Tensor, codes: Tensor, n_clusters: int) -> tuple[Tensor, ...]:
    """(1, n) cohesion, separation and nearest cluster, and whether all can be trusted.

    Products about the mean lose the digits of pairs that are close for their distance to it: up to 1e-8 of
    that distance. Nothing waits for the device.
    """
    U = X.double()
    U = U - U.mean(dim=0)
    squares = sum_of_squares(U)
    distances = torch.addmm(squares[:, None], U, U.T, alpha=-2).add_(squares).clamp_(min=0).sqrt_()
    distances.fill_diagonal_(0)
    members = distances.new_zeros(len(X), n_clusters).scatter_(1, codes[:, None], 1)
    cohesion, separation, nearest = reduced(distances @ members, codes, members.sum(dim=0))
    is_trusted = torch.maximum(cohesion, separation).min() >= CLOSE * squares.max().sqrt()
    return cohesion[None], separation[None], nearest[None], is_trusted


def reduced(sums: Tensor, codes: Tensor, counts: Tensor) -> Fields:
    """Cohesion, separation and nearest cluster from (m, K) summed distances."""
    column = codes[:, None]
    cohesion = sums.gather(1, column).squeeze(1) / (counts[codes] - 1).clamp(min=1)
    means = sums / counts
    means.scatter_(1, column, torch.inf)
    means.masked_fill_(counts == 0, torch.inf)
    separation, nearest = means.min(dim=1)
    return cohesion, separation, nearest


@contextlib.contextmanager
def fixed_order(deterministic: bool, device: torch.device) -> Iterator[None]:
    """Inside, torch adds in a fixed order on CUDA too, where it has a way to; the CPU always does."""
    if not deterministic or device.type != "cuda":
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            # products on one stream repeat themselves without the setting torch asks for here
            warnings.filterwarnings("ignore", message="(?s).*CUBLAS_WORKSPACE_CONFIG")
            yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=only_warns)
