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


def test_a_pattern_that_matches_nothing() -> None:
    with raises(InputError, argument="modules", got="block.*", wanted="'0', '1'.*residual, attention, mlp"):
        matching_modules(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), "block.*")
    with raises(InputError, argument="modules", got="attention"):
        matching_modules(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), "attention")
