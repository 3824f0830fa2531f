"""Every metric keeps the promises its registry entry makes."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources import Blocks

import isoscope as iso
from isoscope.engine.run import gather
from isoscope.errors import InputError
from isoscope.metrics.registry import FAMILIES, KNOWN, Metric, choose
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics

METRICS = list(iso.registered().values())
STREAMING = [metric for metric in METRICS if metric.streams]
DIFFERENTIABLE = [metric for metric in METRICS if metric.differentiable]
PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
# linear probes are fitted by an iterative solver: they agree to its tolerance, not to rounding
# what k-means finds depends on the order of rows and on rounding
LOOSE = {"linear_probe_accuracy": 0.11, "cluster_learnability": 0.4, "clid": 0.4}
# how far labels are moved apart for metrics that are undefined where their means differ by chance only
APART = {"nc1_debiased": 4.0, "nc2_debiased": 4.0}


def named(metric: Metric) -> str:
    return metric.name


def make_space(
    seed: int, n: int = 0, d: int = 5, dtype: type = np.float64, metric: Metric | None = None
) -> Space:
    """Clustered vectors away from the origin, with everything any metric needs known of each row."""
    n = n or max(40, 2 * d)
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    X = rng.normal(size=(n, d)) * np.linspace(0.5, 2, d) + rng.normal(size=(3, d))[labels] + 2.0
    X += APART.get(metric.name if metric else "", 0.0) * np.diag([1.0, 2.0, 4.0])[labels] @ np.eye(3, d)
    return Space(
        X.astype(dtype),
        labels=labels,
        token_types=rng.permutation(np.arange(n) % 8),
        sentences=np.arange(n) // 5,
        partners=rng.normal(size=(n, d)),
    )


def covariance(d: int) -> np.ndarray:
    return np.diag(np.arange(1.0, d + 1))


def value(metric: Metric, space: Space) -> float:
    return float(metric.compute(Statistics(space, covariance=covariance(space.n_dims))))


def known(n: int, d: int) -> dict[str, object]:
    return {
        "labels": torch.arange(n) % 2,
        "token_types": torch.arange(n) % 2,
        "sentences": torch.arange(n) // 2,
        "partners": torch.ones(n, d),
        "covariance": torch.diag(torch.arange(1.0, d + 1)),
    }


def close(metric: Metric, a: float, b: float, tolerance: float) -> bool:
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=LOOSE.get(metric.name, tolerance))


seeds = st.integers(0, 2**20)


@pytest.mark.parametrize("metric", METRICS, ids=named)
@settings(max_examples=15)
@given(seed=seeds)
def test_range(metric: Metric, seed: int) -> None:
    low, high = metric.range
    assert low - 1e-12 <= value(metric, make_space(seed, metric=metric)) <= high + 1e-12


@pytest.mark.parametrize("metric", METRICS, ids=named)
@settings(max_examples=8)
@given(seed=seeds, step=st.floats(-20, 20), scale=st.floats(0.01, 100))
def test_invariances_claimed_hold(metric: Metric, seed: int, step: float, scale: float) -> None:
    space = make_space(seed, metric=metric)
    X = space.vectors.numpy()
    before = value(metric, space)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))[0]
    moved = {"rotation": X @ rotation, "translation": X + step, "scale": X * scale}
    for name in metric.invariances:
        assert close(metric, before, value(metric, space.with_vectors(moved[name])), 1e-7), name


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_invariances_not_claimed_fail(metric: Metric) -> None:
    """An unclaimed invariance is really absent: the entry says all it can."""
    space = make_space(3, metric=metric)
    X = space.vectors.numpy()
    before = value(metric, space)
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 5)))[0]
    moved = {"rotation": X @ rotation, "translation": X + 1.0, "scale": X * 3.0}
    for name in {"rotation", "translation", "scale"} - metric.invariances:
        if metric.name in LOOSE or metric.name == "dimensions_for_half":
            continue  # coarse values: a step may be too small to show
        assert not close(metric, before, value(metric, space.with_vectors(moved[name])), 1e-9), name


@pytest.mark.parametrize("metric", METRICS, ids=named)
@settings(max_examples=8)
@given(seed=seeds)
def test_order_of_rows_does_not_matter(metric: Metric, seed: int) -> None:
    space = make_space(seed, metric=metric)
    order = np.random.default_rng(seed).permutation(len(space))
    shuffled = Space(
        space.vectors[order],
        labels=space.labels.codes[order],
        token_types=space.token_types.codes[order],
        sentences=space.sentences.codes[order],
        partners=space.partners[order],
    )
    assert close(metric, value(metric, space), value(metric, shuffled), 1e-9)


@pytest.mark.parametrize("metric", STREAMING, ids=named)
@settings(max_examples=12)
@given(seed=seeds, cuts=st.lists(st.integers(1, 39), unique=True, max_size=6), backwards=st.booleans())
def test_blocks_of_any_size_in_any_order_agree(
    metric: Metric, seed: int, cuts: list[int], backwards: bool
) -> None:
    space = make_space(seed, metric=metric)
    edges = [0, *sorted(cuts), len(space)]
    parts = [space.rows(a, b) for a, b in itertools.pairwise(edges)]
    if backwards:
        parts.reverse()
    shelf = gather(Blocks(parts), metric.needs - set(KNOWN), covariance=covariance(5))
    streamed = float(metric.compute(shelf))
    assert math.isclose(value(metric, space), streamed, rel_tol=1e-10, abs_tol=1e-10)


@pytest.mark.parametrize("metric", METRICS, ids=named)
@pytest.mark.parametrize("d", [5, 48], ids=["narrow", "wide"])  # wide: products of rows in float32
def test_float32_agrees_with_float64(metric: Metric, d: int) -> None:
    space = make_space(11, d=d, dtype=np.float32, metric=metric)
    wide = space.with_vectors(space.vectors.double())
    assert close(metric, value(metric, space), value(metric, wide), 2e-5)


@pytest.mark.parametrize("metric", METRICS, ids=named)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("d", [5, 48], ids=["narrow", "wide"])
def test_half_precision_is_accumulated_in_higher(metric: Metric, dtype: torch.dtype, d: int) -> None:
    """Half in, and the answer of the same numbers in float64."""
    space = make_space(12, d=d, metric=metric)
    half = space.with_vectors(space.vectors.to(dtype))
    wide = space.with_vectors(half.vectors.double())
    assert close(metric, value(metric, half), value(metric, wide), 2e-5)


@pytest.mark.parametrize("metric", METRICS, ids=named)
@pytest.mark.parametrize("scale", [1e20, 1e-30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [5, 48], ids=["narrow", "wide"])
def test_huge_and_tiny_vectors(metric: Metric, scale: float, dtype: type, d: int) -> None:
    if "scale" not in metric.invariances:
        pytest.skip("the value itself depends on scale")
    space = make_space(13, d=d, metric=metric)
    scaled = space.with_vectors((space.vectors.numpy() * scale).astype(dtype))
    assert close(metric, value(metric, space), value(metric, scaled), 1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("metric", DIFFERENTIABLE, ids=named)
@pytest.mark.parametrize("shape", [(12, 4), (5, 7)], ids=["n>d", "n<d"])
def test_gradcheck(metric: Metric, shape: tuple[int, int]) -> None:
    n, d = shape
    generator = torch.Generator().manual_seed(5)
    X = torch.randn(n, d, generator=generator, dtype=torch.float64) + 0.3
    assert torch.autograd.gradcheck(lambda Z: metric.of(Z, **known(n, d)), X.requires_grad_())


@pytest.mark.parametrize("metric", DIFFERENTIABLE, ids=named)
def test_gradient_is_finite_at_the_identity_spectrum(metric: Metric) -> None:
    """All variances equal: eigenvalue methods divide by gaps of zero here."""
    d = 4
    X = torch.cat([torch.eye(d), -torch.eye(d)]).double().requires_grad_()
    n = len(X)
    result = metric.of(X, **known(n, d))
    (gradient,) = torch.autograd.grad(result, X)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_plain_input_gives_a_plain_float_and_is_not_changed(metric: Metric) -> None:
    space = make_space(1, metric=metric)
    before = space.vectors.clone()
    assert isinstance(metric.compute(Statistics(space, covariance=covariance(5))), float | int)
    assert torch.equal(space.vectors, before)


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_entries_are_complete(metric: Metric) -> None:
    assert metric.family in FAMILIES
    assert metric.paper
    assert metric.high
    assert metric.range[0] < metric.range[1]
    for number in (0.0, 0.3, 1.0, 12.5, -1.0):
        sentence = metric.sentence(number)
        assert sentence
        assert "\n" not in sentence
        assert not sentence.endswith(".")


@pytest.mark.parametrize("metric", [m for m in METRICS if m.error], ids=named)
def test_errors_are_positive_and_shrink_with_n(metric: Metric) -> None:
    small, large = (metric.error(Statistics(make_space(2, n=n, metric=metric))) for n in (60, 960))
    assert 0 < large < small


def test_names_are_unique_and_choosing_works() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert not set(names) & set(FAMILIES)
    assert choose("all") == METRICS
    assert choose(None) == [metric for metric in METRICS if metric.default]
    assert [metric.name for metric in choose("isoscore, mean_cosine")] == ["isoscore", "mean_cosine"]
    assert {metric.family for metric in choose(["spectrum"])} == {"spectrum"}
    assert choose(["default"]) == choose(None)
    assert [metric.name for metric in choose("silhouette_score")] == ["silhouette"]


@pytest.mark.parametrize("metric", METRICS, ids=named)
def test_one_name_for_function_flag_key_and_page(metric: Metric) -> None:
    """`silhouette_score` and two more are scikit-learn's names of functions that go by the metric's, too."""
    function = getattr(iso.metrics, metric.name)
    assert function is metric.function
    assert getattr(iso.metrics, metric.name) is function
    assert function.__name__ in (metric.name, f"{metric.name}_score")
    assert f"\n### {metric.name}\n" in PAGE
    space = make_space(4, metric=metric)
    shelf = {"labels": space.labels, "token_types": space.token_types, "sentences": space.sentences}
    asked = {"metrics": [function], "covariance": covariance(5), "partners": space.partners}
    found = iso.measure(space.vectors, **shelf, **asked, progress=False)
    assert list(found.to_dict()["metrics"]) == [metric.name]
    assert found[metric.name] == value(metric, space)


def test_the_order_is_that_of_families_and_pages() -> None:
    assert [FAMILIES.index(metric.family) for metric in METRICS] == sorted(
        FAMILIES.index(metric.family) for metric in METRICS
    )
    assert [line[4:] for line in PAGE.splitlines() if line.startswith("### ")] == [m.name for m in METRICS]
    clusters = [metric.name for metric in METRICS if metric.family == "clusters"]
    assert (clusters[0], clusters[-1]) == ("silhouette", "isotropy_ceiling")


def test_unknown_metric_suggests() -> None:
    with pytest.raises(InputError, match="Did you mean isoscore"):
        choose("isoscor")
    with pytest.raises(InputError, match="`metrics` is empty"):
        choose(" , ")
    with pytest.raises(InputError, match="families are isotropy"):
        choose("zzzz")


def test_stream_refuses_what_needs_all_vectors() -> None:
    with pytest.raises(InputError, match="statistics vectors"):
        gather(Blocks([make_space(0)]), {"vectors"})
    shelf = gather(Blocks([make_space(0)]), {"moments"})
    with pytest.raises(RuntimeError, match="all vectors at once"):
        _ = shelf.vectors
