from __future__ import annotations

import json
import math
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import FileError, InputError
from isoscope.training.sequences import EpochOrder

transformers = pytest.importorskip("transformers", reason="needs the extra `training`")
pytest.importorskip("accelerate", reason="needs the extra `training`")

WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")
SOURCE = random.Random(0)
FIRSTS = [" ".join(SOURCE.choices(WORDS, k=SOURCE.randint(3, 9))) for _ in range(30)]
PAIRS = [(text, " ".join(reversed(text.split()))) for text in FIRSTS]
PROBE = FIRSTS[:12]
QUICK: dict[str, Any] = {"batch_size": 8, "learning_rate": 1e-3, "device": "cpu", "progress": False}


@pytest.fixture(scope="module")
def steady(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT without dropout."""
    folder = tmp_path_factory.mktemp("steady")
    shutil.copytree(tiny_bert, folder, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pooling", "symmetric"), [("mean", True), ("cls", False), ("max", True), ("lasttoken", True)]
)
def test_losses_are_those_of_a_loop_by_hand(steady: Path, pooling: str, symmetric: bool) -> None:
    found = iso.contrast(
        steady,
        PAIRS,
        pooling=pooling,
        symmetric=symmetric,
        temperature=0.2,
        steps=5,
        warmup=0.4,
        seed=3,
        **QUICK,
    )
    model = transformers.AutoModel.from_pretrained(steady)
    tokenizer = transformers.AutoTokenizer.from_pretrained(steady)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.0)
    reduce = {
        "mean": lambda states: states.mean(0),
        "max": lambda states: states.max(0).values,
        "cls": lambda states: states[0],
        "lasttoken": lambda states: states[-1],
    }[pooling]

    def vector(text: str) -> torch.Tensor:
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        return torch.nn.functional.normalize(reduce(states), dim=0)

    order = EpochOrder(len(PAIRS), 8, seed=3, drop_last=True)
    assert len(order) == 3
    batches = []
    for epoch in range(2):
        order.epoch = epoch
        batches += list(order)
    shares = [0.0, 0.5, 1.0, 2 / 3, 1 / 3]  # two updates of warm-up, then down to nothing at the sixth
    losses = []
    for places, share in zip(batches, shares, strict=False):
        a, b = (torch.stack([vector(PAIRS[i][side]) for i in places]) for side in (0, 1))
        scores, right = a @ b.T / 0.2, torch.arange(8)
        loss = torch.nn.functional.cross_entropy(scores, right)
        if symmetric:
            loss = (loss + torch.nn.functional.cross_entropy(scores.T, right)) / 2
        losses.append(loss.item())
        optimizer.param_groups[0]["lr"] = 1e-3 * share
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    np.testing.assert_allclose(found.loss, losses, rtol=2e-5)


@pytest.mark.slow
def test_partners_are_drawn_together_and_the_geometry_is_followed(tiny_bert: Path) -> None:
    found = iso.contrast(
        tiny_bert, PAIRS, epochs=8, probe=PROBE, every=10, layers=(1, -1), contextual=True, seed=1,
        **QUICK | {"learning_rate": 5e-3},
    )  # fmt: skip
    assert found.loss[-5:].mean() < found.loss[:5].mean() - 0.2
    assert found.trajectory["step"].tolist() == [0, 10, 20, 24]
    last = found.trajectory["mean_cosine@-1"][-1]
    states = []
    with torch.no_grad():
        for text in PROBE:
            out = found.model(**found.tokenizer(text, return_tensors="pt"))
            states.append(out.last_hidden_state[0, 1:-1])  # without [CLS] and [SEP]
    assert last == pytest.approx(iso.mean_cosine(torch.cat(states)), rel=1e-4)
    assert {"adjusted_self_similarity@-1", "mean_norm@1"} <= set(found.trajectory.metrics)


@pytest.mark.slow
def test_temperature_batch_and_seed_change_the_run(tiny_bert: Path) -> None:
    def first(**options: Any) -> list[float]:
        return iso.contrast(tiny_bert, PAIRS, steps=2, **QUICK | options).loss.tolist()

    assert first() == first()
    found = [first(), first(temperature=0.5), first(batch_size=6), first(seed=1), first(max_length=4)]
    assert len({losses[0] for losses in found}) == 5
    assert first(warmup=0.0)[0] == found[0][0]
    assert first(weight_decay=0.5, warmup=0.0) != first(warmup=0.0)


@pytest.mark.slow
def test_a_model_at_hand_is_not_changed(tiny_gpt: Path) -> None:
    given = iso.models.load_language_model(tiny_gpt, device="cpu")
    before = {name: values.clone() for name, values in given.model.state_dict().items()}
    found = iso.contrast(given, PAIRS, steps=3, pooling="lasttoken", **QUICK)
    assert all(torch.equal(values, given.model.state_dict()[name]) for name, values in before.items())
    assert not any(p.requires_grad for p in given.model.parameters())
    assert any(not torch.equal(before[name], values) for name, values in found.model.state_dict().items())
    by_folder = iso.contrast(tiny_gpt, PAIRS, steps=3, pooling="lasttoken", **QUICK)
    assert found.loss.tolist() == by_folder.loss.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
def test_the_saved_model_pools_as_it_was_trained(tiny_bert: Path, tmp_path: Path, pooling: str) -> None:
    found = iso.contrast(tiny_bert, PAIRS, steps=2, pooling=pooling, run=tmp_path / "run", **QUICK)
    assert found.model_folder == tmp_path / "run" / "model"
    vectors = iso.encode(PROBE, model=found.model_folder, cache=False, device="cpu")
    reduce = {"mean": lambda s: s.mean(0), "max": lambda s: s.amax(0), "cls": lambda s: s[0]}
    with torch.no_grad():
        for text, vector in zip(PROBE, vectors, strict=True):
            states = found.model(**found.tokenizer(text, return_tensors="pt")).last_hidden_state[0]
            wanted = reduce.get(pooling, lambda s: s[-1])(states)
            np.testing.assert_allclose(vector, wanted, atol=1e-5)


def test_a_gguf_model_trains(tmp_path: Path) -> None:
    """What was quantised is trained as plain numbers: such a model refuses to be."""
    from isoscope.training.encoder_run import unquantized

    config = transformers.LlamaConfig(
        vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2
    )
    model = transformers.LlamaModel(config).eval()
    model.is_quantized = True
    model.config.quantization_config = {"quant_method": "gguf"}
    plain = unquantized(model)
    assert not getattr(plain, "is_quantized", False)
    assert not hasattr(plain.config, "quantization_config")
    ids = torch.arange(5)[None]
    assert torch.equal(plain(ids).last_hidden_state, model(ids).last_hidden_state)
    assert model.config.quantization_config


@pytest.mark.slow
def test_a_run_that_is_done_or_of_another_kind(tiny_bert: Path, tmp_path: Path) -> None:
    options = QUICK | {"steps": 4, "probe": PROBE, "every": 2, "run": tmp_path / "run"}
    first = iso.contrast(tiny_bert, PAIRS, **options)
    again = iso.contrast(tiny_bert, PAIRS, resume=True, **options)
    assert again.model is None
    assert again.to_dict() == first.to_dict()
    assert first.to_dict()["rows"][0]["loss"] is None
    for change in (
        {"temperature": 0.1},
        {"pooling": "cls"},
        {"steps": 5},
        {"probe": PROBE[:-1]},
        {"every": 3},
    ):
        with pytest.raises(InputError, match="another configuration"):
            iso.contrast(tiny_bert, PAIRS, resume=True, **options | change)
    with pytest.raises(FileError, match="run of another kind"):
        iso.training.FineTuned.load(tmp_path / "run")
    with pytest.raises(FileError, match="no finished run"):
        iso.training.Contrasted.load(tmp_path)
    assert "τ = 0.05" in str(first)
    assert f"{first.trajectory['mean_cosine'][-1]:.4f}" in str(first)
    first.figure(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "said"), [(11, None), (12, "12 of 13 measurements shown")])
def test_a_table_says_how_much_of_the_run_it_shows(tiny_bert: Path, steps: int, said: str | None) -> None:
    found = iso.contrast(tiny_bert, PAIRS, steps=steps, probe=PROBE, every=1, **QUICK)
    assert len(found.rows()) == steps + 1
    assert ("measurements shown" in str(found)) == (said is not None)
    assert said is None or str(found).endswith(said)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"temperature": 0.0}, "`temperature` must be a positive number, got 0.0"),
    ({"temperature": math.nan}, "`temperature` must be .*, got nan"),
    ({"batch_size": 1}, "`batch_size` must be at least 2"),
    ({"batch_size": 31}, "`batch_size` must be at most 30"),
    ({"pooling": "sum"}, "`pooling` must be .*, got 'sum'"),
    ({"steps": 0}, "`steps` must be .*, got 0"),
    ({"epochs": 0}, "`epochs` must be .*, got 0"),
    ({"max_length": 0}, "`max_length` must be .*, got 0"),
    ({"max_length": 2}, "`max_length` must be at least 3"),
    ({"pairs": [("a",)]}, r"`pairs\[0\]` must be two texts, got \('a',\)"),
    ({"pairs": ["ab", "cd"]}, r"`pairs\[0\]` must be two texts, got 'ab'"),
    ({"pairs": [("a cat", "a dog")]}, "`pairs` must be at least 2, got 1"),
    ({"pairs": [("a cat", "a dog"), ("a hat", " ")] * 8}, r"second texts\[1\] is empty"),
    ({"model": "no-such-model"}, "`model` must be"),
    ({"probe": PROBE, "layers": (7,)}, "`layers` must be .*, got 7"),
    ({"probe": []}, "`probe` is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(tiny_bert: Path, options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"model": tiny_bert, "pairs": PAIRS} | QUICK | options
    model, pairs = given.pop("model"), given.pop("pairs")
    with pytest.raises(InputError, match=message):
        iso.contrast(model, pairs, **given)
