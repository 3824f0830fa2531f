from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import isoscope as iso
from isoscope.arrays import as_matrix, blocks, like, scalar, working_dtype
from isoscope.errors import InputError, NotFiniteError, ShapeError

ROWS = [[1.0, 2.0], [3.0, 5.0], [-1.0, 0.5]]


class OnlyDLPack:
    """A stranger's array (CuPy, JAX): nothing but the DLPack protocol."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __dlpack__(self, **options: object) -> object:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> object:
        return self._tensor.__dlpack_device__()


def kinds() -> dict[str, object]:
    array = np.array(ROWS)
    return {
        "list": ROWS,
        "tuples": [tuple(row) for row in ROWS],
        "list of arrays": [np.array(row) for row in ROWS],
        "float64": array,
        "float32": array.astype(np.float32),
        "float16": array.astype(np.float16),
        "longdouble": array.astype(np.longdouble),
        "big endian": array.astype(">f8"),
        "fortran": np.asfortranarray(array),
        "reversed": array[::-1, ::-1][::-1, ::-1],
        "read only": np.frombuffer(array.tobytes()).reshape(3, 2),
        "torch": torch.tensor(ROWS),
        "bfloat16": torch.tensor(ROWS).bfloat16(),
        "dlpack": OnlyDLPack(torch.tensor(ROWS)),
        "pandas": pd.DataFrame(ROWS, columns=["a", "b"]),
        "pandas column of lists": pd.Series([np.array(row) for row in ROWS]),
        "pandas frame of one such column": pd.DataFrame({"v": [np.array(row) for row in ROWS]}),
        "pandas nullable": pd.DataFrame(ROWS).convert_dtypes(),
        "pandas arrow": pd.DataFrame(ROWS).astype("float64[pyarrow]"),
        "masked, none masked": np.ma.masked_array(array, mask=False),
        "polars": pl.DataFrame(array, schema=["a", "b"]),
        "polars column of arrays": pl.Series("v", array, dtype=pl.Array(pl.Float64, 2)),
        "polars column of lists": pl.Series("v", ROWS),
        "arrow table": pa.table({"a": array[:, 0], "b": array[:, 1]}),
        "arrow fixed lists": pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), 2),
        "arrow lists": pa.array(ROWS),
        "arrow chunked": pa.chunked_array([pa.array(ROWS[:1]), pa.array(ROWS[1:])]),
        "arrow table of lists": pa.table({"v": pa.array(ROWS)}),
        "space": iso.Space(ROWS),
    }


@pytest.mark.parametrize("kind", kinds())
def test_any_array_comes_in(kind: str) -> None:
    matrix = as_matrix(kinds()[kind])
    assert matrix.is_floating_point()
    assert torch.allclose(matrix.double(), torch.tensor(ROWS, dtype=torch.float64), atol=1e-3)


@pytest.mark.parametrize(
    "kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]
)
def test_whole_numbers_come_in(kind: str) -> None:
    array = np.array([[0, 1], [1, 1], [1, 0]]).astype(kind)
    assert as_matrix(array).double().tolist() == [[0, 1], [1, 1], [1, 0]]


def test_large_integers_keep_their_digits() -> None:
    assert as_matrix(np.array([[2**40 + 1, 0]]))[0, 0].item() == 2**40 + 1


def test_memory_map_is_not_copied(tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.array(ROWS))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert as_matrix(mapped).data_ptr() == mapped.ctypes.data


@pytest.mark.parametrize("kind", ["float64", "float32", "torch", "float16"])
def test_callers_array_is_shared_and_never_changed(kind: str) -> None:
    X = kinds()[kind]
    before = np.asarray(X).copy()
    y = [0, 0, 1]
    iso.measure(X, labels=y, metrics="all")
    iso.silhouette_samples(X, y)
    assert (np.asarray(X) == before).all()


def test_results_come_back_as_the_callers_kind() -> None:
    y = [0, 0, 1]
    assert isinstance(iso.silhouette_samples(np.array(ROWS), y), np.ndarray)
    assert isinstance(iso.silhouette_samples(torch.tensor(ROWS), y), torch.Tensor)
    assert isinstance(iso.isoscore(ROWS), float)
    grad = torch.tensor(ROWS, requires_grad=True)
    assert isinstance(iso.isoscore(grad), torch.Tensor)
    assert isinstance(scalar(torch.tensor(2.0)), float)
    assert isinstance(like(torch.ones(1), iso.Space(ROWS)), torch.Tensor)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.ones(4), ShapeError, r"X has shape \(4,\); wanted two axes \(n, d\).*X\[None, :\]"),
        (np.ones((2, 3, 4)), ShapeError, r"shape \(2, 3, 4\).*reshape\(-1, d\)"),
        (np.ones((0, 3)), ShapeError, "X is empty"),
        (np.ones((3, 0)), ShapeError, "X is empty"),
        ([], ShapeError, r"X has shape \(0,\)"),
        ([[1.0, 2.0], [3.0]], ShapeError, "ragged rows"),
        (np.array([np.ones(2), np.ones(3)], dtype=object), ShapeError, "ragged rows of shapes"),
        (np.array([["a", "b"]], dtype=object), InputError, "Python objects"),
        (np.array([["a", "b"]]), InputError, "<U1 values; wanted real numbers"),
        (np.ones((2, 2)) * 1j, InputError, "complex128 values.*real part"),
        (torch.ones(2, 2) * 1j, InputError, "complex numbers"),
        (torch.eye(2).to_sparse(), InputError, "sparse tensor"),
        ("vectors.npy", InputError, r"isoscope.read\(path\)"),
        (np.array([["2024-01-01"]], dtype="datetime64[D]"), InputError, "datetime64"),
        (np.ma.masked_array(np.eye(2), mask=np.eye(2)), NotFiniteError, "2 masked numbers"),
        (None, InputError, "X is a NoneType; wanted an array"),
        ({"a": 1}, InputError, "X is a dict"),
        ((row for row in ROWS), InputError, "X is a generator"),
        (pa.array([[1.0], [1.0, 2.0]]), ShapeError, "ragged rows of lengths"),
        (pa.array([[1.0], None]), InputError, "1 missing vectors, the first in row 1"),
        (pa.array([[1.0, 2.0], [None, 2.0]]), NotFiniteError, "1 missing numbers, the first in row 1"),
        (pa.chunked_array([], type=pa.list_(pa.float32())), ShapeError, "empty"),
    ],
)
def test_bad_input_is_one_clear_line(bad: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        as_matrix(bad)
    assert "\n" not in str(caught.value)


def test_sparse_matrices_are_refused_with_the_way_out() -> None:
    from scipy.sparse import csr_array

    with pytest.raises(InputError, match=r"X.toarray\(\)"):
        as_matrix(csr_array(np.eye(3)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_and_inf_name_their_rows(dtype: type) -> None:
    X = np.ones((40_000, 300), dtype=dtype)  # several blocks
    X[7, 2], X[39_999, 0], X[20_000, 5] = np.nan, np.inf, -np.inf
    with pytest.raises(NotFiniteError, match=r"NaN or Inf in 3 of 40000 rows \(row 7"):
        as_matrix(X)


def test_large_finite_values_are_not_mistaken_for_infinities() -> None:
    X = np.full((1000, 4), 3e38, dtype=np.float32)
    assert as_matrix(X).shape == (1000, 4)
    half = np.full((1000, 4), 6e4, dtype=np.float16)
    assert as_matrix(half).shape == (1000, 4)


def test_blocks_lift_half_precision_and_cover_every_row() -> None:
    X = torch.arange(30, dtype=torch.float16).reshape(10, 3)
    parts = list(blocks(X, n_rows=4))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert {part.dtype for part in parts} == {torch.float32}
    assert torch.equal(torch.cat(parts), X.float())
    assert working_dtype(torch.float64) == torch.float64


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_of_texts_are_named(library) -> None:
    frame = library.DataFrame({"a": [1.0, 2.0], "word": ["x", "y"], "b": [0.5, 1.5]})
    with pytest.raises(InputError, match=r"^X has texts in column 'word'; wanted numbers in each"):
        as_matrix(frame)
