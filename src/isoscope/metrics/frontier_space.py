"""Spaces on the frontier between clusters and isotropy, for any labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from isoscope.errors import InputError, check_seed
from isoscope.metrics.frontier import isotropy_ceiling, ranks, whole
from isoscope.space import Space

_ROUNDING = 1e-9  # ρ·d this close under a whole number counts as that number


def frontier_space(n_per_label: Sequence[int], n_dims: int, *, between: float = 1.0, seed: int = 0) -> Space:
    """Return a labelled space with the largest IsoScore that its labels, dimensions and points allow.

        B = Σ_k p_k μ_k μ_kᵀ flat on K − 1 directions,  W flat on the others,  tr B = ρ,  tr W = 1 − ρ

    with p_k = n_k/n. The means are μ_k = q_k·√(β/p_k), q_k the rows of a (K, r) matrix with orthonormal
    columns at right angles to √p: then Σ p_k μ_k = 0 and B = β·I, whatever the proportions. What lies
    within labels comes from orthonormal columns of n numbers that add up to 0 in each label. Where
    ρ < (K − 1)/d, W fills up what B leaves, and Σ is flat everywhere.

    The ceiling of `isotropy_ceiling(…, n_points=n)` is met, which is that of any number of points
    as soon as n ≥ `points_needed(…)`. tr Σ = 1, mean 0, rows sorted by label, turned at random.

    Args:
        n_per_label: how many points each label has.
        n_dims: d.
        between: ρ, in [0, 1].
        seed: of the rotation and of the directions.

    >>> from isoscope.metrics.frontier import scatter_decomposition
    >>> space = frontier_space([5, 20, 10], 8, between=0.6)
    >>> split = scatter_decomposition(space)
    >>> round(split.between_share, 9), round(split.distance, 9)
    (0.6, 0.0)
    """
    counts = np.array([whole(f"n_per_label[{k}]", count, 1) for k, count in enumerate(n_per_label)])
    if len(counts) == 0:
        raise InputError("is empty", argument="n_per_label", wanted="the number of points of each label")
    check_seed(seed)
    n, K = int(counts.sum()), len(counts)
    isotropy_ceiling(K, n_dims, between=between, n_points=n)  # refuses what cannot be
    rng = np.random.default_rng(seed)
    across, inside = _spectra(K, n_dims, n, float(between))
    r, w = int((across > 0).sum()), int((inside > 0).sum())
    X = np.zeros((n, n_dims))
    labels = np.repeat(np.arange(K), counts)
    if r:
        X[:, across > 0] = (_means(counts / n, r, rng) * np.sqrt(across[across > 0]))[labels]
    if w:
        X[:, inside > 0] += _deviations(labels, K, w, rng) * np.sqrt(n * inside[inside > 0])
    rotation = np.linalg.qr(rng.normal(size=(n_dims, n_dims)))[0]
    return Space(X @ rotation, labels=labels)


def points_needed(n_labels: int, n_dims: int, *, between: float = 1.0) -> int:
    """Return the smallest number of points that reaches `isotropy_ceiling(n_labels, n_dims, between=ρ)`.

        K + d − ⌊d·min(ρ, (K − 1)/d)⌋,   K where ρ = 1

    Beyond the knee ρ ≥ (K − 1)/d that is d + 1, the points a full rank takes anyway.

    >>> points_needed(3, 10, between=0.5), points_needed(3, 10, between=0.0), points_needed(3, 10)
    (11, 13, 3)
    """
    isotropy_ceiling(n_labels, n_dims, between=between)
    if between == 1:
        return n_labels
    filled = math.floor(min(between * n_dims, n_labels - 1) + _ROUNDING)  # directions that B fills by itself
    return n_labels + max(1, n_dims - filled)  # ρ < 1 needs a point beside its mean


def _spectra(K: int, d: int, n: int, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (d,) eigenvalues of B and W in common directions, with the flattest sum their ranks allow."""
    r, w, _ = ranks(K, d, n)
    D = min(d, r + w)
    across, inside = np.zeros(d), np.zeros(d)
    if rho > r / D:
        across[:r] = rho / r
        inside[r:D] = (1 - rho) / (D - r)
    elif 1 - rho > w / D:
        across[: D - w] = rho / (D - w)
        inside[D - w : D] = (1 - rho) / w
    else:  # W ≤ I/D fills up what B leaves: n − K ≥ D − full, where `full` directions are B's alone
        full = max(0, D - w)
        across[:full] = 1 / D
        if r > full:
            across[full:r] = (rho - full / D) / (r - full)
        across = across.clip(0, 1 / D)
        inside[:D] = 1 / D - across[:D]
    inside[inside < 1e-15] = 0  # 1/D less itself, up to rounding: a rank that W does not have
    across[across < 1e-15] = 0
    return across, inside


def _means(p: np.ndarray, r: int, rng: np.random.Generator) -> np.ndarray:
    """Return (K, r) means with Σ p μ = 0 and Σ p μ μᵀ = I."""
    start = np.column_stack([np.sqrt(p), rng.normal(size=(len(p), r))])
    return np.linalg.qr(start)[0][:, 1:] / np.sqrt(p)[:, None]


def _deviations(labels: np.ndarray, K: int, w: int, rng: np.random.Generator) -> np.ndarray:
    """Return (n, w) orthonormal columns, each with sum 0 over every label."""
    start: Any = np.column_stack([np.eye(K)[labels], rng.normal(size=(len(labels), w))])
    return np.linalg.qr(start)[0][:, K:]
