"""Callbacks that use a tracker in transformers, sentence-transformers and Lightning.

Each callback is created by a function, because its base class is an optional import.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch

from isoscope.errors import InputError, not_installed
from isoscope.tracking.tracker import GeometryTracker, Row

_LOG = logging.getLogger("isoscope")


def geometry_callback(
    tracker: GeometryTracker, *, log: Callable[[dict[str, float]], object] | None = None
) -> Any:
    """Return a `TrainerCallback` for transformers.

    It measures at the start, every `tracker.every` steps and at the end. Values are added to the trainer's
    history as `geometry/metric`, or `geometry/metric/layer` for several layers. To send them to the trainer's
    loggers (TensorBoard, Weights & Biases, …) as well, pass the trainer's own `log`. If a value falls below
    its bound in `stop_below`, here or in a `geometry_evaluator` of the same tracker, training stops. A run
    that continues from a checkpoint removes the rows after it. The loss of a row is the loss that the trainer
    logs at that step, or NaN.

    Args:
        tracker: the tracker.
        log: `trainer.log`; without it, values are added to the history only.

    >>> trainer.add_callback(geometry_callback(tracker, log=trainer.log))  # doctest: +SKIP
    """
    transformers = _needed("transformers", "text")

    class GeometryCallback(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        """Measures a model while the Trainer of transformers trains it."""

        def on_train_begin(self, _args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            tracker.truncate(state.global_step)
            self._measure(state, control, kwargs["model"])

        def on_step_end(self, _args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self._measure(state, control, kwargs["model"], now=state.global_step >= state.max_steps)

        def on_log(self, _args: Any, state: Any, _control: Any, **kwargs: Any) -> None:
            loss = (kwargs.get("logs") or {}).get("loss")
            if loss is not None:
                tracker.note(state.global_step, loss=loss)

        def on_evaluate(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
            self._check_stop(control)

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if not args.load_best_model_at_end:  # otherwise the model is that of another step
                self._measure(state, control, kwargs["model"], now=True)

        def _measure(self, state: Any, control: Any, model: Any, *, now: bool = False) -> None:
            step = state.global_step
            if step in tracker.steps or not (now or step % tracker.every == 0):
                return
            values = logged(tracker.measure(model, step=step))
            if log is None:
                state.log_history.append({**values, "epoch": state.epoch, "step": step})
            else:
                should_log = control.should_log
                log(values)
                control.should_log = should_log  # `log` resets it, but the trainer has yet to log this step
            self._check_stop(control)

        def _check_stop(self, control: Any) -> None:
            if _stops(tracker):
                control.should_training_stop = True

    return GeometryCallback()


def geometry_evaluator(tracker: GeometryTracker, *, name: str = "geometry") -> Any:
    """Return an evaluator for sentence-transformers.

    It measures whenever the trainer evaluates; `tracker.every` is not used. It returns the values by name,
    such as `geometry_effective_rank`, which the trainer logs with the prefix `eval_`. Undefined values are
    left out. During training the tracker records a row; without a step, the evaluator only measures. An
    evaluator cannot stop its trainer: to use `stop_below`, also add `geometry_callback(tracker)` to the
    trainer's callbacks.

    >>> trainer = SentenceTransformerTrainer(
    ...     model, arguments, train_dataset=pairs, loss=loss, evaluator=geometry_evaluator(tracker)
    ... )  # doctest: +SKIP
    """
    base = _needed("sentence_transformers.base.evaluation", "text")

    class GeometryEvaluator(base.BaseEvaluator):  # type: ignore[misc, name-defined]
        """Measures a sentence-transformers model when it is evaluated."""

        def __init__(self) -> None:
            super().__init__()
            self.name = name
            self.primary_metric = f"{name}_{tracker.columns[0]}"

        def __call__(
            self,
            model: Any,
            output_path: str | None = None,  # noqa: ARG002 - the interface's
            epoch: float = -1,  # noqa: ARG002
            steps: int = -1,
        ) -> dict[str, float]:
            row: Mapping[str, Any] = tracker.read(model) if steps < 0 else tracker.measure(model, step=steps)
            return {f"{name}_{key}": row[key] for key in tracker.columns if not math.isnan(row[key])}

    return GeometryEvaluator()


def lightning_callback(tracker: GeometryTracker, *, module: str | None = None) -> Any:
    """Return a `Callback` for Lightning.

    It measures at the start, every `tracker.every` steps and at the end. Values are sent to the trainer's
    loggers and added to `trainer.callback_metrics` as `geometry/metric`, or `geometry/metric/layer` for
    several layers. If a value falls below its bound in `stop_below`, training stops. The rows are saved in
    Lightning's checkpoints.

    Args:
        tracker: the tracker.
        module: the name of the submodule to measure, such as "encoder"; by default the LightningModule.

    >>> trainer = lightning.Trainer(callbacks=[lightning_callback(tracker)])  # doctest: +SKIP
    """
    pytorch = _lightning()

    class GeometryCallback(pytorch.Callback):  # type: ignore[misc, name-defined]
        """Measures a model while the Trainer of Lightning trains it."""

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            tracker.truncate(trainer.global_step)
            self._measure(trainer, pl_module)

        def on_train_batch_end(
            self, trainer: Any, pl_module: Any, outputs: Any, _batch: Any, _index: int
        ) -> None:
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            self._measure(trainer, pl_module, loss=math.nan if loss is None else loss)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            self._measure(trainer, pl_module, now=True)

        def state_dict(self) -> dict[str, Any]:
            return tracker.state_dict()

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            tracker.load_state_dict(state_dict)

        def _measure(self, trainer: Any, pl_module: Any, *, loss: Any = math.nan, now: bool = False) -> None:
            step = trainer.global_step  # does not change while gradients are accumulated
            if step in tracker.steps or not (now or step % tracker.every == 0):
                return
            model = pl_module if module is None else _part(pl_module, module)
            values = logged(tracker.measure(model, step=step, loss=loss))
            trainer.callback_metrics.update({name: torch.tensor(value) for name, value in values.items()})
            for logger in trainer.loggers:
                logger.log_metrics(values, step=step)
            stops = _stops(tracker)
            trainer.should_stop |= trainer.strategy.reduce_boolean_decision(stops, all=False)

    return GeometryCallback()


def logged(row: Row) -> dict[str, float]:
    """Return the defined values of a row's metrics, under names that every logger accepts.

    >>> logged({"seed": 0, "step": 2, "loss": 0.5, "accuracy": 1.0, "lid@0": 7.5, "lid@-1": float("nan")})
    {'geometry/lid/0': 7.5}
    """
    keys = ("seed", "step", "loss", "accuracy")
    return {
        f"geometry/{name.replace('@', '/')}": value
        for name, value in row.items()
        if name not in keys and not math.isnan(value)
    }


def _stops(tracker: GeometryTracker) -> bool:
    """Return whether training should stop, and log the reason."""
    if tracker.should_stop:
        _LOG.warning("training is stopped: %s", tracker.stop_reason)
    return tracker.should_stop


def _part(model: Any, name: str) -> Any:
    try:
        return model.get_submodule(name)
    except AttributeError:
        names = ", ".join(child for child, _ in model.named_children())
        raise InputError(argument="module", got=name, wanted=f"a submodule, such as {names}") from None


def _needed(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise not_installed("This callback", package.replace("_", "-"), extra=extra) from None


def _lightning() -> Any:
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise not_installed("This callback", "lightning")
