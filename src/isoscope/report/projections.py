"""Projections to two dimensions by UMAP and PaCMAP, where they are installed."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import as_matrix, like
from isoscope.errors import InputError, check_seed, not_installed

_MIN_POINTS = 50  # fewer points than a neighbourhood has
_LIBRARIES = {"UMAP": ("umap", "umap-learn"), "PaCMAP": ("pacmap", "pacmap")}  # module, distribution


def installed_projections() -> list[str]:
    """Return the methods of `projection` whose library is installed: "UMAP", "PaCMAP"."""
    return [method for method in _LIBRARIES if _projector(method) is not None]


def projection(X: Any, *, method: str = "UMAP", seed: int = 0) -> Any:
    """Project vectors to two dimensions by UMAP or PaCMAP.

    Args:
        X: (n, d) vectors in any array.
        method: "UMAP" (needs umap-learn) or "PaCMAP" (needs pacmap).
        seed: the seed of the projection.

    Returns:
        (n, 2) float64 coordinates, in the same kind of array as X.
    """
    check_seed(seed)
    if method not in _LIBRARIES:
        raise InputError(argument="method", got=method, wanted=f"one of {', '.join(_LIBRARIES)}")
    n_threads = torch.get_num_threads()
    rows = as_matrix(X).detach().cpu().float().numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both warn about threads and versions
        try:
            projector = _projector(method)
            if projector is None:
                raise not_installed(method, _LIBRARIES[method][1])
            places = projector(n_components=2, random_state=seed).fit_transform(rows)
        finally:
            torch.set_num_threads(n_threads)  # numba sets OpenMP's threads for the whole process
    return like(torch.as_tensor(np.asarray(places), dtype=torch.float64), X)


def projections(points: Tensor, *, seed: int = 0) -> dict[str, Tensor]:
    """Return (m, 2) coordinates by each installed method; nothing for fewer than 50 points.

    >>> projections(torch.zeros(3, 8))
    {}
    """
    if len(points) < _MIN_POINTS:
        return {}
    return {method: projection(points, method=method, seed=seed) for method in installed_projections()}


def _projector(method: str) -> Any:
    """Return the class of a method, or None where its library is not installed."""
    n_threads = torch.get_num_threads()
    try:
        return getattr(import_module(_LIBRARIES[method][0]), method, None)
    except ImportError:
        return None
    finally:
        torch.set_num_threads(n_threads)
