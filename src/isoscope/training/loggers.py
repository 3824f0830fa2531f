"""Rows of a run to TensorBoard, Weights & Biases, MLflow, or any function, as they are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from isoscope.errors import InputError
from isoscope.training.recorder import Listener, Row

_Opened = tuple[Listener, Callable[[], object]]  # what hears each row, and what ends it


@contextmanager
def as_listener(
    log: str | Listener | None, configuration: Mapping[str, Any], run: Path | None
) -> Iterator[Listener | None]:
    """What hears each row, closed at the end."""
    if log is None:
        yield None
        return
    if callable(log):
        yield log
        return
    if not isinstance(log, str) or log not in LOGGERS:
        raise InputError(f"log is {log!r}; wanted one of {', '.join(LOGGERS)}, or a function of a row")
    hear, close = LOGGERS[log](configuration, run)
    try:
        yield hear
    finally:
        close()


def _tensorboard(configuration: Mapping[str, Any], run: Path | None) -> _Opened:
    """A writer a seed, in folders beside each other, so that curves of one metric share a chart."""
    writer_of = _module("torch.utils.tensorboard", "tensorboard").SummaryWriter
    folder = (run or Path("runs") / "isoscope") / "tensorboard"
    writers: dict[int, Any] = {}

    def hear(row: Row) -> None:
        seed = row["seed"]
        if seed not in writers:
            writers[seed] = writer_of(log_dir=str(folder / f"seed-{seed}"))
            writers[seed].add_text("configuration", str(dict(configuration)))
        for name, value in _values(row):
            writers[seed].add_scalar(name, value, row["step"])

    def close() -> None:
        for writer in writers.values():
            writer.close()

    return hear, close


def _wandb(configuration: Mapping[str, Any], run: Path | None) -> _Opened:
    """One run; a seed's metrics under `seed-N/`, against a step of their own."""
    module = _module("wandb", "wandb")
    options = {"dir": str(run)} if run else {}
    opened = module.init(project="isoscope", config=dict(configuration), **options)
    opened.define_metric("step")
    opened.define_metric("*", step_metric="step")

    def hear(row: Row) -> None:
        named = {f"seed-{row['seed']}/{name}": value for name, value in _values(row)}
        opened.log({"step": row["step"], **named})

    return hear, opened.finish


def _mlflow(configuration: Mapping[str, Any], run: Path | None) -> _Opened:
    """One run; a seed's metrics under `seed-N/`."""
    module = _module("mlflow", "mlflow")
    module.start_run(run_name=run.name if run else "isoscope")
    module.log_params({name: str(value) for name, value in configuration.items()})

    def hear(row: Row) -> None:
        module.log_metrics(
            {f"seed-{row['seed']}/{name}": value for name, value in _values(row)}, step=row["step"]
        )

    return hear, module.end_run


LOGGERS: dict[str, Callable[[Mapping[str, Any], Path | None], _Opened]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
}


def _values(row: Row) -> list[tuple[str, float]]:
    """What a row says, without its keys and what has no value."""
    return [(name, value) for name, value in row.items() if name not in ("seed", "step") and value == value]


def _module(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            f"log={package!r} needs the package {package}, which is not installed: pip install {package}"
        ) from None
