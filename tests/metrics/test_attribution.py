import json

import numpy as np
import pytest
from tests.raising import raises

from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.attribution import attribute_anisotropy
from isoscope.metrics.frontier import scatter_decomposition
from isoscope.metrics.frontier_space import frontier_space
from isoscope.metrics.isotropy import isoscore

RNG = np.random.default_rng(0)
LABELS = np.repeat(["a", "b", "c"], [4, 15, 21])
X = (
    RNG.normal(size=(40, 5)) * [3, 1, 1, 0.5, 0.1]
    + (2 * RNG.normal(size=(3, 5)))[np.unique(LABELS, return_inverse=True)[1]]
)


def brute(X, labels):
    """p_k, W_k, b_k of each label, straight from their definitions."""
    parts = {}
    for name in np.unique(labels):
        own = X[labels == name]
        W = np.cov(own.T, bias=True).reshape(X.shape[1], -1)
        parts[name] = (len(own) / len(X), W, own.mean(axis=0) - X.mean(axis=0))
    return parts


def test_labels_by_brute_force():
    parts = brute(X, LABELS)
    W = sum(p * own for p, own, _ in parts.values())
    B = sum(p * np.outer(b, b) for p, _, b in parts.values())
    sigma = W + B
    np.testing.assert_allclose(sigma, np.cov(X.T, bias=True), rtol=1e-10, atol=1e-12)
    whole, flat = (sigma**2).sum(), np.trace(sigma) / 5
    anisotropy = ((sigma - flat * np.eye(5)) ** 2).sum()
    for found in attribute_anisotropy(X, LABELS).labels:
        p, own, b = parts[found.name]
        C = p * (own + np.outer(b, b))
        assert found.n == round(p * 40)
        assert found.variance == pytest.approx(np.trace(C) / np.trace(sigma))
        assert found.within == pytest.approx((p * own * W).sum() / whole)
        assert found.cross == pytest.approx(((p * own * B).sum() + p * b @ W @ b) / whole)
        assert found.between == pytest.approx(p * b @ B @ b / whole)
        assert found.part == pytest.approx((C * sigma).sum() / whole)
        assert found.excess == pytest.approx((C * (sigma - flat * np.eye(5))).sum() / anisotropy)


def test_directions_by_brute_force():
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    values, vectors = values[::-1], vectors[:, ::-1]
    parts = brute(X, LABELS)
    B = sum(p * np.outer(b, b) for p, _, b in parts.values())
    found = attribute_anisotropy(X, LABELS)
    total = values.sum()
    for j, direction in enumerate(found.directions):
        v = vectors[:, j]
        assert direction.variance == pytest.approx(values[j] / total)
        assert direction.between == pytest.approx(v @ B @ v / total)
        assert direction.within == pytest.approx((values[j] - v @ B @ v) / total)
        assert direction.part == pytest.approx(values[j] ** 2 / (values**2).sum())
        own = {name: p * (v @ W @ v + (b @ v) ** 2) / values[j] for name, (p, W, b) in parts.items()}
        assert direction.label == max(own, key=own.get)
        assert direction.label_share == pytest.approx(max(own.values()))
        assert abs(found.components[j] @ v) == pytest.approx(1)
        for k, name in enumerate(parts):
            assert found.parts[k, j] == pytest.approx(own[name] * direction.part)


