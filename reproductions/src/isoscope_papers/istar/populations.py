"""Populations whose IsoScore is known exactly, to draw mini-batches from: made ones, and token states.

Of a spectrum the truth is a closed form. Token states are a finite population, and vectors are drawn from it
with replacement, so that its covariance is theirs exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isoscope import isoscore
from isoscope.losses import reference_covariance
from isoscope.metrics import find_sinks
from isoscope.models import TokenStates, token_states
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


Draw = Callable[[int, torch.Generator], Tensor]


@dataclass(frozen=True)
class Known:
    """What is known of a population: its title, d, the true IsoScore, and what the C₀ not its own is."""

    name: str
    title: str
    kind: str
    n_dims: int
    truth: float
    stale: str
    n_vectors: int | None = None
    stretch: int | None = None


@dataclass(frozen=True, eq=False)
class Population:
    """A population to draw from.

    Attributes:
        known: what is known of it.
        rows: draws (n, d) float32, independent.
        references: a (d, d) C₀ from a large sample of its own, and one of another space.
        stretches: draws (n·m, d) whole stretches of text, the m rows of each together.
    """

    known: Known
    rows: Draw
    references: Callable[[torch.Generator], dict[str, Tensor]]
    stretches: Draw | None = None


def of_spectrum(
    name: str,
    title: str,
    variances: Tensor,
    other: Tensor,
    stale: str = "a flat C₀ of the same total variance",
    *,
    heavy: bool = False,
) -> Population:
    """Return vectors with independent coordinates of these variances; of heavy tails, all scaled by one draw.

    Args:
        name, title: in files, and on pages.
        variances: (d,) of the principal directions.
        other: (d,) variances of the C₀ that is not its own.
        stale: what that C₀ is, in words.
        heavy: Student's t of 5 degrees in place of the normal distribution.
    """

    def rows(n: int, source: torch.Generator) -> Tensor:
        drawn = torch.randn(n, len(variances), generator=source) * variances.sqrt().float()
        if not heavy:
            return drawn
        squares = torch.randn(n, _TAILS, generator=source).square().sum(dim=1, keepdim=True)
        return drawn * (squares / (_TAILS - 2)).rsqrt()  # of variance 1, like the normal

    def references(source: torch.Generator) -> dict[str, Tensor]:
        blocks = (rows(_BLOCK, source) for _ in range(N_REFERENCE // _BLOCK))
        scaled = other * (variances.sum() / other.sum())
        return {FRESH: reference_covariance(blocks), STALE: torch.diag(scaled.float())}

    truth = float((variances.sum() ** 2 / (variances @ variances) - 1) / (len(variances) - 1))
    return Population(Known(name, title, "spectrum", len(variances), truth, stale), rows, references)


def of_vectors(
    name: str, title: str, vectors: Tensor, other: Tensor, stale: str, clusters: Tensor | None = None
) -> Population:
    """Return (N, d) float32 vectors as a finite population, drawn from with replacement.

    Args:
        name, title, stale: as of `of_spectrum`.
        vectors: the population.
        other: (M, d) the states whose covariance is the C₀ that is not its own.
        clusters: (C, m) the rows that come together where a batch is made of whole stretches of text.
    """

    def rows(n: int, source: torch.Generator) -> Tensor:
        return vectors[torch.randint(len(vectors), (n,), generator=source)]

    def stretches(n: int, source: torch.Generator) -> Tensor:
        assert clusters is not None
        return vectors[clusters[torch.randint(len(clusters), (n,), generator=source)].flatten()]

    def references(source: torch.Generator) -> dict[str, Tensor]:
        drawn = torch.randint(len(vectors), (N_REFERENCE,), generator=source)
        counts = torch.bincount(drawn, minlength=len(vectors))  # a row drawn several times counts so often
        return {FRESH: torch.cov(vectors.T, fweights=counts), STALE: torch.cov(other.T)}

    n, d = vectors.shape
    stretch = None if clusters is None else int(clusters.shape[1])
    known = Known(name, title, "states", d, float(isoscore(vectors)), stale, n, stretch)
    return Population(known, rows, references, None if clusters is None else stretches)


def power_law(d: int = N_DIMS) -> Tensor:
    """Return variances 1/k."""
    return 1 / torch.arange(1, d + 1, dtype=torch.float64)


def spectra(d: int = N_DIMS) -> list[Population]:
    """Return flat, geometric and power-law spectra, and one direction 50, 200, 2,000 times the others."""
    flat = torch.ones(d, dtype=torch.float64)
    geometric = torch.from_numpy(np.geomspace(1, 1e-3, d))
    power = power_law(d)
    rogues = {times: torch.cat([flat[:1] * times, flat[1:]]) for times in (50, 200, 2000)}
    return [
        of_spectrum("flat", "flat", flat, geometric, "a geometric C₀ of the same total variance"),
        of_spectrum("geometric", "geometric, 1 … 0.001", geometric, flat),
        of_spectrum("geometric-t5", "geometric, heavy tails (t₅)", geometric, flat, heavy=True),
        of_spectrum("power", "power law, 1/k", power, flat),
        of_spectrum("power-t5", "power law, heavy tails (t₅)", power, flat, heavy=True),
        *(of_spectrum(f"rogue-{k}", f"one direction {k:,} ×", rogue, flat) for k, rogue in rogues.items()),
    ]


def state_populations(data: Path | None, download: bool, device: str | None) -> Iterator[Population]:
    """Yield a middle layer, the last one, and all layers together, of each model on WikiText-2."""
    texts = list(load_texts("wikitext2", data=data, split="test", download=download))
    for model, n in _TOKENS.items():
        yield from of_states(
            token_states(texts, model=model, window=WINDOW, max_tokens=n, device=device, download=download)
        )


def of_states(states: TokenStates) -> Iterator[Population]:
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
            yield of_vectors(
                f"{states.model}-{'all' if whole else chosen[0]}{suffix}", f"{states.model}, {where}{words}",
                torch.cat([states.vectors(layer)[places] for layer in chosen]),
                states.vectors(other)[places], f"C₀ of layer {other}", clusters,
            )  # fmt: skip
