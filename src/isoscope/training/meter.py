"""`Meter`: compute the metrics of the vectors of every seed at one update."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from isoscope.engine.readings import taken
from isoscope.errors import InputError, NotFiniteError
from isoscope.labels import Labels
from isoscope.metrics.registry import Metric, registered
from isoscope.metrics.silhouette_estimate import estimate_silhouette
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics
from isoscope.training.batched import TOGETHER
from isoscope.training.configuration import Configuration, derived_seed
from isoscope.training.problem import Problem

Values = dict[str, Tensor]  # name of a column to (B,) float64, on any device


class Meter:
    """The metrics of a configuration.

    Metrics that need labels are computed on the items, the inputs of the classifier (concatenated rows for
    pairs), and on a new random sample where there are more items than `sample_above`. All other metrics are
    computed on the table. Hidden layers have one row per item, so both kinds are computed on them.
    """

    def __init__(self, problem: Problem, configuration: Configuration) -> None:
        self.problem = problem
        self.configuration = configuration
        entries = registered()
        self.metrics = [entries[name] for name in configuration.metrics]
        self._labelled = [metric for metric in self.metrics if "labels" in metric.needs]
        self._plain = [metric for metric in self.metrics if "labels" not in metric.needs]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        names: list[str] = []
        for place in ("", *(f"hidden{layer + 1}_" for layer in range(len(self.configuration.hidden)))):
            for metric in self.metrics:
                names.append(place + metric.name)
                if self._estimated(metric):
                    names += [f"{place}{metric.name}_low", f"{place}{metric.name}_high"]
        return tuple(names)

    def __call__(self, table: Tensor, hidden: list[Tensor], *, seeds: list[int], step: int) -> Values:
        """Return the metrics of (B, n, d) tables and (B, m, width) hidden layers after `step` updates."""
        samples = [self._sample(seed, step) for seed in seeds] if self._sampled else None
        values = self._place(table, self.problem.items, self.problem.rows_of, samples, seeds, step)
        for layer, activations in enumerate(hidden):
            own = self._place(activations, _rows, lambda chosen: chosen, samples, seeds, step)
            values |= {f"hidden{layer + 1}_{name}": value for name, value in own.items()}
        return values

    def _place(
        self,
        points: Tensor,
        items: Callable[[Tensor, Tensor | None], Tensor],
        rows_of: Callable[[Tensor], Tensor],
        samples: list[Tensor] | None,
        seeds: list[int],
        step: int,
    ) -> Values:
        """Return all metrics of (B, rows, width) points; `items` returns the points that have labels."""
        clusters = self.problem.clusters
        if samples is None:
            labelled = items(points, None)
            if labelled is points:
                return self._spaces(
                    points, self.metrics, clusters, seeds, step
                )  # both kinds share statistics
            return self._spaces(points, self._plain, None, seeds, step) | self._spaces(
                labelled, self._labelled, clusters, seeds, step
            )
        parts = []
        for own, chosen, seed in zip(points, samples, seeds, strict=True):
            labels = Labels(clusters.codes[chosen], clusters.names).seen()
            part = self._spaces(items(own, chosen)[None], self._labelled, labels, [seed], step)
            if self.configuration.sample_table:
                part |= self._spaces(own[rows_of(chosen)][None], self._plain, None, [seed], step)
            parts.append(part)
        values = _joined(parts)
        if not self.configuration.sample_table:
            values |= self._spaces(points, self._plain, None, seeds, step)
        return values

    def _spaces(
        self, points: Tensor, metrics: list[Metric], labels: Labels | None, seeds: list[int], step: int
    ) -> Values:
        """Return metrics of (B, rows, width) points, computed together on CUDA where possible."""
        values: Values = {}
        rest = []
        for metric in metrics:
            if points.is_cuda and metric.name in TOGETHER and not self._estimated(metric):
                values[metric.name] = TOGETHER[metric.name](points, labels)
            else:
                rest.append(metric)
        if rest:
            pairs = zip(points, seeds, strict=True)
            values |= _joined([self._one(own, rest, labels, seed, step) for own, seed in pairs])
        return values

    def _one(
        self, points: Tensor, metrics: list[Metric], labels: Labels | None, seed: int, step: int
    ) -> Values:
        drawn = int(derived_seed(seed, step, "metrics").generate_state(1)[0])
        try:
            shelf = Statistics(Space(points, labels=labels), seed=drawn)
        except NotFiniteError:
            raise diverged(seed, step) from None
        numbers: dict[str, float] = {}
        for metric in metrics:
            if self._estimated(metric):
                tolerance = self.configuration.silhouette_tolerance
                assert tolerance is not None
                estimate = estimate_silhouette(points, shelf.labels, tolerance=tolerance, seed=drawn)
                numbers[metric.name] = estimate.value
                numbers[f"{metric.name}_low"], numbers[f"{metric.name}_high"] = estimate.interval
            else:
                numbers[metric.name] = taken(metric.name, metric.compute, shelf).number
        return {name: torch.tensor([value], dtype=torch.float64) for name, value in numbers.items()}

    def _estimated(self, metric: Metric) -> bool:
        return metric.name == "silhouette" and self.configuration.silhouette_tolerance is not None

    @property
    def _sampled(self) -> bool:
        above = self.configuration.sample_above
        return above is not None and self.problem.n_items > above

    def _sample(self, seed: int, step: int) -> Tensor:
        """Return the sample of items of this seed and step, for metrics that need labels."""
        rng = np.random.default_rng(derived_seed(seed, step, "sample"))
        chosen = rng.choice(self.problem.n_items, size=self.configuration.sample_above, replace=False)
        return torch.from_numpy(np.sort(chosen)).to(self.problem.table.device)


def _rows(points: Tensor, chosen: Tensor | None) -> Tensor:
    return points if chosen is None else points[chosen]


def diverged(seed: int, step: int) -> InputError:
    """Return the error of a seed whose numbers are no longer finite."""
    return InputError(
        f"training diverged: seed {seed} has NaN or Inf after {step} updates; use a smaller learning_rate"
    )


def _joined(parts: list[Values]) -> Values:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]} if parts else {}
