from __future__ import annotations

import errno
import json
import math
import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises
from torch import Tensor

import isoscope as iso
from isoscope.errors import FileError, InputError, LabelError, NotFiniteError, ShapeError
from isoscope.training.checkpoint import Checkpoints
from isoscope.training.regularizers import token_places
from isoscope.training.sequences import EpochOrder, tokenized

transformers = pytest.importorskip("transformers", reason="needs the extra `training`")
pytest.importorskip("accelerate", reason="needs the extra `training`")

WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")
SOURCE = random.Random(0)
TEXTS = [" ".join(SOURCE.choices(WORDS, k=SOURCE.randint(3, 9))) for _ in range(40)]
LABELS = ["cat" if "cat" in text else "none" for text in TEXTS]
QUICK: dict[str, Any] = {
    "epochs": 2, "batch_size": 8, "learning_rate": 1e-3, "device": "cpu", "progress": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def steady(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT without dropout."""
    folder = tmp_path_factory.mktemp("steady")
    shutil.copytree(tiny_bert, folder, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def plain_loop(folder: Path, penalty: str | None, strength: float, *, seed: int = 3) -> list[float]:
    """Two epochs by hand: torch alone, one text at a time, scores by isoscope's functions."""
    torch.manual_seed(seed)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    codes = torch.tensor([int(label == "none") for label in LABELS])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)

    def states(places: list[int]) -> tuple[Tensor, Tensor]:
        found = [model(**tokenizer(TEXTS[i], return_tensors="pt"), output_hidden_states=True) for i in places]
        hidden = torch.cat([one[0] for out in found for one in out.hidden_states[1:]])
        return torch.cat([out.logits for out in found]), hidden

    losses = []
    for epoch in range(2):
        order = EpochOrder(len(TEXTS), 8, seed=seed)
        order.epoch = epoch
        with torch.no_grad():
            covariance = torch.cov(states(list(range(len(TEXTS))))[1].T)
        for places in order:
            logits, hidden = states(places)
            loss = torch.nn.functional.cross_entropy(logits, codes[places])
            if penalty == "istar":
                loss = loss + strength * (1 - iso.isoscore_star(hidden, covariance, zeta=0.2))
            elif penalty == "istar-debiased":
                loss = loss + strength * (1 - iso.isoscore(hidden, debias=True))
            elif penalty == "cosreg":
                loss = loss + strength * iso.mean_cosine(hidden)
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return losses


@pytest.mark.slow
@pytest.mark.parametrize(
    ("penalty", "strength"), [(None, 0.0), ("istar", -2.0), ("istar-debiased", 1.0), ("cosreg", 1.0)]
)
def test_losses_are_those_of_a_loop_by_hand(steady: Path, penalty: str | None, strength: float) -> None:
    found = iso.finetune(
        steady,
        TEXTS,
        LABELS,
        test=(TEXTS[:4], LABELS[:4]),
        regularizer=penalty,
        strength=strength,
        seed=3,
        **QUICK,
    )
    np.testing.assert_allclose(found.loss, plain_loop(steady, penalty, strength), rtol=2e-5)
    assert len(found.loss) == 10
    if penalty:
        np.testing.assert_allclose(found.loss, found.losses["task"] + found.losses["penalty"], rtol=1e-6)


@pytest.mark.slow
def test_the_strength_moves_the_space_its_way(tiny_bert: Path) -> None:
    def run(kind: str, strength: float) -> iso.training.FineTuned:
        options = QUICK | {"epochs": 4, "learning_rate": 3e-3}
        return iso.finetune(tiny_bert, TEXTS, LABELS, regularizer=kind, strength=strength, **options)

    for kind, quantity in (("istar", "isoscore_star"), ("istar-debiased", "isoscore_debiased")):
        less, none, more = (getattr(run(kind, strength), quantity) for strength in (-5.0, 0.0, 5.0))
        assert less < none - 0.05
        assert more > none + 0.05
    assert run("cosreg", 5.0).mean_cosine < run("cosreg", 0.0).mean_cosine - 0.05


@pytest.mark.slow
def test_scores_and_geometry_are_those_of_the_model(tiny_bert: Path) -> None:
    test = (TEXTS[:13], LABELS[:13])
    found = iso.finetune(tiny_bert, TEXTS[13:], LABELS[13:], test=test, metric="f1", **QUICK)
    from sklearn.metrics import f1_score

    predicted, states = [], []
    with torch.no_grad():
        for text in TEXTS[:13]:
            out = found.model(**found.tokenizer(text, return_tensors="pt"), output_hidden_states=True)
            predicted.append(found.model.config.id2label[int(out.logits.argmax())])
            states.append(torch.stack(out.hidden_states[1:])[:, 0])
    assert found.score == pytest.approx(f1_score(LABELS[:13], predicted, average="macro"))
    assert found.epochs[-1]["accuracy"] == pytest.approx(np.mean(np.array(LABELS[:13]) == predicted))
    layers = torch.cat(states, dim=1)
    for row, own in zip(found.geometry, [*layers, layers.flatten(0, 1)], strict=True):
        assert row["isoscore_debiased"] == pytest.approx(iso.isoscore(own, debias=True), rel=1e-4)
        assert row["mean_cosine"] == pytest.approx(iso.mean_cosine(own), rel=1e-4)
    assert [row["layer"] for row in found.geometry] == [1, 2, "all"]
    assert found.twonn > 0


@pytest.mark.slow
def test_isoscore_star_is_shrunk_towards_the_training_states(tiny_bert: Path) -> None:
    options = QUICK | {"epochs": 1, "test": (TEXTS[:13], LABELS[:13])}
    whole = iso.finetune(tiny_bert, TEXTS[13:], LABELS[13:], zeta=1.0, **options)
    states = []
    with torch.no_grad():
        for text in TEXTS[13:]:
            out = whole.model(**whole.tokenizer(text, return_tensors="pt"), output_hidden_states=True)
            states.append(torch.stack(out.hidden_states[1:])[:, 0])
    assert whole.isoscore_star == pytest.approx(iso.isoscore(torch.cat(states, 1).flatten(0, 1)), rel=1e-4)


@pytest.mark.slow
def test_pairs_are_read_as_one_sequence(tiny_bert: Path) -> None:
    found = iso.finetune(tiny_bert, TEXTS, LABELS, pairs=TEXTS[::-1], **QUICK)
    alone = iso.finetune(tiny_bert, TEXTS, LABELS, **QUICK)
    assert found.loss[0] != alone.loss[0]
    pair = found.tokenizer([TEXTS[0]], [TEXTS[-1]], return_token_type_ids=True)
    told, untold = (
        tokenized(found.tokenizer, TEXTS[:1], TEXTS[-1:], max_length=24, segments=segments).batch([0])
        for segments in (True, False)
    )
    assert told["input_ids"].tolist() == untold["input_ids"].tolist() == pair["input_ids"]
    assert told["token_type_ids"].tolist() == pair["token_type_ids"]
    assert set(untold) == {"input_ids", "attention_mask"}


@pytest.mark.slow
def test_seeds_decide_everything_and_leave_the_callers_alone(tiny_bert: Path) -> None:
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)
    before = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy())
    first, same, other = (iso.finetune(tiny_bert, TEXTS, LABELS, seed=seed, **QUICK) for seed in (1, 1, 2))
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert np.array_equal(before[2], np.random.get_state()[1])
    assert first.loss.tolist() == same.loss.tolist()
    assert first.geometry == same.geometry
    assert first.loss[0] != other.loss[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny_gpt", "tiny_model"])
def test_causal_models_and_folders_of_sentence_transformers(
    name: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(name)
    found = iso.finetune(folder, TEXTS, LABELS, regularizer="istar-debiased", strength=0.1, **QUICK)
    assert np.isfinite(found.loss).all()
    assert len(found.geometry) == {"tiny_gpt": 4, "tiny_model": 2}[name]


@pytest.mark.slow
def test_any_function_as_regularizer(tiny_bert: Path) -> None:
    seen = []

    def norm(states: Any, mask: Tensor) -> Tensor:
        seen.append((len(states), states[0].shape[:2] == mask.shape))
        return states[-1][mask.bool()].square().mean()

    found = iso.finetune(tiny_bert, TEXTS, LABELS, regularizer=norm, strength=0.5, **QUICK)
    np.testing.assert_allclose(found.loss, found.losses["task"] + found.losses["penalty"], rtol=1e-6)
    assert set(seen) == {(3, True)}
    assert found.configuration["regularizer"] == "norm"


@pytest.mark.slow
def test_half_precision_and_warm_up_are_heeded(tiny_bert: Path) -> None:
    plain = iso.finetune(tiny_bert, TEXTS, LABELS, **QUICK)
    half = iso.finetune(tiny_bert, TEXTS, LABELS, precision="bf16", regularizer="istar", **QUICK)
    assert half.losses["task"][0] != plain.loss[0]
    assert half.losses["task"][0] == pytest.approx(plain.loss[0], rel=0.05)
    slow = iso.finetune(tiny_bert, TEXTS, LABELS, warmup=0.9, **QUICK)
    assert slow.loss[0] == plain.loss[0]
    assert slow.loss[-1] != plain.loss[-1]


@pytest.mark.slow
def test_a_probe_is_followed_and_may_stop_the_run(tiny_bert: Path, tmp_path: Path) -> None:
    found = iso.finetune(tiny_bert, TEXTS, LABELS, probe=TEXTS[:10], every=3, **QUICK)
    assert found.trajectory["step"].tolist() == [0, 3, 6, 8]
    assert math.isnan(found.trajectory["loss"][0])
    assert found.trajectory["loss"][1] == found.loss[2]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    for run in (tmp_path / "a", tmp_path / "a"):  # the second time from the folder
        tracker = iso.GeometryTracker(
            TEXTS[:10], tokenizer=tokenizer, every=3, stop_below={"effective_rank": 99.0}
        )
        stopped = iso.finetune(tiny_bert, TEXTS, LABELS, tracker=tracker, run=run, resume=True, **QUICK)
        assert "effective_rank" in str(stopped.stopped)
        assert len(stopped.loss) == 1
    with pytest.raises(InputError, match="exclude each other"):
        iso.finetune(tiny_bert, TEXTS, LABELS, tracker=tracker, probe=TEXTS[:10], **QUICK)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"strength": math.nan, "regularizer": "istar"},
        InputError,
        "`strength` must be a finite number, got nan",
    ),
    ({"strength": "x", "regularizer": "istar"}, InputError, "`strength` must be .*, got 'x'"),
    ({"regularizer": "iso"}, InputError, "`regularizer` must be one of istar"),
    ({"zeta": 2.0, "regularizer": "istar"}, InputError, "`zeta` must be"),
    ({"batch_size": 1}, InputError, "`batch_size` must be at least 2"),
    ({"epochs": 0}, InputError, "`epochs` must be .*, got 0"),
    ({"learning_rate": 0.0}, InputError, "`learning_rate` must be .*, got 0.0"),
    ({"learning_rate": math.inf}, InputError, "`learning_rate` must be .*, got inf"),
    ({"warmup": 1.5}, InputError, "`warmup` must be"),
    ({"max_grad_norm": -1}, InputError, "`max_grad_norm` must be .*, got -1"),
    ({"precision": "half"}, InputError, "`precision` must be .*, got 'half'"),
    ({"metric": "auc"}, InputError, "`metric` must be .*, got 'auc'"),
    ({"seed": -1}, InputError, "`seed` must be a whole number"),
    ({"save_every": 0}, InputError, "`save_every` must be .*, got 0"),
    ({"max_length": 0}, InputError, "`max_length` must be .*, got 0"),
    ({"max_length": 2}, InputError, "`max_length` must be at least 3"),
    ({"max_length": 4, "pairs": TEXTS}, InputError, "`max_length` must be at least 5"),
    ({"device": "cuda:3"}, InputError, "cuda"),
    ({"device": "mps"}, InputError, "`device` must be"),
    ({"test": 1.0}, InputError, "`test` must be a share"),
    ({"test": 0.99}, InputError, "leaves 0 of 40"),
    ({"test": (TEXTS, TEXTS, LABELS)}, InputError, "`test` has 3 parts"),
    ({"test": (["a cat"], ["bird"])}, LabelError, "'bird', which is not a label"),
    ({"test": (["a cat"], ["cat", "cat"])}, ShapeError, "test labels"),
    ({"labels": ["cat"] * 40}, LabelError, "only the value 'cat'"),
    ({"labels": LABELS[:-1]}, ShapeError, "`labels` has 39"),
    ({"pairs": TEXTS[:-1]}, ShapeError, "`pairs` has 39 entries for 40"),
    ({"texts": ["  ", *TEXTS[1:]]}, InputError, r"`texts\[0\]` is empty"),
    ({"texts": "a cat"}, InputError, "`texts` must be a sequence of strings"),
    ({"texts": []}, ShapeError, "`texts` is empty"),
    ({"texts": [1, *TEXTS[1:]]}, InputError, r"`texts\[0\]` must be a string"),
    ({"model": "no/such-model"}, InputError, "is not on this machine"),
]


