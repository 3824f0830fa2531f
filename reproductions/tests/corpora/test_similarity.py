from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import isoscope as iso
from isoscope_papers.corpora import SimilarityPairs, load_similarity_pairs, rows, similarity_names
from isoscope_papers.corpora.registry import Hub


def written(folder: Path, records: list[dict]) -> Path:
    path = folder / "sts" / "sts12.jsonl.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in records).encode()))
    return folder


def test_pairs_of_a_folder(tmp_path: Path) -> None:
    records = [
        {"sentence1": "A cat. ", "sentence2": "A dog.", "score": 2.5},
        {"sentence1": "A dog.", "sentence2": "A car.", "score": "0"},
    ]
    pairs = load_similarity_pairs("sts12", data=written(tmp_path, records))
    assert pairs.columns == (("A cat.", "A dog."), ("A dog.", "A car."))
    assert pairs.scores == (2.5, 0.0)
    assert pairs.texts == ("A cat.", "A dog.", "A car.")
    assert pairs.places == ((0, 1), (1, 2))
    assert (len(pairs), pairs.split, pairs.source) == (2, "test", "sts12.jsonl.gz")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"sentence1": "A", "sentence2": "", "score": 1}, "is no text"),
        ({"sentence1": "A", "sentence2": "B", "score": None}, "the score is None"),
        ({"sentence1": "A", "sentence2": "B", "score": "nan"}, "finite"),
        ({"sentence1": "A", "sentence2": "B"}, "has no 'score'"),
    ],
)
def test_broken_records(tmp_path: Path, record: dict, said: str) -> None:
    with pytest.raises(iso.FileError, match=said):
        load_similarity_pairs("sts12", data=written(tmp_path, [record]))


def test_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(iso.InputError, match=r"has no sts/sts13.jsonl.gz, .*; or pass download=True"):
        load_similarity_pairs("sts13", data=tmp_path)
    monkeypatch.delenv("ISOSCOPE_DATA", raising=False)
    with pytest.raises(iso.InputError, match="names no folder"):
        load_similarity_pairs("men")
    with pytest.raises(iso.InputError, match="wanted one of stsb"):
        load_similarity_pairs("sts17")


def test_splits_and_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetch(
        hub: Hub, splits: tuple[str, ...], fields: tuple[str, ...]
    ) -> Iterator[tuple[str, dict[str, object]]]:
        asked.append((hub.path, splits, fields))
        yield "row 0", {"sentence1": "a", "sentence2": "b", "score": 4}

    monkeypatch.setattr(rows, "hub_rows", fetch)
    pairs = load_similarity_pairs("stsb", data=tmp_path, split="dev", download=True)
    assert (pairs.split, pairs.scores) == ("dev", (4.0,))
    assert asked == [("mteb/stsbenchmark-sts", ("validation",), ("sentence1", "sentence2", "score"))]
    with pytest.raises(iso.InputError, match="not on this machine"):
        load_similarity_pairs("sick", data=tmp_path, download=True)  # is on no hub
    with pytest.raises(iso.InputError, match="split is 'dev'; wanted one of test of sts12"):
        load_similarity_pairs("sts12", data=tmp_path, split="dev")


@pytest.mark.skipif(not os.environ.get("ISOSCOPE_DATA"), reason="needs ISOSCOPE_DATA, the folder of corpora")
def test_published_sizes() -> None:
    sizes = {"stsb": 1379, "sts12": 3108, "sts16": 1186, "men": 3000, "simlex999": 999, "rare_words": 2034}
    assert {name: len(load_similarity_pairs(name)) for name in sizes} == sizes
    assert all(isinstance(load_similarity_pairs(name), SimilarityPairs) for name in similarity_names())
