"""The plan of a run: the tokens that are counted, the slot of each type's sum, and the sample.

Texts are tokenized first, so it is known how often each type occurs and in which batch it occurs last. A
type that occurs once needs no sum, and the slot of a type that does not occur again is reused. The memory
therefore depends on the number of types in use at a time, not on the number of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import ShapeError
from isoscope.labels import Labels
from isoscope.models.states import States, TokenBatch
from isoscope.models.tokens import Tokenized
from isoscope.statistics.strata import draw_rows

_MOMENT_BYTES = 5  # of a (d, d) sum in float64, of which nine sixteenths are held
BASELINE_TEXTS = 1000  # the baseline of the papers is one random token of each


@dataclass(frozen=True, eq=False)
class TypePlan:
    """The slot of the sum over the occurrences of each token type, and the batch that completes it.

    Attributes:
        counts: (T,) int64, the number of occurrences that are counted.
        slots: (T,) int64, the slot of the sum; −1 for types that occur at most once.
        n_slots: the number of slots in use at the same time.
        completed: for each batch, the types with a slot that occur for the last time.
    """

    counts: Tensor
    slots: Tensor
    n_slots: int
    completed: list[Tensor]

    @classmethod
    def of(cls, codes: Tensor, batch_of_row: Tensor, n_types: int, n_batches: int) -> TypePlan:
        """Return the plan for the types and batches of the tokens that are counted.

        >>> plan = TypePlan.of(torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0, 0, 0, 1, 2]), 3, 3)
        >>> plan.slots.tolist(), plan.n_slots  # type 2 reuses the slot of type 0, which is complete
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
class BatchRows:
    """What is known of the m rows of a batch, on the CPU.

    Attributes:
        texts: (m,) int64, the number of each row's text within the batch.
        types: (m,) int64, the code of each row's token type; None where rows have no types.
        counted: (m,) bool, the rows that are measured.
        baseline: (m,) bool, the rows of the baseline.
        completed: (c,) the token types that will not occur again.
        held: rows of the batch whose states are held, and their places among those held.
    """

    texts: Tensor
    types: Tensor | None
    counted: Tensor
    baseline: Tensor
    completed: Tensor
    held: tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class LayerPlan:
    """The tokens of a run over the layers.

    Attributes:
        tokenized: the tokens.
        counted: (n,) bool, the tokens that are measured.
        types: the slots of the types' sums.
        sample: the positions of the tokens whose states are stored, in ascending order.
        baseline: (n,) bool, one random token of each of up to 1,000 texts.
    """

    tokenized: Tokenized
    counted: Tensor
    types: TypePlan
    sample: Tensor
    baseline: Tensor

    @property
    def n_counted(self) -> int:
        """The number of tokens that are measured."""
        return int(self.types.counts.sum())

    @property
    def n_items(self) -> int:
        """The number of texts."""
        return len(self.tokenized.lengths)

    @property
    def n_sample(self) -> int:
        """The number of tokens in the sample."""
        return len(self.sample)

    @property
    def sample_rows(self) -> int:
        """The largest size of the sample."""
        return len(self.sample)

    @property
    def type_names(self) -> tuple[str, ...]:
        """The names of the token types."""
        return self.tokenized.rows.types.names

    @property
    def sample_types(self) -> Labels | None:
        """The types of the tokens in the sample."""
        types = self.tokenized.rows.types
        return Labels(types.codes[self.sample], types.names)

    def batch(self, number: int, batch: TokenBatch) -> BatchRows:
        """Return the rows of a batch of this number."""
        rows, known = batch.rows, self.tokenized.rows
        assert rows is not None
        _, texts = torch.unique_consecutive(batch.items, return_inverse=True)
        places = torch.searchsorted(self.sample, rows).clamp(max=len(self.sample) - 1)
        held = (self.sample[places] == rows).nonzero().flatten()
        return BatchRows(
            texts, known.types.codes[rows], self.counted[rows], self.baseline[rows],
            self.types.completed[number], (held, places[held]),
        )  # fmt: skip

    def layer_bytes(self, n_dims: int) -> int:
        """Return the largest size of the sums of one layer: types, sample, and a triangle of moments."""
        n_types = len(self.types.counts)
        return 4 * n_dims * (self.types.n_slots + len(self.sample)) + 16 * n_types + _MOMENT_BYTES * n_dims**2

    @classmethod
    def of(cls, states: States, *, sample: int, seed: int) -> LayerPlan:
        """Return the plan for the states of texts; `seed` determines the sample and the baseline."""
        rows, counted = states.tokenized.rows, states.counted
        places = counted.nonzero().flatten()
        if len(places) < 2:
            raise ShapeError(
                f"has {len(places)} token{'' if len(places) == 1 else 's'} to count",
                argument="texts",
                wanted="at least 2",
            )
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