@pytest.mark.parametrize(("options", "kind", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_input(tiny_bert: Path, options: dict[str, Any], kind: type[Exception], message: str) -> None:
    given: dict[str, Any] = {"model": tiny_bert, "texts": TEXTS, "labels": LABELS} | QUICK | options
    model, texts, labels = given.pop("model"), given.pop("texts"), given.pop("labels")
    with pytest.raises(kind, match=message):
        iso.finetune(model, texts, labels, **given)


def test_one_process_only(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="WORLD_SIZE"):
        iso.finetune(tiny_bert, TEXTS, LABELS, **QUICK)


def test_texts_without_tokens() -> None:
    class Deaf:
        pad_token_id = 0

        def __call__(self, texts: list[str], **_: Any) -> dict[str, list[list[int]]]:
            return {"input_ids": [[1] if text.isascii() else [] for text in texts]}

    with raises(argument="texts[1]", message=r"no tokens \(1 of 2"):
        tokenized(Deaf(), ["a", "\u200b"], max_length=8)
    with pytest.raises(InputError, match="only padding"):
        token_places(torch.zeros(2, 3, dtype=torch.int64))


class Trouble:
    """A penalty that does something at its n-th call."""

    def __init__(self, at: int, act: Any) -> None:
        self.at, self.act, self.n = at, act, 0

    def __call__(self, states: Any, mask: Tensor) -> Tensor:
        self.n += 1
        value = states[-1].square().mean()
        return self.act(value) if self.n == self.at else value


@pytest.mark.slow
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_the_run(tiny_bert: Path, tmp_path: Path, value: float) -> None:
    trouble = Trouble(6, lambda found: found * value)
    with pytest.raises(
        NotFiniteError, match=f"became {value} at step 6 .* checkpoint of step 4 is in"
    ) as stop:
        iso.finetune(
            tiny_bert, TEXTS, LABELS, regularizer=trouble, run=tmp_path / "run", save_every=2, **QUICK
        )
    assert str(tmp_path / "run") in str(stop.value)
    kept = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert kept == ["checkpoint-2", "checkpoint-4", "config.json"]
    for path in kept[:2]:
        weights = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / path)
        assert all(p.isfinite().all() for p in weights.parameters())


@pytest.mark.parametrize("penalty", ["istar", None])
def test_a_model_that_diverges_is_not_kept(tiny_bert: Path, tmp_path: Path, penalty: str | None) -> None:
    options = QUICK | {"learning_rate": 1e30, "regularizer": penalty, "save_every": 1}
    with pytest.raises(
        NotFiniteError, match=r"step [23456]\b.*: the run is stopped; lower the learning rate"
    ):
        iso.finetune(tiny_bert, TEXTS, LABELS, run=tmp_path / "run", **options)
    for path in (tmp_path / "run").glob("checkpoint-*"):
        kept = transformers.AutoModelForSequenceClassification.from_pretrained(path)
        assert all(p.isfinite().all() for p in kept.parameters())


@pytest.mark.parametrize("penalty", ["istar", None])
def test_a_last_update_that_breaks_the_model_is_told(
    tiny_bert: Path, tmp_path: Path, penalty: str | None
) -> None:
    """One update an epoch: its loss is finite, the weights too, and what they make of a text is not."""
    options = QUICK | {"learning_rate": 1e30, "regularizer": penalty, "epochs": 1, "batch_size": 64}
    wanted = r"^the scores of the held-out texts are not finite after step 1: the run is stopped"
    with pytest.raises(NotFiniteError, match=wanted):
        iso.finetune(tiny_bert, TEXTS, LABELS, run=tmp_path / "run", **options)
    assert not list((tmp_path / "run").glob("checkpoint-*"))


def test_states_that_are_not_finite_are_not_the_callers_to_drop(tiny_bert: Path) -> None:
    options = QUICK | {"learning_rate": 1e30, "regularizer": "istar"}
    with pytest.raises(
        NotFiniteError, match=r"^the token states are not finite at step 2: the run is stopped"
    ):
        iso.finetune(tiny_bert, TEXTS, LABELS, **options)


@pytest.mark.slow
def test_weights_that_are_not_finite_are_not_kept(tiny_bert: Path, tmp_path: Path) -> None:
    steep = Trouble(3, lambda value: value + (value - value).sqrt())  # finite, its slope is not
    with pytest.raises(NotFiniteError, match=r"weights are not finite after step 3: .* step 2 is in"):
        iso.finetune(
            tiny_bert,
            TEXTS,
            LABELS,
            regularizer=steep,
            run=tmp_path / "run",
            save_every=1,
            **QUICK | {"epochs": 3},
        )
    assert not (tmp_path / "run" / "checkpoint-3").exists()


@pytest.mark.slow
def test_interrupted_and_resumed(tiny_bert: Path, tmp_path: Path, hears_interrupts: None) -> None:
    def interrupt(value: Tensor) -> Tensor:
        signal.raise_signal(signal.SIGINT)
        return value

    options = QUICK | {"run": tmp_path / "run", "probe": TEXTS[:10], "every": 2}
    with pytest.raises(KeyboardInterrupt, match="interrupted after update 6; resume the run from"):
        iso.finetune(tiny_bert, TEXTS, LABELS, regularizer=Trouble(6, interrupt), **options)
    assert (tmp_path / "run" / "checkpoint-6").is_dir()
    harmless = {"regularizer": Trouble(0, None)}
    resumed = iso.finetune(tiny_bert, TEXTS, LABELS, resume=True, **options, **harmless)
    whole = iso.finetune(tiny_bert, TEXTS, LABELS, **options | {"run": None}, **harmless)
    assert resumed.loss.tolist() == whole.loss.tolist()
    for name, values in whole.trajectory.columns.items():
        np.testing.assert_array_equal(resumed.trajectory[name], values)
    assert resumed.epochs == whole.epochs


@pytest.mark.slow
def test_a_full_disk(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = QUICK | {"run": tmp_path / "run", "save_every": 2}
    real, n = torch.save, 0

    def save(*args: Any, **more: Any) -> None:
        nonlocal n
        n += 1
        if n > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(*args, **more)

    monkeypatch.setattr(torch, "save", save)
    wanted = "step 4 cannot be written to .*: No space left on device; resume from that of step 2"
    with pytest.raises(FileError, match=wanted):
        iso.finetune(tiny_bert, TEXTS, LABELS, **options)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["checkpoint-2", "config.json"]
    monkeypatch.setattr(torch, "save", real)
    resumed = iso.finetune(tiny_bert, TEXTS, LABELS, resume=True, **options)
    assert (
        resumed.loss.tolist()
        == iso.finetune(tiny_bert, TEXTS, LABELS, **options | {"run": None}).loss.tolist()
    )


@pytest.mark.slow
def test_a_run_that_is_done(tiny_bert: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = iso.finetune(tiny_bert, TEXTS, LABELS, run=run, regularizer="istar", **QUICK)
    assert sorted(path.name for path in run.iterdir()) == [
        "config.json",
        "model",
        "result.json",
        "trajectory.parquet",
    ]
    assert not list((run / "model").glob("*.bin"))
    stamp = (run / "result.json").stat().st_mtime_ns
    again = iso.finetune(tiny_bert, TEXTS, LABELS, run=run, resume=True, regularizer="istar", **QUICK)
    assert (run / "result.json").stat().st_mtime_ns == stamp
    assert again.to_dict() == first.to_dict() == iso.training.FineTuned.load(run).to_dict()
    assert again.loss.tolist() == first.loss.tolist()
    kept = transformers.AutoModelForSequenceClassification.from_pretrained(again.model_folder).eval()
    inputs = first.tokenizer(TEXTS[0], return_tensors="pt")
    for name, values in first.model.state_dict().items():
        assert torch.equal(kept.state_dict()[name], values), name
    torch.testing.assert_close(kept(**inputs).logits, first.model(**inputs).logits)
    assert kept.config.id2label == {0: "cat", 1: "none"}
    with pytest.raises(InputError, match="holds a run already"):
        iso.finetune(tiny_bert, TEXTS, LABELS, run=run, **QUICK)
    for change in (
        {"seed": 1},
        {"strength": 2.0},
        {"batch_size": 4},
        {"save_every": 3},
        {"probe": TEXTS[:10]},
    ):
        with pytest.raises(InputError, match="another configuration"):
            iso.finetune(
                tiny_bert, TEXTS, LABELS, run=run, resume=True, **({"regularizer": "istar"} | QUICK | change)
            )
    with pytest.raises(InputError, match=r"another configuration \(data differ"):
        iso.finetune(tiny_bert, TEXTS[::-1], LABELS, run=run, resume=True, regularizer="istar", **QUICK)
    with pytest.raises(FileError, match="no finished run"):
        iso.training.FineTuned.load(tmp_path)


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def other_digit(path: Path) -> None:
    """Change one digit of a loss, which is still JSON."""
    text = path.read_text()
    at = text.index("0.", text.index("losses")) + 4
    path.write_text(text[:at] + str(9 - int(text[at])) + text[at + 1 :])


DAMAGES = {
    "flipped": lambda run: flip(run / "checkpoint-6" / "optimizer.pt"),
    "another loss": lambda run: other_digit(run / "checkpoint-6" / "journal.json"),
    "missing": lambda run: (run / "checkpoint-6" / "rng_state.pth").unlink(),
    "no list": lambda run: (run / "checkpoint-6" / ".checksums.json").unlink(),
    "of another step": lambda run: shutil.copytree(
        run / "checkpoint-4", run / "checkpoint-6", dirs_exist_ok=True
    ),
    "both": lambda run: [flip(path) for path in run.glob("checkpoint-*/model.safetensors")],
}


@pytest.mark.slow
def test_a_damaged_checkpoint_gives_way_to_the_one_before(tiny_bert: Path, tmp_path: Path) -> None:
    options = QUICK | {"save_every": 2}
    with pytest.raises(NotFiniteError):
        iso.finetune(
            tiny_bert, TEXTS, LABELS, regularizer=Trouble(8, lambda v: v * math.nan),
            run=tmp_path / "run", **options,
        )  # fmt: skip
    options |= {"regularizer": Trouble(0, None), "resume": True}
    whole = iso.finetune(tiny_bert, TEXTS, LABELS, **options)
    for name, damage in DAMAGES.items():
        run = shutil.copytree(tmp_path / "run", tmp_path / name)
        damage(run)
        with pytest.warns(RuntimeWarning, match=r"; the checkpoint of step \d is ignored"):
            again = iso.finetune(tiny_bert, TEXTS, LABELS, run=run, **options)
        assert again.loss.tolist() == whole.loss.tolist(), name
        assert again.geometry == whole.geometry


@pytest.mark.slow
def test_damage_to_a_run_that_is_done(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"

    def tuned() -> iso.training.FineTuned:
        return iso.finetune(tiny_bert, TEXTS, LABELS, run=run, resume=True, save_every=2, **QUICK)

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "clear", lambda self: 1 / 0)  # killed before the checkpoints are gone
        with pytest.raises(ZeroDivisionError):
            tuned()
    assert list(run.glob("checkpoint-*"))
    whole = tuned()
    names = {path.name for path in run.iterdir()}
    assert names == {"config.json", "model", "result.json", "trajectory.parquet"}
    for name in ("result.json", "trajectory.parquet"):
        content = (run / name).read_bytes()
        (run / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(FileError, match=name):
            iso.training.FineTuned.load(run)
        with pytest.warns(RuntimeWarning, match=f"{name} .*; the run resumes from its last checkpoint, or"):
            assert tuned().loss.tolist() == whole.loss.tolist()
        assert iso.training.FineTuned.load(run).geometry == whole.geometry
    other_digit(run / "result.json")
    with pytest.raises(FileError, match="damaged: its checksum does not match"):
        iso.training.FineTuned.load(run)
    with pytest.warns(RuntimeWarning, match="damaged"):
        tuned()
    flip(run / "model" / "model.safetensors")
    with pytest.raises(
        FileError, match=r"model\.safetensors is damaged.*\. Delete .*model to use only the result"
    ):
        tuned()
    shutil.rmtree(run / "model")
    assert tuned().loss.tolist() == whole.loss.tolist()


@pytest.mark.slow
def test_table_figure_and_dict(tiny_bert: Path, tmp_path: Path) -> None:
    found = iso.finetune(tiny_bert, TEXTS, LABELS, regularizer="istar", strength=-1.0, **QUICK)
    text = str(found)
    assert "istar, λ = -1" in text
    assert f"{found.isoscore_star:.4f}" in text
    assert found.figure(tmp_path / "figure.png") is not None
    assert (tmp_path / "figure.png").stat().st_size > 1000
    assert "training loss, with penalty" in text
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["score"] == found.score
    assert found.trajectory["step"].tolist() == [4, 8]
    assert found.trajectory["accuracy"][-1] == found.score


@pytest.mark.slow
def test_the_loss_is_called_what_it_is(tiny_bert: Path) -> None:
    plain = str(iso.finetune(tiny_bert, TEXTS, LABELS, **QUICK))
    weightless = str(iso.finetune(tiny_bert, TEXTS, LABELS, regularizer="istar", strength=0.0, **QUICK))
    for text in (plain, weightless):
        assert "training loss" in text
        assert "with penalty" not in text


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [1, 2])
def test_the_figure_has_whole_epochs_and_layers(tiny_bert: Path, epochs: int) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra `plot`")
    drawn = iso.finetune(tiny_bert, TEXTS, LABELS, **QUICK | {"epochs": epochs}).figure()
    for axes, n in zip(drawn.axes[1:], (epochs, 2), strict=True):
        low, high = axes.get_xlim()
        assert [tick for tick in axes.get_xticks() if low <= tick <= high] == [*range(1, n + 1)]
