"""The geometry of a model's token states on held-out texts, by layer and over all layers together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import UndefinedError
from isoscope.metrics.cosine import mean_cosine
from isoscope.metrics.isotropy import isoscore, isoscore_star
from isoscope.metrics.manifold import twonn
from isoscope.models.forward import hidden_states
from isoscope.statistics.directions import Directions
from isoscope.statistics.moments import Moments
from isoscope.training.sequences import EpochOrder, Sequences

ALL = "all"  # the union of the layers, the embedding layer left out
QUANTITIES = ("isoscore_star", "isoscore_debiased", "mean_cosine", "twonn")
_SAMPLE = 4096  # token states of a layer whose neighbours are looked for
_BATCH = 64


@dataclass
class _LayerSums:
    """What is summed of one layer as batches pass, and the states held for TwoNN."""

    moments: Moments | None = None
    directions: Directions | None = None
    held: list[Tensor] = field(default_factory=list)

    def add(self, rows: Tensor, held: Tensor) -> None:
        self.moments = Moments.of(rows) if self.moments is None else self.moments.update(rows)
        self.directions = Directions.of(rows) if self.directions is None else self.directions.update(rows)
        self.held.append(rows[held].float())


def state_geometry(
    model: Any, test: Sequences, train: Sequences, *, zeta: float, max_vectors: int, seed: int
) -> list[dict[str, Any]]:
    """A row for each layer above the embedding layer, and one for all of them.

    isoscore_star: of the test states, shrunk by ζ towards the covariance of up to `max_vectors` training
    states. isoscore_debiased, mean_cosine: of all test states, padding left out. twonn: of a sample.
    Values a space does not have are NaN.
    """
    towards = _training_moments(model, train, max_vectors, seed)
    sums = _test_sums(model, test, seed)
    rows = []
    for layer in [*range(1, len(sums) + 1), ALL]:
        chosen = sums if layer == ALL else sums[layer - 1 : layer]
        before = towards if layer == ALL else towards[layer - 1 : layer]
        rows.append({"layer": layer} | _values(chosen, before, zeta, seed))
    return rows


def _values(sums: list[_LayerSums], before: list[Moments], zeta: float, seed: int) -> dict[str, float]:
    moments, directions, towards = sums[0].moments, sums[0].directions, before[0]
    assert moments is not None
    assert directions is not None
    for other, own in zip(sums[1:], before[1:], strict=True):
        assert other.moments is not None
        assert other.directions is not None
        moments, directions = moments.merge(other.moments), directions.merge(other.directions)
        towards = towards.merge(own)
    held = torch.cat([states for one in sums for states in one.held])
    drawn = np.random.default_rng([seed, *b"twonn"]).permutation(len(held))[:_SAMPLE]
    found = {
        "isoscore_star": lambda: isoscore_star(moments, towards.covariance, zeta=zeta),
        "isoscore_debiased": lambda: isoscore(moments, debias=True),
        "mean_cosine": lambda: mean_cosine(directions),
        "twonn": lambda: twonn(held[torch.from_numpy(drawn).to(held.device)]),
    }
    return {name: _value(found[name]) for name in QUANTITIES}


def _value(compute: Any) -> float:
    try:
        return float(compute())
    except UndefinedError:
        return float("nan")


def _training_moments(model: Any, train: Sequences, max_vectors: int, seed: int) -> list[Moments]:
    sums: list[Moments] = []
    n_left = max_vectors
    for places in EpochOrder(len(train), _BATCH, seed=seed):
        for number, rows in enumerate(_layers(model, train, places)):
            if number == len(sums):
                sums.append(Moments.of(rows))
            else:
                sums[number] = sums[number].update(rows)
            n_left -= len(rows)
        if n_left <= 0:
            break
    return sums


def _test_sums(model: Any, test: Sequences, seed: int) -> list[_LayerSums]:
    lengths = test.lengths
    n_tokens = int(lengths.sum())
    is_held = np.zeros(n_tokens, bool)
    is_held[np.random.default_rng([seed, *b"sample"]).permutation(n_tokens)[:_SAMPLE]] = True
    sums: list[_LayerSums] = []
    n_seen = 0
    for places, _ in test.by_length(_BATCH):
        for number, rows in enumerate(_layers(model, test, places)):
            if number == len(sums):
                sums.append(_LayerSums())
            held = torch.from_numpy(is_held[n_seen : n_seen + len(rows)])
            sums[number].add(rows, held.to(rows.device))
        n_seen += int(lengths[places].sum())
    return sums


def _layers(model: Any, sequences: Sequences, places: list[int]) -> Iterator[Tensor]:
    """(n, d) the token states of each layer above the embedding layer, for some texts."""
    for found in hidden_states(model, [sequences.batch(places)]):
        yield from map(found.present, found.hidden[1:])
