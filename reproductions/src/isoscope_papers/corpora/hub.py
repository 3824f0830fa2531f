"""Rows of a dataset on Hugging Face's hub, through the `datasets` package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from isoscope.errors import FileError, InputError
from isoscope.io.files import reason
from isoscope_papers.corpora.registry import Hub
from isoscope_papers.corpora.rows import Record


def hub_rows(hub: Hub, fields: Sequence[str]) -> Iterator[Record]:
    """The records of all the splits, in order, each with the fields wanted. This fetches: ask first."""
    try:
        import datasets
    except ImportError:
        raise InputError(
            f"{hub.path} cannot be fetched without the datasets package: pip install 'isoscope-papers[hub]'"
        ) from None
    for split in hub.splits:
        try:
            rows: Any = datasets.load_dataset(hub.path, hub.config, split=split)
        except Exception as error:  # many kinds, by the library's version: absent, refused, no connection
            raise InputError(
                f"{hub.path} cannot be fetched: {reason(error)}; pass a data folder instead"
            ) from error
        absent = [field for field in fields if field not in rows.column_names]
        if absent:
            raise FileError(f"{hub.path} has no column {absent[0]!r}; it has {', '.join(rows.column_names)}")
        yield from rows.select_columns(list(fields))
