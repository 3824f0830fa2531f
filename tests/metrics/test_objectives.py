import itertools

import numpy as np
import pytest
import torch
from tests.raising import raises

from isoscope.errors import InputError, LabelError, ShapeError
from isoscope.metrics import objectives
from isoscope.metrics.objectives import (
    classifier_objective,
    classifier_objective_expansion,
    isotropy_objective,
    silhouette_objective,
    triplet_bound,
    triplet_objective,
)
from isoscope.space import Space
from isoscope.statistics import GroupMoments, Moments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 4))
LABELS = np.array(["c", "a", "b", "a", "c", "a"] * 3 + ["a", "b", "b", "c", "c", "only"])
NAMES = sorted(set(LABELS))
CLASSES = RNG.normal(size=(len(NAMES), 4))
LABELLED = [silhouette_objective, triplet_objective, triplet_bound]


def sign(a, b):
    return -1 if a == b else 1


def brute_silhouette(rows, labels):
    pairs = itertools.product(zip(rows, labels, strict=True), repeat=2)
    return sum(sign(k, m) * np.sum((a - b) ** 2) for (a, k), (b, m) in pairs)


def brute_triplet(rows, labels):
    D = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    n = len(rows)
    return sum(
        -max(D[a, p] - D[a, q], 0)
        for a, p, q in itertools.product(range(n), repeat=3)
        if a != p and labels[a] == labels[p] != labels[q]
    )


def brute_bound(rows, labels):
    n, total = len(rows), 0.0
    for i, j in itertools.product(range(n), repeat=2):
        n_k = np.sum(labels == labels[i])
        total += ((n_k - n) if labels[i] == labels[j] else (n_k - 1)) * np.linalg.norm(rows[i] - rows[j])
    return total


BRUTE = {silhouette_objective: brute_silhouette, triplet_objective: brute_triplet, triplet_bound: brute_bound}


@pytest.mark.parametrize("objective", LABELLED)
def test_by_brute_force(objective):
    assert objective(X, LABELS) == pytest.approx(BRUTE[objective](X, LABELS), rel=1e-12)


def test_isotropy_objective_by_brute_force():
    expected = sum(np.sum((a - b) ** 2) for a, b in itertools.product(X, repeat=2))
    assert isotropy_objective(X) == pytest.approx(expected, rel=1e-12)
    assert isotropy_objective([[1.0, 2.0]]) == 0


def test_variance_from_pairwise_distances():
    """Zhang et al. 2012, as the paper cites it: the variances are all squared distances over 2n²."""
    assert isotropy_objective(X) / (2 * len(X) ** 2) == pytest.approx(X.var(axis=0).sum(), rel=1e-12)


def test_silhouette_objective_is_all_less_twice_within():
    within = sum(isotropy_objective(X[name == LABELS]) for name in NAMES)
    assert silhouette_objective(X, LABELS) == pytest.approx(isotropy_objective(X) - 2 * within, rel=1e-12)


def test_classifier_objective_by_brute_force_in_both_forms():
    expected = 0.0
    for row, label in zip(X, LABELS, strict=True):
        for name, vector in zip(NAMES, CLASSES, strict=True):
            expected -= sign(name, label) * (row @ vector)
    assert classifier_objective(X, LABELS, classes=CLASSES) == pytest.approx(expected, rel=1e-12)
    assert classifier_objective_expansion(X, LABELS, classes=CLASSES) == pytest.approx(expected, rel=1e-12)


def test_priors_cancel_for_balanced_binary_labels():
    """The paper's footnote 2: with two balanced labels only the distances are left of equation 3."""
    labels = np.array([0, 1] * 12)
    distances = sum(
        0.5 * sign(k, label) * np.sum((row - CLASSES[k]) ** 2)
        for row, label in zip(X, labels, strict=True)
        for k in (0, 1)
    )
    assert classifier_objective(X, labels, classes=CLASSES[:2]) == pytest.approx(distances, rel=1e-12)


def test_triplet_bound_is_above_the_triplet_objective():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows, labels = rng.normal(size=(15, 2)), np.array([0, 1, 2] * 5)
        assert triplet_objective(rows, labels) <= triplet_bound(rows, labels) + 1e-9


def test_triplet_bound_is_attained_where_every_triplet_is_violated():
    rows, labels = np.array([[0.0], [10.0], [5.0]]), [0, 0, 1]
    assert triplet_objective(rows, labels) == triplet_bound(rows, labels) == -10


