"""Training of a transformer, with checkpoints and a geometry tracker, by the trainer of transformers.

`finetune`, `contrast` and `train_masked_lm` share it. A `Task` defines the batches and their loss.
"""

from __future__ import annotations

import copy
import importlib.util
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import InputError, check_choice, check_positive, check_seed, check_whole, not_installed
from isoscope.io.atomic import scratch_folder
from isoscope.io.files import reading
from isoscope.io.run_folder import RunFolder
from isoscope.models.language_models import best_device, quiet_loading, token_limit
from isoscope.models.untouched import own_randomness
from isoscope.progress import Bar
from isoscope.tracking.trajectory import Trajectory
from isoscope.training.checkpoint import Checkpoints
from isoscope.training.encoder_result import Trained, finished, keep, versions
from isoscope.training.interrupts import deferred_interrupt
from isoscope.training.journal import Journal
from isoscope.training.sequences import Batch, EpochOrder

R = TypeVar("R", bound=Trained)
PRECISIONS = ("float32", "bf16")
SNAPSHOTS = "snapshots"  # the folder of models that are saved during a run


class Task:
    """The batches of a training and their loss, with hooks at the start and the end of an epoch."""

    def __len__(self) -> int:
        """Return the number of items in an epoch."""
        raise NotImplementedError

    def batch(self, places: Sequence[int]) -> Batch:
        """Return some items, padded, on the CPU."""
        raise NotImplementedError

    def loss(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        """Return the loss of a batch under "loss", and the parts it is made of."""
        raise NotImplementedError

    def begin_epoch(self, model: Any, order: EpochOrder) -> None:
        """Prepare the first update of an epoch; draw nothing at random."""

    def end_epoch(self, model: Any) -> dict[str, float]:  # noqa: ARG002 - not every task has scores
        """Return the scores at the end of an epoch; draw nothing at random."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """Return the tensors of the task that a checkpoint must hold."""
        return {}

    def load_state(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore the tensors of a checkpoint."""


@dataclass(frozen=True)
class EncoderSettings:
    """The settings of a training; `finetune` and `contrast` describe each."""

    steps: int
    steps_per_epoch: int
    batch_size: int
    learning_rate: float
    seed: int
    warmup: float = 0.0
    decay: bool = False
    weight_decay: float = 0.0
    max_grad_norm: float | None = 1.0
    precision: str = "float32"
    save_every: int | None = None
    drop_last: bool = False

    def __post_init__(self) -> None:
        check_whole("steps", self.steps)
        if check_whole("batch_size", self.batch_size) < 2:
            raise InputError(
                argument="batch_size",
                got=1,
                wanted="at least 2",
                hint="a single item has nothing to contrast with",
            )
        if self.save_every is not None:
            check_whole("save_every", self.save_every)
        check_seed(self.seed)
        check_positive("learning_rate", self.learning_rate)
        check_positive("weight_decay", self.weight_decay, or_zero=True)
        if not (isinstance(self.warmup, int | float) and 0 <= self.warmup < 1):
            raise InputError(
                argument="warmup", got=self.warmup, wanted="a share of the updates from 0 up to 1"
            )
        if self.max_grad_norm is not None:
            check_positive("max_grad_norm", self.max_grad_norm)
        check_choice("precision", self.precision, PRECISIONS)


@dataclass(eq=False)
class EncoderRun:
    """A model, its task and everything else that one run needs."""

    model: Any
    task: Task
    settings: EncoderSettings
    folder: RunFolder | None
    tracker: Any
    bar: Bar
    device: torch.device
    snapshots: Mapping[int, Callable[[], object]] = field(default_factory=dict)

    def train(self) -> Journal:
        """Train to the end, from the latest checkpoint. With a folder, Ctrl-C saves a checkpoint first."""
        checkpoints = None if self.folder is None else Checkpoints(self.folder)
        latest = None if checkpoints is None else checkpoints.latest()
        journal = Journal() if latest is None else self._restore(latest[1])
        with (
            deferred_interrupt(checkpoints is not None) as interrupted,
            scratch_folder(None if self.folder is None else self.folder.path) as scratch,
            own_randomness(),
            quiet_loading(),
        ):
            from isoscope.training.encoder_trainer import EncoderTrainer

            trainer = EncoderTrainer(self, journal, checkpoints, interrupted, scratch)
            if latest is not None and (latest[0] >= self.settings.steps or journal.stopped):
                trainer.load_weights(latest[1])
            else:
                trainer.train(resume_from_checkpoint=None if latest is None else str(latest[1]))
        self.model.eval()
        return journal

    def _restore(self, folder: Path) -> Journal:
        """Restore task and tracker from a checkpoint, and return its journal."""
        from safetensors.torch import load_file

        from isoscope.training.encoder_trainer import TASK_FILE, TRACKER_FILE

        with reading(folder):
            journal = Journal.read(folder)
            self.task.load_state(load_file(folder / TASK_FILE), self.device)
            if self.tracker is not None:
                self.tracker.load_state_dict(torch.load(folder / TRACKER_FILE, weights_only=True))
        return journal

    def trajectory(self, journal: Journal, about: Mapping[str, Any]) -> Trajectory:
        """Return the tracker's rows, or one row per epoch where there is no tracker."""
        n_parameters = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        if self.tracker is not None:
            return Trajectory(self.tracker.trajectory.columns, about, n_parameters)
        n, names = len(journal.epochs), dict.fromkeys(("step", "loss", *(journal.epochs or [{}])[0]))
        columns = {"seed": np.full(n, self.settings.seed), "accuracy": np.full(n, np.nan)}
        columns |= {name: np.array([row[name] for row in journal.epochs]) for name in names}
        return Trajectory(columns, about, n_parameters)


def train_encoder(
    result: type[R],
    settings: EncoderSettings,
    about: Mapping[str, Any],
    load: Callable[[], tuple[Any, Task]],
    *,
    tokenizer: Callable[[], Any],
    save: Callable[[Path, Any, Any], object] | None = None,
    measure: Callable[[Any, Any], dict[str, Any]] | None = None,
    tracker: Any = None,
    run: str | os.PathLike[str] | None,
    resume: bool,
    device: torch.device,
    progress: bool | None,
    snapshots: Iterable[int] = (),
) -> R:
    """Train a model, resume its run, or return the result of a finished run.

    Args:
        result: the class of the result.
        settings: the settings of the training.
        about: everything else that the run depends on, for its configuration.
        load: a function that returns the model on its device, and the task.
        tokenizer: a function that returns the tokenizer to save with the model, unchanged by any batch.
        save: a function that writes model and tokenizer to a folder; by default as transformers does.
        measure: a function of the trained model and its task that returns further fields of the result.
        tracker: a geometry tracker, or None.
        run, resume, progress: the arguments of the caller.
        device: the device to train on.
        snapshots: updates after which the model is saved to a folder of its own, `run/snapshots/step-N`.
    """
    about = asdict(settings) | {"kind": result.kind, **about, "device": str(device), **versions()}
    with RunFolder.open(run, about, resume=resume) as folder:
        if folder is not None and finished(folder):
            return result.load(folder.path)
        model, task = load()
        with Bar(show=progress) as bar:
            write = save or save_pretrained
            saved = {} if folder is None else {
                step: partial(write, folder.path / SNAPSHOTS / f"step-{step}", model, tokenizer())
                for step in snapshots
            }  # fmt: skip
            one = EncoderRun(model, task, settings, folder, tracker, bar, device, saved)
            journal = one.train()
            bar.step("measuring")
            measured = {} if measure is None else measure(model, task)
        values = {
            "losses": journal.losses, "epochs": journal.epochs, "configuration": about,
            "stopped": journal.stopped, **measured,
        }  # fmt: skip
        trajectory, reader = one.trajectory(journal, about), tokenizer()
        if folder is not None:
            keep(folder, values, trajectory, lambda place: write(place, model, reader))
        path = None if folder is None else folder.path
        return result.of(values, trajectory, folder=path, model=model, tokenizer=reader)


def save_pretrained(place: Path, model: Any, tokenizer: Any) -> None:
    """Write a folder that transformers can load."""
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)


