from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raising import raises

from isoscope.errors import FileError, InputError
from isoscope.models import TokenStates, load_language_model, token_states
from isoscope.models.batches import text_batches, token_batches
from isoscope.models.language_models import LanguageModel
from isoscope.models.tokens import tokenize

TEXTS = ["a cat sat", "the dog ran to the cat", "dog", "the mat", "a hat on the cat"] * 3


@pytest.fixture(scope="module", params=["tiny_bert", "tiny_gpt"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    return load_language_model(request.getfixturevalue(request.param), device="cpu")


def alone(model: LanguageModel, text: str) -> list[torch.Tensor]:
    """The oracle: one text by itself through transformers."""
    with torch.no_grad():
        found = model.model(**model.tokenizer([text], return_tensors="pt"), output_hidden_states=True)
    return [hidden[0] for hidden in found.hidden_states]


@pytest.mark.parametrize("batch_tokens", [1, 13, 4096])
def test_every_state_is_that_of_its_text_alone(model: LanguageModel, batch_tokens: int) -> None:
    states = token_states(TEXTS, model=model, batch_tokens=batch_tokens, progress=False)
    assert states.layers == list(range(model.n_layers))
    for layer in states.layers:
        wanted = torch.cat([alone(model, text)[layer] for text in TEXTS])
        torch.testing.assert_close(states.vectors(layer), wanted, atol=1e-4, rtol=1e-5)


def test_padding_is_not_attended_to(tiny_bert: Path) -> None:
    """The state of a padding token, and no change to the others."""
    plain = token_states(TEXTS, model=tiny_bert, progress=False, device="cpu")
    padded = token_states(TEXTS, model=tiny_bert, padding=True, progress=False, device="cpu")
    real = ~padded.rows.is_padding
    assert int(padded.rows.is_padding.sum()) == 12
    for layer in (0, 2):
        torch.testing.assert_close(padded.vectors(layer)[real], plain.vectors(layer), atol=1e-5, rtol=0)
    model = load_language_model(tiny_bert, device="cpu")
    tokens = model.tokenizer(["dog"], return_tensors="pt", padding="max_length", max_length=8)
    with torch.no_grad():
        hidden = model.model(**tokens, output_hidden_states=True).hidden_states[2][0]
    place = int((padded.rows.is_padding & (padded.rows.sentences.codes == 2)).nonzero()[0])
    torch.testing.assert_close(padded.vectors(2)[place], hidden[3], atol=1e-5, rtol=0)


def test_batches_hold_every_text_once(model: LanguageModel) -> None:
    tokenized = tokenize(TEXTS, model)
    batches = text_batches(tokenized, 16)
    assert sorted(text for batch in batches for text in batch) == list(range(len(TEXTS)))
    assert all(len(batch) == 1 or len(batch) * max(tokenized.lengths[batch]) <= 16 for batch in batches)
    rows = torch.cat([batch.rows for batch in token_batches(tokenized, batches) if batch.rows is not None])
    assert torch.equal(rows.sort().values, torch.arange(len(tokenized.ids)))


def test_some_layers(model: LanguageModel) -> None:
    states = token_states(TEXTS, model=model, layers=[-1, 0], progress=False)
    assert states.layers == [0, model.n_layers - 1]
    with pytest.raises(InputError, match="one of the layers stored"):
        states.vectors(1)
    for wrong in ([99], []):
        with pytest.raises(InputError, match="layers"):
            token_states(TEXTS, model=model, layers=wrong, progress=False)


def test_a_layer_as_a_space(tiny_bert: Path) -> None:
    states = token_states(TEXTS, model=tiny_bert, progress=False, device="cpu")
    space = states.space(1, rows=~states.rows.is_special)
    assert len(space) == int((~states.rows.is_special).sum())
    assert space.token_types is not None
    assert "[CLS]" not in space.token_types.names
    assert space.sentences is not None
    assert space.sentences.n_labels == len(TEXTS)
    assert space.layer == 1


@pytest.mark.parametrize("special", [True, False])
def test_one_vector_a_text(tiny_bert: Path, special: bool) -> None:
    states = token_states(TEXTS, model=tiny_bert, progress=False, device="cpu")
    rows = [alone(load_language_model(tiny_bert, device="cpu"), text)[2] for text in TEXTS]
    inner = rows if special else [states_of[1:-1] for states_of in rows]
    wanted = {
        "mean": [tokens.mean(dim=0) for tokens in inner],
        "max": [tokens.amax(dim=0) for tokens in inner],
        "cls": [tokens[0] for tokens in inner],
        "lasttoken": [tokens[-1] for tokens in inner],
    }
    for pooling, vectors in wanted.items():
        found = states.sentence_space(2, pooling=pooling, special=special).vectors
        torch.testing.assert_close(found, torch.stack(vectors), atol=1e-5, rtol=0)
    with raises(InputError, argument="pooling"):
        states.sentence_space(2, pooling="median")


def test_states_in_a_folder_can_be_opened_again(model: LanguageModel, tmp_path: Path) -> None:
    kept = token_states(TEXTS, model=model, folder=tmp_path / "states", progress=False)
    again = TokenStates.open(tmp_path / "states")
    plain = token_states(TEXTS, model=model, progress=False)
    assert again.layers == plain.layers
    for layer in plain.layers:
        assert torch.equal(again.vectors(layer), plain.vectors(layer))
        assert torch.equal(kept.vectors(layer), plain.vectors(layer))
    for column in ("positions", "is_special", "is_padding", "words"):
        assert torch.equal(getattr(again.rows, column), getattr(plain.rows, column))
    assert again.rows.types.names == plain.rows.types.names
    assert torch.equal(again.rows.types.codes, plain.rows.types.codes)
    assert torch.equal(again.rows.sentences.codes, plain.rows.sentences.codes)
    assert isinstance(np.load(tmp_path / "states" / "layer-00.npy", mmap_mode="r"), np.memmap)


def test_folders_that_cannot_be_used(model: LanguageModel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"):
        token_states(TEXTS, model=model, folder=tmp_path / "file" / "inner", progress=False)
    with pytest.raises(FileError, match=r"no file layer-"):
        TokenStates.open(tmp_path)


def test_batches_of_no_tokens(model: LanguageModel) -> None:
    with pytest.raises(InputError, match="`batch_tokens` must be at least 1"):
        token_states(TEXTS, model=model, batch_tokens=0, progress=False)


def test_states_of_other_texts_are_not_mixed_in(model: LanguageModel, tmp_path: Path) -> None:
    token_states(TEXTS, model=model, folder=tmp_path, progress=False)
    token_states(TEXTS[:3], model=model, folder=tmp_path, layers=[0], progress=False)
    again = TokenStates.open(tmp_path)
    assert again.layers == [0]
    np.save(tmp_path / "layer-01.npy", np.zeros((5, 16), np.float32))
    with pytest.raises(FileError, match=r"layer-01\.npy has torch\.float32 of shape \(5, 16\)"):
        TokenStates.open(tmp_path)
    (tmp_path / "layer-01.npy").rename(tmp_path / "layer-one.npy")
    with pytest.raises(FileError, match="no layer number in its name"):
        TokenStates.open(tmp_path)


def test_a_text_of_special_tokens_only_has_no_vector_without_them(tiny_bert: Path) -> None:
    states = token_states(["dog", "cat"], model=tiny_bert, progress=False, device="cpu")
    only_special = states.rows.is_special | (states.rows.sentences.codes == 1)
    states = replace(states, rows=replace(states.rows, is_special=only_special))
    assert states.sentence_space(1).vectors.shape == (2, 16)
    with pytest.raises(InputError, match=r"texts\[1\] has only special tokens"):
        states.sentence_space(1, special=False)


def test_a_configuration_that_the_weights_contradict(model: LanguageModel) -> None:
    """A damaged GGUF file may lose its width, and the model's default takes its place."""
    with raises(FileError, message="16 dimensions", wanted="4,096"):
        token_states(TEXTS, model=replace(model, n_dims=4096), progress=False)
