from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from file_writers import WRITERS, D, N, write_csv, write_text, write_words
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.raising import raises

from isoscope.errors import FileError, InputError, LabelError, NotFiniteError, ShapeError
from isoscope.io import open_vectors, read
from isoscope.io.files import reading
from isoscope.io.formats import file_suffixes


def test_every_format_has_a_writer_here() -> None:
    written = {Path(name.removesuffix(".gz")).suffix for name in WRITERS}
    assert set(file_suffixes()) == written | {".bvecs"}  # which holds bytes: tests/io/test_fvecs_files.py


def test_load_gives_the_vectors_back(any_file: Path, vectors: np.ndarray) -> None:
    file = open_vectors(any_file)
    space = file.load()
    assert file.n_dims == D
    assert file.n_rows in (N, None)
    assert file.path == any_file
    assert file.n_bytes == (None if file.n_rows is None else 4 * N * D)
    assert str(D) in repr(file)
    assert any_file.name in repr(file)
    np.testing.assert_array_equal(space.vectors.float().numpy(), vectors)
    assert space.name == any_file.name.split(".")[0]
    assert space.labels is None


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 10, 11, 12, 1000, None])
def test_blocks_are_the_whole_in_order(any_file: Path, vectors: np.ndarray, n_rows: int | None) -> None:
    file = open_vectors(any_file)
    whole = file.load()
    for _ in range(2):  # each call begins again
        blocks = list(file.blocks(n_rows))
        size = n_rows or N
        assert [len(block) for block in blocks] == [min(size, N - i) for i in range(0, N, size)]
        assert torch.equal(torch.cat([block.vectors for block in blocks]), whole.vectors)
        if whole.texts is not None:
            assert (
                [text for block in blocks for text in block.texts]
                == whole.texts
                == [f"w{i}" for i in range(N)]
            )


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_blocks_of_any_shape(tmp_path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(WRITERS)))
    n, d = data.draw(st.integers(2, 40)), data.draw(st.integers(2, 6))
    X = np.random.default_rng(n * d).normal(size=(n, d)).astype(np.float32)
    path = tmp_path / name
    WRITERS[name](path, X)
    (tmp_path / "labels.txt").write_text("\n".join(f"l{i % 3}" for i in range(n)))
    file = open_vectors(path, labels=tmp_path / "labels.txt")
    blocks = list(file.blocks(data.draw(st.integers(1, 50))))
    np.testing.assert_array_equal(
        torch.cat([block.vectors for block in blocks]).numpy().astype(np.float32), X
    )
    codes = torch.cat([block.labels.codes for block in blocks])
    assert codes.tolist() == [i % 3 for i in range(n)]
    assert {block.labels.names for block in blocks} == {tuple(f"l{i}" for i in range(min(n, 3)))}


def test_read_is_open_and_load(any_file: Path, vectors: np.ndarray) -> None:
    assert len(read(str(any_file))) == N


def test_uppercase_suffix(tmp_path: Path, vectors: np.ndarray) -> None:
    with (tmp_path / "A.NPY").open("wb") as file:
        np.save(file, vectors)
    assert len(read(tmp_path / "A.NPY")) == N


def test_blocks_refuse_no_rows(any_file: Path) -> None:
    with raises(argument="n_rows", got=0, wanted="at least 1"):
        open_vectors(any_file).blocks(0)


# what is wrong with the path


def test_missing_file_suggests(tmp_path: Path, vectors: np.ndarray) -> None:
    np.save(tmp_path / "vectors.npy", vectors)
    with raises(FileError, message=r"vector\.npy does not exist$", hint=r"did you mean .*/vectors\.npy\?$"):
        open_vectors(tmp_path / "vector.npy")
    with raises(FileError, hint=r"did you mean .*/vectors\.npy"):
        open_vectors(tmp_path / "vectors.parquet")


def test_a_missing_file_is_compared_by_its_name_before_the_suffix(tmp_path: Path) -> None:
    for name in ("normalized.npy", "cn.npy", "emb.npy", "emb.pkl"):
        (tmp_path / name).touch()
    with raises(FileError, hint=r"did you mean \S*/emb\.npy\?$"):
        open_vectors(tmp_path / "EMB.NPY")
    with pytest.raises(FileError) as caught:
        open_vectors(tmp_path / "nofile.npy")
    assert not caught.value.hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a.xlsx", "as .csv"),
        ("a.mat", "as .npy"),
        ("a.ZIP", "unpack"),
        ("a.md", ".txt"),
    ],
)
def test_formats_that_are_not_read_say_what_to_do(tmp_path: Path, name: str, hint: str) -> None:
    (tmp_path / name).write_text("a")
    with raises(FileError, message="which is not read$", hint=hint):
        open_vectors(tmp_path / name)


