"""Labelled texts, and their split into training and test texts."""

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
    """Texts, or pairs of texts, with the label of each."""

    texts: list[str]
    pairs: list[str] | None
    labels: Labels

    @classmethod
    def of(
        cls, texts: Sequence[str], pairs: Sequence[str] | None, labels: Any, *, name: str = ""
    ) -> Examples:
        """Check that there are as many of each and that no text is empty; `name` is a prefix in errors."""
        listed = checked_texts(texts, name=f"{name}texts", filled=True)
        partners = None if pairs is None else checked_texts(pairs, name=f"{name}pairs", filled=True)
        if partners is not None and len(partners) != len(listed):
            raise ShapeError(
                f"has {len(partners):,} entries for {len(listed):,} texts",
                argument=f"{name}pairs",
                wanted="one for each text",
            )
        return cls(listed, partners, as_labels(labels, n=len(listed), name=f"{name}labels"))

    @property
    def columns(self) -> tuple[list[Any], ...]:
        """The texts and labels, for a fingerprint."""
        names = [self.labels.names[code] for code in self.labels.codes.tolist()]
        return (self.texts, names) if self.pairs is None else (self.texts, self.pairs, names)

    def take(self, places: np.ndarray) -> Examples:
        """Return the examples at these places, in this order; labels keep their codes."""
        chosen = places.tolist()
        return Examples(
            [self.texts[i] for i in chosen],
            None if self.pairs is None else [self.pairs[i] for i in chosen],
            Labels(self.labels.codes[torch.from_numpy(places)], self.labels.names),
        )


def some_examples(arguments: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Return arguments of `finetune` with a random n of the training texts, the same for every seed.

    >>> some_examples({"texts": list("abcd"), "pairs": None, "labels": [0, 1, 0, 1]}, 2)["texts"]
    ['a', 'b']
    """
    if n < 2:
        raise InputError(argument="max_train", got=n, wanted="at least 2")
    places = np.sort(np.random.default_rng([*b"max-train"]).permutation(len(arguments["texts"]))[:n])
    columns = [name for name in ("texts", "pairs", "labels") if arguments[name] is not None]
    return {**arguments, **{name: [arguments[name][i] for i in places.tolist()] for name in columns}}


def split_examples(
    texts: Sequence[str], pairs: Sequence[str] | None, labels: Any, test: Any
) -> tuple[Examples, Examples]:
    """Return training and test examples: a share of the texts is held out, or `test` has its own.

    >>> train, test = split_examples(["a b", "c d", "e f", "g h"], None, [0, 1, 0, 1], 0.25)
    >>> len(train.texts), len(test.texts)
    (3, 1)
    """
    examples = Examples.of(texts, pairs, labels)
    if examples.labels.n_labels < 2:
        raise LabelError(
            f"has only the value {quoted(examples.labels.names[0])}",
            argument="labels",
            wanted="at least two values",
            hint="check that this is the right column",
        )
    if isinstance(test, tuple | list):
        return examples, _own_test(examples, test)
    n = len(examples.texts)
    if isinstance(test, bool) or not isinstance(test, int | float) or not 0 < test < 1:
        raise InputError(
            argument="test",
            got=test,
            wanted="a share between 0 and 1, (texts, labels), or (texts, pairs, labels)",
        )
    n_test = max(1, round(test * n))
    if n - n_test < 2:
        raise InputError(
            f"leaves {n - n_test} of {n} texts to train on",
            argument="test",
            got=test,
            wanted="at least 2",
            hint="pass a smaller share",
        )
    order = np.random.default_rng([*b"held out"]).permutation(n)  # the same for every seed
    return examples.take(np.sort(order[n_test:])), examples.take(np.sort(order[:n_test]))


def _own_test(examples: Examples, test: Sequence[Any]) -> Examples:
    wanted = "(texts, labels)" if examples.pairs is None else "(texts, pairs, labels)"
    if len(test) != (2 if examples.pairs is None else 3):
        raise InputError(f"has {len(test)} parts", argument="test", wanted=f"{wanted}, as in training")
    own = Examples.of(test[0], None if examples.pairs is None else test[1], test[-1], name="test ")
    code = {name: i for i, name in enumerate(examples.labels.names)}
    unknown = [name for name in own.labels.names if name not in code]
    if unknown:
        raise LabelError(
            f"has {quoted(unknown[0])}, which is not a label of a training text",
            argument="test labels",
            wanted=f"labels such as {', '.join(quoted(name) for name in list(code)[:5])}",
        )
    codes = torch.tensor([code[name] for name in own.labels.names])[own.labels.codes]
    return Examples(own.texts, own.pairs, Labels(codes, examples.labels.names))
