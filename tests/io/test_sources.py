"""Vectors are opened by their path."""

from __future__ import annotations

import pytest

import isoscope as iso
from isoscope.errors import InputError


@pytest.mark.parametrize("path", ["", "  "])
def test_no_path_is_no_folder(path: str) -> None:
    """Which the path "." would be: the folder one works in."""
    with pytest.raises(InputError) as caught:
        iso.measure(path)
    assert caught.value.argument == "path"
