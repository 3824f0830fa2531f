"""Errors compared by their fields, whatever the wording of their messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from isoscope.errors import InputError, IsoscopeError, Setting


@contextmanager
def raises(kind: type[IsoscopeError] = InputError, **fields: Any) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Pass if the block raises an error of the kind with these fields.

    argument, got: compared with the error's.
    message, wanted: regular expressions to be found in them.
    hint: an argument that a hint recommends, or a regular expression to be found in one of the hints.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    for name, wanted in fields.items():
        value = getattr(error, name)
        if name == "hint":
            hints = [hint.argument if isinstance(hint, Setting) else hint for hint in error.hint]
            assert any(re.search(wanted, hint) for hint in hints), f"{wanted!r} is not in the hints {hints}"
        elif name in ("message", "wanted"):
            assert re.search(wanted, value or ""), f"{name} is {value!r}, expected to find {wanted!r}"
        else:
            assert value == wanted, f"{name} is {value!r}, expected {wanted!r}"
