"""`train_masked_lm`: train a small BERT with random weights to predict masked tokens."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from isoscope.errors import InputError, Setting, check_whole
from isoscope.models.language_models import LanguageModel, quiet_loading
from isoscope.models.tokens import tokenize
from isoscope.models.untouched import device_of, own_randomness, untouched
from isoscope.tables import shown
from isoscope.training.encoder_result import Trained, texts_fingerprint
from isoscope.training.encoder_run import (
    EncoderSettings,
    Task,
    need_trainer,
    train_encoder,
    training_device,
)
from isoscope.training.sequences import Batch, EpochOrder, Sequences

RATE = 0.15  # share of tokens to predict
MASKED, REPLACED = 0.8, 0.1  # of those: replaced by the mask, by a random token; the rest stay
_HELD_OUT = 10**6  # the epoch number that seeds the masks of held-out texts; no training reaches it


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MaskedLM(Trained):
    """One run of `train_masked_lm`.

    Attributes:
        held_out_loss: loss at the masked tokens of the held-out texts; None without held-out texts.
        unigram_loss: loss of predicting the same tokens by their frequency in training.
        losses: the loss of each update, under "loss", in nats per masked token.
        trajectory: one row per epoch.
        configuration: all settings, with the data and the versions.
        stopped: why the run ended early; None where it did not.
        folder: the folder of the run, or None.
        model, tokenizer: None where the run was read from its folder; they are in `folder/model`.
    """

    kind = "masked"
    held_out_loss: float | None
    unigram_loss: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, without the losses of single updates."""
        return {
            "held_out_loss": self.held_out_loss, "unigram_loss": self.unigram_loss, **super().to_dict()
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Return the summary, with the held-out loss beside that of predicting by frequency."""
        by_frequency = f"{shown(self.unigram_loss)} by frequency alone"
        held_out = f"loss on held-out texts: {shown(self.held_out_loss)}, {by_frequency}"
        return [*super().lines(), *([] if self.held_out_loss is None else [held_out])]

    def _settings(self) -> str:
        about = self.configuration
        return f"masked language model, {about['n_layers']} layers × {about['n_dims']}"


def train_masked_lm(
    texts: Sequence[str],
    *,
    tokenizer: Any,
    held_out: Sequence[str] | None = None,
    n_layers: int = 4,
    n_dims: int = 256,
    n_heads: int = 4,
    window: int = 64,
    steps: int = 8000,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    warmup: float = 0.1,
    weight_decay: float = 0.01,
    seed: int = 0,
    precision: str = "float32",
    run: str | os.PathLike[str] | None = None,
    resume: bool = False,
    save_every: int | None = None,
    snapshots: Iterable[int] = (),
    device: str | torch.device | None = None,
    progress: bool | None = None,
) -> MaskedLM:
    """Train a BERT with random weights to predict masked tokens, and measure whether it learnt anything.

    The texts are joined into one stream and cut into windows. The model predicts 15 % of the tokens, special
    tokens excluded: 80 % of these are replaced by the mask, 10 % by a random token, and 10 % stay as they
    are (Devlin et al. 2019). Every epoch draws new ones. The optimiser is AdamW; the learning rate rises
    during the warm-up and then falls to 0. The same seed gives the same weights, masks, order and dropout.

    Args:
        texts: the texts to train on.
        tokenizer: a tokenizer of transformers with a mask token and a padding token.
        held_out: texts on which the loss is computed at the end, with the same masks for every run.
        n_layers, n_dims, n_heads: size of the model.
        window: number of tokens in a window, and the longest input the model will ever take.
        steps, batch_size, learning_rate, warmup, weight_decay: settings of the training. A batch has
            `batch_size` windows.
        seed: seed of everything random.
        precision: "float32", or "bf16" for autocast.
        run: folder for the run's checkpoints and results. An interrupted run resumes to the same numbers.
        resume: continue a run found in that folder, or return the result of a finished one.
        save_every: updates between checkpoints. There is always one at the end of each epoch.
        snapshots: updates after which the model is saved to a folder of its own, `run/snapshots/step-N`;
            0 is before training. `isoscope layers run/snapshots FILE` measures them.
        device: "cpu" or "cuda"; by default a CUDA device where there is one.
        progress: show a progress bar; None shows it on a terminal.
    """
    need_trainer()
    steps_of = sorted(set(snapshots))
    if steps_of and run is None:
        raise InputError("needs a folder to save to", argument="snapshots", hint=Setting("run", to="name it"))
    if wrong := [step for step in steps_of if not 0 <= step <= steps]:
        raise InputError(argument="snapshots", got=wrong[0], wanted=f"updates from 0 to {steps:,}")
    if getattr(tokenizer, "mask_token_id", None) is None or tokenizer.pad_token_id is None:
        raise InputError("has no mask token or no padding token", argument="tokenizer")
    if check_whole("n_dims", n_dims) % check_whole("n_heads", n_heads):
        raise InputError(argument="n_dims", got=n_dims, wanted=f"a multiple of n_heads = {n_heads}")
    check_whole("n_layers", n_layers)
    where, read = training_device(device), _windows(texts, tokenizer, window)
    if len(read) < check_whole("batch_size", batch_size):
        raise InputError(argument="batch_size", got=batch_size, wanted=f"at most {len(read)}, the windows")
    settings = EncoderSettings(
        steps=steps, steps_per_epoch=len(read) // batch_size, batch_size=batch_size,
        learning_rate=learning_rate, seed=seed, warmup=warmup, decay=True, weight_decay=weight_decay,
        precision=precision, save_every=save_every, drop_last=True,
    )  # fmt: skip
    about = {
        "n_layers": n_layers, "n_dims": n_dims, "n_heads": n_heads, "window": window,
        "data": texts_fingerprint(list(texts), list(held_out or ())), "vocabulary": len(tokenizer),
        "n_tokens": int(read.starts[-1]),
    }  # fmt: skip

    def load() -> tuple[Any, MaskedTokens]:
        model = _new_model(tokenizer, n_layers, n_dims, n_heads, window, seed).to(where)
        return model, MaskedTokens(read, tokenizer, seed=seed, precision=precision)

    def measure(model: Any, task: MaskedTokens) -> dict[str, Any]:
        if held_out is None:
            return {"held_out_loss": None, "unigram_loss": None}
        test = MaskedTokens(_windows(held_out, tokenizer, window), tokenizer, seed=0, precision="float32")
        return {
            "held_out_loss": test.mean_loss(model, batch_size),
            "unigram_loss": test.unigram_loss(task.counts, batch_size),
        }

    return train_encoder(
        MaskedLM, settings, about, load, measure=measure, tokenizer=lambda: tokenizer,
        run=run, resume=resume, device=where, progress=progress, snapshots=steps_of,
    )  # fmt: skip


class MaskedTokens(Task):
    """Windows with masked tokens, drawn anew in every epoch."""

    def __init__(self, windows: Sequences, tokenizer: Any, *, seed: int, precision: str) -> None:
        self._windows, self._seed, self._epoch = windows, seed, 0
        self._is_bf16 = precision == "bf16"
        self._mask, self._n_types = int(tokenizer.mask_token_id), len(tokenizer)
        self._special = torch.tensor(sorted(tokenizer.all_special_ids))

    def __len__(self) -> int:
        return len(self._windows)

    @property
    def counts(self) -> Tensor:
        """(vocabulary,) count of each token that may be masked."""
        ids = self._windows.fields["input_ids"]
        return torch.bincount(ids[~torch.isin(ids, self._special)], minlength=self._n_types)

    def batch(self, places: Sequence[int]) -> Batch:
        """Return masked windows, and the flat positions and targets of the masked tokens."""
        made = self._windows.batch(places)
        ids = made["input_ids"]
        can_be_hidden = made["attention_mask"].bool() & ~torch.isin(ids, self._special)
        source = np.random.default_rng([self._seed, self._epoch, *map(int, places), *b"mask"])
        shown, hidden = hide(ids, can_be_hidden, mask=self._mask, n_types=self._n_types, source=source)
        chosen = hidden.flatten().nonzero().flatten()
        targets = ids.flatten()[chosen]
        return made | {"input_ids": shown, "places": chosen, "targets": targets}

    def loss(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        """Return the cross-entropy at the masked tokens; no scores are computed elsewhere."""
        with torch.autocast(batch["input_ids"].device.type, torch.bfloat16, enabled=self._is_bf16):
            states = model.bert(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            hidden = states.last_hidden_state.flatten(0, 1).index_select(0, batch["places"])
            scores = model.cls(hidden)
        return {"loss": functional.cross_entropy(scores.float(), batch["targets"])}

    def mean_loss(self, model: Any, batch_size: int) -> float:
        """Return the mean loss over all windows, with masks that depend only on the seed."""
        total, n, device = 0.0, 0, device_of(model)
        with untouched(model):
            for batch in self._all(batch_size):
                placed = {name: values.to(device) for name, values in batch.items()}
                n_hidden = len(batch["targets"])
                total, n = total + float(self.loss(model, placed)["loss"]) * n_hidden, n + n_hidden
        return total / n

    def unigram_loss(self, counts: Tensor, batch_size: int) -> float:
        """Return the mean loss of predicting the same tokens by these counts plus one."""
        shares = (counts + 1).double() / (counts + 1).sum()
        targets = torch.cat([batch["targets"] for batch in self._all(batch_size)])
        return -float(shares[targets].log().mean())

    def _all(self, batch_size: int) -> list[Batch]:
        self._epoch = _HELD_OUT
        parts = torch.arange(len(self)).split(batch_size)
        return [self.batch(part.tolist()) for part in parts]

    def begin_epoch(self, model: Any, order: EpochOrder) -> None:  # noqa: ARG002
        """Draw new masks."""
        self._epoch = order.epoch

    def state(self) -> dict[str, Tensor]:
        """Return the number of the epoch, which seeds its masks."""
        return {"epoch": torch.tensor(self._epoch)}

    def load_state(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:  # noqa: ARG002
        """Restore the epoch of a checkpoint."""
        self._epoch = int(tensors["epoch"])


def hide(
    ids: Tensor,
    can_be_hidden: Tensor,
    *,
    mask: int,
    n_types: int,
    source: np.random.Generator,
    rate: float = RATE,
) -> tuple[Tensor, Tensor]:
    """Return the masked tokens, and which of them to predict: at least one where any may be masked.

    >>> ids, all_of_them = torch.arange(5, 10), torch.ones(5, dtype=torch.bool)
    >>> shown, hidden = hide(ids, all_of_them, mask=1, n_types=20, source=np.random.default_rng(0), rate=1.0)
    >>> shown.tolist(), bool(hidden.all())
    ([1, 1, 1, 1, 19], True)
    """
    draws = torch.from_numpy(source.random(ids.shape))
    hidden = can_be_hidden & (draws < rate)
    if not hidden.any():
        hidden = can_be_hidden & (draws == draws.masked_fill(~can_be_hidden, math.inf).min())
        draws = draws * 0.0
    as_mask = hidden & (draws < MASKED * rate)
    as_another = hidden & (draws >= MASKED * rate) & (draws < (MASKED + REPLACED) * rate)
    others = torch.from_numpy(source.integers(n_types, size=tuple(ids.shape)))
    return torch.where(as_another, others, ids.masked_fill(as_mask, mask)), hidden


def _windows(texts: Sequence[str], tokenizer: Any, window: int) -> Sequences:
    reader = LanguageModel("masked", Path(), None, tokenizer, 0, 0, None, False)
    read = tokenize(texts, reader, window=window)
    return Sequences({"input_ids": read.ids}, read.starts, int(tokenizer.pad_token_id))


def _new_model(tokenizer: Any, n_layers: int, n_dims: int, n_heads: int, window: int, seed: int) -> Any:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=n_dims, num_hidden_layers=n_layers,
        num_attention_heads=n_heads, intermediate_size=4 * n_dims, max_position_embeddings=window,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    with own_randomness(), quiet_loading():
        torch.manual_seed(seed)
        return BertForMaskedLM(config)
