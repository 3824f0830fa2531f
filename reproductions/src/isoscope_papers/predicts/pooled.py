"""The vectors of all texts in every layer and pooling of a model, kept in a cache outside the results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from isoscope.io import write_atomically
from isoscope.models import LanguageModel, TokenStates, load_language_model, token_states
from isoscope.progress import Bar
from isoscope_papers.predicts.setups import WITHOUT_FIRST

_CHUNK = 256  # texts whose states are in memory at once; an interrupted run continues at the next chunk


@dataclass(frozen=True)
class Pooled:
    """The vectors of n texts, in files of some texts each.

    Attributes:
        files: each (layers, poolings, texts, dimensions) float32.
        layers: how many, with that of the embeddings.
        poolings: their names.
    """

    files: tuple[Path, ...]
    layers: int
    poolings: tuple[str, ...]

    def vectors(self, layer: int, pooling: str) -> np.ndarray:
        """Return the (n, d) vectors of one layer and pooling."""
        place = self.poolings.index(pooling)
        maps = (np.load(file, mmap_mode="r", allow_pickle=False) for file in self.files)
        return np.concatenate([np.asarray(one[layer, place]) for one in maps])


def pooled_states(
    model: str | os.PathLike[str] | LanguageModel,
    texts: Sequence[str],
    poolings: tuple[str, ...],
    folder: Path,
    *,
    device: str | None = None,
    progress: bool | None = None,
) -> Pooled:
    """Return the vectors of texts in every layer, from the cache as far as they are in it."""
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, len(texts), _CHUNK)
    files = tuple(folder / f"states-{start:06}.npy" for start in starts)
    loaded = None
    with Bar(show=progress) as bar:
        bar.step(f"{len(texts):,} texts through {folder.name}")
        for start, file in zip(starts, files, strict=True):
            if not file.exists():
                loaded = loaded or load_language_model(model, device=device)
                rows = _pooled(loaded, texts[start : start + _CHUNK], poolings)
                write_atomically(file, partial(_write, rows=rows))
            bar.share((start + _CHUNK) / len(texts))
    n_layers = len(np.load(files[0], mmap_mode="r", allow_pickle=False))
    return Pooled(files, n_layers, poolings)


def _write(path: Path, rows: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, rows, allow_pickle=False)


def _pooled(model: LanguageModel, texts: Sequence[str], poolings: Sequence[str]) -> np.ndarray:
    """Return (layers, poolings, texts, dimensions) float32."""
    states = token_states(texts, model=model, truncate=True, progress=False)
    by_layer = [[_vectors(states, layer, pooling) for pooling in poolings] for layer in states.layers]
    return np.stack([np.stack(of_layer) for of_layer in by_layer])


def _vectors(states: TokenStates, layer: int, pooling: str) -> np.ndarray:
    if pooling != WITHOUT_FIRST:
        return np.asarray(states.sentence_space(layer, pooling=pooling).vectors)
    mean, first = (states.sentence_space(layer, pooling=one).vectors.double() for one in ("mean", "cls"))
    n_tokens = torch.bincount(states.rows.sentences.codes).unsqueeze(1)
    rest = (n_tokens * mean - first) / (n_tokens - 1).clamp(min=1)
    return np.asarray(torch.where(n_tokens > 1, rest, first).float())
