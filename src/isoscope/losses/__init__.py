"""Losses that shape a space, as torch modules.

    IStarLoss              the variance spread over all dimensions, or narrowed
    CosineRegularizer      no direction that all share
    MultipleNegativesLoss  partners told from all others (InfoNCE)
    TripletLoss            nearer to one's own than to others
    AlignmentLoss, UniformityLoss   partners together, directions apart

Each takes half precision and runs as written under autocast: sums are in float32 or wider. Each is that
of the whole batch where the batch is spread over processes, gradient included (`processes.py`).
"""

from __future__ import annotations

from isoscope.losses.contrastive import AlignmentLoss, MultipleNegativesLoss, UniformityLoss
from isoscope.losses.cosine import CosineRegularizer
from isoscope.losses.covariance import reference_covariance, token_covariance
from isoscope.losses.istar import IStarLoss
from isoscope.losses.triplet import TripletLoss

__all__ = [
    "AlignmentLoss",
    "CosineRegularizer",
    "IStarLoss",
    "MultipleNegativesLoss",
    "TripletLoss",
    "UniformityLoss",
    "reference_covariance",
    "token_covariance",
]
