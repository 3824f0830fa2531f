from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

import isoscope as iso
from isoscope import corrections
from isoscope.advice.candidates import default_corrections
from isoscope.cli import app
from isoscope.cli.correct import METHODS, CorrectionOptions, build, methods_in, words_of

runner = CliRunner()


@pytest.fixture
def folder(tmp_path: Path, rng, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(300, 6)) * np.linspace(4, 1, 6) + np.repeat(np.eye(6)[:3] * 20, 100, axis=0) + 2
    np.save("vectors.npy", X)
    np.save("other.npy", X[:150] * 2)
    np.save("query.npy", X[:1])
    np.savetxt("vectors.csv", X, delimiter=",", header=",".join("abcdef"), comments="")
    Path("labels.txt").write_text("\n".join("abc"[i // 100] for i in range(300)) + "\n")
    iso.save(iso.Space(X, labels=["abc"[i // 100] for i in range(300)], texts=["t"] * 300), "table.parquet")
    return tmp_path


def run(*arguments: str) -> dict:
    result = runner.invoke(app, ["correct", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_table(folder: Path) -> None:
    result = runner.invoke(app, ["correct", "vectors.npy", "--method", "whiten", "-o", "out.npy"])
    assert result.exit_code == 0
    assert "300 vectors, 6 dimensions → 6" in result.output
    assert "isoscore" in result.output
    assert "wrote out.npy" in result.output


@pytest.mark.parametrize(("method", "is_noted"), [("center", True), ("normalize", False)])
def test_a_share_of_nearly_nothing_is_noted(folder: Path, rng, method: str, is_noted: bool) -> None:
    X = rng.normal(size=(300, 40)) + 2
    X[:, 0] = rng.lognormal(0, 1.5, 300)  # so skewed that, centred, it still contributes
    np.save("cone.npy", X)
    found = run("cone.npy", "--method", method, "-o", "out.npy")
    assert any("top_dimension_share" in note for note in found["notes"]) == is_noted


@pytest.mark.parametrize(("method", "n_moved"), [("center,normalize", 3), ("whiten", 3), ("normalize", 0)])
def test_zero_vectors_that_are_moved_are_noted(folder: Path, rng, method: str, n_moved: int) -> None:
    X = rng.normal(size=(300, 6)) + 2
    X[[4, 8, 200]] = 0
    np.save("zeros.npy", X)
    notes = run("zeros.npy", "--method", method, "-o", "out.npy")["notes"]
    assert any("3 zero vectors are no longer zero" in note for note in notes) == bool(n_moved)
    assert len(np.unique(np.load("out.npy")[[4, 8, 200]], axis=0)) == 1


@pytest.mark.parametrize(
    ("arguments", "correction"),
    [
        (["--method", "center"], iso.Center()),
        (["--method", "standardize"], iso.Standardize()),
        (["--method", "normalize"], iso.Normalize()),
        (["--method", "whiten"], iso.Whiten()),
        (["--method", "whiten", "--components", "2", "--strength", "0.5"], iso.Whiten(2, 0.5)),
        (["--method", "whiten", "--zca"], iso.Whiten(method="zca")),
        (["--method", "all-but-the-top", "--components", "2"], iso.AllButTheTop(2)),
        (["--method", "remove-dimensions", "--dimensions", "2"], iso.corrections.RemoveDimensions(2)),
        (
            ["--method", "remove-dimensions", "--dimensions", "4,1"],
            iso.corrections.RemoveDimensions(dimensions=[4, 1]),
        ),
        (
            ["--method", "cluster-center", "--clusters", "3", "--seed", "4"],
            iso.corrections.ClusterCenter(3, seed=4),
        ),
        (["--method", "clusterwise", "--clusters", "3"], iso.corrections.ClusterwiseAllButTheTop(3)),
        (["--method", "whiten,normalize"], iso.Chain([iso.Whiten(), iso.Normalize()])),
    ],
)
def test_methods_are_the_corrections(folder: Path, arguments: list[str], correction) -> None:
    X = np.load("vectors.npy")
    found = run("vectors.npy", *arguments, "-o", "out.npy")
    wanted = correction.fit_transform(X)
    assert np.allclose(np.load("out.npy"), wanted)
    assert found["d_corrected"] == wanted.shape[1]
    assert found["before"]["isoscore"] == pytest.approx(iso.isoscore(X))
    assert found["after"]["isoscore"] == pytest.approx(iso.isoscore(wanted))
    assert found["after"]["mean_cosine"] == pytest.approx(iso.mean_cosine(wanted), abs=1e-9)


def test_fitted_on_another_file(folder: Path) -> None:
    run("vectors.npy", "--method", "standardize", "--fit", "other.npy", "-o", "out.npy")
    wanted = iso.Standardize().fit(np.load("other.npy")).transform(np.load("vectors.npy"))
    assert np.allclose(np.load("out.npy"), wanted)


def test_saved_and_loaded_for_one_query(folder: Path) -> None:
    saved = run("vectors.npy", "--method", "whiten,normalize", "--components", "3", "--save", "w.safetensors")
    assert saved["output"] is None
    assert saved["after"]["mean_norm"] == pytest.approx(1)
    found = run("query.npy", "--load", "w.safetensors", "-o", "out.npy")
    wanted = iso.Chain([iso.Whiten(3), iso.Normalize()]).fit_transform(np.load("vectors.npy"))
    assert np.allclose(np.load("out.npy"), wanted[:1])
    assert found["before"]["isoscore"] is None


def test_labels_make_clusters_and_are_kept(folder: Path) -> None:
    run("table.parquet", "--method", "cluster-center", "--labels", "label", "-o", "out.parquet")
    space = iso.read("out.parquet", labels="label")
    X = np.load("vectors.npy")
    wanted = iso.corrections.ClusterCenter().fit(X, labels=np.repeat(list("abc"), 100)).transform(X)
    assert np.allclose(space.vectors, wanted)
    assert space.labels.names == ("a", "b", "c")
    assert "text" in iso.open_vectors("out.parquet")._reader.columns
    by_file = run("vectors.npy", "--method", "cluster-center", "-l", "labels.txt", "-o", "out.npy")
    assert by_file["after"]["isoscore"] == pytest.approx(iso.isoscore(wanted))


def test_files_that_do_not_say_how_long_they_are(folder: Path) -> None:
    found = run("vectors.csv", "--method", "center", "-o", "out.npy")
    X = np.load("vectors.npy")
    assert np.allclose(np.load("out.npy"), X - X.mean(axis=0), atol=1e-5)
    assert found["n"] == 300


def test_type_stays(folder: Path) -> None:
    np.save("narrow.npy", np.load("vectors.npy").astype(np.float16))
    run("narrow.npy", "--method", "whiten", "-o", "out.npy")
    assert np.load("out.npy").dtype == np.float16


def test_many_blocks(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr("isoscope.arrays.BLOCK_BYTES", 1)  # the least a block may be: 256 rows
    run("vectors.npy", "--method", "whiten", "-o", "out.npy")
    assert np.allclose(np.cov(np.load("out.npy").T), np.eye(6))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.npy", "--method", "center", "-o", "out.npy"], "nope.npy does not exist"),
        (["vectors.npy", "-o", "out.npy"], "--method is missing"),
        (
            ["vectors.npy", "--method", "bleach", "-o", "out.npy"],
            "--method must be one of center, standardize",
        ),
        (["vectors.npy", "--method", "center"], "nothing to write"),
        (
            ["vectors.npy", "--method", "whiten_soft", "-o", "out.npy"],
            "Pass --method whiten --strength 0.5",
        ),
        (
            ["vectors.npy", "--method", "all-but-the-top", "--components", "6", "-o", "o.npy"],
            "--components is 6, and X has n_features = 6; expected at most 5",
        ),
        (["vectors.npy", "--method", "center", "-o", "vectors.npy"], "vectors.npy is an input"),
        (["vectors.npy", "--method", "center", "--fit", "other.npy", "-o", "other.npy"], "is an input"),
        (
            ["vectors.npy", "--method", "center", "--components", "2", "-o", "o.npy"],
            "belongs to",
        ),
        (
            ["vectors.npy", "--method", "center", "--labels", "labels.txt", "-o", "o.npy"],
            "--labels belongs to",
        ),
        (
            ["vectors.npy", "--method", "whiten", "--components", "7", "-o", "o.npy"],
            "--components must be a whole",
        ),
        (
            ["vectors.npy", "--method", "whiten", "--strength", "2", "-o", "o.npy"],
            "--strength must be a number",
        ),
        (
            ["vectors.npy", "--method", "center", "-o", "out.csv"],
            "name that ends in .npy or .parquet",
        ),
        (["vectors.npy", "--method", "center", "-o", "no/out.npy"], "no is not a folder"),
        (["vectors.npy", "--load", "vectors.npy", "-o", "out.npy"], "vectors.npy"),
        (["vectors.npy", "--load", "w.safetensors", "-o", "out.npy"], "w.safetensors does not exist"),
        (
            ["vectors.npy", "--load", "w.safetensors", "--method", "center", "-o", "out.npy"],
            "cannot be combined with --load",
        ),
        (
            ["vectors.npy", "--method", "remove-dimensions", "--dimensions", "x", "-o", "o.npy"],
            "--dimensions must be comma-separated whole numbers",
        ),
        (
            ["vectors.npy", "--method", "center", "--save", "c.npy"],
            "name that ends in .safetensors",
        ),
    ],
)
def test_bad_requests_are_one_line(folder: Path, fail, arguments: list[str], message: str) -> None:
    before = sorted(path.name for path in folder.iterdir())
    assert message in fail("correct", *arguments)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_what_the_vectors_cannot_give_is_said_in_options(folder: Path, fail) -> None:
    np.save("flat.npy", np.load("vectors.npy")[:, [0, 1, 0, 1]])
    said = fail("correct", "flat.npy", "--method", "whiten", "--components", "3", "-o", "o.npy")
    assert "--components is 3, and the 300 vectors have rank 2; expected at most 2. Fit on more" in said
    options = ("--method", "clusterwise", "--clusters", "2", "--components", "3", "-o", "o.npy")
    assert "; expected at most 2. Use fewer clusters.\n" in fail("correct", "flat.npy", *options)


def test_a_folder_closed_to_us_is_known_before_the_work(folder: Path, fail, monkeypatch) -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("needs /proc, a folder nobody can write to")
    monkeypatch.setattr(iso.Center, "fit_blocks", None)
    for option, name in (("-o", "out.npy"), ("--save", "c.safetensors")):
        said = fail("correct", "vectors.npy", "--method", "center", option, f"/proc/{os.getpid()}/{name}")
        assert f"{name} cannot be written to the folder" in said


def test_a_correction_of_other_dimensions(folder: Path, fail, monkeypatch) -> None:
    monkeypatch.setattr("isoscope.corrections.correct.measure", None)
    iso.Center().fit(np.eye(4)).save("four.safetensors")
    said = fail("correct", "vectors.npy", "--load", "four.safetensors", "-o", "out.npy")
    assert "X has 6 features, but Center is expecting 4 features" in said
    assert not Path("out.npy").exists()


@pytest.mark.parametrize("name", ["all_but_the_top", "remove_dimensions", "clusterwise_all_but_the_top"])
def test_methods_by_their_names_in_advise(folder: Path, name: str) -> None:
    plain = {"clusterwise_all_but_the_top": "clusterwise"}.get(name, name.replace("_", "-"))
    for method, output in ((name, "a.npy"), (plain, "b.npy")):
        run("vectors.npy", "--method", method, "-o", output)
    assert np.array_equal(np.load("a.npy"), np.load("b.npy"))


@pytest.mark.parametrize("d", [6, 300])
def test_options_of_what_is_advised_ask_for_it(d: int) -> None:
    for name, correction in default_corrections(1000, d).items():
        method, *options = words_of(correction)[1:]
        kinds = {"components": int, "clusters": int, "dimensions": str, "strength": float}
        given = {}
        for option, value in zip(options[::2], options[1::2], strict=True):
            key = option.removeprefix("--")
            given[key if key == "strength" else f"n_{key}"] = kinds[key](value)
        options = CorrectionOptions(**given)
        found = build(methods_in(method, options), options)
        wanted = correction.get_params() | ({"small": "error"} if name.startswith("clusterwise") else {})
        assert type(found) is type(correction)
        assert found.get_params() == wanted


def table_of(kind: str) -> pa.Table:
    X = np.random.default_rng(0).normal(size=(3000, 6)).astype(np.float32)
    known = {
        "id": pa.array(np.arange(3000)),
        "when": pa.array(np.datetime64("2024-01-01", "us") + np.arange(3000)),
        "tags": pa.array([["x"] * (i % 3) for i in range(3000)]),
    }
    if kind == "numbers":
        vectors = {f"d{j}": pa.array(X[:, j]) for j in range(6)}
    else:
        of = {
            "list": pa.list_(pa.float32()),
            "large": pa.large_list(pa.float32()),
            "fixed": pa.list_(pa.float32(), 6),
        }
        vectors = {"embedding": pa.array(X.tolist(), of[kind])}
    return pa.table(
        {"id": known["id"], **vectors, "when": known["when"], "tags": known["tags"], "text": ["t"] * 3000}
    )


@pytest.mark.parametrize("kind", ["list", "large", "fixed", "numbers"])
@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_a_table_keeps_its_columns(folder: Path, kind: str, suffix: str) -> None:
    table = table_of(kind)
    if suffix == ".parquet":
        pq.write_table(table, "in.parquet", row_group_size=700)
    else:
        pyarrow.feather.write_feather(table, "in.feather", chunksize=333)
    run(f"in{suffix}", "--method", "center", "-o", "out.parquet")
    found = pq.read_table("out.parquet")
    assert found.schema.equals(table.schema)
    for name in ("id", "when", "tags", "text"):
        assert found.column(name).to_pylist() == table.column(name).to_pylist()
    where = {"columns": "d0:d5"} if kind == "numbers" else {"vectors": "embedding"}
    before, after = iso.read(f"in{suffix}", **where).vectors, iso.read("out.parquet", **where).vectors
    assert torch.allclose(after, before - before.mean(0), atol=1e-5)


def test_a_table_keeps_its_index(folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    index = pandas.Index([f"k{i}" for i in range(40)], name="key")
    frame = pandas.DataFrame({"text": ["t"] * 40, "embedding": list(np.eye(40)[:, :4])}, index=index)
    frame.to_parquet("in.parquet")
    run("in.parquet", "--method", "center", "-o", "out.parquet")
    assert pandas.read_parquet("out.parquet").index.equals(index)


@pytest.mark.parametrize("kind", ["list", "numbers"])
def test_a_table_of_fewer_dimensions_keeps_its_other_columns(folder: Path, kind: str) -> None:
    pq.write_table(table_of(kind), "in.parquet")
    run("in.parquet", "--method", "whiten", "--components", "2", "-o", "out.parquet")
    name = "embedding" if kind == "list" else "vector"
    assert pq.read_schema("out.parquet").names == ["id", name, "when", "tags", "text"]
    assert iso.read("out.parquet").n_dims == 2


def test_a_csv_keeps_its_columns(folder: Path) -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    rows = "".join(f"{i},{a!r},w{i},{b!r}\n" for i, (a, b) in enumerate(X.tolist()))
    Path("in.csv").write_text("id,a,word,b\n" + rows)
    run("in.csv", "--method", "center", "-o", "out.parquet")
    found = pq.read_table("out.parquet")
    assert found.column_names == ["id", "a", "word", "b"]
    assert found.column("word").to_pylist() == [f"w{i}" for i in range(50)]
    assert np.allclose(found.column("b").to_numpy(), X[:, 1] - X[:, 1].mean())


def test_labels_of_their_own_are_added_and_files_of_many_are_one(folder: Path) -> None:
    table = table_of("list").slice(0, 300)
    Path("many").mkdir()
    pq.write_table(table.slice(0, 100), "many/0.parquet")
    pq.write_table(table.slice(100), "many/1.parquet")
    Path("y.txt").write_text("\n".join("ab"[i % 2] for i in range(300)))
    run("many", "--method", "cluster-center", "--labels", "y.txt", "-o", "out.parquet")
    found = pq.read_table("out.parquet")
    assert found.column_names == [*table.column_names, "label"]
    assert found.column("id").to_pylist() == list(range(300))
    assert found.column("label").to_pylist() == ["a", "b"] * 150


def test_what_is_not_written_is_said(folder: Path) -> None:
    Path("in.jsonl").write_text("".join(json.dumps({"id": i, "v": [i, i % 3]}) + "\n" for i in range(9)))
    assert run("in.jsonl", "--method", "center", "-o", "out.parquet")["notes"] == [
        "only vectors, labels and texts are written"
    ]
    assert run("in.jsonl", "--method", "center", "-o", "out.npy")["notes"] == []


def test_methods_take_the_options_that_are_listed() -> None:
    for name, options in METHODS.values():
        parameters = set(getattr(corrections, name)().get_params())
        also = ({"zca"} if "method" in parameters else set()) | (
            {"labels"} if "n_clusters" in parameters else set()
        )
        listed = {field.name for field in fields(CorrectionOptions)}
        assert set(options) == (parameters | also) & listed, name
