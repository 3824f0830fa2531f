"""`load_corpus`: a corpus by name, from a data folder, Hugging Face's hub, or this package."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from isoscope.errors import FileError, InputError
from isoscope_papers.corpora.corpus import Corpus
from isoscope_papers.corpora.hub import hub_rows
from isoscope_papers.corpora.registry import CORPORA, Declaration
from isoscope_papers.corpora.rows import Record, read_rows

DATA_VARIABLE = "ISOSCOPE_DATA"
Source = Literal["folder", "hub", "embedded"]
_ON_HUB = {"dev": "validation", "dev matched": "validation_matched"}
_TABLES = Path(__file__).parent / "tables"


def load_corpus(
    name: str,
    *,
    data: str | os.PathLike[str] | None = None,
    split: str | None = None,
    download: bool = False,
    source: Source | None = None,
) -> Corpus:
    """A corpus of labelled texts.

    Looked for in this order: a data folder, Hugging Face's hub if `download`, a table inside this package.
    `pos` and `supersense` are always the table, which has the paper's size, unless `source` says otherwise.
    Where `data` is passed, no table takes the place of a file that is not in it. Texts are as the file has
    them, character by character; labels are strings.

    Args:
        name: one of `corpus_names()`.
        data: a folder with the files `registry.py` names; by default the one in ISOSCOPE_DATA.
        split: which part, such as "train", "dev" or "test"; by default that of the papers, or what there is.
        download: fetch it from the hub where it is in no folder, through the `datasets` package.
        source: take it from here and nowhere else.

    Raises:
        InputError: there is no such corpus, or nowhere to take it from; the message says how to get it.
        FileError: a file is absent or broken; the message names the file and the line.

    >>> load_corpus("supersense", source="embedded")
    Corpus(supersense, 2,275 items of text, 2,275 distinct, 26 labels)
    """
    declared = CORPORA.get(name)
    if declared is None:
        raise InputError(f"corpus {name!r} is not known; wanted one of {', '.join(CORPORA)}")
    if source is not None and source not in _READERS:
        raise InputError(f"source is {source!r}; wanted one of {', '.join(_READERS)}")
    if split is not None:
        declared = _only(name, declared, split)
    folder = data_folder(data)
    order = (source,) if source else _order(declared, data is not None, download)
    is_choice = source is not None or data is not None
    for place in order:
        corpus = _READERS[place](name, declared, folder, download, is_choice and place == order[-1])
        if corpus is not None:
            return corpus
    raise InputError(_not_found(name, declared, folder))


def _only(name: str, declared: Declaration, split: str) -> Declaration:
    """The declaration of one split: its file alone, its name on the hub, no table in its place."""
    files = tuple(file for file in declared.files if split in (file[0], file[0].split()[0]))
    if not files:
        known = ", ".join(known for known, _ in declared.files)
        raise InputError(f"split is {split!r}; wanted one of {known} of {name}")
    hub = declared.hub and replace(declared.hub, splits=(_ON_HUB.get(split, split),))
    return replace(declared, files=files, hub=hub, embedded=None, prefers_embedded=False)


def corpus_names() -> tuple[str, ...]:
    """The names `load_corpus` takes."""
    return tuple(CORPORA)


def _order(declared: Declaration, has_asked_for_folder: bool, download: bool) -> tuple[Source, ...]:
    if declared.prefers_embedded:
        return ("embedded",)
    if not has_asked_for_folder:
        return ("folder", "hub", "embedded")
    return ("folder", "hub") if download and declared.hub else ("folder",)


def data_folder(data: str | os.PathLike[str] | None) -> Path | None:
    """The folder asked for, else the one in ISOSCOPE_DATA, checked to be one; None where neither is set."""
    named = os.fspath(data) if data is not None else os.environ.get(DATA_VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        asked = "data" if data is not None else DATA_VARIABLE
        raise FileError(f"{asked} names {folder}, which is no folder; wanted the folder of the corpora")
    return folder


def _from_folder(
    name: str, declared: Declaration, folder: Path | None, _download: bool, must: bool
) -> Corpus | None:
    if folder is None:
        if must:
            raise InputError(f"there is no data folder for {name!r}; pass data=… or set {DATA_VARIABLE}")
        return None
    for split, file in declared.files:
        if (folder / file).exists():
            path = folder / file
            rows = read_rows(path, (*declared.columns, declared.label))
            return _corpus(name, declared, rows, split, path.name, where=f"{path}, line")
    if must:
        raise FileError(
            f"{folder} has no {declared.files[0][1]}; wanted the corpus {name!r}, one record a line "
            f"with the fields {', '.join((*declared.columns, declared.label))}{_or_download(declared)}"
        )
    return None


def _from_hub(
    name: str, declared: Declaration, _folder: Path | None, download: bool, must: bool
) -> Corpus | None:
    hub = declared.hub
    if hub is None or not download:
        if must:
            why = "it is not on the hub" if hub is None else "pass download=True to fetch it"
            raise InputError(f"corpus {name!r} cannot be taken from the hub: {why}")
        return None
    rows = enumerate(hub_rows(hub, (*declared.columns, hub.label)))
    label = f"Hugging Face's hub, {hub.path}" + (f", {hub.config}" if hub.config else "")
    return _corpus(
        name, declared, rows, " + ".join(hub.splits), label, where=f"{hub.path}, row", at=hub.label
    )


def _from_table(
    name: str, declared: Declaration, _folder: Path | None, _download: bool, must: bool
) -> Corpus | None:
    table = declared.embedded
    if table is None:
        if must:
            raise InputError(f"corpus {name!r} does not come with isoscope-papers{_or_download(declared)}")
        return None
    path = _TABLES / table.table
    rows = read_rows(path, (*declared.columns, declared.label))
    corpus = _corpus(name, declared, rows, "embedded", table.source, where=f"{path}, line")
    return Corpus(name, corpus.columns, corpus.labels, "embedded", table.source, table.licence)


_READERS = {"folder": _from_folder, "hub": _from_hub, "embedded": _from_table}


def _corpus(
    name: str,
    declared: Declaration,
    rows: Iterable[tuple[int, Record]],
    split: str,
    source: str,
    *,
    where: str,
    at: str | None = None,
) -> Corpus:
    """The declared columns and labels of some records."""
    columns: list[list[str]] = [[] for _ in declared.columns]
    labels: list[Any] = []
    for number, record in rows:
        code = record[at or declared.label]
        if str(code) in declared.unlabelled:
            continue
        for column, field in zip(columns, declared.columns, strict=True):
            if not isinstance(text := record[field], str):
                raise FileError(f"{where} {number}: {field} is {text!r:.40}; wanted a text")
            column.append(text)
        labels.append(_label(declared, code, f"{where} {number}"))
    return Corpus(name, tuple(map(tuple, columns)), tuple(labels), split, source, declared.licence)


def _label(declared: Declaration, code: Any, where: str) -> str | frozenset[str]:
    if code is None or code == "" or isinstance(code, float | list | dict):
        raise FileError(f"{where}: the label is {code!r:.40}; wanted a name or a whole number")
    if declared.is_set:
        return frozenset(_named(declared, member, where) for member in str(code).split(","))
    return _named(declared, str(code), where)


def _named(declared: Declaration, code: str, where: str) -> str:
    names = declared.label_names
    if not names or code in names.values():
        return code
    if code not in names:
        raise FileError(f"{where}: the label {code!r:.40} is not one of {', '.join(names.values())}")
    return names[code]


def _not_found(name: str, declared: Declaration, folder: Path | None) -> str:
    wanted = declared.files[0][1]
    looked = f"{folder} has no {wanted}" if folder else f"{DATA_VARIABLE} names no folder with {wanted}"
    return f"corpus {name!r} is not on this machine: {looked}{_or_download(declared)}"


def _or_download(declared: Declaration) -> str:
    return "; or pass download=True to fetch it from Hugging Face's hub" if declared.hub else ""
