"""Figure 4 of *Stable Anisotropic Regularization*: estimates of isotropy from mini-batches against the truth.

Many batches at a time: all estimators are formulas over four numbers of a batch's scatter A = Σ u uᵀ,

    tr A,   ‖A‖_F²,   Σ‖u‖⁴,   ⟨A, C₀⟩
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import FileError
from isoscope.io.sealed import read_json, write_json
from isoscope.progress import Bar
from isoscope_papers.istar.populations import FRESH, STALE, Population, States
from isoscope_papers.istar.sweep import ESTIMATORS as FILE
from isoscope_papers.pages import make_folder

SIZES = (4, 8, 16, 32, 64, 128, 256, 1024)
N_STRETCHES = (1, 2, 4, 8)
ZETAS = tuple(k / 10 for k in range(1, 11))
INDEPENDENT, STRETCHES = "independent", "stretches"
_MIN_DRAWS, _MAX_DRAWS, _ROWS = 200, 4096, 65_536  # batches a cell: by the rows they take, within bounds
BATCH = 32  # the size the claims are about: as many batches as any
_BYTES_AT_ONCE = 64 * 2**20
_BY_SCATTER = 256  # vectors from which on the (d, d) scatter is cheaper than a product with each C₀
_JACKKNIFE = 5  # vectors: four are left
_NO_SQUARE = 1e-12  # an estimate of tr Σ² under this share of (tr Σ)² is rounding, not variance


class Estimator(NamedTuple):
    """kind: "plain", "star", "debiased", "jackknife"; of IsoScore*, ζ and which C₀ ("fresh", "stale")."""

    kind: str
    zeta: float = 0.0
    reference: str = ""


PLAIN, DEBIASED, JACKKNIFE = Estimator("plain"), Estimator("debiased"), Estimator("jackknife")
ESTIMATORS = (
    PLAIN,
    *(Estimator("star", zeta, FRESH) for zeta in ZETAS),
    *(Estimator("star", zeta, STALE) for zeta in ZETAS),
    DEBIASED,
    JACKKNIFE,
)


class BatchSums(NamedTuple):
    """(B,) float64 each: tr A, ‖A‖_F², Σ‖u‖⁴, and ⟨A, C₀⟩ by the C₀'s name; the n and d of the batches.

    left_out: the same, but for ⟨A, C₀⟩, of each batch without each of its vectors, (B, n); None of batches
    so large that their Gram matrix is not taken, or so small that too few would be left.
    """

    trace: Tensor
    square: Tensor
    quartic: Tensor
    inner: Mapping[str, Tensor]
    n: int
    d: int
    left_out: BatchSums | None = None


def batch_sums(batches: Tensor, references: Mapping[str, Tensor]) -> BatchSums:
    """The sums of (B, n, d) batches."""
    n, d = batches.shape[1:]
    U = batches - batches.mean(dim=1, keepdim=True)
    if n >= _BY_SCATTER:
        squares = U.square().sum(dim=2).double()
        A = U.mT @ U
        inner = {name: (A * C0).sum(dim=(1, 2)).double() for name, C0 in references.items()}
        square = A.square().sum(dim=(1, 2)).double()
    else:
        inner = {name: ((U @ C0) * U).sum(dim=(1, 2)).double() for name, C0 in references.items()}
        wide = U.double()  # few vectors: the debiased score takes differences of nearly equal sums
        return _of_gram(wide @ wide.mT, inner, d)
    return BatchSums(squares.sum(dim=1), square, squares.square().sum(dim=1), inner, n, d)


def _of_gram(G: Tensor, inner: Mapping[str, Tensor], d: int) -> BatchSums:
    """From the (B, n, n) products of centred vectors: without u the scatter is A − n/(n−1)·u uᵀ."""
    n = G.shape[1]
    own = G.diagonal(dim1=1, dim2=2)
    square, quartic = G.square().sum(dim=(1, 2)), own.square().sum(dim=1)
    whole = BatchSums(own.sum(dim=1), square, quartic, inner, n, d)
    if n < _JACKKNIFE:
        return whole
    k, m = n / (n - 1), 1 / (n - 1)
    along = G.square().sum(dim=2)  # uᵀAu
    lengths = own[:, None, :] + 2 * m * G + m * m * own[:, :, None]  # ‖v‖² about the mean without u
    lengths = lengths.square().sum(dim=2) - ((1 + m) ** 2 * own).square()
    left_out = BatchSums(
        whole.trace[:, None] - k * own, square[:, None] - 2 * k * along + k * k * own.square(), lengths, {},
        n - 1, d,
    )  # fmt: skip
    return whole._replace(left_out=left_out)


def estimates(sums: BatchSums, references: Mapping[str, Tensor]) -> Tensor:
    """(estimators, B) in the order of `ESTIMATORS`; NaN where an estimate is undefined."""
    sizes = {name: (C0.double().trace(), C0.double().square().sum()) for name, C0 in references.items()}
    found = []
    for kind, zeta, name in ESTIMATORS:
        if kind == "debiased":
            found.append(debiased(sums))
        elif kind == "jackknife":
            found.append(_jackknifed(sums))
        elif kind == "plain":
            found.append(_score(sums.trace**2 / sums.square, sums.d))
        else:
            a, (t0, s0) = (1 - zeta) / (sums.n - 1), sizes[name]
            trace = a * sums.trace + zeta * t0
            square = a * a * sums.square + 2 * a * zeta * sums.inner[name] + zeta * zeta * s0
            found.append(_score(trace**2 / square, sums.d))
    return torch.stack(found)


def debiased(sums: BatchSums) -> Tensor:
    """(B,) the ratio of unbiased (tr Σ)² and tr Σ² as a score (Himeno and Yamada 2014)."""
    n = sums.n
    t, f = sums.trace / (n - 1), sums.square / (n - 1) ** 2
    Q = sums.quartic / (n - 1)
    squared_trace = 2 * f + (n * n - 3 * n + 1) * t * t - n * Q
    trace_of_square = (n - 1) * (n - 2) * f + t * t - n * Q
    score = _score(squared_trace / trace_of_square, sums.d)
    return score.where(trace_of_square > _NO_SQUARE * squared_trace, torch.nan)


def _jackknifed(sums: BatchSums) -> Tensor:
    """(B,) the debiased score less the bias that leaving each vector out in turn shows of it."""
    if sums.left_out is None:
        return torch.full_like(sums.trace, torch.nan)
    return sums.n * debiased(sums) - (sums.n - 1) * debiased(sums.left_out).mean(dim=1)


def _score(participation: Tensor, d: int) -> Tensor:
    return (participation - 1) / (d - 1)


@dataclass(frozen=True)
class Cell:
    """All estimators on batches of one size from one population, in the order of `ESTIMATORS`.

    Attributes:
        population: its name.
        sampling: "independent" vectors, or whole "stretches" of text.
        n: vectors a batch.
        n_draws: batches.
        mean, sd: of the estimates that are defined; None where fewer than two are.
        n_undefined: estimates without a value.
        n_outside: estimates outside [0, 1].
    """

    population: str
    sampling: str
    n: int
    n_draws: int
    mean: tuple[float | None, ...]
    sd: tuple[float | None, ...]
    n_undefined: tuple[int, ...]
    n_outside: tuple[int, ...]

    def of(self, estimator: Estimator, truth: float) -> Spread:
        """One estimator against the truth."""
        place = ESTIMATORS.index(estimator)
        mean, sd = self.mean[place], self.sd[place]
        counts = (self.n_draws, self.n_undefined[place], self.n_outside[place])
        if mean is None or sd is None:
            return Spread(None, None, None, None, None, *counts)
        bias = mean - truth
        n = self.n_draws - self.n_undefined[place]
        return Spread(mean, bias, sd / n**0.5, sd, (bias**2 + sd**2 * (n - 1) / n) ** 0.5, *counts)


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
class Known:
    """A population as a study keeps it."""

    name: str
    title: str
    kind: str
    n_dims: int
    truth: float
    stale: str
    n_vectors: int | None = None
    stretch: int | None = None


@dataclass(frozen=True)
class Study:
    """The populations, the cells, and what the study was made on."""

    populations: tuple[Known, ...]
    cells: tuple[Cell, ...]
    about: Mapping[str, Any]

    def cell(self, population: str, n: int, sampling: str = INDEPENDENT) -> Cell | None:
        """The cell of a population and a size."""
        wanted = (population, n, sampling)
        return next((one for one in self.cells if (one.population, one.n, one.sampling) == wanted), None)

    def cells_of(self, population: str, sampling: str = INDEPENDENT) -> list[Cell]:
        """The cells of a population by size."""
        found = [one for one in self.cells if (one.population, one.sampling) == (population, sampling)]
        return sorted(found, key=lambda one: one.n)


def run_study(
    populations: Iterable[Population],
    *,
    sizes: Sequence[int] = SIZES,
    n_stretches: Sequence[int] = N_STRETCHES,
    max_draws: int = _MAX_DRAWS,
    seed: int = 0,
    device: str | torch.device = "cpu",
    progress: bool | None = None,
) -> Study:
    """Draw batches of every size from every population and compare the estimators."""
    began = time.perf_counter()
    known, cells = [], []
    with Bar(show=progress) as bar:
        for population in populations:
            bar.step(population.title, at_once=True)
            sources = (_source(seed, population.name, use) for use in _uses(population, sizes, n_stretches))
            references = {name: C0.to(device) for name, C0 in population.references(next(sources)[1]).items()}
            known.append(_known(population))
            for (sampling, n), source in sources:
                cells.append(_cell(population, sampling, n, source, references, max_draws, device))
    about = {
        "seed": seed, "device": str(device), "torch": torch.__version__, "max_draws": max_draws,
        "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip
    return Study(tuple(known), tuple(cells), about)


def _uses(
    population: Population, sizes: Sequence[int], n_stretches: Sequence[int]
) -> Iterator[tuple[str, int]]:
    yield "reference", 0
    yield from ((INDEPENDENT, n) for n in sizes)
    if population.clusters is not None:
        yield from ((STRETCHES, n) for n in n_stretches)


def _source(seed: int, name: str, use: tuple[str, int]) -> tuple[tuple[str, int], torch.Generator]:
    """Random numbers of its own for each cell, whichever others there are."""
    words = np.random.SeedSequence([seed, use[1], *use[0].encode(), *name.encode()]).generate_state(2)
    return use, torch.Generator().manual_seed(int(words[0]) << 31 | int(words[1]) >> 1)


def _known(one: Population) -> Known:
    return Known(
        one.name, one.title, one.kind, one.n_dims, one.truth, one.stale,
        len(one.vectors) if isinstance(one, States) else None,
        None if one.clusters is None else int(one.clusters.shape[1]),
    )  # fmt: skip


def _cell(
    population: Population,
    sampling: str,
    size: int,
    source: torch.Generator,
    references: Mapping[str, Tensor],
    max_draws: int,
    device: str | torch.device,
) -> Cell:
    """`size` is the vectors of a batch, or its stretches."""
    d = population.n_dims
    stretch = int(population.clusters.shape[1]) if population.clusters is not None else 1
    n = size * stretch if sampling == STRETCHES else size
    n_draws = max_draws if n == BATCH else min(max(_ROWS // n, _MIN_DRAWS), max_draws)
    at_once = max(1, _BYTES_AT_ONCE // (4 * d * max(n, d if n >= _BY_SCATTER else 1)))
    parts = []
    for first in range(0, n_draws, at_once):
        m = min(at_once, n_draws - first)
        if sampling == STRETCHES:
            assert isinstance(population, States)
            rows = population.stretches(m * size, source)
        else:
            rows = population.rows(m * n, source)
        sums = batch_sums(rows.to(device).view(m, n, d), references)
        parts.append(estimates(sums, references).cpu())
    return _summed(population.name, sampling, n, torch.cat(parts, dim=1).numpy())


def _summed(population: str, sampling: str, n: int, values: np.ndarray) -> Cell:
    mean: list[float | None] = []
    sd: list[float | None] = []
    for row in values:
        defined = row[np.isfinite(row)]
        enough = len(defined) > 1
        mean.append(float(defined.mean()) if enough else None)
        sd.append(float(defined.std(ddof=1)) if enough else None)
    undefined = (~np.isfinite(values)).sum(axis=1).tolist()
    if not _JACKKNIFE <= n < _BY_SCATTER:
        undefined[ESTIMATORS.index(JACKKNIFE)] = 0  # it was not taken
    outside = tuple(((values < 0) | (values > 1 + 1e-6)).sum(axis=1).tolist())
    return Cell(population, sampling, n, values.shape[1], tuple(mean), tuple(sd), tuple(undefined), outside)


def keep(study: Study, folder: Path) -> Path:
    """Write istar-estimators.json."""
    facts = {
        "about": dict(study.about),
        "estimators": [list(one) for one in ESTIMATORS],
        "populations": [asdict(row) for row in study.populations],
        "cells": [asdict(row) for row in study.cells],
    }
    make_folder(folder)
    return write_json(folder / FILE, facts)


def read_study(folder: Path) -> Study | None:
    """What a folder keeps; None where it keeps no study."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        facts = read_json(path, sealed=False)
        if facts["estimators"] != [list(one) for one in ESTIMATORS]:
            raise ValueError("it has other estimators; make it again")
        cells = [_read_cell(one) for one in facts["cells"]]
        return Study(tuple(Known(**one) for one in facts["populations"]), tuple(cells), facts["about"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{path} does not hold a study of estimators: {error}") from error


def _read_cell(facts: dict[str, Any]) -> Cell:
    lists = {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
    return Cell(**(facts | lists))
