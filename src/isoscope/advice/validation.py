"""Splits into folds, and the significance of differences over them.

Folds share training rows, so their scores are not independent, and the usual standard error is too small.
Nadeau and Bengio's correction (2003) enlarges it. For J differences with variance s², and splits whose test
rows are r times their training rows,

    se² = (1/J + r) s²,      interval  mean ± t_{J−1} · se

Several corrections are tried at once, so p-values are adjusted by the method of Holm (1979).
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
    """One split: the training rows, the test rows, and a seed for the task."""

    train: Tensor
    test: Tensor
    seed: int


def splits(n: int, *, folds: int, repeats: int, seed: int, strata: Tensor | None = None) -> Iterator[Split]:
    """Yield every fold of every repeat; `strata`, (n,) codes of labels, are spread over the folds."""
    for repeat in range(repeats):
        generator = torch.Generator().manual_seed(seed + 1000 * repeat)
        order = torch.randperm(n, generator=generator)
        if strata is not None:
            order = order[strata[order].argsort(stable=True)]
        fold = torch.empty(n, dtype=torch.int64)
        fold[order] = torch.arange(n) % folds
        for number in range(folds):
            is_test = fold == number
            yield Split(
                (~is_test).nonzero().flatten(), is_test.nonzero().flatten(), seed + 1000 * repeat + number
            )


@dataclass(frozen=True)
class Gain:
    """The gain of a correction: the mean difference to no correction, its 95 % interval and p-value."""

    mean: float
    interval: tuple[float, float]
    p_value: float


def gain(differences: Sequence[float], *, test_share: float) -> Gain:
    """Return the mean of paired differences, with Nadeau and Bengio's corrected t-test.

    Args:
        differences: for each fold and repeat, the score with the correction minus the score without it.
        test_share: the number of test rows over the number of training rows, such as 1/4 for 5 folds.

    >>> gain([0.25, 0.5, 0.75], test_share=0.25).mean
    0.5
    """
    from scipy.stats import t

    J = len(differences)
    mean = math.fsum(differences) / J
    variance = math.fsum((one - mean) ** 2 for one in differences) / (J - 1)
    error = math.sqrt((1 / J + test_share) * variance)
    if error == 0:  # all differences are equal: only their common sign is known
        return Gain(mean, (mean, mean), 1.0 if mean == 0 else 2.0 ** (1 - J))
    half = float(t.ppf(1 - LEVEL / 2, J - 1)) * error
    return Gain(mean, (mean - half, mean + half), float(2 * t.sf(abs(mean) / error, J - 1)))
