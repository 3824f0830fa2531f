"""Deprecated: import from `isoscope.models.layers`."""

from warnings import warn

from isoscope.models.layers import *  # noqa: F403

warn("isoscope.layers is deprecated; use isoscope.models.layers.", DeprecationWarning, stacklevel=2)