def test_missing_folder(tmp_path: Path) -> None:
    with raises(FileError, message=r"and neither does the folder .*nowhere$"):
        open_vectors(tmp_path / "nowhere" / "a.npy")


def test_missing_file_without_a_like(tmp_path: Path) -> None:
    with raises(FileError, message=r"a\.npy does not exist", wanted=r"a file of vectors$"):
        open_vectors(tmp_path / "a.npy")


def test_folder(tmp_path: Path, vectors: np.ndarray) -> None:
    with raises(FileError, message="is a folder without files of vectors$"):
        open_vectors(tmp_path)
    (tmp_path / "readme.md").write_text("words")
    with raises(FileError, message=r"without files of vectors; it has readme\.md"):
        open_vectors(tmp_path)
    np.save(tmp_path / "v.npy", vectors)
    np.testing.assert_array_equal(open_vectors(tmp_path).load().vectors, vectors)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npy")
    with pytest.raises(FileError, match="not a regular file"):
        open_vectors(tmp_path / "a.npy")


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(FileError, match=r"is empty \(0 bytes\)"):
        open_vectors(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path, vectors: np.ndarray) -> None:  # pragma: no cover
    np.save(tmp_path / "a.npy", vectors)
    (tmp_path / "a.npy").chmod(0)
    with raises(FileError, message="is not readable"):
        open_vectors(tmp_path / "a.npy")


def test_no_permission_is_asked_of_the_system(
    tmp_path: Path, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "a.npy", vectors)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with raises(FileError, message="is not readable", wanted="read permission"):
        open_vectors(tmp_path / "a.npy")


