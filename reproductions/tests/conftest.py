from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from isoscope.labels import as_labels
from isoscope.models import TokenRows, TokenStates

_WORDS = ["a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat"]


@pytest.fixture
def make_states() -> Callable[..., TokenStates]:
    """Random states of random sentences."""
    return _made_states


def _made_states(seed: int = 0, n_sentences: int = 30, d: int = 12, layers: int = 3) -> TokenStates:
    """Random states of random sentences: [CLS], some words, [SEP], and padding behind all but the longest."""
    rng = np.random.default_rng(seed)
    types, sentences, positions, special, padding = [], [], [], [], []
    for sentence in range(n_sentences):
        n = 9 if sentence == 0 else int(rng.integers(2, 9))
        tokens = ["[CLS]", *rng.choice(_WORDS, size=n), "[SEP]"] + ([] if n == 9 else ["[PAD]"])
        types += tokens
        sentences += [sentence] * len(tokens)
        positions += range(len(tokens))
        special += [token in ("[CLS]", "[SEP]") for token in tokens]
        padding += [token == "[PAD]" for token in tokens]
    known = TokenRows(
        as_labels(types),
        as_labels(sentences),
        torch.tensor(positions),
        torch.tensor(special),
        torch.tensor(padding),
        torch.zeros(len(types), dtype=torch.int64),
    )
    vectors = {
        layer: torch.from_numpy((rng.normal(size=(len(types), d)) + 0.4).astype(np.float32))
        for layer in range(layers)
    }
    return TokenStates(known, vectors, "made")
