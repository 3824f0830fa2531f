"""Batches whose states would take much memory are read in parts, which changes no number."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import isoscope as iso
from isoscope.models import load_language_model, state_budget
from isoscope.models.batches import BATCH_TOKENS, InputBatch
from isoscope.models.state_budget import StateBudget, most_state_bytes
from isoscope.models.states import States

METRICS = ["mean_norm", "mean_cosine", "intra_similarity", "isoscore", "effective_rank"]


def token_batches(n_batches: int) -> list[dict[str, torch.Tensor]]:
    draw = torch.Generator().manual_seed(0)
    return [{"input_ids": torch.randint(3, 12, (12, 10), generator=draw)} for _ in range(n_batches)]


def readings(profile: iso.models.LayerProfile) -> dict[Any, float | None]:
    return {(one.group["layer"], one.group["view"], one.metric): one.value for one in profile.readings}


def sizes_seen(model: nn.Module) -> list[int]:
    """Return a list to which every forward pass adds its number of items."""
    seen: list[int] = []
    model.register_forward_pre_hook(
        lambda _module, inputs, named: seen.append(
            len(named.get("input_ids", inputs[0] if inputs else None))
        ),
        with_kwargs=True,
    )
    return seen


def test_batches_in_parts_have_the_numbers_of_whole_ones(
    tiny_gpt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_language_model(tiny_gpt, device="cpu").model
    seen = sizes_seen(model)
    whole = iso.layers(model, token_batches(3), metrics=METRICS, sample=500, progress=False)
    assert seen == [12, 12, 12]
    n_bytes = 10 * 4 * model.config.hidden_size * (model.config.num_hidden_layers + 1)  # of one item
    monkeypatch.setattr(state_budget, "_BYTES", 5 * n_bytes)
    seen.clear()
    in_parts = iso.layers(model, token_batches(3), metrics=METRICS, sample=500, progress=False)
    assert seen == 3 * [4, 4, 4]
    assert readings(in_parts) == pytest.approx(readings(whole), rel=1e-6)
    assert in_parts.n_tokens == whole.n_tokens


def test_a_model_without_a_configuration_shows_its_size_by_its_first_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4))
    monkeypatch.setattr(state_budget, "_BYTES", 4 * 4 * 32)
    seen: list[int] = []
    model.register_forward_pre_hook(lambda _module, inputs: seen.append(len(inputs[0])))
    batches = list(torch.randn(20, 6, generator=torch.Generator().manual_seed(0)).split(10))
    profile = iso.layers(model, batches, modules=["0"], metrics=["mean_norm"], progress=False)
    assert seen == [10, 4, 4, 2]
    wanted = float(model[0](torch.cat(batches)).norm(dim=1).mean().detach())
    assert profile.values("mean_norm") == [pytest.approx(wanted, rel=1e-6)]


def test_inputs_that_are_no_tensors_by_item_stay_whole() -> None:
    batch = InputBatch({"pixel_values": torch.zeros(4, 3), "size": 7}, torch.arange(4))
    assert [len(part.items) for part in batch.parts(2)] == [4]


def test_texts_of_a_large_model_come_in_smaller_batches(
    tiny_gpt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_language_model(tiny_gpt, device="cpu")
    texts = ["a cat sat on the mat"] * 40
    assert len(States(texts, model=model).groups) == 1
    per_token = 4 * model.n_dims * model.n_layers
    monkeypatch.setattr(state_budget, "_BYTES", 30 * per_token)
    groups = States(texts, model=model).groups
    n_tokens = int(States(texts, model=model).tokenized.lengths[0])
    assert max(map(len, groups)) == 30 // n_tokens
    assert BATCH_TOKENS > 30


def test_narrow_models_keep_large_batches_on_cuda() -> None:
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    assert most_state_bytes(cuda, 576) > most_state_bytes(cuda, 4096) == most_state_bytes(cpu, 576)


def test_a_configuration_without_sizes_is_not_trusted() -> None:
    model = nn.Linear(2, 2)
    model.config = SimpleNamespace(hidden_size=2)  # type: ignore[assignment]
    batch = InputBatch.of({"input_ids": torch.zeros(3, 4, dtype=torch.int64)})
    assert list(StateBudget(model, of_modules=False).parts(0, batch)) == [batch]