def test_unknown_suffix_lists_the_known(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("1")
    with raises(FileError, message=r"has the suffix '\.xyz'", wanted=r"one of \.arrow, .*\.csv.*\.zarr"):
        open_vectors(tmp_path / "a.xyz")


@pytest.mark.parametrize(
    "suffix", [".pkl", ".pickle", ".joblib", ".pkl.gz", ".npy", ".pt", ".bin", ".txt", ".csv", ".npz"]
)
def test_no_pickle_is_ever_read(tmp_path: Path, suffix: str, trap: tuple[bytes, Path]) -> None:
    data, sprung = trap
    (tmp_path / f"a{suffix}").write_bytes(data)
    with pytest.raises(FileError) as caught:
        read(tmp_path / f"a{suffix}")
    assert not sprung.exists()
    if suffix in (".pkl", ".pickle", ".joblib", ".npy", ".pt"):
        assert "never unpickles" in str(caught.value)
        assert "np.save" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_of_other_formats(tmp_path: Path, vectors: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", vectors)
    with raises(FileError, argument="key", message=r"'x' is for .*\.npz", hint="leave it out"):
        open_vectors(tmp_path / "a.npy", key="x")
    with pytest.raises(FileError, match=r"`vectors` 'x' is for \.arrow.*\.parquet"):
        open_vectors(tmp_path / "a.npy", vectors="x")


# numbers that are not finite


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_not_finite_names_the_rows_of_the_file(tmp_path: Path, name: str, vectors: np.ndarray) -> None:
    X = vectors.copy()
    X[[4, 9]] = [[np.nan] * D, [np.inf] * D]
    path = tmp_path / name
    WRITERS[name](path, X)
    wanted = rf"{name} has NaN, Inf or missing numbers in 2 of 11 rows \(row 4, 9, counted from 0\)"
    with pytest.raises(NotFiniteError, match=wanted):
        read(path)
    blocks = open_vectors(path).blocks(3)
    assert len(next(blocks)) == 3
    with pytest.raises(NotFiniteError, match=wanted):
        list(blocks)


def test_not_finite_in_a_later_block_of_the_search(
    tmp_path: Path, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isoscope.io.vector_files.block_rows", lambda _: 3)
    X = vectors.copy()
    X[[4, 10], 1] = np.nan
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(NotFiniteError, match=r"in 2 of 11 rows \(row 4, 10, counted from 0\)"):
        list(open_vectors(tmp_path / "a.npy").blocks())


def test_many_bad_rows_are_cut_short(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full((7, 2), np.nan))
    with pytest.raises(NotFiniteError, match=r"in 7 of 7 rows \(row 0, 1, 2, 3, 4, …, counted"):
        read(tmp_path / "a.npy")


# labels


@pytest.mark.parametrize("n_rows", [3, 100])
@pytest.mark.parametrize("n_labels", [5, 20])
@pytest.mark.parametrize("name", ["a.npy", "a.csv"])
def test_labels_of_another_length(
    tmp_path: Path, vectors: np.ndarray, name: str, n_labels: int, n_rows: int
) -> None:
    WRITERS[name](tmp_path / name, vectors)
    (tmp_path / "y.txt").write_text("a\n" * n_labels)
    file = open_vectors(tmp_path / name, labels=str(tmp_path / "y.txt"))
    message = rf"has {n_labels} entries for 11 vectors in .*{name} \(labels from .*y\.txt\)"
    with raises(ShapeError, argument="labels", message=message, wanted="one for each vector"):
        list(file.blocks(n_rows))
    with raises(ShapeError, argument="labels", message=message, wanted="one for each vector"):
        file.load()


def test_column_wins_over_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "a.csv", "x,y,topic\n1,2,p\n3,4,q\n")
    (tmp_path / "topic").write_text("nonsense")
    assert read("a.csv", labels="topic").labels.names == ("p", "q")


def test_a_path_is_a_file_whatever_the_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "a.csv", "x,y,t.txt\n1,2,3\n3,4,5\n")
    write_text(tmp_path / "t.txt", "p\nq\n")
    space = read("a.csv", labels=Path("t.txt"))
    assert space.labels.names == ("p", "q")
    assert space.n_dims == 3
    assert read("a.csv", labels="t.txt").labels.names == (3, 5)


def test_labels_from_a_column_of_another_file(tmp_path: Path, vectors: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", vectors)
    write_text(tmp_path / "y.csv", "id,topic\n" + "".join(f"i{i},t{i % 2}\n" for i in range(N)))
    space = read(tmp_path / "a.npy", labels=f"{tmp_path}/y.csv:topic")
    assert space.labels.names == ("t0", "t1")
    assert space.labels.codes.tolist() == [i % 2 for i in range(N)]


def test_labels_nowhere(tmp_path: Path, vectors: np.ndarray) -> None:
    write_csv(tmp_path / "a.csv", vectors)
    with pytest.raises(
        FileError,
        match=r"`labels` must be a column or a file, got 'topic'\. The columns of .* are x0, x1, x2, x3",
    ):
        open_vectors(tmp_path / "a.csv", labels="topic")
    np.save(tmp_path / "a.npy", vectors)
    with pytest.raises(FileError, match=r"got 'topic'\. There are no columns in .*a\.npy"):
        open_vectors(tmp_path / "a.npy", labels="topic")
    (tmp_path / "empty.txt").touch()
    with pytest.raises(FileError, match=r"empty\.txt is empty"):
        open_vectors(tmp_path / "a.npy", labels=tmp_path / "empty.txt")


def test_missing_labels_name_the_rows(tmp_path: Path) -> None:
    write_text(tmp_path / "a.csv", "x,y,topic\n1,2,p\n3,4,\n5,6,q\n")
    with pytest.raises(
        LabelError, match=r"labels \(.*a\.csv, column 'topic'\) is missing for 1 of \d+ rows \(row 1,"
    ):
        read(tmp_path / "a.csv", labels="topic")


def test_label_file_is_read_once(tmp_path: Path, vectors: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", vectors)
    (tmp_path / "y.txt").write_text("a\nb\n" * 5 + "c")
    file = open_vectors(tmp_path / "a.npy", labels=tmp_path / "y.txt")
    first = list(file.blocks(4))
    (tmp_path / "y.txt").unlink()
    again = list(file.blocks(4))
    assert [b.labels.codes.tolist() for b in first] == [b.labels.codes.tolist() for b in again]
    assert again[0].labels.names == ("a", "b", "c")


def test_texts_and_labels_together(tmp_path: Path, vectors: np.ndarray) -> None:
    write_words(tmp_path / "a.txt", vectors)
    (tmp_path / "y.txt").write_text("a\n" * N)
    block = next(open_vectors(tmp_path / "a.txt", labels=tmp_path / "y.txt").blocks(2))
    assert block.texts == ["w0", "w1"]
    assert len(block.labels) == 2


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_that_are_no_dimensions_are_named(tmp_path, suffix: str) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table = pa.table({"a": [1.0, 2.0], "b": [3.0, 4.5], "id": [7, 8], "Label": [0, 1]})
    path = tmp_path / f"t{suffix}"
    (pa.csv.write_csv if suffix == ".csv" else pa.parquet.write_table)(table, path)
    notes = open_vectors(path).notes
    assert notes == ["columns that are not dimensions: id (by its name), Label (by its name)"]
    assert open_vectors(path, labels="Label").notes == ["columns that are not dimensions: id (by its name)"]
    assert open_vectors(path, exclude="id,Label").notes == []
    assert open_vectors(path).load().vectors.tolist() == [[1, 3], [2, 4.5]]
    assert open_vectors(path, columns=":").load().vectors.tolist() == [[1, 3, 7, 0], [2, 4.5, 8, 1]]
    assert open_vectors(path, columns="b,id").load().vectors.tolist() == [[3, 7], [4.5, 8]]
    assert open_vectors(path, columns=":", exclude=["b"]).n_dims == 3


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
@pytest.mark.parametrize("name", ["year", "number"])
def test_whole_numbers_among_fractions_are_asked_about(tmp_path, suffix: str, name: str) -> None:
    import pandas as pd

    values = {"year": 2000 + np.arange(60) % 7, "number": np.random.default_rng(1).permutation(60)}[name]
    X = np.random.default_rng(0).normal(size=(60, 2))
    frame = pd.DataFrame({"a": X[:, 0], name: values, "b": X[:, 1]})
    path = tmp_path / f"t{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        (frame.to_parquet if suffix == ".parquet" else frame.to_feather)(path)
    with pytest.raises(
        FileError, match=rf"whole numbers in column '{name}' .* `exclude='{name}'`, or `columns=':'`"
    ):
        open_vectors(path)
    np.testing.assert_array_equal(read(path, exclude=name).vectors, X)
    np.testing.assert_array_equal(read(path, columns=":").vectors[:, 1], values)
    np.testing.assert_array_equal(read(path, columns=["a", "b"]).vectors, X)
    assert read(path, labels=name).n_dims == 2


@pytest.mark.parametrize("where", [{"columns": "z"}, {"exclude": "z"}, {"columns": "text"}])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_that_cannot_be_chosen(tmp_path, suffix: str, where: dict[str, str]) -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [0.5, 1.5], "text": ["s", "t"]})
    path = tmp_path / f"t{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    with pytest.raises(InputError, match=next(iter(where))):
        open_vectors(path, **where)


def test_packed_bits_are_asked_about(tmp_path) -> None:
    bits = np.random.default_rng(0).integers(0, 2, (40, 64), dtype=np.uint8)
    packed = np.packbits(bits, axis=1)
    np.save(tmp_path / "bits.npy", packed)
    np.save(tmp_path / "signed.npy", (packed.astype(np.int16) - 128).astype(np.int8))
    torch.save(torch.from_numpy(packed), tmp_path / "bits.pt")
    for name in ("bits.npy", "bits.pt"):
        file = open_vectors(tmp_path / name)
        with pytest.raises(
            FileError, match=r"holds bytes \(uint8\) up to 25\d: packed bits, or whole numbers"
        ):
            file.load()
        with pytest.raises(FileError, match="packed bits"):
            next(iter(file.blocks()))
        assert read(tmp_path / name, unpack_bits=False).vectors.tolist() == packed.tolist()
    for name in ("bits.npy", "bits.pt", "signed.npy"):
        file = open_vectors(tmp_path / name, unpack_bits=True)
        assert file.n_dims == 64
        assert file.load().vectors.tolist() == bits.tolist()
        assert [block.n_dims for block in file.blocks(30)] == [64, 64]
    assert read(tmp_path / "signed.npy").n_dims == 8  # quantised numbers
    np.save(tmp_path / "float.npy", packed.astype(float))
    with raises(FileError, message="holds float64 numbers", wanted="bytes"):
        read(tmp_path / "float.npy", unpack_bits=True)


def test_a_lack_of_memory_is_named(tmp_path: Path) -> None:
    wanted = r"a\.npy cannot be read: it asks for more memory than there is"
    with pytest.raises(FileError, match=wanted), reading(tmp_path / "a.npy"):
        raise MemoryError
