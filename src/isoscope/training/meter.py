"""`Meter`: the metrics of every seed's vectors at one update, and on what each is taken."""

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

Values = dict[str, Tensor]  # a column's name to (B,) float64, on whichever device made it


class Meter:
    """Takes the metrics of a configuration.

    A metric that needs labels is taken on the items, as the classifier sees them (rows side by side for
    pairs), and on a fresh random sample of them where they are more than `sample_above`. Every other
    metric is taken on the table, each vector once. Hidden layers have one row an item, so both kinds are
    taken there.
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
        """Names of what is measured, in order."""
        names: list[str] = []
        for place in ("", *(f"hidden{layer + 1}_" for layer in range(len(self.configuration.hidden)))):
            for metric in self.metrics:
                names.append(place + metric.name)
                if self._estimated(metric):
                    names += [f"{place}{metric.name}_low", f"{place}{metric.name}_high"]
        return tuple(names)

    def __call__(self, table: Tensor, hidden: list[Tensor], *, seeds: list[int], step: int) -> Values:
        """The values of (B, n, d) tables and (B, m, width) hidden layers after `step` updates."""
        samples = [self._sample(seed, step) for seed in seeds] if self._sampled else None
        values = self._place(table, self.problem.items, self.problem.rows_of, samples, seeds, step)
        for layer, activations in enumerate(hidden):
            found = self._place(activations, _rows, _itself, samples, seeds, step)
            values |= {f"hidden{layer + 1}_{name}": value for name, value in found.items()}
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
        """All metrics of (B, rows, width) points, whose `items` are what carries labels."""
        clusters = self.problem.clusters
        if samples is None:
            seen = items(points, None)
            if seen is points:
                return self._spaces(points, self.metrics, clusters, seeds, step)  # one shelf for both kinds
            return self._spaces(points, self._plain, None, seeds, step) | self._spaces(
                seen, self._labelled, clusters, seeds, step
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
        """Metrics of (B, rows, width) points: together on CUDA where that is known, else one by one."""
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
        found: dict[str, float] = {}
        for metric in metrics:
            if self._estimated(metric):
                tolerance = self.configuration.silhouette_tolerance
                assert tolerance is not None
                estimate = estimate_silhouette(points, shelf.labels, tolerance=tolerance, seed=drawn)
                found[metric.name] = estimate.value
                found[f"{metric.name}_low"], found[f"{metric.name}_high"] = estimate.interval
            else:
                found[metric.name] = taken(metric.name, metric.compute, shelf).number
        return {name: torch.tensor([value], dtype=torch.float64) for name, value in found.items()}

    def _estimated(self, metric: Metric) -> bool:
        return metric.name == "silhouette" and self.configuration.silhouette_tolerance is not None

    @property
    def _sampled(self) -> bool:
        above = self.configuration.sample_above
        return above is not None and self.problem.n_items > above

    def _sample(self, seed: int, step: int) -> Tensor:
        """The items label metrics are taken on at this update, drawn anew for each seed and step."""
        rng = np.random.default_rng(derived_seed(seed, step, "sample"))
        chosen = rng.choice(self.problem.n_items, size=self.configuration.sample_above, replace=False)
        return torch.from_numpy(np.sort(chosen)).to(self.problem.table.device)


def _rows(points: Tensor, chosen: Tensor | None) -> Tensor:
    return points if chosen is None else points[chosen]


def _itself(chosen: Tensor) -> Tensor:
    return chosen


def diverged(seed: int, step: int) -> InputError:
    """What to say when the numbers are no numbers any more."""
    return InputError(
        f"training diverged: seed {seed} has NaN or Inf after {step} updates; wanted a smaller learning_rate"
    )


def _joined(parts: list[Values]) -> Values:
    """Values of one seed each as values of all."""
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]} if parts else {}
