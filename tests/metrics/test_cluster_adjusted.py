"""Cluster-centred cosines against loops over pairs in float64, and against what their geometry says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.metrics.cluster_adjusted import cluster_adjusted_similarities


def tokens(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 3, 60)
    X = rng.normal(size=(60, 5)) + 8 * np.eye(5)[clusters]
    return X, rng.integers(0, 6, 60), clusters


def by_pairs(X: np.ndarray, types: np.ndarray, clusters: np.ndarray) -> tuple[float, float]:
    """Every pair of every cluster, one by one; types weigh alike, then clusters."""
    inter, intra = [], []
    for cluster in np.unique(clusters):
        Y = X[clusters == cluster] - X[clusters == cluster].mean(0)
        kinds = types[clusters == cluster]
        U = Y / np.linalg.norm(Y, axis=1, keepdims=True)
        names = np.unique(kinds)
        inter.append(
            np.mean([
                np.mean([u @ v for u in U[kinds == s] for v in U[kinds == t]])
                for s in names for t in names if s != t
            ])
        )  # fmt: skip
        pairs = [
            [U[i] @ U[j] for i in np.flatnonzero(kinds == t) for j in np.flatnonzero(kinds == t) if i != j]
            for t in names
        ]
        intra.append(np.mean([np.mean(found) for found in pairs if found]))
    return float(np.mean(inter)), float(np.mean(intra))


def test_against_every_pair() -> None:
    X, types, clusters = tokens()
    found = cluster_adjusted_similarities(X, token_types=types, clusters=clusters)
    inter, intra = by_pairs(X, types, clusters)
    assert found.s_inter == pytest.approx(inter, abs=1e-12)
    assert found.s_intra == pytest.approx(intra, abs=1e-12)
    assert (found.n_clusters, found.n_skipped) == (3, 0)


def test_clusters_weigh_alike_whatever_their_size() -> None:
    X, types, clusters = tokens()
    few = np.concatenate([np.flatnonzero(clusters == 0)[:6], np.flatnonzero(clusters != 0)])
    found = cluster_adjusted_similarities(X[few], token_types=types[few], clusters=clusters[few])
    inter, intra = by_pairs(X[few], types[few], clusters[few])
    assert (found.s_inter, found.s_intra) == pytest.approx((inter, intra), abs=1e-12)


def test_an_offset_of_each_cluster_changes_nothing() -> None:
    X, types, clusters = tokens()
    plain = cluster_adjusted_similarities(X, token_types=types, clusters=clusters)
    moved = X + 100 * np.random.default_rng(1).normal(size=(3, 5))[clusters]
    found = cluster_adjusted_similarities(moved, token_types=types, clusters=clusters)
    assert (found.s_inter, found.s_intra) == pytest.approx((plain.s_inter, plain.s_intra), abs=1e-10)
    assert iso.metrics.s_inter(moved, token_types=types) != pytest.approx(
        iso.metrics.s_inter(X, token_types=types), abs=0.01
    )


def test_one_cluster_is_the_space_centred() -> None:
    X, types, _ = tokens()
    found = cluster_adjusted_similarities(X, token_types=types, clusters=np.zeros(60, dtype=int))
    centred = X - X.mean(0)
    assert found.s_inter == pytest.approx(iso.metrics.s_inter(centred, token_types=types), abs=1e-12)
    assert found.s_intra == pytest.approx(iso.metrics.s_intra(centred, token_types=types), abs=1e-12)


def test_drawing_comes_near_and_depends_on_the_seed() -> None:
    rng = np.random.default_rng(0)
    types, clusters = rng.integers(0, 300, 6000), rng.integers(0, 2, 6000)
    X = rng.normal(size=(6000, 8)) + rng.normal(size=(300, 8))[types]
    exact = cluster_adjusted_similarities(X, token_types=types, clusters=clusters)
    drawn = [
        cluster_adjusted_similarities(
            X, token_types=types, clusters=clusters, sampled=True, max_instances=5, seed=seed
        )
        for seed in range(6)
    ]
    assert len({one.s_inter for one in drawn}) == len({one.s_intra for one in drawn}) == 6
    assert np.mean([one.s_inter for one in drawn]) == pytest.approx(exact.s_inter, abs=0.003)
    assert np.mean([one.s_intra for one in drawn]) == pytest.approx(exact.s_intra, abs=0.02)
    again = cluster_adjusted_similarities(
        X, token_types=types, clusters=clusters, sampled=True, max_instances=5, seed=5
    )
    assert again == drawn[5]


def test_clusters_without_a_value_are_skipped_and_counted() -> None:
    X, types, clusters = tokens()
    types[clusters == 1] = np.arange((clusters == 1).sum())  # no type occurs twice
    types[clusters == 2] = 0  # one type only
    found = cluster_adjusted_similarities(X, token_types=types, clusters=clusters)
    assert (found.n_clusters, found.n_skipped) == (1, 2)
    inside = clusters == 0
    inter, intra = by_pairs(X[inside], types[inside], clusters[inside])
    assert (found.s_inter, found.s_intra) == pytest.approx((inter, intra), abs=1e-12)
    with pytest.raises(iso.UndefinedError, match="none of the 2 clusters"):
        cluster_adjusted_similarities(X[~inside], token_types=types[~inside], clusters=clusters[~inside])


def test_a_space_carries_types_and_clusters() -> None:
    X, types, clusters = tokens()
    space = iso.Space(X, token_types=types, labels=clusters)
    plain = cluster_adjusted_similarities(X, token_types=types, clusters=clusters)
    assert cluster_adjusted_similarities(space) == plain
    with pytest.raises(iso.InputError, match="`clusters` is missing"):
        cluster_adjusted_similarities(iso.Space(X, token_types=types))
    with pytest.raises(iso.InputError, match="`token_types` is missing"):
        cluster_adjusted_similarities(X, clusters=clusters)


def test_half_precision_is_lifted() -> None:
    X, types, clusters = tokens()
    half = torch.from_numpy(X).to(torch.float16)
    found = cluster_adjusted_similarities(half, token_types=types, clusters=clusters)
    inter, intra = by_pairs(half.double().numpy(), types, clusters)
    assert (found.s_inter, found.s_intra) == pytest.approx((inter, intra), abs=1e-5)
