"""Cai, Huang, Bian and Church 2021, *Isotropy in the Contextual Embedding Space*: setups, as published.

    isoscope reproduce manifolds --setup minilm --tokens 20000

takes the cosines between and within token types in every layer, before and after each cluster is centred on
its own mean, and the local intrinsic dimension. The paper's own models are taken by name where they are at
hand (`--model gpt2 --download`); those in the setups are others, on which its claims are put to the test.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from isoscope.errors import InputError

WINDOW = 512  # tokens a model reads at once
MAX_CLUSTERS = 15
SILHOUETTE_SAMPLE = 20_000
MIN_SILHOUETTE = 0.1
MAX_INSTANCES = 1000
LID_NEIGHBORS = 100


@dataclass(frozen=True)
class Published:
    """A line of the paper's table 3: vectors, dimensions, mean LID with 1 − cos taken for a distance."""

    title: str
    n_vectors: int
    n_dims: int
    lid: float


@dataclass(frozen=True)
class Setup:
    """One space, or the layers of one model.

    Attributes:
        name: what it is called on the command line and in files.
        title: in figures and tables.
        model: name, folder or hub id of a model; name or file of word vectors.
        is_static: one vector a word, of no context.
        note: what to know of it.
    """

    name: str
    title: str
    model: str
    is_static: bool = False
    note: str = ""


SETUPS = {
    setup.name: setup
    for setup in (
        Setup("minilm", "MiniLM-L6", "all-MiniLM-L6-v2", note="BERT-like, tuned for sentences"),
        Setup("mpnet", "MPNet", "all-mpnet-base-v2", note="BERT-like, tuned for sentences"),
        Setup("smollm2", "SmolLM2-135M", "smollm2-135m", note="GPT-like, rotary positions, 4-bit weights"),
        Setup("glove", "GloVe 6B", "glove-6b-50d", is_static=True, note="static, 50 dimensions"),
    )
}

# table 3: contextual ones by the hub's names of the models
_BERT = Published("BERT", 1_190_000, 768, 5.6)
_DISTILBERT = Published("D-BERT", 1_190_000, 768, 7.3)
PUBLISHED = {
    "bert-base-uncased": _BERT,
    "bert-base-cased": _BERT,
    "distilbert-base-uncased": _DISTILBERT,
    "distilbert-base-cased": _DISTILBERT,
    "openai-gpt": Published("GPT", 960_000, 768, 6.8),
    "gpt2": Published("GPT2", 1_090_000, 768, 7.0),
    "elmo": Published("ELMo", 880_000, 1024, 9.1),
    "glove.twitter.27B.100d.txt": Published("GloVe", 1_180_000, 100, 18.0),
    "glove.840B.300d.txt": Published("GloVe-2M", 2_200_000, 300, 26.1),
    "GoogleNews-vectors-negative300.bin": Published("GNEWS", 3_000_000, 300, 21.1),
}
CONTEXTUAL, STATIC = (
    ("bert-base-uncased", "distilbert-base-uncased", "openai-gpt", "gpt2", "elmo"),
    ("glove.twitter.27B.100d.txt", "glove.840B.300d.txt", "GoogleNews-vectors-negative300.bin"),
)


def chosen_setups(
    names: Iterable[str] | None, models: Iterable[str | os.PathLike[str]] | None = None
) -> list[Setup]:
    """The setups with these names, in their order ("all" is every one), and one for each further model.

    Where only models are asked for, there are no others.
    """
    wanted = [part.strip() for name in names or () for part in name.split(",") if part.strip()]
    others = [own_setup(model) for model in models or ()]
    unknown = [name for name in wanted if name != "all" and name not in SETUPS]
    if unknown:
        raise InputError(f"setup {unknown[0]!r} is not known; wanted all, or some of {', '.join(SETUPS)}")
    found = [setup for setup in SETUPS.values() if "all" in wanted or setup.name in wanted]
    return [*found, *others]


def own_setup(model: str | os.PathLike[str]) -> Setup:
    """A setup for a model of the caller's own: a file is one of word vectors, all else a language model.

    >>> own_setup("openai-community/gpt2").name
    'gpt2'
    """
    path = Path(model)
    named = [setup for setup in SETUPS.values() if setup.model == os.fspath(model)]
    if named:
        return named[0]
    is_static = path.is_file() and path.suffix.lower() != ".gguf"
    return Setup(path.name, path.name, os.fspath(model), is_static=is_static)


def published_of(setup: Setup) -> Published | None:
    """What the paper reports of the very model a setup takes; None for all others."""
    return PUBLISHED.get(Path(setup.model).name)
