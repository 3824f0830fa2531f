"""A run that is cut short continues to the same numbers; a folder that cannot be used says why."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import isoscope as iso
from isoscope.io import atomic
from isoscope.io.sealed import write_tensors
from isoscope.training import train_embeddings
from isoscope.training.checkpoint import SeedFolder
from isoscope.training.interrupts import deferred_interrupt

X = (np.random.default_rng(0).normal(size=(80, 6)) + 0.3).astype(np.float32)
Y = np.arange(80) % 3
PAIRS = np.random.default_rng(1).integers(0, 80, size=(80, 2))


class KilledError(Exception):
    """Stands in for a machine that goes away."""


def killed_at(seed: int, step: int):
    def callback(row: dict) -> None:
        if row["seed"] == seed and row["step"] == step:
            raise KilledError

    return callback


def same(a: iso.Trajectory, b: iso.Trajectory) -> None:
    assert list(a.columns) == list(b.columns)
    for name in a.columns:
        np.testing.assert_array_equal(a[name], b[name])
    assert torch.equal(a.tables, b.tables)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pairs": PAIRS},
        {"hidden": [5]},
        {"optimizer": "sgd", "learning_rate": 0.1},
        {"optimizer": "rmsprop"},
        {"optimizer": "nadam"},
        {"optimizer": "adagrad"},
        {"objective": "triplet", "n_triplets": 200},
        {"sample_above": 40, "every": 1},
        {"patience": 16, "min_improvement": 1.0},
    ],
    ids=str,
)
@pytest.mark.parametrize(("seed", "step"), [(0, 3), (1, 9), (1, 16)])
def test_a_killed_run_continues_bit_for_bit(tmp_path: Path, options: dict, seed: int, step: int) -> None:
    settings = {"steps": 20, "seeds": 2, **options}
    whole = iso.train_embeddings(X, Y, **settings)
    with pytest.raises(KilledError):
        iso.train_embeddings(
            X, Y, **settings, run=tmp_path / "run", resume=True, save_every=7, callback=killed_at(seed, step)
        )
    seen = []
    resumed = iso.train_embeddings(
        X, Y, **settings, run=tmp_path / "run", resume=True, save_every=7, log=lambda row: seen.append(row)
    )
    same(resumed, whole)
    assert seen, "something was left to do"
    assert len(seen) < len(whole) or step < 7, "what was done is not done again"
    same_rows = iso.Trajectory.load(tmp_path / "run" / "trajectory.parquet")
    np.testing.assert_array_equal(same_rows["loss"], whole["loss"])


@pytest.mark.slow
def test_a_run_killed_by_the_system(tmp_path: Path) -> None:
    """The process ends without a chance to say goodbye."""
    code = (
        "import os, numpy as np, isoscope as iso\n"
        "X = (np.random.default_rng(0).normal(size=(80, 6)) + 0.3).astype(np.float32)\n"
        "stop = lambda row: os._exit(9) if (row['seed'], row['step']) == (1, 12) else None\n"
        f"iso.train_embeddings(X, np.arange(80) % 3, steps=20, seeds=2, run={str(tmp_path / 'run')!r},"
        " resume=True, save_every=5, callback=stop)\n"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 9
    partial = iso.Trajectory.load(tmp_path / "run" / "trajectory.parquet")
    assert partial["step"][partial["seed"] == 1].max() == 9
    resumed = iso.train_embeddings(X, Y, steps=20, seeds=2, run=tmp_path / "run", resume=True)
    same(resumed, iso.train_embeddings(X, Y, steps=20, seeds=2))


def test_seeds_of_a_batch_resume_together_or_apart(tmp_path: Path, monkeypatch) -> None:
    whole = iso.train_embeddings(X, Y, steps=12, seeds=3)
    monkeypatch.setattr("isoscope.training.session._batch_size", lambda problem: 3)
    with pytest.raises(KilledError):
        iso.train_embeddings(
            X, Y, steps=12, seeds=3, run=tmp_path, resume=True, save_every=5, callback=killed_at(1, 8)
        )
    (tmp_path / "seed-2.safetensors").unlink()  # its file was never written
    resumed = iso.train_embeddings(X, Y, steps=12, seeds=3, run=tmp_path, resume=True)
    for name in whole.columns:
        np.testing.assert_allclose(resumed[name], whole[name], rtol=1e-5, atol=1e-6)


def test_seeds_of_a_batch_that_end_apart(tmp_path: Path, monkeypatch) -> None:
    """A seed that ends early keeps the vectors it ended with, and is not trained again."""

    def stop(row: dict) -> bool:
        return row["step"] == 4 + 3 * row["seed"]

    alone = iso.train_embeddings(X, Y, steps=12, seeds=3, callback=stop)
    monkeypatch.setattr("isoscope.training.session._batch_size", lambda problem: 3)
    together = iso.train_embeddings(X, Y, steps=12, seeds=3, callback=stop, run=tmp_path / "a", resume=True)
    assert together["step"][together["seed"] == 1].max() == 7
    for name in alone.columns:
        np.testing.assert_allclose(together[name], alone[name], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(together.tables, alone.tables, rtol=1e-5, atol=1e-6)
    assert [step_of(tmp_path / "a" / f"seed-{seed}.safetensors") for seed in range(3)] == [4, 7, 10]

    def stop_or_die(row: dict) -> bool:
        if row["step"] == 9:
            raise KilledError
        return stop(row)

    settings = {"steps": 12, "seeds": 3, "run": tmp_path / "b", "resume": True, "save_every": 6}
    with pytest.raises(KilledError):
        iso.train_embeddings(X, Y, **settings, callback=stop_or_die)
    resumed = iso.train_embeddings(X, Y, **settings, callback=stop)
    np.testing.assert_array_equal(resumed["step"], alone["step"])
    torch.testing.assert_close(resumed.tables, alone.tables, rtol=1e-5, atol=1e-6)


def test_a_finished_run_is_read_not_run(tmp_path: Path) -> None:
    first = iso.train_embeddings(X, Y, steps=5, seeds=2, run=tmp_path, resume=True)
    heard = []
    again = iso.train_embeddings(X, Y, steps=5, seeds=2, run=tmp_path, resume=True, log=heard.append)
    same(again, first)
    assert not heard
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json",
        "seed-0.safetensors",
        "seed-1.safetensors",
        "trajectory.parquet",
    ]
    trained = iso.read(tmp_path / "seed-1.safetensors", key="table")
    assert torch.equal(trained.vectors, first.tables[1])


def test_resume_must_be_allowed(tmp_path: Path) -> None:
    iso.train_embeddings(X, Y, steps=3, seeds=1, run=tmp_path, resume=True)
    with pytest.raises(iso.InputError, match=r"holds a run already.*resume=True"):
        iso.train_embeddings(X, Y, steps=3, seeds=1, run=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 4}, "steps was 3, now 4"),
        ({"learning_rate": 0.1}, "learning_rate was 0.001, now 0.1"),
        ({"seeds": 2}, r"seeds was \[0\], now \[0, 1\]"),
        ({"X": X + 1}, "data differ"),
        ({"y": Y[::-1].copy()}, "data differ"),
    ],
    ids=["steps", "learning_rate", "seeds", "X", "y"],
)
def test_a_folder_of_another_configuration(tmp_path: Path, change: dict, message: str) -> None:
    iso.train_embeddings(X, Y, steps=3, seeds=1, run=tmp_path, resume=True)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    settings = {"X": X, "y": Y, "steps": 3, "seeds": 1} | change
    with pytest.raises(iso.InputError, match=f"another configuration .*{message}.*another folder"):
        iso.train_embeddings(settings.pop("X"), settings.pop("y"), **settings, run=tmp_path, resume=True)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(iso.InputError, match=r"other files \(thesis.tex\)"):
        iso.train_embeddings(X, Y, steps=3, seeds=1, run=tmp_path, resume=True)


@pytest.mark.parametrize("content", ["{", "[]", '"x"'])
def test_a_broken_configuration(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(iso.InputError, match=r"config.json"):
        iso.train_embeddings(X, Y, steps=3, seeds=1, run=tmp_path, resume=True)


def cut_short(folder: Path) -> dict:
    """Begin a run of 8 updates that ends after 6, with a checkpoint after 4; its settings."""
    settings = {"steps": 8, "seeds": 1, "run": folder, "resume": True, "save_every": 4}
    with pytest.raises(KilledError):
        iso.train_embeddings(X, Y, **settings, callback=killed_at(0, 6))
    return settings


def seal_of(path: Path) -> dict:
    """What a sealed file says of itself."""
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["isoscope"])


def step_of(path: Path) -> int:
    return int(seal_of(path)["step"])


def changed(path: Path, change, **about: str) -> None:
    """Write a seed's file again, its tensors changed, and seal it."""
    kept = seal_of(path)
    tensors = load_file(path)
    change(tensors)
    kept = {name: value for name, value in kept.items() if name not in ("of", "checksum")} | about
    write_tensors(path, tensors, kept, of=seal_of(path)["of"])


