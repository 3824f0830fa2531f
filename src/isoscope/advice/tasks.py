"""The tasks that corrections are tried on. Each scores held-out items, given vectors to learn from."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.clustering import kmeans
from isoscope.errors import InputError, Setting, check_choice
from isoscope.metrics.clusters import softmax_regression
from isoscope.queries.ranks import Ranks
from isoscope.queries.relevance import Relevance
from isoscope.queries.retrieval import average_precision
from isoscope.space import Space
from isoscope.statistics.directions import unit_rows

PENALTIES = (100.0, 10.0, 1.0)  # of the linear probe, the strongest first
_HELD_OUT = 0.2  # share of the training rows that the penalty is chosen on
_SOLVER: dict[str, Any] = {"max_iter": 60, "warm_start": True}
_CHOOSING, _TOLERANCE = 5e-4, 2e-4  # of the solver: to choose the penalty, and for the probe itself
# for scikit-learn: checks of small tables would take longer than the tasks
_CHECKED = {"assume_finite": True, "skip_parameter_validation": True}
N_NEIGHBORS = 5
_AT_ONCE = 2**22  # cosines in memory
_DECIMALS = 12  # of a cosine: those of equal rows agree to 13 decimals or more


@dataclass(frozen=True)
class LabelFold:
    """Corrected vectors and labels of one split.

    Attributes:
        train, test: (n, d) and (m, d) vectors, float32.
        train_codes, test_codes: their labels, 0 … K − 1.
        n_labels: K.
        seed: the seed of the task.
    """

    train: Tensor
    test: Tensor
    train_codes: Tensor
    test_codes: Tensor
    n_labels: int
    seed: int


def linear_probe(fold: LabelFold) -> float:
    """Return the accuracy of a logistic regression.

    Vectors are centred and divided by one number, so that the mean square of a coordinate is 1: the scale of
    a correction does not matter. The penalty is the best of `PENALTIES` on a fifth of the training rows. The
    model is then fitted on all of them.
    """
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning

    center = fold.train.mean(dim=0)
    scale = (fold.train - center).square().mean().sqrt().clamp(min=1e-30)
    train, test = (((rows - center) / scale).numpy() for rows in (fold.train, fold.test))
    codes, K = fold.train_codes.numpy(), fold.n_labels
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(fold.seed)).numpy()
    n_held = max(1, int(_HELD_OUT * len(train)))
    held, rest = order[:n_held], order[n_held:]
    penalty, least = PENALTIES[0], math.inf
    with warnings.catch_warnings(), config_context(**_CHECKED):
        warnings.simplefilter("ignore", ConvergenceWarning)  # more steps would not change predictions
        model = softmax_regression(penalty, n_labels=K, **_SOLVER)
        if len(np.unique(codes[rest])) == K:
            for weaker in PENALTIES:  # each starts from the previous solution
                model.C, model.tol = softmax_regression(weaker, n_labels=K).C, _CHOOSING
                model.fit(train[rest], codes[rest])
                chances = model.predict_proba(train[held])[np.arange(n_held), codes[held]]
                loss = -float(np.log(chances.clip(min=1e-30)).mean())
                if loss > least:
                    break  # weaker penalties overfit more
                penalty, least = weaker, loss
        model.C, model.tol = softmax_regression(penalty, n_labels=K).C, _TOLERANCE
        model.fit(train, codes)
        return float((model.predict(test) == fold.test_codes.numpy()).mean())


def knn(fold: LabelFold) -> float:
    """Return the accuracy of a vote of the 5 nearest training rows by cosine, weighted by the cosine."""
    n_right, start = 0, 0
    for cosines in _cosines(fold.test, fold.train):
        closeness, nearest = cosines.topk(min(N_NEIGHBORS, len(fold.train)), dim=1)
        votes = torch.zeros(len(cosines), fold.n_labels, dtype=closeness.dtype)
        votes.scatter_add_(1, fold.train_codes[nearest], closeness + 1)
        n_right += int((votes.argmax(dim=1) == fold.test_codes[start : start + len(cosines)]).sum())
        start += len(cosines)
    return n_right / len(fold.test)


def clustering(fold: LabelFold) -> float:
    """Return the V-measure of held-out rows, assigned to the nearest k-means centre of the training rows."""
    from sklearn import config_context
    from sklearn.metrics import v_measure_score

    centers = kmeans(fold.train, fold.n_labels, seed=fold.seed, n_init=2).centers
    nearest = torch.cdist(fold.test, centers.to(fold.test)).argmin(dim=1)
    with config_context(**_CHECKED):
        return float(v_measure_score(fold.test_codes.numpy(), nearest.numpy()))


def retrieval(fold: LabelFold) -> float:
    """Return the mean average precision of a search by cosine for held-out rows with the same label.

    Queries and results are both held-out rows. Training rows are shared by folds; as results they would make
    the folds too similar, and gains by chance significant. Rows without another one of their label are no
    queries; the result is 0 where there are no queries.
    """
    rows = torch.arange(len(fold.test))
    relevance = Relevance.of_labels(*2 * [fold.test_codes.tolist()])
    ranks = Ranks.of(Space(fold.test), fold.test, *relevance.padded(), own=rows)
    precisions = average_precision(ranks)[ranks.has_any]
    return float(precisions.mean()) if len(precisions) else 0.0


def _cosines(queries: Tensor, answers: Tensor) -> Iterator[Tensor]:
    """Yield the cosines of queries and results, some queries at a time; those of a zero vector are 0."""
    ask, answer = (unit_rows(rows)[0].float() for rows in (queries, answers))
    for some in ask.split(max(1, _AT_ONCE // len(answers))):
        yield some @ answer.T


def similarity(firsts: Tensor, seconds: Tensor, scores: Tensor) -> float:
    """Return Spearman's correlation of cosines and scores; cosines that differ by rounding alone are ties."""
    from scipy.stats import rankdata

    cosines = (unit_rows(firsts)[0] * unit_rows(seconds)[0]).sum(dim=1).numpy().round(_DECIMALS)
    a, b = (torch.from_numpy(rankdata(ranked)) for ranked in (cosines, scores.numpy()))
    a, b = a - a.mean(), b - b.mean()
    norms = a.norm() * b.norm()
    return float(a @ b / norms) if norms > 0 else 0.0


