"""Find the folder or file that contains a model: an installed package, a path, or a copy from the hub."""

from __future__ import annotations

import os
from pathlib import Path

from isoscope.errors import FileError, InputError, Setting, not_installed
from isoscope.io.files import reason
from isoscope.known_models import KNOWN, KnownModel, installed_models, known_model, package_folder
from isoscope.models import archives
from isoscope.models.folders import cache_folder
from isoscope.models.onnx import is_onnx
from isoscope.printable import nearest
from isoscope.progress import Bar

_DOWNLOAD = Setting("download", True, to="download it from Hugging Face's hub")
# the files that are downloaded; code, pickled weights and the formats of other frameworks are not
_FETCHED = ("*.json", "*.txt", "*.safetensors", "*.model")


def resolve_model(model: str | os.PathLike[str], *, download: bool = False) -> Path:
    """Return the folder, or the GGUF file, that contains a model.

    Args:
        model: a short name (`all-MiniLM-L6-v2`), a folder, a .gguf file, or an id on Hugging Face's hub. An
            @ precedes a revision on the hub, or a subfolder: `owner/name@step1000`, `run@checkpoint-100`.
        download: download the model from the hub if it is not on this machine. Nothing is downloaded
            otherwise.

    Raises:
        InputError: the model is not on this machine; the message names what to install.
    """
    name = os.fspath(model)
    known = known_model(name) if isinstance(model, str) else None
    if known and (folder := _installed(known)):
        return folder
    path = Path(name).expanduser()
    if path.is_dir() or is_gguf(path):
        return path
    if path.is_file():
        raise FileError(
            f"model {name!r} is a file", wanted="the folder that the model was saved in, or a .gguf file"
        )
    base, _, revision = name.rpartition("@")
    if base and revision and (path := Path(base).expanduser() / revision).is_dir():
        return path
    hub = known.hub if known else base or name
    is_id = isinstance(model, str) and _is_hub_id(hub)
    copy = _from_hub(hub, revision if base else None, download=download) if is_id else None
    if copy is None and not (is_id and "/" in hub):
        raise InputError(
            argument="model",
            got=name,
            wanted=f"one of {', '.join(KNOWN)}, a model's folder, a .gguf file, or a hub id (owner/name)",
            hint=nearest(name, KNOWN) or (_DOWNLOAD if is_id else ""),
        )
    if copy is None:
        command, installed = known and known.install_command, installed_models()
        raise InputError(
            f"model {name!r} is not on this machine",
            hint=[
                *([command] if command else ["pass the folder it was saved in"]),
                _DOWNLOAD,
                *([f"use a model that is installed: {', '.join(installed)}"] if installed else []),
            ],
        )
    return copy


def model_folder(model: str | os.PathLike[str], *, download: bool) -> Path:
    """Return what `resolve_model` does, once it is certain that a folder contains settings and weights."""
    if not os.fspath(model):
        raise InputError(argument="model", got="", wanted="the name, the folder or the hub id of a model")
    folder = resolve_model(model, download=download)
    if is_gguf(folder) or is_onnx(folder):
        return folder
    if not any((folder / name).is_file() for name in ("config.json", "modules.json")):
        raise FileError(
            f"model {os.fspath(model)!r} is a folder without config.json",
            wanted="a folder that sentence-transformers or transformers has saved",
        )
    if next(folder.rglob("*.safetensors"), None) is None:
        raise FileError(
            f"model {os.fspath(model)!r} is a folder without weights",
            wanted="a .safetensors file",
            hint="save the model again with save_pretrained",
        )
    return folder


def is_gguf(path: Path) -> bool:
    """Return whether the path is a GGUF file, which has the weights, settings and tokenizer of a model."""
    return path.suffix.lower() == ".gguf" and path.is_file()


def _installed(known: KnownModel) -> Path | None:
    if known.archive:
        return _assembled(known)
    if known.tokenizer:
        return _with_tokenizer(known, known.tokenizer)
    folder = package_folder(known.modules[0]) if known.modules else None
    return folder / known.inside if folder and (folder / known.inside).exists() else None


def _assembled(known: KnownModel) -> Path | None:
    """Return the folder of a model whose archive is in several packages; unpack it the first time."""
    assert known.archive is not None
    name, n_bytes = known.archive
    place = cache_folder() / "models" / Path(name).stem
    if archives.is_complete(place):
        return archives.root(place)
    folders = [package_folder(module) for module in known.modules]
    if not all(folders):
        return None
    parts = [folder / known.inside / f"{name}.{i:03}" for i, folder in enumerate(folders, 1) if folder]
    archives.unpack(parts, place, n_bytes=n_bytes)
    return archives.root(place)


def _with_tokenizer(known: KnownModel, lender: str) -> Path | None:
    """Return the folder of an ONNX model beside the tokenizer of another model; unpack it the first time."""
    folder, lender_folder = package_folder(known.modules[0]), _installed(KNOWN[lender])
    if folder is None or lender_folder is None or not (folder / known.inside).is_file():
        return None
    place = cache_folder() / "models" / Path(known.inside).name.partition(".")[0]
    if not archives.is_complete(place):
        archives.unpack_tar(folder / known.inside, place, also=[lender_folder / "tokenizer.json"])
    return place


def _is_hub_id(name: str) -> bool:
    """Return whether a name is owner/name, or one of the first models on the hub, which have no owner."""
    parts = name.split("/")
    return len(parts) <= 2 and all(parts) and not name.startswith((".", "~"))


def _from_hub(hub: str, revision: str | None, *, download: bool) -> Path | None:
    """Return the local copy of a model on the hub; the network is used only if `download` is true."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        if download:
            raise not_installed(f"The download of {hub}", "huggingface_hub", extra="text") from None
        return None
    try:
        with Bar(show=None if download else False) as bar:
            bar.step(f"downloading {hub}", at_once=True)
            chosen = {} if revision is None else {"revision": revision}
            return Path(
                snapshot_download(hub, local_files_only=not download, allow_patterns=list(_FETCHED), **chosen)
            )
    except Exception as error:  # its type depends on the version of the library
        if not download:
            return None
        raise InputError(
            f"model {hub!r} cannot be downloaded: {reason(error)}",
            hint=["check the name and the connection", "pass the folder of a copy"],
        ) from error
