"""Structure from strangers: every bound, every type, one line naming file and field where one fails."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises

from isoscope.errors import FileError
from isoscope.io import read, structure
from isoscope.io.structure import (
    BoundedStream,
    Field,
    check_growth,
    check_held,
    declared_bytes,
    leaves,
    parse_json,
    read_json,
)

CONTENT = {"kind": "mean", "n": 3, "share": 0.5, "on": True, "layers": [{"size": 4}], "none": None}


@pytest.fixture
def root(tmp_path: Path) -> Field:
    path = tmp_path / "about.json"
    path.write_text(json.dumps(CONTENT))
    return read_json(path)


def test_fields_of_the_wanted_types(root: Field) -> None:
    assert root["kind"].choice(["mean", "cls"]) == "mean"
    assert root["kind"].text() == "mean"
    assert root["n"].whole(at_least=1, at_most=3) == 3
    assert (root["n"].number(), root["share"].number()) == (3.0, 0.5)
    assert root["on"].flag() is True
    assert [layer["size"].whole() for layer in root["layers"].entries()] == [4]
    assert set(root.mapping()) == set(CONTENT)
    assert root.get("absent") is None


@pytest.mark.parametrize(
    ("take", "message"),
    [
        (lambda root: root["absent"], "`absent` is missing"),
        (lambda root: root["n"].text(), "`n` must be text, got 3"),
        (lambda root: root["layers"].text(), "`layers` must be text, got a list of 1"),
        (lambda root: root["kind"].whole(), "`kind` must be a whole number, got 'mean'"),
        (lambda root: root["on"].whole(), "`on` must be a whole number, got true"),
        (lambda root: root["on"].number(), "`on` must be a number, got true"),
        (lambda root: root["share"].whole(), "`share` must be a whole number, got 0.5"),
        (lambda root: root["n"].whole(at_least=4), "`n` must be a whole number of at least 4, got 3"),
        (lambda root: root["n"].whole(at_most=2), "`n` must be a whole number of 0 to 2, got 3"),
        (
            lambda root: root["share"].number(at_least=1),
            "`share` must be a finite number of at least 1, got 0.5",
        ),
        (lambda root: root["none"].entries(), "`none` must be a list, got null"),
        (
            lambda root: root["layers"].entries(at_least=2),
            "must be a list of at least 2 entries, got a list of 1",
        ),
        (lambda root: root["layers"].mapping(), "`layers` must be an object, got a list of 1"),
        (lambda root: root["kind"]["deeper"], "`kind` must be an object, got 'mean'"),
        (lambda root: root["layers"].choice(["mean"]), "`layers` must be one of mean, got a list of 1"),
        (lambda root: root["n"].flag(), "`n` must be true or false, got 3"),
        (lambda root: root["layers"].entries()[0]["size"].text(), "`layers[0].size` must be text, got 4"),
    ],
)
def test_another_type_is_refused_in_a_line(root: Field, take: Callable[[Field], Any], message: str) -> None:
    with pytest.raises(FileError) as error:
        take(root)
    assert str(error.value).removesuffix(".").endswith(message)
    assert str(error.value).startswith(root.file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("number", ["1e400", "NaN", "-Infinity", "1" + "0" * 400])
def test_numbers_that_are_not_finite_are_refused(number: str) -> None:
    field = parse_json(f"[{number}]", "about.json").entries()[0]
    with pytest.raises(FileError, match="must be a finite number") as error:
        field.number()
    assert len(str(error.value)) < 200


def test_lone_surrogates_are_no_text() -> None:
    with pytest.raises(FileError, match="must be text in Unicode"):
        parse_json('["\\ud800"]', "about.json").entries()[0].text()


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b'"\xff"', b"[1,]", b"9" * 5000, b'{"a": "' + b'\\"' * 1000, "{}".encode("utf-16")],
)
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(FileError, match=r"about\.json is not JSON") as error:
        parse_json(raw, "about.json")
    assert "\n" not in str(error.value)


def test_depth_is_counted_outside_strings_only() -> None:
    deep = structure.MAX_JSON_DEPTH
    assert parse_json("[" * deep + "]" * deep, "a.json").value
    assert parse_json(json.dumps(["[{" * 1000, '\\"[[' * 1000]), "a.json").value
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        with raises(FileError, message="nested too deeply", wanted="at most 64 levels"):
            parse_json(opening * (deep + 1) + "0" + closing * (deep + 1), "a.json")
    with raises(FileError, message="nested too deeply", wanted="at most 64 levels"):
        parse_json("[" * 1_000_000, "a.json")


def test_any_json_is_judged_in_linear_time() -> None:
    start = time.process_time()
    for raw in (b'\\"' * 2**20, b'"' * 2**21, b'"\\' * 2**20, b"[" * 2**21):
        with pytest.raises(FileError):
            parse_json(raw, "a.json")
    assert time.process_time() - start < 20


def test_a_file_longer_than_the_bound_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    with path.open("wb") as file:
        file.truncate(2**40)  # takes no room on disk
    with raises(FileError, message="too much JSON", wanted="at most 1,000 bytes"):
        read_json(path, max_bytes=1000)
    with pytest.raises(FileError, match="cannot be read"):
        read_json(tmp_path)


def test_declared_sizes() -> None:
    assert declared_bytes((3, 4), 8, "a") == 96
    assert declared_bytes((2**62, 2**62), 8, "a") == 2**127
    with pytest.raises(FileError, match="negative length"):
        declared_bytes((3, -1), 8, "a")
    with raises(FileError, argument="a", message="items of 0 bytes"):
        declared_bytes((6_000_000_000,), 0, "a")
    check_held(96, 96, "a")
    with pytest.raises(FileError, match="a claims 97 bytes but holds 96"):
        check_held(97, 96, "a")


def test_growth_is_bounded_where_it_is_both_large_and_many_times() -> None:
    bound, growth = structure.MAX_UNPACKED_BYTES, structure.MAX_GROWTH
    check_growth(bound, 1, "a", "hint")
    check_growth(growth * bound, bound, "a", "hint")
    with raises(FileError, message="a unpacks to 67,108,865 bytes or more from 1", hint="hint"):
        check_growth(bound + 1, 1, "a", "hint")
    with pytest.raises(FileError, match="unpacks"):
        check_growth(growth * bound + 1, bound, "a", "hint")


def test_a_bounded_stream_ends_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "MAX_UNPACKED_BYTES", 1000)
    with io.BufferedReader(BoundedStream(io.BytesIO(bytes(1000)), 1, "a.gz", "gunzip it")) as stream:
        assert stream.read() == bytes(1000)
    with (
        io.BufferedReader(BoundedStream(io.BytesIO(bytes(10**6)), 1, "a.gz", "gunzip it")) as stream,
        raises(FileError, message=r"a\.gz unpacks to", hint="gunzip it"),
    ):
        stream.read()


def test_leaves_of_nested_mappings_in_order() -> None:
    nested = {"a": {"b": 1, "c": {"d": [2]}}, "e": 3, 4: {}}
    assert list(leaves(nested, "a.pt")) == [("a.b", 1), ("a.c.d", [2]), ("e", 3)]
    assert list(leaves(5, "a.pt")) == [("", 5)]


def test_mappings_that_share_their_entries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "MAX_ENTRIES", 1000)
    shared: Any = {"a": 1}
    for _ in range(60):
        shared = {"a": shared, "b": shared}
    with raises(FileError, argument="a.pt", message="too many nested entries", wanted="at most 1,000"):
        list(leaves(shared, "a.pt"))
    circle: dict[str, Any] = {}
    circle["a"] = circle
    with pytest.raises(FileError, match=r"nested entries|too long"):
        list(leaves(circle, "a.pt"))


@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_an_archive_with_one_name_twice(tmp_path: Path, suffix: str) -> None:
    """Readers differ in which of the two they take, so the numbers would depend on the reader."""
    path = tmp_path / f"a{suffix}"
    if suffix == ".npz":
        np.savez(path, a=np.ones((4, 3)))
        again = "a.npy"
    else:
        torch.save({"a": torch.ones(4, 3)}, path)
        again = "a/data/0"
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(again, b"other bytes")
    with pytest.raises(FileError, match=f"holds '{again}' 2 times"):
        read(path)
