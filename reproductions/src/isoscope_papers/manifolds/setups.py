"""Cai, Huang, Bian and Church 2021, *Isotropy in the Contextual Embedding Space*: setups, as published.

    isoscope reproduce manifolds --setup minilm --max-tokens 20000

takes the cosines between and within token types in every layer, before and after each cluster is centred on
its own mean, and the local intrinsic dimension. The paper's own models are taken by name where they are at
hand (`--model gpt2 --download`); those in the setups are others, on which its claims are put to the test.
"""

from __future__ import annotations

from dataclasses import dataclass

WINDOW = 512  # tokens a model reads at once
MAX_CLUSTERS = 15
SILHOUETTE_SAMPLE = 20_000
MIN_SILHOUETTE = 0.1
MAX_INSTANCES = 1000
LID_NEIGHBORS = 100
LID_POINTS = 20_000  # whose neighbours are searched among all: the mean is known to about 0.3 %
PARTS_TOKENS = 8192  # tokens that the parts of a space are measured on
GLOVE = "glove-6b-50d"


@dataclass(frozen=True)
class Published:
    """A line of the paper's table 3: vectors, dimensions, mean LID with 1 − cos taken for a distance."""

    title: str
    n_vectors: int
    n_dims: int
    lid: float


@dataclass(frozen=True)
class Setup:
    """One space, or the layers of one model."""

    name: str  # on the command line and in files
    title: str
    model: str  # name, folder or hub id of a model; name or file of word vectors
    is_static: bool = False  # one vector a word, of no context
    is_causal: bool = False  # a GPT-like model, of which alone the paper shows manifolds
    is_tuned: bool = False  # with a contrastive loss, which takes vectors apart
    parts: bool = False  # measure the parts of the space: symbols and words, clusters and the common mean
    note: str = ""


_MINILM, _MPNET, _SMOLLM2 = "all-MiniLM-L6-v2", "all-mpnet-base-v2", "smollm2-135m"
SETUPS = {
    setup.name: setup
    for setup in (
        Setup("minilm", "MiniLM-L6", _MINILM, is_tuned=True, note="BERT-like, tuned for sentences"),
        Setup("mpnet", "MPNet", _MPNET, is_tuned=True, note="BERT-like, tuned for sentences"),
        Setup(
            "smollm2", "SmolLM2-135M", _SMOLLM2, is_causal=True,
            note="GPT-like, rotary positions, 4-bit weights",
        ),
        Setup("glove", "GloVe 6B", GLOVE, is_static=True, note="static, 50 dimensions"),
        Setup("minilm-parts", "MiniLM-L6", _MINILM, parts=True),
        Setup("mpnet-parts", "MPNet", _MPNET, parts=True),
        Setup("smollm2-parts", "SmolLM2-135M", _SMOLLM2, is_causal=True, parts=True),
    )
}  # fmt: skip

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
CONTEXTUAL = ("bert-base-uncased", "distilbert-base-uncased", "openai-gpt", "gpt2", "elmo")
STATIC = ("glove.twitter.27B.100d.txt", "glove.840B.300d.txt", "GoogleNews-vectors-negative300.bin")
