"""`ScalarQuantizer` and `HalfPrecision`: each dimension a number of fewer bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from isoscope.corrections.correction import Fitted
from isoscope.corrections.quantizer import Quantizer, QuantizerMap
from isoscope.errors import InputError, Setting, check_choice

_CONVENTIONS = ("faiss", "sentence-transformers")


@dataclass(frozen=True, eq=False)
class _Range:
    """The smallest and the largest value of each dimension (d,)."""

    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, block: Tensor) -> _Range:
        return cls(block.amin(dim=0), block.amax(dim=0))

    def merge(self, other: _Range) -> _Range:
        return _Range(self.low.minimum(other.low), self.high.maximum(other.high))


class ScalarQuantizer(Quantizer):
    """Store each dimension as a whole number of 8 or 4 bits, between its smallest and largest value.

        code = ⌊(2^bits − 1)(x_j − low_j)/(high_j − low_j)⌋,   decoded to the middle of its step

    Values outside the range get its ends. Codes are computed in float32. They equal those of faiss
    (`QT_8bit`, `QT_4bit`) or of sentence-transformers (`quantize_embeddings` to "int8"), which divide in
    another order and so differ in a few codes.

    Args:
        bits: 8 or 4; two codes of 4 bits share a byte, the first in its lower half.
        convention: "faiss", or "sentence-transformers", whose codes are int8, from −128 to 127.

    Attributes:
        low_, high_: (d,) the ranges.

    >>> quantizer = ScalarQuantizer().fit([[0.0, -1.0], [255.0, 1.0]])
    >>> quantizer.encode([[128.0, 9.0]]).tolist(), quantizer.n_bytes_
    ([[128, 255]], 2)
    """

    _axes: ClassVar[dict[str, str]] = {"low_": "d", "high_": "d"}
    _statistic_of = _Range.of
    low_ = Fitted("(d,) the smallest value of each dimension.")
    high_ = Fitted("(d,) the largest value of each dimension.")

    def __init__(self, bits: int = 8, *, convention: str = "faiss") -> None:
        self.bits = bits
        self.convention = convention

    def _check_parameters(self, n_dims: int) -> None:  # noqa: ARG002
        if self.bits not in (4, 8):
            raise InputError(argument="bits", got=self.bits, wanted="4 or 8")
        check_choice("convention", self.convention, _CONVENTIONS)
        if self.bits == 4 and self.convention != "faiss":
            raise InputError(
                "has no codes of 4 bits", argument="convention", hint=Setting("convention", "faiss")
            )

    def _solve(self, statistic: _Range) -> dict[str, Tensor]:
        return {"low_": statistic.low, "high_": statistic.high}

    def _map(self, solution: dict[str, Tensor]) -> QuantizerMap:
        low, high = solution["low_"], solution["high_"]
        if self.convention == "faiss":
            return _Steps(low, high, bits=self.bits)
        return _SignedSteps(low, high)


class _Steps(QuantizerMap):
    """Scalar codes in the order of operations of faiss."""

    low: Tensor
    high: Tensor

    def __init__(self, low: Tensor, high: Tensor, bits: int = 8) -> None:
        super().__init__(len(low), low=low, high=high)
        self._bits = bits
        self.n_bytes = len(low) if bits == 8 else -(-len(low) // 2)

    def _range(self) -> tuple[Tensor, Tensor]:
        low = self.low.float()
        return low, self.high.float() - low

    def codes(self, x: Tensor) -> Tensor:
        low, width = self._range()
        share = torch.where(width > 0, (x.float() - low) / width, 0.0).clamp(0, 1)
        whole = (share * (2**self._bits - 1)).to(torch.uint8)
        if self._bits == 8:
            return whole
        whole = torch.nn.functional.pad(whole, (0, whole.shape[1] % 2))
        return whole[:, ::2] | (whole[:, 1::2] << 4)

    def vectors(self, codes: Tensor) -> Tensor:
        low, width = self._range()
        if self._bits == 4:
            codes = torch.stack([codes & 15, codes >> 4], dim=2).flatten(1)[:, : self.n_out]
        return low + width * ((codes.float() + 0.5) / (2**self._bits - 1))


class _SignedSteps(_Steps):
    """Scalar codes in the order of operations of sentence-transformers."""

    code_dtype = torch.int8

    def codes(self, x: Tensor) -> Tensor:
        low, width = self._range()
        step = width / 255
        step = torch.where(step == 0, 1.0, step)
        return (((x.float() - low) / step).floor().clamp(0, 255) - 128).to(torch.int8)

    def vectors(self, codes: Tensor) -> Tensor:
        return super().vectors(codes.float() + 128)


class HalfPrecision(Quantizer):
    """Store each dimension as a float16.

    Values beyond ±65,504 get these ends. There is nothing to fit.

    >>> HalfPrecision().fit_transform([[1.0, 1.0001]]).tolist()
    [[1.0, 1.0]]
    """

    def _gather(self, rows: Tensor) -> None:
        self._statistic = rows.shape[1]

    def _solve(self, statistic: int) -> dict[str, Tensor]:  # noqa: ARG002
        return {}

    def _map(self, solution: dict[str, Tensor]) -> QuantizerMap:  # noqa: ARG002
        return _Halves(self.n_features_in_)


class _Halves(QuantizerMap):
    code_dtype = torch.float16

    def __init__(self, n_dims: int) -> None:
        super().__init__(n_dims)
        self.n_bytes = 2 * n_dims

    def codes(self, x: Tensor) -> Tensor:
        most = torch.finfo(torch.float16).max
        return x.clamp(-most, most).half()

    def vectors(self, codes: Tensor) -> Tensor:
        return codes.float()
