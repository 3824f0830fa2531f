import numpy as np
import pytest
from tests.raising import raises

from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.cosine import mean_cosine
from isoscope.metrics.dimensions import dimension_contributions, self_similarity_shares
from isoscope.metrics.removed_dimensions import informativity, informativity_curve


@pytest.fixture(autouse=True, params=["held", "summed"])
def either_way(request, monkeypatch):
    """All cosines at once, or sums over rows: every test goes both ways."""
    if request.param == "summed":
        monkeypatch.setattr("isoscope.metrics.removed_dimensions._SMALL", 1)


X = np.random.default_rng(0).normal(size=(50, 9)) + np.linspace(0, 1.5, 9)


def units(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def brute_contributions(rows):
    U, n = units(rows), len(rows)
    return sum(U[i] * U[j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1))


def brute_informativity(rows, k, order=None):
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows[np.any(rows != 0, axis=1)]
    if order is None:
        order = np.argsort(-brute_contributions(rows), kind="stable")
    top = order[:k]
    less = rows.copy()
    less[:, top] = 0
    kept = np.any(less != 0, axis=1)
    pairs = np.triu_indices(int(kept.sum()), 1)
    U, V = units(rows[kept]), units(less[kept])
    return np.corrcoef((U @ U.T)[pairs], (V @ V.T)[pairs])[0, 1] ** 2


@pytest.mark.parametrize("k", [0, 1, 2, 5, 8])
def test_informativity_by_brute_force(k):
    assert informativity(X, n_dimensions=k) == pytest.approx(brute_informativity(X, k), rel=1e-9)


@pytest.mark.parametrize("shape", [(5, 30), (700, 3)])
def test_informativity_wide_and_tall(shape):
    rows = np.random.default_rng(4).normal(size=shape) + 0.5
    assert informativity(rows, n_dimensions=1) == pytest.approx(brute_informativity(rows, 1), rel=1e-9)


def test_informativity_of_a_narrow_cone_keeps_its_digits():
    rows = np.random.default_rng(5).normal(size=(80, 6)) * 1e-3 + [5, 3, 1, 1, 1, 1]
    centred = brute_informativity(rows, 1)  # cosines are 1 − 1e-7: numpy's own corrcoef centres first
    assert mean_cosine(rows) > 1 - 1e-6
    assert informativity(rows, n_dimensions=1) == pytest.approx(centred, rel=1e-5)


def test_informativity_drops_vectors_without_a_direction():
    padded = np.vstack([X, np.zeros((3, 9))])
    assert informativity(padded, n_dimensions=2) == pytest.approx(informativity(X, n_dimensions=2), rel=1e-12)
    top = int(np.argmax(dimension_contributions(X)))
    only_top = np.vstack([X, 3 * np.eye(9)[[top, top]]])  # nothing left after removal
    assert informativity(only_top, n_dimensions=1) == pytest.approx(
        brute_informativity(only_top, 1), rel=1e-9
    )


def test_informativity_in_blocks(monkeypatch):
    from isoscope import arrays

    expected = informativity(X, n_dimensions=2)
    monkeypatch.setattr(arrays, "block_rows", lambda *_: 7)
    assert informativity(X, n_dimensions=2) == pytest.approx(expected, rel=1e-12)


def test_curve_is_the_same_as_one_by_one():
    ks = (1, 2, 0, 5, 8)
    assert informativity_curve(X, n_dimensions=ks) == pytest.approx(
        {k: brute_informativity(X, k) for k in ks}, rel=1e-9
    )
    assert list(informativity_curve(X, n_dimensions=ks)) == list(ks)


def test_order_is_the_callers():
    order = np.array([4, 0, 8, 2])
    for k in (1, 2, 4):
        assert informativity(X, n_dimensions=k, order=order) == pytest.approx(
            brute_informativity(X, k, order), rel=1e-9
        )
    assert informativity(X, n_dimensions=2, order=order) != pytest.approx(
        informativity(X, n_dimensions=2), rel=1e-3
    )
    shares = self_similarity_shares(X, token_types=[0, 1] * 25)
    assert 0 <= informativity(X, n_dimensions=3, order=shares.order) <= 1


def test_vectors_that_vanish_for_the_most_are_left_out_for_all():
    order = [8, 7, 6]
    gone = np.vstack([X, np.eye(9)[[8, 8, 7]] + 0.5 * np.eye(9)[[7, 7, 8]]])  # nothing left of them at k = 2
    curve = informativity_curve(gone, n_dimensions=(1, 2), order=order)
    assert curve == pytest.approx({k: brute_informativity(X, k, order) for k in (1, 2)}, rel=1e-9)


def test_float32_far_from_the_origin():
    far = (X * 50 + 1e4).astype(np.float32)
    assert informativity(far) == pytest.approx(brute_informativity(far.astype(np.float64), 1), rel=1e-3)


def test_undefined():
    with pytest.raises(UndefinedError, match="do not vary"):
        informativity(np.eye(4))  # all cosines 0
    with pytest.raises(UndefinedError, match="do not vary"):
        informativity(np.outer(np.arange(1, 9), [0.3, 0.7, 0.1]))  # all cosines 1
    with pytest.raises(UndefinedError, match="do not vary"):
        informativity(X[:2])  # one pair
    with pytest.raises(UndefinedError, match="keep a direction"):
        informativity([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])


def test_bad_arguments():
    for k in (-1, 9):
        with raises(InputError, argument="n_dimensions", wanted="from 0 to 8"):
            informativity(X, n_dimensions=k)
    with pytest.raises(InputError, match="`n_dimensions` is empty"):
        informativity_curve(X, n_dimensions=())
    for order in ([0, 0, 1], [0, 9], [-1], [0.5, 1.0]):
        with pytest.raises(InputError, match="different dimensions"):
            informativity(X, order=order)
    with pytest.raises(InputError, match="`order` has 2"):
        informativity(X, n_dimensions=3, order=[0, 1])