@pytest.mark.parametrize(
    ("change", "about", "fault"),
    [
        (lambda t: t.pop("table"), {}, "it has no table"),
        (lambda t: t.pop("bias0"), {}, "it has no bias0"),
        (lambda t: t.pop("optimizer.table.exp_avg"), {}, "it has no optimizer.table.exp_avg"),
        (lambda t: t.update(table=torch.zeros(79, 6)), {}, r"table has shape \(79, 6\), not \(80, 6\)"),
        (lambda t: t.update(weight0=torch.zeros(6)), {}, r"weight0 has shape \(6,\), not \(3, 6\)"),
        (
            lambda t: t.update({"optimizer.bias0.exp_avg": torch.zeros(4)}),
            {},
            r"optimizer.bias0.exp_avg has shape \(4,\)",
        ),
        (lambda t: t.update(other=torch.zeros(4)), {}, "it has other, which is not trained here"),
        (lambda t: None, {"step": "9"}, "its step is 9, not from 1 to 8"),
        (lambda t: None, {"step": "0"}, "its step is 0, not from 1 to 8"),
        (lambda t: None, {"done": "yes"}, "it has optimizer.bias0.exp_avg, .*, which is not trained here"),
    ],
)
def test_a_checkpoint_of_something_else(tmp_path: Path, change, about: dict, fault: str) -> None:
    settings = cut_short(tmp_path)
    changed(tmp_path / "seed-0.safetensors", change, **about)
    message = f"seed-0.safetensors is no checkpoint of this run: {fault}.*; the seed starts again"
    with pytest.warns(RuntimeWarning, match=message):
        again = iso.train_embeddings(X, Y, **settings)
    same(again, iso.train_embeddings(X, Y, steps=8, seeds=1))


