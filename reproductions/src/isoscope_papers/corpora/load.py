"""`load_corpus`: a corpus by name, from a data folder, Hugging Face's hub, or this package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from isoscope.errors import FileError, InputError
from isoscope_papers.corpora.corpus import Corpus
from isoscope_papers.corpora.registry import REGISTRY, Declaration, declared
from isoscope_papers.corpora.rows import Found, data_folder, fetched, in_folder, not_found, read_rows

Source = Literal["folder", "hub", "embedded"]
_SOURCES = ("folder", "hub", "embedded")
_TABLES = Path(__file__).parent / "tables"


def load_corpus(
    name: str,
    *,
    data: str | os.PathLike[str] | None = None,
    split: str | None = None,
    download: bool = False,
    source: Source | None = None,
) -> Corpus:
    """Return a corpus of labelled texts.

    Looked for in this order: a data folder, Hugging Face's hub if `download`, a table inside this package.
    `pos` and `supersense` are always the table, which has the paper's size, unless `source` says otherwise.
    Where `data` is passed, no table takes the place of a file that is not in it. Texts are as the file has
    them, character by character; labels are strings.

    Args:
        name: one of `corpus_names()`.
        data: a folder with the files `registry.toml` names; by default the one in ISOSCOPE_DATA.
        split: which part, such as "train", "dev" or "test"; by default that of the papers, or what there is.
        download: fetch it from the hub where it is in no folder, through the `datasets` package.
        source: take it from here and nowhere else.

    Raises:
        InputError: there is no such corpus, or nowhere to take it from; the message says how to get it.
        FileError: a file is absent or broken; the message names the file and the line.

    >>> load_corpus("supersense", source="embedded")
    Corpus(supersense, 2,275 items of text, 2,275 distinct, 26 labels)
    """
    wanted = declared("corpora", name)
    if source not in (None, *_SOURCES):
        raise InputError(f"source is {source!r}; wanted one of {', '.join(_SOURCES)}")
    part = None if split is None else wanted.check_split(split)
    folder = data_folder(data)
    first = "embedded" if wanted.prefers_embedded and part is None else None
    places = [source or first] if source or first else _SOURCES
    if "folder" in places and (found := in_folder(wanted, folder, part)):
        return _corpus(wanted, found)
    if "hub" in places and download and wanted.hub:
        return _corpus(wanted, fetched(wanted, part), label=wanted.hub.label)
    table = wanted.embedded
    if table and part is None and "embedded" in places and (data is None or len(places) == 1):
        found = Found(read_rows(_TABLES / table.table, wanted.fields), "embedded", table.source)
        return _corpus(wanted, found, licence=table.licence)
    if source == "hub":
        why = "pass download=True to fetch it" if wanted.hub else "it is not on the hub"
        raise InputError(f"corpus {name!r} cannot be taken from the hub: {why}")
    if source == "embedded":
        raise InputError(f"corpus {name!r} does not come with isoscope-papers")
    raise not_found("corpus", wanted, folder, part)


def corpus_names() -> tuple[str, ...]:
    """Return the names `load_corpus` takes."""
    return tuple(REGISTRY["corpora"])


def _corpus(wanted: Declaration, found: Found, *, label: str | None = None, licence: str = "") -> Corpus:
    """Return the declared columns and labels of some records."""
    columns: list[list[str]] = [[] for _ in wanted.columns]
    labels: list[Any] = []
    for where, record in found.rows:
        code = record[label or wanted.label]
        if str(code) in wanted.unlabelled:
            continue
        for column, field in zip(columns, wanted.columns, strict=True):
            if not isinstance(text := record[field], str):
                raise FileError(f"{where}: {field} is {text!r:.40}; wanted a text")
            column.append(text)
        labels.append(_label(wanted, code, where))
    texts = tuple(map(tuple, columns))
    return Corpus(wanted.name, texts, tuple(labels), found.split, found.source, licence or wanted.licence)


def _label(wanted: Declaration, code: Any, where: str) -> str | frozenset[str]:
    if code is None or code == "" or isinstance(code, float | list | dict):
        raise FileError(f"{where}: the label is {code!r:.40}; wanted a name or a whole number")
    names = wanted.label_names
    codes = str(code).split(",") if wanted.is_set else [str(code)]
    for one in codes:
        if names and one not in names and one not in names.values():
            raise FileError(f"{where}: the label {one!r:.40} is not one of {', '.join(names.values())}")
    labels = [names.get(one, one) for one in codes]
    return frozenset(labels) if wanted.is_set else labels[0]
