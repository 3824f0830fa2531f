from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from isoscope.cli import app
from isoscope.errors import InputError, IsoscopeError

pytest.importorskip("accelerate", reason="needs the extra `training`")

WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")
SOURCE = random.Random(0)
TEXTS = [" ".join(SOURCE.choices(WORDS, k=SOURCE.randint(3, 9))) for _ in range(30)]
ROWS = [
    {"asked": text, "answer": TEXTS[-i], "kind": "cat" if "cat" in text else "none", "same": "x"}
    for i, text in enumerate(TEXTS)
]
QUICK = ("--epochs", "1", "--batch-size", "8", "--device", "cpu", "--learning-rate", "1e-3")


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(map(json.dumps, ROWS)))
    return file


def invoke(*arguments: object) -> str:
    found = CliRunner().invoke(app, ["finetune", *map(str, arguments)])
    if found.exception and isinstance(found.exception, IsoscopeError):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.output


def run(model: Path, *arguments: object) -> list[dict[str, Any]]:
    own = ("--texts", "texts.jsonl", "--text-column", "asked", "--labels", "kind")
    return json.loads(invoke(model, *own, *QUICK, "--json", *arguments))


@pytest.mark.slow
def test_table_and_folder(tiny_bert: Path, texts: Path, tmp_path: Path) -> None:
    own = ("--texts", texts, "--text-column", "asked", "--labels", "kind")
    shown = invoke(
        tiny_bert, *own, *QUICK, "--seeds", "2", "-o", "runs", "--regularizer", "istar", "--lambda", "-1"
    )
    for words in ("accuracy", "macro-F1", "TwoNN", "istar, λ = -1", "seed 1", "mean", "figure.png"):
        assert words in shown
    assert (tmp_path / "runs" / "seed-1" / "model" / "config.json").is_file()
    assert (tmp_path / "runs" / "figure.png").stat().st_size > 1000
    options = ("--seeds", "2", "-o", "runs", "--regularizer", "istar", "--lambda", "-1")
    again = run(tiny_bert, *options, "--resume")
    assert [one["configuration"]["seed"] for one in again] == [0, 1]
    with pytest.raises(
        InputError, match=r"holds a run already, done or cut short\. Pass --resume to continue it"
    ):
        run(tiny_bert, *options)
    with pytest.raises(InputError, match=r"strength was -1\.0, now 1\.0"):
        run(tiny_bert, "-o", "runs", "--regularizer", "istar", "--resume")


@pytest.mark.slow
def test_the_scores_say_how_many_texts_they_rest_on(tiny_bert: Path, texts: Path) -> None:
    own = ("--texts", texts, "--text-column", "asked", "--labels", "kind", *QUICK)
    shown = invoke(tiny_bert, *own)
    assert "trained on 24 texts, scored on 6\n" in shown
    # √(¼/6)
    assert "note: 6 test texts are few: the standard error of the accuracy is up to 0.20\n" in shown


@pytest.mark.slow
def test_many_test_texts_need_no_note(tiny_bert: Path, texts: Path) -> None:
    texts.write_text("\n".join(map(json.dumps, ROWS * 7)))
    own = ("--texts", texts, "--text-column", "asked", "--labels", "kind", *QUICK, "--held-out", "0.5")
    shown = invoke(tiny_bert, *own)
    assert "trained on 105 texts, scored on 105\n" in shown
    assert "are few" not in shown


@pytest.mark.slow
def test_a_model_that_is_not_kept_is_told(tiny_bert: Path, texts: Path) -> None:
    own = (tiny_bert, "--texts", texts, "--text-column", "asked", "--labels", "kind", *QUICK)
    assert invoke(*own).endswith("note: the model was not saved; -o FOLDER saves it\n")
    assert invoke(*own, "--seeds", "2").endswith("note: the models were not saved; -o FOLDER saves them\n")
    assert "not saved" not in invoke(*own, "-o", "kept")


@pytest.mark.slow
def test_cut_short_before_the_first_checkpoint(tiny_bert: Path, texts: Path, fail: Any) -> None:
    whole = run(tiny_bert)[0]["epochs"]
    run(tiny_bert, "-o", "runs")
    for path in Path("runs/seed-0").iterdir():  # as Ctrl-C leaves it then: the configuration alone
        if path.name == "model":
            shutil.rmtree(path)
        elif path.name != "config.json":
            path.unlink()
    own = ("--texts", "texts.jsonl", "--text-column", "asked", "--labels", "kind", *QUICK)
    assert "Pass --resume to continue it, or choose" in fail("finetune", str(tiny_bert), *own, "-o", "runs")
    assert run(tiny_bert, "-o", "runs", "--resume")[0]["epochs"] == whole


