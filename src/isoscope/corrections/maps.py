"""Fitted corrections as torch modules, which can be exported and differentiated.

A map transforms (…, d) vectors in its own number type. `into` writes the result for a block of rows to memory
that is already allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Map(nn.Module):
    """A map from (…, d) to (…, k) vectors. Its buffers are float64 until it is moved to another type."""

    n_out: int

    def __init__(self, n_out: int, **buffers: Tensor) -> None:
        super().__init__()
        self.n_out = n_out
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    @property
    def dtype(self) -> torch.dtype | None:
        """The number type of the map, or None if it accepts any."""
        kinds = [buffer.dtype for buffer in self.buffers() if buffer.is_floating_point()]
        return kinds[0] if kinds else None

    def into(self, out: Tensor, block: Tensor, room: Tensor) -> None:  # noqa: ARG002 - for subclasses
        """Write the map of a block (n, d) to out (n, k); `room` is scratch memory of the block's shape."""
        out.copy_(self(block))

    def affine(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """Return c (d,), M (d, k) and b (k,) with y = (x − c) M + b, or None if the map is not affine."""
        return None


class Scale(Map):
    """y = (x − c)/s, dimension by dimension; without s, x − c."""

    center: Tensor
    scale: Tensor | None

    def __init__(self, center: Tensor, scale: Tensor | None = None) -> None:
        super().__init__(len(center), center=center)
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor) -> Tensor:
        """Return (x − c)/s."""
        moved = x - self.center
        return moved if self.scale is None else moved / self.scale

    def into(self, out: Tensor, block: Tensor, room: Tensor) -> None:  # noqa: ARG002
        """Compute `forward` in place."""
        torch.sub(block, self.center, out=out)
        if self.scale is not None:
            out.div_(self.scale)

    def affine(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return a diagonal M."""
        diagonal = torch.ones_like(self.center) if self.scale is None else 1 / self.scale
        return self.center, torch.diag(diagonal), torch.zeros_like(self.center)


class Affine(Map):
    """y = (x − c) M + b: one product. Subtracting the center first avoids rounding errors of an offset."""

    center: Tensor
    matrix: Tensor
    offset: Tensor

    def __init__(self, center: Tensor, matrix: Tensor, offset: Tensor) -> None:
        super().__init__(matrix.shape[1], center=center, matrix=matrix.contiguous(), offset=offset)
        self._plain = not bool(offset.any())

    def forward(self, x: Tensor) -> Tensor:
        """Return (x − c) M + b."""
        return (x - self.center) @ self.matrix + self.offset

    def into(self, out: Tensor, block: Tensor, room: Tensor) -> None:
        """Compute `forward` in place."""
        torch.mm(torch.sub(block, self.center, out=room), self.matrix, out=out)
        if not self._plain:
            out.add_(self.offset)

    def affine(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the parameters of the map."""
        return self.center, self.matrix, self.offset


class Removal(Map):
    """y = (x − c) − (x − c)VᵀV + b: directions V (k, d) removed with two thin products."""

    center: Tensor
    components: Tensor
    offset: Tensor

    def __init__(self, center: Tensor, components: Tensor, offset: Tensor) -> None:
        super().__init__(len(center), center=center, components=components.contiguous(), offset=offset)
        self._plain = not bool(offset.any())

    def forward(self, x: Tensor) -> Tensor:
        """Return x − c without its components along V, plus b."""
        centred = x - self.center
        return centred - (centred @ self.components.T) @ self.components + self.offset

    def into(self, out: Tensor, block: Tensor, room: Tensor) -> None:  # noqa: ARG002
        """Compute `forward` in place."""
        torch.sub(block, self.center, out=out)
        out.addmm_(out @ self.components.T, self.components, alpha=-1)
        if not self._plain:
            out.add_(self.offset)

    def affine(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return M = 1 − VᵀV."""
        eye = torch.eye(self.n_out, dtype=self.center.dtype, device=self.center.device)
        return self.center, eye - self.components.T @ self.components, self.offset


class Selection(Map):
    """y = the selected coordinates of x, or x with the others set to 0."""

    kept: Tensor
    mask: Tensor

    def __init__(self, mask: Tensor, *, zero: bool) -> None:
        kept = mask.nonzero().flatten()
        super().__init__(len(mask) if zero else len(kept), mask=mask, kept=kept)
        self._zero = zero

    def forward(self, x: Tensor) -> Tensor:
        """Return the selected coordinates."""
        return x * self.mask if self._zero else x.index_select(-1, self.kept)

    def affine(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return M: a diagonal of ones and zeros, or only its columns that have a one."""
        matrix = torch.diag(self.mask)
        if not self._zero:
            matrix = matrix[:, self.kept]
        return torch.zeros_like(self.mask), matrix, self.mask.new_zeros(self.n_out)


class UnitLength(Map):
    """y = x/‖x‖; a zero vector stays zero. Dividing by the largest coordinate first avoids overflow."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors scaled to length 1."""
        largest = x.detach().abs().amax(dim=-1, keepdim=True)
        scaled = x / torch.where(largest > 0, largest, 1.0)
        lengths = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
        return scaled / torch.where(lengths > 0, lengths, 1.0)

    def into(self, out: Tensor, block: Tensor, room: Tensor) -> None:
        """Compute `forward` with one division where no square can overflow or underflow."""
        lengths = torch.linalg.vector_norm(block, dim=-1, keepdim=True)
        if bool(((lengths > 1e-12) & (lengths < 1e12)).all()):
            torch.div(block, lengths, out=out)
        else:
            super().into(out, block, room)


class Clusterwise(Map):
    """y = x minus the mean of its cluster, with the directions of its cluster removed, if there are any.

    The cluster of x is the one with the nearest centre. Since ‖x − c‖²/2 = ‖x‖²/2 + (‖c‖²/2 − x·c), only the
    bracket is compared. The directions of all clusters are rows of one (K·k, d) matrix. Between the two
    products with it, the coefficients of other clusters are set to 0.
    """

    origin: Tensor
    centers: Tensor
    half_squares: Tensor
    means: Tensor
    components: Tensor
    owners: Tensor

    def __init__(self, centers: Tensor, means: Tensor, components: Tensor | None = None) -> None:
        n_clusters, n_dims = means.shape
        directions = means.new_zeros(n_clusters, 0, n_dims) if components is None else components
        origin = centers.mean(dim=0)  # subtracting it avoids rounding errors of a common offset
        super().__init__(
            n_dims,
            origin=origin,
            centers=centers - origin,
            half_squares=(centers - origin).square().sum(dim=1) / 2,
            means=means - origin,
            components=directions.reshape(-1, n_dims),
            owners=torch.arange(n_clusters, device=centers.device).repeat_interleave(directions.shape[1]),
        )

    def nearest(self, x: Tensor) -> Tensor:
        """Return the cluster of each vector (…,)."""
        return self._nearest(x - self.origin)

    def _nearest(self, moved: Tensor) -> Tensor:
        return (self.half_squares - moved @ self.centers.T).argmin(dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors, each corrected by its cluster."""
        moved = x - self.origin
        codes = self._nearest(moved)
        centred = moved - self.means[codes]
        if self.components.shape[0] == 0:
            return centred
        own = codes.unsqueeze(-1) == self.owners
        coefficients = torch.where(own, centred @ self.components.T, 0.0)
        return centred - coefficients @ self.components


class InTurn(Map):
    """A sequence of maps."""

    def __init__(self, maps: Sequence[Map]) -> None:
        super().__init__(maps[-1].n_out)
        self.steps = nn.ModuleList(maps)

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors after all maps."""
        for step in self.steps:
            x = step(x)
        return x

    def into(self, out: Tensor, block: Tensor, room: Tensor) -> None:
        """Compute each step in newly allocated memory, and the last one in `out`."""
        for place, step in enumerate(flat([self])):
            target = out if place == len(self.steps) - 1 else block.new_empty(len(block), step.n_out)
            step.into(target, block, room if room.shape == block.shape else torch.empty_like(block))
            block = target


def fused(maps: Sequence[Map]) -> Map:
    """Combine maps into as few as possible: neighbouring affine maps become one product.

    ((x − c)M + b − c′)M′ + b′ = (x − c)MM′ + (b − c′)M′ + b′
    """
    steps: list[Map] = []
    for step in flat(maps):
        joined = _joined(steps[-1], step) if steps else None
        if joined is None:
            steps.append(step)
        else:
            steps[-1] = joined
    return steps[0] if len(steps) == 1 else InTurn(steps)


def flat(maps: Iterable[Any]) -> Iterator[Map]:
    """Iterate over the maps in order, with nested sequences flattened."""
    for step in maps:
        if isinstance(step, InTurn):
            yield from flat(step.steps)
        else:
            yield step


def _joined(first: Map, then: Map) -> Affine | None:
    if not any(isinstance(step, Affine | Removal) for step in (first, then)):
        return None  # each of them is cheaper than a matrix product
    one, other = first.affine(), then.affine()
    if one is None or other is None:
        return None
    (c, M, b), (center, matrix, offset) = one, other
    return Affine(c, M @ matrix, (b - center) @ matrix + offset)
