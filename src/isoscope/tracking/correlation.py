"""The correlation of two curves of a run: Pearson's r and Spearman's ρ, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from isoscope.errors import UndefinedError
from isoscope.results import Record
from isoscope.tables import Grid, span


@dataclass(frozen=True)
class Correlation(Record):
    """The correlation of two metrics during training.

    r and ρ are the correlations of the two curves averaged over the seeds, as in Mickus et al. 2024. The
    95 % intervals are over the seeds: a jackknife that leaves one seed out in turn, with Student's t
    distribution with n_seeds − 1 degrees of freedom. The points of a curve depend on each other, so there is
    no interval over points.

    Attributes:
        first, second: the names of the metrics.
        r, rho: Pearson's and Spearman's correlation of the averaged curves.
        r_interval, rho_interval: 95 % intervals over seeds; None for one seed.
        r_by_seed, rho_by_seed: the correlations of each seed's curves.
        n_points: the number of points of the averaged curves.
    """

    first: str
    second: str
    r: float
    rho: float
    r_interval: tuple[float, float] | None
    rho_interval: tuple[float, float] | None
    r_by_seed: tuple[float, ...]
    rho_by_seed: tuple[float, ...]
    n_points: int

    @property
    def title(self) -> str:
        """What was correlated, in one line."""
        intervals = "; 95 % intervals by leaving one seed out" if self.r_interval else ""
        return f"correlation of {self.first} and {self.second} (curves averaged over seeds{intervals})"

    @property
    def sentence(self) -> str:
        """r and ρ with their intervals."""
        return ", ".join(
            f"{symbol} = {value:.5f}" + (f" [{interval[0]:.5f}, {interval[1]:.5f}]" if interval else "")
            for symbol, value, interval in self._both()
        )

    def grids(self) -> Iterable[Grid]:
        """Return r and ρ with their intervals."""
        rows = [(symbol, f"{value:.5f}", span(interval)) for symbol, value, interval in self._both()]
        return [Grid("", ("", "value", "95 % interval"), rows, ("value",))]

    def _both(self) -> tuple[tuple[str, float, tuple[float, float] | None], ...]:
        return ("r", self.r, self.r_interval), ("ρ", self.rho, self.rho_interval)

    @classmethod
    def of(cls, first: str, second: str, a: np.ndarray, b: np.ndarray) -> Correlation:
        """Return the correlation of (seeds, points) curves; points that a seed does not have are left out."""
        is_defined = np.isfinite(a).all(axis=0) & np.isfinite(b).all(axis=0)
        a, b = a[:, is_defined], b[:, is_defined]
        if a.shape[1] < 3:  # the correlation of two points is always ±1
            raise UndefinedError(
                f"the correlation of {first} and {second} needs at least 3 points; there are {a.shape[1]}"
            )
        r, rho = (_averaged(a, b, rank=rank) for rank in (False, True))
        if not (np.isfinite(r) and np.isfinite(rho)):
            raise UndefinedError(f"the correlation of {first} and {second} is undefined: a curve is constant")
        pairs = list(zip(a, b, strict=True))
        return cls(
            first,
            second,
            r,
            rho,
            _jackknife(a, b, rank=False),
            _jackknife(a, b, rank=True),
            tuple(pearson(x, y) for x, y in pairs),
            tuple(pearson(ranks(x), ranks(y)) for x, y in pairs),
            a.shape[1],
        )


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Return Pearson's r; NaN if x or y is constant."""
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt((x @ x) * (y @ y))
    return float(np.clip((x @ y) / scale, -1, 1)) if scale > 0 else float("nan")


def ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks from 1; equal values have the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def _averaged(a: np.ndarray, b: np.ndarray, *, rank: bool) -> float:
    return _of_curves(a.mean(axis=0), b.mean(axis=0), rank=rank)


def _of_curves(x: np.ndarray, y: np.ndarray, *, rank: bool) -> float:
    return pearson(ranks(x), ranks(y)) if rank else pearson(x, y)


def _jackknife(a: np.ndarray, b: np.ndarray, *, rank: bool) -> tuple[float, float] | None:
    """Return the 95 % interval of the averaged curves' correlation; None for one seed."""
    k = len(a)
    if k < 2:
        return None
    from scipy.special import stdtrit

    value = _averaged(a, b, rank=rank)
    others = [(whole.sum(axis=0) - whole) / (k - 1) for whole in (a, b)]  # means with a seed left out
    left_out = np.array([_of_curves(x, y, rank=rank) for x, y in zip(*others, strict=True)])
    error = np.sqrt((k - 1) / k * ((left_out - left_out.mean()) ** 2).sum())
    half = float(stdtrit(k - 1, 0.975) * error)
    return max(value - half, -1.0), min(value + half, 1.0)
