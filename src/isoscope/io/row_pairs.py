"""Items that are several rows of a table of vectors, from a file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from isoscope.errors import FileError
from isoscope.io.files import reading, reason, text_lines
from isoscope.io.numpy_files import map_npy


def read_row_pairs(path: str | os.PathLike[str]) -> np.ndarray:
    """Return (m, c) row numbers from a .npy, or from text with commas, tabs or blanks between them."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path} is not there; wanted a file of pairs")
    if path.suffix.lower() == ".npy":
        with reading(path):
            return np.array(map_npy(path))
    try:
        lines = [line.replace(",", " ").split() for line in text_lines(path, what="pairs")]
        return np.array([[int(cell) for cell in line] for line in lines if line])
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read as pairs of whole numbers: {reason(error)}") from error
