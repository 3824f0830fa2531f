"""`GeometryTracker`: metrics of a model's layers on a fixed probe, along any training loop."""

from __future__ import annotations

import math
import operator
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from isoscope._version import __version__
from isoscope.errors import InputError, check_seed
from isoscope.labels import as_clusters
from isoscope.models.forward import Layer, unwrapped
from isoscope.models.pooling import TOKEN_POOLINGS
from isoscope.models.untouched import device_of, untouched
from isoscope.tracking.layer_meter import LayerMeter
from isoscope.tracking.layer_states import LayerRows, layer_rows
from isoscope.tracking.probe import Probe
from isoscope.tracking.run_rows import RunRows, as_columns
from isoscope.tracking.trajectory import Trajectory

Row = dict[str, Any]  # seed, step, loss, accuracy, and one value a column
DEFAULT_METRICS = ("isoscore_debiased", "mean_cosine", "effective_rank")
WITHOUT_SINKS, SINK_SHARE = "_without_sinks", "sink_share"  # what columns are called


class GeometryTracker:
    """Follows metrics of chosen layers on a fixed probe, every `every` steps of any training loop.

    Measuring leaves no trace: train and eval modes, random states and gradients are as before, so a
    training run with a tracker has the losses it has without.

    Args:
        probe: texts; a batch of named inputs ({"input_ids": …, "attention_mask": …}); or a tensor with one
            entry an item, which the model is called with.
        tokenizer: of the texts; by default the model's own, where it has one.
        layers: whole numbers for hidden states (0 the embedding layer, −1 the last), names of modules
            ("encoder.2", "head"), or "output". Where a model returns no hidden states, −1 is its output.
        metrics: names or families of the registry.
        every: steps between two measurements.
        contextual: follow adjusted self- and intra-similarity and the mean norm of token states too.
        pooling: None measures token states, padding left out; "mean", "cls", "max" or "lasttoken" makes
            one vector a text of them.
        special: measure the states of special tokens ([CLS], [SEP], <s>) too.
        sinks: follow everything a second time without attention sinks, as `metric_without_sinks`, and the
            share of tokens that are sinks, `sink_share`. Sinks are those of the moment: over ten times as
            long as the median token in any hidden state.
        labels: one label an item of the probe, for metrics that need them; tokens carry their text's.
        stop_below: bounds by metric (or column): where a value falls under its bound in any layer, or has
            none because all points are equal, `should_stop` turns True.
        max_length: the most tokens of a text; longer ones are cut.
        batch_size: items of the probe at a time.
        run: a folder; `trajectory.parquet` in it holds the rows so far at any moment.
        resume: go on from the rows in `run`; else a folder that has some is refused.
        seed: of metrics that sample, and the trajectory's seed.
        device: where metrics are computed; by default where the model is.

    >>> model = nn.Linear(4, 3)
    >>> tracker = GeometryTracker(torch.randn(50, 4), metrics="effective_rank", every=10)
    >>> for step in range(21):
    ...     row = tracker(model, step)  # then: one update
    >>> tracker.trajectory["step"].tolist(), tracker.trajectory.metrics
    ([0, 10, 20], ('effective_rank',))
    """

    def __init__(
        self,
        probe: Any,
        *,
        tokenizer: Any = None,
        layers: Layer | Iterable[Layer] = (-1,),
        metrics: str | Iterable[str] = DEFAULT_METRICS,
        every: int = 100,
        contextual: bool = False,
        pooling: str | None = None,
        special: bool = False,
        sinks: bool = False,
        labels: Any = None,
        stop_below: Mapping[str, float] | None = None,
        max_length: int | None = None,
        batch_size: int | None = None,
        run: str | os.PathLike[str] | None = None,
        resume: bool = False,
        seed: int = 0,
        device: str | torch.device | None = None,
    ) -> None:
        check_seed(seed)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InputError(f"is {every!r}; wanted a whole number of steps, at least 1", argument="every")
        if pooling is not None and pooling not in TOKEN_POOLINGS:
            raise InputError(
                f"is {pooling!r}; wanted None or one of {', '.join(TOKEN_POOLINGS)}", argument="pooling"
            )
        self.every, self.seed, self.pooling, self.sinks = every, seed, pooling, sinks
        self.probe = Probe(
            probe, tokenizer=tokenizer, special=special, max_length=max_length, batch_size=batch_size
        )
        self.layers = _checked_layers(layers)
        self.labels = None if labels is None else as_clusters(labels, n=len(self.probe))
        self._meter = LayerMeter(
            metrics,
            contextual=contextual,
            labels=self.labels,
            has_tokens=self.probe.may_have_tokens and pooling is None,
            seed=seed,
            device=device,
        )
        measured = self._meter.names
        without = (*(f"{name}{WITHOUT_SINKS}" for name in measured), SINK_SHARE) if sinks else ()
        self.metrics = (*measured, *without)
        self.columns = tuple(
            name if len(self.layers) == 1 else f"{name}@{layer}"
            for layer in self.layers
            for name in self.metrics
        )
        self.stop_below = self._bounds(stop_below)
        self._rows = RunRows(self.columns, self._trajectory, seed=seed, folder=run, resume=resume)
        self._about: dict[str, Any] = {}
        self._n_parameters = 0
        self._began: float | None = None
        self._measuring_s = 0.0

    def __call__(
        self, model: Any, step: int, *, loss: Any = math.nan, accuracy: Any = math.nan
    ) -> Row | None:
        """Measure where it is time to, every `every` steps; the row, or None where it is not."""
        if self._began is None:
            self._began = time.perf_counter()
        if _whole(step) % self.every:
            return None
        return self.measure(model, step=step, loss=loss, accuracy=accuracy)

    def measure(self, model: Any, *, step: int, loss: Any = math.nan, accuracy: Any = math.nan) -> Row:
        """Measure now and keep the row; a row of the same step is replaced."""
        row: Row = {
            "seed": self.seed,
            "step": _whole(step),
            "loss": _number(loss, "loss"),
            "accuracy": _number(accuracy, "accuracy"),
        }
        row |= self.read(model, step=row["step"])
        self._rows.add(row)
        return dict(row)

    def read(self, model: Any, *, step: int | None = None) -> dict[str, float]:
        """The value of every column now, NaN where a metric has none; no row is kept."""
        model = unwrapped(model)
        device = device_of(model)
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # what training still has under way is not measuring
        began = time.perf_counter()
        if self._began is None:
            self._began = began
        owner = getattr(model, "__self__", model)  # a method such as model.encode
        with untouched(owner):
            batches = self.probe.batches(model, device)
            by_layer = layer_rows(model, batches, self.layers, pooling=self.pooling, sinks=self.sinks)
            values = [value for layer in self.layers for value in self._values(by_layer[layer], layer, step)]
        self._describe(owner, by_layer)
        self._measuring_s += time.perf_counter() - began
        return dict(zip(self.columns, values, strict=True))

    def _values(self, rows: LayerRows, layer: Layer, step: int | None) -> list[float]:
        """The values of a layer's columns, NaN where there is none."""
        values = [one.number for one in self._meter(rows, layer=layer, step=step)]
        if rows.is_sink is None:
            return values
        share, without = float(rows.is_sink.double().mean()), values
        if share:
            without = [one.number for one in self._meter(rows.without_sinks(), layer=layer, step=step)]
        return [*values, *without, share]

    def note(self, step: int, *, loss: Any = None, accuracy: Any = None) -> None:
        """Add to the row of a step what was known only after it was measured."""
        given = {"loss": loss, "accuracy": accuracy}
        known = {name: _number(value, name) for name, value in given.items() if value is not None}
        self._rows.note(step, known)

    @property
    def steps(self) -> list[int]:
        """The steps measured so far, in order."""
        return [row["step"] for row in self._rows.rows]

    @property
    def trajectory(self) -> Trajectory:
        """The rows so far: seed, step, loss, accuracy, and `metric`, or `metric@layer` for several layers."""
        if not self._rows.rows:
            raise InputError("the tracker has measured nothing yet; call it in the loop, at step 0 to begin")
        return self._trajectory()

    @property
    def should_stop(self) -> bool:
        """Whether a bound of `stop_below` was crossed."""
        return self.stop_reason is not None

    @property
    def stop_reason(self) -> str | None:
        """Which column fell under its bound first, at which step; None while none has."""
        for row in self._rows.rows:
            for column, bound in self.stop_below.items():
                value = row[column]
                if math.isnan(value):
                    return f"{column} has no value after {row['step']:,} steps: the space has collapsed"
                if value < bound:
                    return f"{column} is {value:.4g} after {row['step']:,} steps, under its bound {bound:g}"
        return None

    @property
    def overhead_share(self) -> float:
        """Seconds spent measuring over seconds since the first call; 0 before it."""
        if self._began is None:
            return 0.0
        return self._measuring_s / max(time.perf_counter() - self._began, 1e-9)

    def state_dict(self) -> dict[str, Any]:
        """The rows as plain numbers, for a checkpoint."""
        return {"columns": list(self.columns), "rows": [dict(row) for row in self._rows.rows]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave; the rows there are replaced."""
        self._rows.load(state.get("columns"), state.get("rows"))

    def truncate(self, step: int) -> None:
        """Drop the rows after a step: the run goes on from a checkpoint taken there."""
        self._rows.truncate(step)

    def _trajectory(self) -> Trajectory:
        return Trajectory(
            as_columns(self._rows.rows, self._rows.columns), self._configuration(), self._n_parameters
        )

    def _configuration(self) -> dict[str, Any]:
        return {
            "n_items": len(self.probe),
            "layers": list(self.layers),
            "metrics": list(self.metrics),
            "every": self.every,
            "pooling": self.pooling,
            "stop_below": dict(self.stop_below),
            "notes": list(self.probe.notes),
            "isoscope": __version__,
            "torch": torch.__version__,
            **self._about,
        }

    def _describe(self, model: Any, by_layer: Mapping[Layer, LayerRows]) -> None:
        """What is learnt of model and probe at the first measurement, for the trajectory."""
        if self._about:
            return
        shapes = [list(rows.vectors.shape) for rows in by_layer.values()]
        self._about["model"] = type(model).__name__
        self._about["shapes"] = shapes  # [n, d] of each layer, in their order
        if all(shape == shapes[0] for shape in shapes):
            self._about["n"], self._about["d"] = shapes[0]
        parameters = model.parameters() if isinstance(model, nn.Module) else ()
        self._n_parameters = sum(p.numel() for p in parameters if p.requires_grad)

    def _bounds(self, stop_below: Mapping[str, float] | None) -> dict[str, float]:
        """Bounds by column: those given by metric hold in every layer."""
        bounds: dict[str, float] = {}
        for name, bound in (stop_below or {}).items():
            columns = [column for column in self.columns if name in (column, column.partition("@")[0])]
            if not columns:
                followed = f"{', '.join(self.columns)} {'is' if len(self.columns) == 1 else 'are'}"
                raise InputError(f"stop_below has {name!r}, which is not followed; {followed}")
            if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
                raise InputError(f"stop_below[{name!r}] is {bound!r}; wanted a number")
            bounds |= dict.fromkeys(columns, float(bound))
        return bounds


def _checked_layers(layers: Layer | Iterable[Layer]) -> tuple[Layer, ...]:
    found: Sequence[Layer] = (layers,) if isinstance(layers, int | str) else tuple(layers)
    if not found:
        raise InputError("is empty; wanted at least one, such as -1", argument="layers")
    for layer in found:
        if isinstance(layer, bool) or not isinstance(layer, int | str):
            raise InputError(
                f"has {layer!r}; wanted whole numbers, names of modules, or 'output'", argument="layers"
            )
    if len(set(found)) < len(found):
        raise InputError(f"has a layer twice: {', '.join(map(str, found))}", argument="layers")
    return tuple(found)


def _whole(step: Any) -> int:
    """A step as loops count it: Python's whole numbers, NumPy's, or a tensor of one."""
    try:
        number = -1 if isinstance(step, bool) else operator.index(step)
    except TypeError:
        number = -1
    if number < 0:
        raise InputError(f"step is {step!r}; wanted a whole number of updates, at least 0")
    return number


def _number(value: Any, name: str) -> float:
    """A loss as it comes: a number, or a tensor of one, its graph left alone."""
    if isinstance(value, torch.Tensor | np.ndarray):
        if math.prod(value.shape) != 1:
            raise InputError(
                f"is a tensor of shape {tuple(value.shape)}; wanted a number or a tensor of one, "
                "such as its mean",
                argument=name,
            )
        value = value.item()
    if not hasattr(value, "__float__"):
        raise InputError(f"is {value!r}; wanted a number or a tensor of one", argument=name)
    return float(value)
