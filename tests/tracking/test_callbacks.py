"""The tracker inside the trainers of transformers and sentence-transformers."""

from __future__ import annotations

import logging
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.tracking import callbacks
from isoscope.tracking.tracker import GeometryTracker

TEXTS = ["the cat sat on the mat", "a dog ran", "the dog sat on the hat", "a cat ran to the mat", "the mat"]
METRICS = ("mean_cosine", "effective_rank")


# ---------------------------------------------------------------- transformers


class Labelled(torch.utils.data.Dataset[dict[str, Any]]):
    def __init__(self, tokens: Any) -> None:
        encoded = tokens(TEXTS * 4, padding=True)
        self.rows = [
            {"input_ids": ids, "attention_mask": mask, "labels": i % 2}
            for i, (ids, mask) in enumerate(zip(encoded["input_ids"], encoded["attention_mask"], strict=True))
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return self.rows[row]


def hugging(folder: Path, output: Path, tracker: GeometryTracker | None, **arguments: Any) -> Any:
    """A trainer of the tiny BERT as a classifier, with dropout."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification.from_pretrained(folder)
    tokens = transformers.AutoTokenizer.from_pretrained(folder)
    settings: dict[str, Any] = {
        "max_steps": 6,
        "per_device_train_batch_size": 4,
        "learning_rate": 1e-3,
        "logging_steps": 2,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
        "seed": 3,
    }
    trainer = transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(output_dir=str(output), **(settings | arguments)),
        train_dataset=Labelled(tokens),
    )
    if tracker is not None:
        trainer.add_callback(iso.tracking.geometry_callback(tracker, log=trainer.log))
    return trainer


def following(folder: Path, **options: Any) -> GeometryTracker:
    tokens = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(folder)
    settings: dict[str, Any] = {"metrics": METRICS, "every": 2, "tokenizer": tokens}
    return GeometryTracker(TEXTS, **(settings | options))


def history(trainer: Any, name: str) -> dict[int, float]:
    return {entry["step"]: entry[name] for entry in trainer.state.log_history if name in entry}


@pytest.mark.slow
def test_the_trainer_logs_the_geometry_and_its_losses_stay(tiny_bert: Path, tmp_path: Path) -> None:
    plain = hugging(tiny_bert, tmp_path / "a", None, max_steps=5)
    plain.train()
    tracker = following(tiny_bert, layers=(0, -1), every=2)
    watched = hugging(tiny_bert, tmp_path / "b", tracker, max_steps=5)
    watched.train()
    assert tracker.steps == [0, 2, 4, 5]  # the start, every second, the end
    losses = history(plain, "loss")
    assert list(losses) == [2, 4]
    assert history(watched, "loss") == losses  # each to the bit, and none left out
    run = tracker.trajectory
    for layer in (0, -1):
        column = run[f"effective_rank@{layer}"].tolist()
        assert list(history(watched, f"geometry/effective_rank/{layer}").values()) == column
    assert run["loss"][1:3].tolist() == list(losses.values())
    assert math.isnan(run["loss"][0])
    assert tracker.read(watched.model)["mean_cosine@-1"] == run["mean_cosine@-1"][-1]
    assert run["mean_cosine@-1"][0] != run["mean_cosine@-1"][-1]


@pytest.mark.slow
def test_the_values_reach_tensorboard(tiny_bert: Path, tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("tensorboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "events"))
        tracker = following(tiny_bert)
        hugging(tiny_bert, tmp_path, tracker, report_to=["tensorboard"]).train()
        folder = next((tmp_path / "events").rglob("events.out*")).parent
        events = EventAccumulator(str(folder))
        events.Reload()
        found = events.Scalars("train/geometry/mean_cosine")
    assert [event.step for event in found] == [0, 2, 4, 6]
    np.testing.assert_allclose([event.value for event in found], tracker.trajectory["mean_cosine"], rtol=1e-6)


@pytest.mark.slow
def test_the_trainer_stops_on_collapse_and_says_why(
    tiny_bert: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = following(tiny_bert, every=1, stop_below={"effective_rank": 1e6})
    with caplog.at_level(logging.WARNING, logger="isoscope"):
        trainer = hugging(tiny_bert, tmp_path, tracker)
        trainer.train()
    assert trainer.state.global_step <= 1
    assert "effective_rank is" in caplog.text
    assert "after 0 steps, below its bound 1e+06" in caplog.text


@pytest.mark.slow
def test_a_resumed_trainer_has_the_rows_of_one_that_was_not_stopped(tiny_bert: Path, tmp_path: Path) -> None:
    whole = following(tiny_bert)
    hugging(tiny_bert, tmp_path / "whole", whole).train()
    killed = following(tiny_bert, run=tmp_path / "run")
    arguments: dict[str, Any] = {"save_strategy": "steps", "save_steps": 3}
    trainer = hugging(tiny_bert, tmp_path / "killed", killed, **arguments)
    kill = pytest.importorskip("transformers").TrainerCallback()
    kill.on_step_end = lambda args, state, control, **_: _die() if state.global_step == 5 else None
    trainer.add_callback(kill)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert killed.steps == [0, 2, 4]
    resumed = following(tiny_bert, run=tmp_path / "run", resume=True)
    resumed.note(4, accuracy=0.5)  # to be dropped: the checkpoint is of step 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hugging(tiny_bert, tmp_path / "killed", resumed, **arguments).train(resume_from_checkpoint=True)
    assert resumed.steps == [0, 2, 4, 6]
    assert np.isnan(resumed.trajectory["accuracy"]).all()
    for name in METRICS:
        np.testing.assert_array_equal(resumed.trajectory[name], whole.trajectory[name])


def _die() -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_without_the_trainers_log_the_history_has_the_values(tiny_bert: Path, tmp_path: Path) -> None:
    tracker = following(tiny_bert)
    trainer = hugging(tiny_bert, tmp_path, None)
    trainer.add_callback(iso.tracking.geometry_callback(tracker))
    trainer.train()
    column = tracker.trajectory["mean_cosine"].tolist()
    assert history(trainer, "geometry/mean_cosine") == dict(zip([0, 2, 4, 6], column, strict=True))
    assert list(history(trainer, "loss")) == [2, 4, 6]


# ---------------------------------------------------------------- sentence-transformers


def sentence_model(folder: Path) -> Any:
    return pytest.importorskip("sentence_transformers").SentenceTransformer(str(folder), device="cpu")


def test_the_evaluator_returns_named_values(tiny_model: Path) -> None:
    model = sentence_model(tiny_model)
    tracker = GeometryTracker(TEXTS, layers="output", metrics=METRICS)
    evaluator = iso.tracking.geometry_evaluator(tracker)
    found = evaluator(model, epoch=0.5, steps=7)
    assert found["geometry_mean_cosine"] == pytest.approx(iso.mean_cosine(model.encode(TEXTS)), rel=1e-5)
    assert evaluator.primary_metric in found
    assert tracker.steps == [7]
    assert iso.tracking.geometry_evaluator(tracker, name="probe")(model).keys() == {
        f"probe_{name}" for name in METRICS
    }
    assert tracker.steps == [7]  # without a step, no row


def test_the_evaluator_inside_its_trainer(tiny_model: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="SentenceTransformerTrainer needs datasets")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    model = sentence_model(tiny_model)
    tracker = GeometryTracker(
        TEXTS, layers="output", metrics=METRICS, every=50, stop_below={"mean_cosine": 2.0}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = sentence_transformers.SentenceTransformerTrainer(
            model=model,
            args=sentence_transformers.SentenceTransformerTrainingArguments(
                output_dir=str(tmp_path),
                max_steps=8,
                per_device_train_batch_size=2,
                eval_strategy="steps",
                eval_steps=2,
                save_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=datasets.Dataset.from_dict({"anchor": TEXTS * 4, "positive": TEXTS * 4}),
            loss=MultipleNegativesRankingLoss(model),
            evaluator=iso.tracking.geometry_evaluator(tracker),
        )
        trainer.train()
    assert tracker.steps == [2, 4, 6, 8]  # measured where the trainer evaluates
    evaluated = history(trainer, "eval_geometry_mean_cosine")
    assert list(evaluated.values()) == tracker.trajectory["mean_cosine"].tolist()
    control = pytest.importorskip("transformers").TrainerControl()
    iso.tracking.geometry_callback(tracker).on_evaluate(None, trainer.state, control)
    assert control.should_training_stop


# ---------------------------------------------------------------- what is missing is named


def test_packages_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(callbacks, "import_module", absent)
    tracker = GeometryTracker(torch.eye(6))
    for make, package in (
        (iso.tracking.geometry_callback, "transformers"),
        (iso.tracking.geometry_evaluator, "sentence-transformers"),
        (iso.tracking.lightning_callback, "lightning"),
    ):
        with pytest.raises(iso.InputError, match=f"needs {package}, which is not installed"):
            make(tracker)