class OpenPlan:
    """The plan for rows that are not known before they come, and have no token types.

    The sample is drawn as rows come: each row replaces a random one with the probability that makes every
    sample equally likely. The baseline is one random row of each of the first 1,000 items.
    """

    sample_types = None
    type_names: tuple[str, ...] = ()

    def __init__(self, *, sample: int, seed: int) -> None:
        self.sample_rows, self._seed = sample, seed
        self.n_counted = self.n_items = 0
        none = torch.zeros(0, dtype=torch.int64)
        self.types = TypePlan(none, none, 0, [])

    @property
    def n_sample(self) -> int:
        """The number of rows in the sample."""
        return min(self.sample_rows, self.n_counted)

    def layer_bytes(self, n_dims: int) -> int:
        """Return the largest size of the sums of one layer: the sample, and a triangle of moments."""
        return 4 * n_dims * self.sample_rows + _MOMENT_BYTES * n_dims**2

    def batch(self, number: int, batch: TokenBatch) -> BatchRows:
        """Return the rows of the next batch; number 0 begins a pass."""
        if number == 0:
            self.n_counted = self.n_items = 0
        items, m = batch.items, len(batch.items)
        _, texts = torch.unique_consecutive(items, return_inverse=True)
        random = np.random.default_rng([self._seed, self.n_counted])
        rows = BatchRows(
            texts, None, torch.ones(m, dtype=torch.bool), self._baseline(texts, random),
            torch.zeros(0, dtype=torch.int64), self._held(m, random),
        )  # fmt: skip
        self.n_counted += m
        self.n_items += int(texts[-1]) + 1
        return rows

    def _held(self, m: int, random: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Return rows of the batch that enter the sample, and their places in it."""
        numbers = np.arange(self.n_counted, self.n_counted + m)
        drawn = np.where(
            numbers < self.sample_rows, numbers, (random.random(m) * (numbers + 1)).astype(np.int64)
        )
        chosen = np.flatnonzero(drawn < self.sample_rows)[::-1]
        places, first = np.unique(drawn[chosen], return_index=True)  # of rows for one place, the last stays
        return torch.from_numpy(chosen[first].copy()), torch.from_numpy(places)

    def _baseline(self, texts: Tensor, random: np.random.Generator) -> Tensor:
        n = int(texts[-1]) + 1
        keys = torch.from_numpy(random.random(len(texts)))
        best = torch.zeros(n, dtype=torch.float64).scatter_reduce(0, texts, keys, "amax")
        return (keys == best[texts]) & (texts < BASELINE_TEXTS - self.n_items)


def _baseline(sentences: Labels, counted: Tensor, generator: torch.Generator) -> Tensor:
    """Return a (n,) mask of one random token of each of up to 1,000 texts."""
    rows = draw_rows(sentences, at_most=1, generator=generator, among=counted)
    chosen = torch.zeros(len(sentences), dtype=torch.bool)
    chosen[rows[torch.randperm(len(rows), generator=generator)[:BASELINE_TEXTS]]] = True
    return chosen
