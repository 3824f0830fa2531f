from __future__ import annotations

import pytest
import torch

from isoscope.kernels.selection import smallest

ROWS = {
    "normal": lambda shape: torch.randn(shape, generator=torch.Generator().manual_seed(3)),
    "ascending": lambda shape: torch.arange(shape[1]).float().expand(shape),
    "descending": lambda shape: -torch.arange(shape[1]).float().expand(shape),
    "ties": lambda shape: torch.randint(0, 3, shape, generator=torch.Generator().manual_seed(4)).float(),
    "constant": torch.ones,
    "mostly infinite": lambda shape: torch.where(torch.arange(shape[1]) % 7 == 0, 1.0, torch.inf).expand(
        shape
    ),
    "all the small in one stretch": lambda shape: (torch.arange(shape[1]) // 40 != 3).double().expand(shape),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("group", [None, 2, 3, 8, 32])
@pytest.mark.parametrize(
    ("n", "k"), [(1, 1), (7, 7), (50, 1), (1000, 3), (1003, 17), (1999, 100), (640, 639)]
)
def test_equals_a_sort(name: str, group: int | None, n: int, k: int) -> None:
    values = ROWS[name]((6, n))
    found, columns = smallest(values, k, group=group)
    assert torch.equal(found.sort(dim=1).values, values.sort(dim=1).values[:, :k])
    assert torch.equal(values.gather(1, columns), found)
    assert all(len(set(row)) == k for row in columns.tolist())


def test_takes_a_strip_that_is_part_of_a_larger_buffer() -> None:
    buffer = torch.randn(9, 500)
    found, _ = smallest(buffer[:4, :480], 5)
    assert torch.equal(found.sort(dim=1).values, buffer[:4, :480].sort(dim=1).values[:, :5])
