"""Rows reach TensorBoard, and stand-ins of Weights & Biases and MLflow with their calls."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import isoscope as iso
from isoscope.training.loggers import LOGGERS

X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
Y = np.arange(30) % 2


def train(**options: Any) -> iso.Trajectory:
    return iso.train_embeddings(X, Y, steps=3, seeds=2, **options)


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = train(log="tensorboard", run=tmp_path / "run")
    folder = tmp_path / "run" / "tensorboard" / "seed-1"
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    found = events.Scalars("silhouette")
    assert [event.step for event in found] == [0, 1, 2, 3]
    np.testing.assert_allclose(
        [event.value for event in found], run["silhouette"][run["seed"] == 1], rtol=1e-6
    )


def test_tensorboard_beside_the_caller_without_a_run(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("tensorboard")
    monkeypatch.chdir(tmp_path)
    train(log="tensorboard")
    assert list((tmp_path / "runs" / "isoscope" / "tensorboard").iterdir())


def test_wandb(tmp_path: Path, monkeypatch) -> None:
    calls: list[Any] = []
    opened = SimpleNamespace(
        define_metric=lambda name, **options: calls.append(("define", name, options)),
        log=lambda values: calls.append(("log", values)),
        finish=lambda: calls.append("finish"),
    )
    module = ModuleType("wandb")
    module.init = lambda **options: (calls.append(("init", options)), opened)[1]
    monkeypatch.setitem(sys.modules, "wandb", module)
    run = train(log="wandb", run=tmp_path / "run")
    assert calls[0][1]["config"]["steps"] == 3
    assert calls[0][1]["dir"] == str(tmp_path / "run")
    logged = [call[1] for call in calls if call[0] == "log"]
    assert len(logged) == 8
    assert logged[-1]["step"] == 3
    assert logged[-1]["seed-1/silhouette"] == run["silhouette"][-1]
    assert calls[-1] == "finish"


def test_mlflow(monkeypatch) -> None:
    calls: list[Any] = []
    module = ModuleType("mlflow")
    module.start_run = lambda **options: calls.append(("start", options))
    module.log_params = lambda values: calls.append(("params", values))
    module.log_metrics = lambda values, step: calls.append(("metrics", values, step))
    module.end_run = lambda: calls.append("end")
    monkeypatch.setitem(sys.modules, "mlflow", module)
    run = train(log="mlflow")
    assert calls[1][1]["learning_rate"] == "0.001"
    assert calls[2] == ("metrics", {f"seed-0/{n}": run[n][0] for n in list(run.columns)[2:]}, 0)
    assert calls[-1] == "end"


def test_closed_even_when_training_fails(monkeypatch) -> None:
    calls: list[str] = []
    module = ModuleType("mlflow")
    module.start_run = module.log_params = lambda *_, **__: None
    module.log_metrics = lambda values, step: 1 / 0
    module.end_run = lambda: calls.append("closed")
    monkeypatch.setitem(sys.modules, "mlflow", module)
    with pytest.raises(ZeroDivisionError):
        train(log="mlflow", callback=lambda row: None)
    assert calls == ["closed"]


def test_what_has_no_value_is_not_logged(monkeypatch) -> None:
    calls: list[dict] = []
    module = ModuleType("mlflow")
    module.start_run = module.log_params = lambda *_, **__: None
    module.log_metrics = lambda values, step: calls.append(values)
    module.end_run = lambda: None
    monkeypatch.setitem(sys.modules, "mlflow", module)
    iso.train_embeddings(X[:3], [0, 0, 1], steps=1, seeds=1, metrics="isoscore_debiased", log="mlflow")
    assert set(calls[0]) == {"seed-0/loss", "seed-0/accuracy"}


@pytest.mark.parametrize("name", list(LOGGERS))
def test_an_absent_package_is_named(name: str, monkeypatch) -> None:
    for module in ("torch.utils.tensorboard", "wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(iso.InputError, match=f"pip install {name}"):
        train(log=name)


def test_any_function_hears_every_row() -> None:
    rows: list[dict] = []
    run = train(log=rows.append)
    assert [row["loss"] for row in rows] == run["loss"].tolist()
