"""Labelled texts, and those of them that are held out to score on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from isoscope.errors import InputError, LabelError, ShapeError
from isoscope.labels import Labels, as_labels
from isoscope.models.texts import checked_texts
from isoscope.printable import quoted


@dataclass(frozen=True, eq=False)
class Examples:
    """Texts, their partners where they are pairs, and the label of each."""

    texts: list[str]
    pairs: list[str] | None
    labels: Labels

    @classmethod
    def of(
        cls, texts: Sequence[str], pairs: Sequence[str] | None, labels: Any, *, name: str = ""
    ) -> Examples:
        """Checked: as many of each, words in every text. `name` goes before those of the arguments."""
        listed = checked_texts(texts, name=f"{name}texts", filled=True)
        partners = None if pairs is None else checked_texts(pairs, name=f"{name}pairs", filled=True)
        if partners is not None and len(partners) != len(listed):
            raise ShapeError(
                f"{name}pairs has {len(partners):,} entries for {len(listed):,} texts; wanted one for each"
            )
        return cls(listed, partners, as_labels(labels, n=len(listed), name=f"{name}labels"))

    @property
    def columns(self) -> tuple[list[Any], ...]:
        """All that a result depends on."""
        names = [self.labels.names[code] for code in self.labels.codes.tolist()]
        return (self.texts, names) if self.pairs is None else (self.texts, self.pairs, names)

    def take(self, places: np.ndarray) -> Examples:
        """Some of them, in this order; labels keep their codes."""
        chosen = places.tolist()
        return Examples(
            [self.texts[i] for i in chosen],
            None if self.pairs is None else [self.pairs[i] for i in chosen],
            Labels(self.labels.codes[torch.from_numpy(places)], self.labels.names),
        )


def some_examples(arguments: Mapping[str, Any], n: int) -> dict[str, Any]:
    """What `finetune` takes, with n of the texts to train on: drawn once, the same for every seed.

    >>> some_examples({"texts": list("abcd"), "pairs": None, "labels": [0, 1, 0, 1]}, 2)["texts"]
    ['a', 'b']
    """
    if n < 2:
        raise InputError(argument="max_train", got=n, wanted="at least 2 texts")
    places = np.sort(np.random.default_rng([*b"max-train"]).permutation(len(arguments["texts"]))[:n])
    columns = [name for name in ("texts", "pairs", "labels") if arguments[name] is not None]
    return {**arguments, **{name: [arguments[name][i] for i in places.tolist()] for name in columns}}


def split_examples(
    texts: Sequence[str], pairs: Sequence[str] | None, labels: Any, test: Any
) -> tuple[Examples, Examples]:
    """What is trained on, and what is scored on: a share held out, or examples of their own.

    >>> train, test = split_examples(["a b", "c d", "e f", "g h"], None, [0, 1, 0, 1], 0.25)
    >>> len(train.texts), len(test.texts)
    (3, 1)
    """
    known = Examples.of(texts, pairs, labels)
    if known.labels.n_labels < 2:
        raise LabelError(
            f"has one value, {quoted(known.labels.names[0])}; wanted at least two to tell apart: "
            "is it the right column?",
            argument="labels",
        )
    if isinstance(test, tuple | list):
        return known, _given(known, test)
    n = len(known.texts)
    if isinstance(test, bool) or not isinstance(test, int | float) or not 0 < test < 1:
        raise InputError(
            argument="test",
            got=test,
            wanted="a share between 0 and 1, or (texts, labels), of pairs (texts, pairs, labels)",
        )
    n_test = max(1, round(test * n))
    if n - n_test < 2:
        raise InputError(
            f"is {test}, which leaves {n - n_test} of {n} texts to train on; wanted at least 2",
            argument="test",
        )
    order = np.random.default_rng([*b"held out"]).permutation(n)  # the same for every seed
    return known.take(np.sort(order[n_test:])), known.take(np.sort(order[:n_test]))


def _given(known: Examples, test: Sequence[Any]) -> Examples:
    wanted = "(texts, labels)" if known.pairs is None else "(texts, pairs, labels)"
    if len(test) != (2 if known.pairs is None else 3):
        raise InputError(f"has {len(test)} parts; wanted {wanted}, as what is trained on", argument="test")
    own = Examples.of(test[0], None if known.pairs is None else test[1], test[-1], name="test ")
    code = {name: i for i, name in enumerate(known.labels.names)}
    unknown = [name for name in own.labels.names if name not in code]
    if unknown:
        raise LabelError(
            f"test labels have {quoted(unknown[0])}, which labels do not; wanted some of "
            f"[{', '.join(quoted(name) for name in list(code)[:5])}]"
        )
    codes = torch.tensor([code[name] for name in own.labels.names])[own.labels.codes]
    return Examples(own.texts, own.pairs, Labels(codes, known.labels.names))
