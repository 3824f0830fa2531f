from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from isoscope.cli.app import app
from isoscope.errors import InputError
from isoscope.papers import contrastive
from isoscope.papers.contrastive import Geometry


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
