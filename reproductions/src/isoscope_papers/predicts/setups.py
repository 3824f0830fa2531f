"""Which spaces are measured, on which texts, by which metrics and tasks.

    isoscope reproduce predicts --setup all --data data -o results

encodes the same texts with every layer of every model, and with every correction of its last layer; measures
each space without labels; scores it on tasks of the very same texts; and asks which metric predicts the
score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SEED = 0
LAYERS, CHECKPOINTS, CORRECTIONS = "layers", "checkpoints", "corrections"
FAMILIES = (LAYERS, CHECKPOINTS, CORRECTIONS)
MASKED, CONTRAST, ENCODER, TABLE = (
    "masked",
    "contrast",
    "encoder",
    "table",
)  # how vectors are made, if not by layers
WITHOUT_FIRST = "mean_without_first"  # the mean of all tokens but the first, which is an attention sink


@dataclass(frozen=True)
class Setup:
    """The spaces of one model, or of one training run.

    Attributes:
        name, title: on the command line, and on the page.
        model: its short name, folder or hub id; for checkpoints, the name of their training.
        kind: how vectors are made: `LAYERS`, `MASKED`, `CONTRAST`, `ENCODER` (one vector a text) or `TABLE`.
        poolings: how token states become one vector; the first is the model's own.
        prefix: what is written before each text.
        every: only each so-many-th layer is measured, and the last.
        about: what the model is.
    """

    name: str
    title: str
    model: str
    kind: str = LAYERS
    poolings: tuple[str, ...] = ("mean",)
    prefix: str = ""
    every: int = 1
    about: str = ""

    @property
    def family(self) -> str:
        """The kind of variation among its uncorrected spaces."""
        return CHECKPOINTS if self.kind in (MASKED, CONTRAST) else LAYERS

    @property
    def lineage(self) -> str:
        """The setup whose model it is, or begins from."""
        return self.model if self.kind in (MASKED, CONTRAST) else self.name


_STATIC = "static; a text is the mean of its"
_CONTRASTED = "that masked LM, tuned on NLI pairs"
_TUNED = "masked, then tuned on pairs of sentences"
SETUPS = {
    setup.name: setup
    for setup in (
        Setup("minilm", "MiniLM-L6", "all-MiniLM-L6-v2", LAYERS, ("mean", "cls", "max"), about=_TUNED),
        Setup("mpnet", "MPNet", "all-mpnet-base-v2", LAYERS, ("mean", "cls"), about=_TUNED),
        Setup(
            "smollm2", "SmolLM2-135M", "smollm2-135m", LAYERS, ("mean", "lasttoken", WITHOUT_FIRST),
            every=3, about="causal, 4-bit weights",
        ),
        Setup(
            "e5", "e5-small", "e5-small", ENCODER, prefix="query: ",
            about="contrastively trained; last layer only",
        ),
        Setup("glove", "GloVe", "glove-6b-50d", TABLE, about=f"{_STATIC} words"),
        Setup("wordllama", "WordLlama", "wordllama-256", TABLE, about=f"{_STATIC} tokens"),
        Setup("masked", "masked LM", "masked", MASKED, about="trained here on WikiText-2"),
        Setup("contrastive", "masked LM, contrastive", "masked", CONTRAST, about=_CONTRASTED),
    )
}  # fmt: skip

# ---------------------------------------------------------------- training runs
TOKENIZER = "all-MiniLM-L6-v2"  # whose words the masked models read
STEPS = 512
SNAPSHOTS = (0, 8, 32, 64, 128, 256, 512)
_TRAINING: dict[str, Any] = {"window": 64, "batch_size": 16, "steps": STEPS, "learning_rate": 1e-3}
TRAININGS: dict[str, dict[str, Any]] = {
    "masked": _TRAINING | {"n_layers": 4, "n_dims": 128, "n_heads": 4, "seed": 0},
}
HELD_OUT = 300  # texts of the validation split on which the loss is computed
CONTRASTS = (8, 32, 64, 128)  # updates of each contrastive run, all from the masked model
CONTRASTING: dict[str, Any] = {"temperature": 0.05, "batch_size": 64, "learning_rate": 2e-4, "max_length": 48}

# ---------------------------------------------------------------- texts
PAIRS, LABELS, SEARCH, ANALOGIES = "pairs", "labels", "search", "analogies"
SENTENCES, WORDS = "sentences", "words"


@dataclass(frozen=True)
class Material:
    """Texts and what is known of them.

    Attributes:
        name, title: in the data, and on the page.
        kind: `PAIRS` with a score, texts with `LABELS`, `SEARCH` for the other text of a pair, `ANALOGIES`.
        corpora: by name in the registry, its split.
        n_items: items drawn from each corpus; of labels, from each label.
        domain: `SENTENCES` or `WORDS`.
        positive: the label of the pairs to be found.
        tasks: those of its labels; clusters are not looked for where there are two labels.
    """

    name: str
    title: str
    kind: str
    corpora: tuple[tuple[str, str | None], ...]
    n_items: int
    domain: str = SENTENCES
    positive: str = ""
    tasks: tuple[str, ...] = ("knn", "probe", "clustering")


MATERIALS = {
    one.name: one
    for one in (
        Material("stsb", "STS-B", PAIRS, (("stsb", "test"),), 300),
        Material("sts12-16", "STS12–16", PAIRS, tuple((f"sts{year}", None) for year in range(12, 17)), 50),
        Material("sick", "SICK", PAIRS, (("sick", None),), 250),
        Material("banking77", "Banking77", LABELS, (("banking77", "test"),), 5),
        Material("stackoverflow", "StackOverflow", LABELS, (("stackoverflow", None),), 20),
        Material("sst2", "SST-2", LABELS, (("sst2", "dev"),), 200, tasks=("knn", "probe")),
        Material("cola", "CoLA", LABELS, (("cola", "dev"),), 150, tasks=("probe",)),
        Material("qqp", "QQP", SEARCH, (("qqp", "subset of 23k"),), 200, positive="duplicate"),
        Material("snli", "SNLI", SEARCH, (("snli", "dev"),), 200, positive="entailment"),
        Material("men", "MEN", PAIRS, (("men", None),), 500, WORDS),
        Material("simlex999", "SimLex-999", PAIRS, (("simlex999", None),), 500, WORDS),
        Material("analogies", "Google analogies", ANALOGIES, (("google_analogies", None),), 2000, WORDS),
    )
}

# ---------------------------------------------------------------- corrections of last layers
CORRECTED: dict[str, tuple[float, ...]] = {  # by name, their strengths
    "center": (1,),
    "normalize": (1,),
    "center_normalize": (1,),
    "standardize": (1,),
    "all_but_the_top": (1, 4, 16),  # directions
    "whiten": (0.25, 0.5, 0.75, 1),
    "remove_dimensions": (1,),  # of the largest share in the mean cosine
    "pca": (2, 8),  # one direction in so many is kept
    "truncate": (2, 8),  # the first of so many dimensions are kept
    "signs": (1,),
}

# ---------------------------------------------------------------- what is measured
# without labels; the sign is what each is said to mean: 1 where high values are said to be good, −1 low ones
METRICS: dict[str, int] = {
    "isoscore_debiased": 1,
    "partition_isotropy": 1,
    "mean_cosine": -1,
    "uniformity": -1,
    "participation_ratio": 1,
    "effective_rank": 1,
    "rankme": 1,
    "rankme_debiased": 1,
    "stable_rank": 1,
    "alpha_req": -1,
    "power_law_exponent": -1,
    "twonn": -1,
    "gride": -1,
    "lid": -1,
    "correlation_dimension": -1,
    "hubness": -1,
    "top_dimension_share": -1,
    "dimensions_for_half": 1,
    "norm_variation": -1,
    "mean_norm": -1,
    "cluster_learnability": 1,
}
LABEL_METRICS = ("silhouette", "silhouette_cosine", "between_share", "nc1_debiased", "lidar")
PAIR_METRICS = ("alignment",)  # of the pairs to be found
MAX_ROWS = 600  # texts of a material on which metrics are computed
N_NEIGHBORS = 5
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # of the ridge classifier, times the training rows
