"""What is measured: which models, on how many tokens, and by which metrics.

    isoscope reproduce layers --setup all --data data -o results

measures every layer of each model on the same tokens of WikiText-2's test split, and of one masked model at
ten checkpoints of its training; and compares bfloat16 with float32 arithmetic on rounded numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WINDOW = 512  # tokens a model reads at once, or fewer where it takes fewer
MAX_TOKENS = 8192  # few enough for minutes on two cores
SAMPLE = 1000  # tokens on which metrics of neighbours are computed
ROUNDED_TEXTS = 40  # short texts for bfloat16: the model runs on them eight times

# the masked model that is trained here; a snapshot before training, then at powers of two
STEPS = 512
SNAPSHOTS = (0, *(2**power for power in range(1, 10)))
TRAINING: dict[str, Any] = {
    "n_layers": 4, "n_dims": 128, "n_heads": 4, "window": 64, "batch_size": 32, "steps": STEPS,
    "learning_rate": 1e-3, "seed": 0,
}  # fmt: skip
HELD_OUT = 300  # texts of the validation split on which the loss is computed
TOKENIZER = "all-MiniLM-L6-v2"  # whose words the masked model reads

DEPTH, TRAINED, ROUNDED = "depth", "training", "bfloat16"


@dataclass(frozen=True)
class Setup:
    """The layers of one model, of one model over training, or of one model in bfloat16."""

    name: str
    title: str
    model: str
    kind: str = DEPTH
    note: str = ""


_MINILM, _SMOLLM2 = "all-MiniLM-L6-v2", "smollm2-135m"
SETUPS = {
    setup.name: setup
    for setup in (
        Setup("minilm", "MiniLM-L6", _MINILM, note="masked, then tuned on pairs of sentences"),
        Setup("mpnet", "MPNet", "all-mpnet-base-v2", note="masked, then tuned on pairs of sentences"),
        Setup("smollm2", "SmolLM2-135M", _SMOLLM2, note="causal, 4-bit weights"),
        Setup("masked", "masked LM", "", TRAINED, note=f"trained here for {STEPS} updates"),
        Setup("minilm-bfloat16", "MiniLM-L6", _MINILM, ROUNDED),
        Setup("smollm2-bfloat16", "SmolLM2-135M", _SMOLLM2, ROUNDED),
    )
}


@dataclass(frozen=True)
class Measure:
    """A metric of the figure."""

    name: str
    title: str


# one row of the figure each
SHOWN = (
    Measure("mean_cosine", "mean cosine"),
    Measure("adjusted_self_similarity", "self-similarity,\nadjusted"),
    Measure("adjusted_intra_similarity", "intra-similarity,\nadjusted"),
    Measure("isoscore_debiased", "IsoScore"),
    Measure("rankme_debiased", "RankMe / d"),
    Measure("alpha_req", "α-ReQ"),
    Measure("twonn", "TwoNN dimension"),
    Measure("hubness", "hubness"),
)
# all that is measured: exact over all tokens, but for those of neighbours
METRICS = (
    *(measure.name for measure in SHOWN),
    "mean_norm", "norm_variation", "self_similarity", "intra_similarity", "s_inter", "isoscore",
    "partition_isotropy", "effective_rank", "participation_ratio", "stable_rank", "top_dimension_share",
    "gride", "correlation_dimension", "lid", "uniformity",
)  # fmt: skip
ROUNDED_METRICS = (
    "mean_norm", "mean_cosine", "self_similarity", "intra_similarity", "isoscore", "effective_rank",
)  # fmt: skip
