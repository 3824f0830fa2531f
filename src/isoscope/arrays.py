"""Convert any array to one checked (n, d) tensor, and results to the caller's kind of array.

No other module depends on the kind of array. The caller's memory is shared where possible and never
written to. Half precision stays as stored; `working` converts it to a wider type block by block.
"""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from collections.abc import Collection, Iterator
from decimal import Decimal
from importlib import import_module
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope import frames
from isoscope.errors import InputError, NotFiniteError, Setting, ShapeError
from isoscope.list_columns import check_vectors, ragged
from isoscope.unchecked import is_known_finite, is_unchecked

BLOCK_BYTES = 16 * 2**20  # of float32: large enough for a fast product, small enough for any cache
_CUDA_BLOCK_BYTES = 256 * 2**20  # of float32: every launch costs the same, so there are few
HALVES = (torch.float16, torch.bfloat16)
_TORCH_FLOATS = (*HALVES, torch.float32, torch.float64)
LARGEST_BYTE = 127  # bytes above it use all eight bits, as packed codes do
_SMALL_INTS = (torch.int8, torch.uint8, torch.bool, torch.int16)
_ARRAYS = (Tensor, np.ndarray)
_threads_at_fork: list[int] = []  # of torch, in a process that was forked
_thread = threading.local()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _threads_at_fork.append(torch.get_num_threads()))


def as_matrix(X: Any, *, name: str = "X", finite: bool = True, apart: Any = None) -> Tensor:
    """Return any array as an (n, d) floating tensor, checked to have two axes and finite numbers.

    Accepts NumPy arrays and memory maps, torch tensors on any device, anything with DLPack (CuPy,
    JAX), pandas, polars and Arrow tables or columns of lists, Hugging Face datasets, a Space, nested lists,
    the path of a file of vectors, and an opened file, which are loaded.

    Args:
        X: the vectors.
        name: the argument's name, for messages.
        finite: whether to check every number; if not, the caller's own first pass does.
        apart: the caller's labels, weights or the like. If this names a column of X, the column is not a
            dimension.
    """
    _leave_parents_threads()
    if isinstance(vectors := getattr(X, "vectors", None), Tensor):
        return vectors  # a Space was checked when it was made
    if isinstance(X, _ARRAYS):
        matrix = as_tensor(X, name=name)
    else:
        apart = [apart] if isinstance(apart, str) else []
        if isinstance(X, str | os.PathLike):
            X = _opened(X, apart)
        if hasattr(type(X), "load") and hasattr(type(X), "blocks"):
            return as_matrix(X.load(), name=name)
        matrix = _from_table(X, name, apart) if is_table(X) else as_tensor(X, name=name)
    if matrix.ndim != 2:
        raise ShapeError(
            f"has shape {tuple(matrix.shape)}",
            argument=name,
            wanted="two axes (n, d), one vector a row",
            hint=_reshape_hint(matrix, name),
        )
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise ShapeError(
            f"is empty, shape {tuple(matrix.shape)}", argument=name, wanted="at least one vector"
        )
    if finite:
        check_finite(matrix, name=name)
    return matrix


def _opened(path: str | os.PathLike[str], apart: Collection[str]) -> Any:
    # by name, since readers are built on this module
    return import_module("isoscope.io.sources").open_vectors(path, by=tuple(apart) or None)


def is_table(X: Any) -> bool:
    """Return whether X is a data frame, an Arrow table, a Hugging Face dataset, or a column of one."""
    return type(X).__module__.partition(".")[0] in ("datasets", "pandas", "polars", "pyarrow")


def _from_table(X: Any, name: str, apart: Collection[str] = ()) -> Tensor:
    tensor = _share(frames.from_frame(X, name, apart), name)
    return as_tensor(tensor, name=name)


def _leave_parents_threads() -> None:
    """Compute on one core in a forked process: OpenMP would wait for threads that stayed with the parent.

    Each thread has its own setting; one that was changed since the fork stays.
    """
    if not _threads_at_fork or getattr(_thread, "process", None) == os.getpid():
        return
    _thread.process = os.getpid()
    if torch.get_num_threads() == _threads_at_fork[-1]:
        torch.set_num_threads(1)


def as_spaces(X: Any, *, name: str = "X") -> Tensor:
    """Return an array of B spaces as a (B, n, d) tensor, checked as by `as_matrix`."""
    spaces = as_tensor(X, name=name)
    if spaces.ndim != 3:
        raise ShapeError(
            f"has shape {tuple(spaces.shape)}", argument=name, wanted="three axes (B, n, d), B spaces"
        )
    if spaces.numel() == 0:
        raise ShapeError(
            f"is empty, shape {tuple(spaces.shape)}", argument=name, wanted="at least one vector a space"
        )
    try:
        check_finite(spaces.flatten(0, 1), name=name)
    except NotFiniteError:
        for place, space in enumerate(spaces):
            check_finite(space, name=f"{name}[{place}]")
    return spaces


