import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isoscope as iso
from isoscope_papers.catalogue import catalogue
from isoscope_papers.theory import checks
from isoscope_papers.theory.checks import (
    accuracy_of_least_squares,
    cosine_to_ones,
    crowd,
    signed_distances,
    spread,
)
from isoscope_papers.theory.statements import STATEMENTS, statement_findings, statements_table
from isoscope_papers.verdict import Verdict

ALL = pytest.mark.parametrize("statement", STATEMENTS.values(), ids=lambda one: one.key)


@ALL
@pytest.mark.slow
def test_what_holds_is_so(statement):
    check = getattr(checks, statement.key)

    @settings(max_examples=60)
    @given(st.integers(0, 2**32 - 1))
    def holds(seed):
        assert check(np.random.default_rng(seed))

    holds()


@ALL
def test_a_statement_is_of_the_catalogue_and_complete(statement):
    assert f"classifiers/{statement.claim}" in catalogue()
    assert bool(statement.points) == bool(statement.counterexample) == (statement.verdict is not Verdict.HELD)
    assert len(statement.points) == len(statement.labels)
    assert bool(statement.condition) == (statement.verdict is Verdict.CONDITION)


def _isotropy(X, _labels):
    return math.isclose(iso.isoscore(X), 1)


def _silhouette_needs(X, labels):
    return iso.silhouette_score(X, labels) == iso.silhouette_score(9 * X, labels) == 1


def _square_root(X, labels):
    even, uneven = X / math.sqrt(2), np.array([[-1.0], [-1], [2]]) / math.sqrt(6)
    sums = [iso.metrics.silhouette_objective(space, labels) for space in (even, uneven)]
    distances = [signed_distances(space, labels) for space in (even, uneven)]
    largest = 2 * len(X) * spread(even)
    optimal = all(math.isclose(one, largest) for one in sums)
    return optimal and spread(even) == pytest.approx(spread(uneven)), "{:.3f} and {:.3f}".format(*distances)


def _angle(X, _labels):
    alpha = math.acos(cosine_to_ones(X))
    return alpha > math.pi / 4, f"{math.degrees(alpha):.1f}°"


def _objective_i(X, _labels):
    flat = np.array([[0.0, 0], [4, 0], [2, 0.1]])
    sums = iso.metrics.isotropy_objective(X), iso.metrics.isotropy_objective(flat)
    turned = cosine_to_ones(X) == pytest.approx(1) and sums[0] < sums[1]
    return turned, f"sum {sums[0]:.0f}", f"{cosine_to_ones(flat):.3f} and {sums[1]:.0f}"


def _incompatible(X, labels):
    largest = 2 * len(X) * spread(X)
    return math.isclose(iso.isoscore(X), 1) and math.isclose(
        iso.metrics.silhouette_objective(X, labels), largest
    )


def _clusters(X, labels):
    two, names = crowd(2, 36)
    isotropic = min(iso.isoscore(X), iso.isoscore(two)) > 1 - 1e-12
    return (
        isotropic and iso.silhouette_score(X, labels) == 1,
        f"silhouette {iso.silhouette_score(two, names):.2f}",
    )


def _classes(X, labels, classes):
    return iso.metrics.classifier_objective(X, labels, classes=np.array(classes, dtype=float)[:, None])


def _prior_norms(X, labels):
    worth = _classes(X, labels, [1, 0]), _classes(X, labels, [0, -1])
    best = max(product((-1, 0, 1), repeat=2), key=lambda pair: _classes(X, labels, pair))
    return best == (1, -1), "O_C = {:.0f}c_a − {:.0f}c_b".format(*worth)


def _collapse(X, labels):
    corners = list(product((-1.0, 1.0), repeat=3))
    values = {
        (points, classes): _classes(np.array(points)[:, None], labels, classes)
        for points, classes in product(corners, repeat=2)
    }
    best = max(values.values())
    optima = {points for (points, _), value in values.items() if value > best - 1e-12}
    merged = all(len(set(points)) == 2 for points in optima)
    return merged and tuple(X.ravel()) in optima, f"O_C, {best:.0f},"


def _classifiers(X, labels):
    return accuracy_of_least_squares(X, np.array(labels)) == 1 and math.isclose(iso.isoscore(X), 1)


def _triplet_bound(X, labels):
    squared, plain = iso.metrics.silhouette_objective(X, labels), signed_distances(X, labels)
    bound = iso.metrics.triplet_bound(X, labels)
    return squared == plain > bound, f"O_S is {squared:.0f}", f"the bound {bound:.0f}"


def _other_scores(X, labels):
    ratio, silhouette = iso.calinski_harabasz_score(X, labels), iso.silhouette_score(X, labels)
    return ratio > 1e5 and silhouette < 0, f"{ratio:,.0f}", f"silhouette −{-silhouette:.2f}"


@pytest.mark.parametrize(
    "statement", [one for one in STATEMENTS.values() if one.points], ids=lambda one: one.key
)
def test_counterexamples_refute_with_the_numbers_they_show(statement):
    found = globals()[f"_{statement.key}"](np.array(statement.points, dtype=float), list(statement.labels))
    fails, *numbers = found if isinstance(found, tuple) else (found,)
    assert fails
    for shown in numbers:
        assert shown in statement.counterexample


def test_a_check_can_fail(monkeypatch):
    """A wrong closed form is found out."""
    monkeypatch.setattr(checks.iso, "isoscore", lambda X, right=iso.isoscore: right(X) * 0.99)
    assert STATEMENTS["cosine"].n_held(n_cases=10) == 0
    assert STATEMENTS["chord"].n_held(n_cases=10) == 10


def test_a_failed_check_is_no_verdict():
    whole, failed = statement_findings({"chord": 10, "angle": 9}, 10)
    assert whole.verdict is Verdict.HELD
    assert failed.verdict is Verdict.INCONCLUSIVE
    assert "9 of 10" in failed.evidence


def test_smaller_cases_do_not_contradict():
    """Below the size of each counterexample the statement holds."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        plane = rng.normal(size=(int(rng.integers(2, 6)), 2)) * [1, 10 ** rng.uniform(-3, 0)]
        assert math.acos(min(1, cosine_to_ones(plane))) <= math.pi / 4 + 1e-9  # d = 2: the angle's bound
    for points in ([0, 0, 1], [0, 0, 5]):  # d = 2 with K = 2 collapsed labels: never isotropic
        assert iso.isoscore(np.column_stack([points, np.zeros(3)])) == pytest.approx(0)


def test_two_labels_on_a_line_have_eq_4():
    """K = 2: at every optimum within |d|, |c| ≤ 1 labels are points of their own."""
    best = []
    for points, classes in product(product((-1.0, 1.0), repeat=4), product((-1.0, 1.0), repeat=2)):
        margins = np.array([classes[0] - classes[1], classes[1] - classes[0]])
        best.append((np.array(points) @ margins[[0, 0, 1, 1]], points))
    top = max(value for value, _ in best)
    assert top == 2 * 4
    for value, points in best:
        if value == top:
            assert points[0] == points[1] != points[2] == points[3]


def test_every_numbered_equation_and_the_named_claims_are_in_the_table():
    heads, cells = statements_table()
    assert len(cells) == len(STATEMENTS)
    assert all(len(row) == len(heads) for row in cells)
    places = " ".join(row[0] for row in cells)
    for place in (*(f"equation {number}" for number in range(1, 6)), "figure 1", "appendix B", "limitations"):
        assert place in places
