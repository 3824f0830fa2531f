"""`LayerProfile`: what was found in each layer of a model, to print, to draw, to compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from isoscope.engine.readings import Readings, View
from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.sinks import Sinks
from isoscope.models.language_models import LanguageModel
from isoscope.models.layers.plan import LayerPlan
from isoscope.models.layers.quantities import ALL_QUANTITIES, LayerStatistics, Quantity
from isoscope.statistics.group_cosines import GroupCosines
from isoscope.tables import Grid, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WITH_SINKS, WITHOUT_SINKS = VIEWS = ("all tokens", "without sinks")
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
    """Every quantity of every layer, with attention sinks and without them.

    Attributes:
        model: its name.
        n_tokens, n_texts, n_types: what was measured.
        n_dims: dimensions of a state.
        readings: every quantity by `layer` and `view`, all tokens or without sinks.
        sinks: what the attention sinks are, in words; empty where there are none.
        n_sinks: how many tokens are sinks.
        sample: how many tokens clusters, local dimension and informativity are taken on.
        type_names, type_counts: the token types, and how often each occurs.
        type_similarities: by layer, (T,) the self-similarity of each type, without sinks; NaN where it
            occurs once.
        seconds: in the model, in the measures over all tokens, in those on the sample.
        notes: what a user should know.
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
    type_similarities: Mapping[int, Tensor]
    seconds: Mapping[str, float]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        model: LanguageModel,
        plan: LayerPlan,
        sinks: Sinks,
        readings: Readings,
        statistics: Mapping[int, tuple[LayerStatistics, LayerStatistics]],
        seconds: Mapping[str, float],
        notes: tuple[str, ...],
    ) -> LayerProfile:
        """From a run's parts."""
        counts = plan.types.counts
        if not bool((counts > 1).any()):
            notes = (*notes, "no token is seen twice: self-similarity has no value")
        return cls(
            model=model.name,
            n_tokens=plan.n_counted,
            n_texts=len(plan.tokenized.lengths),
            n_types=int((counts > 0).sum()),
            n_dims=model.n_dims,
            readings=readings,
            sinks=sinks.names,
            n_sinks=len(sinks),
            sample=len(plan.sample),
            type_names=plan.tokenized.rows.types.names,
            type_counts=counts,
            type_similarities={
                layer: GroupCosines.of(views[1].type_directions).by_group.cpu()
                for layer, views in statistics.items()
            },
            seconds=dict(seconds),
            notes=notes,
        )

    @cached_property
    def by_layer(self) -> dict[int, tuple[Values, Values]]:
        """For each layer, the values of all tokens and of all but the sinks."""
        found: dict[int, tuple[Values, Values]] = {}
        for reading in self.readings:
            views = found.setdefault(reading.group["layer"], ({}, {}))
            views[VIEWS.index(reading.group["view"])][reading.metric] = reading.value
        return found

    @property
    def layers(self) -> list[int]:
        """The layers measured."""
        return sorted(self.by_layer)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the quantities measured."""
        return tuple(dict.fromkeys(reading.metric for reading in self.readings))

    def values(self, name: str, *, sinks: bool = True) -> list[float | None]:
        """One quantity, layer by layer, with the sinks or without them."""
        names = (*self.metrics, *(quantity.name for quantity in ALL_QUANTITIES))
        if name not in names:
            raise InputError(f"quantity {name!r} is not known; there are {', '.join(dict.fromkeys(names))}")
        return [self.by_layer[layer][0 if sinks else 1].get(name) for layer in self.layers]

    def adjusted_by_type(self, layer: int = -1) -> dict[str, float]:
        """The self-similarity of each token type less the anisotropy, the most frequent type first."""
        layer = self.layers[layer] if layer < 0 else layer
        if layer not in self.type_similarities:
            raise InputError(f"layer {layer} was not measured; there are {', '.join(map(str, self.layers))}")
        if "mean_cosine" not in self.metrics:
            raise InputError("metrics leave out mean_cosine, which self-similarities are adjusted by; add it")
        baseline = self.by_layer[layer][1]["mean_cosine"]
        if baseline is None:
            raise UndefinedError(f"layer {layer} has no mean cosine to adjust by")
        values, counts = self.type_similarities[layer].tolist(), self.type_counts.tolist()
        order = sorted(range(len(values)), key=lambda t: (-counts[t], self.type_names[t]))
        return {self.type_names[t]: values[t] - baseline for t in order if values[t] == values[t]}

    def to_dict(self) -> dict[str, Any]:
        """Everything but the figures by type, unrounded, JSON-ready."""
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
                for layer, (first, second) in sorted(self.by_layer.items())
            ],
        }

    @property
    def title(self) -> str:
        """What was measured, in one line."""
        return (
            f"{self.model}: {self.n_tokens:,} tokens of {self.n_types:,} types in "
            f"{self.n_texts:,} texts, {len(self.layers)} layers × {self.n_dims}"
        )

    def speed(self) -> str:
        """Tokens a second, beside those of the model alone."""
        forward, measures = self.seconds["model"], self.seconds["measures"]
        sample = self.seconds.get("sample", 0.0)
        return (
            f"{self.n_tokens / forward:,.0f} tokens a second in the model; measured, "
            f"{self.n_tokens / (forward + measures):,.0f} (+{measures / forward:.0%}), "
            f"and {sample:.1f} s on the sample of {self.sample:,}"
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

    def plot(self, metrics: str | Sequence[str] = "mean_cosine", *, ax: Axes | None = None) -> Axes:
        """Plot quantities by layer on one Axes; see `isoscope.plots.plot_layers`."""
        from isoscope.models.layers.layer_figure import plot_layers

        return plot_layers(self, metrics, ax=ax)

    def figure(self, path: Path | str, *, against: LayerProfile | None = None) -> Path:
        """Write a figure of eight panels, with the curves of a second model where one is given."""
        from isoscope.models.layers.layer_figure import draw_layers

        draw_layers([self] if against is None else [self, against], path)
        return Path(path)
