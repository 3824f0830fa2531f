from __future__ import annotations

from pathlib import Path

import pytest
from tests.raising import raises

from isoscope.errors import FileError, InputError
from isoscope.io.targets import CORRECTION, check_folder, check_target, check_targets


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("file").touch()


def test_a_folder_is_named_as_one_whatever_its_suffix() -> None:
    with raises(FileError, message="^out is a folder$", wanted=r"\.npy or \.parquet", hint="out/output.npy"):
        check_target("out")
    with raises(FileError, message="^out is a folder$"):
        check_target("out", ())


def test_the_suffix_says_what_is_written() -> None:
    assert check_target("out/a.NPY") == Path("out/a.NPY")
    assert check_target("any.name", ()) == Path("any.name")
    with raises(FileError, message=r"^a\.csv ends in \.csv", wanted=r"ends in \.npy or \.parquet"):
        check_target("a.csv")
    with raises(FileError, message="^a has no suffix$", wanted=r"\.safetensors"):
        check_target("a", CORRECTION)


def test_a_file_is_no_folder() -> None:
    assert check_folder("new") == Path("new")
    assert check_folder("out") == Path("out")
    with raises(FileError, message="^file is a file$", wanted="folder"):
        check_folder("file")


def test_something_must_be_written_to_two_places() -> None:
    check_targets("a.npy", "b.safetensors")
    with raises(InputError, message="nothing to write", hint="output"):
        check_targets(None, None)
    with raises(InputError, wanted="two names"):
        check_targets("a.npy", "out/../a.npy")
