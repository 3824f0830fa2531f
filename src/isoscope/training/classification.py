"""`Classification`: the task of classifying texts, with a regulariser and scores on held-out texts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from isoscope.errors import NotFiniteError
from isoscope.models.untouched import device_of, untouched
from isoscope.training.encoder_run import Task
from isoscope.training.regularizers import Regularizer, token_places
from isoscope.training.sequences import Batch, EpochOrder, Sequences

METRICS = ("accuracy", "f1", "matthews")
_EVALUATED_AT_ONCE = 128


class Classification(Task):
    """Cross-entropy over labels, plus λ times a penalty on the token states.

    Args:
        train, codes: texts to train on, and the code of each label.
        test, test_codes: texts to score on, and the code of each label.
        regularizer: the penalty, or None.
        max_vectors: number of token states that C₀ is computed from at the start of each epoch.
    """

    def __init__(
        self,
        train: Sequences,
        codes: Tensor,
        test: Sequences,
        test_codes: Tensor,
        regularizer: Regularizer | None,
        max_vectors: int,
    ) -> None:
        self.train, self.codes, self.test, self.test_codes = train, codes, test, test_codes
        self.regularizer, self.max_vectors = regularizer, max_vectors

    def __len__(self) -> int:
        return len(self.train)

    def batch(self, places: Sequence[int]) -> Batch:
        """Return the tokens, the labels and the positions of the tokens that are not padding."""
        made = self.train.batch(places)
        extra = {"codes": self.codes[list(places)], "places": token_places(made["attention_mask"])}
        return made | extra

    def loss(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        """Return the loss, and its parts: the cross-entropy and the penalty."""
        inputs = dict(batch)
        codes, places = inputs.pop("codes"), inputs.pop("places")
        penalty = self.regularizer
        outputs = model(**inputs, output_hidden_states=penalty is not None)
        task = functional.cross_entropy(outputs.logits.float(), codes)
        if penalty is None:
            return {"loss": task, "task": task}
        added = penalty(outputs.hidden_states, inputs["attention_mask"], places)
        return {"loss": task + added, "task": task, "penalty": added}

    def begin_epoch(self, model: Any, order: EpochOrder) -> None:
        """Compute C₀ from the first batches of the epoch, in eval mode."""
        if self.regularizer is not None and self.regularizer.needs_covariance:
            with untouched(model):
                self.regularizer.rebuild(model, map(self.train.batch, order), self.max_vectors)

    def end_epoch(self, model: Any) -> dict[str, float]:
        """Return accuracy, macro-F1 and Matthews' correlation on the held-out texts."""
        return classification_scores(self.test_codes.numpy(), self.predictions(model))

    def predictions(self, model: Any) -> np.ndarray:
        """Return the (n,) predicted label codes of the held-out texts; raise if a score is not finite."""
        device = device_of(model)
        order: list[int] = []
        scores: list[Tensor] = []
        with untouched(model):
            for places, batch in self.test.by_length(_EVALUATED_AT_ONCE):
                order += places
                inputs = {name: values.to(device) for name, values in batch.items()}
                scores.append(model(**inputs).logits)
        logits = torch.cat(scores)
        if not logits.isfinite().all():
            raise NotFiniteError("the scores of the held-out texts are not finite")
        predicted = np.empty(len(order), np.int64)
        predicted[order] = logits.argmax(dim=1).cpu().numpy()
        return predicted

    def state(self) -> dict[str, Tensor]:
        """Return C₀, if there is one."""
        return {} if self.regularizer is None else self.regularizer.state()

    def load_state(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore C₀ from a checkpoint."""
        if self.regularizer is not None:
            self.regularizer.load_state(tensors, device)


def classification_scores(labels: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return accuracy, macro-F1 over the labels that occur, and Matthews' correlation, as scikit-learn does.

    The correlation is 0 where only one label occurs or is predicted.

    >>> scores = classification_scores(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    >>> {name: round(value, 4) for name, value in scores.items()}
    {'accuracy': 0.75, 'f1': 0.7333, 'matthews': 0.5774}
    """
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, where only one label occurs
        return {
            "accuracy": float(accuracy_score(labels, predicted)),
            "f1": float(f1_score(labels, predicted, average="macro")),
            "matthews": float(matthews_corrcoef(labels, predicted)),
        }
