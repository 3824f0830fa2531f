from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from isoscope.cli import app
from isoscope.cli.contrast import _pairs
from isoscope.errors import FileError, InputError, IsoscopeError

pytest.importorskip("accelerate", reason="needs the extra `training`")

WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")
SOURCE = random.Random(0)
TEXTS = [" ".join(SOURCE.choices(WORDS, k=SOURCE.randint(3, 9))) for _ in range(24)]
QUICK = ("--batch-size", "8", "--device", "cpu", "--learning-rate", "1e-3", "--steps", "3")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [{"anchor": text, "positive": text[::-1], "note": "n"} for text in TEXTS]
    Path("pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("two.tsv").write_text("left\tright\n" + "\n".join(f"{text}\t{text} on" for text in TEXTS))
    Path("probe.txt").write_text("\n".join(TEXTS[:12]))
    return tmp_path


def invoke(*arguments: object) -> str:
    found = CliRunner().invoke(app, ["contrast", *map(str, arguments)])
    if found.exception and isinstance(found.exception, IsoscopeError):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.output


def run(model: Path, *arguments: object) -> dict[str, Any]:
    return json.loads(invoke(model, "--pairs", "pairs.jsonl", *QUICK, "--json", *arguments))


@pytest.mark.slow
def test_table_and_folder(tiny_bert: Path, folder: Path) -> None:
    options = ("--pairs", "two.tsv", *QUICK, "--probe", "probe.txt", "--every", "2", "-o", "run")
    shown = invoke(tiny_bert, *options)
    for words in ("τ = 0.05", "mean pooling", "3 updates", "effective", "figure.png"):
        assert words in shown
    assert (folder / "run" / "model" / "modules.json").is_file()
    assert (folder / "run" / "figure.png").stat().st_size > 1000
    assert invoke(tiny_bert, *options, "--resume") == shown
    with pytest.raises(InputError, match=r"temperature was 0\.05, now 0\.1"):
        invoke(tiny_bert, *options, "--resume", "--temperature", "0.1")


@pytest.mark.slow
def test_without_a_probe_a_note_says_how_to_follow_the_geometry(tiny_bert: Path, folder: Path) -> None:
    assert "--probe FILE measures it" in invoke(tiny_bert, "--pairs", "two.tsv", *QUICK)
    assert "--probe" not in invoke(tiny_bert, "--pairs", "two.tsv", *QUICK, "--probe", "probe.txt")


@pytest.mark.slow
def test_a_model_that_is_not_kept_is_told(tiny_bert: Path, folder: Path) -> None:
    own = (tiny_bert, "--pairs", "two.tsv", *QUICK)
    assert invoke(*own).endswith("note: the model was not saved; -o FOLDER saves it\n")
    assert "not saved" not in invoke(*own, "-o", "kept")


@pytest.mark.slow
def test_notes_on_columns_and_on_partners_that_repeat(tiny_bert: Path, folder: Path) -> None:
    kinds = ["good" if i % 2 else "bad" for i in range(len(TEXTS))]
    rows = [f"{text},{kind}" for text, kind in zip(TEXTS, kinds, strict=True)]
    Path("small.csv").write_text("\n".join(["text,label", *rows]))
    shown = invoke(tiny_bert, "--pairs", "small.csv", *QUICK)
    assert "note: the pairs are columns text and label; --columns A,B takes others\n" in shown
    assert "note: 24 of 24 pairs share their second text with another pair; " in shown
    asked = invoke(tiny_bert, "--pairs", "small.csv", "--columns", "label,text", *QUICK)
    assert "the pairs are columns" not in asked
    assert "share their second text" not in asked
    json.loads(invoke(tiny_bert, "--pairs", "small.csv", *QUICK, "--json"))


@pytest.mark.parametrize(("n_shared", "is_told"), [(2, False), (3, True)])
def test_a_tenth_of_the_partners_may_repeat(
    tiny_bert: Path, folder: Path, n_shared: int, is_told: bool
) -> None:
    seconds = ["the cat"] * n_shared + [f"on {i}" for i in range(20 - n_shared)]
    rows = [{"anchor": f"dog {i}", "positive": second} for i, second in enumerate(seconds)]
    Path("some.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shown = invoke(tiny_bert, "--pairs", "some.jsonl", *QUICK)
    assert ("3 of 20 pairs share" in shown) == is_told
    assert ("share their second text" in shown) == is_told


CHANGES: dict[str, tuple[str, ...]] = {
    "temperature": ("--temperature", "0.5"),
    "symmetric": ("--one-way",),
    "pooling": ("--pooling", "cls"),
    "batch_size": ("--batch-size", "4"),
    "steps": ("--steps", "2"),
    "learning_rate": ("--learning-rate", "0.1"),
    "warmup": ("--warmup", "0.9"),
    "max_length": ("--max-length", "4"),
    "seed": ("--seed", "3"),
    "precision": ("--precision", "bf16"),
    "save_every": ("--save-every", "2"),
    "data": ("--columns", "anchor,note"),
}


@pytest.mark.slow
def test_every_option_changes_the_run(tiny_bert: Path, folder: Path) -> None:
    def numbers(found: dict[str, Any]) -> tuple[Any, ...]:
        return found["first_loss"], found["last_loss"], found["rows"]

    plain = run(tiny_bert)
    for name, options in CHANGES.items():
        changed = run(tiny_bert, *options)
        assert changed["configuration"][name] != plain["configuration"][name], name
        if name != "save_every":
            assert numbers(changed) != numbers(plain), name
    probe = ("--probe", "probe.txt")
    followed = run(tiny_bert, *probe, "--every", "1", "--layers", "0,-1", "--contextual")
    assert [row["step"] for row in followed["rows"]] == [0, 1, 2, 3]
    assert {"mean_cosine@0", "adjusted_self_similarity@-1"} <= set(followed["rows"][0])
    assert run(tiny_bert, "--epochs", "2", *probe)["rows"][-1]["step"] == 3  # --steps comes first


def read(where: str, columns: str | None = None, data: Path | None = None) -> list[tuple[str, str]]:
    return _pairs(where, columns, data, download=False)[0]


def test_where_pairs_come_from(folder: Path) -> None:
    assert read("pairs.jsonl")[0] == (TEXTS[0], TEXTS[0][::-1])
    assert read("two.tsv")[0] == (TEXTS[0], f"{TEXTS[0]} on")
    assert read("pairs.jsonl", "note, anchor")[0] == ("n", TEXTS[0])
    (folder / "snli").mkdir()
    for split in ("dev", "test"):
        rows = [
            {"premise": f"{split} {label}", "hypothesis": "h", "label": label}
            for label in ("entailment", "neutral")
        ]
        content = "\n".join(map(json.dumps, rows)).encode()
        (folder / "snli" / f"snli_{split}.jsonl.gz").write_bytes(gzip.compress(content))
    found = read("snli", None, folder)
    assert found == [("dev entailment", "h"), ("test entailment", "h")]
    with pytest.raises(InputError, match="`columns` works only with a file"):
        read("snli", "a,b", folder)


def test_files_without_pairs(folder: Path) -> None:
    Path("one.csv").write_text("text\na cat\na dog\n")
    Path("numbers.csv").write_text("x,y\n1,2\n3,4\n")
    Path("many.jsonl").write_text(json.dumps({"x": "a", "y": "b", "z": "c"}))
    for file, columns, message in (
        ("one.csv", None, r"one column of texts \(text\); expected two"),
        ("numbers.csv", None, "no columns of texts"),
        ("probe.txt", None, "no columns of texts"),
        ("many.jsonl", None, r"columns x, y, z\. Pass `columns` to say which two"),
        ("many.jsonl", "x", "`columns` must be two names"),
        ("many.jsonl", "x,w", "no column 'w'"),
        ("pairs.npy", None, "does not exist; expected a file of pairs"),
    ):
        with pytest.raises(InputError, match=message):
            read(file, columns)
    Path("x.npy").write_bytes(b"x")
    with pytest.raises(FileError, match="has the suffix"):
        read("x.npy")


def test_bad_input(tiny_bert: Path, folder: Path, fail: Any) -> None:
    own = ("contrast", str(tiny_bert), "--pairs", "pairs.jsonl", "--batch-size", "8")
    assert "--temperature must be a positive number, got 0.0" in fail(*own, "--temperature", "0")
    said = fail(*own, "--temperature", "nope")
    assert said == "isoscope: error: --temperature must be a finite number, such as 0.05, got 'nope'.\n"
    assert "--max-length must be at least 3" in fail(*own, "--max-length", "1")
    assert "--batch-size must be at most 24" in fail(*own, "--batch-size", "25")
    assert "--batch-size must be at least 2" in fail(*own, "--batch-size", "1")
    assert "--pooling must be one of" in fail(*own, "--pooling", "sum")
    assert "--resume needs --output" in fail(*own, "--resume")
    assert "--layers must be comma-separated whole numbers" in fail(*own, "--layers", "last")
    assert "does not exist; expected a file of texts" in fail(*own, "--probe", "no.txt")
    assert "is not on this machine" in fail("contrast", "no/such-model", *own[2:])
