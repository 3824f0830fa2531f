from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from isoscope.errors import ShapeError
from isoscope.labels import as_labels
from isoscope_papers.corpora import Corpus


def test_distinct_strings_and_their_places_rebuild_the_columns() -> None:
    columns = (("b", "a", "b", "c"), ("a", "b", "d", "c"))
    corpus = Corpus("pairs", columns, ("x", "y", "x", "z"))
    assert corpus.distinct() == ("b", "a", "d", "c")
    assert corpus.pairs.shape == (4, 2)
    assert corpus.pairs.dtype == np.int64
    for column, places in zip(columns, corpus.pairs.T, strict=True):
        assert tuple(corpus.distinct()[place] for place in places) == column
    assert list(corpus.items)[1] == (("a", "b"), "y")
    assert len(corpus) == 4


def test_one_column() -> None:
    corpus = Corpus("single", (("a", "a", "b"),), ("x", "y", "x"))
    assert corpus.pairs.tolist() == [[0], [0], [1]]
    assert not corpus.is_multilabel
    assert corpus.label_names == ("x", "y")
    assert corpus.indicators().tolist() == [[1, 0], [0, 1], [1, 0]]


def test_texts_are_distinct_by_every_character() -> None:
    texts = ("a", "a ", "A", "a\u200b", "\u00e9", "e\u0301")
    assert Corpus("c", (texts,), ("x",) * 6).distinct() == texts


def test_sets_of_labels() -> None:
    sets = (frozenset({"n", "v"}), frozenset({"n"}), frozenset({"n", "v"}))
    corpus = Corpus("words", (("run", "cat", "walk"),), sets)
    assert corpus.is_multilabel
    assert corpus.indicators().tolist() == [[1, 1], [1, 0], [1, 1]]
    assert as_labels(corpus.labels).counts.tolist() == [2, 1]  # each distinct set is one cluster
    assert repr(corpus) == "Corpus(words, 3 items of text, 3 distinct, 2 labels)"


def test_a_corpus_cannot_be_changed() -> None:
    corpus = Corpus("c", (("a",),), ("x",))
    with pytest.raises(dataclasses.FrozenInstanceError):
        corpus.name = "d"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("columns", "labels", "match"),
    [
        ((("a", "b"),), ("x",), r"columns of \[2\] texts and 1 labels"),
        ((("a",), ("b", "c")), ("x",), r"columns of \[1, 2\] texts"),
        (((),), (), "at least one"),
    ],
)
def test_lengths_must_agree(
    columns: tuple[tuple[str, ...], ...], labels: tuple[str, ...], match: str
) -> None:
    with pytest.raises(ShapeError, match=match):
        Corpus("c", columns, labels)
