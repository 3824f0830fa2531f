from __future__ import annotations

from typing import Any

import pytest

from isoscope.errors import InputError, ShapeError
from isoscope.models.texts import checked_texts


def test_a_list_comes_back() -> None:
    assert checked_texts(("a", "b")) == ["a", "b"]
    assert checked_texts(["a", ""]) == ["a", ""]


@pytest.mark.parametrize(
    ("texts", "error", "words"),
    [
        ("a text", InputError, "`pairs` must be a sequence of strings"),
        ([], ShapeError, "`pairs` is empty"),
        (["a", 3], InputError, r"`pairs\[1\]` must be a string, got 3"),
        (["a", "\t"], InputError, r"`pairs\[1\]` is empty"),
        (["\ud800"], InputError, r"`pairs\[0\]` has half of a surrogate pair"),
    ],
)
def test_what_is_refused(texts: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        checked_texts(texts, name="pairs", filled=True)
