"""The sums of one layer, batch by batch: one of tokens that are not attention sinks, and one of the sinks.

The sums over all tokens are these two together, so nothing is summed twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError
from isoscope.labels import Labels
from isoscope.models.layers.batch_index import BatchIndex, Part
from isoscope.models.layers.plan import LayerPlan, OpenPlan
from isoscope.models.layers.quantities import LayerStatistics
from isoscope.models.layers.type_sums import SinkPlaces, TypeSums
from isoscope.space import Space
from isoscope.statistics.deferred import Unchecked, can_defer, checked, unchecked
from isoscope.statistics.directions import Directions
from isoscope.statistics.group_cosines import GroupCosines, MeanCosines
from isoscope.statistics.moments import Moments

_MANY_ROWS = 4  # on the CPU, rows are gathered until they are so many times the dimensions, then multiplied


class _Rows:
    """Moments and directions of rows that come in batches of any size."""

    def __init__(self) -> None:
        self._moments: Moments | None = None
        self._directions: Directions | None = None
        self._few: list[Tensor] = []

    def add(
        self, states: Tensor, units: Tensor, norms: Tensor, unit_sum: Tensor, *, rounded: bool
    ) -> Unchecked | None:
        """Add one more batch; return moments that are still to be checked, and then merged."""
        part = _directions(units, norms, unit_sum)
        self._directions = part if self._directions is None else self._directions.merge(part)
        self._few.append(states)
        enough = (1 if states.is_cuda else _MANY_ROWS) * states.shape[1]
        if sum(map(len, self._few)) < enough:
            return None
        rows = self._gathered()
        if can_defer(rows):
            return unchecked(rows, rounded=rounded)
        self.merge(Moments.of(rows))
        return None

    def merge(self, part: Moments) -> None:
        """Add the moments of a batch."""
        self._moments = part if self._moments is None else self._moments.merge(part)

    def finish(self) -> tuple[Moments, Directions] | None:
        """Return both statistics; None where no row came."""
        if self._few:
            self.merge(Moments.of(self._gathered()))
        if self._moments is None or self._directions is None:
            return None
        n_zero = int(self._directions.n_zero)
        return self._moments, replace(self._directions, count=int(self._directions.count), n_zero=n_zero)

    def _gathered(self) -> Tensor:
        rows = torch.cat(self._few) if len(self._few) > 1 else self._few[0]
        self._few = []
        return rows


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
        self._sample = torch.empty(plan.sample_rows, n_dims, device=device)
        self._is_sink = torch.zeros(plan.sample_rows, dtype=torch.bool, device=device)
        self._unchecked: list[tuple[_Rows, Unchecked]] = []

    def add(
        self, states: Tensor, norms: Tensor, index: BatchIndex, is_sink: Tensor, *, rounded: bool = False
    ) -> None:
        """Add a batch: (m, d) states, their (m,) norms, and a mask of the sinks.

        `rounded` states were computed in half precision.
        """
        units = states / norms.clamp(min=torch.finfo(norms.dtype).tiny)[:, None]
        kept_sums, sink_sums = self._add_texts(states, units, index)
        for rows, part, sums in (
            (self._kept, index.kept, kept_sums),
            (self._sinks, index.sinks, sink_sums),
        ):
            if len(part):
                own_norms = _taken(norms, part)
                own = _taken(states, part), _taken(units, part), own_norms, sums.sum(dim=0)
                to_check = rows.add(*own, rounded=rounded)
                if to_check is not None:
                    self._unchecked.append((rows, to_check))
        self._types.add(units, index)
        self._add_baseline(units, index)
        held, places = index.held
        self._sample[places] = states[held].float()
        self._is_sink[places] = is_sink[held]

    @staticmethod
    def check(layers: Iterable[LayerSums]) -> None:
        """Check and merge the moments of the last batch in these layers, after one wait for the device."""
        waiting = [one for layer in layers for one in layer._unchecked]
        if waiting:
            for (rows, _), moments in zip(waiting, checked([block for _, block in waiting]), strict=True):
                rows.merge(moments)
        for layer in layers:
            layer._unchecked = []

    def finish(self, **options: Any) -> tuple[LayerStatistics, LayerStatistics]:
        """Return the statistics with sinks, and without them; `options` are those of LayerStatistics."""
        kept, sinks = self._kept.finish(), self._sinks.finish()
        if kept is None:
            raise InputError("sink_ratio leaves no token that is no attention sink; raise it")
        everyone = kept if sinks is None else (kept[0].merge(sinks[0]), kept[1].merge(sinks[1]))
        n_held, names = self._plan.n_sample, self._plan.type_names
        is_sink, sample_types = self._is_sink[:n_held], self._plan.sample_types
        all_held = torch.ones_like(is_sink)
        views = zip((everyone, kept), self._types.finish(), (all_held, ~is_sink), strict=True)
        found = []
        for view, ((moments, directions), types, held) in enumerate(views):
            (total, n_texts), unit_sum, n = self._texts[view], directions.unit_sum, directions.count
            sums: dict[str, Any] = {}
            if sample_types is not None:
                sums["type_directions"] = GroupCosines(names, *types, unit_sum, n, directions.n_zero)
            held_types = sample_types and Labels(sample_types.codes[held.cpu()], names).seen()
            found.append(
                LayerStatistics(
                    Space(self._sample[:n_held][held], token_types=held_types),
                    baseline=(self._baseline_counts[view], self._baseline_sums[view]),
                    **options,
                    moments=moments,
                    directions=directions,
                    **sums,
                    sentence_directions=MeanCosines(total, n_texts, unit_sum, n),
                    sentence_moments=None,  # the cosines with them are taken
                )
            )
        return found[0], found[1]

    def _add_texts(self, states: Tensor, units: Tensor, index: BatchIndex) -> tuple[Tensor, Tensor]:
        """Add the texts' values in both views; return the sums of unit vectors by text, kept and sinks."""
        sizes = index.kept.texts.sizes
        sums, unit_sums = index.kept.texts.sums(states), index.kept.texts.sums(units)
        self._texts[1] += _mean_cosines(sums, unit_sums, sizes)
        if not len(index.sinks):
            self._texts[0] += _mean_cosines(sums, unit_sums, sizes)
            return unit_sums, unit_sums[:0]
        more, more_units = index.sinks.texts.sums(states), index.sinks.texts.sums(units)
        self._texts[0] += _mean_cosines(sums + more, unit_sums + more_units, sizes + index.sinks.texts.sizes)
        return unit_sums, more_units

    def _add_baseline(self, units: Tensor, index: BatchIndex) -> None:
        for part, views in ((index.kept, (0, 1)), (index.sinks, (0,))):
            if len(part.baseline):
                total = units[part.baseline].sum(dim=0).double()
                for view in views:
                    self._baseline_sums[view] += total
                    self._baseline_counts[view] += len(part.baseline)


def _mean_cosines(sums: Tensor, unit_sums: Tensor, sizes: Tensor) -> Tensor:
    """Return (2,) the sum over texts of the mean cosine of tokens with their text's mean, and their number.

    Σ cos(x, m) over a text is (Σu)·m/‖m‖: its sums are enough.
    """
    lengths = sums.norm(dim=1)
    present = (sizes > 0) & (lengths > 0)
    cosines = torch.where(present, (unit_sums * sums).sum(dim=1) / (lengths * sizes), 0.0)
    return torch.stack([cosines.double().sum(), present.sum().double()])


def _directions(units: Tensor, norms: Tensor, unit_sum: Tensor) -> Directions:
    wide = norms.double()
    n_zero = (norms == 0).sum()  # a number only when all batches have come: asking would wait for the device
    return Directions(
        len(norms) - n_zero,
        n_zero,
        unit_sum.double(),
        (units * units).sum(dim=0).double(),
        wide.sum(),
        wide @ wide,
        wide.min(),
        wide.max(),
    )


def _taken(values: Tensor, part: Part) -> Tensor:
    """Return the rows of a part, without a copy where it has all of them."""
    return values if len(part) == len(values) else values[part.rows]
