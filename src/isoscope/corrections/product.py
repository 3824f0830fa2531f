"""`ProductQuantizer`: each part of a vector as the number of its nearest centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from isoscope.corrections.correction import Fitted
from isoscope.corrections.quantizer import Quantizer, QuantizerMap
from isoscope.errors import InputError, Setting, check_seed, check_whole

N_CENTERS = 256  # of each part: one byte
_MOST_ROWS = 32 * N_CENTERS  # for k-means: more change the centres little
_ROUNDS = 15  # of k-means: later ones change the centres little
_AT_ONCE = 2**21  # scores in the cache


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows drawn at random from all that were seen: those with the smallest keys."""

    rows: Tensor
    keys: Tensor
    seen: int

    def with_block(self, block: Tensor, seed: int) -> _Rows:
        """Return a sample that another block is drawn into."""
        generator = torch.Generator().manual_seed(seed * 2**31 + self.seen)
        keys = torch.cat([self.keys, torch.rand(len(block), generator=generator, dtype=torch.float64)])
        rows = torch.cat([self.rows, block.float().cpu()])
        if len(rows) > _MOST_ROWS:
            least = keys.topk(_MOST_ROWS, largest=False).indices.sort().values
            rows, keys = rows[least], keys[least]
        return _Rows(rows, keys, self.seen + len(block))


class ProductQuantizer(Quantizer):
    """Cut vectors into m parts and store for each the number of the nearest of 256 centres, one byte.

    The centres of a part are found by k-means. Codes equal those of faiss' ProductQuantizer with the same
    centres.
    Paper: Jégou, Douze, Schmid 2011, Product Quantization for Nearest Neighbor Search.

    Args:
        n_parts: m, which must divide d; None for parts of 8 dimensions, or of the next smaller number that
            divides d.
        seed: the seed of k-means, and of the rows that are drawn for it where there are many.

    Attributes:
        centers_: (m, 256, d/m) the centres of each part.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(600, 8))
    >>> ProductQuantizer(2).fit(X).encode(X).shape
    (600, 2)
    """

    _axes: ClassVar[dict[str, str]] = {"centers_": "mcs"}
    centers_ = Fitted("(m, 256, d/m) the centres of each part.")

    def __init__(self, n_parts: int | None = None, *, seed: int = 0) -> None:
        self.n_parts = n_parts
        self.seed = seed

    @classmethod
    def of(cls, centers: Any) -> Self:
        """Return a quantizer with given centres (m, 256, d/m), which needs no fit."""
        from isoscope.corrections.correction import Solution

        tensor = torch.as_tensor(centers).double()
        quantizer = cls(len(tensor))
        quantizer.n_features_in_ = tensor.shape[0] * tensor.shape[2]
        quantizer._solution = Solution({"centers_": tensor})
        return quantizer

    def _check_parameters(self, n_dims: int) -> None:
        check_seed(self.seed)
        if self.n_parts is not None and n_dims % check_whole("n_parts", self.n_parts, most=n_dims):
            raise InputError(
                argument="n_parts",
                got=self.n_parts,
                wanted=f"a divisor of the {n_dims} dimensions",
                hint=Setting("n_parts", _n_parts(n_dims, self.n_parts)),
            )

    def _gather(self, rows: Tensor) -> None:
        before = getattr(self, "_statistic", None) or _Rows(
            torch.empty(0, rows.shape[1]), torch.empty(0).double(), 0
        )
        self._statistic = before.with_block(rows.detach(), self.seed)
        if hasattr(self, "_solution"):
            del self._solution

    def _solve(self, statistic: _Rows) -> dict[str, Tensor]:
        n, d = statistic.rows.shape
        if n < N_CENTERS:
            raise InputError(f"ProductQuantizer needs at least {N_CENTERS} vectors; got n_samples = {n}")
        m = self.n_parts or _n_parts(d, -(-d // 8))
        parts = statistic.rows.view(n, m, d // m).transpose(0, 1).contiguous()
        start = torch.randperm(n, generator=torch.Generator().manual_seed(self.seed))[:N_CENTERS]
        centers = parts[:, start]
        for _ in range(_ROUNDS):
            centers = _moved(parts, centers)
        return {"centers_": centers.double()}

    def _map(self, solution: dict[str, Tensor]) -> QuantizerMap:
        return _Parts(solution["centers_"])


def _nearest(parts: Tensor, centers: Tensor) -> Tensor:
    """Return the nearest centre (m, n) of each part, of parts (m, n, s) and centres (m, 256, s)."""
    halves = centers.square().sum(dim=2)[:, None] / 2
    found = []
    for block in parts.split(max(1, _AT_ONCE // (len(parts) * N_CENTERS)), dim=1):
        scores = torch.baddbmm(halves, block, centers.transpose(1, 2), alpha=-1)
        if scores.is_cuda:
            found.append(scores.argmin(dim=2))
        else:  # NumPy's takes a tenth of the time of torch's
            found.append(torch.from_numpy(scores.numpy().argmin(axis=2)))
    return torch.cat(found, dim=1)


def _moved(parts: Tensor, centers: Tensor) -> Tensor:
    """Return the centres after a round of k-means in each part; a centre without vectors stays."""
    m, _, size = parts.shape
    places = (_nearest(parts, centers) + N_CENTERS * torch.arange(m)[:, None]).flatten()
    sums = torch.zeros(m * N_CENTERS, size).index_add_(0, places, parts.reshape(-1, size))
    counts = places.bincount(minlength=m * N_CENTERS)[:, None]
    return torch.where(counts > 0, sums / counts.clamp(min=1), centers.reshape(-1, size)).view_as(centers)


def _n_parts(d: int, least: int) -> int:
    """Return the smallest divisor of d that is at least `least`."""
    return next(m for m in range(least, d + 1) if d % m == 0)


class _Parts(QuantizerMap):
    centers: Tensor

    def __init__(self, centers: Tensor) -> None:
        super().__init__(centers.shape[0] * centers.shape[2], centers=centers)
        self.n_bytes = centers.shape[0]

    def codes(self, x: Tensor) -> Tensor:
        parts = x.float().reshape(len(x), len(self.centers), -1).transpose(0, 1)
        return _nearest(parts, self.centers.float()).T.to(torch.uint8)

    def vectors(self, codes: Tensor) -> Tensor:
        centers = self.centers.float()
        parts = torch.arange(len(centers), device=codes.device)
        return centers[parts, codes.long()].flatten(1)
