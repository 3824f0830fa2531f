from __future__ import annotations

import errno
import os
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoscope.io.atomic import beside
from isoscope.models import cache
from isoscope.models.cache import VectorStore, digest, fingerprint

TEXTS = ["one", "two", "é", "line\nfeed", ""]
ROWS = torch.arange(20, dtype=torch.float32).reshape(5, 4) / 7


@pytest.fixture
def store(tmp_path: Path) -> VectorStore:
    return VectorStore(tmp_path / "store")


def rows(found: dict[str, torch.Tensor], texts: list[str]) -> torch.Tensor:
    return torch.stack([found[text] for text in texts])


def test_what_is_kept_is_found(store: VectorStore) -> None:
    assert store.find(TEXTS) == {}
    store.keep(TEXTS, ROWS)
    found = store.find([*reversed(TEXTS), "absent"])
    assert set(found) == set(TEXTS)
    assert torch.equal(rows(found, TEXTS), ROWS)


def test_stores_grow(store: VectorStore) -> None:
    store.keep(TEXTS[:2], ROWS[:2])
    store.keep(TEXTS[2:], ROWS[2:])
    assert torch.equal(rows(store.find(TEXTS), TEXTS), ROWS)
    assert len(list(store.folder.iterdir())) == 2


def test_texts_that_differ_by_anything_differ(store: VectorStore) -> None:
    store.keep(["a"], ROWS[:1])
    assert not store.find(["A", "a ", "a\0", "\ufeffa"])


@pytest.mark.parametrize(
    "damage",
    [
        "empty",
        "cut",
        "flipped",
        "foreign",
        "without a checksum",
        "of another store",
        "no vectors",
        "another type",
        "another width",
    ],
)
def test_damaged_and_foreign_files_are_removed_and_replaced(store: VectorStore, damage: str) -> None:
    store.keep(TEXTS, ROWS)
    (path,) = store.folder.iterdir()
    content = path.read_bytes()
    tensors = load_file(path)
    path.unlink()
    if damage == "empty":
        path.touch()
    elif damage == "cut":
        path.write_bytes(content[:-8])
    elif damage == "another type":
        save_file({**tensors, "digests": tensors["digests"].view(torch.float8_e4m3fn)}, path)
    elif damage == "another width":
        save_file({**tensors, "digests": tensors["digests"][:, :7].contiguous()}, path)
    elif damage == "flipped":
        at = content.index(ROWS.numpy().tobytes()) + 30  # among the vectors
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    elif damage == "foreign":
        path.write_bytes(b"not ours at all")
    elif damage == "without a checksum":
        save_file(tensors, path)
    elif damage == "of another store":
        other = VectorStore(store.folder.with_name("other"))
        other.keep(TEXTS, ROWS + 1)
        shutil.copy(next(other.folder.iterdir()), path)
    elif damage == "no vectors":
        save_file({"digests": tensors["digests"]}, path)
    with pytest.warns(RuntimeWarning, match="removed from the cache, and its texts are encoded again"):
        assert store.find(TEXTS) == {}
    assert not list(store.folder.iterdir())
    store.keep(TEXTS, ROWS)
    assert torch.equal(rows(store.find(TEXTS), TEXTS), ROWS)


def test_a_folder_in_the_cache_is_passed_over(store: VectorStore) -> None:
    (store.folder / "a.safetensors").mkdir(parents=True)
    assert store.find(TEXTS) == {}


def test_no_flipped_bit_changes_a_vector(store: VectorStore) -> None:
    store.keep(TEXTS, ROWS)
    (path,) = store.folder.iterdir()
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = store.find(TEXTS)
        assert all(torch.equal(vector, ROWS[TEXTS.index(text)]) for text, vector in found.items()), at


def test_what_a_killed_process_was_writing_is_removed(
    store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.keep(TEXTS[:1], ROWS[:1])
    with subprocess.Popen(["true"]) as process:
        ended = process.pid
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: ended)
        beside(store.folder / "other.safetensors").touch()
    beside(store.folder / "another.safetensors").touch()  # this process is alive
    store.keep(TEXTS[:1], ROWS[:1])
    assert len(list(store.folder.iterdir())) == 2