LABEL_TASKS: dict[str, Callable[[LabelFold], float]] = {
    "linear_probe": linear_probe,
    "knn": knn,
    "clustering": clustering,
    "retrieval": retrieval,
}
PAIR_TASK = "similarity"
SEARCH_TASK = "search"
SCORES = {
    "linear_probe": "accuracy of a logistic regression",
    "knn": f"accuracy of the {N_NEIGHBORS} nearest by cosine",
    "clustering": "V-measure of k-means",
    "retrieval": "mean average precision of held-out rows with the same label",
    PAIR_TASK: "Spearman's ρ of cosine and score",
    SEARCH_TASK: "mean average precision of the queries among all documents",
}


def chosen_tasks(
    tasks: str | Iterable[str] | None, *, has_labels: bool, has_pairs: bool, has_queries: bool = False
) -> list[str]:
    """Return the tasks with these names, or all that labels, pairs and queries allow."""
    has = {"labels": has_labels, "pairs": has_pairs, "queries": has_queries}
    open_tasks = [name for name in SCORES if has[_needs(name)]]
    if not open_tasks:
        raise InputError(
            "There is no task to test on",
            hint=[
                Setting("labels", to="label the rows"),
                Setting("pairs", to="give scored pairs of rows"),
                Setting("queries", to="search the rows"),
            ],
        )
    if tasks is None:
        return open_tasks
    names = split_names(tasks)
    for name in names:
        check_choice("tasks", name, SCORES)
        if name not in open_tasks:
            needed = _needs(name)
            raise InputError(f"the task {name!r} needs {needed}", hint=Setting(needed))
    return [name for name in SCORES if name in names]


def _needs(task: str) -> str:
    """Return the argument that a task needs."""
    return {PAIR_TASK: "pairs", SEARCH_TASK: "queries"}.get(task, "labels")


def split_names(names: str | Iterable[str]) -> list[str]:
    """Split comma-separated names into a list.

    >>> split_names(["knn, clustering", "retrieval"])
    ['knn', 'clustering', 'retrieval']
    """
    texts = [names] if isinstance(names, str) else names
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]
