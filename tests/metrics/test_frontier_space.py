import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.raising import raises

from isoscope.errors import InputError
from isoscope.metrics.frontier import isotropy_ceiling, scatter_decomposition
from isoscope.metrics.frontier_space import frontier_space, points_needed
from isoscope.metrics.isotropy import isoscore

N_EXAMPLES, N_EACH = 500, 20  # 10,000 labelled spaces
SHARES = st.one_of(st.floats(0, 1), st.integers(0, 12).map(lambda j: j / 12), st.just(1.0))


@st.composite
def problems(draw):
    """Labels of any sizes, dimensions, and a share between labels that they can have."""
    most = draw(st.sampled_from([2, 6]))  # few points bind ranks: half the time, single ones and pairs
    counts = draw(st.lists(st.integers(1, most), min_size=1, max_size=8).filter(lambda c: sum(c) > 1))
    d, rho = draw(st.integers(2, 12)), draw(SHARES)
    if len(counts) == 1:
        rho = 0.0
    if sum(counts) == len(counts):
        rho = 1.0
    return counts, d, rho


def scores(X, labels):
    """IsoScore and ρ of each of (B, n, d) spaces, by their definitions, with no code of the package."""
    X = X - X.mean(axis=1, keepdims=True)
    members = (labels == np.unique(labels)[:, None]) / np.bincount(labels)[:, None]
    means = (members @ X)[:, labels]
    sigma = X.transpose(0, 2, 1) @ X
    share = (means**2).sum(axis=(1, 2)) / (X**2).sum(axis=(1, 2))
    participation = np.trace(sigma, axis1=1, axis2=2) ** 2 / (sigma**2).sum(axis=(1, 2))
    return (participation - 1) / (X.shape[2] - 1), share.clip(0, 1)


def gaps(problem, seed, log_push):
    """How far under the ceiling random spaces lie: half frontier spaces, pushed off it; half noise."""
    counts, d, rho = problem
    rng = np.random.default_rng(seed)
    space = frontier_space(counts, d, between=rho, seed=seed)
    labels = space.labels.codes.numpy()
    n, K = len(space), len(counts)
    half = N_EACH // 2
    pushed = space.vectors.numpy() + 10**log_push * rng.normal(size=(half, n, d)) / math.sqrt(n * d)
    means = rng.normal(size=(half, K, d)) * 10 ** rng.uniform(-2, 2, size=(half, 1, 1))
    noise = rng.normal(size=(half, n, d)) * 10 ** rng.uniform(-2, 0, size=(half, 1, d))
    found, shares = scores(np.concatenate([pushed, means[:, labels] + noise]), labels)
    if K == 1:
        shares = np.zeros_like(shares)
    if n == K:
        shares = np.ones_like(shares)
    for score, share in zip(found, shares, strict=True):
        sharp = isotropy_ceiling(K, d, between=share, n_points=n)
        assert sharp <= isotropy_ceiling(K, d, between=share) + 1e-12
        yield sharp - score


@pytest.mark.slow
def test_no_labelled_space_is_above_the_frontier():
    tried = []

    @settings(max_examples=N_EXAMPLES)
    @given(problems(), st.integers(0, 2**32 - 1), st.floats(-6, 1))
    def search(problem, seed, log_push):
        for gap in gaps(problem, seed, log_push):
            assert gap > -1e-9
            tried.append(gap)

    search()
    assert len(tried) >= 10_000
    assert np.mean(np.array(tried) < 1e-3) > 0.2  # so that a ceiling a little too low would have shown


def which_case(K, d, n, rho):
    """Which of the theorem's cases applies; the last apart where W has no room for all of V."""
    r, w = min(K - 1, d), min(n - K, d)
    D = min(d, r + w)
    if rho > r / D:
        return "first"
    if 1 - rho > w / D:
        return "second"
    return "flat" if w == D else "flat, few points"


@pytest.mark.slow
def test_the_construction_meets_the_frontier_in_every_case():
    seen = Counter()
    for K, d, more in product(range(1, 7), range(2, 6), range(6)):
        counts = [1 + (k < more) + (k < more - K) for k in range(K)]
        n = sum(counts)
        shares = [j / 12 for j in range(13)] if 1 < K < n else [float(K > 1)]
        for rho in shares if n > 1 else []:
            space = frontier_space(counts, d, between=rho)
            found, share = scores(space.vectors.numpy()[None], space.labels.codes.numpy())
            assert share[0] == pytest.approx(rho, abs=1e-9)
            assert found[0] == pytest.approx(isotropy_ceiling(K, d, between=rho, n_points=n), abs=1e-9)
            seen[which_case(K, d, n, rho)] += 1
    assert min(seen.values()) > 50, seen
    assert len(seen) == 4


