"""`nearest`: the nearest rows of a source to some vectors, block by block."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.engine.source import Source
from isoscope.kernels.tiles import Progress
from isoscope.statistics.directions import has_direction
from isoscope.statistics.neighbors import Neighbors

_BLOCK_NUMBERS, _CUDA_BLOCK_NUMBERS = 2**25, 2**30  # of vectors that are searched at once


def nearest(
    source: Source, asked: Tensor, k: int, *, lift: float | None = None, progress: Progress | None = None
) -> Neighbors:
    """Return the k nearest rows of the source that are not zero.

    Args:
        source: what is searched, block by block.
        asked: (q, d) vectors.
        k: how many neighbours.
        lift: None for cosines. Else the largest length M of a row, for inner products: with one more
            dimension √(M² − ‖x‖²) rows are nearer, the larger their inner product with a query.
        progress: is called with the share of the work that is done.
    """
    best: Neighbors | None = None
    on_cuda = source.device.type == "cuda"
    n_rows = max(1024, (_CUDA_BLOCK_NUMBERS if on_cuda else _BLOCK_NUMBERS) // source.n_dims)
    asked = asked.to(source.device)
    if lift is not None:
        asked = torch.nn.functional.pad(asked, (0, 1))
    start = 0
    for block in source.blocks(n_rows):
        vectors = block.vectors.detach()
        rows = has_direction(vectors).nonzero().flatten()
        if len(rows):
            points = vectors if len(rows) == len(vectors) else vectors[rows]
            if lift is not None:
                points = _lifted(points, lift)
            metric = "cosine" if lift is None else "euclidean"
            here = Neighbors.between(asked, points, k=k, metric=metric)
            places = torch.where(here.indices >= 0, rows[here.indices.clamp(min=0)] + start, -1)
            here = Neighbors(here.distances, places, metric)
            best = here if best is None else best.merge(here)
        start += len(vectors)
        if progress and source.n_rows:
            progress(start / source.n_rows)
    assert best is not None
    return best


def _lifted(points: Tensor, longest: float) -> Tensor:
    squares = points.double().square().sum(dim=1)
    more = (longest**2 - squares).clamp(min=0).sqrt()
    return torch.cat([points, more[:, None].to(points.dtype)], dim=1)
