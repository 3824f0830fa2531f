from __future__ import annotations

import numpy as np
import pytest
import torch

from isoscope.training.classifier import Classifier, _row_sums, _sorted_sums, n_parameters
from isoscope.training.configuration import Configuration
from isoscope.training.problem import Problem


def test_both_ways_to_add_up_rows_agree(rng) -> None:
    values = torch.from_numpy(rng.normal(size=(50, 3, 4)))
    rows = torch.from_numpy(rng.integers(0, 20, size=50))
    rows[rows == 7] = 8  # a row nothing belongs to
    expected = np.zeros((20, 3, 4))
    np.add.at(expected, rows.numpy(), values.numpy())
    np.testing.assert_allclose(_row_sums(values, rows, 20), expected, atol=1e-12)
    np.testing.assert_allclose(_sorted_sums(values, rows, 20), expected, atol=1e-12)


def test_the_gradient_through_pairs(rng) -> None:
    pairs = rng.integers(0, 6, size=(9, 3))
    problem = Problem.of(rng.normal(size=(6, 2)), np.arange(9) % 2, pairs=pairs)
    start = Classifier.of(problem, Configuration(), [0, 1])

    def scores(table: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return Classifier((weight,), start.biases, "relu", True)(table, problem)[1]

    table = problem.table.repeat(2, 1, 1).requires_grad_()
    assert torch.autograd.gradcheck(scores, (table, start.weights[0].clone().requires_grad_()))


def test_each_seed_starts_as_nn_linear_would(rng) -> None:
    problem = Problem.of(rng.normal(size=(10, 4)), np.arange(10) % 3)
    found = Classifier.of(problem, Configuration(hidden=(5,)), [7, 3])
    for place, seed in enumerate((7, 3)):
        torch.manual_seed(seed)
        first = torch.nn.Linear(4, 5, dtype=torch.float64)
        second = torch.nn.Linear(5, 3, dtype=torch.float64)
        assert torch.equal(found.weights[0][place], first.weight)
        assert torch.equal(found.biases[1][place], second.bias)


@pytest.mark.parametrize(
    ("n", "d", "n_items", "columns", "n_labels", "bias", "published"),
    [
        (10_662, 384, 10_662, 1, 2, False, 4_094_976),  # polarity
        (12_982, 384, 9_842, 2, 3, True, 4_987_395),  # SNLI
        (8_532, 384, 8_551, 1, 2, True, 3_277_058),  # CoLA
        (925, 768, 635, 2, 2, True, 713_474),  # WNLI, mpnet
    ],
)
def test_the_papers_parameter_counts(
    n: int, d: int, n_items: int, columns: int, n_labels: int, bias: bool, published: int
) -> None:
    pairs = None if (columns, n_items) == (1, n) else np.zeros((n_items, columns), dtype=int)
    problem = Problem.of(np.zeros((n, d), dtype=np.float32), np.arange(n_items) % n_labels, pairs=pairs)
    assert n_parameters(problem, Configuration(bias=bias)) == published


def test_multi_label_parameter_counts() -> None:
    sets = [[k % 26, (k * 7) % 26] for k in range(2275)]
    problem = Problem.of(np.zeros((2275, 300), dtype=np.float32), sets)
    assert n_parameters(problem, Configuration()) == 690_326  # supersenses
