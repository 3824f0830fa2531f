"""`LayerMeter`: the metrics of one layer's rows, and which metrics a probe allows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from isoscope.engine.readings import Reading, taken
from isoscope.errors import InputError, NotFiniteError, ShapeError
from isoscope.labels import Labels
from isoscope.metrics.registry import named
from isoscope.models.applicable import applicable
from isoscope.models.forward import Layer
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics
from isoscope.tracking.layer_states import LayerRows

CONTEXTUAL_METRICS = ("adjusted_self_similarity", "adjusted_intra_similarity", "mean_norm")
_WITHOUT_TOKENS = "which are known of token states: pass texts or input_ids as probe, and pooling=None"
_WHY = {
    "labels": "which were not given: pass labels=… with one label an item of the probe",
    "token_types": _WITHOUT_TOKENS,
    "sentences": _WITHOUT_TOKENS,
    "partners": "which a tracker does not know",
    "covariance": "which a tracker does not know",
}


class LayerMeter:
    """Takes metrics of a layer, with what is known of its rows.

    Args:
        metrics: names or families; what a family has that cannot be taken is left out, a name is refused.
        contextual: CONTEXTUAL_METRICS too.
        labels: of the probe's items.
        has_tokens: whether rows are tokens whose types and texts are known.
        seed: of metrics that sample.
        device: where to compute; by default where the rows are.
    """

    def __init__(
        self,
        metrics: str | Iterable[str],
        *,
        contextual: bool,
        labels: Labels | None,
        has_tokens: bool,
        seed: int,
        device: str | torch.device | None,
    ) -> None:
        self._labels, self._seed = labels, seed
        self._device = None if device is None else torch.device(device)
        asked = [*named(metrics), *(CONTEXTUAL_METRICS if contextual else ())]
        known = ({"labels"} if labels else set()) | ({"token_types", "sentences"} if has_tokens else set())
        self._metrics = applicable(asked, known, _WHY)

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics' names, in the registry's order."""
        return tuple(metric.name for metric in self._metrics)

    def __call__(self, rows: LayerRows, *, layer: Layer, step: int | None) -> list[Reading]:
        """Return the readings in order; `step` is for what is said of NaN in the rows."""
        n, d = rows.vectors.shape
        if n < 2 or d < 2:
            raise ShapeError(
                f"layer {layer!r} has {n} vector{'s' * (n != 1)} of {d} dimension{'s' * (d != 1)} on the "
                "probe; wanted at least 2 of each"
            )
        shelf = Statistics(self._space(rows, layer, step), seed=self._seed)
        return [taken(metric.name, metric.compute, shelf) for metric in self._metrics]

    def _space(self, rows: LayerRows, layer: Layer, step: int | None) -> Space:
        """A layer's vectors with what is known of each row."""
        known: dict[str, Any] = {}
        if self._labels is not None:
            known["labels"] = Labels(self._labels.codes[rows.items], self._labels.names)
        if any({"token_types", "sentences"} & metric.needs for metric in self._metrics):
            if rows.ids is None:
                raise InputError(
                    f"layer {layer!r} has one vector an item, and contextual metrics want one a token; "
                    "name a layer of token states, or leave those metrics out"
                )
            known |= {"token_types": _coded(rows.ids), "sentences": _coded(rows.items)}
        vectors = rows.vectors if self._device is None else rows.vectors.to(self._device)
        try:
            return Space(vectors.detach(), **known)
        except NotFiniteError:
            when = "" if step is None else f" after {step:,} steps"
            raise NotFiniteError(
                f"layer {layer!r} has NaN or Inf on the probe{when}: training has diverged; wanted a smaller "
                "learning rate, clipped gradients, or a wider number type"
            ) from None


def _coded(numbers: torch.Tensor) -> Labels:
    names, codes = torch.unique(numbers, return_inverse=True)
    return Labels(codes, tuple(names.tolist()))
