"""`LayerMeter`: compute metrics on the vectors of a layer."""

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
_WITHOUT_TOKENS = "which only token states have: pass texts or input_ids as probe, and pooling=None"
_WHY = {
    "labels": "which were not given: pass labels=… with one label for each item of the probe",
    "token_types": _WITHOUT_TOKENS,
    "sentences": _WITHOUT_TOKENS,
    "partners": "which a tracker does not have",
    "covariance": "which a tracker does not have",
}


class LayerMeter:
    """A function from the vectors of a layer to the values of metrics.

    Args:
        metrics: names or families; metrics of a family that cannot be computed are left out.
        contextual: also compute CONTEXTUAL_METRICS.
        labels: the labels of the probe's items.
        has_tokens: whether the vectors are of tokens whose types and texts are known.
        seed: the seed of metrics that sample.
        device: the device to compute on; by default that of the vectors.
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
        names = [*named(metrics), *(CONTEXTUAL_METRICS if contextual else ())]
        known = ({"labels"} if labels else set()) | ({"token_types", "sentences"} if has_tokens else set())
        self._metrics = applicable(names, known, _WHY)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the metrics, in the registry's order."""
        return tuple(metric.name for metric in self._metrics)

    def __call__(self, rows: LayerRows, *, layer: Layer, step: int | None) -> list[Reading]:
        """Return the readings, in the order of `names`; `step` is for the error about NaN."""
        n, d = rows.vectors.shape
        if n < 2 or d < 2:
            raise ShapeError(
                f"layer {layer!r} has {n} vector{'s' * (n != 1)} of {d} dimension{'s' * (d != 1)}",
                wanted="at least 2 of each",
            )
        shelf = Statistics(self._space(rows, layer, step), seed=self._seed)
        return [taken(metric.name, metric.compute, shelf) for metric in self._metrics]

    def _space(self, rows: LayerRows, layer: Layer, step: int | None) -> Space:
        """Return a layer's vectors with labels, token types and sentences."""
        known: dict[str, Any] = {}
        if self._labels is not None:
            known["labels"] = Labels(self._labels.codes[rows.items], self._labels.names)
        if any({"token_types", "sentences"} & metric.needs for metric in self._metrics):
            if rows.ids is None:
                raise InputError(
                    f"layer {layer!r} has one vector an item, and contextual metrics need one a token",
                    hint=["name a layer of token states", "leave these metrics out"],
                )
            known |= {"token_types": _coded(rows.ids), "sentences": _coded(rows.items)}
        vectors = rows.vectors if self._device is None else rows.vectors.to(self._device)
        try:
            return Space(vectors.detach(), **known)
        except NotFiniteError:
            when = "" if step is None else f" after {step:,} steps"
            raise NotFiniteError(
                f"layer {layer!r} has NaN or infinity on the probe{when}: training has diverged",
                hint=["lower the learning rate", "clip gradients", "use a wider floating-point type"],
            ) from None


def _coded(numbers: torch.Tensor) -> Labels:
    names, codes = torch.unique(numbers, return_inverse=True)
    return Labels(codes, tuple(names.tolist()))
