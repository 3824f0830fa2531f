"""Experiments on what Mickus et al. 2024 conjecture, and on what isotropy and clusters can have at once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.encoders import encode
from isoscope.errors import FileError, InputError
from isoscope.io import read_json
from isoscope.training.trade_off import trade_off
from isoscope.training.trade_off_result import TradeOff
from isoscope_papers.classifiers.run import prepare_task
from isoscope_papers.classifiers.setups import SETUPS
from isoscope_papers.corpora import load_corpus
from isoscope_papers.theory.deep_classifiers import DeepRun, run_deep
from isoscope_papers.theory.equations import STATEMENTS, checked

MODEL = "all-MiniLM-L6-v2"
N_CASES = 200  # random cases each statement is checked on
N_ROWS = 1000  # vectors a network is trained on
N_TRADED = 300  # vectors that are moved
N_TRADE_LABELS = 5  # the most frequent supersenses
TRADE_STEPS = 300
_SECONDS = ("silhouette", "cross_entropy")


@dataclass(frozen=True)
class Findings:
    """Everything that was found.

    Attributes:
        held: of each statement, in how many random cases its finding was so.
        deep: networks of all depths.
        trades: trade-offs, by what was traded on what.
        notes: what was left out, and why.
    """

    held: dict[str, int]
    deep: tuple[DeepRun, ...]
    trades: dict[str, TradeOff]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, unrounded."""
        return {
            "n_cases": N_CASES,
            "held": self.held,
            "deep": [run.to_dict() for run in self.deep],
            "trades": {name: found.to_dict() for name, found in self.trades.items()},
            "notes": list(self.notes),
        }


def run_theory(
    *,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    keep_going: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Findings:
    """Check every statement, train networks on digits and sentences, trade isotropy against clusters.

    Args:
        data: folder of the corpora; ISOSCOPE_DATA where not given.
        download: fetch texts and model where they are not on this machine.
        keep_going: leave out what is not at hand, and say so.
        progress: called with what is done next.
    """
    progress("statements")
    held = {one.key: checked(one, n_cases=N_CASES) for one in STATEMENTS}
    spaces: dict[str, tuple[Any, Sequence[Any]]] = {"digits": digits()}
    words: tuple[Any, Sequence[Any]] | None = None
    notes = []
    try:
        spaces[f"polarity, {MODEL}"] = polarity(data=data, download=download)
    except InputError as error:
        if not keep_going:
            raise
        notes.append(f"polarity was left out: {error}")
    try:
        words = supersenses(data=data, download=download)
    except InputError as error:
        if not keep_going:
            raise
        notes.append(f"supersenses were left out: {error}")
    deep = [run for name, space in spaces.items() for run in run_deep(*space, data=name, progress=progress)]
    traded = {name: space for name, space in spaces.items() if name != "digits"}
    if words is not None:
        traded[f"{N_TRADE_LABELS} supersenses, GloVe"] = words
    trades = {}
    for name, (X, y) in traded.items():
        for second in _SECONDS:
            progress(f"{name}: isoscore against {second}")
            trades[f"{name}: {second}"] = trade_off(
                X, y, objectives=("isoscore", second), steps=TRADE_STEPS, sample=N_TRADED, progress=False
            )
    return Findings(held, tuple(deep), trades, tuple(notes))


def digits() -> tuple[Any, Sequence[Any]]:
    """Handwritten digits, 64 numbers each, that come with scikit-learn."""
    from sklearn.datasets import load_digits

    found = load_digits()
    chosen = np.sort(np.random.default_rng(0).permutation(len(found.target))[:N_ROWS])
    return found.data[chosen], found.target[chosen].tolist()


def polarity(*, data: str | os.PathLike[str] | None, download: bool) -> tuple[Any, Sequence[Any]]:
    """Sentences of film reviews, encoded."""
    corpus = load_corpus("polarity", data=data, download=download)
    chosen = np.sort(np.random.default_rng(0).permutation(len(corpus))[:N_ROWS]).tolist()
    texts = [corpus.columns[0][row] for row in chosen]
    vectors = encode(texts, model=MODEL, download=download, progress=False)
    return vectors, [str(corpus.labels[row]) for row in chosen]


def supersenses(*, data: str | os.PathLike[str] | None, download: bool) -> tuple[Any, Sequence[Any]]:
    """Words of the most frequent supersenses, each of one only."""
    task = prepare_task(SETUPS["supersense-single"], data=data, download=download)
    names = [str(label) for label in task.labels]
    frequent = {name for name, _ in Counter(names).most_common(N_TRADE_LABELS)}
    rows = [row for row, name in enumerate(names) if name in frequent]
    return task.vectors[rows], [names[row] for row in rows]


def read_findings(path: Path) -> Findings:
    """What was kept in a report's JSON."""
    try:
        kept = read_json(path, sealed=False)
        return Findings(
            held=dict(kept["held"]),
            deep=tuple(DeepRun.from_dict(run) for run in kept["deep"]),
            trades={name: TradeOff.from_dict(one) for name, one in kept["trades"].items()},
            notes=tuple(kept["notes"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path} does not hold the findings of isoscope reproduce theory: {error}") from error
