"""Matching: from which cosine on two vectors count as a match, and what that threshold promises."""

from isoscope.matching.guarantees import Guarantee
from isoscope.matching.result import MatchThreshold
from isoscope.matching.threshold import threshold

__all__ = ["Guarantee", "MatchThreshold", "threshold"]
