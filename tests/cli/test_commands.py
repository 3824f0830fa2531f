"""What every command prints: nothing from outside steers the terminal, and what fails is one line."""

from __future__ import annotations

import importlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso
import isoscope.engine.measure  # to be patched
from isoscope.cli.inputs import InputOptions

# an operating system command, a colour, a C1 introducer, a return, a line of its own, text turned round
EVIL = "\x1b]0;t\x07\x1b[31;5mred\x9b7m\r\nisoscope: error: fake\u202e[red]x[/red]:bug:"
SPELLED = r"\u001b]0;t\u0007\u001b[31;5mred\u009b7m\r\nisoscope: error: fake\u202e[red]x[/red]:bug:"
OWN = re.compile(
    r"\x1b\[(?:\d{1,2}(?:;\d{1,3})*)?m|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r"
)  # styles and the bar


@pytest.fixture
def folder(tmp_path: Path, rng, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(60, 4)) + np.repeat(np.eye(4)[:3] * 4, 20, axis=0)
    np.save(f"{EVIL.replace('/', '')}.npy", X)
    np.save("plain.npy", X)
    names = [f"{EVIL}{i // 20}" for i in range(60)]
    iso.save(iso.Space(X, labels=names, texts=names), "t.parquet")
    Path("labels.json").write_text(json.dumps(names))
    Path("two.csv").write_text("\x1b[31;5mone,two\n" + "\n".join(f"{x},{y}" for x, y in X[:, :2]) + "\n")
    return tmp_path


def check(printed: str) -> None:
    assert "\x1b[31;5m" not in printed
    assert all(c.isprintable() or c == "\n" for c in OWN.sub("", printed))
    assert not any(line.startswith("isoscope: error: fake") for line in OWN.sub("", printed).split("\n"))


PLAIN = f"{EVIL.replace('/', '')}.npy"
LABELS = ("t.parquet", "--labels", "label")
COMMANDS = {
    "measure": ("measure", PLAIN, "-m", "isoscore"),
    "measure, columns": ("measure", "two.csv", "-m", "isoscore"),
    "correct": (
        "correct",
        PLAIN,
        "--method",
        "center",
        "-o",
        f"out{PLAIN}",
        "--save",
        "\x1b[31;5ms.safetensors",
    ),
    "compare": ("compare", PLAIN, "plain.npy", "-m", "isoscore", "--gate", "overlap>=0.1"),
    "compare, labels": ("compare", "t.parquet", *LABELS, "-m", "isoscore"),
    "advise": ("advise", *LABELS, "--corrections", "center"),
    "compress": ("compress", *LABELS, "--methods", "int8", "-k", "2", "--figure", "f\x1b[31;5m.png"),
    "report": ("report", *LABELS, "-o", "p\x1b[31;5m.html", "--title", EVIL),
    "report, figures": ("report", *LABELS, "-o", "p.html", "--figures", "f\x1b[31;5m"),
    "frontier": ("frontier", *LABELS, "-o", "f\x1b[31;5m.png"),
    "train": ("train", *LABELS, "--steps", "2", "-o", f"run{EVIL.replace('/', '')}"),
}
REFUSED = {
    "missing file": ("measure", f"{EVIL}.npy"),
    "unknown metric": ("measure", PLAIN, "-m", EVIL),
    "unknown option": ("measure", "plain.npy", f"--{EVIL}"),
    "unknown command": (EVIL,),
    "bad value": ("measure", "plain.npy", "--seed", EVIL),
    "extra argument": ("metrics", EVIL),
    "extra file": ("measure", PLAIN, PLAIN),
}


