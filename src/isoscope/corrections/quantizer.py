"""`Quantizer`, the base class of corrections that store vectors as codes, and `QuantizerMap`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from isoscope.arrays import like
from isoscope.corrections.border import as_rows
from isoscope.corrections.correction import Correction
from isoscope.corrections.maps import Map
from isoscope.errors import ShapeError

_BLOCK_ROWS = 8192  # encoded or decoded at a time


class QuantizerMap(Map):
    """A map from vectors to the vectors that their codes stand for. Codes are computed in float32.

    A search computes ‖q − x‖² up to a constant of the query, from `queries(q)` and `stored(x)`.
    """

    n_bytes: int
    code_dtype: torch.dtype = torch.uint8

    def codes(self, x: Tensor) -> Tensor:
        """Return the codes of (n, d) vectors."""
        raise NotImplementedError

    def vectors(self, codes: Tensor) -> Tensor:
        """Return the vectors (n, k) that codes stand for, in float32."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors that the codes of x stand for."""
        return self.vectors(self.codes(x.reshape(-1, x.shape[-1]))).reshape(*x.shape[:-1], -1).to(x.dtype)

    def queries(self, x: Tensor) -> Tensor:
        """Return queries as the search compares them with stored vectors; they are not quantized."""
        return x.float()

    def stored(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return vectors y and numbers b: ‖q − x‖² is about b − 2 queries(q)·y plus a constant of q."""
        y = self.vectors(self.codes(x))
        return y, y.square().sum(dim=1)


class Quantizer(Correction):
    """A correction whose output is what remains of the vectors when they are stored as short codes.

    `encode` returns the codes, `decode` the vectors that codes stand for. `transform` does both.

    Attributes:
        n_bytes_: the bytes of one vector's code.
    """

    @property
    def n_bytes_(self) -> int:
        """The bytes of one vector's code."""
        check_is_fitted(self)
        return self._quantizer().n_bytes

    def encode(self, X: Any) -> Any:
        """Return the codes of (n, d) vectors, one row a vector: NumPy, or a tensor for a tensor."""
        check_is_fitted(self)
        rows, step = as_rows(self, X, reset=False), self._quantizer()
        step = step.to(rows.device)
        return like(torch.cat([step.codes(block) for block in rows.detach().split(_BLOCK_ROWS)]), X)

    def decode(self, codes: Any) -> Any:
        """Return the vectors that codes stand for, in float32."""
        check_is_fitted(self)
        step = self._quantizer()
        rows = codes if isinstance(codes, Tensor) else torch.as_tensor(np.asarray(codes))
        width = step.n_bytes // step.code_dtype.itemsize
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ShapeError(
                f"has shape {tuple(rows.shape)}",
                argument="codes",
                wanted=f"of shape (n, {width}), as `encode` returns",
            )
        rows = rows.to(step.code_dtype)
        step = step.to(rows.device)
        return like(torch.cat([step.vectors(block) for block in rows.split(_BLOCK_ROWS)]), codes)

    def _quantizer(self) -> QuantizerMap:
        step = self._map(self._solved())
        assert isinstance(step, QuantizerMap)
        return step


def packed(bits: Tensor, *, last_first: bool = False) -> Tensor:
    """Return (n, ⌈d/8⌉) bytes of (n, d) bits, the first bit the highest of its byte, or the lowest.

    >>> packed(torch.tensor([[True, False, False]])), packed(torch.tensor([[True, False]]), last_first=True)
    (tensor([[128]], dtype=torch.uint8), tensor([[1]], dtype=torch.uint8))
    """
    padded = torch.nn.functional.pad(bits.to(torch.uint8), (0, -bits.shape[1] % 8))
    eights = padded.view(len(bits), padded.shape[1] // 8, 8)
    return (eights << _places(last_first, bits.device)).sum(dim=2).to(torch.uint8)


def unpacked(codes: Tensor, n_dims: int, *, last_first: bool = False) -> Tensor:
    """Return (n, d) bits of (n, ⌈d/8⌉) bytes, as float32 −1 and 1."""
    bits = (codes[:, :, None] >> _places(last_first, codes.device)) & 1
    return bits.flatten(1)[:, :n_dims].float() * 2 - 1


def _places(last_first: bool, device: torch.device) -> Tensor:
    places = torch.arange(8, dtype=torch.uint8, device=device)
    return places if last_first else places.flip(0)
