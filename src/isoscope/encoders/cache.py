"""Vectors of texts kept on disk, one entry a text: a later call encodes only what it has not seen.

A store is a folder for one model and its settings. In it lie shards, written once and never changed:
safetensors files with the texts' digests and their vectors. A second list that shares texts with a first
(the two columns of a pair task, a corpus with a few items added) finds them; two processes that write at
once make two shards and no conflict. What cannot be read is passed over and made anew; what cannot be
written is not kept, with a warning. No call fails over the cache.
"""

from __future__ import annotations

import hashlib
import json
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.encoders.folders import cache_folder, write_whole

_FORMAT = "isoscope text vectors 1"
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
        key = json.dumps([fingerprint(model_folder), settings], sort_keys=True)
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
            self._write(keys, vectors)
            self._merge_small()
        except OSError as error:
            warnings.warn(
                f"the vectors of {len(texts):,} texts are not cached: {self.folder} cannot be written "
                f"({error.strerror or error}); set ISOSCOPE_CACHE to another folder, or pass cache=False",
                RuntimeWarning,
                stacklevel=3,
            )

    def _write(self, keys: list[bytes], vectors: Tensor) -> Path:
        from safetensors.torch import save

        rows = vectors.detach().cpu().float().contiguous()
        joined = b"".join(keys)
        tensors = {
            "digests": torch.frombuffer(bytearray(joined), dtype=torch.uint8).reshape(-1, _DIGEST_BYTES),
            "vectors": rows,
        }
        metadata = {"format": _FORMAT, "checksum": _checksum(rows)}
        # named by its texts: a shard that was damaged is replaced by the next that holds the same
        path = self.folder / f"{hashlib.sha256(joined).hexdigest()[:24]}.safetensors"
        write_whole(path, save(tensors, metadata))
        return path

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
            return sorted(self.folder.glob("*.safetensors"))
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
        stat = path.stat()
        whole.update(f"{name}\0{_file_hash(path, stat.st_size, stat.st_mtime_ns)}\n".encode())
    return whole.hexdigest()


@lru_cache(maxsize=256)
def _file_hash(path: Path, _n_bytes: int, _modified_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_small(path: Path) -> bool:
    """By its size alone: a shard need not be read to be left alone."""
    try:
        return path.stat().st_size < _SMALL_BYTES
    except OSError:  # another process has merged it away
        return False


def _read_shard(path: Path, wanted: Iterable[bytes] | None) -> dict[bytes, Tensor]:
    """The rows of a shard, all or the wanted ones; none from a file that is damaged or another's."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != _FORMAT:
                return {}
            keys = file.get_tensor("digests")
            places = _places(keys, wanted)
            if not places:
                return {}
            vectors = file.get_tensor("vectors")
            if not _is_sound(keys, vectors, metadata):
                return {}
            return dict(zip(places, vectors[list(places.values())], strict=True))
    except Exception:  # whatever a stranger's or half a file makes a reader raise, the texts can be encoded
        return {}


def _places(keys: Tensor, wanted: Iterable[bytes] | None) -> dict[bytes, int]:
    rows = dict(zip(_split(keys.numpy().tobytes()), range(len(keys)), strict=True))
    return rows if wanted is None else {key: rows[key] for key in wanted if key in rows}


def _split(joined: bytes) -> Iterator[bytes]:
    return (joined[i : i + _DIGEST_BYTES] for i in range(0, len(joined), _DIGEST_BYTES))


def _is_sound(keys: Tensor, vectors: Tensor, metadata: dict[str, str]) -> bool:
    return (
        keys.shape == (len(vectors), _DIGEST_BYTES)
        and vectors.ndim == 2
        and vectors.dtype == torch.float32
        and metadata.get("checksum") == _checksum(vectors)
    )


def _checksum(rows: Tensor) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(rows.numpy()).data):08x}"
