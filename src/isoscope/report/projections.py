"""Pictures of a space in the plane that need a library of their own: UMAP and PaCMAP, where installed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

_LEAST = 50  # points: with fewer, neighbourhoods are the whole
_NAMES = {"umap": "UMAP", "pacmap": "PaCMAP"}


def projections(points: Tensor, *, seed: int = 0) -> dict[str, Tensor]:
    """(m, 2) pictures of points, by name, each from the library that is installed for it.

    >>> projections(torch.zeros(3, 8))
    {}
    """
    if len(points) < _LEAST:
        return {}
    found = {}
    n_threads = torch.get_num_threads()
    rows = points.double().cpu().numpy().astype(np.float32)
    for module, name in _NAMES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # both talk of threads and versions
            try:
                picture = _umap(rows, seed) if module == "umap" else _pacmap(rows, seed)
            except ImportError:
                continue
            finally:
                torch.set_num_threads(n_threads)  # numba sets OpenMP's threads for the whole process
        found[name] = torch.as_tensor(np.asarray(picture), dtype=torch.float64)
    return found


def _umap(rows: np.ndarray, seed: int) -> Any:
    from umap import UMAP

    return UMAP(n_components=2, random_state=seed).fit_transform(rows)


def _pacmap(rows: np.ndarray, seed: int) -> Any:
    from pacmap import PaCMAP

    return PaCMAP(n_components=2, random_state=seed).fit_transform(rows)
