"""How much of the pattern of similarities remains after dimensions are removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from isoscope.arguments import renamed
from isoscope.arrays import as_matrix, blocks
from isoscope.errors import InputError, UndefinedError, check_whole
from isoscope.kernels.products import symmetric_product
from isoscope.metrics.dimensions import contributions_of
from isoscope.metrics.registry import metric
from isoscope.statistics.directions import Directions, unit_rows
from isoscope.tables import percent

_EQUAL_COSINES = 1e-14  # a spread of cosines below this is the rounding of unit vectors in float64
_CANCELLED = 1e-12  # a variance this far below the terms it is the difference of is rounding
_SMALL = 2048  # rows up to which all cosines are held at once: 32 MB, and far cheaper for several k


@metric(
    family="dimensions",
    range=(0.0, 1.0),
    high="similarities do not hang on one dimension",
    better="high",
    invariances=("scale",),
    paper="Xiao, Long, Al Moubayed 2023, On Isotropy, Contextualization and Learning Dynamics",
    sentence=lambda value: (
        f"without the strongest dimension, {percent(value)} of the pattern of similarities remains"
    ),
)
@renamed(k="n_dimensions")
def informativity(X: Any, *, n_dimensions: int = 1, order: Any = None) -> float:
    """Compute how much of the pattern of similarities remains without the top k dimensions.

        r² = Corr(cos(x_i, x_j), cos(x'_i, x'_j))² over all pairs i < j,   x' without those dimensions

    Exact over all pairs; for large n in O(n d²), with no n × n matrix: with u = ū + a, cosines less ‖ū‖² are
    ū·a_i + ū·a_j + a_i·a_j, whose products sum over all pairs to 2n Σ (ū·a)(ū'·a') + ‖AᵀA'‖_F².
    Range [0, 1]; low means that those dimensions decided who is similar to whom. Vectors that are zero,
    with or without the top dimensions, are left out. Invariant to one scale.
    Paper: Xiao, Long, Al Moubayed 2023; after Timkey, van Schijndel 2021.

    Args:
        X: (n, d) vectors in any array.
        n_dimensions: how many dimensions k to remove, 0 … d − 1.
        order: dimensions, the first to be removed first; by their contribution to the mean cosine, the
            largest first, where not given.

    >>> round(informativity([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 0.0, 2.0], [1.0, 0.5, -3.0]]), 4)
    0.6705
    """
    (share,) = informativity_curve(X, n_dimensions=(n_dimensions,), order=order).values()
    return share


@renamed(ks="n_dimensions")
def informativity_curve(
    X: Any, *, n_dimensions: Iterable[int] = (1, 2, 3, 5, 10), order: Any = None
) -> dict[int, float]:
    """Compute `informativity` for several numbers of removed dimensions, over the same pairs.

    Vectors that are zero without the most dimensions are left out for every number of them. What concerns
    the whole vectors is computed once. Range [0, 1] each; invariant to one scale.
    Paper: Xiao, Long, Al Moubayed 2023.

    >>> X = [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 0.0, 2.0], [1.0, 0.5, -3.0]]
    >>> {k: round(r2, 4) for k, r2 in informativity_curve(X, n_dimensions=(0, 1)).items()}
    {0: 1.0, 1: 0.6705}
    """
    matrix = as_matrix(X).detach()
    d = matrix.shape[1]
    if isinstance(n_dimensions, str | bytes) or not isinstance(n_dimensions, Iterable):
        raise InputError(argument="n_dimensions", got=n_dimensions, wanted="a list of whole numbers")
    numbers = [check_whole("n_dimensions", k, least=0, most=d - 1) for k in n_dimensions]
    if not numbers:
        raise InputError("is empty", argument="n_dimensions", wanted="at least one number")
    columns = _order(matrix, order, max(numbers))
    kind = _Held if len(matrix) <= _SMALL else _Summed
    pairs = kind(matrix, columns, numbers)
    whole = pairs.variance(0)
    curve = {}
    for k in numbers:
        left = pairs.variance(k)
        if whole is None or left is None:
            raise UndefinedError(
                f"informativity is undefined: the cosines with or without the top {k} do not vary"
            )
        both = pairs.covariance(0, k)
        curve[k] = min(1.0, both * both / (whole * left))
    return curve


def _order(matrix: Tensor, order: Any, most: int) -> Tensor:
    """Return (d,) all dimensions, those to be removed first in front."""
    d = matrix.shape[1]
    if order is None:
        return contributions_of(Directions.of(matrix)).sort(descending=True, stable=True).indices
    try:
        first = torch.as_tensor(order, device=matrix.device).reshape(-1)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        first = torch.empty(1)  # which is no list of whole numbers
    if (
        first.is_floating_point()
        or first.dtype == torch.bool
        or len(first.unique()) != len(first)
        or not bool(((first >= 0) & (first < d)).all())
    ):
        raise InputError(f"is not a list of different dimensions 0 … {d - 1}", argument="order")
    if len(first) < most:
        raise InputError(
            f"has {len(first)} dimensions", argument="order", wanted=f"at least the {most} to be removed"
        )
    rest = torch.ones(d, dtype=torch.bool, device=matrix.device)
    rest[first] = False
    return torch.cat([first.long(), rest.nonzero().flatten()])


def _that_remain(ordered: Tensor, most: int) -> Tensor:
    """Return the rows that are not zero without the first columns."""
    return ordered[(ordered[:, most:] != 0).any(dim=1)]


def _need_two(n: int) -> None:
    if n < 2:
        raise UndefinedError(
            f"informativity needs vectors that keep a direction without those dimensions; {n} do"
        )


class _Held:
    """The cosines of all pairs without the first k columns, for each k; k = 0 removes none.

    Products over the columns that are left for the largest k come first, and those of the others are added
    as k falls: each column is multiplied once, and nothing cancels.
    """

    def __init__(self, matrix: Tensor, columns: Tensor, ks: list[int]) -> None:
        rows = _that_remain(matrix[:, columns], max(ks))
        _need_two(len(rows))
        units, self._n = unit_rows(rows)[0], len(rows)
        below = torch.ones(self._n, self._n, dtype=torch.bool, device=units.device).tril(-1)
        products, stop = units.new_zeros(self._n, self._n), units.shape[1]
        self._centred: dict[int, Tensor] = {}
        for k in sorted({0, *ks}, reverse=True):
            products += symmetric_product(units[:, k:stop].T)
            lengths, stop = products.diagonal().sqrt(), k
            cosines = (products / lengths / lengths[:, None])[below]
            self._centred[k] = cosines - cosines.mean()

    def variance(self, k: int) -> float | None:
        """Return the variance of the cosines times the number of pairs; None if they do not vary."""
        value = self.covariance(k, k)
        return None if value <= self._n * (self._n - 1) / 2 * _EQUAL_COSINES**2 else value

    def covariance(self, k: int, m: int) -> float:
        """Return the covariance of the cosines without k and without m columns, times the number of pairs."""
        return float(self._centred[k] @ self._centred[m])


class _Summed:
    """The same from sums over rows, without a matrix of pairs; covariances are times n(n − 1)."""

    def __init__(self, matrix: Tensor, columns: Tensor, ks: list[int]) -> None:
        self._matrix, self._columns, self._most = matrix, columns, max(ks)
        self._means: dict[int, Tensor] = {}
        self.n = sum(len(rows) for rows in self._rows())
        _need_two(self.n)

    def _rows(self) -> Iterator[Tensor]:
        for block in blocks(self._matrix):
            yield _that_remain(block[:, self._columns], self._most)

    def _mean(self, k: int) -> Tensor:
        """Return ū, the mean unit vector."""
        if k not in self._means:
            d = len(self._columns) - k
            total = self._matrix.new_zeros(d, dtype=torch.float64)
            for rows in self._rows():
                total = total + unit_rows(rows[:, k:])[0].sum(dim=0)
            self._means[k] = total / self.n
        return self._means[k]

    def variance(self, k: int) -> float | None:
        """Return the variance of the cosines; None if they do not vary."""
        total, less = self._sums(k, k)
        value = total - less
        floor = max(_CANCELLED * total, self.n * (self.n - 1) * _EQUAL_COSINES**2)
        return None if value <= floor else value

    def covariance(self, k: int, m: int) -> float:
        """Return the covariance of the cosines without k and without m columns."""
        total, less = self._sums(k, m)
        return total - less

    def _sums(self, k: int, m: int) -> tuple[float, float]:
        """Return Σ over all i, j of products of cosines less ‖ū‖², and the part that is not from pairs."""
        u, v = self._mean(k), self._mean(m)
        products = self._matrix.new_zeros(len(u), len(v), dtype=torch.float64)
        projected = self._matrix.new_zeros((), dtype=torch.float64)
        for rows in self._rows():
            A = unit_rows(rows[:, k:])[0] - u
            B = A if k == m else unit_rows(rows[:, m:])[0] - v
            products = products + (symmetric_product(A) if k == m else A.T @ B)
            projected = projected + (A @ u) @ (B @ v)
        total = 2 * self.n * float(projected) + float((products * products).sum())
        diagonal = float((1 - u @ u) * (1 - v @ v))  # of one i = j: the product of c_ii − ‖ū‖²
        # less the n diagonal terms, and less the squared mean −diagonal/(n − 1)² of the pairs left
        return total, self.n * diagonal + self.n * diagonal / (self.n - 1)