def as_device(name: str | torch.device | None) -> torch.device | None:
    """Return a device by name, checked to exist; None stays None."""
    if name is None:
        return None
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        if reason.startswith("Expected one of"):  # and a list of devices that nobody has
            reason = "there is no such kind of device"
        hint = Setting("device", "cpu")
        raise InputError(f"{str(name)!r} cannot be used: {reason}", argument="device", hint=hint) from None


def as_tensor(X: Any, *, name: str = "X") -> Tensor:
    """Return a floating tensor that shares the caller's memory where possible; values are not checked."""
    _leave_parents_threads()
    if not isinstance(X, Tensor):
        X = _from_foreign(X, name)
    check_real(X, name=name)
    if X.dtype in _TORCH_FLOATS:
        return X
    if X.dtype == torch.uint8 and X.numel() and int(X.max()) > LARGEST_BYTE:
        raise InputError(
            f"holds bytes (uint8) up to {int(X.max())}, which may be packed bits or whole numbers",
            argument=name,
            wanted="one number a dimension",
            hint=[f"pass np.unpackbits({name}, axis=1)", f"pass {name}.astype(np.float32)"],
        )
    if X.dtype in _SMALL_INTS:
        return X.to(torch.float32)
    return X.to(torch.float64)


def check_real(X: Tensor, *, name: str) -> None:
    """Raise InputError unless a tensor is dense, has its data, and holds real numbers."""
    if X.is_nested or X.is_quantized or X.layout != torch.strided:
        raise InputError(
            "is sparse, nested or quantized",
            argument=name,
            wanted="a dense tensor",
            hint=[f"pass {name}.to_dense()", f"pass {name}.dequantize()"],
        )
    if X.is_meta:
        raise InputError(
            "is a tensor on the device meta, which has no data", argument=name, wanted="one with data"
        )
    if X.is_complex():
        raise InputError(
            f"holds complex numbers ({X.dtype})",
            argument=name,
            wanted="real numbers",
            hint=[f"pass {name}.real", f"pass {name}.abs()"],
        )
    if X.dtype not in (*_TORCH_FLOATS, *_SMALL_INTS):
        try:
            torch.empty(1, dtype=X.dtype).double()
        except NotImplementedError:
            raise InputError(
                f"holds {X.dtype} values, several to a byte",
                argument=name,
                wanted="a type with one number a value",
                hint="convert it to float32 first",
            ) from None


def check_finite(X: Tensor, *, name: str = "X") -> None:
    """Raise NotFiniteError that names the first rows with NaN or Inf; one fast pass if there are none."""
    if is_unchecked() or is_known_finite(X):
        return
    if X.is_cuda and bool(torch.isfinite(X.detach().sum(dtype=working_dtype(X.dtype)))):
        return  # a device is waited for once
    for start, block in _row_blocks(X.detach()):
        if _seems_finite(block):
            continue
        bad = (~torch.isfinite(block)).any(dim=1).nonzero().flatten() + start
        if len(bad):
            raise _not_finite(X, bad, start, name)


def _seems_finite(block: Tensor) -> bool:
    """Return True only if every number is finite, in one fast pass; large numbers that overflow give False.

    A sum is finite only if every term is. Long sums overflow in half precision, and wider sums are slow.
    """
    sums = block.sum(dim=1) if block.dtype in HALVES else block.sum()
    return bool(torch.isfinite(sums).all())


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the type for products: float64 for float64, float32 for everything narrower."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def working(block: Tensor) -> Tensor:
    """Return a block in its working type."""
    return block.to(working_dtype(block.dtype))


def blocks(X: Tensor, *, n_rows: int | None = None) -> Iterator[Tensor]:
    """Yield blocks of rows in their working type, so that half precision is never widened as a whole."""
    for _, block in _row_blocks(X, n_rows):
        yield working(block)


