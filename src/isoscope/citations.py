"""`cite`: BibTeX entries for isoscope and for the papers of the metrics that were used."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from isoscope._version import __version__
from isoscope.metrics.registry import choose, registered

_ISOSCOPE = f"""@software{{isoscope,
  author    = {{{{isoscope contributors}}}},
  title     = {{isoscope: Measure how an embedding space is shaped}},
  version   = {{{__version__}}},
  year      = {{2026}},
}}"""
# "Roy, Vetterli 2007" or "as used by Cai et al. 2021": the first name with a capital letter, and the year
_REFERENCE = re.compile(r"([A-ZÀ-Ž][^\W\d_]+)[^;\d]*\b((?:19|20)\d\d)\b")

_PAPER = re.compile(r"^ *Papers?: (.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)  # in a docstring


class Bibliography(str):
    """BibTeX text that a Python prompt shows line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def cite(*used: Any) -> Bibliography:
    """Return the BibTeX entries of isoscope and of the papers that metrics come from.

    Args:
        used: names of metrics or families, functions such as `iso.isoscore`, corrections and losses such as
            `iso.AllButTheTop`, or results: of a `Measurement`, `Comparison`, `Report` or other result, every
            metric is cited.

    >>> import isoscope as iso
    >>> print(iso.cite("effective_rank"))
    @software{isoscope,
      author    = {{isoscope contributors}},
      ...
    <BLANKLINE>
    @inproceedings{roy2007,
      author    = {Roy, Olivier and Vetterli, Martin},
      ...
    }
    """
    entries = {"": _ISOSCOPE}
    for name, paper in _cited(used):
        keys = paper_keys(paper)
        for key in keys:
            entries[key] = papers()[key]
        if paper and not keys:
            entries[name] = f"% {name}: {' '.join(paper.split())}"
    return Bibliography("\n\n".join(entries.values()))


@cache
def papers() -> dict[str, str]:
    """Return the BibTeX entry of each paper by its key, the first author and the year: `roy2007`."""
    text = files("isoscope").joinpath("papers.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@.*?^}", text, flags=re.MULTILINE | re.DOTALL)
    return {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}


def paper_keys(paper: str) -> list[str]:
    """Return the keys in `papers` of the papers that a metric's declaration names."""
    keys = [_plain(name) + year for name, year in _REFERENCE.findall(paper)]
    return [key for key in keys if key in papers()]


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _cited(used: Iterable[Any]) -> Iterable[tuple[str, str]]:
    """Yield name and paper of metrics, corrections and losses; other readings of a result have no paper."""
    for one in used:
        kind = one if isinstance(one, type) else type(one)
        if paper := _PAPER.search(kind.__doc__ or ""):
            yield kind.__name__, paper[1]
            continue
        names = one
        if hasattr(one, "readings"):
            names = [reading.metric for reading in one.readings if reading.metric in registered()]
        yield from ((metric.name, metric.paper) for metric in ([] if names == [] else choose(names)))