DAMAGES = {
    "scribble": lambda content: (
        content[:300] + bytes(byte ^ 255 for byte in content[300:400]) + content[400:]
    ),
    "cut": lambda content: content[:50],
    "empty": lambda content: b"",
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["seed-0.safetensors", "trajectory.parquet"])
def test_a_damaged_file_is_made_again(tmp_path: Path, name: str, damage: str) -> None:
    settings = cut_short(tmp_path)
    path = tmp_path / name
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.warns(RuntimeWarning, match=rf"{name} .*; (the seed starts|all seeds start) again") as told:
        again = iso.train_embeddings(X, Y, **settings)
    assert all("\n" not in str(one.message) for one in told)
    same(again, iso.train_embeddings(X, Y, steps=8, seeds=1))
    same(iso.train_embeddings(X, Y, **settings), again)  # whole again, without a word


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_of_a_finished_seed(tmp_path: Path, damage: str) -> None:
    first = iso.train_embeddings(X, Y, steps=3, seeds=2, run=tmp_path, resume=True)
    path = tmp_path / "seed-1.safetensors"
    content = path.read_bytes()
    path.write_bytes(DAMAGES[damage](content))
    heard = []
    with pytest.warns(RuntimeWarning, match=r"seed-1.safetensors .*; the seed starts again"):
        again = iso.train_embeddings(X, Y, steps=3, seeds=2, run=tmp_path, resume=True, log=heard.append)
    assert {row["seed"] for row in heard} == {1}
    same(again, first)
    assert path.read_bytes() == content


