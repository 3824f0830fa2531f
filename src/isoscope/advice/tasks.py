"""The tasks a correction is tried on: each a score of held-out items, given vectors to learn from."""

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
from isoscope.errors import InputError
from isoscope.metrics.clusters import softmax_regression
from isoscope.statistics.directions import unit_rows

PENALTIES = (100.0, 10.0, 1.0)  # of the linear probe, the strongest first
_HELD_OUT = 0.2  # of the training rows, to choose the penalty on
_SOLVER: dict[str, Any] = {"max_iter": 60, "warm_start": True}
_CHOOSING, _TOLERANCE = 5e-4, 2e-4  # of the solver: to tell penalties apart, and for the probe itself
N_NEIGHBORS = 5
_AT_ONCE = 2**22  # cosines held in memory
_DECIMALS = 12  # of a cosine: of equal rows it is 1 to 13 or more, even where float32 has moved one of them


@dataclass(frozen=True)
class LabelFold:
    """Corrected vectors and labels of one split.

    Attributes:
        train, test: (n, d) and (m, d) vectors, float32.
        train_codes, test_codes: their labels, 0 … K − 1.
        n_labels: K.
        seed: of whatever a task draws.
    """

    train: Tensor
    test: Tensor
    train_codes: Tensor
    test_codes: Tensor
    n_labels: int
    seed: int


def linear_probe(fold: LabelFold) -> float:
    """Return the accuracy of a logistic regression.

    Vectors are centred and divided by one number, so that a dimension's mean square is 1: no correction gains
    by its scale alone. The penalty is the best of `PENALTIES` on a fifth of the training rows; then all are
    fitted.
    """
    from sklearn.exceptions import ConvergenceWarning

    center = fold.train.mean(dim=0)
    scale = (fold.train - center).square().mean().sqrt().clamp(min=1e-30)
    train, test = (((rows - center) / scale).numpy() for rows in (fold.train, fold.test))
    codes, K = fold.train_codes.numpy(), fold.n_labels
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(fold.seed)).numpy()
    n_held = max(1, int(_HELD_OUT * len(train)))
    held, rest = order[:n_held], order[n_held:]
    penalty, least = PENALTIES[0], math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few steps more change no prediction
        model = softmax_regression(penalty, n_labels=K, **_SOLVER)
        if len(np.unique(codes[rest])) == K:
            for weaker in PENALTIES:  # each starts from the one before
                strength = softmax_regression(weaker, n_labels=K).C
                model.set_params(C=strength, tol=_CHOOSING).fit(train[rest], codes[rest])
                chances = model.predict_proba(train[held])[np.arange(n_held), codes[held]]
                loss = -float(np.log(chances.clip(min=1e-30)).mean())
                if loss > least:
                    break  # weaker penalties fit the noise better still
                penalty, least = weaker, loss
        strength = softmax_regression(penalty, n_labels=K).C
        model.set_params(C=strength, tol=_TOLERANCE).fit(train, codes)
    return float((model.predict(test) == fold.test_codes.numpy()).mean())


def knn(fold: LabelFold) -> float:
    """Return the accuracy of a vote of the 5 nearest training rows by cosine, each weighted by its cosine."""
    n_right, start = 0, 0
    for cosines in _cosines(fold.test, fold.train):
        closeness, nearest = cosines.topk(min(N_NEIGHBORS, len(fold.train)), dim=1)
        votes = torch.zeros(len(cosines), fold.n_labels, dtype=closeness.dtype)
        votes.scatter_add_(1, fold.train_codes[nearest], closeness + 1)
        n_right += int((votes.argmax(dim=1) == fold.test_codes[start : start + len(cosines)]).sum())
        start += len(cosines)
    return n_right / len(fold.test)


def clustering(fold: LabelFold) -> float:
    """Return the V-measure of held-out rows by the nearest of K centres of k-means on the training rows."""
    from sklearn.metrics import v_measure_score

    centers = kmeans(fold.train, fold.n_labels, seed=fold.seed, n_init=2).centers
    nearest = torch.cdist(fold.test, centers.to(fold.test)).argmin(dim=1)
    return float(v_measure_score(fold.test_codes.numpy(), nearest.numpy()))


def retrieval(fold: LabelFold) -> float:
    """Return the mean average precision: each held-out row asks for the others of its label, by cosine.

    Answers are held-out rows too. Were they training rows, which folds share, folds would agree too well and
    gains by chance would be called sure. Rows alone with their label are not asked; 0 where all are.
    """
    total, n_asked, start = 0.0, 0, 0
    ranks = torch.arange(1, len(fold.test), dtype=torch.float64)
    for cosines in _cosines(fold.test, fold.test):
        places = torch.arange(len(cosines))
        cosines[places, start + places] = -torch.inf  # itself comes last, and is left out
        order = cosines.argsort(dim=1, descending=True, stable=True)[:, :-1]
        right = (fold.test_codes[order] == fold.test_codes[start + places, None]).double()
        n_right = right.sum(dim=1)
        precision = (right.cumsum(dim=1) / ranks * right).sum(dim=1)
        total += float((precision / n_right.clamp(min=1)).sum())
        n_asked += int((n_right > 0).sum())
        start += len(cosines)
    return total / max(n_asked, 1)


def _cosines(queries: Tensor, answers: Tensor) -> Iterator[Tensor]:
    """Yield cosines of queries to answers, some queries at a time; a zero vector has cosine 0 to all."""
    ask, answer = (unit_rows(rows)[0].float() for rows in (queries, answers))
    for some in ask.split(max(1, _AT_ONCE // len(answers))):
        yield some @ answer.T


def similarity(firsts: Tensor, seconds: Tensor, scores: Tensor) -> float:
    """Return Spearman's correlation of cosines with scores; cosines that differ by rounding alone tie."""
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
SCORES = {
    "linear_probe": "accuracy of a logistic regression",
    "knn": f"accuracy of the {N_NEIGHBORS} nearest by cosine",
    "clustering": "V-measure of k-means",
    "retrieval": "mean average precision, by label, among held-out rows",
    PAIR_TASK: "Spearman's ρ of cosine and score",
}


def chosen_tasks(tasks: str | Iterable[str] | None, *, has_labels: bool, has_pairs: bool) -> list[str]:
    """Return the tasks asked for, or all that labels and pairs allow."""
    open_tasks = [*(LABEL_TASKS if has_labels else ()), *((PAIR_TASK,) if has_pairs else ())]
    if not open_tasks:
        raise InputError("advise needs a task: pass labels, one a row, or pairs of rows with scores")
    if tasks is None:
        return open_tasks
    names = split_names(tasks)
    for name in names:
        if name not in SCORES:
            raise InputError(f"task {name!r} is not known; wanted some of {', '.join(SCORES)}")
        if name not in open_tasks:
            raise InputError(f"task {name!r} needs {'pairs' if name == PAIR_TASK else 'labels'}: pass them")
    return [name for name in SCORES if name in names]


def split_names(names: str | Iterable[str]) -> list[str]:
    """Split comma-separated names into a list.

    >>> split_names(["knn, clustering", "retrieval"])
    ['knn', 'clustering', 'retrieval']
    """
    texts = [names] if isinstance(names, str) else names
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]
