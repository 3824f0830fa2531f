"""What is settled before the model runs: which tokens count, where each type's sum is held, what is sampled.

Texts are tokenized first, so it is known how often each type occurs and in which batch it occurs last. A
type that occurs once needs no sum, and the place of one that will not occur again is given to another:
memory follows the types that are open at a time, not the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.errors import InputError, ShapeError
from isoscope.labels import Labels
from isoscope.models.states import States
from isoscope.models.tokens import Tokenized
from isoscope.statistics.strata import draw_rows

BASELINE_TEXTS = 1000  # one random token of each: the papers' baseline


@dataclass(frozen=True, eq=False)
class TypePlan:
    """Where the sum over the occurrences of each token type is held, and when it is complete.

    Attributes:
        counts: (T,) int64, counted occurrences.
        slots: (T,) int64, the place of the sum; −1 for types that occur once or never.
        n_slots: how many places are needed at once.
        completed: for each batch, the types with a place that occur for the last time.
    """

    counts: Tensor
    slots: Tensor
    n_slots: int
    completed: list[Tensor]

    @classmethod
    def of(cls, codes: Tensor, batch_of_row: Tensor, n_types: int, n_batches: int) -> TypePlan:
        """From the types and batches of the rows that count.

        >>> plan = TypePlan.of(torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0, 0, 0, 1, 2]), 3, 3)
        >>> plan.slots.tolist(), plan.n_slots  # type 2 takes the place of type 0, which is complete by then
        ([0, -1, 0], 1)
        """
        counts = torch.bincount(codes, minlength=n_types)
        ends = torch.zeros(n_types, dtype=torch.int64)
        first = ends.scatter_reduce(0, codes, batch_of_row, "amin", include_self=False)
        last = ends.scatter_reduce(0, codes, batch_of_row, "amax", include_self=False)
        repeated = (counts > 1).nonzero().flatten()
        opened, completed = (_by_batch(repeated, when, n_batches) for when in (first, last))
        slots = torch.full((n_types,), -1)
        free: list[int] = []
        n_slots = 0
        for batch in range(n_batches):
            for code in opened[batch].tolist():
                if not free:
                    free.append(n_slots)
                    n_slots += 1
                slots[code] = free.pop()
            free += slots[completed[batch]].tolist()
        return cls(counts, slots, n_slots, completed)


def _by_batch(types: Tensor, batch: Tensor, n_batches: int) -> list[Tensor]:
    order = types[torch.argsort(batch[types], stable=True)]
    sizes = torch.bincount(batch[types], minlength=n_batches)
    return list(order.split(sizes.tolist()))


@dataclass(frozen=True, eq=False)
class LayerPlan:
    """All that a run over the layers needs to know of the tokens.

    Attributes:
        tokenized: the tokens.
        counted: (n,) bool, those that are measured.
        types: places of the types' sums.
        sample: places of the tokens whose states are held, in rising order.
        baseline: (n,) bool, one random token of each of up to 1,000 texts.
    """

    tokenized: Tokenized
    counted: Tensor
    types: TypePlan
    sample: Tensor
    baseline: Tensor

    @property
    def n_counted(self) -> int:
        """How many tokens are measured."""
        return int(self.types.counts.sum())

    @property
    def sample_types(self) -> Labels:
        """The types of the tokens whose states are held."""
        types = self.tokenized.rows.types
        return Labels(types.codes[self.sample], types.names)

    def layer_bytes(self, n_dims: int) -> int:
        """What the sums of one layer take at most: by type, the sample, and four matrices of moments."""
        n_types = len(self.types.counts)
        return 4 * n_dims * (self.types.n_slots + len(self.sample)) + 16 * n_types + 4 * 8 * n_dims**2

    @classmethod
    def of(cls, states: States, *, sample: int, seed: int) -> LayerPlan:
        """Settle everything; the same seed, the same tokens."""
        rows, counted = states.tokenized.rows, states.counted
        places = counted.nonzero().flatten()
        if len(places) < 2:
            raise ShapeError(f"the texts have {len(places)} tokens that count; wanted at least 2")
        if sample < 2:
            raise InputError(argument="sample", got=sample, wanted="at least 2 tokens")
        batch_of_text = torch.empty(len(states.tokenized.lengths), dtype=torch.int64)
        for number, texts in enumerate(states.groups):
            batch_of_text[texts] = number
        types = TypePlan.of(
            rows.types.codes[places],
            batch_of_text[rows.sentences.codes[places]],
            rows.types.n_labels,
            len(states.groups),
        )
        generator = torch.Generator().manual_seed(seed)
        drawn = places[torch.randperm(len(places), generator=generator)]
        return cls(
            states.tokenized, counted, types, drawn[:sample].sort().values,
            _baseline(rows.sentences, counted, generator),
        )  # fmt: skip


def _baseline(sentences: Labels, counted: Tensor, generator: torch.Generator) -> Tensor:
    """(n,) one random token of each of up to 1,000 texts, every text alike however long it is."""
    rows = draw_rows(sentences, at_most=1, generator=generator, among=counted)
    chosen = torch.zeros(len(sentences), dtype=torch.bool)
    chosen[rows[torch.randperm(len(rows), generator=generator)[:BASELINE_TEXTS]]] = True
    return chosen
