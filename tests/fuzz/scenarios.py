"""Folders as a command left them: checkpoints, runs cut short and finished, corrections, caches.

A scenario is a current folder, the arguments to call there, and the numbers that an undisturbed call prints.
What is damaged in it may be refused or made again, but must never change those numbers.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.containers import copy
from tests.fuzz.processes import forked


@dataclass(frozen=True)
class Scenario:
    """How a scenario is made.

    inputs: what is copied from the seeds into its folder.
    make: the commands that leave the folder behind; the last is cut short at its `cut_at`-th move of a file.
    ask: the command that is called on the damaged folder.
    target: what is damaged.
    needs: the models it cannot do without.
    """

    inputs: tuple[str, ...]
    make: tuple[str, ...]
    ask: str
    target: str
    cut_at: int | None = None
    needs: tuple[str, ...] = ()


_MEASURE = "--json --no-errors -m isoscore,mean_cosine,mean_norm"
_TRAIN = "train a.npy -l labels.txt --steps 6 --every 2 --seeds 2 -o run --json"
_FINETUNE = "finetune bert -t texts.csv -l label --epochs 2 --batch-size 8 --save-every 1 -o run --json"
_CONTRAST = "contrast bert -p text-pairs.tsv --steps 4 --batch-size 8 --save-every 1 --every 2 --probe texts.txt -o run --json"
_VECTORS = ("vectors/a.npy", "rows/labels.txt")
_TEXTS = ("texts/texts.txt", "texts/texts.csv", "texts/text-pairs.tsv")
SCENARIOS: dict[str, Scenario] = {
    "checkpoint": Scenario(
        ("shards/npy", "rows/labels.txt"),
        (f"measure npy --checkpoint kept {_MEASURE}",),
        f"measure npy --checkpoint kept {_MEASURE}",
        "kept",
    ),
    "checkpoint-labels": Scenario(
        ("shards/parquet", "rows/labels.txt"),
        (f"measure parquet -l labels.txt --memory 1500MB --checkpoint kept {_MEASURE},silhouette,between_share --errors",),
        f"measure parquet -l labels.txt --memory 1500MB --checkpoint kept {_MEASURE},silhouette,between_share --errors",
        "kept",
    ),
    "train-cut": Scenario(_VECTORS, (_TRAIN,), f"{_TRAIN} --resume", "run", cut_at=3),
    "train-done": Scenario(_VECTORS, (_TRAIN,), f"{_TRAIN} --resume", "run"),
    "frontier-run": Scenario(
        _VECTORS,
        ("train a.npy -l labels.txt --steps 4 --seeds 1 -m isoscore,between_share -o run",),
        "frontier a.npy -l labels.txt --run run --json",
        "run",
    ),
    "report-run": Scenario(_VECTORS, (_TRAIN,), "report a.npy --run run -o page.html --json", "run"),
    "correction": Scenario(
        _VECTORS,
        ("correct a.npy --method center,whiten -o first.npy --save kept.safetensors",),
        "correct a.npy --load kept.safetensors -o out.npy --json",
        "kept.safetensors",
    ),
    "correction-clusters": Scenario(
        _VECTORS,
        ("correct a.npy --method clusterwise --clusters 2 --components 1 -o first.npy --save kept.safetensors",),
        "correct a.npy --load kept.safetensors -o out.npy --json",
        "kept.safetensors",
    ),
    "cache": Scenario(
        (*_TEXTS, "models/sentences"),
        (f"measure texts.txt --model sentences {_MEASURE}",),
        f"measure texts.txt --model sentences {_MEASURE}",
        "cache",
        needs=("sentences",),
    ),
    "finetune-cut": Scenario((*_TEXTS, "models/bert"), (_FINETUNE,), f"{_FINETUNE} --resume", "run", 4, ("bert",)),
    "finetune-done": Scenario((*_TEXTS, "models/bert"), (_FINETUNE,), f"{_FINETUNE} --resume", "run", None, ("bert",)),
    "contrast-cut": Scenario((*_TEXTS, "models/bert"), (_CONTRAST,), f"{_CONTRAST} --resume", "run", 3, ("bert",)),
    "contrast-done": Scenario((*_TEXTS, "models/bert"), (_CONTRAST,), f"{_CONTRAST} --resume", "run", None, ("bert",)),
}  # fmt: skip

QUICK = ("checkpoint", "checkpoint-labels", "correction", "correction-clusters")  # made in a moment


def command(argv: list[str]) -> Callable[[], None]:
    """The command line as a piece of work."""

    def work() -> None:
        from isoscope.cli import main

        sys.argv = ["isoscope", *argv]
        main()

    return work


def _listing_modules(work: Callable[[], None], file: Path) -> Callable[[], None]:
    """The work, then the names of all modules that it has imported."""

    def listing() -> None:
        try:
            work()
        finally:
            file.write_text("\n".join(sys.modules))

    return listing


def import_listed(file: Path) -> None:
    """Import what a child has imported, so that later children need not; without its threads."""
    for name in file.read_text().split("\n") if file.exists() else ():
        if name not in sys.modules and not name.startswith("_"):
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(name)


def environment(folder: Path) -> dict[str, str]:
    """Variables that keep caches and temporary files of a command within reach."""
    (folder.parent / "tmp").mkdir(exist_ok=True)
    return {"ISOSCOPE_CACHE": str(folder / "cache"), "TMPDIR": str(folder.parent / "tmp"), "COLUMNS": "100"}


def _cut(work: Callable[[], None], n: int) -> Callable[[], None]:
    """The work, ended without a word at its n-th move of a file."""

    def cut() -> None:
        real, calls = os.replace, 0

        def replace(*args: object, **options: object) -> None:
            nonlocal calls
            calls += 1
            if calls == n:
                os._exit(9)
            real(*args, **options)  # type: ignore[arg-type]

        os.replace = replace  # type: ignore[assignment]
        work()

    return cut


def write_scenario(name: str, seeds: Path) -> None:
    """Make one scenario below `seeds`, unless a library that it takes is not installed."""
    scenario = SCENARIOS[name]
    if any(not (seeds / "models" / model).exists() for model in scenario.needs):
        return
    try:
        _write_scenario(name, scenario, seeds)
    except RuntimeError as error:
        shutil.rmtree(seeds / "scenarios" / name)
        if "pip install" not in str(error):
            raise


def _write_scenario(name: str, scenario: Scenario, seeds: Path) -> None:
    """Make it, with the undisturbed answer in `answer.json` and `out.npy`."""
    home = seeds / "scenarios" / name
    folder, clean = home / "folder", home / "clean"
    folder.mkdir(parents=True)
    for given in scenario.inputs:
        copy(seeds / given, folder / Path(given).name)
    shutil.copytree(folder, clean)
    for make in scenario.make:
        argv = make.split()
        last = make == scenario.make[-1]
        work = _cut(command(argv), scenario.cut_at) if last and scenario.cut_at else command(argv)
        ended = forked(work, folder, environment(folder))
        if ended.code != (9 if last and scenario.cut_at else 0):
            raise RuntimeError(f"{name}: {make}: {ended.code}\n{ended.err.decode()[-3000:]}")
    # the answer is that of a run that was never cut short, where the command makes the run by itself
    resumes = scenario.ask.endswith("--resume")
    where = clean if resumes else folder
    argv = (scenario.make[-1] if resumes else scenario.ask).split()
    if not resumes:
        where = home / "asked"
        shutil.copytree(folder, where)
    modules = seeds / "modules.txt"
    ended = forked(_listing_modules(command(argv), modules), where, environment(where))
    import_listed(modules)
    if ended.code != 0:
        raise RuntimeError(f"{name}: {argv}: {ended.code}\n{ended.err.decode()[-3000:]}")
    (home / "answer.json").write_bytes(ended.out)
    if (where / "out.npy").exists():
        shutil.copyfile(where / "out.npy", home / "out.npy")
    shutil.rmtree(clean), shutil.rmtree(home / "asked", ignore_errors=True)
    json.loads(ended.out)  # fails where it is none
