"""Folders of models with settings of other types or absurd sizes, refused in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import hostile_models
import pytest
import torch
from safetensors.torch import save_file

from isoscope.errors import FileError, InputError
from isoscope.models import encode, load_language_model
from isoscope.models.model_files import check_model


@pytest.fixture
def copied(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def test_a_sound_folder(copied: Path) -> None:
    check_model(copied)
    assert encode(["a cat"], model=copied, cache=False).shape == (1, 16)


@pytest.mark.parametrize(
    ("file", "place", "strange"),
    [
        ("config.json", ("num_hidden_layers",), 2**63),
        ("config.json", ("num_hidden_layers",), 10**6),
        ("config.json", ("hidden_size",), 2**40),
        ("config.json", ("hidden_size",), 1000),
        ("config.json", ("hidden_size",), "x"),
        ("config.json", ("vocab_size",), 2**63),
        ("config.json", ("intermediate_size",), 2**31),
        ("config.json", ("num_attention_heads",), 2**63),
        ("config.json", ("hidden_size",), 0),
        ("config.json", ("intermediate_size",), 0),
        ("config.json", ("num_attention_heads",), 0),
        ("config.json", ("vocab_size",), 0),
        ("config.json", (), []),
        ("modules.json", (), {}),
        ("modules.json", (), []),
        ("modules.json", (0,), "x"),
        ("modules.json", (0, "path"), "../.."),
        ("modules.json", (0, "path"), 3),
        ("modules.json", (0, "type"), None),
        ("config_sentence_transformers.json", ("prompts",), [1]),
        ("config_sentence_transformers.json", ("prompts",), {"query": 3}),
        ("config_sentence_transformers.json", ("default_prompt_name",), {}),
        ("1_Pooling/config.json", (), [1]),
        ("sentence_bert_config.json", (), "x"),
        ("sentence_bert_config.json", ("modality_config",), [1]),
        ("sentence_bert_config.json", ("modality_config", "text", "method"), 0),
        ("sentence_bert_config.json", ("modality_config", "text", "method"), "save_pretrained"),
        ("tokenizer_config.json", ("model_max_length",), {}),
    ],
)
def test_strange_settings_are_refused_before_anything_is_loaded(
    copied: Path, file: str, place: tuple[Any, ...], strange: Any
) -> None:
    if place[-1:] == ("prompts",) or place[-1:] == ("default_prompt_name",):
        settings = json.loads((copied / file).read_text())
        (copied / file).write_text(json.dumps({**settings, place[0]: strange}))
    else:
        hostile_models.write_replaced(copied / file, place, strange)
    with pytest.raises(FileError) as error:
        check_model(copied)
    assert file in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(FileError):
        encode(["a cat"], model=copied, cache=False)


@pytest.mark.parametrize(
    ("file", "place", "strange"),
    [
        ("tokenizer_config.json", ("pad_token",), "x"),
        ("tokenizer_config.json", ("pad_token",), None),
        ("2_Normalize/config.json", ("module_input_name",), [1]),
        ("2_Normalize/config.json", ("module_output_name",), {}),
        ("sentence_bert_config.json", ("module_output_name",), True),
        ("sentence_bert_config.json", ("modality_config", "text", "method_output_name"), 1.5),
        ("sentence_bert_config.json", ("modality_config",), {}),
    ],
)
def test_what_fails_only_when_a_model_runs_is_one_line(
    copied: Path, file: str, place: tuple[Any, ...], strange: Any
) -> None:
    if not (copied / file).is_file():
        pytest.skip("this version of sentence-transformers writes no such file")
    hostile_models.write_replaced(copied / file, place, strange)
    with pytest.raises(InputError) as error:
        encode(["a cat", "dog"], model=copied, cache=False)
    assert str(copied) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_language_model_of_absurd_depth(tiny_bert: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    hostile_models.write_replaced(copied / "config.json", ("num_hidden_layers",), 2**63)
    with pytest.raises(FileError, match=r"config\.json: `num_hidden_layers` must be"):
        load_language_model(copied)


def test_a_size_of_0_is_refused_without_safetensors(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    hostile_models.write_replaced(copied / "config.json", ("intermediate_size",), 0)
    with pytest.raises(FileError, match=r"config\.json: `intermediate_size` must be a whole number"):
        check_model(copied)


def test_json_within_json_is_bounded(copied: Path) -> None:
    (copied / "tokenizer.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"tokenizer\.json has JSON nested too deeply"):
        encode(["a cat"], model=copied, cache=False)


@pytest.mark.parametrize("name", ["vocab_size_per_layer_input", "shared_expert_intermediate_size"])
def test_a_size_for_each_layer_is_no_number_of_layers(copied: Path, name: str) -> None:
    settings = json.loads((copied / "config.json").read_text())
    save_file({"wide": torch.zeros(3000, 1)}, copied / "more.safetensors")
    (copied / "config.json").write_text(json.dumps({**settings, name: 3000}))
    check_model(copied)
    (copied / "config.json").write_text(json.dumps({**settings, name: 300_000}))
    with pytest.raises(FileError, match=rf"`{name}` must be a whole number of 0 to "):
        check_model(copied)
