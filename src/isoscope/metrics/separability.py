"""How separable labels are: by their nearest neighbours, and by a linear classifier on unseen vectors."""

from __future__ import annotations

from typing import Any

import torch

from isoscope.arrays import as_matrix
from isoscope.errors import InputError, UndefinedError, check_seed
from isoscope.labels import as_clusters
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.space import known_rows
from isoscope.statistics.neighbors import Neighbors

_PURITY_NEIGHBORS = 10
_metric = family("clusters", range=(0.0, 1.0), default=False)


@_metric(
    needs=("neighbors", "labels"),
    call=lambda metric, shelf: metric(
        shelf.neighbors, shelf.labels, k=min(_PURITY_NEIGHBORS, shelf.neighbors.k)
    ),
    high="neighbours share labels",
    invariances=ALL_INVARIANCES,
    paper="nearest-neighbour purity",
    sentence="{value:.0%} of a point's nearest neighbours carry its label",
)
def knn_purity(X: Any, labels: Any = None, *, k: int = _PURITY_NEIGHBORS) -> float:
    """Mean share of a point's k nearest neighbours that carry its label.

    Range [0, 1]; high means labels live in neighbourhoods, even where they are no round clusters.
    Invariant to rotation, translation and scale.

    >>> knn_purity([[0.0], [1.0], [4.0], [5.0]], labels=[0, 0, 1, 1], k=1)
    1.0
    """
    n = X.distances.shape[0] if isinstance(X, Neighbors) else as_matrix(X).shape[0]
    codes = as_clusters(known_rows(X, labels, "labels"), n=n).codes
    indices = Neighbors.of(X, k=k).indices
    codes = codes.to(indices.device)
    return float((codes[indices] == codes[:, None]).double().mean())


@_metric(
    needs=("vectors", "labels"),
    call=lambda metric, shelf: metric(shelf.vectors, shelf.labels, seed=shelf.seed),
    high="linearly separable",
    invariances=("translation", "scale"),
    paper="logistic regression, 5-fold cross-validation (scikit-learn)",
    sentence="a linear classifier gets {value:.0%} of unseen points right",
)
def linear_probe_accuracy(X: Any, labels: Any = None, *, folds: int = 5, seed: int = 0) -> float:
    """Cross-validated accuracy of a logistic regression on standardised vectors.

    Labels are kept in proportion in every fold; labels with fewer members than folds make the folds
    fewer, and labels with a single member are left out. Range [0, 1]; high is linearly separable. Not exactly
    invariant to rotation (the penalty acts on standardised coordinates), invariant to translation
    and scale. Estimator: scikit-learn.

    >>> import numpy as np
    >>> X = np.vstack([np.eye(2)[[0] * 9], np.eye(2)[[1] * 9]])
    >>> linear_probe_accuracy(X, [0] * 9 + [1] * 9)
    1.0
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    check_seed(seed)
    if folds < 2:
        raise InputError(f"folds is {folds}; wanted at least 2")
    matrix = as_matrix(X)
    clusters = as_clusters(known_rows(X, labels, "labels"), n=matrix.shape[0]).to(torch.device("cpu"))
    kept = clusters.counts[clusters.codes] > 1
    codes = clusters.codes[kept]
    if codes.unique().numel() < 2:
        raise UndefinedError("linear_probe_accuracy needs two labels with at least 2 points each")
    vectors = matrix.detach().cpu()[kept].double().numpy()
    folds = min(folds, int(clusters.counts[clusters.counts > 1].min()))
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return float(cross_val_score(probe, vectors, codes.numpy(), cv=split).mean())
