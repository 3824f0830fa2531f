"""Migration: what a rotation keeps, what a map cannot know, and what is said of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.corrections import Translate
from isoscope.errors import ShapeError


def rotation(rng, d: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def test_a_rotated_copy_keeps_everything(rng) -> None:
    old = rng.normal(size=(600, 12))
    found = iso.migrate(old, 3 * old @ rotation(rng, 12))
    assert found.best.overlap == 1.0
    assert found["procrustes"].overlap == 1.0
    assert found["ridge"].overlap > 0.99
    assert found.verdict == "map"
    assert not found.lost
    assert found["old model"].overlap == 1.0  # cosines are unchanged by a rotation
    for one in found.thresholds:
        assert one.old == pytest.approx(one.new)
        assert one.old == pytest.approx(one.mapped)


def test_what_is_new_cannot_be_mapped(rng) -> None:
    """Half of the new dimensions are noise to the old model: the verdict is to embed again."""
    old = rng.normal(size=(600, 8))
    new = np.hstack([old @ rotation(rng, 8), rng.normal(size=(600, 8))])
    found = iso.migrate(old, new, texts=[f"item {i}" for i in range(600)])
    assert found.verdict == "embed again"
    assert found.best.interval[1] < 0.6
    assert len(found.lost) == 5
    assert all(one.text == f"item {one.row}" for one in found.lost)
    assert "embed again" in str(found)
    assert iso.migrate(old, new, accept=0.05).verdict == "map"


def test_the_overlap_against_brute_force(rng) -> None:
    old = rng.normal(size=(120, 6))
    new = old @ rng.normal(size=(6, 9)) + 0.5 * rng.normal(size=(120, 9))
    found = iso.migrate(old, new, k=3)
    order = _order(120)
    fit, held = order[:60], order[60:]
    step = Translate("procrustes").fit(old[fit], new[fit])
    mapped = step.transform(old[held])
    shares = [
        len(set(_nearest(new[held][i], mapped, i)) & set(_nearest(new[held][i], new[held], i))) / 3
        for i in range(60)
    ]
    assert found["procrustes"].overlap == pytest.approx(np.mean(shares))


def _order(n: int) -> np.ndarray:
    import torch

    return torch.randperm(n, generator=torch.Generator().manual_seed(0)).numpy()


def _nearest(query: np.ndarray, X: np.ndarray, own: int) -> list[int]:
    cosines = X @ query / np.linalg.norm(X, axis=1)
    cosines[own] = -np.inf
    return np.argsort(-cosines)[:3].tolist()


def test_a_curved_map_is_found(rng) -> None:
    old = rng.uniform(-2, 2, size=(1500, 2))
    new = np.hstack([np.sin(2 * old), np.cos(2 * old)])
    found = iso.migrate(old, new)
    assert found.method == "features"
    assert found["features"].overlap > found["ridge"].overlap + 0.2


def test_the_map_is_saved_as_a_correction(rng, tmp_path) -> None:
    old = rng.normal(size=(300, 5))
    found = iso.migrate(old, np.tanh(old @ rng.normal(size=(5, 7))))
    loaded = iso.load_correction(found.save(tmp_path / "map.safetensors"))
    assert np.allclose(loaded.transform(old), found.correction.transform(old), rtol=1e-9)
    assert loaded.transform(old).shape == (300, 7)


def test_results_and_gates(rng) -> None:
    from isoscope.comparison import parse_gates

    old = rng.normal(size=(200, 4))
    found = iso.migrate(old, old[:, ::-1] + 0.1 * rng.normal(size=(200, 4)))
    content = json.loads(found.to_json())
    assert content["verdict"] == found.verdict
    assert [one["method"] for one in content["trials"]] == list(found.readings["method"])
    (result,) = found.check(parse_gates(["overlap>=0.1"], ["overlap"]))
    assert result.passed
    assert found.best.interval[0] <= found.best.overlap <= found.best.interval[1]


def test_inputs_that_cannot_be(rng) -> None:
    old = rng.normal(size=(100, 4))
    with raises(ShapeError):
        iso.migrate(old, old[:90])
    with raises():
        iso.migrate(old[:30], old[:30])
    with raises(iso.UndefinedError, message="are equal"):
        iso.migrate(np.zeros((100, 4)), old)
    with raises(argument="accept"):
        iso.migrate(old, old, accept=2)
    with raises(argument="vectors"):
        iso.migrate(old, old, vectors=("v",))
    with raises(argument="k"):
        iso.migrate(old, old, k=90)
