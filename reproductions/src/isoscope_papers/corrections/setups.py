"""Should vectors be made isotropic? Encoders and tasks on which every correction is tried.

    isoscope reproduce corrections --setup minilm,glove --data data -o results

The papers answer in two halves. Taking off the mean and the strongest directions, or whitening, is said to
help where similarity is graded (Mu and Viswanath 2018, Su et al. 2021, Rajaee and Pilehvar 2021); Mickus et
al. 2024 show that isotropy is at odds with clusters, so that tasks with labels should lose by it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from isoscope.encoders.static import GLOVE
from isoscope.errors import InputError

MAX_PAIRS, MAX_ROWS = 1500, 2000
FOLDS, REPEATS = 5, 2
SENTENCES, WORDS, LABELS = "sentences", "words", "labels"  # kinds of data sets


@dataclass(frozen=True)
class Setup:
    """One encoder.

    Attributes:
        name: what it is called on the command line and in files.
        title: in figures and tables.
        model: name, folder or hub id of a model; name or file of word vectors.
        is_static: word vectors, averaged over the words of a text.
        prefix: put before each text.
        note: what to know of it.
    """

    name: str
    title: str
    model: str
    is_static: bool = False
    prefix: str = ""
    note: str = ""


@dataclass(frozen=True)
class Dataset:
    """One data set: its name in `isoscope_papers.corpora`, its title, its kind."""

    name: str
    title: str
    kind: str


SETUPS = {
    setup.name: setup
    for setup in (
        Setup("minilm", "MiniLM-L6", "all-MiniLM-L6-v2", note="tuned for sentences with a contrastive loss"),
        Setup(
            "e5", "e5-small", "e5-small", prefix="query: ", note="contrastive with a low temperature, ONNX"
        ),
        Setup("smollm2", "SmolLM2-135M", "smollm2-135m", note="a language model, its last states averaged"),
        Setup("glove", "GloVe 6B", GLOVE, is_static=True, note="50 dimensions, words averaged"),
    )
}
DATASETS = {
    one.name: one
    for one in (
        Dataset("stsb", "STS-B", SENTENCES),
        *(Dataset(f"sts{year}", f"STS{year}", SENTENCES) for year in range(12, 17)),
        Dataset("sick", "SICK", SENTENCES),
        Dataset("wordsim353", "WordSim-353", WORDS),
        Dataset("simlex999", "SimLex-999", WORDS),
        Dataset("men", "MEN", WORDS),
        Dataset("mturk771", "MTurk-771", WORDS),
        Dataset("rare_words", "Rare Words", WORDS),
        Dataset("sst2", "SST-2", LABELS),
        Dataset("cola", "CoLA", LABELS),
        Dataset("banking77", "Banking77", LABELS),
        Dataset("stackoverflow", "StackOverflow", LABELS),
    )
}


def chosen_setups(
    names: Iterable[str] | None, models: Iterable[str | os.PathLike[str]] | None = None
) -> list[Setup]:
    """The setups with these names, in their order ("all" is every one), and one for each further model."""
    wanted = [part.strip() for name in names or () for part in name.split(",") if part.strip()]
    unknown = [name for name in wanted if name != "all" and name not in SETUPS]
    if unknown:
        raise InputError(f"setup {unknown[0]!r} is not known; wanted all, or some of {', '.join(SETUPS)}")
    found = [setup for setup in SETUPS.values() if "all" in wanted or setup.name in wanted]
    return [*found, *(own_setup(model) for model in models or ())]


def own_setup(model: str | os.PathLike[str]) -> Setup:
    """A setup for a model of the caller's own: a file is one of word vectors, all else a sentence encoder."""
    path = Path(model)
    is_static = path.is_file() and path.suffix.lower() != ".gguf"
    return Setup(path.name, path.name, os.fspath(model), is_static=is_static)


def chosen_datasets(names: Iterable[str] | None) -> list[Dataset]:
    """The data sets with these names or of these kinds, in their order; all by default."""
    wanted = [part.strip() for name in names or () for part in name.split(",") if part.strip()]
    known = {*DATASETS, *(one.kind for one in DATASETS.values())}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise InputError(f"dataset {unknown[0]!r} is not known; wanted some of {', '.join(sorted(known))}")
    return [one for one in DATASETS.values() if not wanted or one.name in wanted or one.kind in wanted]
