"""The rows of a batch that each sum needs: computed once for a batch, and the same for every layer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from isoscope.models.layers.plan import BatchRows, TypePlan

_PIECE = 32  # rows of a group that one thread of a CUDA device adds up in turn


@dataclass(frozen=True, eq=False)
class Bags:
    """Rows in groups.

    Attributes:
        rows: the rows, group by group.
        starts: (G,) where the rows of each group begin.
        sizes: (G,) how many rows each group has.
        pieces: where groups are added up in pieces, the starts of the pieces in `rows`, and the starts of
            the groups among the pieces.
    """

    rows: Tensor
    starts: Tensor
    sizes: Tensor
    pieces: tuple[Tensor, Tensor] | None = None

    @classmethod
    def of(cls, rows: Tensor, groups: Tensor, n_groups: int, device: torch.device) -> Bags:
        """Group rows by the group of each, 0 … n_groups − 1. A group may have none."""
        sizes = torch.bincount(groups, minlength=n_groups)
        starts = sizes.cumsum(0) - sizes
        rows = rows[torch.argsort(groups, stable=True)]
        pieces = _pieces(starts, sizes) if device.type == "cuda" else None
        return cls(
            rows.to(device), starts.to(device), sizes.to(device),
            pieces and (pieces[0].to(device), pieces[1].to(device)),
        )  # fmt: skip

    def sums(self, values: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return the (G, d) sums over each group of rows of (m, d) values, or of (m,) weights times them."""
        bags = partial(embedding_bag, mode="sum")
        own = None if weights is None else weights[self.rows]
        if self.pieces is None:
            return bags(self.rows, values, self.starts, per_sample_weights=own)
        starts, groups = self.pieces
        parts = bags(self.rows, values, starts, per_sample_weights=own)
        return bags(torch.arange(len(starts), device=values.device), parts, groups)


def _pieces(starts: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Cut groups into pieces of at most 32 rows; return where pieces start, and groups among the pieces.

    >>> starts, groups = _pieces(torch.tensor([0, 70, 70]), torch.tensor([70, 0, 5]))
    >>> starts.tolist(), groups.tolist()
    ([0, 32, 64, 70], [0, 3, 3])
    """
    numbers = -(-sizes // _PIECE)
    groups = numbers.cumsum(0) - numbers
    within = torch.arange(int(numbers.sum())) - groups.repeat_interleave(numbers)
    return starts.repeat_interleave(numbers) + _PIECE * within, groups


@dataclass(frozen=True, eq=False)
class Part:
    """The counted rows of a batch that are attention sinks, or those that are not.

    Attributes:
        rows: (k,) their positions in the batch.
        texts: rows by text, for every text of the batch.
        types: rows by token type, for the types in `codes`.
        codes: (t,) the types that occur.
        shares: (t,) one over how often each of them occurs in all texts.
        repeated: (r,) places in `codes` of the types that occur more than once in all texts.
        slots: (r,) where the sums over those are held.
        baseline: (b,) the positions of the rows of the baseline.
    """

    rows: Tensor
    texts: Bags
    types: Bags
    codes: Tensor
    shares: Tensor
    repeated: Tensor
    slots: Tensor
    baseline: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(
        cls,
        chosen: Tensor,
        known: BatchRows,
        plan: TypePlan,
        device: torch.device,
    ) -> Part:
        """Return the part for a (m,) mask of the rows of a batch."""
        rows, texts = chosen.nonzero().flatten(), known.texts
        typed = rows if known.types is not None else rows[:0]
        types = typed if known.types is None else known.types[typed]
        codes, groups = torch.unique(types, return_inverse=True)
        slots = plan.slots[codes]
        repeated = (slots >= 0).nonzero().flatten()
        return cls(
            rows.to(device),
            Bags.of(rows, texts[rows], int(texts.max()) + 1, device),
            Bags.of(typed, groups, len(codes), device),
            codes.to(device),
            (1 / plan.counts[codes]).to(device),
            repeated.to(device),
            slots[repeated].to(device),
            (chosen & known.baseline).nonzero().flatten().to(device),
        )


@dataclass(frozen=True, eq=False)
class BatchIndex:
    """The rows of a batch in two parts, the types that it completes, and its rows in the sample.

    Attributes:
        kept: the rows that are not attention sinks.
        sinks: the attention sinks.
        completed: (c,) token types that will not occur again, and (c,) where their sums are held.
        held: rows of the batch whose states are held, and their places among those held.
    """

    kept: Part
    sinks: Part
    completed: tuple[Tensor, Tensor]
    held: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, known: BatchRows, is_sink: Tensor, plan: TypePlan) -> BatchIndex:
        """Return the index of a batch from what is known of its rows, and its sinks."""
        device, is_sink = is_sink.device, is_sink.cpu()
        held, places = known.held
        return cls(
            Part.of(known.counted & ~is_sink, known, plan, device),
            Part.of(known.counted & is_sink, known, plan, device),
            (known.completed.to(device), plan.slots[known.completed].to(device)),
            (held.to(device), places.to(device)),
        )
