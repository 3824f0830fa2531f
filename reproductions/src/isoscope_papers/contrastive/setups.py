"""Xiao, Long and Al Moubayed 2023, *On Isotropy, Contextualization and Learning Dynamics of Contrastive-based
Sentence Representation Learning*: the models, the protocol and its quirks, and what is published of each.

    isoscope reproduce contrastive --setup minilm

ends with every layer's raw similarities within 0.0005 of the published ones. Published figures are those of
the paper's text and tables, and of the outputs released with its code.
"""

from __future__ import annotations

from dataclasses import dataclass

TEXTS, SPLIT = "stsb", "test"  # sentence 1 of each pair
N_SENTENCES = 1379  # the paper says 1,359; the test set has 1,379, and all of them give its figures
N_SEEDS = 30
N_SAMPLED = 1000  # tokens of the samples: one of each of so many sentences
N_TOKENS = 400  # the most frequent, whose self-similarity is followed from model to model
REMOVED = (1, 2, 3, 5, 10, 20, 50, 100, 300, 700)  # top dimensions


@dataclass(frozen=True)
class Protocol:
    """How the tokens of sentences are taken."""

    min_count: int = 2  # a type's occurrences, for it to count in self-similarity
    first_only: bool = False  # of a type, only the first in each sentence counts in self-similarity
    padding: bool = False  # one padding token behind each sentence shorter than the longest is a type as well
    special: bool = False  # [CLS], [SEP] and their like count like any token
    sampled: bool = False  # anisotropy is that of one random token of each of 1,000 sentences; else the exact
    diagonal: bool = False  # shares of dimensions pair each occurrence with itself too, type by type


PAPER = Protocol(min_count=5, first_only=True, padding=True, special=True, sampled=True, diagonal=True)
CLEAN = Protocol()


@dataclass(frozen=True)
class Published:
    """What is published of one model, layer by layer from the embedding layer up; empty where nothing is."""

    anisotropy: tuple[float, ...] = ()
    self_similarity: tuple[float, ...] = ()
    intra_similarity: tuple[float, ...] = ()
    adjusted_self_similarity: tuple[float, ...] = ()
    adjusted_intra_similarity: tuple[float, ...] = ()
    norm: tuple[float, ...] = ()
    dimensions_for_half: int | None = None
    informativity: tuple[float, ...] = ()
    is_contrastive: bool = False


@dataclass(frozen=True)
class Setup:
    """One model: its name on the command line, in figures and tables, and what is loaded.

    vanilla: the setup of the model that it was trained from.
    """

    name: str
    title: str
    model: str
    published: Published = Published()
    vanilla: str = ""
    note: str = ""


_MINILM = Published(
    anisotropy=(0.067, 0.131, 0.164, 0.165, 0.168, 0.208, 0.012),
    self_similarity=(0.9550, 0.9031, 0.8399, 0.7988, 0.7935, 0.8115, 0.6443),
    intra_similarity=(0.3651, 0.4631, 0.5094, 0.5613, 0.5795, 0.5801, 0.6634),
    adjusted_self_similarity=(0.888, 0.772, 0.676, 0.634, 0.626, 0.604, 0.632),
    adjusted_intra_similarity=(0.298, 0.332, 0.345, 0.396, 0.412, 0.372, 0.651),
    dimensions_for_half=121,
    informativity=(0.998, 0.846, 0.836, 0.830, 0.817, 0.805, 0.768, 0.690, 0.285),
    is_contrastive=True,
)
_MPNET = Published(
    anisotropy=(
        0.031, 0.041, 0.060, 0.075, 0.076, 0.096, 0.107, 0.104, 0.089, 0.114, 0.100, 0.109, 0.016,
    ),
    self_similarity=(
        0.9921, 0.8732, 0.7701, 0.7106, 0.6776, 0.6493, 0.6360, 0.6324, 0.6329, 0.6424, 0.6517, 0.6551,
        0.3566,
    ),
    intra_similarity=(
        0.2868, 0.3360, 0.3985, 0.4291, 0.4471, 0.4798, 0.5044, 0.4991, 0.4784, 0.4952, 0.5040, 0.5318,
        0.8501,
    ),
    norm=(
        5.575, 6.761, 7.313, 7.635, 8.217, 7.723, 8.358, 8.326, 8.112, 7.813, 7.748, 7.194, 3.322,
    ),
    dimensions_for_half=209,
    informativity=(0.999, 0.998, 0.996, 0.994, 0.990, 0.983, 0.960, 0.922, 0.783, 0.229),
    is_contrastive=True,
)  # fmt: skip
_DECLARED = (
    Setup("minilm", "MiniLM", "all-MiniLM-L6-v2", _MINILM, "minilm-vanilla"),
    Setup("mpnet", "mpnet", "all-mpnet-base-v2", _MPNET, "mpnet-vanilla"),
    Setup(
        "smollm2", "SmolLM2", "smollm2-135m",
        note="ours, a causal model for contrast: SmolLM2-135M-Instruct in 4 bits; the paper has none. Its "
        "first token sees no other, so words that begin sentences are the most alike; padding, which "
        "a causal model puts behind what it read, is no type here",
    ),
    Setup(
        "minilm-vanilla", "vanilla MiniLM", "nreimers/MiniLM-L6-H384-uncased",
        Published(informativity=(0.993, 0.980, 0.970, 0.947, 0.886, 0.796, 0.559, 0.543, 0.375)),
        note="before contrastive training: every second layer of MiniLM",
    ),
    Setup(
        "mpnet-vanilla", "vanilla mpnet", "microsoft/mpnet-base",
        Published(informativity=(0.386, 0.338, 0.210, 0.169, 0.168, 0.182, 0.201, 0.195, 0.175, 0.040)),
        note="before contrastive training",
    ),
)  # fmt: skip
SETUPS: dict[str, Setup] = {setup.name: setup for setup in _DECLARED}
