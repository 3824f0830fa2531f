"""Every option of every command with values that no one means: one line, exit code 2, and no traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import isoscope as iso
from isoscope.cli import app

VALUES = ("9" * 30, "1e400", "nan", "-1", "")
OWN = ("t.parquet", "--labels", "label")
BASE: dict[str, tuple[str, ...]] = {
    "look": ("v.npy",),
    "audit": ("v.npy",),
    "measure": ("v.npy", "-m", "isoscore"),
    "metrics": (),
    "cite": (),
    "export": ("v.npy", "--atlas", "o.parquet"),
    "mcp": (),
    "correct": ("v.npy", "--method", "center", "-o", "o.npy"),
    "compress": ("v.npy", "--methods", "int8"),
    "threshold": OWN,
    "compare": ("v.npy", "v.npy", "-m", "isoscore", "--no-errors"),
    "migrate": ("v.npy", "v.npy"),
    "sides": ("v.npy", "v.npy"),
    "drift": ("v.npy", "v.npy", "--permutations", "0"),
    "advise": (*OWN, "--corrections", "center"),
    "report": OWN,
    "frontier": OWN,
    "layers": ("model", "--texts", "x.txt"),
    "encode": ("x.txt", "-o", "o.npy", "--model", "model"),
    "train": (*OWN, "--steps", "1"),
    "finetune": ("model", "--texts", "x.csv", "--labels", "kind"),
    "contrast": ("model", "--pairs", "p.tsv"),
}
# options that a method has to be named for
METHODS = {
    "--components": "whiten",
    "--strength": "whiten",
    "--clusters": "cluster-center",
    "--seed": "cluster-center",
    "--labels": "cluster-center",
    "--dimensions": "remove-dimensions",
}
# long runs, whose options are held to the empty value alone here
RUNS = {"reproduce", "train", "finetune", "contrast"}
# what any text is right for: names of files to write, titles
NAMES = {"--checkpoint", "--figure", "--figures", "--keep", "--output", "--save", "--title"}


def options(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each option that takes a value, with the words of its command."""
    if hasattr(command, "commands"):
        for name in command.list_commands(None):
            inner = command.get_command(None, name)
            yield from options(inner, (*path, name))
        return
    for param in command.params:
        if param.param_type_name == "option" and not getattr(param, "is_flag", False):
            yield path, max(param.opts, key=len)


ALL = list(options(typer.main.get_command(app)))


@pytest.fixture
def folder(tmp_path: Path, rng, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(60, 4)) + np.repeat(np.eye(4)[:3] * 4, 20, axis=0)
    np.save("v.npy", X)
    iso.save(iso.Space(X, labels=[f"l{i // 20}" for i in range(60)]), "t.parquet")
    Path("x.txt").write_text("a cat\n" * 20)
    Path("x.csv").write_text("text,kind\n" + "a cat,a\na dog,b\n" * 10)
    Path("p.tsv").write_text("left\tright\n" + "a cat\ta dog\n" * 20)
    Path("model").mkdir()  # of no model: numbers are looked at first, or the model is refused
    Path("model/config.json").write_text(json.dumps({"model_type": "bert"}))
    return tmp_path


def test_every_command_is_walked() -> None:
    assert {path[0] for path, _ in ALL} == {*BASE, "reproduce"}
    assert len(ALL) > 150


@pytest.mark.parametrize(("path", "option"), ALL, ids=str)
def test_values_that_no_one_means(folder: Path, fail, path: tuple[str, ...], option: str) -> None:
    base = BASE.get(path[0], ())
    if path[0] == "correct" and option in METHODS:
        base = (*base, "--method", METHODS[option])
    for value in VALUES:
        if value and (option in NAMES or path[0] in RUNS):
            continue
        fail(*path, *base, option, value)  # one line, exit code 2