def block_rows(n_dims: int, device: torch.device | None = None) -> int:
    """Return the number of float32 rows in one block, many more on a CUDA device."""
    on_cuda = device is not None and device.type == "cuda"
    return max(256, (_CUDA_BLOCK_BYTES if on_cuda else BLOCK_BYTES) // (4 * max(n_dims, 1)))


def like(result: Tensor, original: Any) -> Any:
    """Return a result as the caller's kind of array: a tensor for tensors, NumPy for everything else."""
    original = getattr(original, "vectors", original)
    if isinstance(original, Tensor):
        return result.to(original.device)
    return result.detach().cpu().numpy()


def scalar(value: Tensor | float) -> Any:
    """Return a plain float, or the tensor itself if it carries a gradient."""
    if isinstance(value, Tensor):
        return value if value.requires_grad else float(value)
    return float(value)


def _row_blocks(X: Tensor, n_rows: int | None = None) -> Iterator[tuple[int, Tensor]]:
    n_rows = n_rows or block_rows(X.shape[1], X.device)
    for start in range(0, X.shape[0], n_rows):
        yield start, X[start : start + n_rows]


def _from_foreign(X: Any, name: str) -> Tensor:
    module = type(X).__module__.partition(".")[0]
    if is_table(X):
        return _from_table(X, name)
    if module == "scipy":
        raise InputError(
            "is a scipy sparse matrix", argument=name, wanted="a dense array", hint=f"pass {name}.toarray()"
        )
    if hasattr(X, "__dlpack__") and not isinstance(X, np.ndarray):
        return torch.utils.dlpack.from_dlpack(X)
    if isinstance(X, str | bytes):
        raise InputError(f"is a {type(X).__name__}", argument=name, wanted="numbers")
    if isinstance(X, np.ma.MaskedArray) and np.ma.getmaskarray(X).any():
        n_masked = int(np.ma.getmaskarray(X).sum())
        raise NotFiniteError(
            f"has {n_masked} masked numbers", argument=name, wanted="none missing", hint="fill or drop them"
        )
    is_loader = module == "torch" and not isinstance(X, torch.Size)  # a dataset or a model
    is_result = hasattr(X, "readings")
    if X is None or isinstance(X, dict | set) or is_loader or is_result or not _has_rows(X):
        got = "is None" if X is None else f"is of the type {type(X).__name__}"
        raise InputError(
            got, argument=name, wanted="an array, a table or nested lists", hint=_array_in(X, name)
        )
    if isinstance(X, list | tuple) and X and isinstance(X[0], str):
        raise InputError(
            "is a list of texts", argument=name, wanted="vectors", hint=f"pass isoscope.encode({name})"
        )
    if isinstance(X, list | tuple):
        check_vectors(X, name)
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ragged(X, name, error) from None
    return _share(array, name)


def _has_rows(X: Any) -> bool:
    return hasattr(X, "__len__") or hasattr(X, "__array__")


def _array_in(X: Any, name: str) -> str | tuple[()]:
    """Return how to get the vectors out of an object of another kind."""
    if isinstance(X, dict) and X:
        return f"pass one of its arrays, such as {name}[{next(iter(X))!r}]"
    if isinstance(getattr(X, "weight", None), Tensor):
        return f"pass {name}.weight"
    if hasattr(X, "tensors"):
        return f"pass {name}.tensors[0]"
    if isinstance(X, torch.nn.Module):
        return "use isoscope.layers or isoscope.GeometryTracker to measure a model"
    if isinstance(X, torch.utils.data.DataLoader) and hasattr(X, "__iter__"):
        return f"pass one tensor, such as torch.cat([batch[0] for batch in {name}])"
    return f"pass np.stack(list({name}))" if hasattr(X, "__iter__") else ()


def _share(array: np.ndarray, name: str) -> Tensor:
    """Return a tensor over a NumPy array, without a copy where torch allows it."""
    if array.dtype.kind == "O":
        array = _from_object_array(array, name)
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"holds {array.dtype} values",
            argument=name,
            wanted="real numbers",
            hint=f"pass {name}.real" if array.dtype.kind == "c" else f"convert it with {name}.astype(float)",
        )
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.float64)
    if min(array.strides, default=0) < 0:
        array = np.ascontiguousarray(array)
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")  # we never write
        return torch.from_numpy(array)


def _from_object_array(array: np.ndarray, name: str) -> np.ndarray:
    """Stack rows that are separate lists or arrays, such as a pandas column of vectors."""
    if array.ndim == 1:
        check_vectors(array, name)
    elif all(isinstance(cell, Real | Decimal) and not isinstance(cell, bool) for cell in array.flat):
        return array.astype(np.float64)
    rows = [np.asarray(row) for row in array.ravel()]
    lengths = {row.shape for row in rows}
    if len(lengths) > 1:
        raise ShapeError(
            f"has ragged rows of shapes {sorted(lengths)[:4]}", argument=name, wanted="rows of one length"
        )
    if array.ndim == 1 and rows and rows[0].ndim == 1 and rows[0].dtype.kind in "fiub":
        return np.stack(rows)
    raise InputError("holds Python objects, not numbers", argument=name, wanted="an (n, d) array of floats")


def _reshape_hint(matrix: Tensor, name: str) -> str | list[str]:
    if matrix.ndim == 1:
        return [f"pass {name}[None, :] for one vector", f"pass {name}[:, None] for one column"]
    return f"flatten the leading axes with {name}.reshape(-1, d)"


def _not_finite(X: Tensor, bad: Tensor, start: int, name: str) -> NotFiniteError:
    n_bad = len(bad)
    for later, block in _row_blocks(X.detach()):
        if later > start:
            n_bad += int((~torch.isfinite(block)).any(dim=1).sum())
    rows = ", ".join(str(int(row)) for row in bad[:5])
    more = ", …" if n_bad > 5 else ""
    return NotFiniteError(
        f"has NaN or Inf in {n_bad} of {X.shape[0]} rows (row {rows}{more})",
        argument=name,
        wanted="finite numbers",
        hint=f"drop these rows with {name}[np.isfinite({name}).all(1)]",
    )


def digest(values: Tensor) -> str:
    """Return a SHA-256 of the type and the bytes of a tensor, the same on every machine.

    >>> digest(torch.ones(2)) == digest(torch.ones(2)), digest(torch.ones(2)) == digest(torch.zeros(2))
    (True, False)
    """
    held = values.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    return hashlib.sha256(str(values.dtype).encode() + held.tobytes()).hexdigest()
