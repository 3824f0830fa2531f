"""A masked model learns what can be learnt, hides what it should, and gives the same numbers again."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises

from isoscope.errors import InputError
from isoscope.training import masked
from isoscope.training.masked import MaskedLM, hide, train_masked_lm

transformers = pytest.importorskip("transformers", reason="needs the extra `training`")
pytest.importorskip("accelerate", reason="needs the extra `training`")

WORDS = [f"w{number}" for number in range(12)]
QUICK: dict[str, Any] = {
    "n_layers": 1, "n_dims": 32, "n_heads": 2, "window": 14, "batch_size": 16, "learning_rate": 1e-2,
    "device": "cpu", "progress": False,
}  # fmt: skip


def repeated(n: int, seed: int) -> list[str]:
    """Texts of one word each, over and over: a hidden word can be read off its neighbours."""
    source = random.Random(seed)
    return [" ".join([source.choice(WORDS)] * 12) for _ in range(n)]


TEXTS, HELD_OUT = repeated(96, 0), repeated(40, 1)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, mask_token="[MASK]", **marks)


@pytest.mark.slow
def test_it_learns_more_than_frequencies(tokenizer: Any) -> None:
    found = train_masked_lm(TEXTS, tokenizer=tokenizer, held_out=HELD_OUT, steps=150, **QUICK)
    assert found.unigram_loss == pytest.approx(np.log(len(WORDS)), abs=0.2)
    assert found.held_out_loss is not None
    assert found.held_out_loss < 0.5 * found.unigram_loss
    assert found.loss[-20:].mean() < 0.6 * found.loss[:5].mean()
    untrained = train_masked_lm(TEXTS, tokenizer=tokenizer, held_out=HELD_OUT, steps=1, **QUICK)
    assert untrained.held_out_loss > found.unigram_loss - 0.1


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers(tokenizer: Any) -> None:
    def losses(**options: Any) -> list[float]:
        return train_masked_lm(TEXTS, tokenizer=tokenizer, steps=8, **QUICK | options).loss.tolist()

    assert losses() == losses()
    assert losses(seed=1)[0] != losses()[0]
    assert losses()[0] != losses(precision="bf16")[0] == pytest.approx(losses()[0], rel=0.05)
    before = torch.random.get_rng_state()
    losses()
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.slow
def test_a_run_cut_short_goes_on_to_the_same_numbers(tokenizer: Any, tmp_path: Path, monkeypatch) -> None:
    options = QUICK | {"steps": 13, "save_every": 4, "seed": 2}
    whole = train_masked_lm(TEXTS, tokenizer=tokenizer, held_out=HELD_OUT, **options)
    n_seen = 0
    loss_of = masked.MaskedTokens.loss

    def dies(self: Any, *arguments: Any) -> Any:
        nonlocal n_seen
        n_seen += 1
        if n_seen == 10:  # within the second epoch of 6 updates, 2 after a checkpoint
            raise RuntimeError("killed")
        return loss_of(self, *arguments)

    monkeypatch.setattr(masked.MaskedTokens, "loss", dies)
    with pytest.raises(RuntimeError, match="killed"):
        train_masked_lm(TEXTS, tokenizer=tokenizer, held_out=HELD_OUT, run=tmp_path, **options)
    monkeypatch.undo()
    again = train_masked_lm(
        TEXTS, tokenizer=tokenizer, held_out=HELD_OUT, run=tmp_path, resume=True, **options
    )
    assert again.loss.tolist() == whole.loss.tolist()
    assert again.held_out_loss == whole.held_out_loss
    kept = MaskedLM.load(tmp_path)
    assert (kept.held_out_loss, kept.unigram_loss) == (whole.held_out_loss, whole.unigram_loss)
    assert kept.model_folder is not None
    read = transformers.AutoModelForMaskedLM.from_pretrained(kept.model_folder)
    for name, values in whole.model.state_dict().items():
        assert torch.equal(read.state_dict()[name], values), name
    with pytest.raises(InputError, match="steps was 13, now 14"):
        train_masked_lm(
            TEXTS,
            tokenizer=tokenizer,
            held_out=HELD_OUT,
            run=tmp_path,
            resume=True,
            **options | {"steps": 14},
        )


@pytest.mark.slow
def test_snapshots_are_checkpoints_that_can_be_measured(tokenizer: Any, tmp_path: Path) -> None:
    """The snapshot of the last update is the trained model; one before training has its first weights."""
    from isoscope.models import load_language_model, measure_checkpoints

    run = tmp_path / "run"
    found = train_masked_lm(TEXTS, tokenizer=tokenizer, steps=8, run=run, snapshots=[0, 3, 8], **QUICK)
    names = ["step-0", "step-3", "step-8"]
    assert sorted(path.name for path in (run / "snapshots").iterdir()) == names
    last, first = (load_language_model(run / "snapshots" / name, device="cpu") for name in names[::-2])
    for name, weight in last.model.encoder.named_parameters(prefix="encoder"):
        assert torch.equal(weight, found.model.get_parameter(f"bert.{name}"))
    assert not torch.equal(first.model.embeddings.word_embeddings.weight,
                           last.model.embeddings.word_embeddings.weight)  # fmt: skip
    followed = measure_checkpoints(
        run / "snapshots", TEXTS[:8], metrics="mean_cosine", device="cpu", progress=False
    )
    assert list(followed.profiles) == names
    plain = train_masked_lm(TEXTS, tokenizer=tokenizer, steps=8, **QUICK)
    assert np.array_equal(plain.loss, found.loss)
    assert found.configuration == MaskedLM.load(run).configuration
    assert "snapshots" not in found.configuration


def test_what_is_hidden_and_how() -> None:
    ids = torch.full((200, 500), 7)
    can_be = torch.ones_like(ids, dtype=torch.bool)
    can_be[:, ::5] = False
    shown, hidden = hide(ids, can_be, mask=1, n_types=10_000, source=np.random.default_rng(0))
    n = int(hidden.sum())
    assert not hidden[:, ::5].any()
    assert (shown[~hidden] == 7).all()
    assert n / can_be.sum() == pytest.approx(0.15, abs=0.005)
    changed = shown[hidden]
    assert (changed == 1).sum() / n == pytest.approx(0.8, abs=0.015)
    assert (changed == 7).sum() / n == pytest.approx(0.1, abs=0.01)
    others = changed[(changed != 1) & (changed != 7)]
    assert len(others) / n == pytest.approx(0.1, abs=0.01)
    assert others.double().mean() == pytest.approx(5000, rel=0.1)
    shown, hidden = hide(ids[0], can_be[0], mask=1, n_types=9, source=np.random.default_rng(0), rate=1e-9)
    assert int(hidden.sum()) == 1
    assert shown[hidden].tolist() == [1]


def test_special_tokens_are_never_hidden_and_masks_change_by_epoch(tokenizer: Any) -> None:
    texts = [text.replace("w1", "[UNK]") for text in TEXTS]
    task = masked.MaskedTokens(masked._windows(texts, tokenizer, 14), tokenizer, seed=0, precision="float32")
    first, again = task.batch(range(90)), task.batch(range(90))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert first["targets"].min() >= 5
    assert task.counts[:5].sum() == 0
    task.begin_epoch(None, type("Order", (), {"epoch": 1})())
    assert not torch.equal(first["places"], task.batch(range(90))["places"])


def test_snapshots_that_cannot_be_saved(tokenizer: Any, tmp_path: Path) -> None:
    with raises(InputError, argument="snapshots", hint="run"):
        train_masked_lm(TEXTS, tokenizer=tokenizer, steps=4, snapshots=[1], **QUICK)
    with raises(InputError, argument="snapshots", got=5, wanted="from 0 to 4"):
        train_masked_lm(TEXTS, tokenizer=tokenizer, steps=4, run=tmp_path, snapshots=[5, 1], **QUICK)


def test_bad_input(tokenizer: Any, tiny_bert: Path) -> None:
    without = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    with pytest.raises(InputError, match="no mask token"):
        train_masked_lm(TEXTS, tokenizer=without, steps=1, **QUICK)
    for change, message in (
        ({"n_heads": 3}, "`n_dims` must be a multiple of n_heads"),
        ({"batch_size": 1000}, "`batch_size` must be at most 96"),
        ({"steps": 0}, "`steps` must be .*, got 0"),
        ({"precision": "half"}, "`precision` must be .*, got 'half'"),
        ({"n_layers": 0}, "`n_layers` must be .*, got 0"),
    ):
        with pytest.raises(InputError, match=message):
            train_masked_lm(TEXTS, tokenizer=tokenizer, **{"steps": 1} | QUICK | change)


def test_the_result_says_what_it_was_made_of(tokenizer: Any, tmp_path: Path) -> None:
    found = train_masked_lm(TEXTS, tokenizer=tokenizer, steps=2, run=tmp_path, **QUICK)
    assert (found.held_out_loss, found.unigram_loss) == (None, None)
    about = json.loads((tmp_path / "result.json").read_text())["configuration"]
    assert (about["kind"], about["window"], about["n_layers"], about["vocabulary"]) == ("masked", 14, 1, 17)
    assert about["n_tokens"] == 96 * 14
