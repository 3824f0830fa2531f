"""Many files are read as one: folders, patterns, order, labels, what is wrong with one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from file_writers import lists
from tests.raising import raises

import isoscope as iso
from isoscope.errors import FileError, InputError, LabelError, ShapeError
from isoscope.io import VectorFile, VectorShards, open_vectors
from isoscope.io.addresses import is_many
from isoscope.io.shards import natural
from isoscope.labels import Labels

CUTS = [(0, 2), (2, 7), (7, 8), (8, 11)]
LABELS = np.array(list("abcabcabcab"))


def write(folder: Path, X: np.ndarray, names: list[str], labels: Any = LABELS) -> None:
    folder.mkdir(exist_ok=True)
    for name, (start, stop) in zip(names, CUTS, strict=True):
        table = {"vector": lists(X[start:stop]), "topic": labels[start:stop], "w": np.arange(start, stop)}
        pq.write_table(pa.table(table), folder / name)


@pytest.fixture
def folder(tmp_path: Path, vectors: np.ndarray) -> Path:
    write(tmp_path / "s", vectors, [f"part-{number}.parquet" for number in (1, 2, 10, 20)])
    return tmp_path / "s"


def test_folder_pattern_and_address_are_the_same(folder: Path, vectors: np.ndarray) -> None:
    for path in (folder, str(folder), f"{folder}/*.parquet", f"{folder}/part-*", f"file://{folder}"):
        source = open_vectors(path, labels="topic")
        assert isinstance(source, VectorShards)
        assert (source.n_rows, source.n_dims, source.n_bytes) == (11, 4, 176)
        space = source.load()
        np.testing.assert_array_equal(space.vectors, vectors)
        assert [space.labels.names[code] for code in space.labels.codes] == LABELS.tolist()
    assert repr(source) == "VectorShards(s, 4 files, 11 × 4)"
    assert "4 files" in source.notes


def test_numbers_in_names_are_numbers(folder: Path) -> None:
    shards = open_vectors(folder).shards
    assert [shard.path.name for shard in shards] == [f"part-{number}.parquet" for number in (1, 2, 10, 20)]
    assert sorted(["b10a2", "b9", "b10a1"], key=natural) == ["b9", "b10a1", "b10a2"]
    assert sorted(["1²2", "1²10", "٣", "1²"], key=natural) == [
        "1²",
        "1²2",
        "1²10",
        "٣",
    ]  # ² is no digit to int


@pytest.mark.parametrize("n_rows", [1, 3, 4, 11, 100])
def test_blocks_go_across_files(folder: Path, vectors: np.ndarray, n_rows: int) -> None:
    source = open_vectors(folder, labels="topic", weights="w")
    blocks = list(source.blocks(n_rows))
    assert [len(block) for block in blocks[:-1]] == [n_rows] * (len(blocks) - 1)
    np.testing.assert_array_equal(torch.cat([block.vectors for block in blocks]), vectors)
    assert torch.cat([block.labels.codes for block in blocks]).tolist() == [0, 1, 2] * 3 + [0, 1]
    assert {block.labels.names for block in blocks} == {("a", "b", "c")}
    assert torch.cat([block.weights for block in blocks]).tolist() == list(range(11))
    with raises(argument="n_rows", got=0, wanted="at least 1"):
        source.blocks(0)


def test_labels_and_weights_of_all_rows_in_one_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n")
    (tmp_path / "w.txt").write_text("\n".join(map(str, range(11))) + "\n")
    source = open_vectors(folder, labels=str(tmp_path / "labels.txt"), weights=str(tmp_path / "w.txt"))
    assert [shard.labels.codes.tolist() for shard in source.shards] == [
        [0, 1],
        [2, 0, 1, 2, 0],
        [1],
        [2, 0, 1],
    ]
    assert source.weights.tolist() == list(range(11))
    assert source.load().labels.names == ("a", "b", "c")
    (folder / "part-2.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="cannot be assigned when files are left out"):
        open_vectors(folder, labels=str(tmp_path / "labels.txt"), skip_bad=True)
    with pytest.raises(FileError, match=r"part-2\.parquet"):
        open_vectors(folder, labels=str(tmp_path / "labels.txt"))


def test_labels_of_one_kind(tmp_path: Path, vectors: np.ndarray) -> None:
    names = [f"{number}.parquet" for number in range(4)]
    write(tmp_path / "s", vectors, names)
    table = pq.read_table(tmp_path / "s" / "3.parquet")
    numbers = table.set_column(1, "topic", pa.array([1, 2, 3]))
    pq.write_table(numbers, tmp_path / "s" / "3.parquet")
    with pytest.raises(LabelError, match=r"`labels` has int in .*3\.parquet and str in .*0\.parquet"):
        open_vectors(tmp_path / "s", labels="topic").load()


def test_files_of_two_kinds(folder: Path, vectors: np.ndarray) -> None:
    (folder / "_SUCCESS").write_text("")
    (folder / ".part-1.crc").write_text("x")
    (folder / "readme.md").write_text("x")
    assert "left out files of other kinds: readme.md" in open_vectors(folder).notes
    np.save(folder / "more.npy", vectors)
    with pytest.raises(FileError, match=r"files of 2 kinds \(\.npy, \.parquet\).*such as '.*/\*\.npy'"):
        open_vectors(folder)
    assert open_vectors(f"{folder}/*.npy").n_rows == 11


def test_nothing_found(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"\*\.npy matches no file of vectors"):
        open_vectors(f"{tmp_path}/*.npy")


def test_a_file_with_a_mark_in_its_name(tmp_path: Path, vectors: np.ndarray) -> None:
    np.save(tmp_path / "a[1].npy", vectors)
    assert not is_many(tmp_path / "a[1].npy")
    assert isinstance(open_vectors(tmp_path / "a[1].npy"), VectorFile)


def test_shards_of_other_dimensions(folder: Path, vectors: np.ndarray) -> None:
    pq.write_table(pa.table({"vector": lists(vectors[:, :3])}), folder / "part-3.parquet")
    with pytest.raises(ShapeError, match=r"part-3\.parquet has 3 dimensions where the first file has 4"):
        open_vectors(folder)
    source = open_vectors(folder, skip_bad=True)
    assert source.n_rows == 11
    assert any("part-3.parquet has 3 dimensions" in note for note in source.notes)


def test_a_first_shard_of_other_dimensions(folder: Path, vectors: np.ndarray) -> None:
    """One odd file does not make all others bad, wherever it comes."""
    pq.write_table(pa.table({"vector": lists(vectors[:, :3])}), folder / "part-0.parquet")
    source = open_vectors(folder, skip_bad=True)
    assert (source.n_rows, source.n_dims) == (11, 4)
    assert any("part-0.parquet has 3 dimensions where most files have 4" in note for note in source.notes)


def test_a_link_that_leads_nowhere(folder: Path) -> None:
    (folder / "part-4.parquet").symlink_to(folder / "gone.parquet")
    with pytest.raises(FileError, match=r"part-4\.parquet does not exist"):
        open_vectors(folder)
    source = open_vectors(folder, skip_bad=True)
    assert source.n_rows == 11
    assert any("part-4.parquet does not exist" in note for note in source.notes)


def test_a_truncated_shard(folder: Path) -> None:
    path = folder / "part-10.parquet"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FileError, match=r"part-10\.parquet cannot be read"):
        open_vectors(folder)
    assert open_vectors(folder, skip_bad=True).n_rows == 10


@pytest.mark.parametrize("suffix", [".npy", ".safetensors", ".zarr"])
def test_parts_of_one_file(tmp_path: Path, vectors: np.ndarray, suffix: str) -> None:
    from file_writers import write_zarr

    path = tmp_path / f"a{suffix}"
    write_zarr(path, vectors, 3) if suffix == ".zarr" else iso.save(vectors, path)
    (tmp_path / "l.txt").write_text("\n".join(LABELS) + "\n")
    source = open_vectors(path, labels=str(tmp_path / "l.txt"))
    parts = source.parts(3)
    assert [part.n_rows for part in parts] == [2, 3, 3, 3]
    np.testing.assert_array_equal(torch.cat([part.load().vectors for part in parts]), vectors)
    blocks = [block for part in parts for block in part.blocks(2)]
    np.testing.assert_array_equal(torch.cat([block.vectors for block in blocks]), vectors)
    found = [block.labels.names[code] for block in blocks for code in block.labels.codes]
    assert found == LABELS.tolist()
    assert parts[1].title == f"{path}, rows 2 on"
    assert source.parts(11) == [source]


def test_a_file_that_is_read_through_has_one_part(any_file: Path) -> None:
    source = open_vectors(any_file)
    assert sum(part.n_rows or 11 for part in source.parts(3)) == 11


def test_labels_travel_with_their_rows_alone(tmp_path: Path) -> None:
    """Not with those of all rows, for each of many parts."""
    from cloudpickle import dumps, loads

    X, n = np.ones((3000, 4), np.float32), 3000
    (tmp_path / "s").mkdir()
    for part in range(3):
        np.save(tmp_path / "s" / f"{part}.npy", X[:1000])
    np.save(tmp_path / "whole.npy", X)
    np.savetxt(tmp_path / "l.txt", np.arange(n) % 3, fmt="%d")
    np.savetxt(tmp_path / "w.txt", np.arange(n), fmt="%d")
    known = {"labels": str(tmp_path / "l.txt"), "weights": str(tmp_path / "w.txt")}
    for path in (tmp_path / "s", tmp_path / "whole.npy"):
        part = open_vectors(path, **known).parts(1000)[1]
        sent = dumps(part)
        assert len(sent) < 1000 * (8 + 8) + 2000
        block = next(iter(loads(sent).blocks()))
        assert block.weights.tolist() == list(range(1000, 2000))
        assert block.labels.codes.tolist() == [row % 3 for row in range(1000, 2000)]


def test_a_file_of_labels_is_read_once_for_all_parts(
    tmp_path: Path, vectors: np.ndarray, monkeypatch: Any
) -> None:
    from isoscope.io import label_files

    read, real = [], label_files.read_labels
    monkeypatch.setattr(label_files, "read_labels", lambda *a, **k: read.append(a) or real(*a, **k))
    np.save(tmp_path / "a.npy", vectors)
    (tmp_path / "l.txt").write_text("\n".join(LABELS) + "\n")
    for part in open_vectors(tmp_path / "a.npy", labels=str(tmp_path / "l.txt")).parts(3):
        assert all(block.labels is not None for block in part.blocks(2))
    assert len(read) == 1


def test_opened_files_travel(folder: Path, vectors: np.ndarray) -> None:
    """A file is sent to another process as its name, not as its rows."""
    from cloudpickle import dumps, loads

    source = open_vectors(folder, labels="topic")
    sent = dumps(source.shards[1])
    assert len(sent) < 2000
    again = loads(sent)
    assert again.title == source.shards[1].title
    np.testing.assert_array_equal(torch.cat([block.vectors for block in again.blocks(2)]), vectors[2:7])
    assert isinstance(again.labels, Labels)
    part = loads(dumps(open_vectors(folder / "part-2.parquet")))
    (folder / "part-2.parquet").unlink()
    with pytest.raises(FileError, match=r"part-2\.parquet does not exist"):
        next(part.blocks())  # found out when it is read, not while it travels


@pytest.mark.slow
def test_memory_is_bounded_by_the_block(tmp_path: Path) -> None:
    """Streaming a .npy of 200 MB never maps it whole."""
    X = np.lib.format.open_memmap(tmp_path / "a.npy", mode="w+", dtype=np.float16, shape=(1_000_000, 100))
    X[:] = 1
    X.flush()
    code = f"""
import isoscope as iso
def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))
source = iso.open_vectors({str(tmp_path / "a.npy")!r})
next(iter(source.blocks(20_000)))
before = status("VmRSS")
for block in source.blocks(20_000): pass
print(status("VmHWM") - before)
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc here")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 60


def test_settings_beside_vectors_are_left_out(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    (tmp_path / "config.json").write_text("{}")
    shards = open_vectors(tmp_path)
    assert shards.n_rows == 3
    assert "left out files of other kinds: config.json" in shards.notes
