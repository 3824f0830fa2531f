"""Checks on the input of corrections: vectors, streams of blocks, and parameters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data
from torch import Tensor

from isoscope.arrays import as_matrix, as_tensor, check_finite
from isoscope.engine.source import is_source
from isoscope.errors import InputError, ShapeError, check_whole
from isoscope.space import Space


def as_rows(correction: Any, X: Any, *, reset: bool) -> Tensor:
    """Return X as an (n, d) tensor; set the number and names of features if `reset`, else check them."""
    if isinstance(X, Space):
        X = X.vectors
    is_file = isinstance(X, str | os.PathLike) or is_source(X)
    rows = as_matrix(X) if is_file else _as_tensor(X)
    if rows.ndim != 2:
        raise ShapeError(
            f"has shape {tuple(rows.shape)}",
            argument="X",
            wanted="two axes (n, d), one vector per row",
            hint=["reshape your data, as `X[None, :]` does for one vector", "call `transform_one(x)`"],
        )
    for axis, name in enumerate(("sample", "feature")):
        if rows.shape[axis] == 0:
            shape = tuple(rows.shape)
            raise ShapeError(f"X has 0 {name}(s) (shape={shape}) while a minimum of 1 is required.")
    check_finite(rows)
    _check_features(correction, X, rows, reset=reset)
    return rows


def _as_tensor(X: Any) -> Tensor:
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        X = X.astype(np.float64)
    try:
        return as_tensor(X)
    except InputError as error:
        if "complex" in str(error):
            raise InputError(f"Complex data not supported: {error}") from None
        raise


def _check_features(correction: Any, X: Any, rows: Tensor, *, reset: bool) -> None:
    columns = None if is_source(X) else getattr(X, "columns", None)
    named = columns is not None and len(columns) == rows.shape[1]
    try:
        validate_data(correction, X if named else rows, reset=reset, skip_check_array=True)
    except ValueError as error:
        advice = "Was it fitted, or saved, for other vectors?" if "is expecting" in str(error) else ""
        raise ShapeError(f"{str(error).strip()} {advice}".strip()) from None


def blocks_of(source: Any) -> Iterator[Any]:
    """Iterate over the blocks of an opened file, a list of blocks, or a function that returns an iterator."""
    if isinstance(source, np.ndarray | Tensor):
        raise InputError("is one array", argument="source", wanted="blocks", hint="pass it to fit")
    if is_source(source):
        return iter(source.blocks())
    if callable(source):
        return iter(source())
    if isinstance(source, Iterable):
        return iter(source)
    raise InputError(
        f"is a {type(source).__name__}",
        argument="source",
        wanted="an opened file, blocks, or a function without arguments that returns them",
    )


def check_taken_out(k: Any, n_dims: int) -> None:
    """Raise InputError unless k directions can be removed from n_dims with at least one left."""
    check_whole("n_components", k)
    if k >= n_dims:
        raise InputError(
            f"is {k}, and X has n_features = {n_dims}",
            argument="n_components",
            wanted=f"at most {n_dims - 1}",
        )
