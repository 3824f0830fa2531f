"""`GeometryTracker`: measure a model's layers on a fixed probe, in any training loop."""

from __future__ import annotations

import math
import operator
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from isoscope._version import __version__
from isoscope.errors import InputError, check_seed
from isoscope.labels import as_clusters
from isoscope.models.forward import Layer
from isoscope.models.inner import unwrapped
from isoscope.models.pooling import TOKEN_POOLINGS
from isoscope.models.untouched import device_of, untouched
from isoscope.printable import counted
from isoscope.tracking.layer_meter import LayerMeter
from isoscope.tracking.layer_states import LayerRows, layer_rows
from isoscope.tracking.probe import Probe
from isoscope.tracking.run_rows import RunRows, as_columns
from isoscope.tracking.trajectory import Trajectory

Row = dict[str, Any]  # seed, step, loss, accuracy, and the value of each column
DEFAULT_METRICS = ("isoscore_debiased", "mean_cosine", "effective_rank")
WITHOUT_SINKS, SINK_SHARE = "_without_sinks", "sink_share"  # in the names of columns


class GeometryTracker:
    """Measures chosen layers on a fixed probe, every `every` steps of a training loop.

    A measurement restores train and eval modes, random states and gradients, so that training with a tracker
    gives the same losses as training without one.

    Args:
        probe: texts; a batch of named inputs ({"input_ids": …, "attention_mask": …}); or a tensor of inputs
            with one entry for each item.
        tokenizer: the tokenizer for texts; by default the model's own, if it has one.
        layers: numbers of hidden states (0 is the embedding layer, −1 the last), names of modules
            ("encoder.2", "head"), or "output". For a model without hidden states, −1 is its output.
        metrics: names or families of metrics.
        every: the number of steps between two measurements.
        contextual: also measure adjusted self- and intra-similarity and the mean norm of token states.
        pooling: None measures token states without padding; "mean", "cls", "max" or "lasttoken" pools them
            into one vector for each text.
        special: also measure the states of special tokens ([CLS], [SEP], <s>).
        sinks: also measure every metric without attention sinks, as `metric_without_sinks`, and the share of
            tokens that are sinks, `sink_share`. A sink has a norm of more than ten times the median in any
            hidden state at this step.
        labels: one label for each item of the probe, for metrics that need them; a token has the label of
            its text.
        stop_below: bounds by metric or column. `should_stop` becomes True if a value falls below its bound
            in any layer, or is undefined because all points are equal.
        max_length: the maximum number of tokens of a text; longer texts are truncated.
        batch_size: items of the probe in a batch.
        run: a folder; its file `trajectory.parquet` always has all rows so far.
        resume: continue from the rows in `run`; otherwise a folder with rows raises an error.
        seed: the seed of metrics that sample, and of the trajectory.
        device: the device to compute metrics on; by default that of the model.

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
            raise InputError(argument="every", got=every, wanted="a whole number of at least 1")
        if pooling is not None and pooling not in TOKEN_POOLINGS:
            wanted = f"None or one of {', '.join(TOKEN_POOLINGS)}"
            raise InputError(argument="pooling", got=pooling, wanted=wanted)
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
        """Measure if the step is a multiple of `every`, and return the row; otherwise return None."""
        if self._began is None:
            self._began = time.perf_counter()
        if _whole(step) % self.every:
            return None
        return self.measure(model, step=step, loss=loss, accuracy=accuracy)

    def measure(self, model: Any, *, step: int, loss: Any = math.nan, accuracy: Any = math.nan) -> Row:
        """Measure now, record the row and return it; it replaces a row of the same step."""
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
        """Measure now without recording a row; return the value of every column, NaN where undefined."""
        model = unwrapped(model)
        device = device_of(model)
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # kernels of the training step do not count as measuring
        began = time.perf_counter()
        if self._began is None:
            self._began = began
        owner = getattr(model, "__self__", model)  # the model of a method such as model.encode
        with untouched(owner):
            batches = self.probe.batches(model, device)
            by_layer = layer_rows(model, batches, self.layers, pooling=self.pooling, sinks=self.sinks)
            values = [value for layer in self.layers for value in self._values(by_layer[layer], layer, step)]
        self._describe(owner, by_layer)
        self._measuring_s += time.perf_counter() - began
        return dict(zip(self.columns, values, strict=True))

    def _values(self, rows: LayerRows, layer: Layer, step: int | None) -> list[float]:
        """Return the values of a layer's columns, NaN where undefined."""
        values = [one.number for one in self._meter(rows, layer=layer, step=step)]
        if rows.is_sink is None:
            return values
        share, without = float(rows.is_sink.double().mean()), values
        if share:
            without = [one.number for one in self._meter(rows.without_sinks(), layer=layer, step=step)]
        return [*values, *without, share]

    def note(self, step: int, *, loss: Any = None, accuracy: Any = None) -> None:
        """Set the loss or accuracy in the row of a step that was measured before."""
        values = {"loss": loss, "accuracy": accuracy}
        self._rows.note(step, {name: _number(v, name) for name, v in values.items() if v is not None})

    @property
    def steps(self) -> list[int]:
        """The steps measured so far, in order."""
        return [row["step"] for row in self._rows.rows]

    @property
    def trajectory(self) -> Trajectory:
        """The rows so far: seed, step, loss, accuracy, and `metric`, or `metric@layer` for several layers."""
        if not self._rows.rows:
            raise InputError("the tracker has no rows yet", hint="call it in the training loop, from step 0")
        return self._trajectory()

    @property
    def should_stop(self) -> bool:
        """Whether a value has fallen below its bound in `stop_below`."""
        return self.stop_reason is not None

    @property
    def stop_reason(self) -> str | None:
        """The first column that fell below its bound, and its step; None while there is none."""
        for row in self._rows.rows:
            for column, bound in self.stop_below.items():
                value = row[column]
                if math.isnan(value):
                    return f"{column} has no value after {row['step']:,} steps: the space has collapsed"
                if value < bound:
                    return f"{column} is {value:.4g} after {row['step']:,} steps, below its bound {bound:g}"
        return None

    @property
    def overhead_share(self) -> float:
        """The share of the time since the first call that was spent measuring; 0 before it."""
        if self._began is None:
            return 0.0
        return self._measuring_s / max(time.perf_counter() - self._began, 1e-9)

    def state_dict(self) -> dict[str, Any]:
        """Return the rows as Python numbers, for a checkpoint."""
        return {"columns": list(self.columns), "rows": [dict(row) for row in self._rows.rows]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace the rows by those of `state_dict`."""
        self._rows.load(state.get("columns"), state.get("rows"))

    def truncate(self, step: int) -> None:
        """Remove the rows after a step, to continue from a checkpoint of that step."""
        self._rows.truncate(step)

    if not TYPE_CHECKING:  # to a type checker, every name would exist

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError; a trainer that looks for a callback's hooks is told how to get one."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name.startswith("on_") or name in ("setup", "state_key"):
                message = (
                    "A GeometryTracker is not a callback. Pass "
                    "isoscope.tracking.geometry_callback(tracker) to a trainer of transformers, or "
                    "isoscope.tracking.lightning_callback(tracker) to one of Lightning."
                )
            elif hasattr(Trajectory, name):
                message += f". Use tracker.trajectory.{name}, after the first measurement."
            raise AttributeError(message)

    def __repr__(self) -> str:
        about = [
            counted(len(self.probe), "item"),
            f"layers {', '.join(map(str, self.layers))}",
            f"every {counted(self.every, 'step')}",
            f"{counted(len(self.steps), 'row')} so far",
        ]
        return f"GeometryTracker({', '.join(about)})"

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
        """Record the model and the shapes of its layers at the first measurement."""
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
        """Return the bounds by column; a bound on a metric applies to every layer."""
        bounds: dict[str, float] = {}
        for name, bound in (stop_below or {}).items():
            columns = [column for column in self.columns if name in (column, column.partition("@")[0])]
            if not columns:
                wanted = f"bounds on {', '.join(self.columns)}"
                raise InputError(argument="stop_below", got=name, wanted=wanted)
            if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
                raise InputError(argument=f"stop_below[{name!r}]", got=bound, wanted="a finite number")
            bounds |= dict.fromkeys(columns, float(bound))
        return bounds


def _checked_layers(layers: Layer | Iterable[Layer]) -> tuple[Layer, ...]:
    chosen: Sequence[Layer] = (layers,) if isinstance(layers, int | str) else tuple(layers)
    if not chosen:
        raise InputError("is empty", argument="layers", wanted="at least one layer, such as -1")
    for layer in chosen:
        if isinstance(layer, bool) or not isinstance(layer, int | str):
            wanted = "whole numbers, names of modules, or 'output'"
            raise InputError(argument="layers", got=layer, wanted=wanted)
    if len(set(chosen)) < len(chosen):
        raise InputError(f"has a layer twice: {', '.join(map(str, chosen))}", argument="layers")
    return tuple(chosen)


def _whole(step: Any) -> int:
    """Return a step as an int: a whole number of Python or NumPy, or a tensor with one element."""
    try:
        number = -1 if isinstance(step, bool) else operator.index(step)
    except TypeError:
        number = -1
    if number < 0:
        hint = "call tracker(model, step)" if isinstance(step, nn.Module) else ()
        raise InputError(argument="step", got=step, wanted="a whole number of at least 0", hint=hint)
    return number


def _number(value: Any, name: str) -> float:
    """Return a number or a tensor with one element as a float."""
    if isinstance(value, torch.Tensor | np.ndarray):
        if math.prod(value.shape) != 1:
            raise InputError(
                f"is a tensor of shape {tuple(value.shape)}",
                argument=name,
                wanted="a number, such as its mean",
            )
        value = value.item()
    if not hasattr(value, "__float__"):
        raise InputError(argument=name, got=value, wanted="a number or a tensor with one element")
    return float(value)
