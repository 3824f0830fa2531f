"""Moments that are added up batch by batch are those of all rows at once, in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from isoscope.models.layers.moment_sums import MomentSums
from isoscope.statistics.moments import Moments

N, D = 900, 40
WITHIN = 2 * 2**-24 * N**0.5  # what rounding leaves of a sum of so many float32 products


def normal(n: int = N, d: int = D) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0)) * torch.linspace(0.1, 2, d)


def moved(at: int, by: float) -> Tensor:
    """Return rows of which those from `at` on lie elsewhere."""
    rows = normal()
    rows[at:] += by
    return rows


ROWS = {
    "about zero": normal(),
    "about a point": normal() + 50,
    "one dimension far away": normal() + 300 * (torch.arange(D) == 3),
    "first rows far from the rest": moved(60, 1e4),
    "last rows far from the rest": moved(800, 1e4),
    "tiny": 1e-25 * normal(),  # squares vanish in float32
    "huge": 1e16 * normal(),
    "equal": torch.full((N, D), 0.1),
    "zero": torch.zeros(N, D),
    "a constant dimension": normal() * (torch.arange(D) != 5) + 7.7 * (torch.arange(D) == 5),
    "fewer than dimensions": normal(D - 5),
    "one": normal(1),
}
SIZES = {"rows": 1, "small": 7, "large": 300, "all": N}


def assert_same(ours: Moments, rows: Tensor, within: float = WITHIN) -> None:
    """Compare with sums in float64; a covariance in units of its standard deviations."""
    wide = rows.double()
    mean = wide.mean(dim=0)
    U = wide - mean
    scatter, squares = U.T @ U, (U * U).sum(dim=1)
    sizes = scatter.diagonal().sqrt() + 1e-9 * float(scatter.trace() + 1e-200) ** 0.5
    assert ours.count == len(rows)
    assert float(((ours.scatter - scatter).abs() / (sizes[:, None] * sizes)).max()) < within
    assert torch.allclose(ours.mean, mean, rtol=1e-7, atol=1e-7 * float(sizes.max()))
    scale = float(squares.mean()) + 1e-200
    assert float(ours.quartic) / scale == pytest.approx(float(squares @ squares) / scale, rel=within)
    missed = (ours.cubic - squares @ U).abs() / scale
    assert (missed <= within * (squares @ U.abs() / scale + float(sizes.max()))).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ROWS)
def test_batches_of_any_size(kind: str, size: str) -> None:
    rows, sums = ROWS[kind], MomentSums()
    for batch in rows.split(SIZES[size]):
        sums.add(batch)
    moments = sums.moments()
    assert moments is not None
    assert_same(moments, rows)
    if kind in ("equal", "zero"):
        assert moments.spread == 0


def test_a_few_long_rows_do_not_drown_the_others() -> None:
    """Squares of 1e12 would leave nothing of the others in float32."""
    rows, sums = normal(), MomentSums()
    rows[[200, 500]] *= 1e6
    for batch in rows.split(300):
        sums.add(batch, uneven=bool(batch.abs().max() > 1e3))
    moments = sums.moments()
    assert moments is not None
    wide = rows.double()
    U = wide - wide.mean(dim=0)
    others = [n for n in range(N) if n not in (200, 500)]
    around = moments.scatter - U[[200, 500]].T @ U[[200, 500]]
    wanted = U[others].T @ U[others]
    assert float((around - wanted).abs().max()) < 1e-3 * float(wanted.diagonal().max())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rows_in_half_precision_are_lifted(dtype: torch.dtype) -> None:
    rows, sums = (normal() + 3).to(dtype), MomentSums()
    for batch in rows.split(300):
        sums.add(batch)
    moments = sums.moments()
    assert moments is not None
    assert_same(moments, rows)


def test_sums_of_no_rows_are_none() -> None:
    assert MomentSums().moments() is None


def test_sums_end_where_the_mean_is_left_behind() -> None:
    """Rows that come later move the mean by so much that squares about the first point would lose digits."""
    sums = MomentSums()
    for batch in ROWS["first rows far from the rest"].split(50):
        sums.add(batch)
    assert sums._ended is not None
    plain = MomentSums()
    for batch in ROWS["about a point"].split(50):
        plain.add(batch)
    assert plain._ended is None
