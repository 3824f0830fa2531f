"""Checks that a file can be written, made before long work and without importing torch."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from isoscope.errors import FileError, InputError, Setting
from isoscope.io.atomic import check_place

KINDS = (".npy", ".npz", ".safetensors", ".parquet")  # of vectors that are in memory
BLOCKWISE = (".npy", ".parquet")  # of vectors that are written in blocks
CORRECTION = (".safetensors",)
PAGE = (".html", ".htm")
_Path = str | os.PathLike[str]


def check_target(path: _Path, kinds: Collection[str] = BLOCKWISE) -> Path:
    """Return the path, or raise FileError unless a file of one of these kinds can be written there.

    Any kind will do where none is named.
    """
    path, suffixes = Path(path), " or ".join(kinds)
    if path.is_dir() and kinds:
        hint = f"write to {path / 'output'}{next(iter(kinds))}"
        raise FileError(
            f"{path} is a folder", wanted=f"the name of a file that ends in {suffixes}", hint=hint
        )
    if kinds and path.suffix.lower() not in kinds:
        ends = f"ends in {path.suffix}, which cannot be written" if path.suffix else "has no suffix"
        raise FileError(f"{path} {ends}", wanted=f"a name that ends in {suffixes}")
    check_place(path)
    return path


def check_folder(path: _Path) -> Path:
    """Return the path, or raise FileError where it is a file."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise FileError(f"{path} is a file", wanted="the name of a folder")
    return path


def check_targets(output: _Path | None, save: _Path | None) -> None:
    """Raise InputError unless corrected vectors, the correction or both are to be written, and can be."""
    if output is None and save is None:
        both = [Setting("output", to="write the vectors"), Setting("save", to="save the correction")]
        raise InputError("There is nothing to write", hint=both)
    if output is not None and save is not None and Path(output).resolve() == Path(save).resolve():
        raise InputError(f"{output} is named for both the vectors and the correction", wanted="two names")
    if output is not None:
        check_target(output)
    if save is not None:
        check_target(save, CORRECTION)
