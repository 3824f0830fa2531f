"""The texts of the study: drawn once, the same for every space."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from isoscope_papers.corpora import Corpus, load_corpus
from isoscope_papers.predicts.setups import ANALOGIES, LABELS, MATERIALS, PAIRS, SEARCH, SEED, Material
from isoscope_papers.study import Place


@dataclass(frozen=True, eq=False)
class Items:
    """The items of one material.

    Attributes:
        material: what they are.
        texts: the distinct texts.
        rows: (n, columns) positions of each item's texts in `texts`.
        targets: the score, label, corpus or category of each item.
        parts: the corpus of each item.
    """

    material: Material
    texts: tuple[str, ...]
    rows: np.ndarray
    targets: np.ndarray
    parts: np.ndarray

    @property
    def name(self) -> str:
        """The name of the material."""
        return self.material.name

    def known(self, has_vector: np.ndarray) -> np.ndarray:
        """Return which items have a vector for each of their texts."""
        return np.asarray(has_vector[self.rows].all(axis=1))


@dataclass(frozen=True, eq=False)
class Texts:
    """All texts of the study.

    Attributes:
        items: by name of the material.
    """

    items: dict[str, Items]

    @cached_property
    def by_domain(self) -> dict[str, tuple[str, ...]]:
        """The distinct texts of each domain, in the order of the materials."""
        domains = dict.fromkeys(one.material.domain for one in self.items.values())
        return {
            domain: tuple(
                dict.fromkeys(
                    text for one in self.items.values() if one.material.domain == domain for text in one.texts
                )
            )
            for domain in domains
        }

    @cached_property
    def places(self) -> dict[str, np.ndarray]:
        """By material, the positions of its texts among those of its domain."""
        at = {
            domain: {text: row for row, text in enumerate(texts)} for domain, texts in self.by_domain.items()
        }
        return {
            name: np.array([at[one.material.domain][text] for text in one.texts])
            for name, one in self.items.items()
        }

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all texts, in order."""
        digest = hashlib.sha256()
        for texts in self.by_domain.values():
            digest.update("\0".join(texts).encode() + b"\1")
        return digest.hexdigest()[:16]


def load_all(place: Place) -> Texts:
    """Load and draw the items of all materials."""
    return Texts({name: load_items(material, place) for name, material in MATERIALS.items()})


def load_items(material: Material, place: Place) -> Items:
    """Draw the items of one material, always the same."""
    columns: list[tuple[str, ...]] = []
    targets: list[Any] = []
    parts: list[str] = []
    for name, split in material.corpora:
        corpus = load_corpus(name, data=place.data, split=split, download=place.download)
        for row in _drawn(corpus, material):
            columns.append(tuple(column[row].strip() for column in corpus.columns))
            targets.append(corpus.labels[row])
            parts.append(name)
    texts = tuple(dict.fromkeys(text for item in columns for text in item))
    at = {text: row for row, text in enumerate(texts)}
    rows = np.array([[at[text] for text in item] for item in columns])
    is_scored = material.kind == PAIRS
    return Items(material, texts, rows, np.array(targets, dtype=float if is_scored else str), np.array(parts))


def _drawn(corpus: Corpus, material: Material) -> list[int]:
    """Return the rows that are drawn: so many in all, or of each label."""
    order = np.random.default_rng(SEED).permutation(len(corpus)).tolist()
    if material.kind == SEARCH:
        order = [row for row in order if corpus.labels[row] == material.positive]
    if material.kind != LABELS:
        return sorted(_distinct(order, corpus, material)[: material.n_items])
    chosen: dict[Any, list[int]] = {}
    for row in _distinct(order, corpus, material):
        of_label = chosen.setdefault(corpus.labels[row], [])
        if len(of_label) < material.n_items:
            of_label.append(row)
    return sorted(row for rows in chosen.values() for row in rows)


def _distinct(order: Sequence[int], corpus: Corpus, material: Material) -> list[int]:
    """Leave out items with a text that came before, where a text must belong to one item only."""
    if material.kind in (PAIRS, ANALOGIES):
        return list(order)
    seen: set[str] = set()
    kept = []
    for row in order:
        texts = {column[row].strip() for column in corpus.columns}
        if not texts & seen and len(texts) == len(corpus.columns) and all(texts):
            kept.append(row)
            seen |= texts
    return kept
