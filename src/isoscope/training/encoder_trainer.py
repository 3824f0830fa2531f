"""The Trainer of transformers for a `Task`, with checkpoints that are complete or absent.

This module imports transformers: import it only where a run begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from isoscope.errors import NotFiniteError
from isoscope.training.checkpoint import Checkpoints
from isoscope.training.journal import Journal
from isoscope.training.sequences import Batch, EpochOrder

if TYPE_CHECKING:
    from isoscope.training.encoder_run import EncoderRun

TASK_FILE, TRACKER_FILE = "task.safetensors", "tracker.pt"
_STEP = re.compile(r"\b(at|after) (step )?\d")  # in a message that names the step


class EncoderTrainer(Trainer):  # type: ignore[misc]
    """The Trainer of transformers with the batches and losses of a task.

    Args:
        run: the model, its task and the settings.
        journal: the losses so far.
        checkpoints: the run's checkpoints; None without a folder.
        interrupted: a function that returns whether Ctrl-C was pressed.
        scratch: a temporary folder for what transformers writes.
    """

    def __init__(
        self,
        run: EncoderRun,
        journal: Journal,
        checkpoints: Checkpoints | None,
        interrupted: Callable[[], bool],
        scratch: Path,
    ) -> None:
        chosen = run.settings
        arguments = TrainingArguments(
            output_dir=str(scratch),
            max_steps=chosen.steps,
            per_device_train_batch_size=chosen.batch_size,
            learning_rate=chosen.learning_rate,
            lr_scheduler_type="linear" if chosen.decay else "constant_with_warmup",
            warmup_steps=round(chosen.warmup * chosen.steps),
            weight_decay=chosen.weight_decay,
            max_grad_norm=chosen.max_grad_norm or 0.0,
            optim="adamw_torch_fused" if run.device.type == "cuda" else "adamw_torch",
            seed=chosen.seed,
            bf16=chosen.precision == "bf16",
            use_cpu=run.device.type == "cpu",
            save_strategy="no",
            logging_strategy="no",
            logging_nan_inf_filter=False,  # asks the device at every update; the journal asks now and then
            report_to="none",
            disable_tqdm=True,
        )
        arguments._n_gpu = min(arguments.n_gpu, 1)  # several in one process would split a batch's penalty
        super().__init__(model=run.model, args=arguments)
        self.run, self.journal, self.checkpoints, self.interrupted = run, journal, checkpoints, interrupted
        self.order = EpochOrder(
            len(run.task), chosen.batch_size, seed=chosen.seed, drop_last=chosen.drop_last
        )
        self.remove_callback(PrinterCallback)
        self.add_callback(_Watch(self))

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the batches in the order of the epoch, which depends only on the seed."""
        places: Any = range(len(self.run.task))
        return DataLoader(places, batch_sampler=self.order, collate_fn=self._collated)

    def _collated(self, places: list[int]) -> Batch:
        """Return a batch that is copied to the device asynchronously."""
        made = self.run.task.batch(places)
        if self.run.device.type != "cuda":
            return made
        return {
            name: values.pin_memory().to(self.run.device, non_blocking=True) for name, values in made.items()
        }

    def compute_loss(self, model: Any, inputs: Batch, *_: Any, **__: Any) -> Tensor:
        """Return the loss of the task, and add it to the journal."""
        with self.watched(within=True):
            parts = self.run.task.loss(model, inputs)
            self.journal.add(parts)
        return parts["loss"]

    def floating_point_ops(self, inputs: Any) -> int:  # noqa: ARG002
        """Return 0: counting would visit all parameters at every update."""
        return 0

    def load_weights(self, folder: Path) -> None:
        """Load the weights of a checkpoint, without training."""
        self._load_from_checkpoint(str(folder))

    @contextmanager
    def watched(self, *, within: bool = False) -> Iterator[None]:
        """Name the step in a NotFiniteError raised in the block, within an update or after one."""
        try:
            yield
        except NotFiniteError as error:
            step = self.state.global_step
            when = f"at step {step + 1:,}" if within else f"after step {step:,}"
            raise self._diverged(error, when) from error

    def _diverged(self, error: NotFiniteError, when: str) -> NotFiniteError:
        """Return the error of a diverged run; a loss that is still on the device may be the earlier cause."""
        try:
            self.journal.fetch()
        except NotFiniteError as earlier:
            error = earlier
        checkpoint = ""
        if self.checkpoints is not None and (last := self.checkpoints.last_step()) is not None:
            checkpoint = f"; the checkpoint of step {last:,} is in {self.checkpoints.folder}"
        message = error.problem if _STEP.search(error.problem) else f"{error.problem} {when}"
        return NotFiniteError(
            f"{message}: the run is stopped; lower the learning rate or the strength (λ), or clip gradients"
            f"{checkpoint}"
        )

    def checkpoint(self) -> None:
        """Write a checkpoint if all numbers are finite; then raise KeyboardInterrupt after Ctrl-C."""
        if self.checkpoints is None:
            return
        with self.watched():
            self.journal.fetch()
            if not torch.stack([p.detach().isfinite().all() for p in self.model.parameters()]).all():
                raise NotFiniteError("the weights are not finite")
        self.checkpoints.write(self.state.global_step, self._fill)
        if self.interrupted():
            raise KeyboardInterrupt(
                f"interrupted after update {self.state.global_step:,}; resume the run from "
                f"{self.checkpoints.folder}"
            )

    def _fill(self, folder: Path) -> Path:
        from safetensors.torch import save_file

        before, self.args.output_dir = self.args.output_dir, str(folder)
        try:
            self._save_checkpoint(self.model, None)
        finally:
            self.args.output_dir = before
        made = folder / f"checkpoint-{self.state.global_step}"
        (made / "training_args.bin").unlink(missing_ok=True)  # a pickle, which must not be trusted
        self.journal.write(made)
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self.run.task.state().items()}
        save_file(tensors, made / TASK_FILE)
        if self.run.tracker is not None:
            torch.save(self.run.tracker.state_dict(), made / TRACKER_FILE)
        return made


