"""k-means of many spaces, and of several numbers of clusters in each, in the same launches.

A launch takes a CUDA device longer than Lloyd's round of a thousand points. So B spaces and J numbers of
clusters are one problem of B·J parts, padded to the largest number of clusters. The random draws are those
of one space alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.kernels.precision import full_precision

_INF = float("inf")
CLOSE = 0.01  # of the largest distance to the mean: below, products about the mean lose too many digits


@dataclass(frozen=True, eq=False)
class ManySpaces:
    """B centred spaces of n points.

    Attributes:
        rows: (B, n, d) points less their space's mean.
        squares: (B, n) squared lengths.
        variances: (B,) float64, the mean of the dimensions' variances.
    """

    rows: Tensor
    squares: Tensor
    variances: Tensor

    @classmethod
    def of(cls, spaces: Tensor) -> ManySpaces:
        """Centre (B, n, d) points."""
        rows = spaces - spaces.mean(dim=1, keepdim=True)
        squares = torch.linalg.vector_norm(rows, dim=2).square()
        return cls(rows, squares, squares.sum(dim=1, dtype=torch.float64) / rows[0].numel())

    def at(self, places: Tensor) -> Tensor:
        """Return the (B, …, d) points at (B, …) places."""
        B, n, d = self.rows.shape
        first = n * torch.arange(B, device=places.device).view(B, *[1] * (places.ndim - 1))
        return self.rows.reshape(B * n, d)[places + first]

    def less_products(self, constants: Tensor, centers: Tensor, factor: float) -> Tensor:
        """Return (B, m, n): (B, m) constants less `factor` times the products of centres and rows."""
        return torch.baddbmm(constants[:, :, None], centers, self.rows.transpose(1, 2), alpha=-factor)

    def squared_to(self, centers: Tensor) -> Tensor:
        """Return the (B, m, n) squared distances to (B, m, d) centres, never below 0."""
        distances = self.less_products(_squares(centers), centers, 2.0)
        return distances.add_(self.squares[:, None]).clamp_(min=0)


@full_precision
def many_kmeans(
    spaces: ManySpaces,
    numbers: Tensor,
    *,
    n_init: int,
    seed: int,
    first_rounds: int,
    max_iter: int,
    tol: float,
) -> Tensor:
    """Return the (B, J, n) clusters of every point, for the (B, J) numbers of clusters given on the CPU.

    The steps are those of `isoscope.kmeans`: greedy k-means++, a few rounds of every start, the best start
    carried on until its centres stand still.
    """
    device = spaces.rows.device
    most = int(numbers.max())
    exists = (torch.arange(most) < numbers[:, :, None]).to(device)  # (B, J, K)
    centers = spaces.at(_plus_plus(spaces, numbers, n_init, seed))  # (B, J, S, K, d)
    if n_init == 1:
        return _settled(spaces, centers[:, :, 0], exists, max_iter, tol)
    of_starts = exists[:, :, None].expand(centers.shape[:-1])
    for _ in range(first_rounds):
        _, _, means, counts = _round(spaces, centers, of_starts)
        centers = torch.where(counts[..., None] > 0, means, centers)
    best = _round(spaces, centers, of_starts)[1].sum(dim=-1, dtype=torch.float64).argmin(dim=2)
    chosen = centers.gather(2, best[:, :, None, None, None].expand(-1, -1, 1, *centers.shape[3:]))[:, :, 0]
    return _settled(spaces, chosen, exists, max_iter, tol)


def _settled(spaces: ManySpaces, centers: Tensor, exists: Tensor, max_iter: int, tol: float) -> Tensor:
    """Run Lloyd's rounds until all centres stand still, and return the (B, J, n) clusters.

    An empty cluster takes the point that is farthest from its centre. One flag is read back each round.
    """
    B, J, K, _ = centers.shape
    codes: Tensor | None = None
    moving = torch.ones(B, J, dtype=torch.bool, device=centers.device)
    for _ in range(max_iter):
        nearest, scores, means, counts = _round(spaces, centers, exists)
        if codes is not None:
            moving = moving & (nearest != codes).any(dim=-1)
        empty = exists & (counts == 0) & moving[:, :, None]
        none_moves, any_empty = torch.stack([~moving.any(), empty.any()]).tolist()
        if none_moves:
            break
        if any_empty:
            distances = 2 * scores + spaces.squares[:, None]
            far = distances.topk(min(K, distances.shape[-1]), dim=-1).indices
            rank = (empty.cumsum(dim=-1) - 1).clamp(min=0)
            means = torch.where(empty[..., None], spaces.at(far.gather(2, rank)), means)
        codes = nearest
        moved = torch.where((exists & moving[:, :, None])[..., None], means, centers)
        shifts = (moved - centers).square().sum(dim=(2, 3), dtype=torch.float64)
        centers = moved
        moving = moving & (shifts > tol * spaces.variances[:, None])
    return _round(spaces, centers, exists)[0]


def _round(spaces: ManySpaces, centers: Tensor, exists: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Assign every point to its nearest centre.

    Args:
        spaces: the points.
        centers: (B, …, K, d).
        exists: (B, …, K) bool; the other centres are padding.

    Returns the (B, …, n) nearest centres and ‖c‖²/2 − x·c of each, and the (B, …, K, d) means and (B, …, K)
    numbers of the points so assigned.
    """
    B, *parts, K, d = centers.shape
    flat = centers.reshape(B, -1, d)
    halves = (_squares(flat) / 2).masked_fill_(~exists.reshape(B, -1), _INF)
    scores, codes = spaces.less_products(halves, flat, 1.0).view(B, -1, K, spaces.rows.shape[1]).min(dim=2)
    members = scores.new_zeros(B, codes.shape[1], K, codes.shape[2]).scatter_(2, codes[:, :, None], 1.0)
    counts = members.sum(dim=-1)
    sums = torch.bmm(members.view(B, -1, members.shape[-1]), spaces.rows)
    means = sums.view(B, -1, K, d) / counts.clamp(min=1)[..., None]
    shape = (B, *parts)
    return codes.view(*shape, -1), scores.view(*shape, -1), means.view(*shape, K, d), counts.view(*shape, K)


