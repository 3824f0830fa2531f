"""Populations whose IsoScore is known exactly, to draw mini-batches from: made ones, and token states.

Of a spectrum the truth is a closed form. Token states are a finite population, and vectors are drawn from it
with replacement, so that its covariance is theirs exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isoscope import TokenStates, find_sinks, isoscore, reference_covariance, token_states
from isoscope_papers.corpora import load_texts

N_DIMS = 768
N_REFERENCE = 250_000  # vectors C₀ is made of, the paper's
STRETCH = 32  # tokens in a row, about a sentence
FRESH, STALE = "fresh", "stale"
WINDOW = 64  # tokens a model reads at once, about the length of a task's texts
# SmolLM2 has attention sinks and is taken with and without them
_TOKENS = {"all-mpnet-base-v2": 8192, "all-MiniLM-L6-v2": 8192, "smollm2-135m": 4096}
_TAILS = 5  # degrees of freedom of the heavy-tailed ones
_BLOCK = 25_000


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Vectors with independent coordinates of these variances; of heavy tails, all scaled by one draw.

    Attributes:
        name, title: in files, and on pages.
        variances: (d,) of the principal directions.
        other: (d,) variances of the C₀ that is not its own.
        stale: what that C₀ is, in words.
        heavy: Student's t of 5 degrees in place of the normal distribution.
    """

    name: str
    title: str
    variances: Tensor
    other: Tensor
    stale: str = "a flat C₀ of the same total variance"
    heavy: bool = False
    kind: str = "spectrum"
    n_vectors: int | None = None
    stretch: int | None = None

    @property
    def n_dims(self) -> int:
        """Return d."""
        return len(self.variances)

    @property
    def truth(self) -> float:
        """Return the IsoScore of the covariance."""
        v = self.variances
        return float((v.sum() ** 2 / (v @ v) - 1) / (len(v) - 1))

    def rows(self, n: int, source: torch.Generator) -> Tensor:
        """Return (n, d) float32, independent."""
        drawn = torch.randn(n, self.n_dims, generator=source) * self.variances.sqrt().float()
        if not self.heavy:
            return drawn
        squares = torch.randn(n, _TAILS, generator=source).square().sum(dim=1, keepdim=True)
        return drawn * (squares / (_TAILS - 2)).rsqrt()  # of variance 1, like the normal

    def references(self, source: torch.Generator) -> dict[str, Tensor]:
        """Return a (d, d) C₀ from a large sample of its own, and one of another space."""
        blocks = (self.rows(_BLOCK, source) for _ in range(N_REFERENCE // _BLOCK))
        scaled = self.other * (self.variances.sum() / self.other.sum())
        return {FRESH: reference_covariance(blocks), STALE: torch.diag(scaled.float())}


@dataclass(frozen=True, eq=False)
class States:
    """Token states as a finite population.

    Attributes:
        name, title: in files, and on pages.
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
        """Return d."""
        return int(self.vectors.shape[1])

    @property
    def n_vectors(self) -> int:
        """Return N."""
        return len(self.vectors)

    @property
    def stretch(self) -> int | None:
        """Return how many rows come together."""
        return None if self.clusters is None else int(self.clusters.shape[1])

    @cached_property
    def truth(self) -> float:
        """Return the IsoScore of all of them."""
        return float(isoscore(self.vectors))

    def rows(self, n: int, source: torch.Generator) -> Tensor:
        """Return (n, d) rows drawn with replacement."""
        return self.vectors[torch.randint(len(self.vectors), (n,), generator=source)]

    def stretches(self, n: int, source: torch.Generator) -> Tensor:
        """Return (n·m, d) whole stretches drawn with replacement, the rows of each together."""
        assert self.clusters is not None
        drawn = torch.randint(len(self.clusters), (n,), generator=source)
        return self.vectors[self.clusters[drawn].flatten()]

    def references(self, source: torch.Generator) -> dict[str, Tensor]:
        """Return the same as of `Spectrum`; a row drawn several times counts so often."""
        drawn = torch.randint(len(self.vectors), (N_REFERENCE,), generator=source)
        counts = torch.bincount(drawn, minlength=len(self.vectors))
        return {FRESH: torch.cov(self.vectors.T, fweights=counts), STALE: torch.cov(self.other.T)}


Population = Spectrum | States


def spectra(d: int = N_DIMS) -> list[Spectrum]:
    """Return flat, geometric and power-law spectra, and one direction 50, 200, 2,000 times the others."""
    flat = torch.ones(d, dtype=torch.float64)
    geometric = torch.from_numpy(np.geomspace(1, 1e-3, d))
    power = 1 / torch.arange(1, d + 1, dtype=torch.float64)
    rogues = {times: torch.cat([flat[:1] * times, flat[1:]]) for times in (50, 200, 2000)}
    return [
        Spectrum("flat", "flat", flat, geometric, "a geometric C₀ of the same total variance"),
        Spectrum("geometric", "geometric, 1 … 0.001", geometric, flat),
        Spectrum("geometric-t5", "geometric, heavy tails (t₅)", geometric, flat, heavy=True),
        Spectrum("power", "power law, 1/k", power, flat),
        Spectrum("power-t5", "power law, heavy tails (t₅)", power, flat, heavy=True),
        *(Spectrum(f"rogue-{k}", f"one direction {k:,} ×", rogue, flat) for k, rogue in rogues.items()),
    ]


def state_populations(data: Path | None, download: bool, device: str | None) -> Iterator[States]:
    """Yield a middle layer, the last one, and all layers together, of each model on WikiText-2."""
    texts = list(load_texts("wikitext2", data=data, split="test", download=download))
    for model, n in _TOKENS.items():
        yield from of_states(
            token_states(texts, model=model, window=WINDOW, max_tokens=n, device=device, download=download)
        )


def of_states(states: TokenStates) -> Iterator[States]:
    """Yield a middle layer, the last one, and all above the embedding layer; also without sinks, if any."""
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
        n_tokens = len(places) // STRETCH * STRETCH
        places = places[:n_tokens]
        stretches = torch.arange(n_tokens).view(-1, 1, STRETCH)
        for chosen, other in (([middle], last), ([last], middle), (blocks, last)):
            whole = len(chosen) > 1
            where = f"layers {chosen[0]}–{chosen[-1]}" if whole else f"layer {chosen[0]}"
            # a stretch has its tokens' states in every layer; the layers lie one after another
            clusters = (stretches + n_tokens * torch.arange(len(chosen))[:, None]).flatten(1)
            yield States(
                f"{states.model}-{'all' if whole else chosen[0]}{suffix}", f"{states.model}, {where}{words}",
                torch.cat([states.vectors(layer)[places] for layer in chosen]),
                states.vectors(other)[places], f"C₀ of layer {other}", clusters,
            )  # fmt: skip
