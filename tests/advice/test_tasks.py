from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score
from sklearn.neighbors import KNeighborsClassifier

from isoscope.advice.tasks import LabelFold, clustering, knn, linear_probe, retrieval, similarity
from isoscope.metrics.clusters import softmax_regression


@pytest.fixture
def fold(rng: np.random.Generator) -> LabelFold:
    y = rng.integers(0, 3, 180)
    X = torch.tensor(rng.normal(size=(180, 5)) + 1.2 * np.eye(5)[y]).float()
    codes = torch.tensor(y)
    return LabelFold(X[:120], X[120:], codes[:120], codes[120:], 3, 0)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_probe_minimises_the_cross_entropy_of_a_softmax(fold: LabelFold, n_labels: int) -> None:
    """At the fitted weights the gradient of Σ −log softmax(Wx + b)_y + λ‖W‖²/2 is nought."""
    rows, codes = fold.train.double(), fold.train_codes % n_labels
    model = softmax_regression(0.5, n_labels=n_labels, tol=1e-10, max_iter=1000).fit(rows, codes)
    W, b = (torch.tensor(found) for found in (model.coef_, model.intercept_))
    if n_labels == 2:
        W, b = torch.cat([-W / 2, W / 2]), torch.cat([-b / 2, b / 2])
    W.requires_grad_()
    loss = torch.nn.functional.cross_entropy(rows @ W.T + b, codes, reduction="sum") + W.square().sum() / 4
    loss.backward()
    assert float(W.grad.abs().max()) < 1e-4


def test_a_label_that_is_rare_in_training_has_a_probe(fold: LabelFold) -> None:
    codes = torch.where(torch.arange(120) == 7, 3, fold.train_codes)
    assert linear_probe(replace(fold, train_codes=codes, n_labels=4)) > 0.5


def test_probe_is_not_moved_by_shift_and_scale(fold: LabelFold) -> None:
    moved = LabelFold(
        100 * fold.train + 7, 100 * fold.test + 7, fold.train_codes, fold.test_codes, 3, fold.seed
    )
    assert linear_probe(moved) == linear_probe(fold) > 0.6


def test_knn_is_scikit_learns(fold: LabelFold) -> None:
    def weight(distances: np.ndarray) -> np.ndarray:
        return 2 - distances  # 1 + cosine

    reference = KNeighborsClassifier(5, metric="cosine", weights=weight, algorithm="brute")
    reference.fit(fold.train.numpy(), fold.train_codes.numpy())
    assert knn(fold) == reference.score(fold.test.numpy(), fold.test_codes.numpy())


def test_retrieval_is_mean_average_precision(fold: LabelFold) -> None:
    test = fold.test.double() / fold.test.double().norm(dim=1, keepdim=True)
    scores, codes = (test @ test.T).numpy(), fold.test_codes.numpy()
    precisions = []
    for i in range(len(test)):
        others = np.arange(len(test)) != i
        precisions.append(average_precision_score(codes[others] == codes[i], scores[i, others]))
    assert np.isclose(retrieval(fold), np.mean(precisions), atol=1e-6)
    lone = fold.test_codes.clone()
    lone[4] = 99  # no other row has its label: it is not asked
    answers = replace(fold, test_codes=lone)
    assert 0 < retrieval(answers) < 1
    assert retrieval(replace(fold, test_codes=torch.arange(len(test)))) == 0


def test_large_folds_are_taken_in_parts(fold: LabelFold, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = knn(fold), retrieval(fold)
    monkeypatch.setattr("isoscope.advice.tasks._AT_ONCE", 3 * len(fold.train))
    assert (knn(fold), retrieval(fold)) == pytest.approx(whole, abs=1e-12)


def test_clustering_finds_clear_clusters(fold: LabelFold) -> None:
    far = 50 * torch.eye(5)
    clear = LabelFold(
        fold.train + far[fold.train_codes],
        fold.test + far[fold.test_codes],
        fold.train_codes,
        fold.test_codes,
        3,
        0,
    )
    assert clustering(clear) == pytest.approx(1, abs=1e-12)
    assert clustering(fold) < 0.9


def test_similarity_is_spearman(rng: np.random.Generator) -> None:
    A, B = rng.normal(size=(50, 4)), rng.normal(size=(50, 4))
    scores = np.round(rng.uniform(0, 5, 50))  # ties
    cosines = (A * B).sum(1) / np.linalg.norm(A, axis=1) / np.linalg.norm(B, axis=1)
    found = similarity(torch.tensor(A), torch.tensor(B), torch.tensor(scores))
    assert np.isclose(found, spearmanr(cosines, scores).statistic)
    assert similarity(torch.ones(9, 2), torch.ones(9, 2), torch.arange(9.0)) == 0.0


def test_cosines_of_equal_rows_tie(rng: np.random.Generator) -> None:
    rows = torch.tensor(rng.normal(size=(60, 24)))
    assert similarity(rows, rows.clone(), torch.arange(60.0)) == 0.0
    moved = rows.float() * (1 + 1e-7 * torch.tensor(rng.normal(size=(60, 24))))  # as a correction's rounding
    assert similarity(rows.float(), moved.float(), torch.arange(60.0)) == 0.0