CHANGES: dict[str, tuple[str, ...]] = {
    "strength": ("--regularizer", "istar", "--lambda", "2"),
    "regularizer": ("--regularizer", "cosreg"),
    "zeta": ("--zeta", "0.5"),
    "epochs": ("--epochs", "2"),
    "batch_size": ("--batch-size", "4"),
    "learning_rate": ("--learning-rate", "0.1"),
    "max_length": ("--max-length", "4"),
    "seed": ("--seeds", "7,"),
    "n_train": ("--max-train", "9"),
    "n_test": ("--held-out", "0.5"),
    "metric": ("--metric", "matthews"),
    "precision": ("--precision", "bf16"),
    "save_every": ("--save-every", "3"),
    "data": ("--pair-column", "answer"),
}


@pytest.mark.slow
def test_every_option_changes_the_run(tiny_bert: Path, texts: Path) -> None:
    plain = run(tiny_bert)[0]
    for name, options in CHANGES.items():
        changed = run(tiny_bert, *options)[0]
        assert changed["configuration"][name] != plain["configuration"][name], name
        if name not in ("save_every", "metric"):
            assert changed["epochs"] + changed["geometry"] != plain["epochs"] + plain["geometry"], name


@pytest.mark.slow
def test_a_task_by_name(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "glue").mkdir()
    for split, rows in (("train", ROWS[:20]), ("dev", ROWS[20:])):
        lines = [json.dumps({"sentence": row["asked"], "label": int(row["kind"] == "cat")}) for row in rows]
        (tmp_path / "glue" / f"cola_{split}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    found = json.loads(invoke(tiny_bert, "--task", "cola", "--data", tmp_path, *QUICK, "--json"))[0]
    about = found["configuration"]
    assert (about["n_train"], about["n_test"], found["metric"]) == (20, 10, "matthews")
    assert about["labels"] == ["acceptable", "unacceptable"]
    with pytest.raises(InputError, match="--task brings its own texts"):
        invoke(tiny_bert, "--task", "cola", "--data", tmp_path, "--labels", "x")


def test_bad_input(tiny_bert: Path, texts: Path, fail: Any) -> None:
    own = ("--texts", "texts.jsonl", "--text-column", "asked")
    model = str(tiny_bert)
    assert "Pass --task NAME" in fail("finetune", model)
    assert "error: --labels is missing; expected the column of texts.jsonl" in fail("finetune", model, *own)
    assert "error: --texts is missing" in fail("finetune", model, "--labels", "kind")
    assert "--task must be one of" in fail("finetune", model, "--task", "xyz")
    missing = fail("finetune", model, *own, "--labels", "nothing")
    assert "--labels must be a column or a file, got 'nothing'" in missing
    assert "labels has only the value 'x'" in fail("finetune", model, *own, "--labels", "same")
    assert "Pass --text-column to say which" in fail(
        "finetune", model, "--texts", "texts.jsonl", "--labels", "kind"
    )
    labelled = (*own, "--labels", "kind")
    assert "no column 'no'" in fail("finetune", model, *labelled, "--pair-column", "no")
    for wrong in ("nan", "inf", "strong"):
        said = fail("finetune", model, *labelled, "--regularizer", "istar", "--lambda", wrong)
        assert said == f"isoscope: error: --lambda must be a finite number, such as -1, got {wrong!r}.\n"
    said = fail("finetune", model, *labelled, "--regularizer", "iso")
    assert said.startswith("isoscope: error: --regularizer must be one of istar, istar-debiased")
    assert "--batch-size must be at least 2" in fail("finetune", model, *labelled, "--batch-size", "1")
    for wrong in ("2", "0", "-1"):
        said = fail("finetune", model, *labelled, "--held-out", wrong)
        assert said.startswith("isoscope: error: --held-out must be a share between 0 and 1")
    assert "--held-out must be a finite" in fail("finetune", model, *labelled, "--held-out", "x")
    assert "--held-out leaves 0" in fail("finetune", model, *labelled, "--held-out", "0.99")
    said = fail("finetune", model, *labelled, "--max-length", "2", "-o", "short")
    assert "error: --max-length must be at least 3" in said
    assert not Path("short").exists()
    assert "--max-train must be" in fail("finetune", model, *labelled, "--max-train", "1")
    assert "--resume needs --output" in fail("finetune", model, *labelled, "--resume")
    assert "pass --download to download it" in fail("finetune", "no/such-model", *labelled)
    assert "does not exist" in fail("finetune", model, "--texts", "no.csv", "--labels", "kind")
