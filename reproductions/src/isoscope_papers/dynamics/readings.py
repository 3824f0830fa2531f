"""What is read of a sentence encoder before and after its training: layers, a task, the change by token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.encoders import TokenStates, token_states
from isoscope.encoders.language_models import LanguageModel
from isoscope.encoders.pooling import pool_padded
from isoscope.metrics.contextual_change import self_similarity_change
from isoscope.metrics.sinks import sink_thresholds
from isoscope.training.correlation import pearson, ranks
from isoscope.training.sequences import tokenized
from isoscope.training.tracker import GeometryTracker
from isoscope.training.untouched import untouched
from isoscope_papers.contrastive.run import token_rows
from isoscope_papers.contrastive.setups import CLEAN, N_TOKENS
from isoscope_papers.corpora import SimilarityPairs
from isoscope_papers.dynamics.setups import MAX_LENGTH

_BATCH = 128


def layer_values(
    model: LanguageModel, probe: Sequence[str], metrics: Sequence[str]
) -> dict[str, list[float | None]]:
    """By metric, one value a layer, the embedding layer first; with and without attention sinks."""
    tracker = GeometryTracker(
        list(probe), tokenizer=model.tokenizer, layers=range(model.n_layers), metrics=metrics,
        contextual=True, sinks=True, max_length=MAX_LENGTH,
    )  # fmt: skip
    values = tracker.read(model.model)
    return {
        name: [None if (value := values[f"{name}@{layer}"]) != value else value for layer in tracker.layers]
        for name in tracker.metrics
    }


def task_score(model: LanguageModel, pairs: SimilarityPairs, *, pooling: str) -> float:
    """Spearman's correlation of the cosines of pairs with what people scored."""
    first, second = (_vectors(model, texts, pooling) for texts in pairs.columns)
    cosines = torch.nn.functional.cosine_similarity(first.double(), second.double()).cpu().numpy()
    return pearson(ranks(cosines), ranks(np.array(pairs.scores)))


def _vectors(model: LanguageModel, texts: Sequence[str], pooling: str) -> Tensor:
    """(n, d) one vector a text, pooled as in training."""
    limit = min(MAX_LENGTH, model.max_length or MAX_LENGTH)
    read = tokenized(model.tokenizer, texts, max_length=limit)
    found: Tensor | None = None
    with untouched(model.model):
        for places, batch in read.by_length(_BATCH):
            placed = {name: values.to(model.device) for name, values in batch.items()}
            states = model.model(**placed).last_hidden_state
            vectors = pool_padded(states, placed["attention_mask"], pooling=pooling)
            if found is None:
                found = vectors.new_zeros(len(texts), vectors.shape[1])
            found[torch.tensor(places, device=found.device)] = vectors
    assert found is not None
    return found


def read_states(model: LanguageModel, probe: Sequence[str]) -> tuple[TokenStates, Tensor]:
    """The last layer's states of the probe, and (n,) which tokens are attention sinks in some layer."""
    states = token_states(list(probe), model=model, truncate=True, keep_on=model.device, progress=False)
    norms = torch.stack([states.vectors(layer).norm(dim=1).cpu() for layer in states.layers])
    is_sink = (norms.double() > sink_thresholds(norms)[:, None]).any(dim=0)
    last = states.layers[-1]
    return TokenStates(states.rows, {last: states.vectors(last).cpu()}, states.model), is_sink


def token_change(before: tuple[TokenStates, Tensor], after: tuple[TokenStates, Tensor]) -> dict[str, Any]:
    """The change of each token's adjusted self-similarity, without tokens that are sinks before or after."""
    is_sink = before[1] | after[1]
    spaces = [
        states.space(states.layers[-1], rows=token_rows(states.rows, CLEAN, ~is_sink))
        for states, _ in (before, after)
    ]
    change = self_similarity_change(*spaces, n_types=N_TOKENS)
    return {
        "name": list(change.changes),
        "count": list(change.counts.values()),
        "change": list(change.changes.values()),
        "sinks": float(is_sink.double().mean()),
    }
