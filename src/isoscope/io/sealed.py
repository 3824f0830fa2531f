"""Files that isoscope reads again: each carries a checksum of everything in it.

A checksum covers names, types, shapes, values and metadata, so that a file with one changed bit is refused.
It also covers what the file belongs to (`of`): a piece of another run, or of another place in the same run,
is refused as well. Callers that can compute the content again drop such a file and say so.

    write_tensors, read_tensors     .safetensors
    write_json, read_json           .json
    seal_folder, check_folder       a folder of files that other libraries write
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.errors import FileError
from isoscope.io import structure
from isoscope.io.atomic import write_atomically
from isoscope.io.files import reading

if TYPE_CHECKING:  # a command imports this module to write its results, before it needs torch
    import numpy as np
    from torch import Tensor

CHECKSUM = "checksum"
OWNER = "of"  # the entry that says what a file belongs to
_SEAL = "isoscope"  # the metadata entry of a .safetensors file
FILES = ".checksums.json"  # of a folder
_MAX_JSON = 2**30  # a long run has many losses


def digest(arrays: Mapping[str, Tensor | np.ndarray], about: Mapping[str, str]) -> str:
    """Return the SHA-256 of named arrays and texts; the order of the names does not matter."""
    whole = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        _add_text(whole, f"{name}\0{array.dtype}\0{tuple(array.shape)}")
        whole.update(_bytes(array))
    for name in sorted(about):
        _add_text(whole, name)
        _add_text(whole, about[name])
    return whole.hexdigest()


def identity(content: Any) -> str:
    """Return a short name for JSON-ready content: equal content, equal name."""
    return digest({}, {"": _canonical(content)})[:32]


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str] | None = None, *, of: str = ""
) -> Path:
    """Write a sealed .safetensors file; a failure leaves what was there."""
    from safetensors.torch import save

    held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    described = {**(about or {}), OWNER: of}
    described[CHECKSUM] = digest(held, described)
    # one entry, for safetensors writes several in any order; and not by save_file, which makes files that
    # only their owner may read
    raw = save(held, {_SEAL: json.dumps(described, sort_keys=True)})
    return write_atomically(path, lambda beside: beside.write_bytes(raw))


def read_tensors(
    path: Path, *, of: str = "", sealed: bool = True
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and the metadata of a sealed .safetensors file.

    Args:
        path: the file.
        of: what the file must belong to.
        sealed: refuse a file without a checksum; False reads one that was written before there were any.

    Raises:
        FileError: the file cannot be read, its checksum does not match, or it belongs to something else.
    """
    from safetensors import safe_open

    with reading(path), safe_open(str(path), framework="pt") as file:
        about = dict(file.metadata() or {})
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        if _SEAL in about:
            sealed_about = structure.parse_json(about[_SEAL], str(path)).mapping()
            about = {name: field.text() for name, field in sealed_about.items()}
            sealed = True
    if sealed:
        described = {name: text for name, text in about.items() if name != CHECKSUM}
        check(path, about.get(CHECKSUM), digest(tensors, described))
        check_owner(path, about.get(OWNER), of)
    return tensors, about


def peek(path: Path, name: str) -> Tensor:
    """Return one tensor of a .safetensors file unchecked, to decide whether the rest is worth reading."""
    from safetensors import safe_open

    with reading(path), safe_open(str(path), framework="pt") as file:
        tensor: Tensor = file.get_tensor(name)
        return tensor


def write_json(path: Path, content: Mapping[str, Any], *, of: str = "", indent: int | None = None) -> Path:
    """Write a sealed .json file; a failure leaves what was there."""
    described = {**content, OWNER: of} if of else dict(content)
    described[CHECKSUM] = digest({}, {"": _canonical(described)})
    text = json.dumps(described, indent=indent, ensure_ascii=False)
    return write_atomically(path, lambda beside: beside.write_text(text + "\n", encoding="utf-8"))


def read_json(path: Path, *, of: str = "", sealed: bool = True) -> dict[str, Any]:
    """Return the content of a sealed .json file.

    Args:
        path: the file.
        of: what the file must belong to.
        sealed: refuse a file without a checksum; False reads one that was written before there were any.

    Raises:
        FileError: the file cannot be read, its checksum does not match, or it belongs to something else.
    """
    content = {
        name: field.value for name, field in structure.read_json(path, max_bytes=_MAX_JSON).mapping().items()
    }
    if CHECKSUM in content or sealed:
        checksum = content.pop(CHECKSUM, None)
        check(path, checksum, digest({}, {"": _canonical(content)}))
    if of:
        check_owner(path, content.pop(OWNER, None), of)
    return content


def seal_folder(folder: Path, *, of: str = "") -> None:
    """Write a list of all files in a folder with their checksums into it."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    write_json(folder / FILES, {"files": {name: _hash(folder / name) for name in names}}, of=of)


def check_folder(folder: Path, *, of: str = "") -> None:
    """Raise FileError unless every file that `seal_folder` listed is there and unchanged."""
    files = read_json(folder / FILES, of=of).get("files")
    if not isinstance(files, dict) or not files:
        raise FileError(f"{folder / FILES} lists no files")
    for name, checksum in files.items():
        with reading(folder / name):
            _check_inside(folder, name)
            check(folder / name, checksum, file_hash(folder / name))


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes; computed once while the file stays as it is."""
    stat = path.stat()
    return _file_hash(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)


def check(path: Path, wanted: object, got: str) -> None:
    """Raise FileError unless a file's checksum is the one of its content."""
    if wanted != got:
        if wanted is None:
            raise FileError(f"{path} has no checksum: it was edited, or written by an earlier isoscope")
        raise FileError(f"{path} is damaged: its checksum does not match its content")


def check_owner(path: Path, got: object, wanted: str) -> None:
    """Raise FileError unless a file belongs to what is wanted."""
    if got != wanted:
        raise FileError(f"{path} belongs to another run, or to another place in this one")


def _check_inside(folder: Path, name: str) -> None:
    """Raise FileError unless a listed name can only be a regular file within the folder."""
    path = folder / name
    leads_out = Path(name).is_absolute() or ".." in Path(name).parts
    if leads_out or not path.resolve().is_relative_to(folder.resolve()):
        raise FileError(
            f"{folder / FILES} lists {structure.described(name)}", wanted="files within its folder"
        )
    if path.exists() and not path.is_file():
        raise FileError(f"{folder / FILES} lists {structure.described(name)}", wanted="regular files")


@lru_cache(maxsize=256)
def _file_hash(path: Path, _n_bytes: int, _modified_ns: int, _inode: int) -> str:
    return _hash(path)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bytes(array: Tensor | np.ndarray) -> memoryview:
    import numpy as np
    import torch

    if isinstance(array, torch.Tensor):
        array = array.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _canonical(content: Any) -> str:
    """Return JSON that is the same before writing and after reading."""
    return json.dumps(json.loads(json.dumps(content)), sort_keys=True)


def _add_text(whole: Any, text: str) -> None:
    held = text.encode("utf-8", "surrogatepass")
    whole.update(len(held).to_bytes(8, "little"))
    whole.update(held)
