"""Deprecated: import from `isoscope.models`."""

from warnings import warn

from isoscope.models import *  # noqa: F403

warn("isoscope.encoders is deprecated; use isoscope.models.", DeprecationWarning, stacklevel=2)
