"""Words: how tokens are shown, which carry grammar and which content, and how two models agree on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from isoscope.errors import UndefinedError
from isoscope.metrics import RunningCorrelation, running_correlation

# words that carry grammar rather than a topic: determiners, pronouns, prepositions, conjunctions, auxiliaries
_GRAMMAR = """
    a an the this that these those i you he she it we they me him her us them my your his its our their who
    whom which what whose and or but nor so yet if because while although than as of in on at by for with
    about against between into through during before after above below to from up down out off over under
    again then once is am are was were be been being have has had having do does did doing will would shall
    should can could may might must not no there here when where why how all any both each few more
    most other some such
    only own same too very just also s t
"""
FUNCTION_WORDS = frozenset(_GRAMMAR.split())
MARKS = frozenset(".,;:!?'\"()-–—[]/`$%&")


def word(token: str) -> str:
    """Return a token for reading: without its tokenizer's mark of a space.

    >>> word("Ġthe")
    'the'
    """
    return token.replace("Ġ", "").replace("▁", "") or token


def kind(token: str) -> str:
    """Return "grammar" for words of grammar and marks, "content" for other words, "" for the rest.

    >>> kind("Ġthe"), kind("piano"), kind("12")
    ('grammar', 'content', '')
    """
    written = word(token).strip().lower()
    if written in FUNCTION_WORDS or (written and set(written) <= MARKS):
        return "grammar"
    return "content" if written.isalpha() and len(written) > 2 else ""


def by_word(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values by word as it is read, in small letters; of one with several tokens, the first's.

    >>> by_word({"Ġthe": 0.5, "The": 0.25})
    {'the': 0.5}
    """
    found: dict[str, float] = {}
    for token, value in values.items():
        found.setdefault(word(token).lower(), value)
    return found


def extremes(values: Mapping[str, float], n: int) -> tuple[list[str], list[str]]:
    """Return the n tokens with the highest values, the highest first, and the n lowest, the lowest first."""
    ranked = sorted(values, key=lambda name: values[name])
    return ranked[::-1][:n], ranked[:n]


def listed(tokens: Iterable[str]) -> str:
    """Return tokens in one cell."""
    return " · ".join(map(word, tokens))


def agreement(first: Mapping[str, float], second: Mapping[str, float]) -> RunningCorrelation | None:
    """Correlate two models' values over their most frequent tokens; None where most tokens are others."""
    try:
        curve = running_correlation(first, second)
        curve.highest()
    except UndefinedError:
        return None
    return curve if len(curve.names) >= min(len(first), len(second)) / 2 else None


class Agreement(NamedTuple):
    """How far two models agree: over all tokens they share, and over the n most frequent, where most."""

    pair: tuple[str, str]
    n_all: int
    last: float
    n: int
    peak: float


def agreements(values: Mapping[str, Mapping[str, float]]) -> Iterator[Agreement]:
    """Yield how far each two models agree that have most tokens in common, by their values by token."""
    for (one, first), (other, second) in combinations(values.items(), 2):
        if (curve := agreement(first, second)) is not None:
            yield Agreement((one, other), len(curve.names), curve.values[-1] or 0.0, *curve.highest())
