from __future__ import annotations

import json
import os
import subprocess
import sys
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
    X = rng.normal(size=(90, 5)) + np.repeat(np.eye(5)[:3] * 4, 30, axis=0)
    np.save("vectors.npy", X)
    Path("labels.txt").write_text("\n".join("abc"[i // 30] for i in range(90)) + "\n")
    iso.save(iso.Space(X, labels=[i // 30 for i in range(90)]), "table.parquet")
    np.savez("two.npz", first=X, second=X[:, :2])
    return tmp_path


def run(*arguments: str):
    return runner.invoke(app, list(arguments))


def test_table(folder: Path) -> None:
    result = run("measure", "vectors.npy", "--labels", "labels.txt")
    assert result.exit_code == 0
    assert "vectors: 90 vectors × 5 dimensions (float64), 3 labels" in result.output
    assert "silhouette" in result.output


def test_json_equals_the_function(folder: Path) -> None:
    found = json.loads(run("measure", "vectors.npy", "--labels", "labels.txt", "--json").output)
    m = iso.measure(np.load("vectors.npy"), labels=np.repeat(["a", "b", "c"], 30))
    assert {name: entry["value"] for name, entry in found["metrics"].items()} == dict(m)


def test_every_flag_changes_something(folder: Path) -> None:
    plain = json.loads(run("measure", "vectors.npy", "--json").output)
    assert "silhouette" not in plain["metrics"]
    few = json.loads(run("measure", "vectors.npy", "--json", "-m", "isoscore,mean_norm", "-m", "lid").output)
    assert list(few["metrics"]) == ["isoscore", "mean_norm", "lid"]
    column = json.loads(run("measure", "table.parquet", "--json", "-l", "label").output)
    assert column["n_labels"] == 3
    assert json.loads(run("measure", "two.npz", "--key", "second", "--json").output)["d"] == 2
    named = run("measure", "table.parquet", "--vectors", "vector", "--json")
    assert json.loads(named.output)["d"] == 5
    without = json.loads(run("measure", "vectors.npy", "--no-errors", "--json").output)
    assert without["metrics"]["isoscore"]["standard_error"] is None
    assert json.loads(run("measure", "vectors.npy", "--seed", "3", "--json").output)["seed"] == 3


def test_flags_past_memory(folder: Path, fail, monkeypatch) -> None:
    monkeypatch.setattr("isoscope.engine.runners.PATIENCE", "0.5s")
    for part in range(3):
        np.save(folder / f"s-{part}.npy", np.load("vectors.npy")[30 * part : 30 * (part + 1)])
    labelled = ["--labels", "labels.txt", "--json", "-m", "isoscore,silhouette"]
    expected = json.loads(run("measure", "vectors.npy", *labelled).output)["metrics"]["silhouette"]["value"]
    for options in (["--memory", "8GB"], ["--checkpoint", "kept"], ["--skip-bad"]):
        found = json.loads(run("measure", "s-*.npy", *labelled, *options).output)
        assert found["metrics"]["silhouette"]["value"] == pytest.approx(expected, rel=1e-9)
    assert (folder / "kept" / "checkpoint.json").exists()
    assert "--memory is 0 MB, which leaves no room" in fail("measure", "s-*.npy", "--memory", "1KB")
    (folder / "s-1.npy").write_bytes(b"nothing")
    assert "s-1.npy" in fail("measure", "s-*.npy")
    left = json.loads(run("measure", "s-*.npy", "--skip-bad", "--json").output)
    assert left["n"] == 60
    np.savetxt(folder / "w.txt", np.arange(90) % 4, fmt="%d")
    weighed = json.loads(run("measure", "vectors.npy", "--weights", "w.txt", "--json").output)
    assert weighed["n"] == 133
    assert "silhouette" not in weighed["metrics"]
    assert "cannot be reached" in fail("measure", "vectors.npy", "--scheduler", "tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.npy"], "nope.npy"),
        (["two.npz"], "first"),
        (["vectors.npy", "--labels", "nope.txt"], "nope.txt"),
        (["vectors.npy", "-m", "isoscor"], "Did you mean isoscore"),
        (["vectors.npy", "-m", "silhouette"], "silhouette needs labels. Pass --labels."),
        (["vectors.npy", "--key", "x"], "key"),
        (["table.parquet", "--vectors", "x"], "x"),
        (["bad/object.npy"], "object"),
        (["bad/empty.npy"], "empty"),
        (["bad/truncated.npy"], "truncated.npy"),
        (["bad/flat.npy"], "(4,)"),
        (["bad/cube.npy"], "(2, 2, 2)"),
        (["bad/none.npy"], "none.npy"),
        (["bad/one.npy"], "1 vector"),
        (["bad/thin.npy"], "1 dimension"),
        (["bad/nan.npy"], "row"),
        (["bad/complex.npy"], "complex"),
        (["bad/equal.npy"], "all equal"),
        (["bad/text.npy"], "text.npy"),
        (["bad/ragged.csv"], "ragged.csv"),
        (["vectors.npy", "--labels", "bad/short.txt"], "labels"),
        (["vectors.npy", "--labels", "bad/same.txt"], "only one label"),
        (["vectors.npy", "--labels", "bad/own.txt"], "a different label"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_code_2(folder: Path, fail, arguments: list[str], message: str) -> None:
    bad = folder / "bad"
    bad.mkdir()
    np.save(bad / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    (bad / "empty.npy").write_bytes(b"")
    (bad / "truncated.npy").write_bytes((folder / "vectors.npy").read_bytes()[:200])
    nan = np.eye(4)
    nan[2, 2] = np.nan
    arrays = {
        "flat": np.ones(4),
        "cube": np.ones((2, 2, 2)),
        "none": np.ones((0, 4)),
        "one": np.ones((1, 4)),
        "thin": np.arange(4.0)[:, None],
        "nan": nan,
        "complex": np.eye(3) * 1j,
        "equal": np.ones((4, 3)),
    }
    for name, array in arrays.items():
        np.save(bad / f"{name}.npy", array)
    (bad / "text.npy").write_text("hello")
    (bad / "ragged.csv").write_text("1,2,3\n4,5\n6,7,8\n")
    (bad / "short.txt").write_text("a\nb\n")
    (bad / "same.txt").write_text("a\n" * 90)
    (bad / "own.txt").write_text("\n".join(map(str, range(90))))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert message in fail("measure", *arguments)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("how", [[], ["--json"], ["--csv"], ["--plan"]])
def test_output_is_the_json_whatever_is_printed(folder: Path, how: list[str]) -> None:
    assert run("measure", "vectors.npy", "-m", "isoscore", "-o", "result.json", *how).exit_code == 0
    written = json.loads(Path("result.json").read_text())
    assert ("statistics" in written) == (how == ["--plan"])
    assert list(written["metrics"]) == ["isoscore"]


def test_usage_errors_are_code_2(folder: Path) -> None:
    assert run("measure").exit_code == 2
    assert run("measure", "vectors.npy", "--no-such-flag").exit_code == 2


def test_a_pattern_that_the_shell_has_spread(folder: Path, fail) -> None:
    Path("sh").mkdir()
    for name in "abc":
        np.save(f"sh/{name}.npy", np.eye(4))
    files = ("sh/a.npy", "sh/b.npy", "sh/c.npy")
    for command in ("measure", "report", "advise", "frontier", "correct"):
        said = fail(command, *files)
        assert "3 files were given; expected one FILE. Pass 'sh/*.npy' in quotes" in said
    Path("labels.txt").write_text("a\nb\n")
    two = fail("measure", "vectors.npy", "labels.txt")
    assert (
        "2 files were given; expected one FILE. Pass --labels labels.txt to use its lines as labels." in two
    )
    assert "Unexpected argument 'metric'" in fail("measure", "vectors.npy", "metric")
    assert run("measure", "sh/*.npy").exit_code == 0
    assert run("measure", "sh").exit_code == 0


def test_weights_that_are_shares(folder: Path, fail) -> None:
    Path("w.txt").write_text("0.0111\n" * 90)
    assert "--weights w.txt adds up to 0.999 over 90 rows; expected how often each row counts" in fail(
        "measure", "vectors.npy", "--weights", "w.txt"
    )


_INTERRUPTED_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent ignores
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "isoscope.cli.app":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from isoscope.cli import main
"""


def test_an_interrupt_while_the_command_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED_IMPORT], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "isoscope: interrupted\n")


def test_help_has_examples() -> None:
    text = run("measure", "--help").output
    assert "--labels labels.txt" in text
    assert "Examples" in text
    assert "measure" in run("--help").output


def test_version_and_module() -> None:
    assert run("--version").output.strip() == f"isoscope {iso.__version__}"
    done = subprocess.run(
        [sys.executable, "-m", "isoscope", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"isoscope {iso.__version__}"


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    command = f"{sys.executable} -m isoscope measure vectors.npy --json | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder, check=True)
    assert done.stdout.strip() == "{"
    assert done.stderr == ""


def test_metrics_lists_every_one() -> None:
    names = [entry["name"] for entry in json.loads(run("metrics", "--json").output)]
    assert names == list(iso.registered())
    table = run("metrics").output
    assert all(name in table for name in ("isoscore", "silhouette", "lid"))


def test_column_names_of_strangers_cannot_steer_the_terminal(folder: Path, fail) -> None:
    Path("evil.csv").write_text("\x1b]0;PWNED\x07,a,b\nx,1,2\ny,3,4\nz,5,7\n")
    result = run("measure", "evil.csv")
    assert result.exit_code == 0
    assert "\x1b]0" not in result.output
    assert "PWNED" in result.output
    assert "\x1b" not in fail("measure", "\x1b[31mred.npy")


@pytest.mark.slow
def test_a_terminal_without_unicode_shows_something(folder: Path) -> None:
    command = [sys.executable, "-m", "isoscope", "measure", "vectors.npy"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=True)
    assert "isoscore" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_behind_the_output_is_one_line(folder: Path) -> None:
    command = f"{sys.executable} -m isoscope measure vectors.npy > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot write the output" in done.stderr


@pytest.fixture
def sliced(folder: Path) -> str:
    rows = np.random.default_rng(0).normal(size=(90, 4))
    lines = [f"{','.join(map(str, row))},{n % 3},{'xyz'[n % 3]}\x1b[31m" for n, row in enumerate(rows)]
    Path("sliced.csv").write_text("\n".join(["a,b,c,d,month,tenant", *lines]))
    return "sliced.csv"


def test_slices_by_columns(sliced: str) -> None:
    by = ("--by", "month", "--by", "tenant")
    found = json.loads(run("measure", sliced, *by, "-m", "mean_cosine", "--json").output)
    assert (found["by"], found["d"]) == (["month", "tenant"], 4)  # what slices is no dimension
    assert [row["n"] for row in found["slices"]] == [30, 30, 30]
    table = run("measure", sliced, "--by", "month", "-m", "mean_cosine").output
    assert "adjusted for the 3 differences tested" in table
    lines = run("measure", sliced, *by, "-m", "mean_cosine", "--csv").output.splitlines()
    assert lines[0].startswith('"slice","n","metric"')
    assert len(lines) == 5  # the last one is of all rows
    assert not any("\x1b" in line for line in lines)
    assert "cannot be combined with --json" in str(run("measure", sliced, "--csv", "--json").exception)


def test_a_plan_measures_nothing(sliced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.engine.passes.Pass.over", None)
    assert "second pass" in run("measure", sliced, "--exclude", "month", "--plan").output
    kept = ("--exclude", "month", "-m", "isoscore")
    found = json.loads(run("measure", sliced, *kept, "--plan", "--json").output)
    assert found["statistics"]["first pass"] == ["directions", "moments"]


def test_gates(folder: Path) -> None:
    passed = run("measure", "vectors.npy", "-m", "isoscore", "--gate", "mean_cosine<=1")
    assert (passed.exit_code, "gate pass: mean_cosine<=1" in passed.output) == (0, True)
    failed = run("measure", "vectors.npy", "--gate", "isoscore>=0.1", "--gate", "isoscore>=1.5", "--json")
    assert failed.exit_code == 1
    found = json.loads(failed.stdout)
    assert [one["passed"] for one in found["gates"]] == [True, False]
    assert "gates" not in json.loads(run("measure", "vectors.npy", "-m", "isoscore", "--json").stdout)
    for gate in ("cka>=0.9", "delta:isoscore>=0", "worst:isoscore>=0"):
        refused = run("measure", "vectors.npy", "--gate", gate).exception
        assert isinstance(refused, iso.InputError)
        assert (refused.argument, "isoscope compare" in str(refused.hint)) == ("gate", True)
    planned = run("measure", "vectors.npy", "--gate", "isoscore>=0", "--plan").exception
    assert isinstance(planned, iso.InputError)


def test_a_metric_of_two_spaces_names_the_command_that_takes_two(folder: Path) -> None:
    refused = run("measure", "vectors.npy", "-m", "neighbor_overlap").exception
    assert isinstance(refused, iso.InputError)
    assert "isoscope compare A B" in str(refused)