@pytest.mark.slow
@given(problems(), st.integers(0, 2**32 - 1))
def test_the_construction_meets_the_frontier(problem, seed):
    counts, d, rho = problem
    space = frontier_space(counts, d, between=rho, seed=seed)
    found, shares = scores(space.vectors.numpy()[None], space.labels.codes.numpy())
    n, K = sum(counts), len(counts)
    assert shares[0] == pytest.approx(rho, abs=1e-9)
    assert found[0] == pytest.approx(isotropy_ceiling(K, d, between=rho, n_points=n), abs=1e-9)
    reached = abs(found[0] - isotropy_ceiling(K, d, between=rho)) < 1e-9
    # within rounding of a bound, a point more or less makes no difference that can be seen
    if abs(rho * d - round(rho * d)) > 1e-3 or rho * d == round(rho * d):
        assert reached == (n >= points_needed(K, d, between=rho)) or 1 + d * rho == K


@pytest.mark.parametrize("rho", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_uneven_labels_reach_the_ceiling_of_any_number_of_points(rho):
    split = scatter_decomposition(frontier_space([2, 40, 7, 1], 9, between=rho))
    assert split.between_share == pytest.approx(rho, abs=1e-12)
    assert split.isoscore == pytest.approx(isotropy_ceiling(4, 9, between=rho), abs=1e-12)


@pytest.mark.parametrize(("K", "d"), [(2, 3), (4, 3), (9, 4), (1, 5)])
@pytest.mark.parametrize("rho", [0.0, 0.25, 0.5, 0.999, 1 - 1e-13, 1.0])
def test_as_many_points_as_needed_reach_the_ceiling_and_one_less_does_not(K, d, rho):
    rho = 0.0 if K == 1 else rho
    least, ceiling = points_needed(K, d, between=rho), isotropy_ceiling(K, d, between=rho)
    assert isotropy_ceiling(K, d, between=rho, n_points=least) == pytest.approx(ceiling, abs=1e-12)
    if rho < 1 - 1e-9 and least - 1 > K:
        assert isotropy_ceiling(K, d, between=rho, n_points=least - 1) < ceiling


def test_seeds_and_scale():
    one, same, other = (frontier_space([4, 4], 6, between=0.4, seed=seed) for seed in (1, 1, 2))
    assert (one.vectors == same.vectors).all()
    assert not np.allclose(one.vectors, other.vectors)
    assert float(one.vectors.var(dim=0, correction=0).sum()) == pytest.approx(1)
    assert one.vectors.mean(dim=0).abs().max() < 1e-12
    assert one.labels.codes.tolist() == [0] * 4 + [1] * 4


def test_few_points():
    """n points span n − 1 dimensions: a peak at ρ = (K − 1)/(n − 1), lower on both sides."""
    n, K, d = 9, 3, 20
    peak = (K - 1) / (n - 1)
    heights = [isoscore(frontier_space([3] * K, d, between=rho)) for rho in (0, peak, 0.7)]
    assert heights[1] == pytest.approx((n - 2) / (d - 1))
    assert max(heights[0], heights[2]) < heights[1]
    assert heights[0] == pytest.approx((n - K - 1) / (d - 1))


@pytest.mark.parametrize(
    ("counts", "between", "message"),
    [
        ([], 0.5, "`n_per_label` is empty"),
        ([3, 0], 0.5, r"`n_per_label\[1\]` must be .*got 0"),
        ([3, 2.5], 0.5, r"`n_per_label\[1\]` must be .*got 2.5"),
        ([3, 3], 1.5, r"`between` must be .*got 1.5"),
        ([5], 0.5, "one label"),
        ([1, 1, 1], 0.5, "one point has no variance within"),
    ],
)
def test_bad_arguments(counts, between, message):
    with pytest.raises(InputError, match=message):
        frontier_space(counts, 4, between=between)
    with raises(InputError, argument="seed", wanted="a whole number"):
        frontier_space([2, 2], 4, seed=-1)
