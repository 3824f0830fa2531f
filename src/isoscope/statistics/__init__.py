"""What is computed once, in one pass, and merges: the ground every metric stands on."""

from isoscope.statistics.directions import Directions
from isoscope.statistics.groups import GroupDirections, GroupMoments
from isoscope.statistics.moments import Moments

__all__ = ["Directions", "GroupDirections", "GroupMoments", "Moments"]
