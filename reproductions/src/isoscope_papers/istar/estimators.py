"""Figure 4 of *Stable Anisotropic Regularization*: estimates of isotropy from mini-batches against the truth.

IsoScore* at every ζ is a formula over four numbers of a batch's covariance S: tr S, ‖S‖_F² and ⟨S, C₀⟩ with
either C₀. The debiased scores are isoscope's own, batch by batch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from isoscope import isoscore
from isoscope.errors import FileError, UndefinedError
from isoscope.models import best_device
from isoscope.progress import Bar
from isoscope_papers.istar.populations import FRESH, STALE, Known, Population
from isoscope_papers.istar.setups import PAPER_ZETA
from isoscope_papers.runs import read

FILE = "istar-estimators.json"
SIZES = (4, 8, 16, 32, 64, 128, 256, 1024)
N_STRETCHES = (1, 2, 4, 8)
ZETAS = tuple(k / 10 for k in range(1, 11))
INDEPENDENT, STRETCHES = "independent", "stretches"
BATCH = 32  # the size the claims are about: as many batches as any
_MIN_DRAWS, _MAX_DRAWS, _ROWS = 200, 4096, 65_536  # batches a cell: by the rows they take, within bounds
_BYTES_AT_ONCE = 64 * 2**20
_JACKKNIFED = range(5, 256)  # vectors of a batch: four are left, and leaving out each takes not too long


class Estimator(NamedTuple):
    """kind: "plain", "star", "debiased", "jackknife"; of IsoScore*, ζ and which C₀ ("fresh", "stale")."""

    kind: str
    zeta: float = 0.0
    reference: str = ""


PLAIN, DEBIASED, JACKKNIFE = Estimator("plain"), Estimator("debiased"), Estimator("jackknife")
STARS = {name: tuple(Estimator("star", zeta, name) for zeta in ZETAS) for name in (FRESH, STALE)}
PAPER_ESTIMATOR = Estimator("star", PAPER_ZETA, FRESH)
ESTIMATORS = (PLAIN, *STARS[FRESH], *STARS[STALE], DEBIASED, JACKKNIFE)


def estimates(batches: Tensor, references: Mapping[str, Tensor]) -> np.ndarray:
    """Return (estimators, B) of (B, n, d) batches, in the order of `ESTIMATORS`; NaN where undefined."""
    n, d = batches.shape[1:]
    U = (batches - batches.mean(dim=1, keepdim=True)).double() / (n - 1) ** 0.5  # S = UᵀU
    trace, square = U.square().sum(dim=(1, 2)), (U @ U.mT if n < d else U.mT @ U).square().sum(dim=(1, 2))
    inner = {name: ((U @ C0.double()) * U).sum(dim=(1, 2)) for name, C0 in references.items()}
    rows = []
    for kind, zeta, name in ESTIMATORS:
        if kind in ("plain", "star"):
            t, s = trace, square
            if kind == "star":
                C0, a = references[name].double(), 1 - zeta
                t = a * trace + zeta * C0.trace()
                s = a * a * square + 2 * a * zeta * inner[name] + zeta * zeta * C0.square().sum()
            rows.append(((t * t / s - 1) / (d - 1)).cpu().numpy())
        elif kind == "debiased" or n in _JACKKNIFED:
            rows.append(np.array([_debiased(batch, kind) for batch in batches]))
        else:
            rows.append(np.full(len(batches), np.nan))
    return np.stack(rows)


def _debiased(batch: Tensor, kind: str) -> float:
    try:
        return float(isoscore(batch, debias="jackknife" if kind == "jackknife" else True))
    except UndefinedError:
        return math.nan


class Spread(NamedTuple):
    """Mean, bias, the bias's standard error, standard deviation, root mean square error; and counts."""

    mean: float | None
    bias: float | None
    error: float | None
    sd: float | None
    rmse: float | None
    n_draws: int
    n_undefined: int
    n_outside: int


