"""Which rows of a batch go into which sums: settled once a batch, the same for every layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.models.layers.plan import LayerPlan


@dataclass(frozen=True, eq=False)
class Bags:
    """Rows in groups: those of group g are rows[starts[g]], … up to the next group's."""

    rows: Tensor
    starts: Tensor
    sizes: Tensor

    @classmethod
    def of(cls, rows: Tensor, groups: Tensor, n_groups: int) -> Bags:
        """Rows by the group of each, 0 … n_groups − 1; a group may have none."""
        sizes = torch.bincount(groups, minlength=n_groups)
        return cls(rows[torch.argsort(groups, stable=True)], sizes.cumsum(0) - sizes, sizes)

    def to(self, device: torch.device) -> Bags:
        """The same on a device."""
        return Bags(self.rows.to(device), self.starts.to(device), self.sizes.to(device))

    def sums(self, values: Tensor) -> Tensor:
        """(G, d) the sums over each group of rows of (m, d) values."""
        return torch.nn.functional.embedding_bag(self.rows, values, self.starts, mode="sum")


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of a batch that are sinks, or those that are not, among the ones that count.

    Attributes:
        rows: (k,) their places in the batch.
        texts: rows by text, for every text of the batch.
        types: rows by token type, for the types in `codes`.
        codes: (t,) the types that occur.
        baseline: (b,) the places of the sampled baseline's rows.
    """

    rows: Tensor
    texts: Bags
    types: Bags
    codes: Tensor
    baseline: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, chosen: Tensor, texts: Tensor, types: Tensor, baseline: Tensor, device: torch.device) -> Part:
        """From a (m,) mask and the text, type and baseline mark of all m rows."""
        rows = chosen.nonzero().flatten()
        codes, groups = torch.unique(types[rows], return_inverse=True)
        return cls(
            rows.to(device),
            Bags.of(rows, texts[rows], int(texts.max()) + 1).to(device),
            Bags.of(rows, groups, len(codes)).to(device),
            codes.to(device),
            (chosen & baseline).nonzero().flatten().to(device),
        )


@dataclass(frozen=True, eq=False)
class BatchIndex:
    """One batch: its rows in two parts, the types that are complete with it, and the rows to hold.

    Attributes:
        kept: the rows that are no attention sinks.
        sinks: those that are.
        completed: (c,) token types that will not occur again.
        held: rows of the batch whose states are held, and their places among those held, on the CPU.
    """

    kept: Part
    sinks: Part
    completed: Tensor
    held: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, number: int, rows: Tensor, is_sink: Tensor, plan: LayerPlan) -> BatchIndex:
        """From the number of the batch, its rows among all tokens, and which of them are sinks."""
        device, is_sink, known = is_sink.device, is_sink.cpu(), plan.tokenized.rows
        _, texts = torch.unique_consecutive(known.sentences.codes[rows], return_inverse=True)
        facts = (texts, known.types.codes[rows], plan.baseline[rows], device)
        counted = plan.counted[rows]
        return cls(
            Part.of(counted & ~is_sink, *facts),
            Part.of(counted & is_sink, *facts),
            plan.types.completed[number].to(device),
            _held(rows, plan.sample),
        )


def _held(rows: Tensor, sample: Tensor) -> tuple[Tensor, Tensor]:
    """Which rows are among the sampled tokens, and where."""
    places = torch.searchsorted(sample, rows).clamp(max=len(sample) - 1)
    found = (sample[places] == rows).nonzero().flatten()
    return found, places[found]