@pytest.mark.parametrize("shape", [(40, 5), (12, 30), (200, 3)])
@pytest.mark.parametrize("n_labels", [1, 2, 7])
def test_parts_add_up_to_the_whole(shape, n_labels):
    rng = np.random.default_rng(1)
    labels = np.arange(shape[0]) % n_labels
    rows = (
        rng.normal(size=shape) * rng.uniform(0.1, 3, size=shape[1])
        + 100
        + rng.normal(size=(7, shape[1]))[labels]
    )
    found, split = attribute_anisotropy(rows, labels), scatter_decomposition(rows, labels)
    for column in ("variance", "part", "excess"):
        assert sum(getattr(part, column) for part in found.labels) == pytest.approx(1, abs=1e-12)
        assert sum(getattr(part, column) for part in found.directions) == pytest.approx(1, abs=1e-12)
    for column in ("within", "cross", "between"):
        whole = getattr(found, column)
        assert sum(getattr(part, column) for part in found.labels) == pytest.approx(whole, abs=1e-12)
        assert whole == pytest.approx(getattr(split, f"{column}_part"), abs=1e-9)
    assert found.within + found.cross + found.between == pytest.approx(1, abs=1e-12)
    assert sum(part.between for part in found.directions) == pytest.approx(split.between_share, abs=1e-12)
    for part in found.labels:
        assert part.within + part.cross + part.between == pytest.approx(part.part, abs=1e-12)
        assert min(part.within, part.cross, part.between) > -1e-12
    np.testing.assert_allclose(found.parts.sum(axis=1), [part.part for part in found.labels], atol=1e-12)
    np.testing.assert_allclose(found.parts.sum(axis=0), [part.part for part in found.directions], atol=1e-12)
    participation = 1 / sum(part.variance**2 for part in found.directions)
    assert (participation - 1) / (shape[1] - 1) == pytest.approx(isoscore(rows), rel=1e-9)


def test_a_flat_space_has_no_excess():
    space = frontier_space([6, 9, 12], 4, between=0.3)
    found = attribute_anisotropy(space)
    assert all(part.excess == 0 for part in (*found.labels, *found.directions))
    assert [part.part for part in found.labels] == pytest.approx([part.variance for part in found.labels])


def test_a_label_that_evens_out_has_a_negative_excess():
    rows = np.array([[5.0, 0], [-5, 0], [6, 0], [-6, 0], [0, 1], [0, -1]])
    found = {part.name: part for part in attribute_anisotropy(rows, [0, 0, 0, 0, 1, 1]).labels}
    assert found[1].excess < 0 < found[0].excess


def test_scale_offset_and_rotation_do_not_matter():
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    one, other = attribute_anisotropy(X, LABELS), attribute_anisotropy(X @ rotation * 1e12 + 1e13, LABELS)
    for a, b in zip(one.labels, other.labels, strict=True):
        assert a.part == pytest.approx(b.part, rel=1e-6)


@pytest.mark.slow
def test_debiased_parts_are_right_on_average():
    rng = np.random.default_rng(3)
    counts = np.array([6, 9, 15])
    labels = np.repeat([0, 1, 2], counts)
    means, scales = 0.5 * rng.normal(size=(3, 20)), rng.uniform(0.2, 1.5, size=(3, 20))
    p = counts / counts.sum()
    W = np.diag(p @ scales**2)
    b = means - p @ means
    B = (b * p[:, None]).T @ b
    truth = np.array([(W * W).sum(), 2 * (W * B).sum(), (B * B).sum()])
    plain, fair = [], []
    for seed in range(150):
        rows = means[labels] + scales[labels] * rng.normal(size=(30, 20))
        found = attribute_anisotropy(rows, labels, debias=True, seed=seed)
        plain.append([found.within, found.cross, found.between])
        fair.append([found.debiased[name] for name in ("within", "cross", "between")])
        assert sum(fair[-1]) == pytest.approx(1)
    truth = truth / truth.sum()
    off = np.abs(np.mean(fair, axis=0) - truth)
    assert (off < 0.35 * np.abs(np.mean(plain, axis=0) - truth)).all()  # ratios keep a bias of order 1/n


def test_as_json_and_bad_input():
    found = attribute_anisotropy(X, LABELS)
    kept = json.loads(json.dumps(found.to_dict()))
    assert kept["labels"][0]["name"] == "a"
    assert len(kept["directions"]) == 5
    with pytest.raises(UndefinedError, match="4 points a label; a has fewer"):
        attribute_anisotropy(
            X, np.r_[["a"] * 3, LABELS[3:].astype(str)].tolist()[:3] + ["b"] * 37, debias=True
        )
    with raises(InputError, argument="n_splits", got=0):
        attribute_anisotropy(X, LABELS, debias=True, n_splits=0)
    with pytest.raises(UndefinedError, match="equal"):
        attribute_anisotropy(np.ones((4, 2)), [0, 0, 1, 1])
    with pytest.raises(InputError, match="`labels` is missing"):
        attribute_anisotropy(X)
