from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.labels import as_labels
from isoscope.training.objectives import _drawn, triplet_loss


def triplets(y: np.ndarray) -> list[tuple[int, int, int]]:
    n = range(len(y))
    return [(a, p, q) for a, p, q in itertools.product(n, n, n) if a != p and y[a] == y[p] != y[q]]


def brute_force(X: torch.Tensor, y: np.ndarray) -> tuple[torch.Tensor, float]:
    losses, right = [], 0
    for a, p, q in triplets(y):
        excess = (X[a] - X[p]).norm() - (X[a] - X[q]).norm()
        losses.append(excess.clamp(min=0))
        right += int(excess <= 0)
    return torch.stack(losses).mean(), right / len(losses)


def test_all_triplets_equal_brute_force_with_gradient(rng) -> None:
    X = torch.from_numpy(rng.normal(size=(15, 3))).requires_grad_()
    y = np.array([0] * 6 + [1] * 5 + [2] * 3 + [3])  # the last one is alone: an anchor of no triplet
    y = y[rng.permutation(15)]
    expected, share = brute_force(X, y)
    (gradient,) = torch.autograd.grad(expected, X)
    losses, right = triplet_loss(X[None], as_labels(y), n_triplets=None, seeds=[0], step=0)
    (found,) = torch.autograd.grad(losses.sum(), X)
    assert losses.item() == pytest.approx(expected.item(), rel=1e-12)
    assert right.item() == pytest.approx(share)
    torch.testing.assert_close(found, gradient, rtol=1e-9, atol=1e-12)


def test_it_is_the_papers_objective(rng) -> None:
    X = rng.normal(size=(20, 4))
    y = np.arange(20) % 3
    losses, _ = triplet_loss(torch.from_numpy(X)[None], as_labels(y), n_triplets=None, seeds=[0], step=0)
    assert losses.item() == pytest.approx(-iso.metrics.triplet_objective(X, y) / len(triplets(y)), rel=1e-9)


def test_drawn_triplets_are_triplets_and_evenly_drawn() -> None:
    y = np.array([0, 1, 0, 1, 1, 2])
    drawn = _drawn(as_labels(y), 40_000, seed=1, step=0).T.tolist()
    counts = dict.fromkeys(triplets(y), 0)
    for triplet in drawn:
        counts[tuple(triplet)] += 1  # a KeyError where it is no triplet
    expected = len(drawn) / len(counts)
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())
    assert drawn != _drawn(as_labels(y), 40_000, seed=1, step=1).T.tolist()


@pytest.mark.slow
def test_triplet_training_separates(rng) -> None:
    X = rng.normal(size=(60, 5)).astype(np.float32)
    y = np.arange(60) % 2
    every = iso.train_embeddings(X, y, objective="triplet", steps=60, seeds=2, learning_rate=0.02)
    assert every["loss"][60] < 0.5 * every["loss"][0]
    assert every["accuracy"][60] > every["accuracy"][0]
    assert every["silhouette"][60] > every["silhouette"][0] + 0.05
    assert every.n_parameters == 60 * 5
    np.testing.assert_array_equal(every.curves("loss")[0], every.curves("loss")[1])  # nothing is random
    some = iso.train_embeddings(
        X, y, objective="triplet", n_triplets=500, steps=20, seeds=2, learning_rate=0.02
    )
    assert (some.curves("loss")[0] != some.curves("loss")[1]).any()
    assert some["loss"][0] == pytest.approx(every["loss"][0], rel=0.3)


def test_triplets_of_a_hidden_layer(rng) -> None:
    X = rng.normal(size=(40, 5)).astype(np.float32)
    run = iso.train_embeddings(X, np.arange(40) % 2, objective="triplet", hidden=[3], steps=5, seeds=2)
    assert run.n_parameters == 40 * 5 + 3 * 6
    assert (run.curves("loss")[0] != run.curves("loss")[1]).all()
    assert "hidden1_silhouette" in run.metrics
