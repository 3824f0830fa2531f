"""Deprecated: import from `isoscope.models.layers`."""

from typing import Any
from warnings import warn


def __getattr__(name: str) -> Any:
    import isoscope.models.layers as moved

    found = getattr(moved, name)
    warn("isoscope.layers is deprecated; use isoscope.models.layers.", DeprecationWarning, stacklevel=2)
    return found
