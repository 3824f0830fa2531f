"""Statistics that metrics are formulas over: computed once, most in one pass over blocks that merge."""

from isoscope.statistics.cross import CrossMoments
from isoscope.statistics.directions import Directions
from isoscope.statistics.groups import GroupDirections, GroupMoments
from isoscope.statistics.kernel_alignment import KernelAlignment
from isoscope.statistics.moments import Moments
from isoscope.statistics.neighbors import Neighbors
from isoscope.statistics.pairs import ClusterDistances, Separation

__all__ = [
    "ClusterDistances",
    "CrossMoments",
    "Directions",
    "GroupDirections",
    "GroupMoments",
    "KernelAlignment",
    "Moments",
    "Neighbors",
    "Separation",
]
