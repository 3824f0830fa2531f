"""`load_similarity_pairs`: pairs of sentences or words with how alike people found them, by name."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from isoscope.errors import FileError, InputError
from isoscope_papers.corpora.hub import hub_rows
from isoscope_papers.corpora.load import DATA_VARIABLE, data_folder
from isoscope_papers.corpora.registry import Hub
from isoscope_papers.corpora.rows import Record, read_rows


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


@dataclass(frozen=True)
class _Declaration:
    """files: by split, in a data folder; fields: first, second, score; hub: its path and names of splits."""

    files: Mapping[str, str]
    licence: str
    fields: tuple[str, str, str] = ("sentence1", "sentence2", "score")
    hub: str | None = None
    hub_splits: Mapping[str, str] = field(default_factory=dict)


_WORDS = ("word1", "word2", "score")
_PAIRS: dict[str, _Declaration] = {
    "stsb": _Declaration(
        {split: f"sts/stsb_en_{split}.jsonl.gz" for split in ("test", "dev", "train")},
        "CC BY-SA 4.0 and the sources' own terms (Cer et al. 2017)",
        hub="mteb/stsbenchmark-sts",
        hub_splits={"dev": "validation"},
    ),
    **{
        f"sts{year}": _Declaration(
            {"test": f"sts/sts{year}.jsonl.gz"},
            f"the sources' own terms (Agirre et al. 20{year})",
            hub=f"mteb/sts{year}-sts",
        )
        for year in range(12, 17)
    },
    "sick": _Declaration(
        {"test": "sts/sick_test.jsonl.gz"},
        "CC BY-NC-SA 3.0 (Marelli et al. 2014)",
        fields=("sentence1", "sentence2", "relatedness"),
    ),
    **{
        name: _Declaration({"all": f"wordsim/{file}.tsv.gz"}, licence, _WORDS)
        for name, file, licence in (
            ("men", "men", "CC BY 2.0 (Bruni et al. 2014)"),
            ("simlex999", "simlex999", "not stated (Hill et al. 2015)"),
            ("wordsim353", "wordsim353", "CC BY 4.0 (Finkelstein et al. 2002)"),
            ("mturk771", "mturk771", "not stated (Halawi et al. 2012)"),
            ("rare_words", "rw", "not stated (Luong et al. 2013)"),
        )
    },
}


def similarity_names() -> list[str]:
    """The names that `load_similarity_pairs` takes."""
    return list(_PAIRS)


def load_similarity_pairs(
    name: str,
    *,
    data: str | os.PathLike[str] | None = None,
    split: str | None = None,
    download: bool = False,
) -> SimilarityPairs:
    """Pairs of sentences (`stsb`, `sts12` … `sts16`, `sick`) or words (`men`, `simlex999`, …) with scores.

    Args:
        name: one of `similarity_names()`.
        data: a folder with files such as `sts/sts12.jsonl.gz`; by default that in ISOSCOPE_DATA.
        split: "test", "dev" or "train" of stsb; the others have one.
        download: fetch what is in no folder from Hugging Face's hub, through the `datasets` package.

    Raises:
        InputError: there are no such pairs, or nowhere to take them from; the message says how to get them.
        FileError: a file is broken; the message names the file and the line.
    """
    declared = _PAIRS.get(name)
    if declared is None:
        raise InputError(f"pairs {name!r} are not known; wanted one of {', '.join(_PAIRS)}")
    split = next(iter(declared.files)) if split is None else split
    if split not in declared.files:
        raise InputError(f"split is {split!r}; wanted one of {', '.join(declared.files)} of {name}")
    folder, file = data_folder(data), declared.files[split]
    if folder is not None and (path := folder / file).exists():
        columns, scores = _read(read_rows(path, declared.fields), declared.fields, f"{path}, line")
        return SimilarityPairs(name, columns, scores, split, path.name, declared.licence)
    if download and declared.hub is not None:
        hub = Hub(declared.hub, (declared.hub_splits.get(split, split),))
        columns, scores = _read(
            enumerate(hub_rows(hub, declared.fields)), declared.fields, f"{declared.hub}, row"
        )
        source = f"Hugging Face's hub, {declared.hub}"
        return SimilarityPairs(name, columns, scores, split, source, declared.licence)
    looked = f"{folder} has no {file}" if folder else f"{DATA_VARIABLE} names no folder"
    fetch = "; or pass download=True to fetch them" if declared.hub else ""
    raise InputError(f"pairs {name!r} are not on this machine: {looked}; wanted {file}{fetch}")


def _read(
    rows: Iterable[tuple[int, Record]], fields: tuple[str, str, str], where: str
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], tuple[float, ...]]:
    """Two columns of texts, and the scores."""
    firsts, seconds, scores = [], [], []
    for number, record in rows:
        first, second, score = (record[name] for name in fields)
        for text in (first, second):
            if not isinstance(text, str) or not text.strip():
                raise FileError(f"{where} {number}: {text!r:.40} is no text; wanted two texts and a score")
        firsts.append(first.strip())
        seconds.append(second.strip())
        scores.append(_score(score, f"{where} {number}"))
    return (tuple(firsts), tuple(seconds)), tuple(scores)


def _score(value: object, where: str) -> float:
    try:
        score = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise FileError(f"{where}: the score is {value!r:.40}; wanted a finite number")
    return score
