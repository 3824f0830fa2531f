"""Models and inputs that do not go together, or not at all: one line each, which names what is wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.raising import raises
from torch import nn

import isoscope as iso
from isoscope.errors import FileError, InputError, ShapeError
from isoscope.models import load_language_model

transformers = pytest.importorskip("transformers")
TEXTS = ["a cat sat on the mat", "the dog ran to the cat"] * 4
IMAGES = list(np.random.default_rng(0).integers(0, 255, (3, 8, 8, 3), np.uint8))
RECORDING = np.zeros(4000, np.float32)
layers = partial(iso.layers, metrics="mean_cosine", progress=False)


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vit")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.ViTConfig(image_size=8, patch_size=4, **sizes)
    transformers.ViTModel(config).save_pretrained(folder)
    settings = {"image_processor_type": "ViTImageProcessor", "size": {"height": 8, "width": 8}}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture
def changed(tiny_bert: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that copies a model and changes its configuration."""

    def copy(settings: Mapping[str, Any]) -> Path:
        folder = tmp_path / "model"
        shutil.copytree(tiny_bert, folder)
        config = folder / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | dict(settings)))
        return folder

    return copy


@pytest.mark.parametrize("kind", ["own", "bert"])
def test_code_that_comes_with_a_model_is_never_run(changed: Callable[..., Path], kind: str) -> None:
    """A model of a type that transformers knows is loaded by the code of transformers."""
    folder = changed({"model_type": kind, "auto_map": {"AutoConfig": "own.C", "AutoModel": "own.M"}})
    (folder / "own.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    if kind == "own":
        with raises(InputError, message="needs code of its own for 'own'", hint="pass the loaded model"):
            layers(folder, TEXTS)
    else:
        assert layers(folder, TEXTS).model == "model"
    assert not (folder / "ran").exists()


def test_a_model_without_hidden_states() -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with raises(InputError, message="Sequential returns no hidden states", hint="modules"):
        layers(network, [torch.randn(3, 4)])
    with raises(InputError, argument="model", wanted="a model of transformers, to read texts"):
        layers(network, TEXTS)


def test_inputs_of_another_kind(tiny_bert: Path, vit: Path) -> None:
    bert, images = load_language_model(tiny_bert, device="cpu"), iso.models.load_model(vit, "images")
    with raises(InputError, message="reads no images", wanted="a model of images"):
        layers(tiny_bert, IMAGES)
    with raises(InputError, argument="inputs", message="has images, but .* reads texts"):
        layers(bert, IMAGES)
    with raises(InputError, message="a tensor, but BertModel", wanted="input_ids"):
        layers(bert.model, [torch.zeros(2, 3, 8, 8)])
    with raises(InputError, argument="inputs", message="has pixel_values, but BertModel takes input_ids"):
        layers(bert.model, [{"pixel_values": torch.zeros(2, 3, 8, 8)}])
    with raises(InputError, argument="inputs", message="has texts, but .* no tokenizer", wanted="images"):
        layers(vit, TEXTS)
    with raises(InputError, argument="inputs", message="has texts, but .* reads images", wanted="images"):
        layers(images, TEXTS)
    with raises(InputError, message="ViTModel has no tokenizer", hint="tokenizer"):
        layers(images.model, TEXTS)
    with raises(InputError, argument="inputs", message="has recordings, but .* reads images"):
        layers(vit, [RECORDING])


def test_inputs_that_a_model_cannot_take(tiny_bert: Path, vit: Path) -> None:
    """Token ids beyond the vocabulary, and images of another size: what the model raises becomes one line."""
    bert, other = (transformers.AutoModel.from_pretrained(folder) for folder in (tiny_bert, vit))
    for model, batch in (
        (bert, {"input_ids": torch.full((3, 4), 10_000)}),
        (other, {"pixel_values": torch.zeros(2, 3, 99, 99)}),
    ):
        with raises(InputError, message="the model failed .*", wanted="inputs that .* accepts") as caught:
            iso.layers(model, [batch], progress=False)
        assert "\n" not in str(caught.value)


def test_empty_batches(tiny_bert: Path, vit: Path) -> None:
    model = transformers.AutoModel.from_pretrained(vit)
    with raises(ShapeError, argument="inputs", message="has no batches"):
        layers(model, [])
    with raises(ShapeError, argument="inputs[1]", message="is empty"):
        layers(model, [torch.zeros(2, 3, 8, 8), torch.zeros(0, 3, 8, 8)])
    with raises(InputError, argument="inputs", message="is an empty mapping"):
        layers(model, [{}])
    with raises(ShapeError, argument="inputs", message="is empty"):
        layers(tiny_bert, [])
    with raises(InputError, message=r"texts\[1\] is empty"):
        layers(tiny_bert, ["a cat", ""])


@pytest.mark.parametrize(
    ("settings", "message", "wanted"),
    [
        ({"hidden_size": 32}, r"weights .* of shape \(16", r"\(32"),
        ({"intermediate_size": 16}, r"weights encoder.layer.0.* of shape \(32,\)", r"\(16,\), as in"),
        ({"num_hidden_layers": 5}, "no weights for encoder.layer.2.* and 47 more, which", "all"),
    ],
)  # fmt: skip
def test_weights_of_other_widths_or_layers(
    changed: Callable[..., Path], settings: dict[str, int], message: str, wanted: str
) -> None:
    """transformers would give random values to weights that are not in the file."""
    with raises(FileError, message=message, wanted=wanted):
        layers(changed(settings), TEXTS)


def test_weights_that_no_state_depends_on_may_be_missing(changed: Callable[..., Path]) -> None:
    file = changed({}) / "model.safetensors"
    weights = load_file(file)
    kept = {name: weight for name, weight in weights.items() if "pooler" not in name}
    assert len(kept) == len(weights) - 2
    save_file(kept, file, metadata={"format": "pt"})
    assert layers(file.parent, TEXTS).n_tokens


@pytest.mark.parametrize("n_bytes", [0, 4, 2000])
def test_a_truncated_file(changed: Callable[..., Path], n_bytes: int) -> None:
    file = changed({}) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:n_bytes])
    with raises(FileError, message=r"model\.safetensors cannot be read", hint="not truncated"):
        layers(file.parent, TEXTS)


def test_a_quantisation_whose_package_is_missing(
    changed: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.quantizers import quantizer_bnb_4bit

    settings = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    monkeypatch.setattr(quantizer_bnb_4bit, "is_bitsandbytes_available", lambda *_: False, raising=False)
    with raises(InputError, message="cannot be loaded: .*bitsandbytes.*pip install"):
        layers(changed({"quantization_config": settings}), TEXTS)


@pytest.mark.parametrize("device", ["cuda:97", "xpu:97", "nonsense"])
def test_a_device_that_is_not_here(tiny_bert: Path, device: str) -> None:
    with raises(InputError, argument="device"):
        layers(tiny_bert, TEXTS, device=device)


@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"device_map": "auto"}, {"compile": True}])
def test_options_of_loading_with_a_loaded_model(tiny_bert: Path, options: dict[str, Any]) -> None:
    with raises(InputError, argument=next(iter(options)), message="this one is loaded"):
        layers(load_language_model(tiny_bert, device="cpu"), TEXTS, **options)
