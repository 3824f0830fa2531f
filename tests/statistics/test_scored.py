"""Scores by one recording: what is recorded runs here plainly, its kernels under Triton's interpreter."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

import isoscope as iso
from isoscope.labels import as_labels
from isoscope.statistics import scored

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
HAS_TRITON = find_spec("triton") is not None


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED or not HAS_TRITON, reason="wants Triton, outside its interpreter")
def test_under_the_interpreter(interpret) -> None:
    assert " passed" in interpret(__file__)


@pytest.fixture(params=["few", "many"])
def quick(request, monkeypatch):
    """Return `quick_score` after labels with which the plain way has learnt the range."""
    if (request.param == "many") != INTERPRETED:
        pytest.skip("many points are for the interpreter, few are not")
    monkeypatch.setattr(scored, "can_launch", lambda _: True)
    monkeypatch.setattr(scored, "replayed", lambda f, *inputs, **options: f(*inputs, **options))
    monkeypatch.setattr(scored, "FEW_POINTS", 0 if INTERPRETED else 10**6)
    monkeypatch.setattr(scored, "_ranges", type(scored._ranges)())

    def score(X, labels, *, after):
        scored.learn_range(X, after, as_labels(after))
        return scored.quick_score(X, labels)

    return score


def points(n: int = 150) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (n,), generator=g)
    return torch.randn(n, 20, generator=g) + labels[:, None], labels


@pytest.mark.parametrize("low", [-7, pytest.param(1000, marks=pytest.mark.nightly)])
def test_new_labels_of_a_known_range_score_as_plainly(quick, low: int) -> None:
    X, labels = points()
    other = labels.roll(5)
    found = quick(X, other + low, after=labels + low)
    assert found == pytest.approx(iso.silhouette_score(X.double(), other), abs=1e-7)


def test_labels_with_gaps_and_singletons(quick) -> None:
    X, labels = points()
    labels = labels * 20
    labels[0] = 7
    expected = iso.silhouette_score(X.double(), labels)
    assert quick(X, labels, after=labels) == pytest.approx(expected, abs=1e-7)
    coded = as_labels([f"label {label}" for label in labels.tolist()])
    assert quick(X, coded, after=coded) == pytest.approx(expected, abs=1e-7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy under the interpreter
def test_what_a_recording_cannot_score_is_left_to_the_plain_way(quick) -> None:
    X, labels = points()
    not_finite = X.clone()
    not_finite[3, 4] = torch.nan
    assert quick(not_finite, labels, after=labels) is None
    assert quick(X, labels + 1, after=labels) is None  # another range
    assert quick(X, torch.zeros_like(labels), after=labels) is None  # one label
    assert quick(X, torch.arange(150), after=torch.arange(150)) is None  # as many labels as points
    assert scored.quick_score(X[:-1], labels[:-1]) is None  # a shape not seen
    assert scored.quick_score(X, labels.double()) is None
    assert scored.quick_score(X, labels[:-1]) is None


@pytest.mark.skipif(not INTERPRETED, reason="clusters have sizes for the kernels alone")
def test_clusters_that_shrink_are_left_to_the_plain_way(quick) -> None:
    X, labels = points(330)
    smaller = torch.where((labels == 2) & (torch.arange(330) % 10 > 0), 0, labels)
    assert quick(X, smaller, after=labels) is None
    assert quick(X, smaller, after=smaller) == pytest.approx(
        iso.silhouette_score(X.double(), smaller), abs=1e-7
    )


@pytest.mark.skipif(INTERPRETED, reason="nothing to do with it")
def test_ranges_are_few(monkeypatch) -> None:
    monkeypatch.setattr(scored, "can_launch", lambda _: True)
    monkeypatch.setattr(scored, "_ranges", type(scored._ranges)())
    for n in range(10, 110):
        scored.learn_range(torch.ones(n, 2), torch.arange(n) % 2, as_labels(torch.arange(n) % 2))
    assert len(scored._ranges) == scored._KEPT
