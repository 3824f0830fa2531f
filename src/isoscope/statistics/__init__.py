"""What is computed once, in one pass, and merges: the ground every metric stands on."""

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
