"""`finetune`: train a model to classify texts, with a penalty on the geometry of its states."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoscope.engine.readings import Reading, Readings
from isoscope.errors import check_choice, check_whole
from isoscope.labels import Labels
from isoscope.losses.covariance import MAX_VECTORS
from isoscope.models.cache import fingerprint
from isoscope.models.language_models import load_tokenizer, pretrained, quiet_loading
from isoscope.models.model_files import running
from isoscope.models.resolve import is_gguf, resolve_model
from isoscope.models.tokens import check_length
from isoscope.models.untouched import own_randomness
from isoscope.results import Result, plain
from isoscope.tables import Grid, shown
from isoscope.training.classification import METRICS, Classification
from isoscope.training.encoder_result import Trained, texts_fingerprint, tracked
from isoscope.training.encoder_run import (
    EncoderSettings,
    limit_of,
    need_trainer,
    one_tracker,
    train_encoder,
    training_device,
    unquantized,
)
from isoscope.training.held_out import split_examples
from isoscope.training.regularizers import Penalty, Regularizer
from isoscope.training.sequences import tokenized
from isoscope.training.state_geometry import ALL, QUANTITIES, state_geometry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AVERAGED = ("score", *QUANTITIES)  # over the seeds
_FEW = 100  # with fewer test texts the standard error of the accuracy may exceed 0.05


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FineTuned(Trained):
    """One run of `finetune`.

    Attributes:
        epochs: one row per epoch: epoch, step, mean loss, and all scores on the test texts.
        geometry: the geometry of the test texts' token states: isoscore_star, isoscore_debiased,
            mean_cosine, twonn. One row per layer above the embedding layer, and one for "all" of them.
        losses: the "loss" of each update and its parts: "task" and, with a regulariser, "penalty".
        trajectory: the rows of the tracker; without a tracker, one row per epoch.
        configuration: all settings, with the data and the versions.
        stopped: why the run ended early; None where it did not.
        folder: the folder of the run, or None.
        model, tokenizer: None where the run was read from its folder; they are in `folder/model`.
    """

    kind = "finetune"
    epochs: Sequence[Mapping[str, Any]]
    geometry: Sequence[Mapping[str, Any]]

    @property
    def metric(self) -> str:
        """The name of the score: "accuracy", "f1" (macro) or "matthews"."""
        return str(self.configuration["metric"])

    @property
    def score(self) -> float:
        """The metric on the test texts after the last epoch."""
        return float(self.epochs[-1][self.metric])

    @property
    def isoscore_star(self) -> float:
        """IsoScore* of the states of all layers together."""
        return self._whole("isoscore_star")

    @property
    def isoscore_debiased(self) -> float:
        """Debiased IsoScore of the states of all layers together."""
        return self._whole("isoscore_debiased")

    @property
    def mean_cosine(self) -> float:
        """Mean cosine of the states of all layers together."""
        return self._whole("mean_cosine")

    @property
    def twonn(self) -> float:
        """Intrinsic dimension of a sample of the states of all layers."""
        return self._whole("twonn")

    def _whole(self, name: str) -> float:
        return float(next(row[name] for row in self.geometry if row["layer"] == ALL))

    @property
    def readings(self) -> Readings:
        """The loss and the scores by `epoch`, and the geometry by `layer`."""
        rows = [
            Reading(name, value, space=self.configuration["model"], group={key: row[key]})
            for key, table in (("epoch", self.epochs), ("layer", self.geometry))
            for row in table
            for name, value in row.items()
            if name not in (key, "step")
        ]
        return Readings(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, without the losses; undefined values are None."""
        return {
            "metric": self.metric,
            "score": self.score,
            **{name: plain(self._whole(name)) for name in QUANTITIES},
            "epochs": plain(self.epochs),
            "geometry": plain(self.geometry),
            "stopped": self.stopped,
            "configuration": dict(self.configuration),
        }

    def _settings(self) -> str:
        penalty, strength = self.configuration["regularizer"], self.configuration["strength"]
        added = f"{penalty}, λ = {strength:g}" if penalty else "no regulariser"
        return f"{self.configuration['model']}: {self.metric} {shown(self.score)}; {added}"

    def grids(self) -> Iterable[Grid]:
        """Return the tables of the scores by epoch and of the geometry by layer."""
        about = self.configuration
        penalized = about["regularizer"] and about["strength"]
        loss = "training loss, with penalty" if penalized else "training loss"
        names = ("accuracy", "f1", "matthews", "loss")
        scores = [(f"{row['epoch']:g}", *(row[name] for name in names)) for row in self.epochs]
        heads = ("epoch", "accuracy", "macro-F1", "Matthews", loss)
        yield Grid("test texts, after each epoch", heads, scores)
        layers = [(str(row["layer"]), *(row[name] for name in QUANTITIES)) for row in self.geometry]
        yield Grid(
            "token states of the test texts",
            ("layer", "IsoScore*", "debiased", "mean cosine", "TwoNN"),
            layers,
        )

    def lines(self) -> list[str]:
        """Return the numbers of texts, a note where there are few test texts, and why the run ended early."""
        n_train, n_test = self.configuration["n_train"], self.configuration["n_test"]
        lines = [f"trained on {n_train:,} texts, scored on {n_test:,}"]
        if n_test < _FEW:
            # √(p(1 − p)/n) is largest at p = ½
            error = 0.5 / math.sqrt(n_test)
            lines.append(
                f"note: {n_test} test text{'s are' if n_test > 1 else ' is'} few: "
                f"the standard error of the accuracy is up to {error:.2f}"
            )
        return [*lines, *([f"stopped: {self.stopped}"] if self.stopped else [])]

    def figure(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the loss, the scores and the layers; see `draw_finetuned`."""
        from isoscope.training.encoder_figure import draw_finetuned

        return draw_finetuned([self], path)


@dataclass(frozen=True, repr=False)
class OverSeeds(Result):
    """Runs of `finetune` that differ only in their seed.

    Attributes:
        runs: one run per seed.
    """

    runs: Sequence[FineTuned]

    def _columns(self) -> dict[str, list[Any]]:
        metric = self.runs[0].metric
        values = np.array([[getattr(run, name) for run in self.runs] for name in _AVERAGED])  # (names, seeds)
        return {
            "quantity": [metric if name == "score" else name for name in _AVERAGED],
            "mean": values.mean(axis=1).tolist(),
            "sd": values.std(axis=1, ddof=1).tolist(),
            **{f"seed {run.configuration['seed']}": values[:, i].tolist() for i, run in enumerate(self.runs)},
        }


def finetune(
    model: str | os.PathLike[str],
    texts: Sequence[str],
    labels: Any,
    *,
    pairs: Sequence[str] | None = None,
    test: Any = 0.2,
    metric: str = "accuracy",
    regularizer: str | Penalty | None = None,
    strength: float = 1.0,
    zeta: float = 0.2,
    layers: Sequence[int] | None = None,
    max_vectors: int = MAX_VECTORS,
    epochs: int = 3,
    batch_size: int = 32,
    learning_rate: float = 1e-5,
    warmup: float = 0.0,
    weight_decay: float = 0.0,
    max_grad_norm: float | None = 1.0,
    max_length: int = 256,
    seed: int = 0,
    precision: str = "float32",
    probe: Sequence[str] | None = None,
    every: int = 100,
    tracker: Any = None,
    run: str | os.PathLike[str] | None = None,
    resume: bool = False,
    save_every: int | None = None,
    device: str | torch.device | None = None,
    download: bool = False,
    progress: bool | None = None,
) -> FineTuned:
    """Fine-tune a model to classify texts, or pairs of texts, with a penalty on the geometry of its states.

        cross-entropy + λ·(1 − IsoScore*(states))

    The optimiser is AdamW with a constant learning rate. The states are those of all layers but the
    embedding layer, without padding. C₀ is computed again at the start of each epoch, in eval mode, as in
    Rudman and Eickhoff 2024. A negative λ makes the space less isotropic. The same seed gives the same
    classifier head, order of texts and dropout, and on the CPU bitwise the same numbers.

    Args:
        model: a short name, a folder of transformers or sentence-transformers, a .gguf file, or an id on
            Hugging Face's hub. Weights are read only from safetensors and GGUF; no code of a model is run.
        texts: the texts to classify.
        labels: one label per text.
        pairs: second texts, to classify pairs of texts.
        test: (texts, labels) or (texts, pairs, labels) to score on, or the share of the texts to hold out,
            which is the same for every seed.
        metric: the `score`: "accuracy", "f1" (macro) or "matthews", as for CoLA. All three are recorded.
        regularizer: "istar", "istar-debiased" (no C₀), "cosreg", a function of the hidden states and the
            attention mask that returns a number, or None.
        strength: λ; 0 means no regulariser.
        zeta: weight of C₀ in IsoScore*.
        layers: hidden states to penalise; None means all but the embedding layer.
        max_vectors: largest number of token states that C₀ is computed from.
        epochs, batch_size, learning_rate, weight_decay, max_grad_norm: settings of the training.
        warmup: share of the updates over which the learning rate rises from 0.
        max_length: largest number of tokens in a text or pair; longer ones are truncated.
        seed: seed of everything random.
        precision: "float32", or "bf16" for autocast.
        probe: texts on which the geometry of the last layer is measured every `every` updates.
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
    """
    need_trainer()
    examples, held_out = split_examples(texts, pairs, labels, test)
    check_choice("metric", metric, METRICS)
    check_whole("epochs", epochs)
    steps_per_epoch = -(-len(examples.texts) // check_whole("batch_size", batch_size))
    settings = EncoderSettings(
        steps=epochs * steps_per_epoch, steps_per_epoch=steps_per_epoch, batch_size=batch_size,
        learning_rate=learning_rate, seed=seed, warmup=warmup, weight_decay=weight_decay,
        max_grad_norm=max_grad_norm, precision=precision, save_every=save_every,
    )  # fmt: skip
    check_whole("max_length", max_length)
    penalty = None if regularizer is None else Regularizer(regularizer, strength, zeta=zeta, layers=layers)
    where, path = training_device(device), resolve_model(model, download=download)
    tokenizer = load_tokenizer(path)
    check_length(tokenizer, max_length, of_pairs=pairs is not None)
    tracker = one_tracker(tracker, probe, tokenizer, every=every, seed=seed, max_length=max_length)
    about = {
        "data": texts_fingerprint(*examples.columns), "test": texts_fingerprint(*held_out.columns),
        "n_train": len(examples.texts), "n_test": len(held_out.texts),
        "labels": [str(name) for name in examples.labels.names],
        "regularizer": penalty.name if penalty else None, "strength": penalty.strength if penalty else 0.0,
        "model": Path(os.fspath(model)).name, "model_fingerprint": fingerprint(path), "epochs": epochs,
        "metric": metric, "zeta": zeta, "layers": None if layers is None else list(layers),
        "max_vectors": max_vectors, "max_length": max_length, "tracked": tracked(tracker),
    }  # fmt: skip

    def load() -> tuple[Any, Classification]:
        with own_randomness():
            loaded = _load(path, examples.labels, seed)
            loaded.config.pad_token_id = tokenizer.pad_token_id
        options: dict[str, Any] = {
            "max_length": limit_of(loaded, tokenizer, max_length),
            "segments": pairs is not None and getattr(loaded.config, "type_vocab_size", 0) > 1,
        }
        return loaded.to(where), Classification(
            tokenized(tokenizer, examples.texts, examples.pairs, **options), examples.labels.codes,
            tokenized(tokenizer, held_out.texts, held_out.pairs, **options), held_out.labels.codes,
            penalty if penalty and penalty.strength else None, max_vectors,
        )  # fmt: skip

    def measure(trained: Any, task: Classification) -> dict[str, Any]:
        options: dict[str, Any] = {"zeta": zeta, "max_vectors": max_vectors, "seed": seed}
        return {"geometry": state_geometry(trained, task.test, task.train, **options)}

    return train_encoder(
        FineTuned, settings, about, load, measure=measure, tokenizer=lambda: load_tokenizer(path),
        tracker=tracker, run=run, resume=resume, device=where, progress=progress,
    )  # fmt: skip


def _load(path: Path, labels: Labels, seed: int) -> Any:
    """Return the model in float32, with a new classifier head drawn from the seed."""
    import transformers

    names = [str(name) for name in labels.names]
    folder, options = pretrained(path)
    torch.manual_seed(seed)
    with quiet_loading(), running(path, "loaded to classify texts"):
        loaded = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.float32, num_labels=len(names), id2label=dict(enumerate(names)),
            label2id={name: i for i, name in enumerate(names)}, ignore_mismatched_sizes=True,
            **({} if is_gguf(path) else {"use_safetensors": True}), **options,
        )  # fmt: skip
    if getattr(loaded, "is_quantized", False):
        loaded = unquantized(loaded)
    loaded.config.use_cache = False
    return loaded
