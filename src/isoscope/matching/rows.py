"""`rows_at`: some rows of a source."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isoscope.engine.source import Source
from isoscope.space import Space


def rows_at(source: Source, rows: NDArray[Any]) -> Tensor:
    """Return some rows of a source, in one pass.

    >>> rows_at(Space([[0.0], [1.0], [2.0]]), np.array([2, 0])).tolist()
    [[2.0], [0.0]]
    """
    if isinstance(source, Space):
        return source.vectors[torch.from_numpy(rows).to(source.device)].detach().cpu()
    wanted, places = np.unique(rows, return_inverse=True)
    found, start = [], 0
    for space in source.blocks():
        here = wanted[(wanted >= start) & (wanted < start + len(space))] - start
        found.append(space.vectors[torch.from_numpy(here).to(space.device)].detach().cpu())
        start += len(space)
    return torch.cat(found)[torch.from_numpy(places)]
