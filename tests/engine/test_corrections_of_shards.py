"""Corrections learn from and change vectors in many files as they do those of one array."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import isoscope as iso


def test_learnt_from_shards(shards: Path, vectors: np.ndarray) -> None:
    source = iso.open_vectors(shards, key="vectors")
    here, there = iso.Whiten(3).fit(vectors), iso.Whiten(3).fit_blocks(source)
    expected = here.transform(vectors)
    found = np.concatenate([np.asarray(there.transform(block.vectors)) for block in source.blocks(50)])
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_the_estimate_of_shards(shards: Path, vectors: np.ndarray, labels: np.ndarray) -> None:
    source = iso.open_vectors(shards, key="vectors", labels="labels")
    found = iso.silhouette_score(source, tolerance=1e-3)
    assert abs(float(found) - iso.silhouette_score(vectors, labels)) < 1e-9
