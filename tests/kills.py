"""Commands that are killed at random moments and run again: the same files to the last bit, nothing left.

    python -m tests.kills --kills 200

Half of the kills hit an operation on a file (a file opened to be written, renamed, removed, a folder made),
half any moment. Python and torch are started once: every run is a fork of this process.

Each command is also run where no file may grow past some bytes, as on a full disk, and where nothing may be
written: one line, exit code 2, and what was there before is still there.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
INTERRUPTED, REFUSED = 130, 2
NOBODY = 65534
FULL_AT = (0, 200, 2_000, 8_000)  # bytes
OUTPUTS = {"correct": ("corrected.npy", "kept.safetensors"), "report": ("page.html",)}
EVENTS = {"open": 0, "os.rename": 1, "os.remove": 0, "os.mkdir": 0, "os.rmdir": 0}  # which argument is a path
WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")
COMMANDS = {
    "train": "train {files}/vectors.npy -l {files}/labels.txt -o {out} --steps 12 --seeds 2 --resume --json",
    "finetune": (
        "finetune {files}/model -t {files}/texts.csv -l label -o {out} --epochs 2 --batch-size 8 --seeds 1 "
        "--save-every 2 --resume --json --device cpu"
    ),
    "contrast": (
        "contrast {files}/model -p {files}/texts.csv --columns text,other --probe {files}/probe.txt "
        "--every 3 --epochs 2 --batch-size 8 -o {out} --save-every 2 --resume --json --device cpu"
    ),
    "measure": "measure {files}/shards --key vectors -l labels --checkpoint {out} --json",
    "correct": (
        "correct {files}/vectors.npy --method whiten -o {out}/corrected.npy --save {out}/kept.safetensors "
        "--json"
    ),
    "report": "report {files}/vectors.npy -l {files}/labels.txt -o {out}/page.html",
}


def make_files(folder: Path) -> None:
    """Write what the commands read: vectors, labels, shards, texts and a model of one layer."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    source, draw = np.random.default_rng(0), random.Random(0)
    labels = source.integers(0, 3, 240)
    X = (source.normal(size=(240, 8)) + 2 * source.normal(size=(3, 8))[labels]).astype(np.float32)
    np.save(folder / "vectors.npy", X)
    (folder / "labels.txt").write_text("\n".join(map(str, labels)) + "\n")
    (folder / "shards").mkdir()
    for part in range(6):
        rows = slice(40 * part, 40 * part + 40)
        save_file({"vectors": X[rows], "labels": labels[rows]}, folder / "shards" / f"{part}.safetensors")
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(3, 9))) for _ in range(48)]
    with (folder / "texts.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["text", "other", "label"])
        lines.writerows([one, texts[-1 - row], "c" if "cat" in one else "n"] for row, one in enumerate(texts))
    (folder / "probe.txt").write_text("\n".join(texts[:12]) + "\n")
    marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    words = {word: place for place, word in enumerate([*marks.values(), *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", words["[SEP]"]), ("[CLS]", words["[CLS]"]))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=24, **marks).save_pretrained(
        folder / "model"
    )
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=24, **sizes)
    BertModel(config).save_pretrained(folder / "model")


def forked(work: Callable[[], int]) -> int:
    """Run in a child; its process id."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = work()
        except KeyboardInterrupt:  # before or after the command's own part
            code = INTERRUPTED
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)  # a child must never return into the parent's code
    return child


def ended(child: int) -> int:
    """How a child ended: its exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_command(command: str, files: Path, work: Path, on_event: Callable[[], None]) -> int:
    """Run a command of isoscope in this process, its output in files of `work`; its exit code."""
    from isoscope.cli import main
    from isoscope.training import session

    os.chdir(work)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tempfile.tempdir = str(work / "tmp")
    session._PATIENCE_S = 0.0  # a checkpoint at every update
    sys.argv = ["isoscope", *COMMANDS[command].format(files=files, out=work / "out").split()]

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS and str(arguments[EVENTS[event]]).startswith(
            (str(work / "out"), str(work / "tmp"))
        ):
            on_event()

    sys.addaudithook(heard)
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return 0


def run_into_files(command: str, files: Path, work: Path, on_event: Callable[[], None]) -> int:
    """Run a command, what it prints in files."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(work / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    code = run_command(command, files, work, on_event)
    (work / "modules").write_text("\n".join(sys.modules))
    return code


@dataclass
class Trial:
    """One command in a folder of its own, killed some times and then run to its end."""

    command: str
    files: Path
    work: Path
    stamps: Counter[str] = field(default_factory=Counter)

    def prepare(self) -> None:
        """Make the folders."""
        for name in ("out", "tmp"):
            (self.work / name).mkdir(parents=True)
        (self.work / "stderr").touch()

    def kill(self, number: int, *, at_event: int | None = None, after_s: float = 0.0) -> None:
        """Run, and send a signal at the n-th operation on a file or after some seconds."""
        count = [0]

        def on_event() -> None:
            count[0] += 1
            if count[0] == at_event:
                os.kill(os.getpid(), number)

        child = forked(lambda: run_into_files(self.command, self.files, self.work, on_event))
        if at_event is None:
            time.sleep(after_s)
            os.kill(child, number)
        code = ended(child)
        allowed = {0, -number, INTERRUPTED if number == signal.SIGINT else -number}
        said = (self.work / "stderr").read_text()
        self.stamps["too late" if code == 0 else signal.Signals(number).name] += 1
        if code not in allowed or "Traceback" in said:
            raise AssertionError(f"{self.command} ended with {code} after signal {number}: {said[-2000:]}")

    def fail(self, hinder: Callable[[], None], wanted: dict[str, Any]) -> None:
        """Run where something hinders the command, and check how it ends and what it leaves."""
        before = self.content()
        reader, writer = os.pipe()

        def work() -> int:
            hinder()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(writer, 2)
            os.close(writer)
            return run_command(self.command, self.files, self.work, lambda: None)

        child = forked(work)
        os.close(writer)
        with open(reader, encoding="utf-8") as pipe:
            said = pipe.read()
        code = ended(child)
        self.stamps["refused" if code == REFUSED else "no matter"] += 1
        after = self.content()
        places = [f"out/{name}" for name in OUTPUTS.get(self.command, ())]
        lost = [place for place in places if after[place] not in (before[place], wanted[place])]
        left = [name for name in after.keys() - before.keys() if name.endswith(".tmp")]
        is_told = said.startswith("isoscope: error: ") and said.count("\n") == 1
        if code not in (0, REFUSED) or is_told != (code == REFUSED) or lost or left:
            raise AssertionError(
                f"{self.command} ended with {code}, lost {lost}, left {left}: {said[-2000:]}"
            )

    def content(self) -> dict[str, Any]:
        """Every file below the output and the temporary folder with its hash, and every folder."""
        return {
            path.relative_to(self.work).as_posix(): path.is_file()
            and hashlib.sha256(path.read_bytes()).hexdigest()
            for folder in ("out", "tmp")
            for path in sorted((self.work / folder).rglob("*"))
        }

    def finish(self) -> dict[str, Any]:
        """Run to the end; all that is there then: each file's hash, and what was printed."""
        code = ended(forked(lambda: run_into_files(self.command, self.files, self.work, lambda: None)))
        said = (self.work / "stderr").read_text()
        if code != 0 or "Traceback" in said:
            raise AssertionError(f"{self.command} ended with {code}: {said[-2000:]}")
        tree = self.content()
        printed = (self.work / "stdout").read_text()
        if self.command == "measure":  # what was taken from the checkpoint is noted
            tree["printed"] = {k: v for k, v in json.loads(printed).items() if k not in ("notes", "seconds")}
        elif self.command in ("train", "finetune", "contrast"):
            tree["printed"] = json.loads(printed)
        return tree

    def count_events(self) -> int:
        """Run to the end; the number of operations on files."""
        counted = self.work / "events"

        def on_event() -> None:
            with counted.open("a") as file:
                file.write(".")

        if ended(forked(lambda: run_into_files(self.command, self.files, self.work, on_event))) != 0:
            raise AssertionError(f"{self.command} fails: {(self.work / 'stderr').read_text()[-2000:]}")
        return len(counted.read_text()) if counted.exists() else 0


def import_all(names: list[str]) -> None:
    """Import what a command imports, so that its forks need not."""
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # some modules are no files
            continue


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What differs between two trees, in words."""
    left = [f"left behind: {name}" for name in sorted(found.keys() - wanted.keys())]
    gone = sorted(name for name in wanted.keys() - found.keys() if not name.startswith("tmp/"))
    both = sorted(found.keys() & wanted.keys())
    missing = [f"missing: {name}" for name in gone]
    return left + missing + [f"other content: {name}" for name in both if found[name] != wanted[name]]


def try_command(command: str, n_kills: int, files: Path, scratch: Path, seed: int) -> dict[str, Any]:
    """Kill one command so many times, over several trials; a row of the table."""
    draw = random.Random(f"{seed} {command}")
    whole = Trial(command, files, scratch / "whole")
    whole.prepare()
    wanted = whole.finish()
    import_all((whole.work / "modules").read_text().split("\n"))
    counted = Trial(command, files, scratch / "counted")
    counted.prepare()
    began = time.perf_counter()
    n_events = counted.count_events()
    whole_s = time.perf_counter() - began
    stamps: Counter[str] = Counter()
    wrong: list[str] = []
    n_trials, left = 0, n_kills
    while left > 0:
        trial = Trial(command, files, scratch / str(n_trials), stamps)
        trial.prepare()
        for _ in range(min(left, draw.randint(1, 3))):
            left -= 1
            number = draw.choice(SIGNALS)
            if draw.random() < 0.5:
                trial.kill(number, at_event=draw.randint(1, max(1, n_events)))
            else:
                trial.kill(number, after_s=draw.uniform(0, whole_s))
        wrong += differences(trial.finish(), wanted)
        shutil.rmtree(trial.work)
        n_trials += 1
    return {"command": command, "kills": n_kills, "runs": n_trials, **stamps, "wrong": wrong}


def full_disk(limit: int) -> None:
    """Let no file of this process grow past so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def without_rights() -> None:
    """Be a user who may write nowhere, where this is the one who may write everywhere."""
    if os.geteuid() == 0:
        os.setegid(NOBODY)
        os.seteuid(NOBODY)


def hinder_command(command: str, files: Path, scratch: Path) -> dict[str, Any]:
    """Run a command on full disks and in closed folders; a row of the table."""
    whole = Trial(command, files, scratch / "whole")
    whole.prepare()
    wanted = whole.finish()
    import_all((whole.work / "modules").read_text().split("\n"))
    stamps: Counter[str] = Counter()
    wrong: list[str] = []
    for limit in (*FULL_AT, None):
        trial = Trial(command, files, scratch / str(limit), stamps)
        trial.prepare()
        for name in OUTPUTS.get(command, ()):
            (trial.work / "out" / name).write_text("before")
        if command not in OUTPUTS:
            trial.kill(signal.SIGKILL, at_event=12)
        if limit is None:
            (trial.work / "out").chmod(0o555)
            trial.fail(without_rights, wanted)
            (trial.work / "out").chmod(0o755)
        else:
            trial.fail(lambda limit=limit: full_disk(limit), wanted)  # type: ignore[misc]
        wrong += differences(trial.finish(), wanted)
        shutil.rmtree(trial.work)
    return {
        "command": command,
        "refused": stamps["refused"],
        "no matter": stamps["no matter"],
        "wrong": wrong,
    }


def main(arguments: list[str] | None = None) -> int:
    """Kill every command, print a table; 1 where a run came back to anything else."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of all commands together")
    parser.add_argument("--only", default=",".join(COMMANDS), help="commands, comma-separated")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    names = asked.only.split(",")
    torch.set_num_threads(1)
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="isoscope-kills-") as folder:
        Path(folder).chmod(0o755)  # for one without rights to read
        files = Path(folder) / "files"
        files.mkdir()
        assert ended(forked(lambda: make_files(files) or 0)) == 0
        columns = ("command", "kills", "runs", "SIGKILL", "SIGINT", "SIGTERM", "too late", "wrong")
        shown(columns)
        for place, name in enumerate(names):
            n_kills = asked.kills // len(names) + (place < asked.kills % len(names))
            row = try_command(name, n_kills, files, Path(folder) / name, asked.seed)
            problems += told(row, columns)
        columns = ("command", "refused", "no matter", "wrong")
        print("\nOn full disks and in a closed folder:\n")
        shown(columns)
        for name in names:
            problems += told(hinder_command(name, files, Path(folder) / f"{name}-hindered"), columns)
    print("\n".join(problems))
    return int(bool(problems))


def shown(columns: Sequence[str]) -> None:
    """Print the head of a table."""
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)


def told(row: dict[str, Any], columns: Sequence[str]) -> list[str]:
    """Print a row of a table; what is wrong in it."""
    wrong = [f"{row['command']}: {one}" for one in row["wrong"]]
    cells = (row | {"wrong": len(wrong)}).get
    print("| " + " | ".join(str(cells(column, 0)) for column in columns) + " |", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
