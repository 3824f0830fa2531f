from __future__ import annotations

import pytest

from isoscope.cli.options import as_typed, complete_metrics, parse_numbers, parse_seeds
from isoscope.errors import FileError, InputError


def test_completion_offers_metrics_and_families() -> None:
    assert "silhouette" in complete_metrics("sil")
    assert "clusters" in complete_metrics("clu")
    assert "isoscore" not in complete_metrics("sil")


def test_seeds_are_how_many_or_which() -> None:
    assert parse_seeds("5") == 5
    assert parse_seeds(" 1, 2,5") == [1, 2, 5]
    assert parse_seeds("7,") == [7]


@pytest.mark.parametrize("text", ["", " ", ",", "two", "1,x", "1.5"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(InputError, match=r"--seeds is .*; wanted whole numbers"):
        parse_seeds(text)
    with pytest.raises(InputError, match=r"--hidden is .*; wanted whole numbers"):
        parse_numbers("hidden", text)


@pytest.mark.parametrize(
    ("raised", "typed"),
    [
        ("or download=True to fetch it", "or --download to fetch it"),
        ("say which with text_column=", "say which with --text-column"),
        ("go on with it by resume=True, or", "go on with it by --resume, or"),
        ("key='x' is for .npz", "--key 'x' is for .npz"),
        ("runs/key=1/a.npy is empty", "runs/key=1/a.npy is empty"),
    ],
)
def test_errors_name_options_as_they_are_typed(raised: str, typed: str) -> None:
    with pytest.raises(FileError) as caught, as_typed():
        raise FileError(raised)
    assert str(caught.value) == typed


def test_options_called_otherwise_than_the_argument() -> None:
    for raised, typed in (("test is 0.9, which", "--held-out is 0.9, which"), ("the test is", "the test is")):
        with pytest.raises(InputError) as caught, as_typed(test="held-out"):
            raise InputError(raised)
        assert str(caught.value) == typed
