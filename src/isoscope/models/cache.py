"""A cache of the vectors of texts on disk, with one entry for each text.

A store is a folder for one model and its settings. It contains shards: safetensors files with the digests of
texts and their vectors, which are written once and never changed. Two processes that write at the same time
write two shards. A damaged shard is removed with a warning, and its texts are encoded again. Vectors that
cannot be written are not cached, with a warning. No call fails because of the cache.
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
from torch import Tensor, nn

from isoscope.engine.checksums import checksum
from isoscope.errors import FileError
from isoscope.io.atomic import remove, sweep, why
from isoscope.io.sealed import file_hash, peek, read_tensors, write_tensors
from isoscope.models.folders import cache_folder

_FORMAT = "isoscope text vectors 2"
_DIGEST_BYTES = 16
_SMALL_BYTES = 4 * 2**20  # smaller shards are merged once there are _MANY_SHARDS of them
_MANY_SHARDS = 32


@dataclass(frozen=True)
class VectorStore:
    """The cached vectors of one model with one choice of settings."""

    folder: Path

    @classmethod
    def of(cls, model_folder: Path, **settings: Any) -> VectorStore:
        """Return the store for the weights of a model and these settings."""
        key = json.dumps([_FORMAT, fingerprint(model_folder), settings], sort_keys=True)
        return cls(cache_folder() / "vectors" / hashlib.sha256(key.encode()).hexdigest()[:32])

    def find(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """Return the cached vectors of these texts, (d,) float32 each."""
        missing = {digest(text): text for text in texts}
        vectors: dict[str, Tensor] = {}
        for path in self._shards():
            for key, vector in _read_shard(path, missing.keys()).items():
                vectors[missing.pop(key)] = vector
            if not missing:
                break
        n_dims = {len(vector) for vector in vectors.values()}
        return vectors if len(n_dims) <= 1 else {}

    def keep(self, texts: Sequence[str], vectors: Tensor) -> None:
        """Cache the rows of (n, d) vectors, one for each text; warn if they cannot be written."""
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
        """Merge small shards, so that many calls with few texts do not leave many files."""
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
    """Return the key of a text in the store: a hash of 128 bits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def fingerprint(model_folder: Path) -> str:
    """Return a hash of a model's folder or GGUF file: its settings, its tokenizer and all weights.

    All bytes are hashed, since a model that was fine-tuned only in its middle layers has the same first and
    last bytes. This takes about a second for each gigabyte, once in a process.
    """
    if model_folder.is_file():
        model_folder, files = model_folder.parent, [model_folder]
    else:
        files = sorted(path for path in model_folder.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for path in files:
        name = path.relative_to(model_folder).as_posix()
        if path.suffix.lower() == ".md" or any(part.startswith(".") for part in name.split("/")):
            continue  # a model card, or a file that the hub's client has written
        whole.update(f"{name}\0{file_hash(path)}\n".encode())
    return whole.hexdigest()


def weights_fingerprint(model: Any) -> str:
    """Return a hash of the weights and buffers of a loaded model, and of where there are none; fast.

    It tells a model that was trained further from its origin, which has the same name and folder. Weights
    that accelerate has offloaded have no values here, and count by their names and shapes.
    """
    if not isinstance(model, nn.Module):
        return ""
    whole = hashlib.sha256()
    for name, values in (*model.named_parameters(), *model.named_buffers()):
        code = "" if values.device.type == "meta" else checksum(torch.atleast_1d(values.detach()))
        whole.update(f"{name}\0{tuple(values.shape)}\0{values.dtype}\0{code}\n".encode())
    return whole.hexdigest()


def _is_small(path: Path) -> bool:
    try:
        return path.stat().st_size < _SMALL_BYTES
    except OSError:  # another process has merged and deleted it
        return False


def _read_shard(path: Path, wanted: Iterable[bytes] | None) -> dict[bytes, Tensor]:
    """Return the rows of a shard that are wanted, or all; none from a damaged file."""
    try:
        keys = peek(path, "digests")
        if keys.dtype != torch.uint8 or keys.shape[1:] != (_DIGEST_BYTES,):
            raise FileError(f"{path} has digests of {keys.dtype} and shape {tuple(keys.shape)}")
        places = _places(keys, wanted)
        if not places:
            return {}
        tensors, _ = read_tensors(path, of=path.parent.name)
        return dict(zip(places, tensors["vectors"][list(places.values())], strict=True))
    except FileError as error:
        if path.exists():  # otherwise another process has merged and deleted it
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
