"""The sums of one layer, batch by batch: one of tokens that are not attention sinks, and one of the sinks.

The sums over all tokens are these two together, so nothing is summed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError
from isoscope.kernels.products import weighted_sums
from isoscope.labels import Labels
from isoscope.models.layers.batch_index import BatchIndex, Part
from isoscope.models.layers.moment_sums import MomentSums
from isoscope.models.layers.plan import LayerPlan, OpenPlan
from isoscope.models.layers.quantities import LayerStatistics
from isoscope.models.layers.type_sums import SinkPlaces, TypeSums
from isoscope.space import Space
from isoscope.statistics.directions import Directions
from isoscope.statistics.group_cosines import GroupCosines, MeanCosines
from isoscope.statistics.moments import Moments


class _Rows:
    """Moments and directions of rows that come in batches of any size."""

    def __init__(self) -> None:
        self.moments = MomentSums()
        self._directions: Directions | None = None

    def add(self, states: Tensor, lifted: Tensor, norms: Tensor, unit_sum: Tensor, *, uneven: bool) -> None:
        """Add one more batch: states, and in float32; their norms, and the sum of their unit vectors."""
        self.moments.add(states, uneven=uneven)
        part = _directions(lifted, norms, unit_sum)
        self._directions = part if self._directions is None else self._directions.merge(part)

    def directions(self) -> Directions | None:
        """Return the directions of all rows; None where no row came."""
        found = self._directions
        return found and replace(found, count=int(found.count), n_zero=int(found.n_zero))


class LayerSums:
    """The sums of one layer: call `add` for each batch, then `finish`."""

    def __init__(
        self, plan: LayerPlan | OpenPlan, sinks: SinkPlaces, n_dims: int, device: torch.device
    ) -> None:
        self._plan = plan
        self._kept, self._sinks = _Rows(), _Rows()
        self._types = TypeSums(plan.types, sinks, n_dims, device)
        # (with sinks, without) × (sum of the texts' values, number of texts)
        self._texts = torch.zeros(2, 2, dtype=torch.float64, device=device)
        self._baseline_sums = torch.zeros(2, n_dims, dtype=torch.float64, device=device)
        self._baseline_counts = [0, 0]
        self._sample: Tensor | None = None  # in the type of the states
        self._is_sink = torch.zeros(plan.sample_rows, dtype=torch.bool, device=device)

    def add(
        self, states: Tensor, norms: Tensor, index: BatchIndex, is_sink: Tensor, *, uneven: bool = False
    ) -> None:
        """Add a batch: (m, d) states in the model's type, their (m,) norms, and a mask of the sinks.

        A few of the states of an `uneven` batch are far longer than all others.
        """
        lifted = states.float()
        inverse = torch.where(norms > 0, 1 / norms, 0.0)
        sums = self._add_texts(lifted, inverse, index)
        for rows, part, unit_sums in zip(
            (self._kept, self._sinks), (index.kept, index.sinks), sums, strict=True
        ):
            if len(part):
                own = _taken(states if states.is_cuda else lifted, part), _taken(lifted, part)
                rows.add(*own, _taken(norms, part), unit_sums.sum(dim=0), uneven=uneven)
        self._types.add(lifted, inverse, index)
        self._add_baseline(lifted, inverse, index)
        self._hold(states, index, is_sink)

    def finish(self, **options: Any) -> tuple[LayerStatistics, LayerStatistics]:
        """Return the statistics with sinks, and without them; `options` are those of LayerStatistics."""
        kept, sinks = self._kept.directions(), self._sinks.directions()
        if kept is None:
            raise InputError("sink_ratio leaves no token that is no attention sink; raise it")
        everyone = kept if sinks is None else kept.merge(sinks)
        n_held, names = self._plan.n_sample, self._plan.type_names
        is_sink, sample_types = self._is_sink[:n_held], self._plan.sample_types
        assert self._sample is not None  # every batch has come
        sample, self._sample = self._sample[:n_held].float(), None
        parts = ((self._kept, self._sinks), everyone), ((self._kept,), kept)
        found = []
        for view, ((rows, directions), types) in enumerate(zip(parts, self._types.finish(), strict=True)):
            (total, n_texts), unit_sum, n = self._texts[view], directions.unit_sum, directions.count
            sums: dict[str, Any] = {}
            if sample_types is not None:
                sums["type_directions"] = GroupCosines(names, *types, unit_sum, n, directions.n_zero)
            space = Space(sample, token_types=sample_types and sample_types.seen())
            if view and bool(is_sink.any()):
                own_types = sample_types and Labels(sample_types.codes[~is_sink.cpu()], names).seen()
                space = Space(sample[~is_sink], token_types=own_types)
            found.append(
                LayerStatistics(
                    space,
                    baseline=(self._baseline_counts[view], self._baseline_sums[view]),
                    **options,
                    moments=partial(_moments, rows),
                    directions=directions,
                    **sums,
                    sentence_directions=MeanCosines(total, n_texts, unit_sum, n),
                    sentence_moments=None,  # the cosines with them are taken
                )
            )
            if sinks is None:
                return found[0], found[0]
        return found[0], found[1]

    def _add_texts(self, states: Tensor, inverse: Tensor, index: BatchIndex) -> tuple[Tensor, Tensor]:
        """Add the texts' values in both views; return the sums of unit vectors by text, kept and sinks."""
        kept, sinks = index.kept.texts, index.sinks.texts
        sums, unit_sums = kept.sums(states), kept.sums(states, inverse)
        self._texts[1] += _mean_cosines(sums, unit_sums, kept.sizes)
        if not len(index.sinks):
            self._texts[0] += _mean_cosines(sums, unit_sums, kept.sizes)
            return unit_sums, unit_sums[:0]
        more, more_units = sinks.sums(states), sinks.sums(states, inverse)
        self._texts[0] += _mean_cosines(sums + more, unit_sums + more_units, kept.sizes + sinks.sizes)
        return unit_sums, more_units

    def _add_baseline(self, states: Tensor, inverse: Tensor, index: BatchIndex) -> None:
        for part, views in ((index.kept, (0, 1)), (index.sinks, (0,))):
            if len(part.baseline):
                total = (inverse[part.baseline] @ states[part.baseline]).double()
                for view in views:
                    self._baseline_sums[view] += total
                    self._baseline_counts[view] += len(part.baseline)

    def _hold(self, states: Tensor, index: BatchIndex, is_sink: Tensor) -> None:
        """Store the states of the batch that are in the sample."""
        held, places = index.held
        if self._sample is None:
            self._sample = states.new_empty(len(self._is_sink), states.shape[1])
        self._sample[places] = states[held]
        self._is_sink[places] = is_sink[held]