def _squares(centers: Tensor) -> Tensor:
    return torch.linalg.vector_norm(centers, dim=-1).square()


def _plus_plus(spaces: ManySpaces, numbers: Tensor, n_init: int, seed: int) -> Tensor:
    """Return (B, J, S, K) places of the points that are drawn as centres by greedy k-means++."""
    (B, J), n, most = numbers.shape, spaces.rows.shape[1], int(numbers.max())
    firsts, draws, is_drawn = _draws(numbers, n, n_init, seed)
    device, C = spaces.rows.device, draws.shape[-1]
    draws, is_drawn = draws.to(device), is_drawn.to(device)
    chosen = [firsts.to(device)]  # (B, J, S) each
    closest = spaces.squared_to(spaces.at(chosen[0]).flatten(1, 2)).view(B, J, n_init, n)
    for turn in range(1, most):
        cumulative = closest.cumsum(dim=-1, dtype=torch.float64)
        wanted = draws[turn - 1] * cumulative[..., -1:]
        places = torch.searchsorted(cumulative, wanted).clamp_(max=n - 1)  # (B, J, S, C)
        left = spaces.squared_to(spaces.at(places).flatten(1, 3)).view(B, J, n_init, C, n)
        left = torch.minimum(left, closest[..., None, :])
        inertia = left.sum(dim=-1, dtype=torch.float64).masked_fill_(~is_drawn[:, :, None], _INF)
        best = inertia.argmin(dim=-1, keepdim=True)  # (B, J, S, 1)
        chosen.append(places.gather(3, best)[..., 0])
        closest = left.gather(3, best[..., None].expand(-1, -1, -1, 1, n))[..., 0, :]
    return torch.stack(chosen, dim=-1)


def _draws(numbers: Tensor, n: int, n_init: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the draws of k-means++ for each number of clusters, as one space alone makes them.

    First centres (B, J, S); (turns, B, J, S, C) uniform numbers; and (B, J, C) bool, the candidates drawn.
    """
    most = int(numbers.max())
    n_most = n_candidates(most)
    firsts, uniforms, exist = {}, {}, {}
    for K in set(numbers.flatten().tolist()):
        generator, C = torch.Generator().manual_seed(seed), n_candidates(K)
        firsts[K] = torch.randint(n, (n_init,), generator=generator)
        uniforms[K] = torch.zeros(most - 1, n_init, n_most, dtype=torch.float64)
        for turn in range(K - 1):
            uniforms[K][turn, :, :C] = torch.rand(n_init, C, generator=generator, dtype=torch.float64)
        exist[K] = torch.arange(n_most) < C
    listed, shape = numbers.flatten().tolist(), numbers.shape
    turns = torch.stack([uniforms[K] for K in listed], dim=1)
    return (
        torch.stack([firsts[K] for K in listed]).view(*shape, n_init),
        turns.view(most - 1, *shape, n_init, n_most),
        torch.stack([exist[K] for K in listed]).view(*shape, n_most),
    )


def n_candidates(n_clusters: int) -> int:
    """Return how many points k-means++ tries at each turn."""
    return 2 + int(math.log(n_clusters))


@full_precision
def many_silhouettes(spaces: ManySpaces, codes: Tensor, n_clusters: int) -> tuple[Tensor, Tensor]:
    """Return the (B, J) mean silhouettes of (B, J, n) clusters, and whether each can be trusted.

    All distances of a space are held in float64, and serve all of its J clusterings. Singletons score 0.
    Where all points are in one cluster the value is NaN. A value is not to be trusted where the mean
    distances of a point are so small beside its distance to the mean that products lose their digits.
    """
    values, trusted = [], []
    for rows, space_codes in zip(spaces.rows, codes, strict=True):  # 8 n² bytes a space
        U = rows.double()
        squares = torch.linalg.vector_norm(U, dim=1).square()
        distances = torch.addmm(squares[:, None], U, U.T, alpha=-2).add_(squares).clamp_(min=0).sqrt_()
        distances.fill_diagonal_(0)
        J, n = space_codes.shape
        members = distances.new_zeros(J, n, n_clusters).scatter_(2, space_codes[:, :, None], 1.0)
        counts = members.sum(dim=1)  # (J, K)
        sums = (distances @ members.transpose(0, 1).reshape(n, -1)).view(n, J, n_clusters).transpose(0, 1)
        sizes = counts.gather(1, space_codes)
        cohesion = sums.gather(2, space_codes[:, :, None])[..., 0] / (sizes - 1).clamp(min=1)
        means = (sums / counts[:, None]).masked_fill_(counts[:, None] == 0, _INF)
        separation = means.scatter_(2, space_codes[:, :, None], _INF).min(dim=2).values
        larger = torch.maximum(cohesion, separation)
        scores = torch.where((larger > 0) & (sizes > 1), (separation - cohesion) / larger, 0.0)
        values.append(scores.mean(dim=1).masked_fill_((counts > 0).sum(dim=1) < 2, torch.nan))
        trusted.append(larger.min(dim=1).values >= CLOSE * squares.max().sqrt())
    return torch.stack(values), torch.stack(trusted)
