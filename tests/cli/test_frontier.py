from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import isoscope as iso
from isoscope.cli import app

runner = CliRunner()


@pytest.fixture
def folder(tmp_path: Path, rng, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(90, 5)) + 4 * np.repeat(np.eye(5)[:3], 30, axis=0)
    np.save("vectors.npy", X)
    Path("labels.txt").write_text("\n".join("abc"[i // 30] for i in range(90)) + "\n")
    Path("own.txt").write_text("\n".join(map(str, range(90))) + "\n")
    return tmp_path


def invoke(*arguments: str) -> str:
    result = runner.invoke(app, ["frontier", "vectors.npy", *arguments], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    return result.output


def test_json_is_what_the_functions_say(folder):
    found = json.loads(invoke("--labels", "labels.txt", "--json"))
    X, labels = np.load("vectors.npy"), iso.io.read_labels("labels.txt")
    assert found["plain"] == iso.frontier_position(X, labels).to_dict()
    assert found["debiased"] == iso.frontier_position(X, labels, debias=True).to_dict()
    assert found["attribution"] == iso.metrics.attribute_anisotropy(X, labels).to_dict()
    assert found["collapse"] == iso.predict_collapse(X, labels).to_dict()
    assert found["runs"] == {}


def test_where_training_leads(folder):
    X, labels = np.load("vectors.npy"), iso.io.read_labels("labels.txt")
    for rate in (0.1, 1e-6):
        predicted = iso.predict_collapse(X, labels, learning_rate=rate)
        shown = " ".join(invoke("-l", "labels.txt", "--learning-rate", str(rate)).split())
        training = f"trained with a linear classifier for 1,000 updates, learning rate {rate:g}"
        assert f"{training}: {predicted.opening}" in shown
        assert ("assumptions that do not hold: vectors can move (the optimiser reaches" in shown) == (
            rate < 1e-3
        )


def test_many_labels_are_not_predicted(folder, monkeypatch):
    from isoscope.training import collapse as module

    monkeypatch.setattr(module, "_MOST_LABELS", 2)
    assert json.loads(invoke("-l", "labels.txt", "--json"))["collapse"] is None
    assert "linear classifier" not in invoke("-l", "labels.txt")


def test_vectors_too_long_to_train_have_a_frontier_and_no_prediction(folder):
    usual = json.loads(invoke("-l", "labels.txt", "--json"))
    np.save("vectors.npy", 1e30 * np.load("vectors.npy"))
    found = json.loads(invoke("-l", "labels.txt", "--json"))
    assert found["collapse"] is None
    assert found["plain"]["ceiling"] == pytest.approx(usual["plain"]["ceiling"], rel=1e-5)


def test_the_table(folder):
    shown = invoke("-l", "labels.txt", "--top", "2")
    assert "90 vectors, 5 dimensions, 3 labels" in shown
    position = iso.frontier_position(np.load("vectors.npy"), iso.io.read_labels("labels.txt"), debias=True)
    assert f"{position.distance:.4f}" in shown
    assert "labels cost isotropy from ρ = (K − 1)/d = 0.400 on; at ρ" in shown
    parts = iso.metrics.attribute_anisotropy(np.load("vectors.npy"), iso.io.read_labels("labels.txt")).labels
    first = sorted(parts, key=lambda part: part.excess, reverse=True)[:2]
    listed = [line for line in shown.splitlines() if line.strip().startswith(("a ", "b ", "c "))]
    assert [line.split()[0] for line in listed] == [part.name for part in first]
    assert "here ρ is below that" in invoke("--clusters", "5")
    assert "cost no isotropy" in invoke("--clusters", "8")


def test_clusters_instead_of_labels(folder):
    four = json.loads(invoke("--clusters", "4", "--json"))
    assert four["plain"]["n_labels"] == 4
    assert json.loads(invoke("--clusters", "auto", "--json"))["plain"]["n_labels"] == 3
    other = json.loads(invoke("--clusters", "7", "--seed", "3", "--json"))
    assert other["plain"] != json.loads(invoke("--clusters", "7", "--json"))["plain"]


@pytest.mark.slow
def test_runs_and_figure(folder):
    pytest.importorskip("matplotlib")
    options = ["--labels", "labels.txt", "--steps", "20", "--seeds", "1", "-o"]
    metrics = ["-m", "isoscore,between_share"]
    assert runner.invoke(app, ["train", "vectors.npy", *options, "run", *metrics]).exit_code == 0
    assert runner.invoke(app, ["train", "vectors.npy", *options, "other"]).exit_code == 0
    shown = invoke("-l", "labels.txt", "--run", "run", "-o", "f.pdf")
    assert "run run: ρ" in shown
    assert "wrote f.pdf" in shown
    assert Path("f.pdf").read_bytes().startswith(b"%PDF")
    ends = json.loads(invoke("-l", "labels.txt", "--run", "run", "--json"))["runs"]["run"]
    run = iso.Trajectory.load("run/trajectory.parquet")
    assert ends["end"]["isoscore"] == run["isoscore"][-1]
    assert ends["end"]["ceiling"] == iso.isotropy_ceiling(3, 5, between=run["between_share"][-1])


@pytest.mark.slow
def test_runs_of_one_name_are_told_apart_and_ceilings_are_means_over_seeds(folder):
    options = ["-l", "labels.txt", "--steps", "20", "--seeds", "2", "-m", "isoscore,between_share"]
    for parent, rate in (("slow", "0.01"), ("fast", "1.0")):
        done = runner.invoke(
            app, ["train", "vectors.npy", *options, "--learning-rate", rate, "-o", f"{parent}/run"]
        )
        assert done.exit_code == 0, done.output
    both = ["--run", "slow/run", "--run", "fast/run"]
    ends = json.loads(invoke("-l", "labels.txt", *both, "--json"))["runs"]
    assert set(ends) == {str(Path("slow/run")), str(Path("fast/run"))}
    assert ends["slow/run"]["end"] != ends["fast/run"]["end"]
    shares = iso.Trajectory.load("fast/run/trajectory.parquet").curves("between_share")[:, -1]
    ceilings = [iso.isotropy_ceiling(3, 5, between=share) for share in shares]
    assert ends["fast/run"]["end"]["ceiling"] == pytest.approx(np.mean(ceilings), rel=1e-12)


def test_a_mean_of_runs_stays_under_the_mean_of_ceilings():
    """The frontier is not concave: the mean of two spaces on it lies above the curve at their mean share."""
    from types import SimpleNamespace

    from isoscope.training.frontier import ends

    shares = np.array([[0.02, 0.5], [0.9, 0.5]])
    scores = np.array([[iso.isotropy_ceiling(2, 50, between=share) for share in row] for row in shares])
    run = SimpleNamespace(
        configuration={"n_clusters": 2, "d": 50},
        steps=[0, 1],
        curves={"between_share": shares, "isoscore": scores}.__getitem__,
    )
    start = ends(run)["start"]
    assert start["isoscore"] > iso.isotropy_ceiling(2, 50, between=start["between_share"])
    assert start["isoscore"] == pytest.approx(start["ceiling"], rel=1e-12)


def test_few_points_have_a_ceiling_of_their_own(folder):
    np.save("vectors.npy", np.load("vectors.npy")[28:32, :])
    Path("labels.txt").write_text("a\na\nb\nb\n")
    shown = invoke("-l", "labels.txt")
    position = iso.frontier_position(np.load("vectors.npy"), list("aabb"))
    line = next(line for line in shown.splitlines() if "largest of 4 points" in line)
    assert line.split()[-2:] == [f"{position.sample_ceiling:.4f}", "–"]
    last = next(line for line in shown.splitlines() if line.strip().startswith("5 "))
    assert last.count("–") == 2  # four points span three directions: nothing is said of the fifth


def test_names_are_shown_as_they_are(folder):
    names = ["[bold]", "[red]x[/red]", "c"]
    Path("names.txt").write_text("\n".join(names[i // 30] for i in range(90)) + "\n")
    shown = invoke("-l", "names.txt")
    assert all(any(line.strip().startswith(name) for line in shown.splitlines()) for name in names)


def test_what_cannot_be_debiased_is_said(folder, monkeypatch):
    from isoscope.training import frontier as module

    plain = module.frontier_position

    def undefined(*given, debias=False):
        if debias:
            raise iso.UndefinedError("the debiased position is undefined")
        return plain(*given)

    monkeypatch.setattr(module, "frontier_position", undefined)
    assert "note: the debiased position is undefined" in invoke("-l", "labels.txt")
    assert json.loads(invoke("-l", "labels.txt", "--json"))["debiased"] is None


def test_labels_that_are_no_clusters_are_refused(folder, fail):
    Path("one.txt").write_text("same\n" * 90)
    assert "--labels has only one label ('same')" in fail("frontier", "vectors.npy", "-l", "one.txt")
    assert "--labels has a different label for each of the 90 points" in fail(
        "frontier", "vectors.npy", "-l", "own.txt"
    )
    assert "--clusters has only one label" in fail("frontier", "vectors.npy", "--clusters", "1")


def test_bad_input(folder, fail):
    assert "Pass --labels to label the rows, or --clusters auto" in fail("frontier", "vectors.npy")
    assert "--clusters cannot be combined with --labels" in fail(
        "frontier", "vectors.npy", "-l", "labels.txt", "--clusters", "3"
    )
    assert "--clusters must be a whole number" in fail("frontier", "vectors.npy", "--clusters", "many")
    assert "--clusters must be a whole number" in fail("frontier", "vectors.npy", "--clusters", "²")
    assert "--top must be" in fail("frontier", "vectors.npy", "-l", "labels.txt", "--top", "-1")
    assert "no trajectory.parquet" in fail("frontier", "vectors.npy", "-l", "labels.txt", "--run", ".")
    iso.train_embeddings(
        np.load("vectors.npy"), iso.io.read_labels("labels.txt"), steps=2, seeds=1, run="plain"
    )
    assert "did not record between_share" in fail(
        "frontier", "vectors.npy", "-l", "labels.txt", "--run", "plain"
    )
    assert "must end in one of" in fail("frontier", "vectors.npy", "-l", "labels.txt", "-o", "f.xyz")
