"""Splits into folds, and what differences over them are worth.

Scores of folds share training rows, so they are not independent: their plain standard error is too small.
Nadeau and Bengio's correction (2003) widens it. With J differences of variance s², over splits that test on
a share r of what they train on,

    se² = (1/J + r) s²,      interval  mean ± t_{J−1} · se

Several corrections are tried at once: p-values are adjusted by Holm (1979) before anything is said to help.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

LEVEL = 0.05


@dataclass(frozen=True)
class Split:
    """One split: rows to learn from, rows to score, and a seed for whatever is drawn with it."""

    train: Tensor
    test: Tensor
    seed: int


def splits(n: int, *, folds: int, repeats: int, seed: int, strata: Tensor | None = None) -> Iterator[Split]:
    """Every fold of every repeat; with `strata`, (n,) codes, labels go round the folds."""
    for repeat in range(repeats):
        generator = torch.Generator().manual_seed(seed + 1000 * repeat)
        order = torch.randperm(n, generator=generator)
        if strata is not None:
            order = order[strata[order].argsort(stable=True)]
        fold = torch.empty(n, dtype=torch.int64)
        fold[order] = torch.arange(n) % folds
        for number in range(folds):
            held = fold == number
            yield Split((~held).nonzero().flatten(), held.nonzero().flatten(), seed + 1000 * repeat + number)


@dataclass(frozen=True)
class Gain:
    """What a correction gains over none: the mean difference, its 95 % interval, its p-value."""

    mean: float
    interval: tuple[float, float]
    p_value: float


def gain(differences: Sequence[float], *, test_share: float) -> Gain:
    """The mean of paired differences over resamples, with Nadeau and Bengio's corrected t.

    Args:
        differences: one a fold and repeat, corrected less uncorrected.
        test_share: rows tested over rows trained on: 1/4 for 5 folds.

    >>> gain([0.25, 0.5, 0.75], test_share=0.25).mean
    0.5
    """
    from scipy.stats import t

    J = len(differences)
    mean = math.fsum(differences) / J
    variance = math.fsum((one - mean) ** 2 for one in differences) / (J - 1)
    error = math.sqrt((1 / J + test_share) * variance)
    if error == 0:  # coarse scores of few items: no more is known than that all have one sign
        return Gain(mean, (mean, mean), 1.0 if mean == 0 else 2.0 ** (1 - J))
    half = float(t.ppf(1 - LEVEL / 2, J - 1)) * error
    return Gain(mean, (mean - half, mean + half), float(2 * t.sf(abs(mean) / error, J - 1)))
