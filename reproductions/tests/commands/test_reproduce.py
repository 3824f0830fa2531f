from __future__ import annotations

import json

import pytest
import torch
from typer.testing import CliRunner

from isoscope.cli.app import app
from isoscope.errors import InputError
from isoscope_papers.classifiers import run as classifiers
from isoscope_papers.corpora import Corpus

LABELS = tuple("ab"[i % 2] for i in range(30))


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    """A corpus and an encoder that need nothing; what was asked of them."""
    asked = []

    def load(name, **options):
        asked.append({"corpus": name, **options})
        if name == "mnli":
            raise InputError("corpus 'mnli' is not on this machine")
        return Corpus(name, (tuple(f"text {i}" for i in range(30)),), LABELS, source="made")

    def encode(texts, **options):
        asked.append(options)
        return torch.randn(len(texts), 4, generator=torch.Generator().manual_seed(0))

    monkeypatch.setattr(classifiers, "load_corpus", load)
    monkeypatch.setattr(classifiers, "encode", encode)
    return asked


def run(*arguments: str):
    return CliRunner().invoke(app, ["reproduce", "classifiers", *arguments, "--steps", "3"])


@pytest.mark.slow
def test_ours_stand_beside_published(tmp_path) -> None:
    found = run("--setup", "polarity", "--seeds", "2", "-o", str(tmp_path / "out"))
    assert found.exit_code == 0, found.output
    assert "polarity, all-MiniLM-L6-v2\n" in found.output
    assert "paper    4,094,976  ≠ not testable here" in found.output
    assert (tmp_path / "out" / "classifiers.html").exists()
    assert (tmp_path / "out" / "runs" / "polarity-all-MiniLM-L6-v2" / "trajectory.parquet").exists()


def test_json_has_every_row() -> None:
    found = run("-s", "polarity", "-s", "cola", "--json", "--seeds", "1")
    rows = json.loads(found.stdout)["rows"]
    assert {row["setup"] for row in rows} == {"polarity, all-MiniLM-L6-v2", "cola, all-MiniLM-L6-v2"}


def test_options_reach_the_run(fake, tmp_path) -> None:
    run(
        "-s",
        "polarity",
        "--data",
        str(tmp_path),
        "--download",
        "--encoder",
        "all-mpnet-base-v2",
        "--seeds",
        "1",
    )
    assert fake[0] == {"corpus": "polarity", "data": tmp_path, "download": True}
    assert fake[1]["model"] == "all-mpnet-base-v2"
    few = json.loads(run("-s", "polarity", "--seeds", "3,9", "--every", "3", "--json").stdout)
    settings = few["runs"]["polarity, all-MiniLM-L6-v2"]["configuration"]
    assert settings["seeds"] == [3, 9]
    assert settings["every"] == 3
    assert settings["silhouette_tolerance"] is None
    about = json.loads(run("-s", "polarity", "--seeds", "1", "--tolerance", "0.5", "--json").stdout)["runs"]
    assert about["polarity, all-MiniLM-L6-v2"]["configuration"]["silhouette_tolerance"] == 0.5


def test_an_encoder_that_no_setup_takes_is_refused(fake, tmp_path) -> None:
    refused = run("-s", "pos", "--encoder", "all-mpnet-base-v2")
    assert isinstance(refused.exception, InputError)
    assert "serves none of pos; expected a file of word vectors" in str(refused.exception)
    kept = run("-s", "polarity", "--encoder", "all-mpnet-base-v2", "--seeds", "1", "--log", "nowhere")
    assert "log" in str(kept.exception)
    assert isinstance(run("-s", "polarity", "--device", "cuda:99").exception, InputError)


def test_a_setup_without_data_is_an_error_or_left_out() -> None:
    stopped = run("-s", "mnli,polarity", "--seeds", "1")
    assert isinstance(stopped.exception, InputError)
    kept = run("-s", "mnli,polarity", "--seeds", "1", "--keep-going")
    assert kept.exit_code == 0
    assert "mnli: not run: corpus 'mnli' is not on this machine" in kept.output
    assert isinstance(run("-s", "mnli", "--keep-going").exception, InputError)


def test_a_figure_that_differs_sets_the_exit_code(monkeypatch) -> None:
    from isoscope_papers.classifiers.setups import MINILM, SETUPS, Published, Setup

    wrong = Setup("polarity", "p", "polarity", "main", 3, published={MINILM: Published(30, 1, 0.0, -1.1)})
    monkeypatch.setitem(SETUPS, "polarity", wrong)
    found = run("-s", "polarity")
    assert found.exit_code == 1
    assert "✗ not held" in found.output


@pytest.mark.slow
def test_a_report_of_kept_runs_needs_no_data(tmp_path, fake) -> None:
    assert run("-s", "polarity", "--seeds", "1", "-o", str(tmp_path)).exit_code == 0
    (tmp_path / "classifiers.html").unlink()
    fake.clear()
    again = run("--report-only", "-o", str(tmp_path))
    assert again.exit_code == 0, again.output
    assert fake == []
    assert (tmp_path / "classifiers.html").exists()


@pytest.mark.parametrize("arguments", [("-s", "poalrity"), ("--seeds", "x")], ids=str)
def test_bad_input(arguments: tuple[str, ...]) -> None:
    assert isinstance(run(*arguments).exception, InputError)
