from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn import metrics as sk

import isoscope as iso
from isoscope.errors import InputError, LabelError, NotFiniteError, ShapeError, UndefinedError
from isoscope.metrics.silhouettes import silhouette_error
from isoscope.statistics.pairs import Separation


def oracle(X: np.ndarray, y: np.ndarray, power: int = 1) -> np.ndarray:
    """scikit-learn on distances by direct difference: its own shortcut fails on collapsed clusters."""
    X = X.astype(np.float64)
    return sk.silhouette_samples(cdist(X, X) ** power, y, metric="precomputed")


def spaces(dtype: type) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Every kind of trouble: K from 2 to n/2, singletons, duplicates, collapse, offset."""
    rng = np.random.default_rng(7)
    n = 900
    made = {}
    for d in (2, 48):
        for K in (2, 17, n // 2):
            y = rng.integers(0, K, n)
            centers = rng.normal(size=(K, d))
            for spread in (1.0, 1e-2, 1e-5):
                made[f"d={d} K={K} spread={spread}"] = centers[y] + spread * rng.normal(size=(n, d)), y
            made[f"d={d} K={K} offset"] = centers[y] + 0.1 * rng.normal(size=(n, d)) + 1e4, y
            made[f"d={d} K={K} collapsed at an offset"] = centers[y] + 1e-5 * rng.normal(size=(n, d)) + 1e4, y
            made[f"d={d} K={K} duplicates"] = rng.normal(size=(n // 5, d))[rng.integers(0, n // 5, n)], y
        near = np.array([[0.0] * d, [1e-4] * d, [1.0] * d])
        y = rng.integers(0, 3, n)
        made[f"d={d} two clusters close, one far"] = near[y] + 1e-5 * rng.normal(size=(n, d)), y
        y = np.repeat(np.arange(3), [n - 2, 1, 1])
        made[f"d={d} two singletons"] = rng.normal(size=(n, d)), y
        made[f"d={d} labels at random on few distinct points"] = (
            rng.normal(size=(4, d))[rng.integers(0, 4, n)],
            rng.integers(0, 3, n),
        )
    return {name: (X.astype(dtype), y) for name, (X, y) in made.items()}


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-6)])
@pytest.mark.parametrize("name", spaces(np.float64))
def test_equals_scikit_learn(name: str, dtype: type, tolerance: float) -> None:
    X, y = spaces(dtype)[name]
    expected = oracle(X, y)
    assert iso.silhouette_score(X, y) == pytest.approx(expected.mean(), abs=tolerance)
    assert np.abs(iso.silhouette_samples(X, y) - expected).max() < 10 * tolerance


@pytest.mark.parametrize("name", ["d=2 K=17 spread=1.0", "d=48 K=450 spread=0.01", "d=48 K=2 duplicates"])
def test_row_strips_give_the_same(name: str, monkeypatch) -> None:
    X, y = spaces(np.float64)[name]
    whole = iso.silhouette_samples(X, y)
    monkeypatch.setattr("isoscope.statistics.budget.MEMORY_MB", 0)
    assert np.abs(iso.silhouette_samples(X, y) - whole).max() < 1e-12


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_spaces_at_once_are_the_single_ones(rng, metric: str, kind: str) -> None:
    """Five seeds under one set of labels, singletons among them, and a zero vector in one space."""
    y = np.concatenate([np.array(list("abc"))[np.arange(60) % 3], ["alone"]])
    X = rng.normal(size=(5, 61, 40)) * np.array([1, 10, 1e-3, 1, 1])[:, None, None]
    X[3, 7] = 0
    given = X if kind == "numpy" else torch.from_numpy(X)
    samples = iso.silhouette_samples(given, y, metric=metric)
    scores = iso.silhouette_score(given, y, metric=metric)
    macro = iso.silhouette_score(given, y, metric=metric, average="macro")
    assert type(samples) is type(scores) is type(macro) is type(given)
    assert (tuple(samples.shape), tuple(scores.shape), tuple(macro.shape)) == ((5, 61), (5,), (5,))
    for space in range(5):
        single = iso.silhouette_samples(X[space], y, metric=metric)
        assert np.allclose(samples[space], single, rtol=0, atol=1e-12, equal_nan=True)
        assert scores[space] == pytest.approx(iso.silhouette_score(X[space], y, metric=metric), abs=1e-12)
        expected = iso.silhouette_score(X[space], y, metric=metric, average="macro")
        assert macro[space] == pytest.approx(expected, abs=1e-12)


def test_bad_spaces() -> None:
    X, y = np.zeros((2, 6, 3)), [0, 1] * 3
    broken = X.copy()
    broken[1, 4, 2] = np.nan
    with pytest.raises(NotFiniteError, match=r"`X\[1\]` has NaN or Inf in 1 of 6 rows \(row 4\)"):
        iso.silhouette_score(broken, y)
    with pytest.raises(ShapeError, match="`labels` has 2 entries for 6 vectors"):
        iso.silhouette_score(X, [0, 1])
    with pytest.raises(ShapeError, match=r"`X` is empty, shape \(0, 6, 3\)"):
        iso.silhouette_samples(X[:0], y)
    with pytest.raises(ShapeError, match="expected one space"):
        iso.metrics.silhouette_by_cluster(X, y)
    with pytest.raises(ShapeError, match=r"three axes \(B, n, d\)"):
        Separation.of_spaces(X[0], y)
    for options in ({"metric": "cosine"}, {}):
        with pytest.raises(LabelError, match="only one label"):
            iso.silhouette_score(X, [0] * 6, **options)
    with pytest.raises(ShapeError, match="two axes"):
        iso.silhouette_score(X[None], y)


def test_deterministic_belongs_to_exact_scores() -> None:
    with pytest.raises(InputError, match="go without it"):
        iso.silhouette_score(np.eye(4), [0, 0, 1, 1], tolerance=0.1, deterministic=True)


@pytest.mark.parametrize("name", spaces(np.float64))
def test_squared_and_cosine_closed_forms(name: str) -> None:
    X, y = spaces(np.float64)[name]
    # a squared distance of 1e-10 at an offset of 1e4 has lost digits in the input itself
    tolerance = 1e-6 if "offset" in name else 1e-9
    squared = iso.silhouette_samples(X, y, metric="sqeuclidean")
    assert np.abs(squared - oracle(X, y, power=2)).max() < tolerance
    if "offset" not in name and "collapsed" not in name and "close" not in name:
        U = X / np.linalg.norm(X, axis=1, keepdims=True)
        assert np.abs(iso.silhouette_samples(X, y, metric="cosine") - oracle(U, y, power=2)).max() < tolerance


def test_cosine_is_scikit_learns(rng) -> None:
    X, y = rng.normal(size=(200, 5)) + 0.5, rng.integers(0, 4, 200)
    assert iso.silhouette_score(X, y, metric="cosine") == pytest.approx(
        sk.silhouette_score(X, y, metric="cosine")
    )


def test_cosine_leaves_zero_vectors_out(rng) -> None:
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 3
    with_zeros = np.vstack([X, np.zeros((4, 3))])
    labels = np.concatenate([y, [0, 1, 2, 2]])
    assert iso.silhouette_score(with_zeros, labels, metric="cosine") == pytest.approx(
        iso.silhouette_score(X, y, metric="cosine")
    )
    samples = iso.silhouette_samples(with_zeros, labels, metric="cosine")
    assert np.isnan(samples[30:]).all()
    assert np.allclose(samples[:30], iso.silhouette_samples(X, y, metric="cosine"))


def test_cosine_is_undefined_where_only_one_label_has_directions() -> None:
    with pytest.raises(UndefinedError, match="2 zero vectors leave 2 points and 1 label"):
        iso.silhouette_score([[1.0, 0], [0, 1.0], [0, 0], [0, 0]], [0, 0, 1, 1], metric="cosine")


def test_averages_and_clusters(rng) -> None:
    X, y = (
        rng.normal(size=(100, 4)),
        np.array(["a", "b", "c"])[np.r_[np.zeros(80, int), np.ones(15, int), np.full(5, 2)]],
    )
    samples = oracle(X, y)
    by_cluster = iso.metrics.silhouette_by_cluster(X, y)
    assert by_cluster == pytest.approx({name: samples[y == name].mean() for name in "abc"})
    macro = iso.silhouette_score(X, y, average="macro")
    assert macro == pytest.approx(np.mean(list(by_cluster.values())))
    assert iso.silhouette_score(X, y) == pytest.approx(samples.mean())


def test_label_sets_are_clusters(rng) -> None:
    X = rng.normal(size=(60, 4))
    indicator = rng.integers(0, 2, size=(60, 2))
    expected = sk.silhouette_score(X, indicator[:, 0] * 2 + indicator[:, 1])
    assert iso.silhouette_score(X, indicator) == pytest.approx(expected)


def test_half_precision(rng) -> None:
    X, y = rng.normal(size=(100, 40)).astype(np.float16), np.arange(100) % 3
    assert iso.silhouette_score(X, y) == pytest.approx(oracle(X, y).mean(), abs=1e-6)


@pytest.mark.slow
def test_standard_error_is_the_real_one() -> None:
    """Against the spread over fresh samples; treating points as independent gives 0.6 of it."""
    rng = np.random.default_rng(3)
    values, errors, naive = [], [], []
    for _ in range(150):
        y = rng.integers(0, 3, 200)
        X = rng.normal(size=(200, 5)) + 3 * np.eye(5)[y]
        separation = Separation.of(X, y)
        samples = iso.silhouette_samples(X, y)
        values.append(samples.mean())
        errors.append(silhouette_error(X, separation))
        naive.append(samples.std() / np.sqrt(200))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)
    assert np.mean(naive) < 0.75 * np.std(values)


@pytest.mark.parametrize("gap", [0.0, 0.5, 3.0])
def test_standard_error_agrees_with_leaving_each_point_out(rng, gap: float) -> None:
    y = np.arange(150) % 3
    X = rng.normal(size=(150, 3)) + gap * np.eye(3)[y]
    left_out = [iso.silhouette_score(np.delete(X, i, axis=0), np.delete(y, i)) for i in range(150)]
    jackknife = np.sqrt(149 / 150 * ((left_out - np.mean(left_out)) ** 2).sum())
    assert silhouette_error(X, Separation.of(X, y)) == pytest.approx(jackknife, rel=0.08)


@pytest.mark.parametrize("n_labels", [3, 70])  # by a product for few clusters, pair by pair for many
def test_standard_error_is_that_of_the_influences(rng, n_labels: int) -> None:
    """The influence of point j by its definition, one point after the other."""
    n = 210
    y = np.arange(n) % n_labels
    X = rng.normal(size=(n, 3)) + rng.normal(size=(n_labels, 3))[y]
    D, size = cdist(X, X), n / n_labels
    means = np.stack([D[:, y == k].sum(axis=1) / (size - (y == k)) for k in range(n_labels)], axis=1)
    a = means[np.arange(n), y].copy()
    means[np.arange(n), y] = np.inf
    b, nearest = means.min(axis=1), means.argmin(axis=1)
    influence = sk.silhouette_samples(X, y)
    for j in range(n):
        for i in range(n):
            if y[i] == y[j]:  # ∂s/∂a, and a moves by (d − a)/n
                influence[j] += (-1 / b[i] if a[i] < b[i] else -b[i] / a[i] ** 2) * (D[i, j] - a[i]) / size
            elif nearest[i] == y[j]:
                influence[j] += (a[i] / b[i] ** 2 if a[i] < b[i] else 1 / a[i]) * (D[i, j] - b[i]) / size
    expected = influence.std(ddof=1) / np.sqrt(n)
    assert silhouette_error(X, Separation.of(X, y)) == pytest.approx(expected, rel=1e-10)


def test_all_points_at_one_place_score_zero() -> None:
    assert iso.silhouette_samples(np.ones((4, 3)), [0, 0, 1, 1]).tolist() == [0, 0, 0, 0]


def test_tensors_come_back_as_tensors(rng) -> None:
    assert isinstance(iso.silhouette_samples(torch.randn(9, 3), [0, 1, 2] * 3), torch.Tensor)


@pytest.mark.parametrize(
    ("labels", "options", "error", "message"),
    [
        ([0] * 6, {}, LabelError, "only one label"),
        (range(6), {}, LabelError, "a different label"),
        ([0, 1], {}, ShapeError, "`labels` has 2 entries for 6 vectors"),
        ([0, 1] * 3, {"metric": "manhattan"}, InputError, "euclidean, sqeuclidean, cosine"),
        ([0, 1] * 3, {"average": "weighted"}, InputError, "micro, macro"),
    ],
)
def test_bad_input(labels, options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        iso.silhouette_score(np.arange(12.0).reshape(6, 2), labels, **options)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.array([[0.0], [np.nan], [1.0], [2.0]]), NotFiniteError, r"NaN or Inf in 1 of 4 rows \(row 1\)"),
        (np.array([[0.0], [1.0], [np.inf], [2.0]]), NotFiniteError, r"row 2"),
        (np.zeros((0, 3)), ShapeError, "empty"),
        (np.zeros(4), ShapeError, "two axes"),
    ],
    ids=["nan", "inf", "empty", "one axis"],
)
def test_bad_vectors(X: np.ndarray, error: type[Exception], message: str) -> None:
    for function in (iso.silhouette_score, iso.silhouette_samples, iso.metrics.silhouette_by_cluster):
        with pytest.raises(error, match=message):
            function(X, [0, 0, 1, 1])


@pytest.mark.parametrize("scale", [1e20, 1e-30, 1.0])
@pytest.mark.parametrize("spread", [1.0, 1e-6])
def test_standard_error_in_float32_is_that_of_float64(rng, scale: float, spread: float) -> None:
    y = np.arange(300) % 3
    X = (rng.normal(size=(3, 40))[y] + spread * rng.normal(size=(300, 40))).astype(np.float32)
    scaled = (X * np.float32(scale)).astype(np.float32)
    wide = scaled.astype(np.float64)
    exact = silhouette_error(wide, Separation.of(wide, y))
    assert silhouette_error(scaled, Separation.of(scaled, y)) == pytest.approx(exact, rel=1e-3)


def test_a_labelled_space_needs_no_labels_named(rng) -> None:
    space = iso.Space(rng.normal(size=(60, 4)), labels=np.arange(60) % 3)
    plain = (space.vectors.numpy(), np.arange(60) % 3)
    for function in (
        iso.silhouette_score,
        iso.calinski_harabasz_score,
        iso.davies_bouldin_score,
        iso.metrics.dunn_index,
        iso.knn_purity,
        iso.metrics.linear_probe_accuracy,
        iso.metrics.between_share,
    ):
        assert function(space) == pytest.approx(function(*plain)), function.__name__
        with pytest.raises(InputError, match="`labels` is missing"):
            function(plain[0])


def test_no_graph_is_kept_and_autocast_changes_nothing(rng) -> None:
    X = torch.from_numpy(rng.normal(size=(200, 40))).float().requires_grad_()
    y = np.arange(200) % 3
    expected = iso.silhouette_score(X.detach(), y)
    assert isinstance(iso.silhouette_score(X, y), float)
    with torch.autocast("cpu", torch.bfloat16):
        assert iso.silhouette_score(X, y) == pytest.approx(expected, abs=1e-12)
        assert iso.isoscore(X.detach()) == pytest.approx(iso.isoscore(X.detach().clone()), abs=0)
        assert iso.lid(X.detach(), k=10) == pytest.approx(iso.lid(X.detach().double(), k=10), rel=1e-5)


RAY = np.array([3.0, 1, 7, 2, 5])


@pytest.mark.parametrize("n_dims", [5, 400])
def test_parallel_rows_have_no_cosine_silhouette(rng, n_dims: int) -> None:
    """Multiples of one vector point one way, and half of them turned round are two points."""
    rays = np.outer(np.arange(1, 41), np.resize(RAY, n_dims))
    labels = np.arange(40) % 2
    assert not iso.silhouette_samples(rays, labels, metric="cosine").any()
    turned = np.concatenate([rays * np.pi, -rays * 0.3])
    four = np.concatenate([labels, labels + 2])
    assert not iso.silhouette_samples(turned, four, metric="cosine").any()
    assert iso.silhouette_score(turned, four // 2, metric="cosine") == pytest.approx(1)


def test_one_row_amid_identical_ones_by_cosine(rng) -> None:
    """Its 8 companions are nearer to other clusters, at distance 0: −1 each; all else scores 0."""
    X = np.tile(rng.normal(size=8).astype("f4"), (27, 1))
    X[6] *= 1.5
    X[6, 0] += 0.01
    assert iso.silhouette_score(X, np.arange(27) % 3, metric="cosine") == pytest.approx(-8 / 27, rel=1e-9)


def test_parallel_rows_beside_spread_ones_by_cosine(rng) -> None:
    X = np.concatenate([np.outer(np.arange(1, 21), RAY), RAY + 0.05 * rng.normal(size=(20, 5))])
    scores = iso.silhouette_samples(X, [0, 1] * 10 + [2] * 20, metric="cosine")
    assert not scores[:20].any()
    units = X / np.linalg.norm(X, axis=1)[:, None]
    distances = 1 - units @ units.T
    a, b = distances[20:, 20:].sum(1) / 19, distances[20:, :20].mean(1)
    assert scores[20:] == pytest.approx((b - a) / np.maximum(a, b), rel=1e-9)
