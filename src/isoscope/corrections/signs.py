"""`SignQuantizer` and `RaBitQuantizer`: one bit a dimension."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from isoscope.corrections.correction import Fitted
from isoscope.corrections.quantizer import Quantizer, QuantizerMap, packed, unpacked
from isoscope.corrections.scaling import Columns
from isoscope.errors import check_seed

_FACTORS = 8  # bytes: two float32 beside the bits of a vector


class SignQuantizer(Quantizer):
    """Store the sign of each dimension, one bit.

        y_j = 1 if x_j > 0, else −1

    Where a dimension has one sign in nearly all vectors, its bit says nothing: centre first, by
    `Chain([Center(), SignQuantizer()])`. Codes equal those of sentence-transformers (`quantize_embeddings` to
    "ubinary"): eight dimensions a byte, the first in the highest bit.

    Args:
        asymmetric: search with the query's own numbers; by default its signs are compared, by Hamming
            distance.

    >>> SignQuantizer().fit_transform([[0.3, -0.1, 0.0]]).tolist()
    [[1.0, -1.0, -1.0]]
    """

    def __init__(self, *, asymmetric: bool = False) -> None:
        self.asymmetric = asymmetric

    def _gather(self, rows: Tensor) -> None:
        self._statistic = rows.shape[1]

    def _solve(self, statistic: int) -> dict[str, Tensor]:  # noqa: ARG002
        return {}

    def _map(self, solution: dict[str, Tensor]) -> QuantizerMap:  # noqa: ARG002
        return _Signs(self.n_features_in_, asymmetric=self.asymmetric)


class _Signs(QuantizerMap):
    def __init__(self, n_dims: int, *, asymmetric: bool) -> None:
        super().__init__(n_dims)
        self.n_bytes = -(-n_dims // 8)
        self._asymmetric = asymmetric

    def codes(self, x: Tensor) -> Tensor:
        return packed(x.float() > 0)

    def vectors(self, codes: Tensor) -> Tensor:
        return unpacked(codes, self.n_out)

    def queries(self, x: Tensor) -> Tensor:
        return x.float() if self._asymmetric else torch.where(x.float() > 0, 1.0, -1.0)


class RaBitQuantizer(Quantizer):
    """Store the signs of a randomly rotated vector, and two numbers that make its distances unbiased.

        r = P(x − m),   y = m + Pᵀ sign(r)·‖r‖²/‖r‖₁

    P is a random rotation. The distance to a query q is estimated by ‖r‖² + ‖q − m‖² − 2(q − m)·(y − m),
    without bias over P. Codes equal those of faiss' RaBitQuantizer for vectors rotated by P: eight
    dimensions a byte, the first in the lowest bit, then ‖r‖² and ‖r‖²√d/‖r‖₁ as float32.
    Paper: Gao, Long 2024, RaBitQ.

    Args:
        rotate: whether to rotate; without, vectors must already be rotated.
        seed: the seed of the rotation.

    Attributes:
        mean_: (d,) m.
        rotation_: (d, d) P.

    >>> RaBitQuantizer(rotate=False).fit_transform([[3.0, 1.0], [-3.0, -1.0]]).tolist()
    [[2.5, 2.5], [-2.5, -2.5]]
    """

    _axes: ClassVar[dict[str, str]] = {"mean_": "d", "rotation_": "dd"}
    _statistic_of = Columns.of
    mean_ = Fitted("(d,) the mean of the vectors fitted on.")
    rotation_ = Fitted("(d, d) the rotation.")

    def __init__(self, *, rotate: bool = True, seed: int = 0) -> None:
        self.rotate = rotate
        self.seed = seed

    def _check_parameters(self, n_dims: int) -> None:  # noqa: ARG002
        check_seed(self.seed)

    def _solve(self, statistic: Columns) -> dict[str, Tensor]:
        mean = statistic.mean
        rotation = _rotation(len(mean), self.seed) if self.rotate else torch.eye(len(mean)).double()
        return {"mean_": mean, "rotation_": rotation.to(mean.device)}

    def _map(self, solution: dict[str, Tensor]) -> QuantizerMap:
        return _RotatedSigns(solution["mean_"], solution["rotation_"])


def _rotation(d: int, seed: int) -> Tensor:
    """Return a random orthogonal (d, d) matrix."""
    normal = torch.randn(d, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    Q, R = torch.linalg.qr(normal)
    return (Q * R.diagonal().sign()).contiguous()


class _RotatedSigns(QuantizerMap):
    mean: Tensor
    rotation: Tensor

    def __init__(self, mean: Tensor, rotation: Tensor) -> None:
        super().__init__(len(mean), mean=mean, rotation=rotation)
        self.n_bytes = -(-len(mean) // 8) + _FACTORS

    def queries(self, x: Tensor) -> Tensor:
        return (x.float() - self.mean.float()) @ self.rotation.float().T

    def codes(self, x: Tensor) -> Tensor:
        rotated = self.queries(x)
        squares, scale = _factors(rotated)
        numbers = torch.stack([squares, scale * rotated.shape[1] ** 0.5], dim=1)
        return torch.cat([packed(rotated > 0, last_first=True), numbers.view(torch.uint8)], dim=1)

    def vectors(self, codes: Tensor) -> Tensor:
        signs = unpacked(codes[:, :-_FACTORS], self.n_out, last_first=True)
        numbers = codes[:, -_FACTORS:].clone(memory_format=torch.contiguous_format).view(torch.float32)
        scale = numbers[:, 1:] / self.n_out**0.5
        return (signs * scale) @ self.rotation.float() + self.mean.float()

    def stored(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rotated = self.queries(x)
        squares, scale = _factors(rotated)
        return torch.where(rotated > 0, 1.0, -1.0) * scale[:, None], squares


def _factors(rotated: Tensor) -> tuple[Tensor, Tensor]:
    """Return ‖r‖² and ‖r‖²/‖r‖₁ of each row; 0 where r is 0."""
    squares, lengths = rotated.square().sum(dim=1), rotated.abs().sum(dim=1)
    return squares, torch.where(lengths > 0, squares / lengths, 0.0)