def test_files_that_changed_places(tmp_path: Path) -> None:
    first = iso.train_embeddings(X, Y, steps=3, seeds=2, run=tmp_path / "a", resume=True)
    iso.train_embeddings(X, Y, steps=3, seeds=2, run=tmp_path / "b", resume=True, learning_rate=0.5)
    names = ["seed-0.safetensors", "seed-1.safetensors"]
    one, other = ((tmp_path / "a" / name).read_bytes() for name in names)
    for name, content in zip(names, (other, one), strict=True):
        (tmp_path / "a" / name).write_bytes(content)
    with pytest.warns(RuntimeWarning, match="belongs to another run, or to another place") as told:
        same(iso.train_embeddings(X, Y, steps=3, seeds=2, run=tmp_path / "a", resume=True), first)
    assert len(told) == 2
    for name in ("seed-1.safetensors", "trajectory.parquet"):
        (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
        with pytest.warns(RuntimeWarning, match=f"{name} belongs to another run"):
            same(iso.train_embeddings(X, Y, steps=3, seeds=2, run=tmp_path / "a", resume=True), first)
    (tmp_path / "a" / "config.json").write_bytes((tmp_path / "b" / "config.json").read_bytes())
    with pytest.raises(iso.InputError, match=r"another configuration \(learning_rate"):
        iso.train_embeddings(X, Y, steps=3, seeds=2, run=tmp_path / "a", resume=True)


def test_rows_that_are_missing_are_measured_again(tmp_path: Path) -> None:
    settings = cut_short(tmp_path)
    whole = iso.train_embeddings(X, Y, steps=8, seeds=1)
    (tmp_path / "trajectory.parquet").unlink()
    with pytest.warns(RuntimeWarning, match=r"trajectory.parquet does not exist.*; all seeds start again"):
        same(iso.train_embeddings(X, Y, **settings), whole)
    seed = (tmp_path / "seed-0.safetensors").read_bytes()
    for path in tmp_path.iterdir():
        path.unlink()
    cut_short(tmp_path)
    (tmp_path / "seed-0.safetensors").write_bytes(seed)
    with pytest.warns(RuntimeWarning, match="seed 0 is at step 8, but its rows have no step 4; the seed"):
        same(iso.train_embeddings(X, Y, **settings), whole)
    (tmp_path / "config.json").unlink()
    with pytest.raises(iso.InputError, match="holds other files"):
        iso.train_embeddings(X, Y, **settings)


def test_no_flipped_bit_changes_a_number(tmp_path: Path) -> None:
    settings = {"steps": 3, "seeds": 1, "run": tmp_path, "resume": True}
    whole = iso.train_embeddings(X, Y, **settings)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    rng = np.random.default_rng(0)
    for path in sorted(files) * 12:
        content = bytearray(files[path])
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                same(iso.train_embeddings(X, Y, **settings), whole)
            except iso.InputError:
                assert path.name == "config.json"
        path.write_bytes(files[path])


def test_one_process_at_a_time(tmp_path: Path) -> None:
    code = (
        "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"ready\n"
        with pytest.raises(iso.FileError, match=r"run folder .* is in use by another process"):
            iso.train_embeddings(X, Y, steps=3, seeds=1, run=tmp_path, resume=True)
        other.kill()
    same(
        iso.train_embeddings(X, Y, steps=3, seeds=1, run=tmp_path, resume=True),
        iso.train_embeddings(X, Y, steps=3, seeds=1),
    )


def test_rows_suffice_for_a_finished_run(tmp_path: Path) -> None:
    """Whoever deletes the large files of a finished run still has its trajectory."""
    first = iso.train_embeddings(X, Y, steps=3, seeds=2, run=tmp_path, resume=True)
    for path in tmp_path.glob("*.safetensors"):
        path.unlink()
    heard = []
    again = iso.train_embeddings(X, Y, steps=3, seeds=2, run=tmp_path, resume=True, log=heard.append)
    assert not heard
    assert again.tables is None
    for name in first.columns:
        np.testing.assert_array_equal(again[name], first[name])


@pytest.mark.parametrize("failing", ["trajectory.parquet", "seed-0.safetensors"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_full_or_closed_disk_keeps_what_is_done(
    tmp_path: Path, monkeypatch, failing: str, code: int
) -> None:
    """The second time a file is to be put in its place, the system refuses."""
    real, count = os.replace, {}

    def replace(source: Path, target: Path) -> None:
        count[target.name] = count.get(target.name, 0) + 1
        if target.name == failing and count[target.name] == 2:
            raise OSError(code, os.strerror(code))
        real(source, target)

    monkeypatch.setattr(atomic.os, "replace", replace)
    with pytest.raises(
        iso.FileError, match=f"{failing} cannot be written: {os.strerror(code)}.*Resume the run from"
    ):
        iso.train_embeddings(X, Y, steps=20, seeds=1, run=tmp_path, resume=True, save_every=5)
    assert not list(tmp_path.glob(".*"))
    monkeypatch.undo()
    assert step_of(tmp_path / "seed-0.safetensors") == 5
    heard = []
    resumed = iso.train_embeddings(X, Y, steps=20, seeds=1, run=tmp_path, resume=True, log=heard.append)
    same(resumed, iso.train_embeddings(X, Y, steps=20, seeds=1))
    assert heard[0]["step"] == 5


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(iso.FileError, match="cannot be made: "):
        iso.train_embeddings(X, Y, steps=3, seeds=1, run=tmp_path / "file" / "run", resume=True)


def test_the_configuration_is_readable(tmp_path: Path) -> None:
    iso.train_embeddings(X, Y, steps=3, seeds=2, run=tmp_path, resume=True, bias=False)
    found = json.loads((tmp_path / "config.json").read_text())
    assert found["steps"] == 3
    assert found["bias"] is False
    assert (found["n"], found["d"], found["n_labels"]) == (80, 6, 3)
    assert found["isoscope"] == iso.__version__


def test_without_a_number_checkpoints_go_by_the_clock(tmp_path: Path, monkeypatch) -> None:
    saved = []
    real = SeedFolder.save
    monkeypatch.setattr(SeedFolder, "save", lambda self, *rest: (saved.append(1), real(self, *rest))[1])
    iso.train_embeddings(X, Y, steps=4, seeds=1, run=tmp_path / "a", resume=True)
    assert len(saved) == 1  # the end
    monkeypatch.setattr("isoscope.training.session._CHECKPOINT_S", -1.0)
    iso.train_embeddings(X, Y, steps=4, seeds=1, run=tmp_path / "b", resume=True)
    assert len(saved) == 1 + 4


def test_an_interrupt_keeps_what_is_done_and_the_run_goes_on_to_the_same_numbers(
    tmp_path, hears_interrupts
) -> None:
    X, y = torch.randn(40, 4, generator=torch.Generator().manual_seed(0)), [i % 2 for i in range(40)]

    def interrupt(row) -> None:
        if row["step"] == 7:
            signal.raise_signal(signal.SIGINT)

    options = {"steps": 20, "seeds": 1, "progress": False}
    with pytest.raises(KeyboardInterrupt, match="interrupted after update 8; resume the run from"):
        train_embeddings(X, y, run=tmp_path / "run", resume=True, callback=interrupt, **options)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    again = train_embeddings(X, y, run=tmp_path / "run", resume=True, **options)
    whole = train_embeddings(X, y, **options)
    assert again["silhouette"].tolist() == whole["silhouette"].tolist()


def test_a_second_interrupt_is_not_deferred(hears_interrupts) -> None:
    with deferred_interrupt(True) as interrupted:
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_job_in_the_background_goes_on_ignoring_interrupts(hears_interrupts) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred_interrupt(True) as interrupted:
        signal.raise_signal(signal.SIGINT)
        assert not interrupted()
