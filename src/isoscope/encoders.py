"""Deprecated: import from `isoscope.models`."""

from typing import Any
from warnings import warn


def __getattr__(name: str) -> Any:
    import isoscope.models as moved

    found = getattr(moved, name)
    warn("isoscope.encoders is deprecated; use isoscope.models.", DeprecationWarning, stacklevel=2)
    return found
