from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.comparison import similarity_matrix
from isoscope.comparison.similarity import MEASURES

FUNCTIONS = {
    "cka_debiased": iso.metrics.linear_cka_debiased,
    "cka": iso.linear_cka,
    "rsa": iso.metrics.rsa,
    "procrustes": iso.metrics.procrustes_distance,
    "overlap": iso.metrics.neighbor_overlap,
}


def spaces(rng: np.random.Generator, n: int = 120) -> dict[str, np.ndarray]:
    X = rng.normal(size=(n, 9)) + 1
    return {
        "first": X,
        "noisy": 3 * X + rng.normal(size=X.shape),
        "half": X[:, :4],
        "other": rng.normal(size=(n, 6)),
    }


@pytest.mark.parametrize("measure", MEASURES)
def test_values_are_those_of_two_spaces_at_a_time(rng: np.random.Generator, measure: str) -> None:
    some = spaces(rng)
    matrix = similarity_matrix(some, measure=measure)
    expected = [[FUNCTIONS[measure](a, b) for b in some.values()] for a in some.values()]
    assert np.allclose(matrix.values, expected, rtol=1e-9, atol=1e-7)
    assert matrix.rows == matrix.columns == tuple(some)
    assert matrix.value("first", "half") == matrix.values[0][2]
    errors = np.array(matrix.standard_errors)
    assert np.allclose(errors, errors.T)
    assert (errors[~np.eye(4, dtype=bool)] > 0).all()
    assert not errors.diagonal().any()


@pytest.mark.parametrize("measure", MEASURES)
def test_errors_match_the_spread_over_samples(rng: np.random.Generator, measure: str) -> None:
    drawn = [similarity_matrix(spaces(rng, 80), measure=measure) for _ in range(40)]
    values, errors = (
        np.array([getattr(one, name) for one in drawn]) for name in ("values", "standard_errors")
    )
    ratio = errors[:, 0, 1].mean() / values[:, 0, 1].std(ddof=1)
    assert 0.65 < ratio < 1.9  # of spaces that are alike


def test_against_takes_other_spaces_as_columns(rng: np.random.Generator) -> None:
    some = spaces(rng)
    rows, columns = {"a": some["first"], "b": some["noisy"]}, [some["half"], some["other"], some["first"]]
    matrix = similarity_matrix(rows, against=columns, measure="cka")
    assert (matrix.rows, matrix.columns) == (("a", "b"), ("0", "1", "2"))
    assert matrix.values[1][0] == pytest.approx(iso.linear_cka(some["noisy"], some["half"]))
    assert matrix.values[0][2] == pytest.approx(1)


def test_the_result_is_a_view_of_readings(rng: np.random.Generator) -> None:
    matrix = similarity_matrix(spaces(rng))
    table = matrix.to_pandas()
    assert list(table[["a", "b"]].iloc[1]) == ["first", "noisy"]
    assert table.value.to_list() == [value for row in matrix.values for value in row]
    assert table.standard_error[1] == matrix.standard_errors[0][1]
    assert matrix.to_dict()["values"][0][1] == matrix.values[0][1]
    assert "4 × 4 spaces, 120 items" in str(matrix)
    assert "-0.00" not in str(matrix)
    wide = similarity_matrix([rng.normal(size=(20, 3)) for _ in range(30)])
    assert "12 of 30 columns are shown" in str(wide)
    assert len(wide.to_pandas()) == 900


def test_samples_zero_vectors_and_paths(rng: np.random.Generator, tmp_path: Path) -> None:
    some = spaces(rng)
    sampled = similarity_matrix(some, sample=50, seed=1)
    assert sampled.n == 50
    assert "a random 50 of 120 items" in sampled.notes[0]
    assert similarity_matrix(some, sample=50, seed=2).values != sampled.values
    np.save(tmp_path / "x.npy", some["first"])
    read = similarity_matrix({**some, "first": tmp_path / "x.npy"})
    assert read.values == similarity_matrix(some).values
    some["first"][3] = 0
    assert "1 items are left out" in similarity_matrix(some, measure="rsa").notes[0]


def test_undefined_values_and_bad_input(rng: np.random.Generator) -> None:
    some = spaces(rng)
    flat = {**some, "flat": np.ones((120, 3))}
    for measure in ("cka_debiased", "procrustes"):
        matrix = similarity_matrix(flat, measure=measure)
        assert matrix.value("first", "flat") is None
        assert matrix.value("first", "noisy") is not None
        assert "–" in str(matrix)
    with raises(iso.InputError, argument="measure", got="svcca"):
        similarity_matrix(some, measure="svcca")
    with raises(iso.InputError, argument="spaces"):
        similarity_matrix({})
    with raises(iso.InputError, argument="sample", got=2):
        similarity_matrix(some, sample=2)
    with pytest.raises(iso.ShapeError, match="'other' has 119 rows and the first 120"):
        similarity_matrix({**some, "other": some["other"][:-1]})
    with pytest.raises(iso.UndefinedError, match="at least 5 items"):
        similarity_matrix({name: one[:4] for name, one in some.items()})
    with pytest.raises(KeyError, match="none of first"):
        similarity_matrix(some).value("first", "last")


def test_the_figure_shows_the_matrix(rng: np.random.Generator) -> None:
    matrix = similarity_matrix(spaces(rng))
    ax = iso.plots.plot_similarity(matrix)
    assert np.allclose(ax.images[0].get_array(), matrix.values)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(matrix.rows)
