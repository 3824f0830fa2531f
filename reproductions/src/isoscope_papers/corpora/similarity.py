"""`load_similarity_pairs`: pairs of sentences or words with how alike people found them, by name."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from isoscope.errors import FileError
from isoscope_papers.corpora.registry import REGISTRY, declared
from isoscope_papers.corpora.rows import find


@dataclass(frozen=True, eq=False)
class SimilarityPairs:
    """Pairs of texts, each with a score: the higher, the more alike.

    Attributes:
        name: what they are called here.
        columns: two columns of n texts.
        scores: n numbers, on the scale of whoever gave them.
        split, source, licence: which part this is, where it was read from, its terms.

    >>> pairs = SimilarityPairs("tiny", (("cat", "cat"), ("dog", "car")), (4.0, 0.5))
    >>> pairs.texts, pairs.places
    (('cat', 'dog', 'car'), ((0, 1), (0, 2)))
    """

    name: str
    columns: tuple[tuple[str, ...], tuple[str, ...]]
    scores: tuple[float, ...]
    split: str = ""
    source: str = ""
    licence: str = ""

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def texts(self) -> tuple[str, ...]:
        """The distinct texts, in the order they are met."""
        return tuple(dict.fromkeys(text for pair in zip(*self.columns, strict=True) for text in pair))

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The rows of each pair among `texts`."""
        at = {text: row for row, text in enumerate(self.texts)}
        return tuple((at[first], at[second]) for first, second in zip(*self.columns, strict=True))


def similarity_names() -> list[str]:
    """Return the names that `load_similarity_pairs` takes."""
    return list(REGISTRY["pairs"])


def load_similarity_pairs(
    name: str,
    *,
    data: str | os.PathLike[str] | None = None,
    split: str | None = None,
    download: bool = False,
) -> SimilarityPairs:
    """Return pairs of sentences (`stsb`, `sts12` … `sts16`, `sick`) or words (`men`, …) with scores.

    Args:
        name: one of `similarity_names()`.
        data: a folder with files such as `sts/sts12.jsonl.gz`; by default that in ISOSCOPE_DATA.
        split: "test", "dev" or "train" of stsb; the others have one.
        download: fetch what is in no folder from Hugging Face's hub, through the `datasets` package.

    Raises:
        InputError: there are no such pairs, or nowhere to take them from; the message says how to get them.
        FileError: a file is broken; the message names the file and the line.
    """
    wanted = declared("pairs", name)
    found = find("pairs", wanted, split or next(iter(wanted.files)), data, download=download)
    firsts, seconds, scores = [], [], []
    for where, record in found.rows:
        first, second, score = (record[field] for field in wanted.fields)
        for text in (first, second):
            if not isinstance(text, str) or not text.strip():
                raise FileError(f"{where}: {text!r:.40} is no text; wanted two texts and a score")
        firsts.append(first.strip())
        seconds.append(second.strip())
        scores.append(_score(score, where))
    columns = (tuple(firsts), tuple(seconds))
    return SimilarityPairs(name, columns, tuple(scores), found.split, found.source, wanted.licence)


def _score(value: object, where: str) -> float:
    try:
        score = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise FileError(f"{where}: the score is {value!r:.40}; wanted a finite number")
    return score