class _Watch(TrainerCallback):  # type: ignore[misc]
    """Measure the geometry, end epochs and write checkpoints between updates."""

    def __init__(self, trainer: EncoderTrainer) -> None:
        self._trainer, self._run, self._journal = trainer, trainer.run, trainer.journal

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        self._run.bar.step("training")
        if state.global_step == 0:
            self._follow(0)
            self._snapshot(0)

    def on_epoch_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        epoch, inside = divmod(state.global_step, self._run.settings.steps_per_epoch)
        self._trainer.order.epoch = epoch
        if not inside:  # a run resumed within an epoch restores its start from the checkpoint
            with self._trainer.watched():
                self._run.task.begin_epoch(self._run.model, self._trainer.order)

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        step, chosen = state.global_step, self._run.settings
        self._run.bar.share(step / chosen.steps)
        self._follow(step)
        self._snapshot(step)
        if self._run.tracker is not None and self._run.tracker.should_stop:
            self._journal.stopped = self._run.tracker.stop_reason
            control.should_training_stop = True
            return
        if step == chosen.steps or step % chosen.steps_per_epoch == 0:
            return  # the end of the epoch follows, and its checkpoint includes the scores
        if (chosen.save_every and step % chosen.save_every == 0) or self._trainer.interrupted():
            self._trainer.checkpoint()

    def on_epoch_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        step, chosen = state.global_step, self._run.settings
        n_epoch = step % chosen.steps_per_epoch or chosen.steps_per_epoch
        with self._trainer.watched():
            loss = self._journal.mean_loss(n_epoch)
            row = {"epoch": step / chosen.steps_per_epoch, "step": step, "loss": loss}
            self._journal.epochs.append(row | self._run.task.end_epoch(self._run.model))
        self._trainer.checkpoint()

    def _snapshot(self, step: int) -> None:
        if step in self._run.snapshots:
            self._run.snapshots[step]()

    def _follow(self, step: int) -> None:
        tracker = self._run.tracker
        if tracker is None or not (step == self._run.settings.steps or step % tracker.every == 0):
            return
        with self._trainer.watched():
            loss = self._journal.mean_loss(1) if step else float("nan")
            tracker.measure(self._run.model, step=step, loss=loss)
