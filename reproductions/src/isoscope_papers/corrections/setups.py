"""Should vectors be made isotropic? Encoders and tasks on which every correction is tried.

    isoscope reproduce corrections --setup minilm,glove --data data -o results

The papers answer in two halves. Taking off the mean and the strongest directions, or whitening, is said to
help where similarity is graded (Mu and Viswanath 2018, Su et al. 2021, Rajaee and Pilehvar 2021); Mickus et
al. 2024 show that isotropy is at odds with clusters, so that tasks with labels should lose by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from isoscope.errors import InputError

GLOVE = "glove-6b-50d"
MAX_PAIRS, MAX_ROWS = 1500, 2000
FOLDS, REPEATS = 5, 2
SENTENCES, WORDS, LABELS = "sentences", "words", "labels"  # kinds of data sets
# parts: every correction on every data set; a linear probe with a wide range of penalties; nearest neighbours
# under noise; word analogies
TASKS, PROBE, NOISE, ANALOGIES = "tasks", "probe", "noise", "analogies"


@dataclass(frozen=True)
class Setup:
    """One encoder."""

    name: str  # on the command line and in files
    title: str
    model: str  # name, folder or hub id of a model; name or file of word vectors
    is_static: bool = False  # word vectors, averaged over the words of a text
    prefix: str = ""  # put before each text
    note: str = ""
    part: str = TASKS


@dataclass(frozen=True)
class Dataset:
    """One data set: its name in `isoscope_papers.corpora`, its title, its kind."""

    name: str
    title: str
    kind: str


_ENCODERS = (
    Setup("minilm", "MiniLM-L6", "all-MiniLM-L6-v2", note="tuned for sentences with a contrastive loss"),
    Setup("e5", "e5-small", "e5-small", prefix="query: ", note="contrastive with a low temperature, ONNX"),
    Setup("smollm2", "SmolLM2-135M", "smollm2-135m", note="a language model, its last states averaged"),
    Setup("glove", "GloVe 6B", GLOVE, is_static=True, note="50 dimensions, words averaged"),
)
SETUPS = {
    setup.name: setup
    for setup in (
        *_ENCODERS,
        *(replace(one, name=f"{one.name}-{part}", part=part) for part in (PROBE, NOISE) for one in _ENCODERS),
        replace(_ENCODERS[-1], name="glove-analogies", part=ANALOGIES),
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
NOISE_DATASET = DATASETS["banking77"]
ANALOGY_DATASET = Dataset("google_analogies", "Google analogies", WORDS)


def chosen_datasets(wanted: Sequence[str]) -> list[Dataset]:
    """Return the data sets with these names or of these kinds, in their order; all by default."""
    known = {*DATASETS, *(one.kind for one in DATASETS.values())}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise InputError(argument="dataset", got=unknown[0], wanted=f"some of {', '.join(sorted(known))}")
    return [one for one in DATASETS.values() if not wanted or one.name in wanted or one.kind in wanted]
