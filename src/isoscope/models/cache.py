"""Vectors of texts kept on disk, one entry a text: a later call encodes only what it has not seen.

A store is a folder for one model and its settings. In it lie shards, written once and never changed:
safetensors files with the texts' digests and their vectors. A second list that shares texts with a first
(the two columns of a pair task, a corpus with a few items added) finds them; two processes that write at
once make two shards and no conflict. A shard that is damaged is removed, with a warning, and its texts are
encoded again; what cannot be written is not kept, with a warning. No call fails over the cache.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import FileError
from isoscope.io.atomic import remove, sweep, why
from isoscope.io.sealed import file_hash, peek, read_tensors, write_tensors
from isoscope.models.folders import cache_folder

_FORMAT = "isoscope text vectors 2"
_DIGEST_BYTES = 16
_SMALL_BYTES = 4 * 2**20  # shards below this are merged once there are _MANY_SHARDS of them
_MANY_SHARDS = 32


@dataclass(frozen=True)
class VectorStore:
    """The vectors of one model with one choice of settings: `find` some, `keep` more."""

    folder: Path

    @classmethod
    def of(cls, model_folder: Path, **settings: Any) -> VectorStore:
        """The store for the model in a folder; other weights, other settings: another store."""
        key = json.dumps([_FORMAT, fingerprint(model_folder), settings], sort_keys=True)
        return cls(cache_folder() / "vectors" / hashlib.sha256(key.encode()).hexdigest()[:32])

    def find(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """The vectors kept for these texts, (d,) float32 each."""
        wanted = {digest(text): text for text in texts}
        found: dict[str, Tensor] = {}
        for path in self._shards():
            shard = _read_shard(path, wanted.keys())
            for key, vector in shard.items():
                found[wanted.pop(key)] = vector
            if not wanted:
                break
        widths = {len(vector) for vector in found.values()}
        return found if len(widths) <= 1 else {}

    def keep(self, texts: Sequence[str], vectors: Tensor) -> None:
        """Keep one row of vectors, (n, d) float32, for each text; a disk that refuses is a warning."""
        keys = [digest(text) for text in texts]
        try:
            sweep(self.folder)
            self._write(keys, vectors)
            self._merge_small()
        except (OSError, FileError) as error:
            warnings.warn(
                f"the vectors of {len(texts):,} texts are not cached: {why(error)}; set ISOSCOPE_CACHE to "
                "another folder, or pass cache=False",
                RuntimeWarning,
                stacklevel=3,
            )

    def _write(self, keys: list[bytes], vectors: Tensor) -> Path:
        joined = b"".join(keys)
        tensors = {
            "digests": torch.frombuffer(bytearray(joined), dtype=torch.uint8).reshape(-1, _DIGEST_BYTES),
            "vectors": vectors.float(),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{hashlib.sha256(joined).hexdigest()[:24]}.safetensors"
        return write_tensors(path, tensors, of=self.folder.name)

    def _merge_small(self) -> None:
        """Join small shards, so that many calls with few texts do not leave many files."""
        small = [path for path in self._shards() if _is_small(path)]
        if len(small) < _MANY_SHARDS:
            return
        merged: dict[bytes, Tensor] = {}
        for path in small:
            merged.update(_read_shard(path, None))
        if len(small) > 1 and len({len(vector) for vector in merged.values()}) == 1:
            written = self._write(list(merged), torch.stack(list(merged.values())))
            for path in small:
                if path != written:
                    path.unlink(missing_ok=True)

    def _shards(self) -> list[Path]:
        try:
            return sorted(path for path in self.folder.glob("*.safetensors") if path.is_file())
        except OSError:
            return []


def digest(text: str) -> bytes:
    """What a text is known by in the store: its bytes' hash, 128 bits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def fingerprint(model_folder: Path) -> str:
    """A hash of all that a model's folder (or GGUF file) holds: its settings, tokenizer and every weight.

    The weights are hashed whole: a model tuned in its middle layers alone has the same first and last
    bytes as before. It takes about a second for each gigabyte, once a process.
    """
    if model_folder.is_file():
        model_folder, files = model_folder.parent, [model_folder]
    else:
        files = sorted(path for path in model_folder.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for path in files:
        name = path.relative_to(model_folder).as_posix()
        if path.suffix.lower() == ".md" or any(part.startswith(".") for part in name.split("/")):
            continue  # a model card or a note of the place it came from
        whole.update(f"{name}\0{file_hash(path)}\n".encode())
    return whole.hexdigest()


def _is_small(path: Path) -> bool:
    """By its size alone: a shard need not be read to be left alone."""
    try:
        return path.stat().st_size < _SMALL_BYTES
    except OSError:  # another process has merged it away
        return False


def _read_shard(path: Path, wanted: Iterable[bytes] | None) -> dict[bytes, Tensor]:
    """Return the rows of a shard, all or the wanted ones; none from a file that is damaged or another's."""
    try:
        keys = peek(path, "digests")
        if keys.dtype != torch.uint8 or keys.shape[1:] != (_DIGEST_BYTES,):
            raise FileError(
                f"{path} has digests of {keys.dtype}, shape {tuple(keys.shape)}; wanted those of texts"
            )
        places = _places(keys, wanted)
        if not places:
            return {}
        tensors, _ = read_tensors(path, of=path.parent.name)
        return dict(zip(places, tensors["vectors"][list(places.values())], strict=True))
    except FileError as error:
        if path.exists():  # else another process has merged it away
            warnings.warn(
                f"{error.problem}; it is removed from the cache, and its texts are encoded again",
                RuntimeWarning,
                stacklevel=3,
            )
            remove(path)
        return {}


def _places(keys: Tensor, wanted: Iterable[bytes] | None) -> dict[bytes, int]:
    rows = dict(zip(_split(keys.numpy().tobytes()), range(len(keys)), strict=True))
    return rows if wanted is None else {key: rows[key] for key in wanted if key in rows}


def _split(joined: bytes) -> Iterator[bytes]:
    return (joined[i : i + _DIGEST_BYTES] for i in range(0, len(joined), _DIGEST_BYTES))
