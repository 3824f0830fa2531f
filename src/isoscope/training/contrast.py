"""`contrast`: train a sentence encoder on pairs of texts, and record its geometry."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isoscope.errors import InputError, check_choice, check_whole
from isoscope.io.atomic import scratch_folder
from isoscope.losses import MultipleNegativesLoss
from isoscope.models.cache import fingerprint
from isoscope.models.language_models import LanguageModel, load_language_model, load_tokenizer
from isoscope.models.pooling import TOKEN_POOLINGS, pool_padded
from isoscope.models.resolve import resolve_model
from isoscope.models.texts import checked_texts
from isoscope.models.tokens import check_length
from isoscope.training.encoder_result import Trained, texts_fingerprint, tracked
from isoscope.training.encoder_run import (
    EncoderSettings,
    Task,
    limit_of,
    need_trainer,
    one_tracker,
    save_pretrained,
    train_encoder,
    training_device,
    unquantized,
)
from isoscope.training.sequences import Batch, Sequences, tokenized

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEFAULT_METRICS = ("isoscore_debiased", "mean_cosine", "effective_rank")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Contrasted(Trained):
    """One run of `contrast`.

    Attributes:
        losses: the loss of each update, under "loss".
        trajectory: the rows of the tracker; without a tracker, one row per epoch.
        configuration: all settings, with the data and the versions.
        stopped: why the run ended early; None where it did not.
        folder: the folder of the run, or None.
        model, tokenizer: None where the run was read from its folder; they are in `folder/model`.
    """

    kind = "contrast"

    def _settings(self) -> str:
        about = self.configuration
        return (
            f"{about['model']}: τ = {about['temperature']:g}, batches of {about['batch_size']}, "
            f"{about['pooling']} pooling"
        )

    def figure(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the loss and every metric along the run; see `draw_contrasted`."""
        from isoscope.training.encoder_figure import draw_contrasted

        return draw_contrasted(self, path)


def contrast(
    model: str | os.PathLike[str] | LanguageModel,
    pairs: Iterable[tuple[str, str]],
    *,
    temperature: float = 0.05,
    symmetric: bool = True,
    pooling: str = "mean",
    batch_size: int = 64,
    steps: int | None = None,
    epochs: int = 1,
    learning_rate: float = 2e-5,
    warmup: float = 0.1,
    weight_decay: float = 0.0,
    max_grad_norm: float | None = 1.0,
    max_length: int = 64,
    seed: int = 0,
    precision: str = "float32",
    probe: Sequence[str] | None = None,
    every: int = 20,
    layers: Sequence[int] = (-1,),
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    contextual: bool = False,
    tracker: Any = None,
    run: str | os.PathLike[str] | None = None,
    resume: bool = False,
    save_every: int | None = None,
    device: str | torch.device | None = None,
    download: bool = False,
    progress: bool | None = None,
) -> Contrasted:
    """Train an encoder so that each text is closest to its partner among all partners in the batch.

        −mean_i log( e^{cos(a_i, p_i)/τ} / Σ_j e^{cos(a_i, p_j)/τ} ),  both directions if symmetric

    The loss is `MultipleNegativesLoss` of the pooled states of the last layer. The optimiser is AdamW; the
    learning rate rises during the warm-up and then falls to 0. Masked and causal models can be trained. An
    incomplete last batch is dropped, so that every update has the same number of negatives. The same seed
    gives the same order and dropout, and on the CPU bitwise the same numbers.

    Args:
        model: a short name, a folder, a .gguf file, an id on Hugging Face's hub, or a `LanguageModel`, which
            is copied.
        pairs: pairs of texts with the same meaning, such as sentences of which one follows from the other.
        temperature: τ; with a low one, only the nearest negatives matter.
        symmetric: use both directions, or only from the first text to the second.
        pooling: how token states become one vector: "mean", "cls", "max" or "lasttoken".
        batch_size: pairs per update. The other pairs are the negatives of each.
        steps: number of updates; by default those of `epochs`.
        learning_rate, weight_decay, max_grad_norm: settings of the training.
        warmup: share of the updates over which the learning rate rises from 0.
        max_length: largest number of tokens in a text; longer ones are truncated.
        seed: seed of everything random.
        precision: "float32", or "bf16" for autocast.
        probe: texts on which the geometry of `layers` is measured before the first update, every `every`
            updates, and after the last.
        layers, metrics, contextual: what is measured there; see `GeometryTracker`.
        tracker: your own `GeometryTracker`, in place of `probe`.
        run: folder for the run's checkpoints and results. An interrupted run resumes to the same numbers.
        resume: continue a run found in that folder, or return the result of a finished one.
        save_every: updates between checkpoints. There is always one at the end of each epoch.
        device: "cpu" or "cuda"; by default a CUDA device where there is one.
        download: download the model if it is not on this machine. Otherwise nothing is downloaded.
        progress: show a progress bar; None shows it on a terminal.

    Raises:
        NotFiniteError: the loss became NaN or infinite. The message names the update, and the last
            checkpoint stays.

    Paper: the training of Xiao, Long and Al Moubayed 2023.
    """
    need_trainer(*([] if run is None else ["sentence_transformers"]))
    firsts, seconds = _columns(pairs)
    check_choice("pooling", pooling, TOKEN_POOLINGS)
    if len(firsts) < check_whole("batch_size", batch_size):
        raise InputError(argument="batch_size", got=batch_size, wanted=f"at most {len(firsts)}, the pairs")
    steps_per_epoch = len(firsts) // batch_size
    settings = EncoderSettings(
        steps=check_whole("epochs", epochs) * steps_per_epoch if steps is None else steps,
        steps_per_epoch=steps_per_epoch, batch_size=batch_size, learning_rate=learning_rate, seed=seed,
        warmup=warmup, decay=True, weight_decay=weight_decay, max_grad_norm=max_grad_norm,
        precision=precision, save_every=save_every, drop_last=True,
    )  # fmt: skip
    loss = MultipleNegativesLoss(temperature, symmetric=symmetric)
    where = training_device(device)
    if isinstance(model, LanguageModel):
        name, path = model.name, model.path
    else:
        name, path = Path(os.fspath(model)).name, resolve_model(model, download=download)
    tokenizer = load_tokenizer(path)
    check_length(tokenizer, check_whole("max_length", max_length))
    tracker = one_tracker(
        tracker, probe, tokenizer, every=every, layers=layers, metrics=metrics, contextual=contextual,
        seed=seed, max_length=max_length,
    )  # fmt: skip
    about = {
        "model": name, "model_fingerprint": fingerprint(path), "data": texts_fingerprint(firsts, seconds),
        "n_pairs": len(firsts), "temperature": loss.temperature, "symmetric": symmetric, "pooling": pooling,
        "max_length": max_length, "tracked": tracked(tracker),
        "probe": None if probe is None else texts_fingerprint(list(probe)),
    }  # fmt: skip

    def load() -> tuple[Any, Pairs]:
        loaded = _trainable(model, path, where)
        limit = limit_of(loaded, tokenizer, max_length)
        texts = tokenized(tokenizer, [*firsts, *seconds], max_length=limit)
        return loaded, Pairs(texts, loss, pooling)

    def save(place: Path, trained: Any, reader: Any) -> None:
        _save(place, trained, reader, pooling, limit_of(trained, reader, max_length))

    return train_encoder(
        Contrasted, settings, about, load, save=save, tokenizer=lambda: load_tokenizer(path),
        tracker=tracker, run=run, resume=resume, device=where, progress=progress,
    )  # fmt: skip


