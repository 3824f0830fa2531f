"""A sealed file is what was written, or it is refused in one line."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tests.raising import raises

from isoscope.errors import FileError
from isoscope.io.atomic import beside
from isoscope.io.sealed import (
    check_folder,
    digest,
    read_json,
    read_tensors,
    seal_folder,
    write_json,
    write_tensors,
)

TENSORS = {
    "a": torch.arange(6, dtype=torch.float64).reshape(2, 3),
    "b": torch.tensor(True),
    "half": torch.ones(3, dtype=torch.bfloat16),
    "none": torch.zeros(0, 4, dtype=torch.int64),
}
ABOUT = {"step": "3", "name": "é\n"}
CONTENT = {
    "steps": 3,
    "rate": 1e-3,
    "names": ["é", None],
    "nested": {"b": 1.5, "a": [True]},
    "gap": float("nan"),
}


def test_tensors_come_back(tmp_path: Path) -> None:
    path = write_tensors(tmp_path / "a.safetensors", TENSORS, ABOUT, of="run 1")
    tensors, about = read_tensors(path, of="run 1")
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    assert {name: about[name] for name in ABOUT} == ABOUT
    content = path.read_bytes()
    assert write_tensors(path, dict(reversed(TENSORS.items())), ABOUT, of="run 1").read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_json_comes_back(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", CONTENT, of="run 1", indent=2)
    assert json.dumps(read_json(path, of="run 1")) == json.dumps(CONTENT)


def same_tensors(path: Path) -> bool:
    tensors, about = read_tensors(path, of="x")
    same = all(
        torch.equal(tensors[name], TENSORS[name]) and tensors[name].dtype == TENSORS[name].dtype
        for name in TENSORS
    )
    return same and tensors.keys() == TENSORS.keys() and {name: about[name] for name in ABOUT} == ABOUT


def same_json(path: Path) -> bool:
    return json.dumps(read_json(path, of="x")) == json.dumps(CONTENT)


@pytest.mark.parametrize(
    ("name", "write", "is_same"),
    [
        ("a.safetensors", lambda path: write_tensors(path, TENSORS, ABOUT, of="x"), same_tensors),
        ("a.json", lambda path: write_json(path, CONTENT, of="x"), same_json),
    ],
)
def test_no_change_goes_unseen(
    tmp_path: Path, name: str, write: Callable[[Path], Path], is_same: Callable[[Path], bool]
) -> None:
    path = write(tmp_path / name)
    content = path.read_bytes()
    n_refused = 0
    changes = [
        *(
            content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
            for at in range(len(content))
            for bit in (0, 3, 5)
        ),
        *(content[:n] for n in range(0, len(content), 7)),
        content + b"\0",
        content + content,
    ]
    for changed in changes:
        path.write_bytes(changed)
        try:
            assert is_same(path)  # such as a space more between two entries
        except FileError as error:
            n_refused += 1
            if "\n" in str(error) or str(path) not in str(error):
                raise
    assert n_refused > 0.95 * len(changes)


def test_what_belongs_elsewhere_is_refused(tmp_path: Path) -> None:
    tensors = write_tensors(tmp_path / "a.safetensors", TENSORS, of="seed 1")
    content = write_json(tmp_path / "a.json", CONTENT, of="seed 1")
    for of in ("seed 2", ""):
        with pytest.raises(FileError, match="belongs to another run"):
            read_tensors(tensors, of=of)
    with pytest.raises(FileError, match="belongs to another run"):
        read_json(content, of="seed 2")


def test_what_has_no_checksum(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "a.safetensors", metadata=ABOUT)
    (tmp_path / "a.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(FileError, match="has no checksum"):
        read_tensors(tmp_path / "a.safetensors")
    with pytest.raises(FileError, match="has no checksum"):
        read_json(tmp_path / "a.json")
    assert read_tensors(tmp_path / "a.safetensors", sealed=False)[1] == ABOUT
    assert read_json(tmp_path / "a.json", sealed=False) == {"a": 1}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "5", "null", "{}", '{"checksum": {}}', "[" * 5000, "\0", "\udcff"]
)
def test_what_is_no_sealed_json(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(FileError, match=r"a\.json"):
        read_json(tmp_path / "a.json")


def test_names_types_and_shapes_count() -> None:
    a = torch.zeros(2, 3)
    others: list[dict[str, Any]] = [
        {"b": a}, {"a": a.T}, {"a": a.double()}, {"a": a.flatten()}, {"a": a, "b": a[:0]}, {"a": a + 1},
    ]  # fmt: skip
    assert len({digest(one, {}) for one in ({"a": a}, *others)}) == len(others) + 1
    assert digest({}, {"a": "bc"}) != digest({}, {"ab": "c"})


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": lambda folder: (folder / "b" / "two").write_bytes(b"\x02\x03"),
    "missing": lambda folder: (folder / "one").unlink(),
    "a folder": lambda folder: [(folder / "one").unlink(), (folder / "one").mkdir()],
    "no list": lambda folder: (folder / ".checksums.json").unlink(),
    "a shorter list": lambda folder: write_json(folder / ".checksums.json", {"files": {}}, of="x"),
    "of another": lambda folder: seal_folder(folder, of="y"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_folder_is_checked_file_by_file(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "folder"
    (folder / "b").mkdir(parents=True)
    (folder / "one").write_bytes(b"1")
    (folder / "b" / "two").write_bytes(b"\x02\x02")
    seal_folder(folder, of="x")
    check_folder(folder, of="x")
    check_folder(shutil.copytree(folder, tmp_path / "copy"), of="x")
    DAMAGES[damage](folder)
    with pytest.raises(FileError, match="folder"):
        check_folder(folder, of="x")


@pytest.mark.parametrize("name", ["../secret", "b/../../secret", "absolute", "link", "/dev/zero", "pipe"])
def test_a_folder_lists_only_files_of_its_own(tmp_path: Path, name: str) -> None:
    folder, secret = tmp_path / "folder", tmp_path / "secret"
    (folder / "b").mkdir(parents=True)
    secret.write_bytes(b"1")
    (folder / "link").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    listed = str(secret) if name == "absolute" else name
    checksum = hashlib.sha256(b"1").hexdigest()
    write_json(folder / ".checksums.json", {"files": {listed: checksum}})
    with time_limit(5), raises(FileError, message=r"checksums\.json lists .*", wanted=r""):
        check_folder(folder)


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError within a block that waits for a file without end."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_what_a_killed_process_was_writing_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    leftover = beside(tmp_path / "a.safetensors").name.replace(f"-{os.getpid()}-", f"-{ended.pid}-")
    (tmp_path / leftover).touch()
    write_tensors(tmp_path / "a.safetensors", TENSORS)
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]
