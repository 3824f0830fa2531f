"""Load corpora by name, from a data folder, Hugging Face's hub or this package."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Literal

from isoscope.errors import FileError, InputError, Setting
from isoscope_papers.corpora import rows
from isoscope_papers.corpora.corpus import Corpus
from isoscope_papers.corpora.registry import REGISTRY, Declaration, check_name, declared

Source = Literal["folder", "hub", "embedded"]
Data = str | os.PathLike[str] | None
_SOURCES = ("folder", "hub", "embedded")
_TABLES = Path(__file__).parent / "tables"
# corpora and their splits, of which the items that follow from each other are taken
_ENTAILED: dict[str, tuple[tuple[str, str], ...]] = {
    "mnli": (("mnli", "dev matched"),),
    "nli": (("snli", "dev"), ("snli", "test"), ("mnli", "dev matched")),
    "snli": (("snli", "dev"), ("snli", "test")),
}
# the split to score on; of the others a share is held out
_TESTS = {"banking77": "test", "cola": "dev", "mrpc": "dev", "rte": "dev", "sst2": "dev", "wnli": "dev"}


def load_corpus(
    name: str,
    *,
    data: Data = None,
    split: str | None = None,
    download: bool = False,
    source: Source | None = None,
) -> Corpus:
    """Return a corpus: labelled texts; pairs of sentences or words with scores; texts without labels.

    The corpus is searched in a data folder, then on Hugging Face's hub if `download`, then in this package.
    `pos` and `supersense` are always read from this package, whose tables have the size of the paper's,
    unless `source` is given. Where `data` is given, the tables of this package do not replace a missing
    file. Labelled texts are returned exactly as in the file; others are stripped of whitespace.

    Args:
        name: one of `corpus_names()`, scored pairs (`stsb`, `sts12`, `men`, …), `wikitext2`.
        data: a folder with the files named in `registry.toml`; by default that of ISOSCOPE_DATA.
        split: the part, such as "train", "dev" or "test"; by default that of the papers, or, for labelled
            texts, any that exists.
        download: download the corpus with the `datasets` package if it is in no folder.
        source: use only this source.

    Raises:
        InputError: the corpus is unknown, or was not found; the message says how to get it.
        FileError: a file is missing or damaged; the message names the file and the line.

    >>> load_corpus("supersense", source="embedded")
    Corpus(supersense, 2,275 items of text, 2,275 distinct, 26 labels)
    """
    wanted = declared(name)
    if source not in (None, *_SOURCES):
        raise InputError(argument="source", got=source, wanted=f"one of {', '.join(_SOURCES)}")
    part = wanted.part(split)
    folder = rows.data_folder(data)
    first = "embedded" if wanted.prefers_embedded and part is None else None
    places = [source or first] if source or first else _SOURCES
    for one, file in wanted.files.items() if folder and "folder" in places else ():
        if part in (None, one) and (path := folder / file).exists():  # type: ignore[operator]
            return _corpus(wanted, rows.read_rows(path, wanted.fields), one, path.name)
    if "hub" in places and download and (hub := wanted.hub):
        splits, label = wanted.on_hub(part), hub.label or wanted.label
        found = rows.hub_rows(hub, splits, (*wanted.columns, label) if label else wanted.columns)
        words = ", ".join(word for word in ("Hugging Face's hub", hub.path, hub.config) if word)
        return _corpus(wanted, found, part or " + ".join(splits), words, label=label)
    table = wanted.embedded
    if table and part is None and "embedded" in places and (data is None or len(places) == 1):
        found = rows.read_rows(_TABLES / table.table, wanted.fields)
        return _corpus(wanted, found, "embedded", table.source, licence=table.licence)
    if source == "hub":
        hint = Setting("download", True, to="fetch it") if wanted.hub else "it is not on the hub"
        raise InputError(f"corpus {name!r} cannot be taken from the hub", hint=hint)
    if source == "embedded":
        raise InputError(f"corpus {name!r} does not come with isoscope-papers")
    file = wanted.files[part or next(iter(wanted.files))]
    looked = f"{folder} has no {file}" if folder else f"{rows.DATA_VARIABLE} names no folder with {file}"
    fetch = [Setting("download", True, to="fetch it from Hugging Face's hub")] if wanted.hub else []
    fields = f", one record a line with the fields {', '.join(wanted.fields)}" if folder else ""
    kind = FileError if folder else InputError
    raise kind(f"corpus {name!r} is not on this machine: {looked}{fields}", hint=fetch)


def _corpus(
    wanted: Declaration, found: rows.Rows, split: str, source: str, *, label: str = "", licence: str = ""
) -> Corpus:
    """Return the declared columns and labels of some records."""
    items: list[tuple[str, ...]] = []
    labels: list[Any] = []
    for where, record in found:
        texts = tuple(_text(wanted, record[field], field, where) for field in wanted.columns)
        if not wanted.label:
            items += [texts] if all(texts) else []  # WikiText's blank lines
        elif str(code := record[label or wanted.label]) not in wanted.unlabelled:
            items.append(texts)
            labels.append(_score(code, where) if wanted.is_scored else _label(wanted, code, where))
    columns = tuple(zip(*items, strict=True)) or ((),) * len(wanted.columns)
    return Corpus(wanted.name, columns, tuple(labels), split, source, licence or wanted.licence)


def _text(wanted: Declaration, text: Any, field: str, where: str) -> str:
    if not isinstance(text, str) or (wanted.is_scored and not text.strip()):
        raise FileError(f"{where}: {field} is {text!r:.40}", wanted="a text")
    return text.strip() if wanted.is_scored or not wanted.label else text


def _score(value: Any, where: str) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise FileError(f"{where}: the score is {value!r:.40}", wanted="a finite number")
    return score


def _label(wanted: Declaration, code: Any, where: str) -> str | frozenset[str]:
    if code is None or code == "" or isinstance(code, float | list | dict):
        raise FileError(f"{where}: the label is {code!r:.40}", wanted="a name or a whole number")
    names = wanted.label_names
    codes = str(code).split(",") if wanted.is_set else [str(code)]
    for one in codes:
        if names and one not in names and one not in names.values():
            raise FileError(f"{where}: the label {one!r:.40} is not one of {', '.join(names.values())}")
    labels = [names.get(one, one) for one in codes]
    return frozenset(labels) if wanted.is_set else labels[0]


def corpus_names() -> tuple[str, ...]:
    """Return the names of the labelled texts."""
    return tuple(name for name, one in REGISTRY.items() if one.kind == "corpora")


def text_names() -> list[str]:
    """Return the names that `load_texts` takes."""
    return ["stsb", *(name for name, one in REGISTRY.items() if not one.label)]


def load_texts(name: str, *, data: Data = None, split: str = "test", download: bool = False) -> Corpus:
    """Return unlabelled texts: the paragraphs and headings of `wikitext2`, or the sentences of `stsb`.

    WikiText-2 is the tokenised version, in which rare words are `<unk>`. Blank lines are dropped.
    """
    check_name("texts", name, text_names())
    return load_corpus(name, data=data, split=split, download=download)


def pair_names() -> list[str]:
    """Return the names that `load_pairs` takes."""
    return list(_ENTAILED)


def load_pairs(name: str = "nli", *, data: Data = None, download: bool = False) -> Corpus:
    """Return the pairs of sentences in SNLI and MNLI that are labelled "entailment".

    Premises are the first column and hypotheses the second. Duplicate pairs are dropped.

    Args:
        name: "nli" (both, about 10,000 pairs), "snli" (dev and test) or "mnli" (dev, matched).
        data, download: as for `load_corpus`.
    """
    check_name("pairs", name, pair_names())
    parts = _ENTAILED[name]
    corpora = [load_corpus(corpus, data=data, split=split, download=download) for corpus, split in parts]
    pairs = {
        tuple(text.strip() for text in texts): None
        for corpus in corpora
        for texts, label in corpus.items
        if label == "entailment" and all(text.strip() for text in texts)
    }
    return Corpus(
        name,
        tuple(zip(*pairs, strict=True)) or ((), ()),
        split=" + ".join(f"{corpus} {split}" for corpus, split in parts),
        source=", ".join(dict.fromkeys(corpus.source for corpus in corpora)),
        licence="; ".join(dict.fromkeys(corpus.licence for corpus in corpora)),
    )


def task_names() -> list[str]:
    """Return the names that `load_task` takes, those with a test set first."""
    return [*_TESTS, *(name for name in corpus_names() if name not in (*_TESTS, "pos", "supersense"))]


def load_task(name: str, *, data: Data = None, download: bool = False) -> dict[str, Any]:
    """Return the arguments of `finetune` for a task: texts, labels, pairs, metric and, if any, test.

    `sst2`, `rte`, `mrpc`, `cola` are trained on their train set and scored on dev.

    Args:
        name: one of `task_names()`.
        data, download: as for `load_corpus`.
    """
    check_name("task", name, task_names())
    split = _TESTS.get(name)
    train = load_corpus(name, data=data, split=split and "train", download=download)
    texts, *seconds = train.columns
    pairs = seconds[0] if seconds else None
    found: dict[str, Any] = {"texts": texts, "labels": train.labels, "pairs": pairs}
    if split is not None:
        test = load_corpus(name, data=data, split=split, download=download)
        found["test"] = (*test.columns, test.labels)
    return found | {"metric": "matthews" if name == "cola" else "accuracy"}  # as GLUE has it
