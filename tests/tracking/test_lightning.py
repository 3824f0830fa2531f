"""The tracker inside Lightning's trainer."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises
from torch import Tensor, nn

import isoscope as iso
from isoscope.tracking.tracker import GeometryTracker

lightning = pytest.importorskip("lightning.pytorch", reason="needs lightning")

METRICS = ("mean_cosine", "effective_rank")
PROBE = torch.randn(30, 6, generator=torch.Generator().manual_seed(2))


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 4))
        self.seen: list[float] = []

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)

    def training_step(self, batch: list[Tensor], _index: int) -> Tensor:
        loss = (self(batch[0]) - 1).square().mean()
        self.seen.append(loss.item())
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=0.01)


class Heard(lightning.loggers.Logger):
    """A logger that keeps what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[int, dict[str, float]]] = []

    name, version = "heard", 0

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self.heard.append((step or 0, metrics))

    def log_hyperparams(self, *_: Any, **__: Any) -> None: ...


def fit(
    tracker: GeometryTracker | None, *, module: str | None = None, path: Any = None, **options: Any
) -> Any:
    """Eight steps, four batches an epoch; the trainer and the module."""
    data = torch.randn(32, 6, generator=torch.Generator().manual_seed(1))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), batch_size=8)
    own = [] if tracker is None else [iso.tracking.lightning_callback(tracker, module=module)]
    settings: dict[str, Any] = {
        "max_steps": 8,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "accelerator": "cpu",
    }
    model = Regression()
    torch.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(**(settings | {"callbacks": own} | options))
        trainer.fit(model, loader, ckpt_path=path)
    return trainer, model


def test_lightning_logs_the_geometry_and_its_losses_stay() -> None:
    _, plain = fit(None)
    logger = Heard()
    tracker = GeometryTracker(PROBE, metrics=METRICS, every=3)
    trainer, watched = fit(tracker, logger=logger)
    assert watched.seen == plain.seen
    assert tracker.steps == [0, 3, 6, 8]
    heard = [(step, row) for step, row in logger.heard if "geometry/mean_cosine" in row]
    assert [step for step, _ in heard] == tracker.steps
    column = tracker.trajectory["mean_cosine"]
    assert [row["geometry/mean_cosine"] for _, row in heard] == column.tolist()
    assert float(trainer.callback_metrics["geometry/mean_cosine"]) == pytest.approx(column[-1])
    np.testing.assert_allclose(tracker.trajectory["loss"][1:3], [plain.seen[2], plain.seen[5]])


def test_lightning_measures_once_an_update_and_a_part_of_the_module() -> None:
    tracker = GeometryTracker(PROBE, metrics=METRICS, every=1, layers="0")
    _, model = fit(tracker, module="encoder", max_steps=2, accumulate_grad_batches=2)
    assert tracker.steps == [0, 1, 2]
    wanted = iso.mean_cosine(model.encoder[0](PROBE).detach())
    assert tracker.trajectory["mean_cosine"][-1] == pytest.approx(wanted, rel=1e-5)
    with raises(iso.InputError, argument="module", got="decoder", wanted="encoder"):
        fit(GeometryTracker(PROBE), module="decoder")


def test_lightning_stops_on_collapse() -> None:
    tracker = GeometryTracker(PROBE, metrics=METRICS, every=2, stop_below={"effective_rank": 1e3})
    trainer, _ = fit(tracker, max_steps=100)
    assert trainer.global_step < 100
    assert tracker.stop_reason is not None


def test_lightning_carries_the_rows_in_its_checkpoints(tmp_path: Path) -> None:
    whole = GeometryTracker(PROBE, metrics=METRICS, every=2)
    fit(whole)
    stopped, _ = fit(GeometryTracker(PROBE, metrics=METRICS, every=2), max_steps=4)
    stopped.save_checkpoint(tmp_path / "four.ckpt")
    resumed = GeometryTracker(PROBE, metrics=METRICS, every=2)
    fit(resumed, path=tmp_path / "four.ckpt")
    assert resumed.steps == whole.steps == [0, 2, 4, 6, 8]
    np.testing.assert_array_equal(resumed.trajectory["mean_cosine"][:3], whole.trajectory["mean_cosine"][:3])
