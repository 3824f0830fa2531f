from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError
from isoscope.training.regularizers import REGULARIZERS, Regularizer


@pytest.mark.parametrize("kind", [*REGULARIZERS, lambda states, _: states[0].sum()])
@pytest.mark.parametrize("strength", [1e39, -1e300])
def test_a_strength_that_float32_cannot_hold_is_refused(kind: str, strength: float) -> None:
    with raises(InputError, argument="strength", wanted="float32"):
        Regularizer(kind, strength)


def test_the_largest_strength_gives_a_penalty() -> None:
    states = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(2, 6, dtype=torch.long)
    for kind in ("istar-debiased", "cosreg"):
        found = Regularizer(kind, 3e38)((states, states), mask, torch.arange(12))
        assert found.dtype == torch.float32


@pytest.mark.parametrize("kind", REGULARIZERS)
def test_finetune_refuses_it_before_a_folder_is_made(kind: str, tiny_bert: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="needs the extra `training`")
    texts, labels = ["a cat", "the dog", "a mat", "the hat"] * 3, [0, 1] * 6
    with pytest.raises(InputError, match="float32"):
        iso.finetune(tiny_bert, texts, labels, regularizer=kind, strength=1e39, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
