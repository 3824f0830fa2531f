from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import isoscope as iso
from isoscope.cli import app, main
from isoscope.io.locks import only_user

runner = CliRunner()
QUICK = ["--steps", "4", "--seeds", "2"]


@pytest.fixture
def folder(tmp_path: Path, rng, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = (rng.normal(size=(60, 5)) + np.repeat(np.eye(5)[:3], 20, axis=0)).astype(np.float32)
    np.save("vectors.npy", X)
    Path("vectors.vec").write_text("\n".join(f"w{i} " + " ".join(map(str, x)) for i, x in enumerate(X)))
    np.savez("two.npz", first=X, second=X[:, :3])
    Path("labels.txt").write_text("\n".join("abc"[i // 20] for i in range(60)) + "\n")
    Path("sets.txt").write_text("\n".join(("a", "a, b", "c")[i % 3] for i in range(60)) + "\n")
    pairs = rng.integers(0, 60, size=(30, 2))
    np.save("pairs.npy", pairs)
    Path("pairs.tsv").write_text("\n".join(f"{a}\t{b}" for a, b in pairs) + "\n")
    Path("pair_labels.txt").write_text("\n".join("xy"[i % 2] for i in range(30)) + "\n")
    iso.save(iso.Space(X, labels=[i // 20 for i in range(60)]), "table.parquet")
    return tmp_path


def train(*arguments: str, file: str = "vectors.npy", labels: str = "labels.txt") -> dict:
    result = runner.invoke(app, ["train", file, "--labels", labels, *QUICK, *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_table(folder: Path) -> None:
    result = runner.invoke(app, ["train", "vectors.npy", "-l", "labels.txt", *QUICK])
    assert result.exit_code == 0
    assert "60 vectors × 5, 4 updates, 2 seeds, 318 parameters" in result.output
    for word in ("start", "end", "silhouette", "isoscore", "r = ", "ρ = "):
        assert word in result.output
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == []


def test_json_equals_the_function(folder: Path) -> None:
    run = iso.train_embeddings(np.load("vectors.npy"), np.repeat(["a", "b", "c"], 20), steps=4, seeds=2)
    predicted = iso.predict_collapse(np.load("vectors.npy"), np.repeat(["a", "b", "c"], 20), steps=4)
    both = run.to_dict() | {"predicted": predicted.to_dict()}
    assert train() == json.loads(json.dumps(both))


def test_the_prediction_is_beside_what_came(folder: Path) -> None:
    options = [*QUICK, "--learning-rate", "0.5"]
    shown = runner.invoke(app, ["train", "vectors.npy", "-l", "labels.txt", *options]).output
    found = train("--learning-rate", "0.5")
    expected, came = found["predicted"]["end"], found["columns"]["isoscore"]["end"]
    assert found["predicted"]["learning_rate"] == 0.5
    assert shown.startswith("prediction: IsoScore ")
    assert f"IsoScore at the end: predicted {expected:.4f}, came to {came:.4f}" in shown


@pytest.mark.parametrize(
    "options",
    [
        ("--hidden", "4"),
        ("--no-bias",),
        ("--objective", "triplet"),
        ("--optimizer", "rmsprop"),
        ("--pairs", "pairs.npy"),
    ],
)
def test_what_the_law_does_not_cover_is_not_predicted(folder: Path, options: tuple[str, ...]) -> None:
    labels = "pair_labels.txt" if "--pairs" in options else "labels.txt"
    assert "predicted" not in train(*options, labels=labels)


def test_many_labels_are_trained_without_a_prediction(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from isoscope.training import collapse

    assert "predicted" in train()
    monkeypatch.setattr(collapse, "_MOST_LABELS", 1)
    assert "predicted" not in train()


def test_sets_of_labels_are_predicted_with_a_caution(folder: Path) -> None:
    command = ["train", "vectors.npy", "-l", "sets.txt", "--multi-label", ",", *QUICK]
    assert "assumptions that do not hold: one label a vector" in runner.invoke(app, command).output


def test_a_run_is_written(folder: Path) -> None:
    result = runner.invoke(app, ["train", "vectors.npy", "-l", "labels.txt", *QUICK, "-o", "run"])
    assert result.exit_code == 0, result.output
    assert "run/figure.png" in result.output
    assert {path.name for path in Path("run").iterdir()} == {
        "config.json",
        "figure.png",
        "trajectory.parquet",
        "seed-0.safetensors",
        "seed-1.safetensors",
    }
    assert len(iso.Trajectory.load("run/trajectory.parquet")) == 10


@pytest.mark.slow
def test_resume(folder: Path, fail) -> None:
    first = train("-o", "run")
    command = ["vectors.npy", "-l", "labels.txt", *QUICK, "-o", "run"]
    assert "--resume" in fail("train", *command)
    assert train("-o", "run", "--resume") == first
    other = ["vectors.npy", "-l", "labels.txt", "--steps", "9", "--seeds", "2", "-o", "run", "--resume"]
    assert "steps was 4, now 9" in fail("train", *other)
    assert "--output" in fail("train", "vectors.npy", "-l", "labels.txt", "--resume")


def end(found: dict, name: str = "loss") -> float:
    return found["columns"][name]["end"]


@pytest.mark.slow
def test_every_flag_changes_something(folder: Path) -> None:
    plain = train()
    settings = plain["configuration"]
    assert train("--steps", "7")["steps"] == 7
    assert train("--seeds", "3,8")["seeds"] == [3, 8]
    assert train("--every", "2")["configuration"]["every"] == 2 != settings["every"]
    assert set(train("-m", "effective_rank,davies_bouldin")["columns"]) == {
        "loss",
        "accuracy",
        "effective_rank",
        "davies_bouldin",
    }
    assert train("--no-bias")["n_parameters"] == plain["n_parameters"] - 3
    hidden = train("--hidden", "6,4")
    assert "hidden2_silhouette" in hidden["columns"]
    assert end(train("--hidden", "6,4", "--activation", "tanh")) != end(hidden)
    triplet = train("--objective", "triplet")
    assert triplet["n_parameters"] == 300
    assert end(train("--objective", "triplet", "--n-triplets", "50")) != end(triplet)
    assert end(train("--optimizer", "sgd")) != end(plain)
    assert end(train("--learning-rate", "0.1")) < end(plain)
    assert end(train("--sample-above", "30"), "silhouette") != end(plain, "silhouette")
    assert train("--patience", "1")["configuration"]["patience"] == 1
    assert train("--steps", "200", "--target-accuracy", "0.5")["steps"] < 200
    assert train("--key", "second", file="two.npz")["configuration"]["d"] == 3
    assert train("--vectors", "vector", file="table.parquet", labels="label")["n_parameters"] == 318


def test_the_vectors_go_to_the_device(folder: Path, monkeypatch) -> None:
    """Every machine has the device `meta`; as it holds no numbers, others are trained in its place."""
    real, devices = iso.Space.with_vectors, []

    def moved(space: iso.Space, vectors) -> iso.Space:
        devices.append(vectors.device.type)
        return real(space, 2 * space.vectors)

    monkeypatch.setattr(iso.Space, "with_vectors", moved)
    plain = train()
    assert devices == []
    assert end(train("--device", "meta")) != end(plain)
    assert devices == ["meta"]


def test_patience_ends_a_run(folder: Path) -> None:
    found = train("--steps", "300", "--optimizer", "sgd", "--learning-rate", "1e-30", "--patience", "5")
    assert found["steps"] < 20


@pytest.mark.slow
def test_tolerance(folder: Path, rng) -> None:
    X = rng.normal(size=(2000, 4)).astype(np.float32)
    np.save("many.npy", X)
    Path("many.txt").write_text("\n".join("ab"[int(x > 0)] for x in X[:, 0]))
    exact, estimated = (
        train("--steps", "1", "-o", f"run{len(more)}", *more, file="many.npy", labels="many.txt")
        for more in ([], ["--tolerance", "0.001"])
    )
    assert exact["columns"]["silhouette"]["end"] != estimated["columns"]["silhouette"]["end"]
    assert "silhouette_low" in iso.Trajectory.load("run2/trajectory.parquet").columns


@pytest.mark.parametrize("name", ["pairs.npy", "pairs.tsv"])
def test_pairs(folder: Path, name: str) -> None:
    found = train("--pairs", name, labels="pair_labels.txt")
    assert found["n_parameters"] == 60 * 5 + 2 * 11
    assert found["configuration"]["n_items"] == 30


def test_sets_of_labels(folder: Path) -> None:
    found = train("--multi-label", ",", labels="sets.txt")
    assert found["configuration"]["multi_label"] is True
    assert found["configuration"]["n_labels"] == 3
    assert found["n_parameters"] == 300 + 3 * 6


def test_log(folder: Path) -> None:
    pytest.importorskip("tensorboard")
    train("--log", "tensorboard", "-o", "run")
    assert (folder / "run" / "tensorboard" / "seed-1").is_dir()


def test_one_metric_needs_no_figure(folder: Path) -> None:
    train("-m", "isoscore", "-o", "run")
    assert not Path("run/figure.png").exists()
    train("-m", "effective_rank,davies_bouldin", "-o", "other")
    assert Path("other/figure.png").exists()


@pytest.mark.slow
def test_without_matplotlib_the_numbers_are_there(folder: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = runner.invoke(app, ["train", "vectors.npy", "-l", "labels.txt", *QUICK, "-o", "run"])
    assert result.exit_code == 0
    assert "no figure: A figure needs matplotlib" in result.output
    assert Path("run/trajectory.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.npy", "-l", "labels.txt"], "nope.npy"),
        (["vectors.npy", "-l", "nope.txt"], "nope.txt"),
        (["vectors.npy", "-l", "same.txt"], "only one label"),
        (["vectors.npy", "-l", "short.txt"], "2"),
        (["vectors.npy", "-l", "labels.txt", "--steps", "0"], "steps must be a whole number"),
        (["vectors.npy", "-l", "labels.txt", "--seeds", "0"], "--seeds must be at least one seed, got '0'"),
        (
            ["vectors.npy", "-l", "labels.txt", "--seeds", "two"],
            "--seeds must be comma-separated whole numbers",
        ),
        (
            ["vectors.npy", "-l", "labels.txt", "--seeds", ""],
            "--seeds is empty. Is a shell variable",
        ),
        (
            ["vectors.npy", "-l", "labels.txt", "--seeds", ","],
            "--seeds must be comma-separated whole numbers",
        ),
        (["vectors.npy", "-l", "labels.txt", "--hidden", ""], "--hidden is empty. Is"),
        (
            ["vectors.npy", "-l", "labels.txt", "--hidden", "4,x"],
            "--hidden must be comma-separated whole numbers",
        ),
        (["vectors.npy", "-l", "labels.txt", "-m", "isoscor"], "Did you mean isoscore"),
        (["vectors.npy", "-l", "labels.txt", "--pairs", "nope.tsv"], "nope.tsv"),
        (["vectors.npy", "-l", "labels.txt", "--pairs", "words.tsv"], "pairs of whole numbers"),
        (["vectors.npy", "-l", "labels.txt", "--pairs", "ragged.tsv"], "pairs"),
        (["vectors.npy", "-l", "labels.txt", "--pairs", "broken.npy"], "broken.npy cannot be read"),
        (["vectors.npy", "-l", "pair_labels.txt", "--pairs", "far.tsv"], "expected rows of X, from 0 to 59"),
        (["vectors.npy", "-l", "labels.txt", "--multi-label", ""], "--multi-label is empty"),
        (["vectors.npy", "-l", "labels.txt", "--device", "toaster"], "--device 'toaster' cannot be used"),
        (["vectors.npy", "-l", "labels.txt", "--log", "paper"], "tensorboard"),
        (["vectors.npy", "-l", "labels.txt", "-o", "labels.txt"], "labels.txt"),
        (["vectors.npy", "-l", "labels.txt", "-o", "."], "other files"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_code_2(folder: Path, fail, arguments: list[str], message: str) -> None:
    Path("same.txt").write_text("a\n" * 60)
    Path("short.txt").write_text("a\nb\n")
    Path("words.tsv").write_text("one\ttwo\n")
    whole = Path("pairs.npy").read_bytes()
    Path("broken.npy").write_bytes(whole.replace(b"(30, 2)", b"(30,(2)"))  # NumPy raises a TokenError
    Path("ragged.tsv").write_text("1\t2\n3\n")
    Path("far.tsv").write_text("1\t60\n" * 30)
    assert message in fail("train", *arguments)


@pytest.mark.parametrize("error", [ValueError(), EOFError(), OSError()], ids=repr)
def test_pairs_that_fail_without_a_word(folder: Path, fail, monkeypatch, error: Exception) -> None:
    def load(*_, **__):
        raise error

    monkeypatch.setattr("isoscope.io.pair_files.map_npy", load)
    found = fail("train", "vectors.vec", "-l", "pair_labels.txt", "--pairs", "pairs.npy")
    assert f"pairs.npy cannot be read: {type(error).__name__}" in found


def test_a_device_that_fails_without_a_word(folder: Path, fail, monkeypatch) -> None:
    def empty(*_, **__):
        raise AssertionError

    monkeypatch.setattr("isoscope.arrays.torch.empty", empty)
    found = fail("train", "vectors.npy", "-l", "labels.txt", "--device", "cpu")
    assert "--device 'cpu' cannot be used: AssertionError" in found


def test_labels_are_required_and_help_has_examples(folder: Path) -> None:
    assert runner.invoke(app, ["train", "vectors.npy"]).exit_code == 2
    text = runner.invoke(app, ["train", "--help"]).output
    assert "Examples" in text
    assert "--pairs" in text


@pytest.mark.slow
def test_a_damaged_file_is_said_in_one_line(folder: Path, capsys, monkeypatch) -> None:
    whole = train("-o", "run")
    content = Path("run/seed-1.safetensors").read_bytes()
    Path("run/seed-1.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    asked = ["train", "vectors.npy", "--labels", "labels.txt", *QUICK, "-o", "run", "--resume", "--json"]
    monkeypatch.setattr(sys, "argv", ["isoscope", *asked])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        main()
    out, err = capsys.readouterr()
    assert json.loads(out) == whole
    assert err == (
        "isoscope: warning: run/seed-1.safetensors is damaged: its checksum does not match its content; "
        "the seed starts again\n"
    )
    assert Path("run/seed-1.safetensors").read_bytes() == content


def test_a_folder_in_use_is_refused(folder: Path, fail) -> None:
    with only_user(Path("run"), what="run folder"):
        said = fail("train", "vectors.npy", "--labels", "labels.txt", *QUICK, "-o", "run")
    assert "run folder run is in use by another process" in said
