from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import isoscope as iso
from isoscope.arrays import as_matrix, blocks, like, scalar, working_dtype
from isoscope.errors import FileError, InputError, NotFiniteError, ShapeError
from isoscope.unchecked import known_finite

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
        (np.ones(4), ShapeError, r"`X` has shape \(4,\); expected two axes \(n, d\).*X\[None, :\]"),
        (np.ones((2, 3, 4)), ShapeError, r"shape \(2, 3, 4\).*reshape\(-1, d\)"),
        (np.ones((0, 3)), ShapeError, "`X` is empty"),
        (np.ones((3, 0)), ShapeError, "`X` is empty"),
        ([], ShapeError, r"`X` has shape \(0,\)"),
        ([[1.0, 2.0], [3.0]], ShapeError, "where the first has 2"),
        (np.array([np.ones(2), np.ones(3)], dtype=object), ShapeError, "ragged rows of shapes"),
        (np.array([["a", "b"]], dtype=object), InputError, "Python objects"),
        (np.array([["a", "b"]]), InputError, "<U1 values; expected real numbers"),
        (np.ones((2, 2)) * 1j, InputError, "complex128 values.*X.real"),
        (torch.ones(2, 2) * 1j, InputError, "complex numbers"),
        (torch.eye(2).to_sparse(), InputError, "`X` is sparse, nested or quantized"),
        (torch.empty(2, 2, device="meta"), InputError, "`X` is a tensor on the device meta"),
        (torch.zeros(2, 2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2), InputError, "several to a byte"),
        ("vectors.npy", FileError, "vectors.npy does not exist"),
        (np.array([["2024-01-01"]], dtype="datetime64[D]"), InputError, "datetime64"),
        (np.ma.masked_array(np.eye(2), mask=np.eye(2)), NotFiniteError, "2 masked numbers"),
        (None, InputError, "`X` is None; expected an array"),
        ({"a": 1}, InputError, "`X` is of the type dict"),
        ((row for row in ROWS), InputError, "`X` is of the type generator"),
        (pa.array([[1.0], [1.0, 2.0]]), ShapeError, "a vector of length 2 in row 1, where the first has 1"),
        (pa.array([[1.0], None]), NotFiniteError, r"no vector in 1 of 2 rows \(row 1, "),
        (pa.array([[1.0, 2.0], [None, 2.0]]), NotFiniteError, "missing numbers, the first in row 1"),
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
def test_columns_of_texts_are_left_out_with_a_warning(library) -> None:
    frame = library.DataFrame({"a": [1.0, 2.0], "word": ["x", "y"], "b": [0.5, 1.5]})
    with pytest.warns(UserWarning, match=r"^X: columns that are not dimensions: word \(no numbers\)$"):
        assert as_matrix(frame).tolist() == [[1, 0.5], [2, 1.5]]
    assert as_matrix(frame, apart="word").shape == (2, 2)
    with pytest.raises(InputError, match="only texts in column 'word'"):
        as_matrix(frame[["word"]])


