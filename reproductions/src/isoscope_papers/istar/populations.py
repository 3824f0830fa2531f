"""Populations whose IsoScore is known exactly, to draw mini-batches from: made ones, and token states.

Of a spectrum the truth is a closed form. Token states are a finite population: vectors drawn from it with
replacement have its covariance, to the last digit, for theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from isoscope.encoders.states import TokenStates, token_states
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.sinks import find_sinks
from isoscope_papers.corpora import load_texts

N_DIMS = 768
N_REFERENCE = 250_000  # vectors C₀ is made of, the paper's
STRETCH = 32  # tokens in a row, about a sentence
FRESH, STALE = "fresh", "stale"
_TAILS = 5  # degrees of freedom of the heavy-tailed ones
_BLOCK = 25_000
_CORPUS, _SPLIT = "wikitext2", "test"
WINDOW = 64  # tokens a model reads at once, about the length of a task's texts


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Vectors with independent coordinates of these variances; of heavy tails, all scaled by one draw.

    Attributes:
        name, title: what it is called in files, and on pages.
        variances: (d,) of the principal directions.
        other: (d,) variances of the C₀ that is not its own.
        stale: what that C₀ is, in words.
        heavy: Student's t of 5 degrees in place of the normal distribution.
    """

    name: str
    title: str
    variances: Tensor
    other: Tensor
    stale: str
    heavy: bool = False
    clusters: None = None
    kind: str = "spectrum"

    @property
    def n_dims(self) -> int:
        """d."""
        return len(self.variances)

    @property
    def truth(self) -> float:
        """IsoScore of the covariance."""
        v = self.variances
        return float((v.sum() ** 2 / (v @ v) - 1) / (len(v) - 1))

    def rows(self, n: int, source: torch.Generator) -> Tensor:
        """(n, d) float32, independent."""
        found = torch.randn(n, self.n_dims, generator=source) * self.variances.sqrt().float()
        if not self.heavy:
            return found
        squares = torch.randn(n, _TAILS, generator=source).square().sum(dim=1, keepdim=True)
        return found * (squares / (_TAILS - 2)).rsqrt()  # of variance 1, like the normal

    def references(self, source: torch.Generator) -> dict[str, Tensor]:
        """(d, d) each: C₀ from a large sample of its own, and one of another space."""
        total = torch.zeros(self.n_dims, self.n_dims)
        mean = torch.zeros(self.n_dims)
        for _ in range(N_REFERENCE // _BLOCK):
            rows = self.rows(_BLOCK, source)
            total.addmm_(rows.T, rows)
            mean += rows.sum(dim=0)
        mean /= N_REFERENCE
        fresh = (total - N_REFERENCE * torch.outer(mean, mean)) / (N_REFERENCE - 1)
        scaled = self.other * (self.variances.sum() / self.other.sum())
        return {FRESH: fresh, STALE: torch.diag(scaled.float())}


@dataclass(frozen=True, eq=False)
class States:
    """Token states as a finite population.

    Attributes:
        name, title: what it is called in files, and on pages.
        vectors: (N, d) float32.
        other: (M, d) the states whose covariance is the C₀ that is not its own.
        stale: what those are, in words.
        clusters: (C, m) the rows that come together where a batch is made of whole stretches of text.
    """

    name: str
    title: str
    vectors: Tensor
    other: Tensor
    stale: str
    clusters: Tensor | None
    kind: str = "states"

    @property
    def n_dims(self) -> int:
        """d."""
        return int(self.vectors.shape[1])

    @cached_property
    def truth(self) -> float:
        """IsoScore of all of them."""
        return float(isoscore(self.vectors))

    def rows(self, n: int, source: torch.Generator) -> Tensor:
        """(n, d) drawn with replacement."""
        return self.vectors[torch.randint(len(self.vectors), (n,), generator=source)]

    def stretches(self, n: int, source: torch.Generator) -> Tensor:
        """(n·m, d) whole stretches drawn with replacement, the rows of each together."""
        assert self.clusters is not None
        return self.vectors[
            self.clusters[torch.randint(len(self.clusters), (n,), generator=source)].flatten()
        ]

    def references(self, source: torch.Generator) -> dict[str, Tensor]:
        """As of `Spectrum`; a row drawn several times counts so often."""
        drawn = torch.randint(len(self.vectors), (N_REFERENCE,), generator=source)
        weights = torch.bincount(drawn, minlength=len(self.vectors)).float()
        return {FRESH: _covariance(self.vectors, weights), STALE: _covariance(self.other)}


Population = Spectrum | States


def _covariance(rows: Tensor, weights: Tensor | None = None) -> Tensor:
    weights = torch.ones(len(rows)) if weights is None else weights
    n = weights.sum()
    centred = rows - (weights[:, None] * rows).sum(dim=0) / n
    return (weights[:, None] * centred).T @ centred / (n - 1)


def spectra(d: int = N_DIMS) -> list[Spectrum]:
    """Flat, geometric and power-law spectra, and one direction that is 50, 200, 2,000 times the others."""
    flat = torch.ones(d, dtype=torch.float64)
    geometric = torch.from_numpy(np.geomspace(1, 1e-3, d))
    power = 1 / torch.arange(1, d + 1, dtype=torch.float64)
    level = "a flat C₀ of the same total variance"
    found = [
        Spectrum("flat", "flat", flat, geometric, "a geometric C₀ of the same total variance"),
        Spectrum("geometric", "geometric, 1 … 0.001", geometric, flat, level),
        Spectrum("geometric-t5", "geometric, heavy tails (t₅)", geometric, flat, level, heavy=True),
        Spectrum("power", "power law, 1/k", power, flat, level),
        Spectrum("power-t5", "power law, heavy tails (t₅)", power, flat, level, heavy=True),
    ]
    for times in (50, 200, 2000):
        rogue = flat.clone()
        rogue[0] = times
        found.append(Spectrum(f"rogue-{times}", f"one direction {times:,} ×", rogue, flat, level))
    return found


def state_populations(
    *,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    device: str | None = None,
    models: Mapping[str, int] | None = None,
    progress: bool | None = None,
) -> Iterator[States]:
    """A middle layer, the last one, and all layers together, of each model on WikiText-2.

    models: how many tokens of which; by default 8,192 of all-mpnet-base-v2 and MiniLM each, and 4,096 of
    SmolLM2-135M, which has attention sinks and is taken with and without them.
    """
    asked = models or {"all-mpnet-base-v2": 8192, "all-MiniLM-L6-v2": 8192, "smollm2-135m": 4096}
    texts = list(load_texts(_CORPUS, data=data, split=_SPLIT, download=download))
    for model, n_tokens in asked.items():
        states = token_states(
            texts, model=model, window=WINDOW, max_tokens=n_tokens, device=device, download=download,
            progress=progress,
        )  # fmt: skip
        yield from of_states(states)


def of_states(states: TokenStates) -> Iterator[States]:
    """A middle layer, the last one, and all above the embedding layer; without sinks where there are any."""
    blocks = [layer for layer in states.layers if layer > 0]
    norms = torch.stack([states.vectors(layer).norm(dim=1) for layer in blocks])
    sinks = find_sinks(norms, positions=states.rows.positions, token_types=states.rows.types, layers=blocks)
    views = [("", "", torch.arange(len(states)))]
    if len(sinks):
        views = [
            ("-sinks", ", with attention sinks", views[0][2]),
            ("", ", without sinks", (~sinks.mask).nonzero().flatten()),
        ]
    middle, last = blocks[len(blocks) // 2 - 1], blocks[-1]
    for suffix, words, places in views:
        places = places[: len(places) // STRETCH * STRETCH]
        for chosen, other in (([middle], last), ([last], middle), (blocks, last)):
            whole = len(chosen) > 1
            where = f"layers {chosen[0]}–{chosen[-1]}" if whole else f"layer {chosen[0]}"
            yield States(
                f"{states.model}-{'all' if whole else chosen[0]}{suffix}",
                f"{states.model}, {where}{words}",
                torch.cat([states.vectors(layer)[places] for layer in chosen]),
                states.vectors(other)[places],
                f"C₀ of layer {other}",
                _clusters(len(places), len(chosen)),
            )


def _clusters(n_tokens: int, n_layers: int) -> Tensor:
    """Stretches of tokens, each with its states in every layer, which lie one layer after another."""
    tokens = torch.arange(n_tokens).view(-1, 1, STRETCH)
    return (tokens + n_tokens * torch.arange(n_layers)[:, None]).flatten(1)
