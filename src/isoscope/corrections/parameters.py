"""What corrections are asked to do, checked: whole numbers and shares, Python's own or NumPy's."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from isoscope.errors import InputError


def is_whole(value: Any) -> bool:
    """Whether it is a whole number; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_whole(value: Any, *, name: str, most: int | None = None) -> None:
    """Raise InputError unless it is a whole number from 1 to `most`."""
    if not is_whole(value) or value < 1 or (most is not None and value > most):
        bound = "on" if most is None else f"to {most}"
        raise InputError(f"{name} is {value!r}; wanted a whole number from 1 {bound}")


def check_taken_out(k: Any, n_dims: int) -> None:
    """Raise InputError unless k directions can be taken out of n_dims and some are left."""
    check_whole(k, name="n_components")
    if k >= n_dims:
        raise InputError(
            f"n_components is {k}, and X has n_features = {n_dims}; wanted at least one direction left"
        )


def is_share(value: Any) -> bool:
    """Whether it is a number from 0 to 1."""
    return isinstance(value, Real) and 0 <= float(value) <= 1
