"""`predict_collapse`: where training with a classifier will take IsoScore, before any training."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import UndefinedError, check_between, check_choice, check_whole
from isoscope.metrics.collapse_law import collapse_value, collapse_value_of_sets, isoscore_derivative
from isoscope.metrics.frontier import between_share
from isoscope.metrics.isotropy import isoscore
from isoscope.results import Result
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.moments import Moments
from isoscope.tables import Grid
from isoscope.training.problem import Problem
from isoscope.training.rigid_labels import OPTIMIZERS, RigidLabels

_N_DRAWS = 4  # of the classifier
_SEED = 0
_MOST_LABELS = 200  # predicted within seconds
_LEAST_REACH = 1.0
_MOST_UNEVEN = 10  # rows of the largest label for one of the smallest
_RESOLVED = 0.02  # of IsoScore at the start: smaller changes have no sign
_SMALL = 0.1  # of the start: smaller predicted changes have come out the other way
_LARGEST_RATE = 1_000_000  # more than any training takes


@dataclass(frozen=True)
class Assumption:
    """One assumption of the law: its name, whether it holds, and the figures that say so."""

    name: str
    holds: bool
    reason: str


@dataclass(frozen=True, repr=False)
class CollapsePrediction(Result):
    """Where training vectors with a linear classifier is predicted to take their IsoScore.

    Attributes:
        n, n_dims, n_labels: rows, dimensions, and labels that the classifier scores.
        n_sets: distinct sets of labels; `n_labels` where each row has one label.
        multi_label: rows have sets of labels, and the loss is binary cross-entropy.
        isoscore: at the start.
        collapse_value: IsoScore once labels have collapsed to the corners of a regular simplex; 1 for more
            labels than it has room for, an upper bound.
        first_step: derivative of IsoScore in the direction in which the vectors first move, by gradient flow
            from a classifier of zeros, for a motion as long as the vectors' spread.
        end: IsoScore after the steps.
        end_sd: its standard deviation over drawn classifiers; None where only one was drawn.
        between_share, end_between_share: the share of variance between labels, at the start and the end.
        sign: of end − isoscore: 1, −1, or 0 where the model does not tell.
        reach: an estimate of the longest way that the optimiser takes a vector, over the root mean square
            distance of vectors to the mean of their label. It counts the learning rate an update in each
            dimension for Adam, which can move farther, and over n for SGD.
        assumptions: of the law, with what was found.
        holds: whether all of them hold.
        learning_rate, steps, optimizer: the settings of the training.
    """

    n: int
    n_dims: int
    n_labels: int
    n_sets: int
    multi_label: bool
    isoscore: float
    collapse_value: float
    first_step: float
    end: float
    end_sd: float | None
    between_share: float
    end_between_share: float
    sign: int
    reach: float
    assumptions: tuple[Assumption, ...]
    holds: bool
    learning_rate: float
    steps: int
    optimizer: str

    @property
    def title(self) -> str:
        """What is predicted, in one line."""
        return (
            f"{self.n:,} vectors × {self.n_dims:,}, {self.n_labels:,} labels: "
            f"{self.steps:,} updates of {self.optimizer} at {self.learning_rate:g}"
        )

    @property
    def opening(self) -> str:
        """The prediction, in one line."""
        word = {1: "rises", -1: "falls", 0: "stays about where it is"}[self.sign]
        return (
            f"IsoScore {word}: {self.isoscore:.4f} to {self.end:.4f}; "
            f"{self.collapse_value:.4f} if labels collapsed to points"
        )

    @property
    def caution(self) -> str:
        """The assumptions that fail, or that the change is small, in one line; empty where neither is so."""
        failing = [f"{one.name} ({one.reason})" for one in self.assumptions if not one.holds]
        if failing:
            return f"assumptions that do not hold: {'; '.join(failing)}"
        change = abs(self.end / self.isoscore - 1)
        return f"a change of {change:.0%} is small: it may go the other way" if change < _SMALL else ""

    def beside(self, end: float) -> str:
        """Return the predicted IsoScore beside the one that training came to, in one line."""
        turned = self.sign != 0 and (end - self.isoscore) * self.sign < 0
        miss = ": it went the other way" if turned else ""
        return f"IsoScore at the end: predicted {self.end:.4f}, came to {end:.4f}{miss}"

    def grids(self) -> Iterable[Grid]:
        """Return the predicted numbers, and the assumptions."""
        numbers = [
            ("IsoScore", self.isoscore, self.end),
            ("ρ, variance between labels", self.between_share, self.end_between_share),
        ]
        yield Grid("", ("", "start", "end"), numbers, ("start", "end"))
        rows = [(one.name, "yes" if one.holds else "no", one.reason) for one in self.assumptions]
        yield Grid("", ("assumption", "holds", "because"), rows)

    def _columns(self) -> dict[str, list[Any]]:
        values = {
            name: [value]
            for name, value in vars(self).items()
            if value is None or isinstance(value, str | int | float)
        }
        return values | {"fails": [", ".join(one.name for one in self.assumptions if not one.holds)]}


@torch.no_grad()
def predict_collapse(
    X: Any, labels: Any = None, *, learning_rate: float = 1e-3, steps: int = 1000, optimizer: str = "adam"
) -> CollapsePrediction:
    """Predict where training vectors together with a linear classifier takes their IsoScore.

    Cross-entropy draws the vectors of a label together and labels apart, toward the corners of a regular
    simplex (neural collapse), where IsoScore is

        (K − 2)/(d − 1)      for K ≤ d + 1 balanced labels; see `collapse_value` for others

    So training that gets there lowers isotropy where it starts above, and raises it where it starts below.
    How far it gets in a number of updates is found from a model: every label moves as one body, so that

        Σ_end = W + B_end

    with the spread W within labels as it is, and B_end from one displacement a label, which follows the
    optimiser in few large steps. Nothing is trained, and X does not change. `train_embeddings` with the same
    settings shows what comes. Papers: Papyan, Han, Donoho 2020 for the collapse; the rest is ours.

    Args:
        X: (n, d) vectors in any array, or a Space.
        labels: one label for each vector, or a set of labels for each; not needed where X carries them.
        learning_rate, steps: of the training.
        optimizer: "adam", "adamw" or "sgd".

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(300, 20)) / 20**0.5, np.arange(300) % 2
    >>> two = predict_collapse(X, y)
    >>> two.sign, two.collapse_value, two.holds
    (-1, 0.0, True)
    """
    check_choice("optimizer", optimizer, OPTIMIZERS)
    _check_training(learning_rate, steps)
    return _predicted(
        Problem.of(X, labels, name="labels"), learning_rate=learning_rate, steps=steps, optimizer=optimizer
    )


@torch.no_grad()
def prediction_beside(
    X: Any, labels: Any, *, learning_rate: float, steps: int = 1000, optimizer: str = "adam"
) -> CollapsePrediction | None:
    """Return the prediction, to be shown beside other results.

    None for more than 200 labels, which take more than seconds, and where training would leave the range of
    numbers. The arguments are those of `predict_collapse`.
    """
    _check_training(learning_rate, steps)
    problem = Problem.of(X, labels, name="labels")
    if problem.clusters.n_labels > _MOST_LABELS:
        return None
    try:
        return _predicted(problem, learning_rate=learning_rate, steps=steps, optimizer=optimizer)
    except UndefinedError:
        return None


def _check_training(learning_rate: Any, steps: Any) -> None:
    wanted = f"a number above 0 and at most {_LARGEST_RATE:,}"
    check_between("learning_rate", learning_rate, 0, _LARGEST_RATE, wanted=wanted, open_at="low")
    check_whole("steps", steps)


def _predicted(problem: Problem, *, learning_rate: float, steps: int, optimizer: str) -> CollapsePrediction:
    moments = Moments.of(problem.table)
    groups = GroupMoments.of(problem.table, problem.clusters)
    start, share = float(isoscore(moments)), float(between_share(groups))
    bodies = RigidLabels.of(problem, seed=_SEED)
    D, factor = bodies.displacements(
        learning_rate=learning_rate, steps=steps, optimizer=optimizer, n_draws=_N_DRAWS, seed=_SEED
    )
    ends, shares = _after(moments, groups, D, factor)
    sd = float(ends.std()) if len(ends) > 1 else None
    end = float(ends.mean())
    if not math.isfinite(end):
        raise UndefinedError(
            "The end of training is undefined: numbers leave the range of float32",
            hint="lower learning_rate, or divide the vectors by their mean length",
        )
    is_resolved = abs(end - start) > max(_RESOLVED * start, 2 * (sd or 0.0))
    reach = _reach(groups, learning_rate, steps, optimizer)
    assumptions = _assumptions(problem, reach, start, end, is_resolved)
    return CollapsePrediction(
        n=problem.n_items, n_dims=moments.n_dims, n_labels=len(problem.label_names),
        n_sets=problem.clusters.n_labels, multi_label=problem.indicator is not None,
        isoscore=start, collapse_value=_collapse_value(problem, moments.n_dims),
        first_step=_first_motion(groups, moments.scatter, bodies), end=end, end_sd=sd, between_share=share,
        end_between_share=float(shares.mean()), sign=int(math.copysign(1, end - start)) if is_resolved else 0,
        reach=reach, assumptions=assumptions, holds=all(one.holds for one in assumptions),
        learning_rate=learning_rate, steps=steps, optimizer=optimizer,
    )  # fmt: skip


def _collapse_value(problem: Problem, n_dims: int) -> float:
    if problem.indicator is None:
        return collapse_value(problem.clusters.counts, n_dims)
    return collapse_value_of_sets(problem.indicator, n_dims)


def _after(moments: Moments, groups: GroupMoments, D: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    """Return (B,) IsoScores and shares between labels once labels have moved by (B, C, d) displacements."""
    within = moments.scatter - groups.between
    p = groups.counts / groups.counts.sum()
    scores, shares = [], []
    for displacement in D.double():
        means = groups.offsets + displacement / factor  # in units of the vectors as they are left
        means = means - p @ means
        between = (means * groups.counts[:, None]).T @ means
        total = within + between
        participation = total.trace().square() / total.square().sum()
        scores.append((participation - 1) / (len(total) - 1))
        shares.append(between.trace() / total.trace())
    return torch.stack(scores), torch.stack(shares)


def _first_motion(groups: GroupMoments, scatter: Tensor, bodies: RigidLabels) -> float:
    """Return the derivative of IsoScore as rows begin to move: by (Y − P)·Ẇ, with Ẇ = (Y − P)ᵀX/n."""
    residuals = bodies.targets.double() - (0.5 if bodies.has_sets else 1 / bodies.targets.shape[1])
    weighted = residuals * groups.counts[:, None]
    motion = residuals @ (weighted.T @ groups.means)  # rows with the same labels move alike
    motion = motion - groups.counts @ motion / groups.counts.sum()
    length = (groups.counts @ motion.square()).sum().sqrt()
    if not length > 0:
        return 0.0
    moved = (groups.offsets * groups.counts[:, None]).T @ motion * (scatter.trace().sqrt() / length)
    return isoscore_derivative(scatter, moved + moved.T)


def _reach(groups: GroupMoments, learning_rate: float, steps: int, optimizer: str) -> float:
    """Estimate the longest way of a vector over the spread within labels; infinite if there is no spread."""
    n, d = float(groups.counts.sum()), groups.n_dims
    spread = math.sqrt(float(groups.within.sum()) / n)
    way = learning_rate * steps * (math.sqrt(d) if optimizer != "sgd" else 1 / n)
    return way / spread if spread > 0 else math.inf


def _assumptions(
    problem: Problem, reach: float, start: float, end: float, is_resolved: bool
) -> tuple[Assumption, ...]:
    counts = problem.clusters.counts
    K, d = len(problem.label_names), problem.table.shape[1]
    uneven = float(counts.max() / counts.min())
    return (
        Assumption(
            "one label a vector", problem.indicator is None,
            "cross-entropy" if problem.indicator is None else "sets of labels, binary cross-entropy",
        ),
        Assumption("labels fit a simplex", d + 1 >= K, f"{K:,} labels, {d:,} dimensions"),
        Assumption(
            "vectors can move", reach >= _LEAST_REACH,
            f"the optimiser reaches {reach:.3g} × the spread within labels",
        ),
        Assumption(
            "labels of similar size", uneven <= _MOST_UNEVEN,
            f"{int(counts.min()):,} to {int(counts.max()):,} vectors a label",
        ),
        Assumption(
            "two vectors a label", int(counts.min()) >= 2, f"{int(counts.min()):,} in the smallest",
        ),
        Assumption("the change is clear", is_resolved, f"from {start:.4f} to {end:.4f}"),
    )  # fmt: skip