@pytest.mark.filterwarnings("default")  # matplotlib's, of letters that its font has not
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_from_outside_steers_the_terminal(folder: Path, command, name: str) -> None:
    done = command(*COMMANDS[name])
    assert done.code == 0, done.err
    check(done.out)
    check(done.err)


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_one_line(folder: Path, command, arguments: tuple[str, ...]) -> None:
    done = command(*arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err[:-1].isprintable()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_models_of_any_name(tiny_bert: Path, folder: Path, command) -> None:
    model = folder / f"model{EVIL.replace('/', '')}"
    shutil.copytree(tiny_bert, model)
    texts = folder / "texts.csv"
    texts.write_text("text,kind\n" + "\n".join(f"the cat sat,{'ab'[i % 2]}" for i in range(20)))
    own = ("--texts", texts, "--text-column", "text")
    for done in (
        command("layers", model, *own, "-o", f"{model}-layers", "--no-clusters"),
        command("finetune", model, *own, "--labels", "kind", "--epochs", 1, "-o", f"{model}-run"),
    ):
        assert done.code == 0, done.err
        assert SPELLED.replace("/", "") in done.out.replace("\n", "")
        check(done.out)
        check(done.err)


def test_names_are_shown_as_they_are_spelled(folder: Path, command) -> None:
    done = command("correct", "plain.npy", "--method", "center", "-o", f"out{PLAIN}")
    assert done.code == 0
    assert f"wrote out{SPELLED.replace('/', '')}.npy\n" in done.out


def test_own_styles_are_left(folder: Path, command) -> None:
    assert "\x1b[1m" in command("measure", "plain.npy", "-m", "isoscore").out
    assert "\x1b[" in command("measure", "--help").out
    assert "\x1b[1misotropy" in command("metrics").out


def test_json_is_json_whatever_is_in_it(folder: Path, command) -> None:
    done = command("correct", "plain.npy", "--method", "center", "-o", f"out{PLAIN}", "--json")
    assert json.loads(done.out)["output"] == f"out{PLAIN}"
    assert all(c.isprintable() or c == "\n" for c in done.out)


def test_warnings_and_logs_are_one_line_each(folder: Path, command, monkeypatch) -> None:
    logger = logging.Logger("another")

    def measure(*_: object, **__: object) -> None:
        warnings.warn(EVIL, stacklevel=1)
        logger.addHandler(logging.StreamHandler())
        logger.warning("%s", EVIL)
        print(EVIL.replace("\n", ""))
        raise iso.errors.InputError(EVIL)

    monkeypatch.setattr(importlib.import_module("isoscope.engine.measure"), "measure", measure)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = command("measure", "plain.npy")
    assert done.code == 2
    assert done.out == SPELLED.replace(r"\n", "") + "\n"
    lines = done.err.splitlines()
    spaced = SPELLED.replace(r"\r\n", " ")  # a message is a paragraph
    assert lines == [f"isoscope: warning: {spaced}", SPELLED, f"isoscope: error: {spaced}."]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "Out of memory"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
            "Out of memory",
        ),
        (RecursionError("maximum depth"), "nested too deeply"),
        (OverflowError("int too large"), "A number is too large (OverflowError: int too large)"),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"), "not valid Unicode"),
        (PermissionError(13, "Permission denied", "a\nb"), "a b cannot be used: Permission denied"),
    ],
)
def test_unusual_errors_are_one_line(folder: Path, fail, monkeypatch, error: Exception, words: str) -> None:
    def measure(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(importlib.import_module("isoscope.engine.measure"), "measure", measure)
    assert words in fail("measure", "plain.npy")


def test_a_fault_of_ours_is_a_traceback_that_steers_nothing(folder: Path, command, monkeypatch) -> None:
    def measure(*_: object, **__: object) -> None:
        raise TypeError(EVIL)

    monkeypatch.setattr(importlib.import_module("isoscope.engine.measure"), "measure", measure)
    done = command("measure", "plain.npy")
    assert done.code == 1
    assert "Traceback" in done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize(("stop", "line"), [("", "interrupted"), ("stopped at 5", "stopped at 5")])
def test_an_interrupt_anywhere_is_one_line(folder: Path, command, monkeypatch, stop: str, line: str) -> None:
    def open_input(*_: object, **__: object) -> None:
        raise KeyboardInterrupt(stop)

    monkeypatch.setattr(InputOptions, "open", open_input)
    assert command("measure", "plain.npy") == (130, "", f"isoscope: {line}\n")


def test_no_arguments_show_the_help(command) -> None:
    done = command()
    assert "measure" in done.out
    assert done.err == ""


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["measure", "--help"], ["metrics"], ["measure", "plain.npy"]])
def test_a_closed_pipe_is_no_error(folder: Path, words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "isoscope", *words], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
