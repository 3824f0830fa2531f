"""Texts for commands: a file, or the name of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isoscope.cli.commands import check_input
from isoscope.errors import FileError, InputError
from isoscope.plugins import corpora, missing


def texts_of(
    where: str,
    data: Path | None,
    *,
    column: str | None = None,
    download: bool = False,
    skip_blank: bool = False,
) -> list[str]:
    """Return the texts of a file or of a named corpus."""
    check_path(where, "texts")
    named = corpora()
    names = [] if named is None else named.text_names()
    if named is not None and where in names and not Path(where).exists():
        if column is not None:
            raise InputError(f"works only with a file, but {where} is a corpus", argument="text_column")
        return list(named.load_texts(where, data=data, download=download))
    check_exists(where, "texts", names)
    from isoscope.io import read_texts

    return read_texts(Path(where), column=column, skip_blank=skip_blank)


def named_pairs(where: str, data: Path | None, *, download: bool) -> list[tuple[str, str]] | None:
    """Return the pairs of a named corpus, or None if `where` is a file."""
    check_path(where, "pairs")
    named = corpora()
    names = [] if named is None else named.pair_names()
    if named is not None and where in names and not Path(where).is_file():
        return list(zip(*named.load_pairs(where, data=data, download=download).columns, strict=True))
    check_exists(where, "pairs", names)
    return None


def named_task(name: str, data: Path | None, *, download: bool) -> dict[str, Any]:
    """Return the arguments of `finetune` for a named task."""
    named = corpora()
    if named is None:
        raise missing(f"The task {name!r}")
    arguments: dict[str, Any] = named.load_task(name, data=data, download=download)
    return arguments


def check_path(where: str, what: str) -> None:
    """Raise FileError for a missing file before the corpora are imported; a corpus has no such name."""
    path = Path(where)
    if (path.suffix or path.name != where) and not path.exists():
        check_input(path, what=what)


def check_exists(where: str, what: str, names: list[str]) -> None:
    """Raise FileError unless the file exists; name the corpora that are available."""
    if not Path(where).exists():
        one_of = f", or one of {', '.join(names)}" if names else ""
        raise FileError(f"{where} does not exist", wanted=f"a file of {what}{one_of}")
