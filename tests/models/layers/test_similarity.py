"""The similarity of layers, against the same measure on the states themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.models import layer_similarity, token_states

TEXTS = [
    f"{a} {b} on {c}"
    for a in ("a cat", "the dog", "hat")
    for b in ("sat", "ran to")
    for c in ("mat", "a hat", "cat")
]


@pytest.mark.parametrize("items", ["tokens", "texts"])
def test_layers_of_one_model(tiny_bert: Path, items: str) -> None:
    matrix = layer_similarity(tiny_bert, TEXTS, items=items)
    states = token_states(TEXTS, model=tiny_bert)
    words = ~states.rows.is_special
    texts = states.rows.sentences.codes[words].numpy()
    held = [states.space(layer, rows=words).vectors.double().numpy() for layer in states.layers]
    if items == "texts":
        held = [np.stack([one[texts == text].mean(axis=0) for text in np.unique(texts)]) for one in held]
    assert matrix.rows == tuple(map(str, states.layers))
    assert matrix.n == len(held[0])
    expected = [[iso.metrics.linear_cka_debiased(a, b) for b in held] for a in held]
    assert np.allclose(matrix.values, expected, atol=1e-5)
    assert states.rows.types.n_labels > 3  # the tokens do differ


def test_two_models_share_texts_or_equal_tokens(tiny_bert: Path, tiny_gpt: Path) -> None:
    matrix = layer_similarity(tiny_bert, TEXTS, against=tiny_gpt, measure="rsa", layers=[0, -1])
    assert (len(matrix.rows), len(matrix.columns), matrix.n) == (2, 2, len(TEXTS))
    assert "rsa of the layers of" in matrix.title
    same = layer_similarity(tiny_bert, TEXTS, against=tiny_bert, items="tokens", measure="overlap", k=3)
    assert np.allclose(np.diag(same.values), 1)
    with raises(iso.InputError, argument="items", wanted="'texts'"):
        layer_similarity(tiny_bert, TEXTS, against=tiny_gpt, items="tokens")
    with raises(iso.InputError, argument="window"):
        layer_similarity(tiny_bert, TEXTS, against=tiny_gpt, window=8)


def test_loaded_models(tiny_bert: Path, tiny_gpt: Path) -> None:
    import transformers

    models = [transformers.AutoModel.from_pretrained(folder) for folder in (tiny_bert, tiny_gpt)]
    tokenizers = [transformers.AutoTokenizer.from_pretrained(folder) for folder in (tiny_bert, tiny_gpt)]
    wanted = layer_similarity(tiny_bert, TEXTS, against=tiny_gpt, device="cpu")
    matrix = layer_similarity(models[0], TEXTS, tokenizer=tokenizers[0], against=(models[1], tokenizers[1]))
    assert np.array_equal(matrix.values, wanted.values)


def test_a_sample_is_drawn_by_seed_and_bad_input_is_named(tiny_bert: Path) -> None:
    some = layer_similarity(tiny_bert, TEXTS, sample=20, seed=1)
    assert some.n == 20
    assert "a random 20 of" in some.notes[-1]
    assert some.values != layer_similarity(tiny_bert, TEXTS, sample=20, seed=2).values
    small = layer_similarity(tiny_bert, TEXTS, sample=20, seed=1, batch_tokens=16)  # the same tokens
    assert np.allclose(some.values, small.values, atol=1e-5)
    with raises(iso.InputError, argument="measure", got="svcca"):
        layer_similarity(tiny_bert, TEXTS, measure="svcca")
    with raises(iso.InputError, argument="items", got="words"):
        layer_similarity(tiny_bert, TEXTS, items="words")
    with raises(iso.InputError, argument="sample", got=0):
        layer_similarity(tiny_bert, TEXTS, sample=0)
