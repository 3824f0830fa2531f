from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import isoscope as iso
from isoscope.cli import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> Path:
    monkeypatch.chdir(tmp_path)
    A = rng.normal(size=(80, 5))
    np.save("a.npy", A)
    np.save("b.npy", A * [3, 1, 1, 1, 1] + 0.1 * rng.normal(size=(80, 5)))
    np.savez("two.npz", first=A, second=A * 2)
    Path("labels.txt").write_text("x\ny\n" * 40)
    Path("texts.txt").write_text("".join(f"the item {i}\n" for i in range(80)))
    order = rng.permutation(80)
    for name, rows in (("old", range(80)), ("new", order)):
        lines = [f"{i},{','.join(map(str, A[i]))}" for i in rows]
        Path(f"{name}.csv").write_text("id,d0,d1,d2,d3,d4\n" + "\n".join(lines) + "\n")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["compare", *arguments])


def found(*arguments: str) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_table(folder: Path) -> None:
    result = run("a.npy", "b.npy", "--labels", "labels.txt", "--texts", "texts.txt")
    assert result.exit_code == 0
    for part in (
        "A: a (5 dimensions), B: b (5 dimensions); 80 items, 2 labels",
        "cka",
        "isoscore",
        "the item",
    ):
        assert part in result.output


def test_json_is_that_of_the_function(folder: Path) -> None:
    expected = iso.compare(np.load("a.npy"), np.load("b.npy"))
    page = found("a.npy", "b.npy")
    assert page["metrics"] == expected.to_dict()["metrics"]
    assert page["correspondences"] == expected.to_dict()["correspondences"]


@pytest.mark.slow
def test_every_flag_changes_something(folder: Path) -> None:
    plain = found("a.npy", "b.npy")
    assert "silhouette" in found("a.npy", "b.npy", "-l", "labels.txt")["metrics"]
    assert list(found("a.npy", "b.npy", "-m", "lid")["metrics"]) == ["lid"]
    assert (
        found("a.npy", "b.npy", "-k", "3")["correspondences"]["overlap"]
        != plain["correspondences"]["overlap"]
    )
    by_distance = found("a.npy", "b.npy", "--metric", "euclidean")
    assert by_distance["correspondences"]["overlap"] != plain["correspondences"]["overlap"]
    assert len(found("a.npy", "b.npy", "--moved", "4")["moved_rows"]) == 4
    assert found("a.npy", "b.npy", "--no-errors")["metrics"]["isoscore"]["interval"] is None
    assert len(found("a.npy", "b.npy", "--by", "labels.txt")["slice_overlaps"]) == 2
    other = found("a.npy", "b.npy", "--seed", "5")
    assert other["metrics"]["isoscore"]["interval"] != plain["metrics"]["isoscore"]["interval"]
    keyed = found("two.npz", "--key", "first", "--key", "second")
    assert np.isclose(keyed["metrics"]["mean_norm"]["b"], 2 * keyed["metrics"]["mean_norm"]["a"])
    found("a.npy", "b.npy", "-o", "out.json")
    assert json.loads(Path("out.json").read_text())["n"] == 80


def test_ids(folder: Path) -> None:
    assert found("old.csv", "new.csv", "--ids", "id")["correspondences"]["cka"]["value"] > 1 - 1e-9
    assert found("old.csv", "new.csv")["correspondences"]["cka"]["value"] > 1 - 1e-9
    assert found("old.csv", "new.csv", "--ids", "none")["correspondences"]["cka"]["value"] < 0.9
    # texts are those of A's rows, also where B has fewer
    Path("part.csv").write_text("\n".join(Path("new.csv").read_text().splitlines()[:61]) + "\n")
    part = found("old.csv", "part.csv", "--ids", "id", "--texts", "texts.txt")
    assert part["n"] == 60
    assert all(one["text"] == f"the item {one['row']}" for one in part["moved_rows"])


def test_slices_and_their_gates(folder: Path) -> None:
    B = np.load("b.npy")
    B[::2] = np.random.default_rng(0).normal(size=(40, 5))
    np.save("worse.npy", B)
    Path("rows.csv").write_text(
        "v,w,x,y,z,month\n"
        + "\n".join(
            f"{','.join(map(str, row))},{7 + place % 2}" for place, row in enumerate(np.load("a.npy"))
        )
    )
    arguments = ("rows.csv", "worse.npy", "--by", "month", "-m", "isoscore", "--gate", "worst:overlap>=0.5")
    result = run(*arguments, "--json")
    facts = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (facts["by"], facts["gates"][0]["slice"], facts["a"]["d"]) == (["month"], "7", 5)
    assert [one["slice"] for one in facts["slice_overlaps"]] == ["7", "8"]
    both = found(*arguments[:4], "--by", "labels.txt", "-m", "isoscore", "--no-errors")
    assert {one["slice"] for one in both["slices"]} == {"7, x", "8, y"}


def test_two_models(folder: Path, tiny_model: Path, tiny_bert: Path) -> None:
    words = [
        "a cat sat",
        "the dog ran",
        "a dog sat to",
        "the cat",
        "ran to a cat",
        "the the dog",
        "a to",
        "sat",
    ]
    Path("words.txt").write_text("\n".join(words) + "\n")
    page = found("words.txt", "--model", str(tiny_model), "--model", str(tiny_bert), "-k", "2")
    assert page["n"] == 8
    assert page["correspondences"]["cka"]["value"] < 1
    assert page["moved_rows"][0]["text"] in words


def test_gates_set_the_exit_code(folder: Path) -> None:
    passed = run("a.npy", "b.npy", "--gate", "isoscore>=0.1", "--gate", "cka>=0.1", "--gate", "lid<100")
    assert passed.exit_code == 0
    assert passed.output.count("gate pass") == 3
    failed = run("a.npy", "b.npy", "--gate", "isoscore>=0.1", "--gate", "delta:isoscore>=0")
    assert failed.exit_code == 1
    assert "gate pass: isoscore>=0.1" in failed.output
    assert "gate FAIL: delta:isoscore>=0 (is -0." in failed.output
    page = run("a.npy", "b.npy", "--gate", "overlap>=2", "--json")
    assert page.exit_code == 1
    assert json.loads(page.stdout)["gates"][0]["passed"] is False


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a.npy", "b.npy", "--gate", "isoscore=>1"), "--gate must be NAME>=NUMBER"),
        (("a.npy", "b.npy", "--gate", "isoscore"), "--gate must be NAME>=NUMBER"),
        (("a.npy", "b.npy", "--gate", "isoscore>=nan"), "--gate must be NAME>=NUMBER"),
        (("a.npy", "b.npy", "--gate", "isocsore>=0.1"), "did you mean isoscore"),
        (("a.npy", "b.npy", "--gate", "silhouette>=0.1"), "labels"),
        (("a.npy",), "B is missing"),
        (("a.npy", "b.npy", "--key", "x", "--key", "y", "--key", "z"), "got 3 values"),
        (("a.npy", "none.npy"), "none.npy"),
        (("old.csv", "new.csv", "--ids", "nokey"), "--ids must be a column or a file, got 'nokey'"),
        (("a.npy", "b.npy", "-o", "no/folder/out.json"), "out.json"),
    ],
)
def test_bad_input(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, iso.InputError)
    assert said in str(result.exception)


def test_three_rows_need_no_option(folder: Path) -> None:
    np.save("n3.npy", np.load("a.npy")[:3])
    result = run("n3.npy", "n3.npy")
    assert result.exit_code == 0, result.output
    assert "the overlap uses 1 neighbour instead of 10" in result.output