def labelled(library, **columns: object) -> object:
    """A frame of 40 rows of two dimensions and other columns."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    return library({"a": X[:, 0], **columns, "b": X[:, 1]})


LIBRARIES = [pd.DataFrame, pl.DataFrame, pa.table]
DAYS = np.datetime64("2024-01-01") + np.arange(40)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", np.arange(40)),
        ("user_id", np.arange(40) / 3),
        ("year", 2000 + np.arange(40) % 7),
        ("number", np.random.default_rng(0).permutation(40).astype(float)),
    ],
)
def test_no_column_of_a_frame_is_a_dimension_by_accident(library, name: str, values: object) -> None:
    with pytest.raises(InputError, match=rf"^`X` seems to have .* in column '{name}'.*X\.drop\(columns"):
        as_matrix(labelled(library, **{name: values}))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("values", [DAYS.astype("datetime64[us]"), np.arange(40) % 2 == 0, ["x"] * 40])
def test_columns_without_numbers_are_no_dimensions(library, values: object) -> None:
    with pytest.warns(UserWarning, match=r"columns that are not dimensions: other \(no numbers\)"):
        assert as_matrix(labelled(library, other=values)).shape == (40, 2)


@pytest.mark.parametrize("library", LIBRARIES)
def test_vectors_in_a_column_of_a_frame_are_found(library) -> None:
    columns = {"text": ["p", "q"], "embedding": [[1.0, 2.0], [3.0, 4.0]], "tokens": [[1, 2, 3], [4]]}
    frame = library(columns)
    assert as_matrix(frame).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InputError, match="has 2 columns of vectors: 'embedding', 'other'"):
        as_matrix(library({**columns, "other": [[1.5], [2.5]]}))
    assert as_matrix(frame["embedding"]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_of_dimensions_alone_come_in(library) -> None:
    rng = np.random.default_rng(0)
    tables = {
        "a column of noughts": {"a": rng.normal(size=40), "b": np.zeros(40, dtype=int)},
        "quantised": {f"x{j}": rng.integers(-128, 128, 40).astype(np.int8) for j in range(50)},
        "counts upward": {f"x{j}": np.arange(40) * 4 + j for j in range(4)},
        "bits": {f"x{j}": rng.integers(0, 2, 40).astype(bool) for j in range(4)},
        "zeros and ones of floats": {"a": rng.normal(size=40), "b": np.arange(40.0) % 2},
    }
    for table in tables.values():
        assert as_matrix(library(table)).double().T.tolist() == [list(map(float, c)) for c in table.values()]


def test_bytes_may_be_packed_bits() -> None:
    codes = np.random.default_rng(0).integers(0, 256, (30, 4), dtype=np.uint8)
    for X in (codes, torch.from_numpy(codes)):
        with pytest.raises(
            InputError, match=r"holds bytes \(uint8\) up to 2\d\d, which may be packed bits or whole"
        ):
            as_matrix(X)
    assert as_matrix(np.unpackbits(codes, axis=1)).shape == (30, 32)
    assert as_matrix(codes.astype(np.float32)).shape == (30, 4)
    assert as_matrix(codes.view(np.int8)).shape == (30, 4)


@pytest.mark.parametrize(
    ("cells", "what"),
    [([1, "x", 2.0], "objects"), ([False, True, False], "objects"), ([0, True, 2], "objects")],
)
def test_objects_of_a_column_are_all_looked_at(cells: list[object], what: str) -> None:
    frame = pd.DataFrame({"a": [0.5, 1.5, 2.25], "b": pd.Series(cells, dtype=object)})
    with pytest.raises(InputError, match=f"`X` has {what} in column 'b'"):
        as_matrix(frame)


def test_objects_that_are_numbers_are_taken() -> None:
    X = np.array([[1, 2.5], [3, 4]], dtype=object)
    assert as_matrix(X).tolist() == [[1, 2.5], [3, 4]]
    for bad in (np.array([[1, "2"]], dtype=object), np.array([[1, None]], dtype=object)):
        with pytest.raises(InputError, match="Python objects"):
            as_matrix(bad)


def test_ragged_lists_name_the_row() -> None:
    with pytest.raises(ShapeError, match="a vector of length 1 in row 1, where the first has 2"):
        as_matrix([[1.0, 2.0], [3.0]])


def test_a_result_is_no_array() -> None:
    with pytest.raises(InputError, match="`X` is of the type Measurement"):
        iso.isoscore(iso.measure(np.eye(4), metrics="isoscore"))


def test_one_array_that_is_known_to_be_finite_is_not_looked_at_again() -> None:
    X = torch.ones(3, 2)
    X[1, 1] = torch.nan
    with known_finite(X):
        assert as_matrix(X) is X
        with pytest.raises(NotFiniteError):
            as_matrix(X.clone())  # another array is
    with pytest.raises(NotFiniteError):
        as_matrix(X)
