from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from isoscope.cli.app import app
from isoscope.errors import InputError
from isoscope_papers.contrastive import run as contrastive
from isoscope_papers.contrastive.run import Geometry
from isoscope_papers.dynamics import run as dynamics
from isoscope_papers.dynamics.run import Dynamics


def made(setup: str, model: str) -> Geometry:
    """A small run with two layers."""
    layer = {
        "self_similarity": 0.5,
        "intra_similarity": 0.6,
        "anisotropy": 0.1,
        "anisotropy_sd": 0.01,
        "norm": 3.0,
        "top_share": 0.2,
        "dimensions_for_half": 2,
    }
    curve = {"mean": [0.9], "sd": [0.01]}
    return Geometry(
        setup=setup, model=model, source="made", n_sentences=5,
        n_tokens=20, n_special=10, n_types=3, n_dims=4,
        seeds=[0, 1], paper=[layer, layer], clean=[{**layer, "isoscore": 0.3}] * 2, without_sinks=[],
        sinks={"names": [], "share": 0.0, "median": [1.0, 1.0], "norm": []},
        shares={"paper": [0.4, 0.3, 0.2, 0.1], "clean": [0.4, 0.3, 0.2, 0.1]},
        informativity={"k": [1], "paper": curve, "clean": curve},
        tokens={"name": ["a", "b"], "count": [3, 2], "adjusted_self_similarity": [0.2, 0.1]},
        change={}, seconds=1.0,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def asked(monkeypatch) -> list[dict[str, object]]:
    """Runs that need no model; what was asked of them."""
    calls: list[dict[str, object]] = []

    def measure(setup, **options):
        calls.append({"setup": setup.name, "model": setup.model, **options})
        if setup.name == "mpnet":
            raise InputError("the model is not here")
        return made(setup.name, setup.model)

    monkeypatch.setattr(contrastive, "measure_geometry", measure)
    return calls


def run(*arguments: str):
    return CliRunner().invoke(app, ["reproduce", "contrastive", *arguments])


def test_options_reach_the_run(asked, tmp_path) -> None:
    found = run(
        "-s", "minilm", "--before", "vanilla", "--data", str(tmp_path), "--device", "cpu", "--seeds", "4,5",
        "--download",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert asked == [
        {
            "setup": "minilm",
            "model": "all-MiniLM-L6-v2",
            "before": "vanilla",
            "data": tmp_path,
            "download": True,
            "device": "cpu",
            "seeds": [4, 5],
        }
    ]
    assert "not comparable" in found.output  # five sentences are not the paper's


def test_another_model_by_the_same_protocol(asked) -> None:
    found = run("--model", "folder/mine", "--json")
    assert found.exit_code == 0, found.output
    assert asked[0]["model"] == "folder/mine"
    assert asked[0]["seeds"] == 30
    assert list(json.loads(found.stdout)["runs"]) == ["mine"]


def test_a_missing_model_can_be_left_out(asked) -> None:
    assert run("-s", "mpnet").exit_code != 0
    found = run("--keep-going")
    assert found.exit_code == 0, found.output
    assert "mpnet: not run: the model is not here" in found.output
    assert [call["setup"] for call in asked[1:]] == ["minilm", "mpnet", "smollm2"]
    assert isinstance(run("-s", "mpnet", "--keep-going").exception, InputError)


def test_pages_gather_the_runs_of_earlier_calls(asked, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    assert run("-s", "minilm", "-o", str(tmp_path)).exit_code == 0
    assert run("-s", "smollm2", "-o", str(tmp_path)).exit_code == 0
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        "contrastive-minilm.json",
        "contrastive-smollm2.json",
    }
    page = (tmp_path / "contrastive.md").read_text()
    assert "## MiniLM: every layer" in page
    assert "## SmolLM2: every layer" in page
    (tmp_path / "contrastive.md").unlink()
    asked.clear()
    found = run("--report-only", "-o", str(tmp_path))
    assert found.exit_code == 0, found.output
    assert asked == []
    assert (tmp_path / "contrastive.md").read_text() == page


def test_a_figure_that_differs_sets_the_exit_code(tmp_path, monkeypatch) -> None:
    layers = made("minilm", "all-MiniLM-L6-v2").paper * 4
    monkeypatch.setattr(
        contrastive,
        "measure_geometry",
        lambda setup, **_: replace(made("minilm", setup.model), n_sentences=1379, paper=layers[:7]),
    )
    found = run("-s", "minilm")
    assert found.exit_code == 1
    assert "✗" in found.output


def test_bad_options(fail) -> None:
    assert "wanted geometry" in fail("reproduce", "contrastive", "--part", "training")
    assert "goes with one model" in fail("reproduce", "contrastive", "--before", "x")
    assert "--report-only goes with --output" in fail("reproduce", "contrastive", "--report-only")
    assert "not known" in fail("reproduce", "contrastive", "-s", "bert")
    assert "exclude each other" in fail("reproduce", "contrastive", "-s", "minilm", "--model", "x")


@pytest.fixture
def trainings(monkeypatch) -> list[dict[str, object]]:
    """Trainings that need no model; what was asked of them."""
    calls: list[dict[str, object]] = []

    def train(setup, material, **options):
        calls.append({"setup": setup.name, "data": material.data, "device": material.device, **options})
        if setup.variant == "pooling=max":
            raise InputError("no room for it")
        columns = ("mean_cosine", "mean_norm", "adjusted_self_similarity", "adjusted_intra_similarity")
        rows = {name: [0.5, 0.25] for name in (*columns, "self_similarity", "intra_similarity")}
        return Dynamics(
            start=setup.start.name, variant=setup.variant, title=setup.start.title, model="made",
            temperature=setup.temperature, batch_size=setup.batch_size, pooling=setup.pooling,
            learning_rate=1e-4, epochs=options["epochs"], steps=20, seed=options["seed"],
            precision=options["precision"], n_pairs=10, n_sentences=5,
            rows=rows | {"step": [0.0, 20.0], "loss": [None, 1.0], "sink_share": [0.0, 0.0]},
            layers={}, task={"before": 0.1, "after": 0.6}, change={}, pretraining={}, seconds=2.0,
        )  # fmt: skip

    monkeypatch.setattr(dynamics, "run_dynamics", train)
    return calls


def test_trainings_take_their_options(trainings, asked, tmp_path) -> None:
    found = run(
        "--part", "dynamics", "-s", "masked:tau=0.1", "-s", "smollm2:batch=16", "--seeds", "2,3", "--epochs",
        "5", "--precision", "tf32", "--device", "cpu", "--data", str(tmp_path),
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert [(call["setup"], call["seed"]) for call in trainings] == [
        ("masked:tau=0.1", 2), ("smollm2:batch=16", 2), ("masked:tau=0.1", 3), ("smollm2:batch=16", 3),
    ]  # fmt: skip
    own = {name: trainings[0][name] for name in ("epochs", "precision", "device", "data")}
    assert own == {"epochs": 5, "precision": "tf32", "device": "cpu", "data": tmp_path}
    assert "SmolLM2, batch=16: τ = 0.05, batches of 16" in found.output
    assert asked == []
    trainings.clear()
    assert run("--part", "dynamics", "--model", "folder/mine", "-s", "tau=1").exit_code == 0
    assert [(call["setup"], call["seed"], call["epochs"]) for call in trainings] == [("mine:tau=1", 0, 3)]


def test_a_training_that_is_kept_is_not_run_again(trainings, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    first = run("--part", "dynamics", "-s", "masked:tau=0.05", "-o", str(tmp_path))
    assert first.exit_code == 0, first.output
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["dynamics-masked-tau-0.05.json"]
    found = run("--part", "dynamics", "-s", "masked:tau=0.05,masked:tau=1", "-o", str(tmp_path), "--json")
    assert found.exit_code == 0, found.output
    assert [call["setup"] for call in trainings] == ["masked:tau=0.05", "masked:tau=1"]
    other = run("--part", "dynamics", "-s", "masked:tau=1", "-o", str(tmp_path), "--epochs", "4")
    assert "was run with epochs 3, now 4" in str(other.exception)
    about = json.loads(found.stdout)
    assert [one["variant"] for one in about["dynamics"]] == ["tau=0.05", "tau=1"]
    assert {one["claim"] for one in about["claims"]} >= {"training lowers anisotropy (τ = 0.05)"}
    page = (tmp_path / "contrastive.md").read_text()
    assert "## Training dynamics" in page
    assert "every layer" not in page
    assert run("-s", "minilm", "-o", str(tmp_path)).exit_code == 0
    both = (tmp_path / "contrastive.md").read_text()
    assert both.index("## MiniLM: every layer") < both.index("## Training dynamics")
    trainings.clear()
    (tmp_path / "contrastive.md").unlink()
    assert run("--report-only", "-o", str(tmp_path)).exit_code == 0
    assert trainings == []
    assert (tmp_path / "contrastive.md").read_text() == both


def test_a_training_that_fails_can_be_left_out(trainings) -> None:
    named = "masked:pooling=max,masked:tau=1"
    assert isinstance(run("--part", "dynamics", "-s", named).exception, InputError)
    found = run("--part", "dynamics", "-s", named, "--keep-going")
    assert found.exit_code == 0, found.output
    assert "masked:pooling=max: not run: no room for it" in found.output


def test_options_of_the_other_part_are_refused(fail) -> None:
    assert "goes with --part dynamics" in fail("reproduce", "contrastive", "--epochs", "2")
    assert "goes with --part dynamics" in fail("reproduce", "contrastive", "--precision", "bf16")
    assert "goes with --part geometry" in fail(
        "reproduce", "contrastive", "--part", "dynamics", "--before", "x"
    )
    assert "is not known" in fail("reproduce", "contrastive", "--part", "dynamics", "-s", "minilm")
