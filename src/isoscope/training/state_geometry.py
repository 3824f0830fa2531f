"""The geometry of the token states of held-out texts, by layer and over all layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.engine.readings import taken
from isoscope.metrics.isotropy import isoscore_star
from isoscope.metrics.registry import registered
from isoscope.models.forward import hidden_states
from isoscope.space import Space
from isoscope.statistics.directions import Directions
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.moments import Moments
from isoscope.statistics.neighbors import Neighbors
from isoscope.training.sequences import EpochOrder, Sequences

ALL = "all"  # the union of all layers but the embedding layer
QUANTITIES = ("isoscore_star", "isoscore_debiased", "mean_cosine", "twonn")
_SAMPLE = 4096  # token states of a layer in which neighbours are searched
_BATCH = 64


def state_geometry(
    model: Any, test: Sequences, train: Sequences, *, zeta: float, max_vectors: int, seed: int
) -> list[dict[str, Any]]:
    """Return one row per layer above the embedding layer, and one for all of them.

    isoscore_star is that of the test states, shrunk by ζ towards the covariance of up to `max_vectors`
    training states. isoscore_debiased and mean_cosine are those of all test states without padding, twonn
    that of a sample. Undefined values are NaN.
    """
    towards = _training_moments(model, train, max_vectors, seed)
    layers = _test_statistics(model, test, seed)
    computes = {name: registered()[name].compute for name in QUANTITIES}
    computes["isoscore_star"] = lambda shelf: isoscore_star(shelf.moments, shelf.covariance, zeta=zeta)
    rows = []
    for layer in [*range(1, len(layers) + 1), ALL]:
        chosen = slice(None) if layer == ALL else slice(int(layer) - 1, int(layer))
        shelf = _shelf(layers[chosen], towards[chosen], seed)
        rows.append(
            {"layer": layer, **{name: taken(name, computes[name], shelf).number for name in computes}}
        )
    return rows


def _shelf(layers: list[tuple[Moments, Directions, Tensor]], towards: list[Moments], seed: int) -> Statistics:
    """Return the statistics of several layers: sums over all tokens, neighbours within a sample."""
    samples = torch.cat([states for _, _, states in layers])
    drawn = np.random.default_rng([seed, *b"twonn"]).permutation(len(samples))[:_SAMPLE]
    sample = Space(samples[torch.from_numpy(drawn).to(samples.device)])
    shelf = Statistics(sample, covariance=reduce(Moments.merge, towards).covariance, seed=seed)
    vars(shelf).update(
        moments=reduce(Moments.merge, (moments for moments, _, _ in layers)),
        directions=reduce(Directions.merge, (directions for _, directions, _ in layers)),
        distinct_neighbors=Neighbors.of_distinct(sample, k=2, at_most=True),
    )
    return shelf


def _training_moments(model: Any, train: Sequences, max_vectors: int, seed: int) -> list[Moments]:
    sums: list[Moments] = []
    for layers in _layers(model, train, EpochOrder(len(train), _BATCH, seed=seed)):
        parts = [Moments.of(rows) for rows in layers]
        sums = [old.merge(new) for old, new in zip(sums, parts, strict=True)] if sums else parts
        if sum(moments.count for moments in sums) >= max_vectors:
            break
    return sums


def _test_statistics(model: Any, test: Sequences, seed: int) -> list[tuple[Moments, Directions, Tensor]]:
    """Return the moments, the directions and a sample of the states of each layer."""
    n_tokens, first = int(test.lengths.sum()), 0
    is_sampled = np.zeros(n_tokens, bool)
    is_sampled[np.random.default_rng([seed, *b"sample"]).permutation(n_tokens)[:_SAMPLE]] = True
    sums: list[tuple[Moments, Directions, Tensor]] = []
    for layers in _layers(model, test, (places for places, _ in test.by_length(_BATCH))):
        n = len(layers[0])
        sampled = torch.from_numpy(is_sampled[first : first + n]).to(layers[0].device)
        first += n
        parts = [(Moments.of(rows), Directions.of(rows), rows[sampled].float()) for rows in layers]
        sums = [
            (old[0].merge(new[0]), old[1].merge(new[1]), torch.cat([old[2], new[2]]))
            for old, new in zip(sums, parts, strict=True)
        ] if sums else parts  # fmt: skip
    return sums


def _layers(model: Any, sequences: Sequences, batches: Iterable[list[int]]) -> Iterator[list[Tensor]]:
    """Yield the (n, d) token states of each layer above the embedding layer, some texts at a time."""
    for batch in hidden_states(model, map(sequences.batch, batches)):
        yield [batch.present(states) for states in batch.hidden[1:]]
