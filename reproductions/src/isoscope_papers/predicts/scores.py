"""How well vectors serve a task: one score for each material and way of using it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import v_measure_score
from sklearn.model_selection import StratifiedKFold

from isoscope.clustering import kmeans
from isoscope_papers.predicts.setups import ANALOGIES, LABELS, N_NEIGHBORS, PAIRS, PENALTIES, SEED
from isoscope_papers.predicts.texts import Items

TASKS = {
    "similarity": "Spearman's ρ of cosine and score",
    "knn": f"accuracy of the {N_NEIGHBORS} nearest by cosine",
    "probe": "accuracy of a ridge classifier",
    "clustering": "V-measure of k-means",
    "search": "mean reciprocal rank of the other text of a pair",
    "analogies": "accuracy of 3CosAdd",
}


@dataclass(frozen=True)
class Score:
    """The score of one task: its value, its standard error (NaN where none is known), its items."""

    task: str
    value: float
    standard_error: float
    n: int


def scores(items: Items, vectors: np.ndarray, known: np.ndarray) -> Iterator[Score]:
    """Yield the scores of vectors, one row a text, on the items whose texts all have one."""
    kept = items.known(known)
    rows, targets, parts = items.rows[kept], items.targets[kept], items.parts[kept]
    kind = items.material.kind
    if kind == PAIRS:
        yield similarity(vectors, rows, targets, parts)
    elif kind == LABELS:
        yield from on_labels(vectors[rows[:, 0]], targets, items.material.tasks)
    elif kind == ANALOGIES:
        yield analogies(vectors, rows, known)
    else:
        yield search(vectors[rows[:, 0]], vectors[rows[:, 1]])


def unit(X: np.ndarray) -> np.ndarray:
    """Return rows of length 1, in float64; a zero row stays zero."""
    wide = X.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(lengths > 0, lengths, 1))


def similarity(X: np.ndarray, rows: np.ndarray, targets: np.ndarray, parts: np.ndarray) -> Score:
    """Score Spearman's ρ of cosines, the mean over the corpora of the material."""
    units = unit(X)
    cosines = (units[rows[:, 0]] * units[rows[:, 1]]).sum(axis=1).round(12)
    found, variances = [], []
    for part in dict.fromkeys(parts.tolist()):
        own = parts == part
        is_constant = np.ptp(cosines[own]) == 0  # such as those of the first token before the first layer
        rho = 0.0 if is_constant else float(spearmanr(cosines[own], targets[own]).statistic)
        found.append(rho)
        variances.append((1 + rho**2 / 2) * (1 - rho**2) ** 2 / (own.sum() - 3))
    error = math.sqrt(sum(variances)) / len(found)
    return Score("similarity", float(np.mean(found)), error, len(rows))


def on_labels(X: np.ndarray, labels: np.ndarray, tasks: Sequence[str]) -> Iterator[Score]:
    """Score neighbours, a probe and clusters, as far as they are among the tasks."""
    codes = np.unique(labels, return_inverse=True)[1]
    if "knn" in tasks:
        yield _accuracy("knn", _voted(unit(X), codes) == codes)
    if "probe" in tasks:
        yield _accuracy("probe", _probed(X, codes) == codes)
    if "clustering" in tasks:
        clusters = kmeans(X, int(codes.max()) + 1, seed=SEED, n_init=4).labels.codes.numpy()
        yield Score("clustering", float(v_measure_score(codes, clusters)), math.nan, len(X))


def _voted(units: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the label that the nearest other rows vote for, by their cosines."""
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argpartition(-cosines, N_NEIGHBORS, axis=1)[:, :N_NEIGHBORS]
    votes = np.zeros((len(codes), codes.max() + 1))
    np.add.at(
        votes, (np.arange(len(codes))[:, None], codes[nearest]), np.take_along_axis(cosines, nearest, 1) + 1
    )
    return np.asarray(votes.argmax(axis=1))


def _probed(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the label that a ridge classifier, fitted to the other half, predicts for each row."""
    found = np.empty_like(codes)
    for train, test in StratifiedKFold(2, shuffle=True, random_state=SEED).split(X, codes):
        center = X[train].mean(axis=0, dtype=np.float64)
        rows = X.astype(np.float64) - center
        rows /= max(np.sqrt(np.square(rows[train]).sum(axis=1).mean()), 1e-300)
        probe = RidgeClassifierCV(alphas=np.array(PENALTIES)).fit(rows[train], codes[train])
        found[test] = probe.predict(rows[test])
    return found


def search(first: np.ndarray, second: np.ndarray) -> Score:
    """Score the reciprocal rank, by cosine, of each first text's partner among all second texts."""
    cosines = unit(first) @ unit(second).T
    own = np.diag(cosines)[:, None]
    ranks = 1 + (cosines > own + 1e-12).sum(axis=1)
    reciprocal = 1 / ranks
    error = float(reciprocal.std(ddof=1)) / math.sqrt(len(ranks))
    return Score("search", float(reciprocal.mean()), error, len(ranks))


def analogies(X: np.ndarray, rows: np.ndarray, known: np.ndarray) -> Score:
    """Score whether the word nearest to b − a + c, other than these, is d."""
    units = unit(X)
    a, b, c, d = rows.T
    cosines = (units[b] - units[a] + units[c]) @ units.T
    cosines[:, ~known] = -np.inf
    np.put_along_axis(cosines, rows[:, :3], -np.inf, axis=1)
    return _accuracy("analogies", cosines.argmax(axis=1) == d)


def _accuracy(task: str, right: np.ndarray) -> Score:
    share = float(right.mean())
    return Score(task, share, math.sqrt(share * (1 - share) / len(right)), len(right))
