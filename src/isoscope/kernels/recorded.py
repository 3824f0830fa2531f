"""A CUDA graph of `cluster_sums`: the same work for new points, launched at once.

At a few thousand points the kernels finish sooner than Python launches them. Where many spaces share
their labels and shape (one a training step), the launches are recorded once and replayed.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from isoscope.kernels.cluster_plan import ClusterPlan
from isoscope.kernels.triton_clusters import cluster_sums

_Key = tuple[torch.Size, torch.dtype, bool]
_seen: WeakKeyDictionary[ClusterPlan, dict[_Key, RecordedSums | None]] = WeakKeyDictionary()


class RecordedSums:
    """Launches recorded for one plan and one shape of points."""

    def __init__(self, X: Tensor, plan: ClusterPlan, *, deterministic: bool) -> None:
        self._points = X.clone()
        stream = torch.cuda.Stream(X.device)
        stream.wait_stream(torch.cuda.current_stream(X.device))
        with torch.cuda.stream(stream):  # a first run outside the recording compiles and allocates
            self._run(plan, deterministic)
        torch.cuda.current_stream(X.device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._sums = self._run(plan, deterministic)

    def _run(self, plan: ClusterPlan, deterministic: bool) -> Tensor:
        codes = plan.codes  # sorted ones: only their number is looked at once a plan is given
        return cluster_sums(self._points, codes, plan.n_clusters, plan=plan, deterministic=deterministic)

    def __call__(self, X: Tensor) -> Tensor:
        """The sums of new points, in memory of their own."""
        self._points.copy_(X)
        self._graph.replay()
        return self._sums.clone()


def recorded_sums(X: Tensor, plan: ClusterPlan, *, deterministic: bool = False) -> Tensor:
    """`cluster_sums` by plan: plainly the first time, recorded the second, replayed from then on."""
    kept = _seen.setdefault(plan, {})
    key = (X.shape, X.dtype, deterministic)
    if key not in kept:
        kept[key] = None
        return cluster_sums(X, plan.codes, plan.n_clusters, plan=plan, deterministic=deterministic)
    recording = kept[key]
    if recording is None:
        recording = kept[key] = RecordedSums(X, plan, deterministic=deterministic)
    return recording(X)
