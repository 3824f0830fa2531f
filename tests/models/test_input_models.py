"""Models of images and recordings, built from configurations, through their processors end to end."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest
import torch
from tests.raising import raises
from torch import Tensor, nn

import isoscope as iso
from isoscope.errors import InputError, ShapeError
from isoscope.models import load_language_model, load_model

transformers = pytest.importorskip("transformers")
pytest.importorskip("PIL")
QUICK: dict[str, Any] = {"clusters": False, "progress": False, "sample": 40, "k": 5}
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
SIDE = {"height": 16, "width": 16}
IMAGES = [np.random.default_rng(i).integers(0, 255, (20, 24, 3), dtype=np.uint8) for i in range(6)]
RECORDINGS = [
    np.random.default_rng(i).normal(size=n).astype(np.float32) for i, n in enumerate((1600, 800, 2400))
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    """Write a model of each kind with random weights."""
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("models")
    vision = {**SMALL, "image_size": 16, "patch_size": 4}
    text = {**SMALL, "vocab_size": 40, "max_position_embeddings": 24, "bos_token_id": 1, "eos_token_id": 2}
    whisper = {"d_model": 16, "vocab_size": 60, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    whisper |= {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in
                (("layers", 2), ("attention_heads", 2), ("ffn_dim", 32))}  # fmt: skip
    waves = {
        **SMALL,
        "conv_dim": (8, 8),
        "conv_stride": (5, 4),
        "conv_kernel": (10, 8),
        "mask_time_prob": 0.0,
    }
    waves |= {"num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
    t = transformers
    models = {
        "vit": (t.ViTModel(t.ViTConfig(**vision)), t.ViTImageProcessorPil(size=SIDE)),
        "dino": (t.Dinov2Model(t.Dinov2Config(**vision)), t.ViTImageProcessorPil(size=SIDE)),
        "clip": (
            t.CLIPModel(t.CLIPConfig(text_config=text, vision_config={**vision, "num_hidden_layers": 3})),
            t.CLIPImageProcessorPil(size=SIDE, crop_size=SIDE),
        ),
        "whisper": (
            t.WhisperModel(t.WhisperConfig(**whisper, decoder_start_token_id=1)),
            t.WhisperFeatureExtractor(),
        ),
        "wav2vec2": (t.Wav2Vec2Model(t.Wav2Vec2Config(**waves)), t.Wav2Vec2FeatureExtractor()),
    }
    for name, (model, processor) in models.items():
        model.save_pretrained(root / name)
        processor.save_pretrained(root / name)
    t.AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(root / "clip")
    return root


@pytest.mark.parametrize(("name", "n_layers"), [("vit", 3), ("dino", 3), ("clip", 4)])
def test_images(folders: Path, name: str, n_layers: int) -> None:
    """Each image has 16 patches and a class token; the states are those of the model on its processor's."""
    profile = iso.layers(folders / name, IMAGES, batch_size=4, **QUICK)
    assert (profile.n_tokens, profile.n_texts, len(profile.layers)) == (6 * 17, 6, n_layers)
    loaded = load_model(folders / name, "images", device="cpu")
    with torch.no_grad():
        pixels = loaded.processor(images=IMAGES, return_tensors="pt")["pixel_values"]
        states = loaded.model(pixel_values=pixels, output_hidden_states=True).hidden_states
    for layer, one in enumerate(states):
        wanted = float(iso.mean_cosine(one.flatten(0, 1).double()))
        assert profile.values("mean_cosine")[layer] == pytest.approx(wanted, rel=1e-4, abs=1e-6)


def test_images_of_pillow_and_modules(folders: Path) -> None:
    from PIL import Image

    pictures = [Image.fromarray(image) for image in IMAGES]
    model = load_model(folders / "vit", "images", device="cpu")
    for modules in (None, "attention"):
        arrays, same = (iso.layers(model, items, modules=modules, **QUICK) for items in (IMAGES, pictures))
        assert same.values("mean_cosine") == arrays.values("mean_cosine")


def test_both_towers(folders: Path) -> None:
    """A text goes through one tower, an image through the other, and a batch of both through both."""
    texts = ["a cat sat on the mat", "the dog ran to the cat", "dog"]
    text, image = (iso.layers(folders / "clip", inputs, **QUICK) for inputs in (texts, IMAGES[:3]))
    assert (len(text.layers), len(image.layers)) == (3, 4)
    words = load_language_model(folders / "clip", device="cpu").tokenizer
    encoded = words(texts, return_tensors="pt", padding=True, return_special_tokens_mask=True)
    pixels = load_model(folders / "clip", "images").processor(images=IMAGES[:3], return_tensors="pt")
    batch = {name: encoded[name] for name in ("input_ids", "attention_mask", "special_tokens_mask")} | dict(
        pixels
    )
    model = transformers.CLIPModel.from_pretrained(folders / "clip")
    both = iso.layers(model, [batch], **QUICK)
    assert both.layers == [f"text.{i}" for i in range(3)] + [f"vision.{i}" for i in range(4)]
    wanted = text.values("mean_cosine") + image.values("mean_cosine")
    assert both.values("mean_cosine") == pytest.approx(wanted, rel=1e-4, abs=1e-6)


