import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoscope.metrics.isotropy import isoscore
from isoscope_papers.theory import checks as equation_checks
from isoscope_papers.theory import equations
from isoscope_papers.theory.counterexamples import cosine_to_ones
from isoscope_papers.theory.equations import STATEMENTS, Truth, checked, statements_table

BY_KEY = {one.key: one for one in STATEMENTS}


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.key)
def test_what_holds_is_so(statement):
    @settings(max_examples=60)
    @given(st.integers(0, 2**32 - 1))
    def check(seed):
        assert statement.check(np.random.default_rng(seed))

    check()


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.key)
def test_what_is_not_true_has_a_counterexample(statement):
    assert (statement.counterexample is None) == (statement.truth is Truth.TRUE)
    if statement.counterexample is not None:
        found = statement.counterexample()
        assert found.fails
        assert all(math.isfinite(value) for value in found.values.values())
        assert all(len(space) == len(found.labels) for space in found.spaces)


def test_every_numbered_equation_and_the_named_claims_are_there():
    places = " ".join(one.where for one in STATEMENTS)
    for place in (
        "eq. 1",
        "eq. 2",
        "eq. 3",
        "eq. 4",
        "eq. 5",
        "chord",
        "below eq. 2",
        "appendix B",
        "Limitations",
    ):
        assert place in places
    assert len(BY_KEY) == len(STATEMENTS)


def test_a_check_can_fail(monkeypatch):
    """A wrong closed form is found out."""
    monkeypatch.setattr(equation_checks, "isoscore", lambda X: isoscore(X) * 0.99)
    assert checked(BY_KEY["cosine"], n_cases=10) == 0
    assert checked(BY_KEY["chord"], n_cases=10) == 10


def test_smaller_cases_do_not_contradict():
    """Below the size of each counterexample the statement holds."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        plane = rng.normal(size=(int(rng.integers(2, 6)), 2)) * [1, 10 ** rng.uniform(-3, 0)]
        assert math.acos(min(1, cosine_to_ones(plane))) <= math.pi / 4 + 1e-9  # d = 2: the angle's bound
    for points in ([0, 0, 1], [0, 0, 5]):  # d = 2 with K = 2 collapsed labels: never isotropic
        assert isoscore(np.column_stack([points, np.zeros(3)])) == pytest.approx(0)


def test_two_labels_on_a_line_have_eq_4():
    """K = 2: at every optimum within |d|, |c| ≤ 1 labels are points of their own."""
    from itertools import product

    best = []
    for points, classes in product(product((-1.0, 1.0), repeat=4), product((-1.0, 1.0), repeat=2)):
        margins = np.array([classes[0] - classes[1], classes[1] - classes[0]])
        best.append((np.array(points) @ margins[[0, 0, 1, 1]], points))
    top = max(value for value, _ in best)
    assert top == 2 * 4
    for value, points in best:
        if value == top:
            assert points[0] == points[1] != points[2] == points[3]


def test_the_table():
    heads, cells = statements_table()
    assert len(cells) == len(STATEMENTS)
    assert all(len(row) == len(heads) for row in cells)
    kept = json.loads(json.dumps([one.to_dict() for one in equations.STATEMENTS]))
    assert [one["key"] for one in kept] == list(BY_KEY)
    assert {row[2] for row in cells} == {"true", "true with a condition", "false"}
