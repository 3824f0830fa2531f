from __future__ import annotations

from pathlib import Path

import pytest
from tests.raising import raises
from torch import nn

from isoscope.errors import InputError
from isoscope.models import load_language_model
from isoscope.models.module_names import matching_modules


@pytest.mark.parametrize(
    ("modules", "wanted"),
    [
        ("residual", ["encoder.layer.0", "encoder.layer.1"]),
        ("attention", ["encoder.layer.0.attention", "encoder.layer.1.attention"]),
        ("mlp", ["encoder.layer.0.output", "encoder.layer.1.output"]),
        ("encoder.layer.*.intermediate", ["encoder.layer.0.intermediate", "encoder.layer.1.intermediate"]),
        (["encoder.layer.1", "embeddings"], ["embeddings", "encoder.layer.1"]),
    ],
)
def test_modules_of_bert(tiny_bert: Path, modules: object, wanted: list[str]) -> None:
    assert matching_modules(load_language_model(tiny_bert, device="cpu").model, modules) == wanted


def test_modules_of_gpt(tiny_gpt: Path) -> None:
    model = load_language_model(tiny_gpt, device="cpu").model
    assert matching_modules(model, "mlp") == ["h.0.mlp", "h.1.mlp", "h.2.mlp"]
    assert matching_modules(model, "attention") == ["h.0.attn", "h.1.attn", "h.2.attn"]


class Block(nn.Module):
    """A block with the names of timm's."""

    def __init__(self, *, experts: bool = False) -> None:
        super().__init__()
        self.attn, self.mlp = nn.Sequential(nn.Linear(4, 4)), nn.Sequential(nn.Linear(4, 4))
        if experts:
            self.mlp.add_module("experts", nn.ModuleList(nn.Sequential(nn.Linear(4, 4)) for _ in range(3)))


class Stage(nn.Module):
    """A stage of timm's Swin or ConvNeXt: a change of resolution, then blocks."""

    def __init__(self, n_blocks: int) -> None:
        super().__init__()
        self.downsample = nn.Identity()
        self.blocks = nn.Sequential(*(Block() for _ in range(n_blocks)))


def test_the_blocks_of_stages() -> None:
    model = nn.ModuleDict({"stem": nn.Linear(4, 4), "stages": nn.Sequential(Stage(1), Stage(2))})
    blocks = ["stages.0.blocks.0", "stages.1.blocks.0", "stages.1.blocks.1"]
    assert matching_modules(model, "residual") == blocks
    assert matching_modules(model, "attention") == [f"{name}.attn" for name in blocks]
    assert matching_modules(model, "mlp") == [f"{name}.mlp" for name in blocks]


def test_experts_within_a_block_are_no_blocks() -> None:
    model = nn.ModuleDict({"blocks": nn.ModuleList(Block(experts=True) for _ in range(2))})
    assert matching_modules(model, "residual") == ["blocks.0", "blocks.1"]


def test_a_pattern_that_matches_nothing() -> None:
    with raises(InputError, argument="modules", got="block.*", wanted="'0', '1'.*residual, attention, mlp"):
        matching_modules(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), "block.*")
    with raises(InputError, argument="modules", got="attention"):
        matching_modules(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), "attention")
