"""`SymmetricSum`: Σ XᵀX over blocks of rows, of which little more than one triangle is held."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.kernels.products import panels, product_of_runs, wide_product

_FEW = 48  # dimensions: rows of no more are multiplied in short runs at no cost
_RUN_ROWS = 8192  # float32 rows whose products are added up in float32, then in float64
_HALF_ROWS = 4096  # half-precision rows at a time, whose products are held run by run
_CUDA_PANEL = 512  # columns: narrower products would not fill a device, and every panel is a launch


class SymmetricSum:
    """A (d, d) sum of products in float64: row panels from the diagonal to the right.

    >>> total = SymmetricSum(2, torch.device("cpu"))
    >>> total.add(torch.tensor([[1.0, 2.0]], dtype=torch.float64))
    >>> total.matrix()
    tensor([[1., 2.],
            [2., 4.]], dtype=torch.float64)
    """

    def __init__(self, n_dims: int, device: torch.device) -> None:
        self._places = panels(n_dims, _CUDA_PANEL if device.type == "cuda" else None)
        self._panels = [
            torch.zeros(stop - start, n_dims - start, dtype=torch.float64, device=device)
            for start, stop in self._places
        ]

    @property
    def diagonal(self) -> Tensor:
        """(d,) the diagonal."""
        return torch.cat([panel.diagonal() for panel in self._panels])

    def add(self, X: Tensor) -> None:
        """Add XᵀX for (n, d) rows in float32 or float64; products are taken in their type."""
        if X.dtype == torch.float32 and X.shape[1] <= _FEW:
            self._panels[0] += product_of_runs(X)
            return
        for rows in X.split(_RUN_ROWS):
            for panel, (start, stop) in zip(self._panels, self._places, strict=True):
                if rows.dtype == panel.dtype:
                    panel.addmm_(rows[:, start:stop].T, rows[:, start:])
                else:
                    panel += rows[:, start:stop].T @ rows[:, start:]

    def add_split(self, X: Tensor) -> None:
        """Add XᵀX for float32 rows by products of bfloat16 parts with 16 bits of each number.

        On a GPU its tensor cores take these in a sixth of the time of float32. They add up in float32, so
        that products of few rows at a time are. The error is about 3e-6 of the mean square: too much for
        float32 vectors, and little for states that were rounded to 8 bits.
        """
        for rows in X.split(_HALF_ROWS):
            high = rows.bfloat16()
            low = (rows - high).bfloat16()
            # (h + l)ᵀ(h + l) without lᵀl, as one product of longer columns
            self._add_half(torch.cat([high, high, low]), torch.cat([high, low, high]))

    def add_exact(self, X: Tensor) -> None:
        """Add XᵀX for rows in half precision, whose products float32 holds exactly."""
        for rows in X.split(_HALF_ROWS):
            self._add_half(rows, rows)

    def _add_half(self, left: Tensor, right: Tensor) -> None:
        for panel, (start, stop) in zip(self._panels, self._places, strict=True):
            panel += wide_product(left[:, start:stop], right[:, start:])

    def matrix(self) -> Tensor:
        """Return the whole (d, d) sum, exactly symmetric."""
        d = self._places[-1][1]
        whole = self._panels[0].new_empty(d, d)
        for panel, (start, stop) in zip(self._panels, self._places, strict=True):
            whole[start:stop, start:] = panel
            whole[stop:, start:stop] = panel[:, stop - start :].T
            square = whole[start:stop, start:stop]
            square.triu_().add_(square.triu(1).T)
        return whole
