"""Losses over pairs that belong together: `MultipleNegativesLoss`, `AlignmentLoss`, `UniformityLoss`."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from isoscope.errors import InputError, ShapeError
from isoscope.kernels.precision import full_precision
from isoscope.losses.states import as_number, as_rows, check_count, matching_rows, units
from isoscope.statistics.processes import all_max, all_rows, all_sum


class MultipleNegativesLoss(nn.Module):
    """Each anchor finds its positive among all positives of the batch (InfoNCE).

        −mean_i log( e^{s(a_i, p_i)/τ} / Σ_j e^{s(a_i, p_j)/τ} )

    and, if symmetric, the mean of that and the same with anchors and positives exchanged. Range
    [0, ∞); log n where nothing is told apart. Unchanged by rotation, and with cosines by the length of
    each vector.

    With cosines and many negatives it is about log n + `AlignmentLoss`/(2τ) + `UniformityLoss` with
    t = 1/(2τ): partners together, all others apart (Wang and Isola 2020).

    **Gradient accumulation** does not make the batch larger: each micro-batch has only its own negatives.
    **Several processes**: the negatives are those of all processes, gradient included; every process
    must call it.

    Args:
        temperature: τ; sentence-transformers' `scale` is 1/τ.
        symmetric: both ways; False asks only for the positive of each anchor.
        similarity: "cosine" or "dot".
        across_processes: whether the rows of other processes are negatives too.

    Paper: van den Oord et al. 2018; Henderson et al. 2017; both ways in Radford et al. 2021.

    >>> anchors = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> MultipleNegativesLoss(temperature=0.5)(anchors, anchors)  # log(1 + e⁻²)
    tensor(0.1269)
    """

    def __init__(
        self,
        temperature: float = 0.05,
        *,
        symmetric: bool = True,
        similarity: Literal["cosine", "dot"] = "cosine",
        across_processes: bool = True,
    ) -> None:
        super().__init__()
        if similarity not in ("cosine", "dot"):
            raise InputError(argument="similarity", got=similarity, wanted="'cosine' or 'dot'")
        self.temperature = as_number(temperature, "temperature", positive=True)
        self.symmetric = symmetric
        self.similarity = similarity
        self.across_processes = across_processes

    @full_precision
    def forward(self, anchors: Tensor, positives: Tensor, negatives: Tensor | None = None) -> Tensor:
        """Return the loss of n pairs.

        Args:
            anchors: (n, d).
            positives: (n, d), row i belongs to anchor i.
            negatives: (m, d) further candidates, wrong for every anchor; they take no part in the way back.
        """
        a, p = matching_rows(anchors=anchors, positives=positives)
        wrong = [] if negatives is None else [as_rows(negatives, "negatives")]
        if wrong and wrong[0].shape[1] != a.shape[1]:
            raise ShapeError(
                f"has {wrong[0].shape[1]} dimensions",
                argument="negatives",
                wanted=f"{a.shape[1]}, as `anchors` has",
            )
        if self.similarity == "cosine":
            a, p, *wrong = (units(rows)[0] for rows in (a, p, *wrong))
        all_p, first = all_rows(p, across_processes=self.across_processes)
        check_count(len(all_p), 2, "the loss")
        candidates = [all_p, *(all_rows(rows, across_processes=self.across_processes)[0] for rows in wrong)]
        losses = self._entropy(a, torch.cat(candidates), first)
        if self.symmetric:
            all_a, _ = all_rows(a, across_processes=self.across_processes)
            losses = (losses + self._entropy(p, all_a, first)) / 2
        return all_sum(losses, across_processes=self.across_processes) / len(all_p)

    def _entropy(self, queries: Tensor, candidates: Tensor, first: int) -> Tensor:
        """Return the sum over the queries; the correct candidate of query i is first + i."""
        right = torch.arange(first, first + len(queries), device=queries.device)
        return functional.cross_entropy(queries @ candidates.T / self.temperature, right, reduction="sum")

    def extra_repr(self) -> str:
        """Return the parameters that `print` shows."""
        return f"temperature={self.temperature}, symmetric={self.symmetric}, similarity={self.similarity!r}"


class AlignmentLoss(nn.Module):
    """How far apart the directions of partners are.

        mean_i ‖u_i − v_i‖^α,   u = x/‖x‖, v = y/‖y‖

    Range [0, 2^α]; 0 where all partners point alike, which a collapsed space does best: take it together
    with `UniformityLoss`. Unchanged by one rotation of both and by the length of each vector. Pairs with
    a zero vector are left out. A plain mean over pairs: gradient accumulation and several processes give
    what one batch would; the value is that of all processes.

    Args:
        alpha: α.
        across_processes: whether to reckon with the pairs of other processes.

    Paper: Wang and Isola 2020. As a measure: `isoscope.alignment`.

    >>> AlignmentLoss()(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 3.0]]))
    tensor(2.)
    """

    def __init__(self, alpha: float = 2.0, *, across_processes: bool = True) -> None:
        super().__init__()
        self.alpha = as_number(alpha, "alpha", positive=True)
        self.across_processes = across_processes

    @full_precision
    def forward(self, X: Tensor, Y: Tensor) -> Tensor:
        """Return the loss of (n, d) vectors and their (n, d) partners."""
        x, y = matching_rows(X=X, Y=Y)
        (u, u_present), (v, v_present) = units(x), units(y)
        present = u_present & v_present
        squared = (u - v).square().sum(dim=1)
        apart = (squared > 0) & present  # a power below 1 has no slope at 0
        powers = torch.where(apart, squared, 1.0) ** (self.alpha / 2)
        sums = torch.stack([torch.where(apart, powers, 0.0).sum(), present.sum().to(powers)])
        total, n = all_sum(sums, across_processes=self.across_processes)
        check_count(int(n.detach()), 1, "the alignment")
        return total / n.detach()

    def extra_repr(self) -> str:
        """Return the parameters that `print` shows."""
        return f"alpha={self.alpha}"


class UniformityLoss(nn.Module):
    """How unevenly directions cover the sphere.

        log mean_{i≠j} exp(−t‖u_i − u_j‖²),   u = x/‖x‖

    Range [−4t, 0]; low is even, 0 is collapse, where the gradient is zero. Unchanged by rotation and by
    the length of each vector. Zero vectors are left out. It keeps spreading points that
    `CosineRegularizer`, which sees only their mean direction, is content with.

    **Gradient accumulation**: the mean over micro-batches is over pairs within each. **Several
    processes**: over pairs of all processes, gradient included; every process must call it.

    Args:
        t: t; larger looks more closely at near pairs.
        across_processes: whether to reckon with the vectors of other processes.

    Paper: Wang and Isola 2020. As a measure: `isoscope.uniformity`.

    >>> UniformityLoss()(torch.tensor([[1.0, 0.0], [-2.0, 0.0]]))
    tensor(-8.)
    """

    def __init__(self, t: float = 2.0, *, across_processes: bool = True) -> None:
        super().__init__()
        self.t = as_number(t, "t", positive=True)
        self.across_processes = across_processes

    @full_precision
    def forward(self, X: Tensor) -> Tensor:
        """Return the loss of (n, d) vectors."""
        directions, present = units(as_rows(X, "X"))
        own = directions[present]
        others, first = all_rows(own, across_processes=self.across_processes)
        n = len(others)
        check_count(n, 2, "the uniformity")
        # ‖u − v‖² = 2 − 2u·v
        exponents = 2 * self.t * (own @ others.T - 1)
        itself = torch.arange(len(own), device=own.device)
        exponents = exponents.index_put((itself, itself + first), exponents.new_tensor(-math.inf))
        floor = exponents.new_full((1,), -math.inf)  # of a process without vectors
        largest = torch.cat([exponents.detach().flatten(), floor]).amax()
        largest = all_max(largest, across_processes=self.across_processes)
        part = (exponents - largest).exp().sum(dtype=torch.float64)
        total = all_sum(part, across_processes=self.across_processes)
        return ((total / (n * (n - 1))).log() + largest).to(own.dtype)

    def extra_repr(self) -> str:
        """Return the parameters that `print` shows."""
        return f"t={self.t}"
