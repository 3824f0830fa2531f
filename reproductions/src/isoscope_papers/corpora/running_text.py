"""`load_texts`: texts without labels, to be read by language models: from a data folder or the hub."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from isoscope.errors import FileError, InputError
from isoscope_papers.corpora.hub import hub_rows
from isoscope_papers.corpora.load import DATA_VARIABLE, data_folder
from isoscope_papers.corpora.registry import Hub
from isoscope_papers.corpora.rows import Record, read_rows
from isoscope_papers.corpora.similarity import load_similarity_pairs


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts, or pairs of texts, in their order; iterating goes over the first column.

    Attributes:
        name: what they are called here.
        columns: one or two columns of n texts.
        split: which part of the published corpus this is.
        source: where they were read from, in words; of a file, its name without the folder.
        licence: what is known of their terms.

    >>> pairs = Texts("tiny", (("a cat", "a dog"), ("one cat", "one dog")))
    >>> len(pairs), list(pairs), pairs.columns[1][0]
    (2, ['a cat', 'a dog'], 'one cat')
    """

    name: str
    columns: tuple[tuple[str, ...], ...]
    split: str = ""
    source: str = ""
    licence: str = ""

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns[0])


@dataclass(frozen=True)
class _Declaration:
    """fields: what holds the texts; splits: the file of each; hub: the dataset; hub_splits: its names."""

    fields: tuple[str, ...]
    splits: Mapping[str, str]
    hub: Hub
    hub_splits: Mapping[str, str]
    licence: str


_TEXTS = {
    "wikitext2": _Declaration(
        fields=("text",),
        splits={split: f"wikitext2/wikitext2_{split}.txt.gz" for split in ("test", "valid", "train")},
        hub=Hub("Salesforce/wikitext", (), config="wikitext-2-v1"),
        hub_splits={"test": "test", "valid": "validation", "train": "train"},
        licence="CC BY-SA 3.0, Wikipedia (Merity et al. 2016)",
    ),
}
_SCORED = ("stsb",)  # pairs that have scores too, as `load_similarity_pairs` reads them


def text_names() -> list[str]:
    """The names that `load_texts` takes."""
    return sorted((*_TEXTS, *_SCORED))


def load_texts(
    name: str,
    *,
    data: str | os.PathLike[str] | None = None,
    split: str = "test",
    download: bool = False,
) -> Texts:
    """Texts without labels: `wikitext2`, a paragraph or heading each; `stsb`, pairs of sentences.

    Looked for in a data folder, then on Hugging Face's hub if `download`. WikiText-2 is the tokenised one:
    rare words read `<unk>`, and blank lines are left out.

    Args:
        name: "wikitext2" or "stsb".
        data: a folder with files such as `wikitext2/wikitext2_test.txt.gz`; by default that in ISOSCOPE_DATA.
        split: "test", "train", or "valid" of wikitext2 and "dev" of stsb.
        download: fetch them where they are in no folder, through the `datasets` package.

    Raises:
        InputError: there are no such texts, or nowhere to take them from; the message says how to get them.
        FileError: a file is absent or broken; the message names the file and the line.
    """
    if name in _SCORED:
        pairs = load_similarity_pairs(name, data=data, split=split, download=download)
        return Texts(name, pairs.columns, pairs.split, pairs.source, pairs.licence)
    declared = _TEXTS.get(name)
    if declared is None:
        raise InputError(f"texts {name!r} are not known; wanted one of {', '.join(text_names())}")
    if split not in declared.splits:
        raise InputError(f"split is {split!r}; wanted one of {', '.join(declared.splits)} of {name}")
    folder, file = data_folder(data), declared.splits[split]
    if folder is not None and (folder / file).exists():
        path = folder / file
        columns = _columns(read_rows(path, declared.fields), declared.fields, f"{path}, line")
        return Texts(name, columns, split, path.name, declared.licence)
    if not download:
        raise _absent(name, folder, file)
    hub = Hub(declared.hub.path, (declared.hub_splits[split],), config=declared.hub.config)
    rows = enumerate(hub_rows(hub, declared.fields))
    columns = _columns(rows, declared.fields, f"{hub.path}, row")
    return Texts(name, columns, split, f"Hugging Face's hub, {hub.path}", declared.licence)


def _columns(
    rows: Iterable[tuple[int, Record]], fields: tuple[str, ...], where: str
) -> tuple[tuple[str, ...], ...]:
    columns: list[list[str]] = [[] for _ in fields]
    for number, record in rows:
        texts = [record[field] for field in fields]
        for field, text in zip(fields, texts, strict=True):
            if not isinstance(text, str):
                raise FileError(f"{where} {number}: {field} is {text!r:.40}; wanted a text")
        if not any(text.strip() for text in texts):
            continue  # the hub keeps WikiText's blank lines
        for column, text in zip(columns, texts, strict=True):
            column.append(text.strip())
    return tuple(map(tuple, columns))


def _absent(name: str, folder: Path | None, file: str) -> InputError:
    download = "pass download=True to fetch them from Hugging Face's hub"
    if folder is None:
        return InputError(
            f"texts {name!r} are not on this machine: pass data=… or set {DATA_VARIABLE} to a folder with "
            f"{file}; or {download}"
        )
    return FileError(f"{folder} has no {file}; wanted the texts {name!r}; or {download}")