def _moments(rows: Sequence[_Rows]) -> Moments:
    """Return the moments of several sets of rows."""
    return reduce(Moments.merge, filter(None, (one.moments.moments() for one in rows)))


def _mean_cosines(sums: Tensor, unit_sums: Tensor, sizes: Tensor) -> Tensor:
    """Return (2,) the sum over texts of the mean cosine of tokens with their text's mean, and their number.

    Σ cos(x, m) over a text is (Σu)·m/‖m‖: its sums are enough.
    """
    lengths = sums.norm(dim=1)
    present = (sizes > 0) & (lengths > 0)
    cosines = torch.where(present, (unit_sums * sums).sum(dim=1) / (lengths * sizes), 0.0)
    return torch.stack([cosines.double().sum(), present.sum().double()])


def _directions(states: Tensor, norms: Tensor, unit_sum: Tensor) -> Directions:
    wide = norms.double()
    n_zero = (norms == 0).sum()  # a number only when all batches have come: asking would wait for the device
    inverse_squares = torch.where(norms > 0, norms.square().reciprocal(), 0.0)
    return Directions(
        len(norms) - n_zero,
        n_zero,
        unit_sum.double(),
        weighted_sums(inverse_squares[None], states * states)[0],
        wide.sum(),
        wide @ wide,
        wide.min(),
        wide.max(),
    )


def _taken(values: Tensor, part: Part) -> Tensor:
    """Return the rows of a part, without a copy where it has all of them."""
    return values if len(part) == len(values) else values[part.rows]