class Pairs(Task):
    """Pairs of texts: both sides of a batch go through the model together."""

    def __init__(self, texts: Sequences, loss: MultipleNegativesLoss, pooling: str) -> None:
        self._texts, self._n = texts, len(texts) // 2
        self._loss, self._pooling = loss, pooling

    def __len__(self) -> int:
        return self._n

    def batch(self, places: Sequence[int]) -> Batch:
        """Return the first texts, then the second ones."""
        return self._texts.batch([*places, *(self._n + place for place in places)])

    def loss(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        """Return the loss of the pooled last states."""
        states = model(**batch).last_hidden_state
        vectors = pool_padded(states, batch["attention_mask"], pooling=self._pooling)
        firsts, seconds = vectors.chunk(2)
        return {"loss": self._loss(firsts, seconds)}


def _columns(pairs: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    listed = list(pairs)
    for row, pair in enumerate(listed):
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(argument=f"pairs[{row}]", got=pair, wanted="two texts")
    if len(listed) < 2:
        raise InputError(
            argument="pairs",
            got=len(listed),
            wanted="at least 2",
            hint="other pairs are the negatives of each",
        )
    firsts, seconds = zip(*listed, strict=True)
    return (
        checked_texts(firsts, name="first texts", filled=True),
        checked_texts(seconds, name="second texts", filled=True),
    )


def _trainable(model: str | os.PathLike[str] | LanguageModel, path: Path, device: torch.device) -> Any:
    """Return the model in float32 with gradients; a LanguageModel is copied."""
    if isinstance(model, LanguageModel):
        loaded, is_ours = model.model, False
    else:
        loaded, is_ours = load_language_model(path, device=device).model, True
    if getattr(loaded, "is_quantized", False):
        loaded = unquantized(loaded)
    elif not is_ours:
        loaded = copy.deepcopy(loaded).float()
    return loaded.to(device).requires_grad_(True)


def _save(place: Path, model: Any, tokenizer: Any, pooling: str, max_length: int) -> None:
    """Write a folder that transformers and, with its pooling, sentence-transformers can load."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    with scratch_folder(place.parent) as bare:
        save_pretrained(bare, model, tokenizer)
        read = Transformer(str(bare), max_seq_length=max_length)
        pooled = Pooling(read.get_embedding_dimension(), pooling)
        encoder = SentenceTransformer(modules=[read, pooled], device="cpu")
        encoder.save_pretrained(str(place), create_model_card=False)
