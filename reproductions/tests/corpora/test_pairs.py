from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from isoscope.errors import FileError, InputError
from isoscope_papers.corpora import load_pairs, pair_names

DATA = os.environ.get("ISOSCOPE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="needs the corpora: set ISOSCOPE_DATA to their folder")
FILES = ("snli/snli_dev", "snli/snli_test", "glue/mnli_dev_matched")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        rows = [
            {"premise": f" {name} ", "hypothesis": "follows", "label": "entailment"},
            {"premise": "same", "hypothesis": "everywhere", "label": "entailment"},
            {"premise": name, "hypothesis": "does not", "label": "neutral"},
            {"premise": name, "hypothesis": " ", "label": "entailment"},
        ]
        path = tmp_path / f"{name}.jsonl.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return tmp_path


def test_entailment_of_several_corpora_each_pair_once(folder: Path) -> None:
    found = load_pairs("nli", data=folder)
    assert list(zip(*found.columns, strict=True)) == [
        ("snli/snli_dev", "follows"),
        ("same", "everywhere"),
        ("snli/snli_test", "follows"),
        ("glue/mnli_dev_matched", "follows"),
    ]
    assert found.source == "snli_dev.jsonl.gz, snli_test.jsonl.gz, mnli_dev_matched.jsonl.gz"
    assert found.split == "snli dev + snli test + mnli dev matched"
    assert "CC BY-SA" in found.licence
    assert [len(load_pairs(name, data=folder)) for name in ("snli", "mnli")] == [3, 2]


def test_absent_and_unknown(tmp_path: Path) -> None:
    assert pair_names() == ["mnli", "nli", "snli"]
    with pytest.raises(InputError, match="pairs 'x' are not known; wanted one of mnli, nli, snli"):
        load_pairs("x", data=tmp_path)
    with pytest.raises(FileError, match="has no snli/snli_dev"):
        load_pairs("nli", data=tmp_path)


@needs_data
def test_the_data_folder_has_about_ten_thousand() -> None:
    assert len(load_pairs("nli", data=DATA)) == 10_174
