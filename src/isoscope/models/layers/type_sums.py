"""Sums of unit vectors by token type, stored only while a type may occur again."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.models.layers.batch_index import BatchIndex
from isoscope.models.layers.plan import TypePlan


class SinkPlaces:
    """The slots of the sums over the occurrences that are sinks, by type; all layers share them.

    Few types have sinks. Which types is known only after all batches, so a slot is never reused.
    """

    def __init__(self, n_types: int, device: torch.device) -> None:
        self.slots = torch.full((n_types,), -1, device=device)
        self.counts = torch.zeros(n_types, dtype=torch.int64, device=device)
        self.n_slots = 0
        self.completed: Tensor | None = None

    def add(self, index: BatchIndex) -> None:
        """Assign slots to the types of a batch's sinks, count the sinks, and find the completed types."""
        sinks = index.sinks
        if len(sinks.codes):
            new = sinks.codes[self.slots[sinks.codes] < 0]
            self.slots[new] = torch.arange(self.n_slots, self.n_slots + len(new), device=new.device)
            self.n_slots += len(new)
            self.counts[sinks.codes] += sinks.types.sizes
        # places among the types that are complete with this batch: found once for all layers
        self.completed = (self.slots[index.completed[0]] >= 0).nonzero().flatten() if self.n_slots else None


class TypeSums:
    """The sums of one layer by type.

    They are float32: each batch adds one number to each sum, so that after thousands of batches the rounding
    error of a cosine is about 1e-6.
    """

    def __init__(self, plan: TypePlan, sinks: SinkPlaces, n_dims: int, device: torch.device) -> None:
        self._counts, self._sinks = plan.counts.to(device), sinks
        self._sums = torch.zeros(plan.n_slots, n_dims, device=device)
        self._sink_sums = torch.zeros(0, n_dims, device=device)
        # one occurrence has a unit vector of length 1
        self._squared = torch.ones(2, len(plan.counts), dtype=torch.float64, device=device)
        self._mean_sums = torch.zeros(2, n_dims, dtype=torch.float64, device=device)

    def add(self, states: Tensor, inverse: Tensor, index: BatchIndex) -> None:
        """Add a batch of (m, d) states, whose norms have an `inverse`: 0 for a zero vector."""
        kept, sinks = index.kept, index.sinks
        if len(kept.codes):
            sums = kept.types.sums(states, inverse)
            self._sums.index_add_(0, kept.slots, sums[kept.repeated])
            self._mean_sums += kept.shares.to(sums.dtype) @ sums
        if len(sinks.codes):
            sums = sinks.types.sums(states, inverse)
            self._room_for_sinks()
            self._sink_sums.index_add_(0, self._sinks.slots[sinks.codes], sums)
            self._mean_sums[0] += sinks.shares.to(sums.dtype) @ sums
        self._complete(*index.completed)

    def finish(self) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
        """Return counts, ‖Σu‖² by type and the sum of the types' means, with sinks and without them."""
        without = self._counts - self._sinks.counts
        return (
            (self._counts, self._squared[0], self._mean_sums[0]),
            (without, torch.where(without > 0, self._squared[1], 0.0), self._mean_sums[1]),
        )

    def _room_for_sinks(self) -> None:
        missing = self._sinks.n_slots - len(self._sink_sums)
        if missing > 0:
            self._sink_sums = torch.cat(
                [self._sink_sums, self._sink_sums.new_zeros(missing, self._sums.shape[1])]
            )

    def _complete(self, codes: Tensor, slots: Tensor) -> None:
        """Compute the norms of the sums of completed types, and free their slots."""
        if not len(codes):
            return
        sums = self._sums[slots]
        self._sums[slots] = 0
        self._squared[1, codes] = (sums * sums).sum(dim=1).double()
        self._squared[0, codes] = self._squared[1, codes]
        with_sinks = self._sinks.completed
        if with_sinks is not None and len(with_sinks):
            self._complete_with_sinks(codes[with_sinks], sums[with_sinks])

    def _complete_with_sinks(self, codes: Tensor, sums: Tensor) -> None:
        self._room_for_sinks()
        both = sums + self._sink_sums[self._sinks.slots[codes]]
        self._squared[0, codes] = (both * both).sum(dim=1).double()
        # the mean of a type without its sinks is over fewer than were divided by
        n, n_without = self._counts[codes], (self._counts - self._sinks.counts)[codes]
        change = torch.where(n_without > 0, 1 / n_without.clamp(min=1) - 1 / n, 0.0)
        self._mean_sums[1] += change.to(sums.dtype) @ sums
