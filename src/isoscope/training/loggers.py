"""Loggers of the rows of a run: TensorBoard, Weights & Biases, MLflow, or any function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from isoscope.errors import InputError, not_installed
from isoscope.training.recorder import Listener, Row


@contextmanager
def as_listener(
    log: str | Listener | None, configuration: Mapping[str, Any], run: Path | None
) -> Iterator[Listener | None]:
    """Yield the function that is called with each row; a logger named by `log` is closed at the end."""
    if log is None or callable(log):
        yield log
        return
    if log not in LOGGERS:
        raise InputError(argument="log", got=log, wanted=f"{', '.join(LOGGERS)}, or a function of a row")
    module, open_logger = LOGGERS[log]
    try:
        package = import_module(module)
    except ImportError:
        raise not_installed("", log, argument="log") from None
    with ExitStack() as closing:
        write = open_logger(package, dict(configuration), run, closing)
        yield lambda row: write(row["seed"], row["step"], _values(row))


def _tensorboard(module: Any, configuration: dict[str, Any], run: Path | None, closing: ExitStack) -> Any:
    """Open one writer per seed, in sibling folders, so that the curves of a metric share a chart."""
    folder = (run or Path("runs") / "isoscope") / "tensorboard"
    writers: dict[int, Any] = {}

    def write(seed: int, step: int, values: dict[str, float]) -> None:
        if seed not in writers:
            writers[seed] = closing.enter_context(module.SummaryWriter(log_dir=str(folder / f"seed-{seed}")))
            writers[seed].add_text("configuration", str(configuration))
        for name, value in values.items():
            writers[seed].add_scalar(name, value, step)

    return write


def _wandb(module: Any, configuration: dict[str, Any], run: Path | None, closing: ExitStack) -> Any:
    place = {"dir": str(run)} if run else {}
    opened = module.init(project="isoscope", config=configuration, **place)
    closing.callback(opened.finish)
    opened.define_metric("step")
    opened.define_metric("*", step_metric="step")
    return lambda seed, step, values: opened.log({"step": step} | _of_seed(seed, values))


def _mlflow(module: Any, configuration: dict[str, Any], run: Path | None, closing: ExitStack) -> Any:
    module.start_run(run_name=run.name if run else "isoscope")
    closing.callback(module.end_run)
    module.log_params({name: str(value) for name, value in configuration.items()})
    return lambda seed, step, values: module.log_metrics(_of_seed(seed, values), step=step)


LOGGERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "tensorboard": ("torch.utils.tensorboard", _tensorboard),
    "wandb": ("wandb", _wandb),
    "mlflow": ("mlflow", _mlflow),
}


def _values(row: Row) -> dict[str, float]:
    """Return the defined values of a row, without seed and step."""
    return {name: value for name, value in row.items() if name not in ("seed", "step") and value == value}


def _of_seed(seed: int, values: dict[str, float]) -> dict[str, float]:
    return {f"seed-{seed}/{name}": value for name, value in values.items()}