def training_device(device: str | torch.device | None) -> torch.device:
    """Return the device to train on: the CPU, or the first visible CUDA device; refuse others."""
    chosen = best_device(device)
    if chosen.type not in ("cpu", "cuda") or (chosen.type == "cuda" and not torch.cuda.is_available()):
        raise InputError(argument="device", got=str(device), wanted="'cpu', or 'cuda' where there is one")
    if chosen.index:
        raise InputError(
            argument="device",
            got=str(device),
            wanted="the first CUDA device",
            hint=f"set CUDA_VISIBLE_DEVICES={chosen.index} and pass 'cuda'",
        )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError(
            "training runs in one process, but WORLD_SIZE is greater than 1; start it without torchrun"
        )
    return chosen


def one_tracker(tracker: Any, probe: Any, tokenizer: Any, **options: Any) -> Any:
    """Return the caller's tracker, or a new one of the probe; None where there is neither."""
    from isoscope.tracking.tracker import GeometryTracker

    if probe is None:
        return tracker
    if tracker is not None:
        raise InputError("probe and tracker exclude each other: a tracker has its own probe")
    return GeometryTracker(list(probe), tokenizer=tokenizer, **options)


def limit_of(model: Any, tokenizer: Any, max_length: int) -> int:
    """Return the largest number of tokens in a text: `max_length`, or less where the model takes less."""
    own = token_limit(tokenizer, model.config.get_text_config())
    return min(max_length, own or max_length)


def unquantized(model: Any) -> Any:
    """Return an unquantised copy of a model that was loaded from a GGUF file.

    Its weights are already unpacked, but its configuration says "quantised", which the trainer refuses.
    """
    config = copy.deepcopy(model.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with own_randomness():
        plain = type(model)(config)
    plain.load_state_dict(model.state_dict())
    return plain.float().eval()


def need_trainer(*more: str) -> None:
    """Raise InputError unless transformers, accelerate and the given modules are installed."""
    wanted = ("transformers", "accelerate", *more)
    missing = [name.replace("_", "-") for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        raise not_installed("Training a model", *missing, extra="training")
