"""Texts without labels: from a folder, from a hub of our own making, or not at all."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isoscope.errors import FileError, InputError
from isoscope_papers.corpora import load_similarity_pairs, load_texts, rows

DATA = os.environ.get("ISOSCOPE_DATA")


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOSCOPE_DATA", raising=False)


def write(folder: Path, name: str, lines: list[str]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    return path


def test_wikitext_is_its_lines_that_are_not_blank(tmp_path: Path) -> None:
    write(tmp_path, "wikitext2/wikitext2_test.txt.gz", [" ", " = Title = ", " ", " A line , of <unk> . "])
    texts = load_texts("wikitext2", data=tmp_path)
    assert list(texts) == ["= Title =", "A line , of <unk> ."]
    assert (len(texts), texts.split, texts.source) == (2, "test", "wikitext2_test.txt.gz")


def test_splits_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "wikitext2/wikitext2_valid.txt.gz", ["valid"])
    monkeypatch.setenv("ISOSCOPE_DATA", str(tmp_path))
    assert list(load_texts("wikitext2", split="valid")) == ["valid"]
    with pytest.raises(FileError, match=r"has no wikitext2/wikitext2_test\.txt\.gz"):
        load_texts("wikitext2")


def test_pairs_have_two_columns(tmp_path: Path) -> None:
    records = [
        {"sentence1": "a cat", "sentence2": "one cat", "score": 5.0},
        {"sentence1": "b", "sentence2": "c", "score": 0.5},
    ]
    write(tmp_path, "sts/stsb_en_test.jsonl.gz", [json.dumps(row) for row in records])
    texts = load_texts("stsb", data=tmp_path)
    assert list(texts) == ["a cat", "b"]
    assert texts.columns == (("a cat", "b"), ("one cat", "c"))
    scored = load_similarity_pairs("stsb", data=tmp_path)  # one reader serves both
    assert (texts.columns, texts.source, texts.licence) == (scored.columns, scored.source, scored.licence)


def test_what_is_no_text_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "sts/stsb_en_dev.jsonl.gz", ['{"sentence1": "a", "sentence2": 3, "score": 1}'])
    with pytest.raises(FileError, match=f"{path.name}, line 1: 3 is no text"):
        load_texts("stsb", data=tmp_path, split="dev")


def test_unknown_names_and_absent_folders() -> None:
    with pytest.raises(InputError, match="texts 'ptb' are not known; wanted one of stsb, wikitext2"):
        load_texts("ptb")
    with pytest.raises(InputError, match="split is 'dev'; wanted one of test, valid, train"):
        load_texts("wikitext2", split="dev")
    with pytest.raises(InputError, match="split is 'valid'; wanted one of test, dev, train of stsb"):
        load_texts("stsb", split="valid")
    with pytest.raises(InputError, match=r"ISOSCOPE_DATA names no folder with wikitext2/.*download=True"):
        load_texts("wikitext2")


def test_from_the_hub_only_when_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def fetch(hub: Any, splits: tuple[str, ...], fields: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        asked.append((hub.path, hub.config, splits, fields))
        yield from (("row 0", {"text": ""}), ("row 1", {"text": " from the hub "}))

    monkeypatch.setattr(rows, "hub_rows", fetch)
    with pytest.raises(FileError):
        load_texts("wikitext2", data=tmp_path)
    assert not asked
    texts = load_texts("wikitext2", data=tmp_path, split="valid", download=True)
    assert list(texts) == ["from the hub"]
    assert asked == [("Salesforce/wikitext", "wikitext-2-v1", ("validation",), ("text",))]


@pytest.mark.skipif(not DATA, reason="needs the corpora: set ISOSCOPE_DATA to their folder")
def test_the_real_ones() -> None:
    assert len(load_texts("stsb", data=DATA)) == 1379
    assert sum(len(text.split()) for text in load_texts("wikitext2", data=DATA)) == 241_211