def test_a_full_disk_is_a_warning(store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, content: bytes) -> int:
        self.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(RuntimeWarning, match="the vectors of 5 texts are not cached: .*No space left"):
        store.keep(TEXTS, ROWS)
    assert not list(store.folder.iterdir())


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(RuntimeWarning, match="set ISOSCOPE_CACHE to another folder"):
        VectorStore(tmp_path / "file" / "store").keep(TEXTS, ROWS)


def test_many_small_shards_become_one(store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MANY_SHARDS", 4)
    for i, text in enumerate(TEXTS[:3]):
        store.keep([text], ROWS[i : i + 1])
    assert len(list(store.folder.iterdir())) == 3
    store.keep(TEXTS[3:], ROWS[3:])
    assert len(list(store.folder.iterdir())) == 1
    assert torch.equal(rows(store.find(TEXTS), TEXTS), ROWS)


def test_large_shards_stay(store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MANY_SHARDS", 2)
    store.keep(TEXTS[:3], ROWS[:3])
    (large,) = store.folder.iterdir()
    monkeypatch.setattr(cache, "_SMALL_BYTES", large.stat().st_size)
    store.keep(TEXTS[3:4], ROWS[3:4])
    store.keep(TEXTS[4:], ROWS[4:])
    assert len(list(store.folder.iterdir())) == 2
    assert torch.equal(rows(store.find(TEXTS), TEXTS), ROWS)


def test_keeping_reads_no_large_shard(store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every call that keeps texts would read all that was kept before."""
    read: list[Path] = []
    inner = cache._read_shard
    monkeypatch.setattr(cache, "_read_shard", lambda path, wanted: read.append(path) or inner(path, wanted))
    monkeypatch.setattr(cache, "_MANY_SHARDS", 3)
    monkeypatch.setattr(cache, "_SMALL_BYTES", 1)
    texts = [f"text {i}" for i in range(10)]
    for text in texts[:8]:
        store.keep([text], ROWS[:1])
    assert not read
    assert len(list(store.folder.iterdir())) == 8
    large = set(store.folder.iterdir())
    monkeypatch.setattr(cache, "_is_small", lambda path: path not in large)
    store.keep(texts[8:9], ROWS[:1])
    store.keep(texts[9:], ROWS[:1])
    assert not read  # ten shards, but only two that could be merged
    store.keep(["last"], ROWS[:1])
    assert len(read) == 3
    assert not set(read) & large
    assert len(store.find([*texts, "last"])) == 11


def test_a_shard_that_another_process_merged_away_is_passed_over(
    store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_MANY_SHARDS", 1)
    store.keep(TEXTS, ROWS)
    gone = store.folder / "gone.safetensors"
    monkeypatch.setattr(VectorStore, "_shards", lambda self: [*self.folder.iterdir(), gone])
    store.keep(["more"], ROWS[:1])  # a warning would be an error here
    monkeypatch.undo()
    assert len(store.find([*TEXTS, "more"])) == 6


def test_vectors_of_several_widths_are_not_mixed(store: VectorStore) -> None:
    store.keep(TEXTS[:2], ROWS[:2])
    store.keep(TEXTS[2:], ROWS[2:, :3])
    assert store.find(TEXTS) == {}
    assert len(store.find(TEXTS[:2])) == 2


def test_a_store_is_for_one_model_and_one_choice_of_settings(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(bytes(3000))
    (model / "config.json").write_text("{}")

    def place(**settings: object) -> Path:
        return VectorStore.of(model, **settings).folder

    first = place(pooling="mean")
    assert first == place(pooling="mean")
    assert first != place(pooling="cls")
    (model / "README.md").write_text("a card")
    (model / ".cache").mkdir()
    (model / ".cache" / "note").touch()
    assert first == place(pooling="mean")
    (model / "config.json").write_text("{ }")
    assert first != place(pooling="mean")


def test_one_weight_in_the_middle_changes_the_fingerprint(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(bytes(3_000_000))
    before = fingerprint(tmp_path)
    changed = bytearray(3_000_000)
    changed[1_500_000] = 1
    weights.write_bytes(changed)
    os.utime(weights, ns=(0, 0))
    assert fingerprint(tmp_path) != before


def test_any_string_has_a_digest() -> None:
    assert len({digest(text) for text in ("", "a", "\ud800", "\0")}) == 4
