"""The experiments on the theory of Mickus, Grönroos and Attieh 2024: which space, and what is done with it.

    isoscope reproduce theory --setup statements

checks every statement on random cases; the others train networks, trade isotropy against clusters, and train
vectors with a triplet loss. A setup is kept as one file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MODEL = "all-MiniLM-L6-v2"
N_CASES = 200  # random cases each statement is checked on
N_ROWS = 1000  # vectors of a space
TRADE: dict[str, Any] = {"steps": 300, "sample": 300}  # of trade-offs; so many vectors of a space
N_TRADE_LABELS = 5  # the most frequent supersenses
FOLLOW: dict[str, Any] = {"steps": 200, "every": 5, "seeds": 3}  # of vectors that are trained themselves
N_TRIPLETS = 5_000  # drawn at each update
DEPTHS, WIDTHS = (1, 2, 3, 4, 5), (64, 8)  # of the networks' hidden layers
DEEP_STEPS, DEEP_SEEDS, LEARNING_RATE = 400, (0, 1), 3e-3
N_MEASURED = 9  # times along a network's training, the start and the end among them


@dataclass(frozen=True)
class Setup:
    """One experiment.

    Attributes:
        name: on the command line.
        title: of its space, in tables.
        space: whose vectors and labels are taken: "digits", "polarity", "supersense"; none for statements.
        deep: train networks of all depths and widths to classify them.
        trades: second objectives that isotropy is traded against.
        objectives: what the vectors themselves are trained for.
    """

    name: str
    title: str = ""
    space: str = ""
    deep: bool = False
    trades: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()


_POLARITY, _TRADED = f"polarity, {MODEL}", ("silhouette", "cross_entropy")
SETUPS = {
    one.name: one
    for one in (
        Setup("statements"),
        Setup("digits", "digits", "digits", deep=True),
        Setup("polarity", _POLARITY, "polarity", deep=True, trades=_TRADED),
        Setup("supersense", f"{N_TRADE_LABELS} supersenses, GloVe", "supersense", trades=_TRADED),
        Setup("triplet", _POLARITY, "polarity", objectives=("triplet", "classifier")),
    )
}
