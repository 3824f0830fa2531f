from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import torch
from file_writers import lists, write_stream
from tests.raising import raises

from isoscope.errors import FileError, LabelError, NotFiniteError, ShapeError
from isoscope.io import open_vectors, read

SUFFIXES = [".parquet", ".arrow", ".feather"]


def write(path: Path, table: pa.Table) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=4)
    elif path.suffix == ".arrow":
        write_stream(path, table)
    else:
        pyarrow.feather.write_feather(table, str(path), chunksize=4)
    return path


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"a{request.param}"


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4"])
@pytest.mark.parametrize("large", [True, False])
def test_list_dtypes(path: Path, dtype: str, large: bool) -> None:
    X = np.arange(12).reshape(4, 3).astype(dtype)
    kind = (pa.large_list if large else pa.list_)(pa.from_numpy_dtype(X.dtype))
    write(path, pa.table({"v": pa.array(list(X), kind)}))
    space = read(path)
    np.testing.assert_array_equal(space.vectors.double().numpy(), X)
    assert space.vectors.dtype == {"f2": torch.float16, "f4": torch.float32}.get(dtype, torch.float64)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (pa.float16(), torch.float32),
        (pa.float32(), torch.float32),
        (pa.float64(), torch.float64),
        (pa.int16(), torch.float32),
        (pa.int64(), torch.float64),
        (pa.decimal128(8, 2), torch.float64),
    ],
)
def test_number_columns(path: Path, kind: pa.DataType, dtype: torch.dtype) -> None:
    columns = [pa.array([1.0, 2.0, 3.0]).cast(kind), pa.array([4.0, 5.0, 6.0]).cast(kind)]
    write(path, pa.table(columns, names=["x", "y"]))
    space = read(path)
    assert space.vectors.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert space.vectors.dtype == dtype


def test_columns_left_out_are_named(path: Path) -> None:
    table = pa.table(
        {"x": [1.0, 2.0], "id": ["p", "q"], "y": [3.0, 4.0], "text": ["s", "t"], "__index_level_0__": [0, 1]}
    )
    file = open_vectors(write(path, table))
    assert file.notes == ["columns that are not dimensions: id (no numbers), text (no numbers)"]
    assert file.n_dims == 2
    assert open_vectors(path, labels="id").notes == ["columns that are not dimensions: text (no numbers)"]
    assert open_vectors(path, labels="y").n_dims == 1


def test_several_vector_columns(path: Path) -> None:
    X = np.ones((3, 2), np.float32)
    write(path, pa.table({"a": lists(X), "b": lists(X * 2), "ids": lists(X.astype("i4")), "n": [1, 2, 3]}))
    with pytest.raises(FileError, match=r"has 2 columns of vectors: a, b\. Pass `vectors` to say which"):
        open_vectors(path)
    assert read(path, vectors="b").vectors[0, 0] == 2
    assert read(path, vectors="ids").vectors.dtype == torch.float64
    with pytest.raises(
        FileError, match=r"`vectors` must be a column, got 'c'\. The columns of .* are a, b, ids, n"
    ):
        open_vectors(path, vectors="c")
    with raises(FileError, message="has int64 in column 'n'", wanted="lists of numbers"):
        open_vectors(path, vectors="n")


def test_float_vectors_win_over_integer_lists(path: Path) -> None:
    write(path, pa.table({"ids": pa.array([[1, 2], [3]]), "v": pa.array([[0.5], [1.5]])}))
    assert read(path).vectors.tolist() == [[0.5], [1.5]]


def test_text_column_becomes_texts(path: Path) -> None:
    X = np.eye(3, dtype=np.float32)
    write(path, pa.table({"text": ["p", None, "r"], "v": lists(X)}))
    assert read(path).texts == ["p", "", "r"]
    assert read(path, labels=None).labels is None
    write(path, pa.table({"text": ["p", "q", "r"], "v": lists(X)}))
    space = read(path, labels="text")
    assert space.texts is None
    assert space.labels.names == ("p", "q", "r")


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (pa.array(["b", "a", "b"]), ("a", "b")),
        (pa.array(["b", "a", "b"], pa.large_string()), ("a", "b")),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ("a", "b")),
        (pa.array([7, 3, 7], pa.int8()), (3, 7)),
        (pa.array([True, False, True]), (False, True)),
        (pa.array([2, 1, 2], pa.date32()), ("1970-01-02", "1970-01-03")),
        (pa.array([["x", "y"], ["x"], ["y", "x"]]), ("{x, y}", "{x}")),
    ],
)
def test_label_columns(path: Path, values: pa.Array, names: tuple[Any, ...]) -> None:
    write(path, pa.table({"v": lists(np.eye(3, dtype=np.float32)), "y": values}))
    space = read(path, labels="y")
    assert space.labels.names == names
    assert space.labels.codes.tolist() in ([1, 0, 1], [0, 1, 0])


@pytest.mark.parametrize("values", [pa.array(["a", None, "b"]), pa.array([1, None, 2])])
def test_missing_label(path: Path, values: pa.Array) -> None:
    write(path, pa.table({"v": lists(np.eye(3, dtype=np.float32)), "y": values}))
    with pytest.raises(LabelError, match=r"labels \(.*, column 'y'\) is missing for 1 of \d+ rows \(row 1,"):
        read(path, labels="y")


def test_label_column_of_lists_is_no_vector(path: Path) -> None:
    write(path, pa.table({"v": pa.array([[0.5], [1.5]]), "y": pa.array([[1.0], [2.0]])}))
    assert read(path, labels="y").vectors.tolist() == [[0.5], [1.5]]


