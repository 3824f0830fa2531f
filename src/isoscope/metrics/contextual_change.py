"""Change of a token's self-similarity from one model to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError, UndefinedError, check_between
from isoscope.metrics.contextual import anisotropy_of, type_similarities
from isoscope.results import Result
from isoscope.statistics.groups import GroupDirections

N_TYPES = 400  # the most frequent tokens, as Xiao et al. 2023 take them
_SHORTEST = 20  # tokens a correlation is taken over before it can be called the highest


@dataclass(frozen=True)
class SelfSimilarityChange(Result):
    """The change of each token's adjusted self-similarity, the most frequent token first.

    Attributes:
        changes: by token type.
        counts: how often each type occurs.
        only_before, only_after: types that only one of the two models has twice or more.
    """

    changes: Mapping[Any, float]
    counts: Mapping[Any, int]
    only_before: tuple[Any, ...]
    only_after: tuple[Any, ...]

    def _columns(self) -> dict[str, list[Any]]:
        counts = [self.counts[token] for token in self.changes]
        return {"token": list(self.changes), "change": list(self.changes.values()), "count": counts}

    def rising(self, n: int = 10) -> dict[Any, float]:
        """Return the n tokens whose self-similarity rises most: context changes them less than before."""
        return extremes(self.changes, n)[0]

    def falling(self, n: int = 10) -> dict[Any, float]:
        """Return the n tokens whose self-similarity falls most: context changes them more than before."""
        return extremes(self.changes, n)[1]


@dataclass(frozen=True)
class RunningCorrelation(Result):
    """Pearson correlations over the first 1, 2, 3, … tokens.

    Attributes:
        names: the tokens, in the order they are added.
        values: the correlation over the first n of them at place n − 1; None where it is undefined.
    """

    names: tuple[Any, ...]
    values: tuple[float | None, ...]

    def _columns(self) -> dict[str, list[Any]]:
        n = list(range(1, len(self.names) + 1))
        return {"n": n, "token": list(self.names), "correlation": list(self.values)}

    def highest(self, *, from_n: int = _SHORTEST) -> tuple[int, float]:
        """Return the number of tokens, at least `from_n`, with the highest correlation, and its value."""
        numbered = enumerate(self.values, 1)
        correlations = [(value, n) for n, value in numbered if value is not None and n >= from_n]
        if not correlations:
            raise UndefinedError(f"no correlation over {from_n} tokens or more: there are {len(self.names)}")
        value, n = max(correlations, key=lambda pair: (pair[0], -pair[1]))
        return n, value


def adjusted_type_similarities(
    X: Any, *, token_types: Any = None, anisotropy: float | None = None
) -> dict[Any, float]:
    """Return the self-similarity of each type that occurs twice or more, less the mean cosine.

    By falling frequency, then by name. Range [−2, 2] each; 0 means that the token's occurrences are no
    more alike than any two tokens. Invariant to rotation and one scale. Paper: Ethayarajh 2019.

    Args:
        X: as for `self_similarity`.
        token_types: the type of each row, where X does not carry it.
        anisotropy: another baseline; default the exact mean cosine.

    >>> X = [[1.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [1.0, 0.0]]
    >>> adjusted_type_similarities(X, token_types=["a", "b", "b", "a", "a"])
    {'a': 0.6, 'b': 0.6}
    """
    groups = GroupDirections.by("token_types", X, token_types)
    baseline = float(anisotropy_of(groups)) if anisotropy is None else float(anisotropy)
    raw = type_similarities(groups)
    return {name: raw[name] - baseline for name in _by_frequency(groups) if name in raw}


def self_similarity_change(
    before: Any,
    after: Any,
    *,
    n_types: int | None = N_TYPES,
    anisotropy_before: float | None = None,
    anisotropy_after: float | None = None,
) -> SelfSimilarityChange:
    """Compute the change of each token's self-similarity from one model to another.

        SSC_t = (ss_t − ani)_after − (ss_t − ani)_before

    ss the mean cosine of all pairs of occurrences of type t, ani that of all pairs of vectors. Range
    [−4, 4]; a rise means that context changes the token less than before. Types that only one of the two
    has twice or more are named, and left out. Invariant to rotation and one scale of each model.
    Paper: Xiao, Long, Al Moubayed 2023.

    Args:
        before, after: Spaces that know their token types, or GroupDirections of the types.
        n_types: of those in both, the most frequent (in `after`); all where None.
        anisotropy_before, anisotropy_after: other baselines; default the exact mean cosines.

    >>> from isoscope.space import Space
    >>> before = Space([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], token_types=["a", "a", "b"])
    >>> after = Space([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], token_types=["a", "a", "b"])
    >>> change = self_similarity_change(before, after, anisotropy_before=0.0, anisotropy_after=0.25)
    >>> change.changes
    {'a': 0.75}
    """
    if n_types is not None and (not isinstance(n_types, int) or n_types < 1):
        raise InputError(argument="n_types", got=n_types, wanted="at least one token type, or None for all")
    for argument, value in (("anisotropy_before", anisotropy_before), ("anisotropy_after", anisotropy_after)):
        if value is not None:
            check_between(argument, value, -1, 1, wanted="a mean cosine, from −1 to 1")
    groups = GroupDirections.by("token_types", after)
    first = adjusted_type_similarities(before, anisotropy=anisotropy_before)
    second = adjusted_type_similarities(groups, anisotropy=anisotropy_after)
    changes = changes_by_type(first, second, n_types=n_types)
    counts = dict(zip(groups.names, groups.counts.long().tolist(), strict=True))
    return SelfSimilarityChange(
        changes,
        {name: counts[name] for name in changes},
        tuple(name for name in first if name not in second),
        tuple(name for name in second if name not in first),
    )


def changes_by_type(
    before: Mapping[Any, float], after: Mapping[Any, float], *, n_types: int | None = N_TYPES
) -> dict[Any, float]:
    """Return the change of adjusted self-similarity for the first `n_types` types of `after` that both have.

    >>> changes_by_type({"a": 0.25, "b": 0.5}, {"b": 0.75, "c": 1.0})
    {'b': 0.25}
    """
    both = [name for name in after if name in before][:n_types]
    if not both:
        raise UndefinedError("No token occurs twice or more in both models", wanted="the same texts in both")
    return {name: after[name] - before[name] for name in both}


def running_correlation(first: Mapping[Any, float], second: Mapping[Any, float]) -> RunningCorrelation:
    """Compute the correlation of two models' values by token, as tokens are added one by one.

        r_n = Corr(a_1 … a_n, b_1 … b_n),   n = 1, 2, 3, …

    exactly, in one sweep. Tokens are added in the order of `first`, such as by falling frequency; those
    that only one has are skipped. Range [−1, 1]; invariant to scale and shift of each.
    Paper: Xiao, Long, Al Moubayed 2023.

    >>> curve = running_correlation({"a": 1.0, "b": 2.0, "c": 3.0}, {"c": 2.0, "b": 4.0, "a": 2.0, "d": 1.0})
    >>> curve.names, curve.values
    (('a', 'b', 'c'), (None, 1.0, 0.0))
    """
    names = tuple(name for name in first if name in second)
    if not names:
        raise UndefinedError("The two models have no token in common", wanted="models with the same tokens")
    a, b = (torch.tensor([float(of[name]) for name in names], dtype=torch.float64) for of in (first, second))
    varies = _changed(a) & _changed(b)
    values = _prefix_correlations(a, b).clamp(-1, 1).tolist()
    return RunningCorrelation(
        names, tuple(value if there else None for value, there in zip(values, varies.tolist(), strict=True))
    )


def extremes(values: Mapping[Any, float], n: int = 10) -> tuple[dict[Any, float], dict[Any, float]]:
    """Return the n highest values, highest first, and the n lowest, lowest first.

    >>> extremes({"a": 1.0, "b": 3.0, "c": 2.0}, 1)
    ({'b': 3.0}, {'a': 1.0})
    """
    ranked = sorted(values, key=lambda name: values[name])
    return {name: values[name] for name in ranked[::-1][:n]}, {name: values[name] for name in ranked[:n]}


def _by_frequency(groups: GroupDirections) -> list[Any]:
    pairs: Sequence[tuple[Any, float]] = list(zip(groups.names, groups.counts.tolist(), strict=True))
    return [name for name, _ in sorted(pairs, key=lambda pair: -pair[1])]


def _changed(values: Tensor) -> Tensor:
    """Return (n,) whether the values up to each one differ."""
    return (values != values[0]).long().cumsum(0) > 0


def _prefix_correlations(a: Tensor, b: Tensor) -> Tensor:
    """Return the correlation of each prefix by Welford's recurrence, which avoids cancellation."""
    n = torch.arange(1, len(a) + 1, dtype=torch.float64)
    da, db = (_steps(values, n) for values in (a, b))
    weight = (n - 1) / n  # Σ (x − mean)(y − mean) grows by this times (x − old mean)(y − old mean)
    aa, ab, bb = (((weight * x * y).cumsum(0)) for x, y in ((da, da), (da, db), (db, db)))
    return ab / (aa * bb).sqrt()


def _steps(values: Tensor, n: Tensor) -> Tensor:
    """Return each value less the mean of those before it."""
    shifted = values - values[0]
    means = shifted.cumsum(0) / n
    before = torch.cat([means.new_zeros(1), means[:-1]])
    return shifted - before
