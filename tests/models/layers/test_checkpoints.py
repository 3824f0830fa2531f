"""The layers of a model over its training, and a run that continues where it stopped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.raising import raises
from typer.testing import CliRunner

from isoscope.cli import app
from isoscope.errors import FileError, InputError, ShapeError
from isoscope.models import measure_checkpoints, measure_layers
from isoscope.models.layers import checkpoints as module
from isoscope.models.resolve import resolve_model

TEXTS = ["a cat sat on the mat", "boom the dog ran to the cat", "dog on a hat", "the hat sat to a cat"] * 3
QUICK: dict[str, Any] = {"clusters": False, "progress": False, "sample": 40, "k": 5, "device": "cpu"}


@pytest.fixture(scope="module")
def run(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write checkpoints whose weights grow by a tenth each time."""
    import transformers

    folder = tmp_path_factory.mktemp("run")
    model = transformers.AutoModel.from_pretrained(tiny_bert)
    for step in (20, 100, 3):
        shutil.copytree(tiny_bert, folder / f"checkpoint-{step}")
        with torch.no_grad():
            model.embeddings.word_embeddings.weight[:, 0] += step / 10
        model.save_pretrained(folder / f"checkpoint-{step}")
    return folder


@pytest.mark.slow
def test_each_checkpoint_in_the_order_of_training(run: Path) -> None:
    trajectory = measure_checkpoints(run, TEXTS, **QUICK)
    assert list(trajectory.profiles) == ["checkpoint-3", "checkpoint-20", "checkpoint-100"]
    for name, profile in trajectory.profiles.items():
        alone = measure_layers(TEXTS, model=run / name, **QUICK)
        assert profile.values("mean_cosine") == alone.values("mean_cosine")
    assert trajectory.values("mean_cosine", 0) == [
        profile.values("mean_cosine")[0] for profile in trajectory.profiles.values()
    ]
    assert trajectory.title.startswith("checkpoint-3 → checkpoint-100: 3 checkpoints, 69 tokens")
    assert "IsoScore debiased by layer" in str(trajectory)
    assert set(trajectory.readings.groups) == {"checkpoint", "layer", "view"}
    with raises(InputError, argument="layer", got=7):
        trajectory.values("mean_cosine", 7)


@pytest.mark.slow
def test_a_run_continues_where_it_stopped(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    measure, options = module.layers, {**QUICK, "metrics": ["mean_cosine", "isoscore", "lid"]}

    def layers(model: Any, *inputs: Any, **chosen: Any) -> Any:
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(Path(model).name)
        return measure(model, *inputs, **chosen)

    monkeypatch.setattr(module, "layers", layers)
    with pytest.raises(KeyboardInterrupt):
        measure_checkpoints(run, TEXTS, folder=tmp_path, **options)
    monkeypatch.setattr(
        module, "layers", lambda model, *a, **k: measured.append(Path(model).name) or measure(model, *a, **k)
    )
    resumed = measure_checkpoints(run, TEXTS, folder=tmp_path, **options)
    assert measured == ["checkpoint-3", "checkpoint-20", "checkpoint-100"]
    whole = measure_checkpoints(run, TEXTS, **options)
    assert [one.value for one in resumed.readings] == [one.value for one in whole.readings]
    assert str(next(resumed.profiles["checkpoint-3"].grids())) == str(
        next(whole.profiles["checkpoint-3"].grids())
    )
    n = len(measured)
    measure_checkpoints(run, TEXTS, folder=tmp_path, **options)
    assert len(measured) == n
    measure_checkpoints(run, TEXTS[:-1], folder=tmp_path, **options)
    assert len(measured) == n + 3  # other texts
    (tmp_path / "checkpoint-3.json").write_text("{")
    measure_checkpoints(run, TEXTS[:-1], folder=tmp_path, **options)
    assert len(measured) == n + 4


@pytest.mark.slow
def test_one_model_is_in_memory_at_a_time(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import weakref

    from isoscope.models.layers import opened

    alive: list[weakref.ref[Any]] = []
    load = opened.load_language_model

    def loading(*arguments: Any, **options: Any) -> Any:
        assert [one() for one in alive] == [None] * len(alive)
        model = load(*arguments, **options)
        alive.append(weakref.ref(model.model))
        return model

    monkeypatch.setattr(opened, "load_language_model", loading)
    measure_checkpoints(run, TEXTS, metrics="mean_norm", **QUICK)
    assert len(alive) == 3


@pytest.mark.slow
def test_the_command(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    for models in ([str(run)], [f"{run}@checkpoint-3", f"{run}@checkpoint-20"]):
        words = ["layers", *models, str(tmp_path / "texts.txt"), "-m", "mean_cosine", "-o", str(tmp_path)]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        assert "mean cosine by layer" in result.output
        written = json.loads((tmp_path / "layers.json").read_text())
        assert list(written["checkpoints"])[:2] == ["checkpoint-3", "checkpoint-20"]
        assert (tmp_path / "layers.png").stat().st_size > 5_000
    assert len(list((tmp_path / "checkpoints").glob("*.json"))) == 3


def test_a_revision_is_a_subfolder_or_of_the_hub(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_model(f"{run}@checkpoint-20") == run / "checkpoint-20"
    hub = pytest.importorskip("huggingface_hub")
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        hub, "snapshot_download", lambda name, **options: seen.update(options, name=name) or run
    )
    assert resolve_model("owner/name@step100") == run
    assert (seen["name"], seen["revision"], seen["local_files_only"]) == ("owner/name", "step100", True)


def test_bad_checkpoints(run: Path, tiny_gpt: Path, tmp_path: Path) -> None:
    with raises(ShapeError, argument="checkpoints", message="has 4 layers × 16, and checkpoint-3 has 3 × 16"):
        measure_checkpoints([run / "checkpoint-3", tiny_gpt], TEXTS, metrics="mean_norm", **QUICK)
    with raises(FileError, message="has no checkpoints"):
        measure_checkpoints(tmp_path, TEXTS)
    with raises(ShapeError, argument="checkpoints", message="empty"):
        measure_checkpoints([], TEXTS)
    with raises(InputError, argument="checkpoints", message="twice"):
        measure_checkpoints([run, run], TEXTS)


@pytest.mark.slow
def test_the_figure_over_training_and_its_notes(run: Path) -> None:
    """Curves are not cut off where all values are equal, and a note of every checkpoint is shown once."""
    from isoscope.models.layers.layer_figure import draw_layers

    long = [*TEXTS, "a cat sat on the mat " * 6]
    trajectory = measure_checkpoints(run, long, truncate=True, **QUICK)
    assert sum("truncated to 24 tokens, the maximum of the model" in line for line in trajectory.lines()) == 1
    figure = draw_layers(list(trajectory.profiles.values()), over_training=True)
    for panel in figure.axes:
        highest = max((y for line in panel.get_lines() for y in line.get_ydata()), default=None)
        assert highest is None or panel.get_ylim()[1] > highest
        assert "dotted" not in panel.get_title(loc="left")