def test_ragged_lists_name_the_row(path: Path) -> None:
    rows = [[1.0, 2.0]] * 6 + [[1.0]] + [[1.0, 2.0]]
    write(path, pa.table({"v": rows}))
    with pytest.raises(ShapeError, match=r"has a vector of length 1 in row 6, where the first has 2"):
        read(path)


@pytest.mark.parametrize("row", [0, 6])
def test_missing_vectors_name_the_row(path: Path, row: int) -> None:
    rows: list[list[float] | None] = [[1.0, 2.0] for _ in range(8)]
    rows[row] = None
    write(path, pa.table({"v": pa.array(rows, pa.list_(pa.float32()))}))
    with pytest.raises(NotFiniteError, match=rf"has no vector in 1 of \d+ rows \(row {row}, "):
        read(path)


def test_missing_numbers_name_the_row(path: Path) -> None:
    write(path, pa.table({"v": [[1.0, 2.0]] * 6 + [[1.0, None]]}))
    with pytest.raises(NotFiniteError, match="has missing numbers, the first in row 6"):
        read(path)
    write(path, pa.table({"x": [1.0] * 5 + [None], "y": [2.0] * 6}))
    with pytest.raises(NotFiniteError, match=r"in 1 of 6 rows \(row 5, counted from 0\)"):
        read(path)


def test_no_rows(path: Path) -> None:
    for column in (pa.array([], pa.list_(pa.float32())), pa.array([], pa.float32())):
        write(path, pa.table({"v": column}))
        with raises(ShapeError, message="has no rows", wanted="at least one vector"):
            read(path)


def test_vectors_of_no_dimensions(path: Path) -> None:
    write(path, pa.table({"v": pa.array([[], []], pa.list_(pa.float32()))}))
    with pytest.raises(ShapeError, match="vectors of 0 dimensions in column 'v'"):
        open_vectors(path)


def test_nothing_numeric(path: Path) -> None:
    write(path, pa.table({"a": ["x"], "b": ["y"]}))
    with pytest.raises(
        FileError, match=r"no column of vectors or dimensions; it has a \(string\), b \(string\)"
    ):
        open_vectors(path)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.95])
def test_truncated(path: Path, keep: float) -> None:
    write(path, pa.table({"v": lists(np.random.default_rng(0).normal(size=(100, 8)))}))
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    with pytest.raises(FileError, match=rf"a\{path.suffix} cannot be read: .*truncated"):
        read(path)


def test_text_is_no_table(path: Path) -> None:
    path.write_text("this is text\n" * 10)
    with pytest.raises(FileError, match="cannot be read"):
        open_vectors(path)


def test_damaged_offsets_are_found(tmp_path: Path) -> None:
    # an Arrow file is mapped as it is: wild offsets must be an error, not a crash
    offsets = np.array([0, 2, 4, 6], dtype=np.int32)
    column = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.arange(6, dtype=np.float64)))
    path = tmp_path / "a.arrow"
    pyarrow.feather.write_feather(pa.table({"v": column}), str(path), compression="uncompressed")
    wild = np.array([0, 2, 2**30, 6], dtype=np.int32).tobytes()
    data = path.read_bytes()
    assert offsets.tobytes() in data
    path.write_bytes(data.replace(offsets.tobytes(), wild))
    with pytest.raises(FileError, match=r"a\.arrow cannot be read"):
        read(path)


def test_mapped_blocks_outlive_the_reading(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(50, 4))
    path = tmp_path / "a.arrow"
    pyarrow.feather.write_feather(pa.table({"v": lists(X)}), str(path), compression="uncompressed")
    blocks = list(open_vectors(path).blocks(7))
    np.testing.assert_array_equal(np.vstack([block.vectors.numpy() for block in blocks]), X)


def test_a_flipped_byte_in_a_page_with_a_checksum_is_noticed(tmp_path: Path) -> None:
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    path = tmp_path / "a.parquet"
    table = pa.table({f"x{j}": X[:, j] for j in range(3)})
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    raw = bytearray(path.read_bytes())
    raw[raw.index(X[:, 1].tobytes())] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FileError, match=r"a\.parquet cannot be read: .*CRC"):
        read(path)


def test_columns_of_bytes_may_be_packed_bits(path: Path) -> None:
    X = np.random.default_rng(0).integers(0, 256, (40, 8), dtype=np.uint8)
    write(path, pa.table({f"d{j}": column for j, column in enumerate(X.T)}))
    with pytest.raises(FileError, match="packed bits, or whole numbers"):
        read(path)
    assert read(path, unpack_bits=False).vectors.tolist() == X.tolist()
    assert read(path, unpack_bits=True).vectors.tolist() == np.unpackbits(X, axis=1).tolist()


def test_vectors_written_as_text(path: Path) -> None:
    cells = ["[1, 2.5]", " [3.0 -4e1]"] * 12
    write(path, pa.table({"id": list(range(24)), "v": cells, "c": ["a", "b"] * 12}))
    space = read(path, labels="c")
    assert space.vectors.tolist() == [[1, 2.5], [3, -40]] * 12
    wide = {"v": cells} | {f"x{j}": np.random.default_rng(j).normal(size=24) for j in range(3)}
    write(path, pa.table(wide))
    assert read(path).n_dims == 3  # columns of numbers are the dimensions, unless the column is named
    assert read(path, vectors="v").n_dims == 2
    write(path, pa.table({"v": [*cells, "[1, two]"]}))
    with raises(FileError, message="a word that is no number"):
        read(path)
    write(path, pa.table({"v": [*cells, "nothing"]}))
    with raises(FileError, message="'nothing' in row 24", wanted="brackets"):
        read(path)
