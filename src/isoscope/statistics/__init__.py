"""Statistics that metrics are formulas over: computed once, most in one pass over blocks that merge."""

from isoscope.statistics.directions import Directions
from isoscope.statistics.groups import GroupDirections, GroupMoments
from isoscope.statistics.moments import Moments
from isoscope.statistics.neighbors import Neighbors
from isoscope.statistics.pairs import ClusterDistances, Separation

__all__ = [
    "ClusterDistances",
    "Directions",
    "GroupDirections",
    "GroupMoments",
    "Moments",
    "Neighbors",
    "Separation",
]
