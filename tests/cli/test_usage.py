"""What is said of words that cannot be used, and what to type instead."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import typer

from isoscope.cli import app
from isoscope.cli.app import own_commands

MINI = "--model all-MiniLM-L6-v2"
TYPED = {  # what was typed: what the answer names
    "measure --foo a.npy": "`isoscope measure` has no option --foo. See `isoscope measure --help`.",
    "measure": "`isoscope measure` needs FILE. For example, `isoscope measure vectors.npy`.",
    "train a.npy": "`isoscope train` needs --labels. For example, `isoscope train ",
    "layers": "MODEL and a FILE of texts are needed. Run `isoscope layers all-MiniLM-L6-v2 reviews.txt`.",
    "layers --model m": "Run `isoscope layers m reviews.txt`.",
    "layers --texts texts.txt": "MODEL is missing. Run `isoscope layers all-MiniLM-L6-v2 texts.txt`.",
    "layers texts.txt": "expected a model before it. Run `isoscope layers all-MiniLM-L6-v2 texts.txt`.",
    "layers nope texts.txt": "MODEL must be one of all-MiniLM-L6-v2",
    "layers all-minilm texts.txt": "Did you mean 'all-MiniLM-L6-v2'?",
    "layers texts.txt all-MiniLM-L6-v2": "Run `isoscope layers all-MiniLM-L6-v2 texts.txt`.",
    "--Version": "`isoscope` has no option --Version. Did you mean --version?",
    "measure a.npy --csv --json": "--csv cannot be combined with --json",
    "correct a.npy --load b.npy -o c.npy": "b.npy is no correction; expected a file that --save wrote",
    "correct a.npy --load no.safetensors -o c.npy": "no.safetensors does not exist",
    "finetune m --regularizer star": "Did you mean 'istar'?",
    "correct a.npy --method centre -o b.npy": "got 'centre'. Did you mean 'center'?",
    "export a.npy": "Run `isoscope export a.npy --atlas atlas.parquet`.",
    "metrics isoscor": "There is no metric 'isoscor'. Did you mean isoscore or isoscore_star?",
    "correct a.npy --fit": "Option '--fit' requires an argument. See `isoscope correct --help`.",
    "reproduce bogus": "No such command 'bogus'. See `isoscope reproduce --help`.",
    "measure a.npy --seed two": "--seed must be a whole number, got 'two'.",
    "measure a.npy --seed=two": "--seed must be a whole number, got 'two'.",
    "train a.npy -l y --learning-rate fast": "--learning-rate must be a number, got 'fast'.",
    "bogus": "There is no command or file 'bogus'. See `isoscope --help`.",
    "meassure a.npy": "Did you mean measure?",
    "a": "There is no command or file 'a'. Did you mean a.npy?",
    "help": "Run `isoscope --help`.",
    "help measure": "Run `isoscope measure --help`.",
    "version": "Run `isoscope --version`.",
    "whiten a.npy": "Run `isoscope correct a.npy --method whiten -o whiten.npy`.",
    "isoscore a.npy": "Run `isoscope measure a.npy -m isoscore`.",
    f"{MINI} texts.txt": f"Run `isoscope look {MINI} texts.txt`.",
    "--json measure a.npy": "Run `isoscope measure --json a.npy`.",
    "--nonsense a.npy": "`isoscope` has no option --nonsense. See `isoscope --help`.",
    "a.npy measure": "The command measure must come before a.npy. Run `isoscope measure a.npy`.",
    "a.npy -m isoscore": "`isoscope look` has no option -m. Use `isoscope measure`, which has it.",
    "thresholds a.npy": "Run `isoscope threshold a.npy`.",
    "look a.npy --threshold 0.8": "Run `isoscope threshold a.npy`.",
    "export a.npy -o atlas.parquet": "`isoscope export` has no option -o. Did you mean --atlas?",
    "look a.npy --gate x": "Use `isoscope measure`, which has it.",
    "look a.npy --label y.txt": "`isoscope look` has no option --label. Did you mean --labels?",
    "correct a.npy --n_components 3": "Did you mean --components?",
    "look a.npy nowhere": "Unexpected argument 'nowhere'. See `isoscope look --help`.",
    "look a.npy b.npy": "Run `isoscope compare a.npy b.npy`, or pass '*.npy' in quotes",
    "look a.npy c.csv": "Run `isoscope compare a.npy c.csv`, or pass --labels c.csv",
    "look a.npy texts.txt": "expected one FILE. Pass --labels texts.txt to use its lines as labels.",
    "look a.npy b.npy c.npy": "3 files were given; expected one FILE. Pass '*.npy' in quotes",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        np.save(f"{name}.npy", np.eye(3))
    Path("c.csv").write_text("1,2\n3,4\n")
    Path("texts.txt").write_text("a\nb\n")
    return tmp_path


@pytest.mark.parametrize("typed", TYPED)
def test_the_answer_says_what_to_type(folder: Path, fail, typed: str) -> None:
    assert TYPED[typed] in fail(*typed.split())


def test_the_vectors_are_called_file(folder: Path, fail) -> None:
    np.save("one.npy", np.ones((1, 4)))
    assert "error: FILE has 1 vector; a space needs at least 2." in fail("measure", "one.npy")


def test_the_regularizers_are_those_of_the_training() -> None:
    from isoscope.cli.finetune import REGULARIZERS as OFFERED
    from isoscope.training.regularizers import REGULARIZERS

    assert (*REGULARIZERS, "none") == OFFERED


def test_a_file_of_the_name_of_a_command_is_a_second_file(folder: Path, fail) -> None:
    Path("look").write_bytes(Path("a.npy").read_bytes())
    assert "2 files were given" in fail("a.npy", "look")


def test_the_help_begins_with_a_file_and_lists_every_command_once(command) -> None:
    shown = re.sub(r"\x1b\[[\d;]*m", "", command("--help").out)
    assert "FILE | COMMAND" in shown
    assert "isoscope vectors.npy" in shown
    assert "<bool>" not in shown
    for name in (*own_commands(), "reproduce"):
        assert shown.count(f"│ {name} ") == 1, name


@pytest.mark.parametrize("name", own_commands())
def test_the_help_of_a_command_has_one_sentence_and_examples(name: str) -> None:
    text = typer.main.get_command(app).get_command(None, name).help
    first = text.strip().split("\n\n")[0]
    assert first.endswith(".")
    assert ". " not in first
    assert re.search(rf"\*\*Examples?\*\*.*`isoscope {name}?", text, flags=re.DOTALL)
