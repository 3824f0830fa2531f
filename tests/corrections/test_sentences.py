from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isoscope as iso

TEXTS = ["a cat sat", "the dog ran", "the cat ran to a dog", "a dog", "ran to the cat", "sat"]


def test_a_model_returns_corrected_vectors_and_is_saved_so(tiny_model: Path, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra `text`")
    model = sentence_transformers.SentenceTransformer(str(tiny_model), device="cpu")
    X = model.encode(TEXTS)
    chain = iso.Chain([iso.Whiten(3), iso.Normalize()]).fit(X)
    corrected = sentence_transformers.SentenceTransformer(
        modules=[*model, *chain.to_sentence_transformers()], device="cpu"
    )
    assert np.allclose(corrected.encode(TEXTS), chain.transform(X), atol=1e-4)
    corrected.save(str(tmp_path / "model"))
    again = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert np.allclose(again.encode(TEXTS), chain.transform(X), atol=1e-4)


def test_clusters_are_no_module_of_theirs(rng) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra `text`")
    with pytest.raises(iso.InputError, match=r"to_module\(\)"):
        iso.ClusterCenter(2).fit(rng.normal(size=(20, 3))).to_sentence_transformers()