def test_recordings_without_their_padding(folders: Path) -> None:
    """Whisper has a frame for each 320 samples of 16 kHz, and wav2vec 2.0 here for each 20."""
    whisper = iso.layers(folders / "whisper", RECORDINGS, **QUICK)
    assert whisper.n_tokens == sum(-(-len(one) // 320) for one in RECORDINGS)
    waves = iso.layers(folders / "wav2vec2", RECORDINGS, **QUICK)
    alone = [iso.layers(folders / "wav2vec2", [one], **QUICK).n_tokens for one in RECORDINGS]
    assert waves.n_tokens == sum(alone)


def test_both_sides_of_an_encoder_decoder(folders: Path) -> None:
    model = transformers.WhisperModel.from_pretrained(folders / "whisper")
    batches = [
        {"input_features": torch.randn(2, 80, 3000), "decoder_input_ids": torch.randint(3, 60, (2, n))}
        for n in (5, 7)
    ]
    profile = iso.layers(model, batches, **QUICK)
    assert profile.layers == [f"{side}.{i}" for side in ("encoder", "decoder") for i in range(3)]
    with torch.no_grad():
        outputs = [model(**batch, output_hidden_states=True).decoder_hidden_states[-1] for batch in batches]
    rows = torch.cat([one.flatten(0, 1) for one in outputs]).double()
    assert profile.values("mean_cosine")[-1] == pytest.approx(float(iso.mean_cosine(rows)), rel=1e-4)


@pytest.fixture(scope="module")
def timm() -> Any:
    """timm; without torchvision, whose wheels for torch's CPU build are in no registry.

    Its transforms of images need torchvision. Its models compare with one class of it, and call nothing.
    """
    if importlib.util.find_spec("timm") is None:
        pytest.skip("needs timm (pip install --no-deps timm)")
    parts = ("", ".datasets", ".transforms", ".transforms.functional", ".ops", ".ops.misc")
    stand_ins: dict[str, Any] = {f"torchvision{part}": MagicMock() for part in parts}
    stand_ins["torchvision.ops.misc"].FrozenBatchNorm2d = type("FrozenBatchNorm2d", (nn.Module,), {})
    stand_ins["torchvision.models"] = None
    with patch.dict(sys.modules, stand_ins):  # and afterwards no library believes that torchvision is here
        return importlib.import_module("timm")


def test_timm(timm: Any) -> None:
    """Blocks of a vision transformer, and stages of convolutions."""
    images = torch.randn(4, 3, 32, 32)
    vit = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2)
    profile = iso.layers(vit, [images], modules="residual", **QUICK)
    assert (profile.layers, profile.n_tokens, profile.n_dims) == (["blocks.0", "blocks.1"], 4 * 5, 192)
    resnet = timm.create_model("resnet18")
    stages = iso.layers(resnet, [images], modules="layer*", **QUICK)
    assert stages.layers == ["layer1", "layer2", "layer3", "layer4"]
    assert stages.n_tokens == 4 * 8 * 8


class VoiceEncoder(nn.Module):
    """The network of Resemblyzer, whose weights come with its package."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(40, 256, 3, batch_first=True)
        self.linear = nn.Linear(256, 256)

    def forward(self, mels: Tensor) -> Tensor:
        frames, _ = self.lstm(mels)
        return torch.relu(self.linear(frames[:, -1]))


def test_real_weights_of_speech() -> None:
    """Every frame of the recurrent layers, and one vector for each recording."""
    package = importlib.util.find_spec("resemblyzer")
    if package is None or package.origin is None:
        pytest.skip("needs Resemblyzer (pip install --no-deps Resemblyzer)")
    weights = torch.load(Path(package.origin).parent / "pretrained.pt", map_location="cpu", weights_only=True)
    encoder = VoiceEncoder()
    encoder.load_state_dict(weights["model_state"], strict=False)
    generator = torch.Generator().manual_seed(0)
    mels = torch.rand(16, 40, 40, generator=generator) * 0.1
    profile = iso.layers(encoder, mels, modules=["lstm", "linear"], **QUICK)
    assert profile.n_tokens == 16 * 40
    with torch.no_grad():
        frames = encoder.lstm(mels)[0]
        wanted = [
            float(iso.mean_cosine(rows.double()))
            for rows in (frames.flatten(0, 1), encoder.linear(frames[:, -1]))
        ]
    assert profile.values("mean_cosine") == pytest.approx(wanted, rel=1e-4)


def test_a_model_of_another_kind(folders: Path, tiny_bert: Path) -> None:
    with raises(InputError, message="reads no images", wanted="a model of images"):
        iso.layers(tiny_bert, IMAGES, **QUICK)
    with raises(InputError, argument="inputs", message="has images, but .* reads texts"):
        iso.layers(load_language_model(tiny_bert, device="cpu"), IMAGES, **QUICK)
    with raises(InputError, argument="inputs", message="has no tokenizer"):
        iso.layers(folders / "vit", ["a cat"], **QUICK)
    with raises(InputError, argument="side", message="goes with texts"):
        iso.layers(folders / "whisper", RECORDINGS, side="decoder", **QUICK)
    with raises(InputError, argument="kind", got="videos"):
        load_model(folders / "vit", "videos")
    with raises(ShapeError, argument="inputs", message="empty"):
        iso.layers(folders / "vit", [], **QUICK)
