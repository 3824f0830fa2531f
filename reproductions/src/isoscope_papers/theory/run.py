"""Run a setup of the theory, keep it, and read it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from isoscope import encode, trade_off, train_embeddings
from isoscope.models import best_device
from isoscope_papers.classifiers.run import prepare_task
from isoscope_papers.classifiers.setups import SETUPS as CLASSIFIERS
from isoscope_papers.corpora import load_corpus
from isoscope_papers.study import Place
from isoscope_papers.theory import setups
from isoscope_papers.theory.deep import DeepRun, run_deep
from isoscope_papers.theory.setups import Setup
from isoscope_papers.theory.statements import STATEMENTS

Labelled = tuple[Any, Sequence[Any]]
FOLLOWED = ("isoscore", "silhouette", "between_share")


@dataclass(frozen=True)
class Followed:
    """Vectors trained for one objective.

    Attributes:
        objective: "triplet" or "classifier".
        data: which vectors.
        n: how many.
        steps: updates at which they were measured.
        curves: of each quantity, the values of every seed at these updates.
        r: correlation of IsoScore and silhouette, of the curves averaged over the seeds.
        r_by_seed: of each seed's own.
    """

    objective: str
    data: str
    n: int
    steps: tuple[int, ...]
    curves: dict[str, list[list[float]]]
    r: float
    r_by_seed: tuple[float, ...]

    def mean(self, name: str) -> np.ndarray:
        """Return the mean of a curve over the seeds."""
        return np.mean(self.curves[name], axis=0)


@dataclass(frozen=True)
class Run:
    """One setup that was run.

    Attributes:
        setup: its name.
        held: of each statement, in how many random cases what is said of it was so.
        deep: networks of all depths.
        trades: trade-offs as `TradeOff.to_dict` gives them, by what was traded on what.
        followed: vectors trained for each objective.
    """

    setup: str
    held: dict[str, int] = field(default_factory=dict)
    deep: tuple[DeepRun, ...] = ()
    trades: dict[str, Any] = field(default_factory=dict)
    followed: tuple[Followed, ...] = ()


def run_setup(setup: Setup, _options: Any, place: Place) -> list[Run]:
    """Do what a setup declares."""
    if not setup.space:
        run = Run(setup.name, {key: one.n_held(n_cases=setups.N_CASES) for key, one in STATEMENTS.items()})
    else:
        X, y = _SPACES[setup.space](place)
        if place.device is not None:
            X = torch.as_tensor(X).to(best_device(place.device))
        traded = {
            f"{setup.title}: {second}": trade_off(
                X, y, objectives=("isoscore", second), progress=False, **setups.TRADE
            ).to_dict()
            for second in setup.trades
        }
        deep = run_deep(X, y, data=setup.title) if setup.deep else ()
        followed = [_followed(X, y, objective, setup.title) for objective in setup.objectives]
        run = Run(setup.name, {}, tuple(deep), traded, tuple(followed))
    return [run]


def _followed(X: Any, y: Sequence[Any], objective: str, data: str) -> Followed:
    """Train the vectors themselves; triplets are drawn at each update."""
    found = train_embeddings(
        X, y, objective=objective, n_triplets=setups.N_TRIPLETS if objective == "triplet" else None,
        metrics=FOLLOWED, progress=False, **setups.FOLLOW,
    )  # fmt: skip
    curves = {name: found.curves(name).tolist() for name in ("loss", "accuracy", *FOLLOWED)}
    relation = found.correlation("isoscore", "silhouette")
    steps = tuple(int(step) for step in found.steps)
    return Followed(objective, data, len(y), steps, curves, relation.r, tuple(relation.r_by_seed))


def _digits(_place: Place) -> Labelled:
    """Return handwritten digits, 64 numbers each, that come with scikit-learn."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    rows = _some_rows(len(digits.target))
    return digits.data[rows], digits.target[rows].tolist()


def _polarity(place: Place) -> Labelled:
    """Return sentences of film reviews, encoded."""
    corpus = load_corpus("polarity", data=place.data, download=place.download)
    rows = _some_rows(len(corpus))
    texts = [corpus.columns[0][row] for row in rows]
    vectors = encode(texts, model=setups.MODEL, download=place.download, device=place.device, progress=False)
    return vectors, [str(corpus.labels[row]) for row in rows]


def _supersenses(place: Place) -> Labelled:
    """Return words of the most frequent supersenses, each of one only."""
    task = prepare_task(CLASSIFIERS["supersense-single"], place)
    names = [str(label) for label in task.labels]
    frequent = {name for name, _ in Counter(names).most_common(setups.N_TRADE_LABELS)}
    rows = [row for row, name in enumerate(names) if name in frequent]
    return task.vectors[rows], [names[row] for row in rows]


def _some_rows(n: int) -> list[int]:
    return np.sort(np.random.default_rng(0).permutation(n)[: setups.N_ROWS]).tolist()


_SPACES: dict[str, Callable[[Place], Labelled]] = {
    "digits": _digits,
    "polarity": _polarity,
    "supersense": _supersenses,
}