@dataclass(frozen=True)
class Cell:
    """All estimators on batches of one size from one population, in the order of `ESTIMATORS`.

    Attributes:
        population: its name.
        sampling: "independent" vectors, or whole "stretches" of text.
        n, n_draws: vectors a batch, and batches.
        mean, sd: of the estimates that are defined; None where fewer than two are.
        n_undefined, n_outside: estimates without a value, and outside [0, 1].
    """

    population: str
    sampling: str
    n: int
    n_draws: int
    mean: tuple[float | None, ...]
    sd: tuple[float | None, ...]
    n_undefined: tuple[int, ...]
    n_outside: tuple[int, ...]

    @classmethod
    def of_values(cls, population: str, sampling: str, n: int, values: np.ndarray) -> Cell:
        """Summarise (estimators, draws)."""
        defined = [row[np.isfinite(row)] for row in values]
        undefined = [len(row) - len(own) for row, own in zip(values, defined, strict=True)]
        if n not in _JACKKNIFED:
            undefined[ESTIMATORS.index(JACKKNIFE)] = 0  # it was not taken
        return cls(
            population, sampling, n, values.shape[1],
            tuple(float(row.mean()) if len(row) > 1 else None for row in defined),
            tuple(float(row.std(ddof=1)) if len(row) > 1 else None for row in defined),
            tuple(undefined), tuple(((values < 0) | (values > 1 + 1e-6)).sum(axis=1).tolist()),
        )  # fmt: skip

    def of(self, estimator: Estimator, truth: float) -> Spread:
        """Return one estimator against the truth."""
        place = ESTIMATORS.index(estimator)
        mean, sd = self.mean[place], self.sd[place]
        counts = (self.n_draws, self.n_undefined[place], self.n_outside[place])
        if mean is None or sd is None:
            return Spread(None, None, None, None, None, *counts)
        bias, n = mean - truth, self.n_draws - self.n_undefined[place]
        return Spread(mean, bias, sd / n**0.5, sd, (bias**2 + sd**2 * (n - 1) / n) ** 0.5, *counts)

    def least_biased(self, estimators: Sequence[Estimator], truth: float) -> Estimator:
        """Return the estimator with the least bias."""
        biases = {one: self.of(one, truth).bias for one in estimators}
        return min(estimators, key=lambda one: np.inf if (bias := biases[one]) is None else abs(bias))


@dataclass(frozen=True)
class Estimates:
    """The estimators on all populations: what they were made on, and the cells."""

    about: dict[str, Any]
    estimators: tuple[tuple[str, float, str], ...]
    populations: tuple[Known, ...]
    cells: tuple[Cell, ...]

    def cell(self, population: str, n: int, sampling: str = INDEPENDENT) -> Cell | None:
        """Return the cell of a population and a size."""
        return next((one for one in self.cells_of(population, sampling) if one.n == n), None)

    def cells_of(self, population: str, sampling: str = INDEPENDENT) -> list[Cell]:
        """Return the cells of a population by size."""
        own = [one for one in self.cells if (one.population, one.sampling) == (population, sampling)]
        return sorted(own, key=lambda one: one.n)


def run_estimators(
    populations: Iterable[Population],
    *,
    sizes: Sequence[int] = SIZES,
    n_stretches: Sequence[int] = N_STRETCHES,
    max_draws: int = _MAX_DRAWS,
    seed: int = 0,
    device: str | None = None,
    progress: bool | None = None,
) -> Estimates:
    """Draw batches of every size from every population and compare the estimators."""
    began, place = time.perf_counter(), best_device(device)
    known, cells = [], []
    with Bar(show=progress) as bar:
        for one in populations:
            name, d, stretch = one.known.name, one.known.n_dims, one.known.stretch
            bar.step(one.known.title, at_once=True)
            drawn = one.references(_source(seed, name, "reference", 0))
            references = {which: C0.to(place) for which, C0 in drawn.items()}
            known.append(one.known)
            plan = [(INDEPENDENT, n, n) for n in sizes]
            plan += [(STRETCHES, count, count * stretch) for count in n_stretches if stretch]
            for sampling, size, n in plan:
                n_draws = max_draws if n == BATCH else min(max(_ROWS // n, _MIN_DRAWS), max_draws)
                source = _source(seed, name, sampling, size)
                values = [
                    estimates(rows.to(place).view(-1, n, d), references)
                    for rows in _batches(one, sampling, size, n, n_draws, source)
                ]
                cells.append(Cell.of_values(name, sampling, n, np.concatenate(values, axis=1)))
    about = {
        "seed": seed, "device": str(place), "torch": torch.__version__, "max_draws": max_draws,
        "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip
    return Estimates(about, ESTIMATORS, tuple(known), tuple(cells))


def _source(seed: int, name: str, sampling: str, size: int) -> torch.Generator:
    """Return random numbers of its own for each cell, whichever others there are."""
    words = np.random.SeedSequence([seed, size, *sampling.encode(), *name.encode()]).generate_state(2)
    return torch.Generator().manual_seed(int(words[0]) << 31 | int(words[1]) >> 1)


def _batches(
    one: Population, sampling: str, size: int, n: int, n_draws: int, source: torch.Generator
) -> Iterator[Tensor]:
    """Yield the rows of as many batches at a time as memory allows; `size` counts vectors, or stretches."""
    d = one.known.n_dims
    at_once = max(1, _BYTES_AT_ONCE // (8 * d * max(n, d if n >= d else 1)))
    draw = one.stretches if sampling == STRETCHES and one.stretches else one.rows
    for first in range(0, n_draws, at_once):
        yield draw(min(at_once, n_draws - first) * size, source)


def read_estimates(folder: Path) -> list[Estimates]:
    """Return what a folder keeps: one, or none."""
    path = folder / FILE
    if not path.exists():
        return []
    found = read(path, Estimates)
    if found.estimators != ESTIMATORS:
        raise FileError(f"{path} has other estimators than these", hint="delete it, and run the setup again")
    return [found]
