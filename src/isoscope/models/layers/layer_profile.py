"""`LayerProfile`: the quantities of every layer of a model, to print, plot and compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isoscope.engine.readings import Reading, Readings, View
from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.sinks import Sinks
from isoscope.models.forward import Layer
from isoscope.models.layers.plan import LayerPlan, OpenPlan
from isoscope.models.layers.quantities import ALL_QUANTITIES, LayerStatistics, Quantity
from isoscope.models.states import States
from isoscope.statistics.group_cosines import GroupCosines
from isoscope.tables import Grid, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WITH_SINKS, WITHOUT_SINKS = VIEWS = ("all tokens", "without sinks")
SELF_SIMILARITY = "self_similarity"  # in the names of the quantities that compare occurrences of a type
Values = dict[str, float | None]
_MAIN = (  # the columns that are printed by default: they fit a terminal of 80 characters
    "mean_norm",
    "mean_cosine",
    "adjusted_self_similarity",
    "adjusted_intra_similarity",
    "isoscore_debiased",
    "effective_rank",
    "n_clusters",
    "lid",
)


@dataclass(frozen=True, eq=False, repr=False)
class LayerProfile(View):
    """The quantities of every layer, with and without attention sinks.

    Attributes:
        model: the name of the model.
        n_tokens, n_texts, n_types: the numbers of tokens, texts and token types; for batches, the numbers of
            rows and items, and 0.
        n_dims: the number of dimensions of a state, of the widest layer where they differ.
        readings: every quantity by `layer` and `view` ("all tokens" or "without sinks").
        sinks: descriptions of the attention sinks; empty where there are none.
        n_sinks: the number of tokens that are sinks.
        sample: the number of tokens for clusters, local dimension and informativity.
        type_names, type_counts: the token types and their numbers of occurrences.
        type_similarities: by layer, (T,) the self-similarity of each type without sinks; NaN for a type that
            occurs once.
        seconds: the time in the model, in the sums over all tokens, and on the sample.
        notes: remarks for the user.
    """

    model: str
    n_tokens: int
    n_texts: int
    n_types: int
    n_dims: int
    readings: Readings
    sinks: tuple[str, ...]
    n_sinks: int
    sample: int
    type_names: tuple[str, ...]
    type_counts: Tensor
    type_similarities: Mapping[Any, Tensor]
    seconds: Mapping[str, float]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        states: States,
        plan: LayerPlan | OpenPlan,
        sinks: Sequence[Sinks],
        readings: Readings,
        statistics: Mapping[Layer, tuple[LayerStatistics, LayerStatistics]],
        seconds: Mapping[str, float],
        notes: tuple[str, ...],
    ) -> LayerProfile:
        """Return the profile of a run."""
        counts = plan.types.counts
        asked = any(SELF_SIMILARITY in reading.metric for reading in readings)
        if asked and len(counts) and not bool((counts > 1).any()):
            notes = (*notes, "no token type occurs twice: self-similarity is undefined")
        return cls(
            model=states.name,
            n_tokens=plan.n_counted,
            n_texts=plan.n_items,
            n_types=int((counts > 0).sum()),
            n_dims=max(states.widths.values()),
            readings=readings,
            sinks=tuple(name for part in sinks for name in part.names),
            n_sinks=sum(map(len, sinks)),
            sample=plan.n_sample,
            type_names=plan.type_names,
            type_counts=counts,
            type_similarities={
                layer: GroupCosines.of(views[1].type_directions).by_group.cpu()
                for layer, views in (statistics if len(counts) else {}).items()
            },
            seconds=dict(seconds),
            notes=notes,
        )

    @cached_property
    def by_layer(self) -> dict[Any, tuple[Values, Values]]:
        """For each layer, by its number or name, the values with and without sinks."""
        values: dict[Any, tuple[Values, Values]] = {}
        for reading in self.readings:
            views = values.setdefault(reading.group["layer"], ({}, {}))
            views[VIEWS.index(reading.group["view"])][reading.metric] = reading.value
        return values

    @property
    def layers(self) -> list[Any]:
        """The numbers of the layers, or the names of the modules, in the order of the model."""
        return list(self.by_layer)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the quantities."""
        return tuple(dict.fromkeys(reading.metric for reading in self.readings))

    def values(self, name: str, *, sinks: bool = True) -> list[float | None]:
        """Return the values of a quantity by layer, with or without sinks; None where undefined."""
        names = (*self.metrics, *(quantity.name for quantity in ALL_QUANTITIES))
        if name not in names:
            raise InputError(argument="name", got=name, wanted=f"one of {', '.join(dict.fromkeys(names))}")
        return [self.by_layer[layer][0 if sinks else 1].get(name) for layer in self.layers]

    def adjusted_by_type(self, layer: int = -1) -> dict[str, float]:
        """Return the adjusted self-similarity of each token type, the most frequent type first."""
        layer = self.layers[layer] if isinstance(layer, int) and layer < 0 else layer
        if layer not in self.type_similarities:
            raise InputError(argument="layer", got=layer, wanted=f"one of {', '.join(map(str, self.layers))}")
        if "mean_cosine" not in self.metrics:
            raise InputError("the profile has no mean_cosine to adjust by", hint="add mean_cosine to metrics")
        baseline = self.by_layer[layer][1]["mean_cosine"]
        if baseline is None:
            raise UndefinedError(f"layer {layer} has no mean cosine to adjust by")
        values, counts = self.type_similarities[layer].tolist(), self.type_counts.tolist()
        order = sorted(range(len(values)), key=lambda t: (-counts[t], self.type_names[t]))
        return {self.type_names[t]: values[t] - baseline for t in order if values[t] == values[t]}

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the values by token type as JSON-ready values, not rounded."""
        return {
            "model": self.model,
            "n_tokens": self.n_tokens,
            "n_texts": self.n_texts,
            "n_types": self.n_types,
            "n_dims": self.n_dims,
            "sample": self.sample,
            "sinks": list(self.sinks),
            "n_sinks": self.n_sinks,
            "seconds": dict(self.seconds),
            "notes": list(self.notes),
            "layers": [
                {"layer": layer, WITH_SINKS: first, WITHOUT_SINKS: second}
                for layer, (first, second) in self.by_layer.items()
            ],
        }

    def stored(self) -> dict[str, Any]:
        """Return what `restored` needs: everything except the values by token type."""
        content = {name: value for name, value in self.to_dict().items() if name != "layers"}
        rows = [
            [one.group["layer"], one.group["view"], one.metric, one.value, one.meaning]
            for one in self.readings
        ]
        return content | {"readings": rows}

    @classmethod
    def restored(cls, content: Mapping[str, Any]) -> LayerProfile:
        """Return the profile that `stored` returned the content of, without values by token type."""
        readings = [
            Reading(
                metric, value, meaning=meaning, space=content["model"], group={"layer": layer, "view": view}
            )
            for layer, view, metric, value, meaning in content["readings"]
        ]
        rest: dict[str, Any] = {name: value for name, value in content.items() if name != "readings"}
        rest |= {"sinks": tuple(content["sinks"]), "notes": tuple(content["notes"])}
        none: dict[str, Any] = {"type_names": (), "type_counts": torch.zeros(0), "type_similarities": {}}
        return cls(**rest, **none, readings=Readings(readings))

    @property
    def title(self) -> str:
        """The model and the numbers of tokens, texts and layers in one line."""
        rows = f"{self.n_tokens:,} tokens of {self.n_types:,} types in {self.n_texts:,} texts"
        if not self.n_types:
            rows = f"{self.n_tokens:,} vectors of {self.n_texts:,} items"
        return f"{self.model}: {rows}, {len(self.layers)} layers × {self.n_dims}"

    def speed(self) -> str:
        """Return the tokens per second with and without measuring, and the time on the sample."""
        forward, measures = self.seconds["model"], self.seconds["measures"]
        sample = self.seconds.get("sample", 0.0)
        return (
            f"{self.n_tokens / forward:,.0f} tokens per second in the model alone, "
            f"{self.n_tokens / (forward + measures):,.0f} with sums (+{measures / forward:.0%} time), "
            f"and {sample:.1f} s on the sample of {self.sample:,} tokens"
        )

    def grids(self, *, sinks: bool | None = None) -> Iterable[Grid]:
        """Return a table with a row for each layer and a column for each quantity.

        Where `metrics` was not given to `measure_layers`, the table has the main quantities only.

        Args:
            sinks: whether to count attention sinks; by default a table of each where there are sinks.
        """
        columns = self._shown()
        heads = ("layer", *(one.head for one in columns))
        for view in (True, False) if sinks is None and self.sinks else (sinks is not False,):
            rows = [
                (str(layer), *(shown(values.get(one.name), one.digits) for one in columns))
                for layer in self.layers
                for values in [self.by_layer[layer][0 if view else 1]]
            ]
            yield Grid(VIEWS[0 if view else 1] if self.sinks else "", heads, rows, heads)

    def _shown(self) -> list[Quantity]:
        """Return the columns of the table: main quantities with a value, or all that were asked for."""
        if self.has_default_metrics:
            return [Quantity.named(name) for name in _MAIN if any(v is not None for v in self.values(name))]
        return [Quantity.named(name) for name in self.metrics]

    @property
    def has_default_metrics(self) -> bool:
        """Whether all quantities of `QUANTITIES` were measured, and no other."""
        return self.metrics == tuple(quantity.name for quantity in ALL_QUANTITIES)

    def lines(self) -> list[str]:
        """Return the meaning of each column, the attention sinks, the notes and the speed."""
        lines = [f"{one.title}: {one.meaning}" for one in self._shown()]
        if self.has_default_metrics:
            lines.append(f"All {len(self.metrics)} quantities are in to_pandas() and in JSON.")
        if self.sinks:
            lines.append(f"attention sinks ({self.n_sinks:,} tokens): {'; '.join(self.sinks)}")
        return [*lines, *(f"note: {note}" for note in self.notes), self.speed()]

    def plot(self, metrics: str | Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot quantities by layer on one Axes; see `isoscope.plots.plot_layers`."""
        from isoscope.models.layers.layer_figure import plot_layers

        return plot_layers(self, metrics, ax=ax)

    def figure(self, path: Path | str, *, against: LayerProfile | None = None) -> Path:
        """Write a figure of eight panels, with the curves of a second model where one is given."""
        from isoscope.models.layers.layer_figure import draw_layers

        draw_layers([self] if against is None else [self, against], path)
        return Path(path)
