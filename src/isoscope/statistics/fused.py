"""Whether and how summed distances are taken by the fused CUDA kernels; None where they cannot."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from isoscope.kernels.cluster_plan import MOST_SUMS, ClusterPlan
from isoscope.labels import Labels

_FUSED_TYPES = (torch.float32, torch.float16, torch.bfloat16)
_plans: WeakKeyDictionary[Labels, ClusterPlan] = WeakKeyDictionary()


def can_fuse(X: Tensor, labels: Labels) -> bool:
    """Whether the fused kernels take these points: on CUDA, float32 or narrower, with Triton installed."""
    if not X.is_cuda or X.dtype not in _FUSED_TYPES or X.shape[:-1].numel() * labels.n_labels > MOST_SUMS:
        return False
    from isoscope.kernels.triton_residuals import AVAILABLE

    return AVAILABLE


def fused_sums(X: Tensor, labels: Labels, *, deterministic: bool = False) -> Tensor | None:
    """(n, K) float32 summed distances to every cluster, or None where the torch tiles have to do.

    Spaces of one shape, (B, n, d), give (B, n, K) at once. What depends on the labels alone is kept with
    them, so a second space under the same Labels starts at once, and from the third on its launches are
    replayed from a recording.
    """
    if not can_fuse(X, labels):
        return None
    from isoscope.kernels.recorded import recorded_sums

    with contextlib.suppress(torch.cuda.OutOfMemoryError):
        plan = _plans.get(labels)
        if plan is None:
            plan = _plans[labels] = ClusterPlan.of(labels.codes, labels.n_labels)
        return recorded_sums(X, plan, deterministic=deterministic)
    torch.cuda.empty_cache()
    return None  # smaller tiles in torch need less


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
