"""Thresholds with a finite-sample guarantee, from labelled pairs that are independent draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isoscope.errors import InputError
from isoscope.statistics.intervals import clopper_pearson

_START_SHARE = 0.1  # of the pairs: their cosines are the thresholds to test
# pairs above the first threshold, times those that would do if all of them matched: fewer prove little, and
# with more, the first threshold may lie below the one wanted
_START_PAIRS = 2.5

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Guarantee:
    """A threshold that keeps a promise with a given confidence.

    Attributes:
        promise: "precision" or "false_match_rate".
        target: what is promised: a precision of at least this, or a false-match rate of at most this.
        confidence: how often the promise holds, over draws of the pairs.
        cosine: the threshold: pairs with at least this cosine match. None where none can be promised.
        precision, recall: of the pairs at this threshold; None without a threshold.
        precision_interval, recall_interval: their 95 % intervals (Clopper and Pearson).
        n_above: pairs with at least this cosine.
        n_pairs, n_matches: the pairs, and how many of them match.
        slice: the slice that the pairs are of, or None.
    """

    promise: str
    target: float
    confidence: float
    cosine: float | None
    precision: float | None
    precision_interval: tuple[float, float] | None
    recall: float | None
    recall_interval: tuple[float, float] | None
    n_above: int
    n_pairs: int
    n_matches: int
    slice: str | None = None

    @classmethod
    def of(
        cls,
        promise: str,
        cosines: Floats,
        matches: NDArray[np.bool_],
        *,
        target: float,
        confidence: float,
        seed: int = 0,
        slice: str | None = None,
    ) -> Guarantee:
        """Find the lowest threshold for which a promise can be made, and describe it."""
        if promise == "precision":
            cosine = precision_threshold(cosines, matches, target=target, confidence=confidence, seed=seed)
        else:
            cosine = false_match_threshold(cosines[~matches], rate=target, confidence=confidence)
        above = cosines >= cosine if cosine is not None else np.zeros(len(cosines), dtype=bool)
        n_above, n_right, n_matches = int(above.sum()), int((above & matches).sum()), int(matches.sum())
        return cls(
            promise=promise,
            target=target,
            confidence=confidence,
            cosine=cosine,
            precision=n_right / n_above if n_above else None,
            precision_interval=clopper_pearson(n_right, n_above) if n_above else None,
            recall=n_right / n_matches if n_above and n_matches else None,
            recall_interval=clopper_pearson(n_right, n_matches) if n_above and n_matches else None,
            n_above=n_above,
            n_pairs=len(cosines),
            n_matches=n_matches,
            slice=slice,
        )


def precision_threshold(
    cosines: Floats, matches: NDArray[np.bool_], *, target: float, confidence: float, seed: int = 0
) -> float | None:
    """Return the lowest cosine shown to have a precision of at least `target`; None if none is.

    The cosines of a random tenth of the pairs are the thresholds to try, from one that is high but has
    enough pairs above it. The other pairs test them one after another, each by the exact binomial test of
    "precision ≤ target", until one is not rejected. As the order is fixed before, all tests have the full
    level, and the precision of the result is at least the target with the given confidence (fixed-sequence
    testing, as in Learn then Test: Angelopoulos et al. 2021). Pairs must be independent draws of those that
    the threshold will see.

    >>> cosines = np.arange(1000) / 1000
    >>> precision_threshold(cosines, cosines > 0.5, target=0.9, confidence=0.95) < 0.5
    True
    """
    from scipy.stats import binom

    order = np.random.default_rng(seed).permutation(len(cosines))
    n_first = max(1, math.ceil(_START_SHARE * len(order)))
    first, rest = order[:n_first], order[n_first:]
    tried = np.unique(cosines[first])[::-1]
    n_least = _START_PAIRS * math.log(1 - confidence) / math.log(target) * n_first / max(1, len(rest))
    n_above, _ = _above(cosines[first], matches[first], tried)
    tried = tried[min(len(tried) - 1, int(np.searchsorted(n_above, n_least))) :]
    n_above, n_right = _above(cosines[rest], matches[rest], tried)
    p_values = binom.sf(n_right - 1, n_above, target)
    failed = np.flatnonzero(p_values > 1 - confidence)
    n_shown = int(failed[0]) if len(failed) else len(tried)
    return float(tried[n_shown - 1]) if n_shown else None


def false_match_threshold(others: Floats, *, rate: float, confidence: float) -> float | None:
    """Return the lowest cosine that at most this share of pairs without a match reaches; None if none is.

    With a confidence that is exact for continuous cosines, by their order statistics: the r-th of n is at or
    above the quantile 1 − rate with probability P(Bin(n, 1 − rate) < r) (Wilks 1941).

    >>> false_match_threshold(np.arange(1000) / 1000, rate=0.01, confidence=0.95) > 0.99
    True
    >>> false_match_threshold(np.arange(100) / 100, rate=0.01, confidence=0.95) is None
    True
    """
    from scipy.stats import binom

    n = len(others)
    r = int(binom.ppf(confidence, n, 1 - rate)) + 1
    if n == 0 or r > n:
        return None
    return float(np.nextafter(np.sort(others)[r - 1], np.inf))


def check_pairs(matches: NDArray[np.bool_], argument: str = "pairs") -> None:
    """Raise InputError unless there are pairs that match and pairs that do not."""
    if matches.all() or not matches.any():
        which = "match" if matches.all() else "do not match"
        raise InputError(
            f"has {len(matches)} pairs, which all {which}", argument=argument, wanted="pairs of both kinds"
        )


def _above(
    cosines: Floats, matches: NDArray[np.bool_], cuts: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many pairs have at least each cosine, and how many of them match."""
    all_pairs, right = np.sort(cosines), np.sort(cosines[matches])
    n_above, n_right = (len(of) - np.searchsorted(of, cuts, side="left") for of in (all_pairs, right))
    return n_above, n_right
