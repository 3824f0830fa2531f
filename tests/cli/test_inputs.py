from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import isoscope as iso
from isoscope.cli import app
from isoscope.cli.inputs import InputOptions

runner = CliRunner()
WORDS = [
    "a cat sat",
    "the dog ran to the cat",
    "dog",
    "a a a a a a a a a",
    "the cat",
    "dog sat",
    "cat cat",
    "to a dog",
]
LABELS = ["p", "p", "q", "p", "q", "q", "p", "q"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rows = [{"text": text, "title": text[-3:], "label": y} for text, y in zip(WORDS, LABELS, strict=True)]
    Path("reviews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("reviews.txt").write_text("\n".join(WORDS))
    Path("reviews.csv").write_text("text,label\n" + "\n".join(f"{r['text']},{r['label']}" for r in rows))
    Path("numbered.csv").write_text("id,text,label\n1,a cat,0\n2,the dog,1\n3,dog,1\n")
    pq.write_table(pa.table({"text": WORDS, "label": LABELS}), "reviews.parquet")
    Path("labels.txt").write_text("\n".join(LABELS))
    Path("pairs.tsv").write_text("0\t1\n2\t3\n4\t5\n6\t7\n")
    Path("pair_labels.txt").write_text("x\ny\nx\ny\n")
    np.save("vectors.npy", np.random.default_rng(0).normal(size=(8, 4)))
    Path("words.txt").write_text("\n".join(f"w{i} 0.{i} 0.2 0.{9 - i}" for i in range(8)))
    return tmp_path


def ran(*arguments: str) -> dict:
    result = runner.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("file", "labels"),
    [
        ("reviews.jsonl", "label"),
        ("reviews.csv", "label"),
        ("reviews.parquet", "label"),
        ("reviews.txt", "labels.txt"),
    ],
)
def test_measure_encodes_texts(folder: Path, tiny_model: Path, file: str, labels: str) -> None:
    found = ran("measure", file, "--model", str(tiny_model), "--labels", labels)
    wanted = iso.measure(iso.encode(WORDS, model=tiny_model), labels=LABELS)
    values = {name: entry["value"] for name, entry in found["metrics"].items()}
    assert values == pytest.approx(dict(wanted), nan_ok=True)
    assert found["n"] == 8
    assert found["name"] == "reviews"
    assert any("8 texts" in note for note in found["notes"])


def test_the_table_says_what_was_encoded(folder: Path, tiny_model: Path) -> None:
    result = runner.invoke(app, ["measure", "reviews.jsonl", "--model", str(tiny_model), "-l", "label"])
    assert result.exit_code == 0
    assert f"note: 8 texts of column 'text', encoded by {tiny_model.name}\n" in result.output
    assert "1 of 8 texts truncated to 8 tokens" in " ".join(result.output.split())


def test_every_flag_changes_something(folder: Path, tiny_model: Path) -> None:
    def measured(*arguments: str) -> dict:
        found = ran(
            "measure", "reviews.jsonl", "--model", str(tiny_model), "-m", "mean_norm,mean_cosine", *arguments
        )
        return found["metrics"] | {"notes": found["notes"]}

    plain = measured()
    assert plain["mean_norm"]["value"] == pytest.approx(1)  # the tiny model normalises
    assert measured("--no-normalize")["mean_norm"]["value"] > 1.1
    assert measured("--normalize")["mean_norm"]["value"] == pytest.approx(1)
    for arguments in (["--pooling", "cls"], ["--prefix", "the cat "]):
        assert measured(*arguments)["mean_cosine"]["value"] != pytest.approx(plain["mean_cosine"]["value"])
    assert "column 'title'" in measured("--text-column", "title")["notes"][0]
    assert measured("--batch-size", "1")["mean_cosine"]["value"] == pytest.approx(
        plain["mean_cosine"]["value"]
    )
    assert measured("--device", "cpu") == plain


def test_device_batch_size_and_download_reach_the_encoder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {}
    monkeypatch.setattr("isoscope.models.open_texts", lambda path, **options: given.update(options))
    options = InputOptions(
        model="m", text_column="c", prefix="p", pooling="cls", normalize=False, batch_size=3,
        device="cuda:1", download=True,
    )  # fmt: skip
    options.open("reviews.jsonl", labels="label")
    assert given == {
        "model": "m", "text_column": "c", "prefix": "p", "pooling": "cls", "normalize": False,
        "batch_size": 3, "device": "cuda:1", "download": True, "labels": "label",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reviews.jsonl"], "has texts, not vectors. Pass --model all-MiniLM-L6-v2 to encode its texts"),
        (["reviews.txt"], "Pass --model all-MiniLM-L6-v2 to encode its texts"),
        (["reviews.csv"], "Pass --model all-MiniLM-L6-v2 to encode its texts"),
        (["reviews.csv", "-l", "label"], "Pass --model all-MiniLM-L6-v2 to encode its texts"),
        (["numbered.csv"], "Pass --model all-MiniLM-L6-v2 to encode its texts"),
        (["reviews.parquet"], "Pass --model all-MiniLM-L6-v2 to encode its texts"),
        (["vectors.npy", "--text-column", "text"], "--text-column needs --model NAME"),
        (["vectors.npy", "--no-normalize"], "--normalize needs --model NAME"),
        (["vectors.npy", "--prefix", "query: "], "--prefix needs --model NAME"),
        (["vectors.npy", "--device", "abacus"], "--device 'abacus' cannot be used"),
        (["reviews.txt", "--model", "TINY", "--device", "abacus"], "--device 'abacus' cannot be used"),
        (["vectors.npy", "--download"], "--download needs --model NAME"),
        (
            ["vectors.npy", "--model", "TINY"],
            "vectors.npy contains vectors, which need no model",
        ),
        (["words.txt", "--model", "TINY"], "words.txt has 3 numbers in each line, as word vectors have"),
        (["reviews.jsonl", "--model", "TINY", "--key", "x"], "--key cannot be combined with --model"),
        (
            ["reviews.jsonl", "--model", "TINY", "--vectors", "x"],
            "--vectors cannot be combined with --model",
        ),
        (
            ["two.csv", "--model", "TINY"],
            "has columns one, two. Pass --text-column to say which holds the texts",
        ),
        (
            ["reviews.jsonl", "--model", "TINY", "--text-column", "x"],
            "has no column 'x'; it has text, title, label",
        ),
        (["reviews.jsonl", "--model", "TINY", "--labels", "x"], "--labels must be a column or a file, got"),
        (
            ["reviews.jsonl", "--model", "TINY", "--labels", "pair_labels.txt"],
            "labels has 4 entries for 8 texts",
        ),
        (["reviews.jsonl", "--model", "TINY", "--pooling", "x"], "pooling must be one of"),
        (["reviews.jsonl", "--model", "TINY", "--batch-size", "0"], "--batch-size must be"),
        (
            ["reviews.jsonl", "--model", "someone/thing"],
            "or pass --download to download it from Hugging",
        ),
        (["reviews.jsonl", "--model", "thing"], "--model must be one of all-MiniLM-L6-v2"),
        (["reviews.jsonl", "--model", "empty"], "is a folder without config.json"),
        (["reviews.jsonl", "--model", ""], "model is empty"),
        (["nowhere.jsonl"], "nowhere.jsonl does not exist"),
        (["nowhere.jsonl", "--model", "TINY"], "nowhere.jsonl does not exist; expected a file of texts"),
        (["hollow.txt", "--model", "TINY"], "hollow.txt is empty (0 bytes)"),
        (["blank.txt", "--model", "TINY"], "blank.txt has no text in line 2"),
        (["one.txt", "--model", "TINY"], "needs at least 2"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_code_2(
    folder: Path, tiny_model: Path, fail, arguments: list[str], message: str
) -> None:
    Path("empty").mkdir()
    Path("two.csv").write_text("one,two\na,b\nc,d\n")
    Path("hollow.txt").touch()
    Path("blank.txt").write_text("a\n\nb\n")
    Path("one.txt").write_text("a cat\n")
    typed = [str(tiny_model) if argument == "TINY" else argument for argument in arguments]
    error = fail("measure", *typed)
    assert message in error
    assert "download=" not in error


def test_train_encodes_texts(folder: Path, tiny_model: Path) -> None:
    quick = ["--steps", "3", "--seeds", "2"]
    found = ran("train", "reviews.jsonl", "--model", str(tiny_model), "-l", "label", *quick)
    run = iso.train_embeddings(iso.encode(WORDS, model=tiny_model), LABELS, steps=3, seeds=2)
    predicted = iso.predict_collapse(iso.encode(WORDS, model=tiny_model), LABELS, steps=3)
    assert found.pop("predicted") == json.loads(predicted.to_json())
    assert found == json.loads(json.dumps(run.to_dict()))
    shown = runner.invoke(app, ["train", "reviews.jsonl", "--model", str(tiny_model), "-l", "label", *quick])
    assert "note: 8 texts of column 'text', encoded by" in shown.output


def test_train_encodes_the_texts_of_pairs(folder: Path, tiny_model: Path, fail) -> None:
    options = ["--pairs", "pairs.tsv", "-l", "pair_labels.txt", "--steps", "3", "--seeds", "1"]
    found = ran("train", "reviews.txt", "--model", str(tiny_model), *options)
    X, pairs = iso.encode(WORDS, model=tiny_model), np.arange(8).reshape(4, 2)
    run = iso.train_embeddings(X, ["x", "y", "x", "y"], pairs=pairs, steps=3, seeds=1)
    assert found == json.loads(json.dumps(run.to_dict()))
    other = ran(
        "train", "reviews.txt", "--model", str(tiny_model), *options, "--prefix", "the ", "--pooling", "cls"
    )
    assert other["columns"]["loss"] != found["columns"]["loss"]
    error = fail(
        "train", "reviews.txt", "--model", str(tiny_model), "--pairs", "pairs.tsv", "-l", "nowhere.txt"
    )
    assert "nowhere.txt does not exist" in error


def test_train_asks_for_a_model_too(folder: Path, fail) -> None:
    assert "Pass --model all-MiniLM-L6-v2" in fail("train", "reviews.jsonl", "-l", "label")
    assert "--download" in fail("train", "reviews.jsonl", "-l", "label", "--model", "someone/thing")
    assert "--prefix needs --model" in fail("train", "vectors.npy", "-l", "labels.txt", "--prefix", "x")


def test_vectors_need_no_model_and_load_none(folder: Path) -> None:
    assert ran("measure", "vectors.npy", "-l", "labels.txt")["n_labels"] == 2
    assert ran("measure", "words.txt")["d"] == 3
    assert ran("train", "vectors.npy", "-l", "labels.txt", "--device", "cpu", "--steps", "1", "--seeds", "1")


@pytest.mark.slow
def test_a_second_run_loads_no_model(folder: Path, tiny_model: Path) -> None:
    ran("measure", "reviews.jsonl", "--model", str(tiny_model))
    code = (
        "import sys; from isoscope.cli import app\n"
        "try: app(['measure', 'reviews.jsonl', '--model', sys.argv[1]])\n"
        "finally: print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tiny_model], capture_output=True, text=True, check=False
    )
    assert done.stdout.split()[-2:] == ["True", "False"], done.stderr


def written_vectors(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(8, 4)).round(3).tolist()
    rows = [{"text": text, "embedding": row} for text, row in zip(WORDS, X, strict=True)]
    header = "x,x,x,x,text\n"
    content = {
        "v.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "v.json": json.dumps(X),
        "lists.csv": "text,v\n" + "".join(f'{text},"{row}"\n' for text, row in zip(WORDS, X, strict=True)),
        "commas.csv": "".join(";".join(map(str, row)).replace(".", ",") + "\n" for row in X),
        "twice.csv": header + "".join(",".join(map(str, row)) + ",s\n" for row in X),
    }
    Path(name).write_text(content[name])
    np.save("wanted.npy", np.array(X))


@pytest.mark.parametrize("name", ["v.jsonl", "v.json", "lists.csv", "commas.csv", "twice.csv"])
def test_vectors_are_measured_where_they_are(folder: Path, name: str) -> None:
    written_vectors(name)
    found, wanted = (
        ran("measure", file, "-m", "isoscore,mean_norm")["metrics"] for file in (name, "wanted.npy")
    )
    for metric, entry in wanted.items():
        assert found[metric]["value"] == pytest.approx(entry["value"], rel=1e-12)


def test_texts_beside_vectors_are_encoded_where_a_model_is_given(folder: Path, tiny_model: Path) -> None:
    written_vectors("v.jsonl")
    found = ran("measure", "v.jsonl", "--model", str(tiny_model))
    assert "column 'embedding' holds vectors, which are not read: leave the model out" in " ".join(
        found["notes"]
    )
