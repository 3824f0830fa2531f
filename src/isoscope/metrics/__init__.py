"""Formulas over statistics. Every metric is the function of its name here: `isoscope.metrics.isoscore`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Return a metric's function; `registry` finds them in the modules of this package."""
    from isoscope.metrics.registry import built_in

    if name == "__all__":
        return sorted(built_in())
    entry = None if name.startswith("_") else built_in().get(name)
    if entry is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return entry.function


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
