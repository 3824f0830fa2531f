"""`Corpus`: texts, or pairs of texts, with labels, scores or neither."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from isoscope.errors import ShapeError


@dataclass(frozen=True, eq=False)
class Corpus:
    """n items, each of one or more texts. Iterating yields the first text of each item.

    Attributes:
        name: name of the corpus in the registry.
        columns: one or more columns of n texts; pairs have two.
        labels: n labels, each a string, a frozen set of strings or a score; or empty.
        split: the part of the published corpus (train, dev, …).
        source: where the corpus was read from, such as the name of the file.
        licence: the licence, as far as it is known.

    >>> pairs = Corpus("tiny", (("a cat", "a dog"), ("a pet", "a cat")), ("yes", "no"))
    >>> pairs
    Corpus(tiny, 2 items of 2 texts, 3 distinct, 2 labels)
    >>> pairs.distinct()
    ('a cat', 'a pet', 'a dog')
    >>> pairs.pairs.tolist()
    [[0, 1], [2, 0]]
    """

    name: str
    columns: tuple[tuple[str, ...], ...]
    labels: tuple[Any, ...] = ()
    split: str = ""
    source: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        lengths = {len(column) for column in (*self.columns, self.labels or self.columns[0])}
        if len(lengths) > 1 or 0 in lengths:
            raise ShapeError(
                f"{self.name} has columns of {[len(column) for column in self.columns]} texts and "
                f"{len(self.labels)} labels",
                wanted="as many of each, and at least one",
            )

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns[0])

    def __repr__(self) -> str:
        texts = "text" if len(self.columns) == 1 else f"{len(self.columns)} texts"
        counts = f"{len(self.distinct()):,} distinct, {len(self.label_names)} labels"
        return f"Corpus({self.name}, {len(self):,} items of {texts}, {counts})"

    @property
    def items(self) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Yield the texts and the label of each item."""
        return zip(zip(*self.columns, strict=True), self.labels, strict=True)

    def distinct(self) -> tuple[str, ...]:
        """Return the distinct texts of all columns, in the order of the items."""
        return tuple(self._places)

    @cached_property
    def pairs(self) -> np.ndarray:
        """(n, number of columns) int64: the positions of the texts of each item in `distinct()`."""
        return np.array([[self._places[text] for text in column] for column in self.columns]).T.copy()

    @property
    def is_multilabel(self) -> bool:
        """Whether an item has a set of labels."""
        return isinstance(self.labels[0], frozenset)

    @cached_property
    def label_names(self) -> tuple[Any, ...]:
        """The labels that occur, sorted."""
        return tuple(sorted({name for label in self.labels for name in _members(label)}))

    def indicators(self) -> np.ndarray:
        """(n, number of labels) of 0 and 1, int64: which labels of `label_names` each item has."""
        place = {name: i for i, name in enumerate(self.label_names)}
        matrix = np.zeros((len(self), len(place)), dtype=np.int64)
        for row, label in enumerate(self.labels):
            for name in _members(label):
                matrix[row, place[name]] = 1
        return matrix

    @cached_property
    def _places(self) -> dict[str, int]:
        met = (text for texts in zip(*self.columns, strict=True) for text in texts)
        return {text: i for i, text in enumerate(dict.fromkeys(met))}


def _members(label: Any) -> frozenset[Any]:
    return label if isinstance(label, frozenset) else frozenset((label,))
