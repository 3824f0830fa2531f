from __future__ import annotations

from pathlib import Path

import pytest
from tests.raising import raises

from isoscope.errors import FileError
from isoscope.io.pair_files import read_scored_pairs


def test_rows_and_texts(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("i,j,score\n0,3,1.5\n2,1,4\n")
    found = read_scored_pairs(rows)
    assert found.are_rows
    assert (found.firsts, found.seconds, found.scores) == ([0, 2], [3, 1], [1.5, 4.0])
    texts = tmp_path / "texts.jsonl"
    texts.write_text(
        '{"id": 9, "sentence2": "a dog", "score": 2, "sentence1": "a cat"}\n'
        '{"id": 8, "sentence2": "7", "score": 0.5, "sentence1": "a dog"}\n'
    )
    found = read_scored_pairs(texts)
    assert not found.are_rows
    assert (found.firsts, found.seconds) == (["a cat", "a dog"], ["a dog", "7"])
    assert found.texts == ["a cat", "a dog", "7"]


def test_named_columns(tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("left\tright\thow\tmore\n0\t1\t2.5\t9\n1\t2\t3.5\t9\n")
    assert read_scored_pairs(f"{table}:right,left,how").firsts == [1, 2]
    with raises(FileError, wanted="two of items and one of scores", hint="FIRST,SECOND,SCORE"):
        read_scored_pairs(table)
    with pytest.raises(FileError, match="no column 'none'"):
        read_scored_pairs(f"{table}:right,left,none")


def test_broken(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("i,j,score\n0,1,2.5\n1,2,much\n")
    with pytest.raises(FileError, match="the score 'much' in row 1"):
        read_scored_pairs(table)


@pytest.mark.parametrize("item", ["null", '""', "NaN", '["a"]'])
def test_items_that_are_absent(tmp_path: Path, item: str) -> None:
    table = tmp_path / "pairs.jsonl"
    table.write_text(
        '{"sentence1": "a", "sentence2": "b", "score": 1}\n'
        f'{{"sentence1": "a", "sentence2": {item}, "score": 2}}\n'
    )
    with pytest.raises(FileError, match=r"has the item .* in"):
        read_scored_pairs(table)
