"""Deprecated: `isoscope.scale.ring` and `isoscope.scale.costs` are `isoscope.engine.ring` and `.costs`."""

import sys
from warnings import warn

from isoscope.engine import costs, ring

sys.modules |= {f"{__name__}.costs": costs, f"{__name__}.ring": ring}
warn("isoscope.scale is deprecated; use isoscope.engine.", DeprecationWarning, stacklevel=2)