def test_triplet_objective_is_zero_for_separated_labels():
    rows = np.vstack([X, X + 100])
    assert triplet_objective(rows, [0] * 24 + [1] * 24) == 0


def test_the_bound_does_not_bound_the_silhouette_objective_at_every_scale():
    """The appendix says it does; squared distances outgrow plain ones."""
    rows, labels = np.array([[0.0], [1.0], [9.0], [10.0]]), [0, 0, 1, 1]
    assert silhouette_objective(rows, labels) > triplet_bound(rows, labels)


def test_ties_in_the_triplet_objective():
    rows = np.random.default_rng(1).integers(0, 3, size=(18, 2)).astype(float)
    labels = np.array([0, 1, 2] * 6)
    assert triplet_objective(rows, labels) == pytest.approx(brute_triplet(rows, labels), rel=1e-12)


@pytest.mark.parametrize("objective", LABELLED)
def test_small_blocks_give_the_same(objective, monkeypatch):
    expected = objective(X, LABELS)
    monkeypatch.setattr(objectives, "_BLOCK_NUMBERS", 50)
    assert objective(X, LABELS) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("objective", LABELLED)
def test_float32_far_from_the_origin(objective):
    far = (X * 30 + 1e4).astype(np.float32)
    centred = far.astype(np.float64) - 1e4
    assert objective(far, LABELS) == pytest.approx(BRUTE[objective](centred, LABELS), rel=1e-6)
    assert isotropy_objective(far) == pytest.approx(isotropy_objective(centred), rel=1e-6)


@pytest.mark.parametrize("objective", LABELLED)
def test_float64_very_far_from_the_origin(objective):
    rows = np.round(X * 1024) / 1024
    assert objective(rows + 2.0**24, LABELS) == pytest.approx(objective(rows, LABELS), rel=1e-9)


@pytest.mark.parametrize("objective", LABELLED)
@pytest.mark.parametrize("scale", [1e20, 1e-30])
def test_scale(objective, scale):
    power = 2 if objective is silhouette_objective else 1
    assert objective(X * scale, LABELS) == pytest.approx(objective(X, LABELS) * scale**power, rel=1e-9, abs=0)
    small = (X * scale).astype(np.float32)
    assert objective(small, LABELS) == pytest.approx(objective(X, LABELS) * scale**power, rel=1e-4, abs=0)


def test_collapsed_labels_keep_their_digits():
    centres = np.array([[0.0, 0.0], [1e6, 0.0]])
    rows = np.repeat(centres, 8, axis=0) + np.tile([[0, 0], [0, 1]], (8, 1)) * 2.0**-10
    labels = np.repeat([0, 1], 8)
    groups = GroupMoments.of(rows, labels)
    assert groups.within.tolist() == [8 * 2.0**-22] * 2
    assert triplet_bound(rows, labels) == pytest.approx(brute_bound(rows, labels), rel=1e-12)


def test_a_space_and_the_statistics_give_the_same():
    space, groups = Space(X, labels=LABELS), GroupMoments.of(X, LABELS)
    for objective in LABELLED:
        assert objective(space) == objective(X, LABELS)
    assert silhouette_objective(groups) == silhouette_objective(X, LABELS)
    assert isotropy_objective(Moments.of(X)) == isotropy_objective(X)
    for form in (classifier_objective, classifier_objective_expansion):
        assert form(groups, classes=CLASSES) == form(space, classes=CLASSES)


@pytest.mark.parametrize("objective", LABELLED)
def test_gradients(objective):
    vectors = torch.tensor(X, requires_grad=True)
    assert torch.autograd.gradcheck(lambda V: objective(V, LABELS), (vectors,))


def test_gradients_of_the_classifier_objective():
    inputs = (torch.tensor(X, requires_grad=True), torch.tensor(CLASSES, requires_grad=True))
    for form in (classifier_objective, classifier_objective_expansion):
        assert torch.autograd.gradcheck(lambda V, C, form=form: form(V, LABELS, classes=C), inputs)


def test_bad_arguments():
    with pytest.raises(InputError, match="`labels` is missing"):
        silhouette_objective(X)
    with raises(ShapeError, argument="classes", message=r"\(3, 4\)", wanted=r"\(4, 4\)"):
        classifier_objective(X, LABELS, classes=CLASSES[:3])
    with pytest.raises(LabelError, match="only one label"):
        triplet_objective(X, ["a"] * 24)
    with pytest.raises(LabelError, match="a different label"):
        triplet_bound(X, range(24))
