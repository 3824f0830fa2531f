"""`isoscope reproduce istar`: flags that change something, sweeps that go on, pages made again, bad input."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from isoscope.cli import app

pytest.importorskip("transformers", reason="needs the extra `training`")
pytest.importorskip("accelerate", reason="needs the extra `training`")

WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")
QUICK = ("--epochs", 1, "--batch-size", 8, "--learning-rate", 1e-3, "--device", "cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny RTE and CoLA: whether there is a cat."""
    folder, source = tmp_path_factory.mktemp("data"), random.Random(0)
    (folder / "glue").mkdir()
    for task in ("rte", "cola"):
        for split, n in (("train", 24), ("dev", 16)):
            texts = [" ".join(source.choices(WORDS, k=source.randint(3, 9))) for _ in range(n)]
            if task == "rte":
                rows: list[dict[str, Any]] = [
                    {"sentence1": t, "sentence2": "a cat", "label": _entailed("cat" in t)} for t in texts
                ]
            else:
                rows = [{"sentence": t, "label": int("cat" in t)} for t in texts]
            lines = "\n".join(map(json.dumps, rows))
            (folder / "glue" / f"{task}_{split}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


def _entailed(is_so: bool) -> str:
    return "entailment" if is_so else "not_entailment"


def invoke(*arguments: object) -> Any:
    found = CliRunner().invoke(app, ["reproduce", "istar", *map(str, arguments)])
    assert found.exit_code == 0, found.output
    return found


def sweep(model: Path, data: Path, *arguments: object) -> dict[str, Any]:
    found = invoke("--model", model, "--data", data, *QUICK, *arguments, "--json")
    return json.loads(found.stdout)


@pytest.mark.slow
def test_a_sweep_keeps_its_runs_and_goes_on(tiny_bert: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("-s", "rte", "--strengths", "-1,0,1", "-o", out)
    first = sweep(tiny_bert, data, *options, "--seeds", 1)
    runs = first["sweeps"]["RTE"]["runs"]
    assert sorted((run["regularizer"], run["strength"], run["seed"]) for run in runs) == [
        ("istar", -1.0, 0), ("istar", 1.0, 0), ("none", 0.0, 0),
    ]  # fmt: skip
    files = {path: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}
    assert {path.name for path in files} == {
        f"istar-rte-{name}-0-{tiny_bert.name}.json" for name in ("istar--1", "istar-1", "none-0")
    }
    second = sweep(tiny_bert, data, *options, "--seeds", 2)["sweeps"]["RTE"]["runs"]
    assert len(second) == 6
    assert [run for run in second if run["seed"] == 0] == runs
    assert all(path.stat().st_mtime_ns == changed for path, changed in files.items())
    page = (out / "istar.md").read_text()
    assert "| istar | −1 † | 0." in page
    assert "written by `isoscope reproduce istar`" in page
    (out / "istar.md").unlink()
    invoke("--report-only", "-o", out)
    assert (out / "istar.md").read_text() == page


@pytest.mark.nightly
def test_other_settings_are_run_again(tiny_bert: Path, data: Path, tmp_path: Path) -> None:
    options = ("-s", "rte", "--strengths", "1", "--seeds", 1, "-o", tmp_path)
    plain = sweep(tiny_bert, data, *options)["sweeps"]["RTE"]
    for name, value in (("max-length", 5), ("max-train", 9), ("learning-rate", 0.01), ("batch-size", 4)):
        changed = sweep(tiny_bert, data, *options, f"--{name}", value)["sweeps"]["RTE"]
        assert changed["settings"][name.replace("-", "_")] == value
        assert changed["runs"] != plain["runs"], name
    assert len(list((tmp_path / "runs").iterdir())) == 2


@pytest.mark.slow
def test_tasks_regularizers_and_seeds_by_name(tiny_bert: Path, data: Path) -> None:
    found = sweep(
        tiny_bert, data, "-s", "cola,rte", "--regularizers", "cosreg,istar-debiased", "--strengths", "0.5",
        "--seeds", "4,", "--epochs", 2,
    )["sweeps"]  # fmt: skip
    assert list(found) == ["RTE", "CoLA"]
    assert found["CoLA"]["metric"] == "matthews"
    assert found["RTE"]["settings"]["epochs"] == 2
    kinds = [(run["regularizer"], run["strength"], run["seed"]) for run in found["CoLA"]["runs"]]
    assert sorted(kinds) == [("cosreg", 0.5, 4), ("istar-debiased", 0.5, 4), ("none", 0.0, 4)]


def test_bad_input_is_one_line(fail: Callable[..., str], tmp_path: Path) -> None:
    istar = ("reproduce", "istar")
    assert "--strengths must be finite numbers" in fail(*istar, "--strengths", "strong")
    assert "got ','" in fail(*istar, "--strengths", ",")
    assert "got '1,nan'" in fail(*istar, "--strengths", "1,nan")
    assert "--regularizers must be some of istar" in fail(*istar, "--regularizers", "ridge")
    assert "--seeds must be" in fail(*istar, "--seeds", "x")
    assert "--seeds must be at least one" in fail(*istar, "--seeds", "0")
    assert "has no glue/rte_train" in fail(*istar, "--setup", "rte", "--data", str(tmp_path))
