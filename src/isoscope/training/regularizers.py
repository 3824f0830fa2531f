"""What is added to the loss of a task to shape the states: by name, or any function of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import InputError, NotFiniteError
from isoscope.losses import CosineRegularizer, IStarLoss, token_covariance
from isoscope.losses.states import as_number, chosen_layers

REGULARIZERS = ("istar", "istar-debiased", "cosreg")
Penalty = Callable[[Any, Tensor], Tensor]


class Regularizer:
    """λ times a penalty on the token states of the chosen layers, padding left out.

    Args:
        kind: "istar" λ·(1 − IsoScore*), "istar-debiased" the same of the debiased score, "cosreg" λ times the
            mean cosine, or a function of (hidden states from the embedding layer up, attention mask).
        strength: λ.
        zeta: the weight of C₀ in IsoScore*.
        layers: which hidden states; None is all but the embedding layer.
    """

    def __init__(
        self,
        kind: str | Penalty,
        strength: float,
        *,
        zeta: float = 0.2,
        layers: Sequence[int] | None = None,
    ) -> None:
        self.strength = as_number(strength, "strength (λ)")
        self.layers = layers
        self.name = kind if isinstance(kind, str) else getattr(kind, "__name__", type(kind).__name__)
        self._loss: Any
        if kind == "istar":
            self._loss = IStarLoss(self.strength, zeta=zeta)
        elif kind == "istar-debiased":
            self._loss = IStarLoss(self.strength, debias=True)
        elif kind == "cosreg":
            self._loss = CosineRegularizer(self.strength)
        elif callable(kind):
            self._loss = kind
        else:
            raise InputError(
                argument="regularizer",
                got=kind,
                wanted=f"one of {', '.join(REGULARIZERS)}, or a function of the hidden states and the "
                "attention mask",
            )

    @property
    def needs_covariance(self) -> bool:
        """Whether C₀ is to be rebuilt at the start of each epoch."""
        return isinstance(self._loss, IStarLoss) and not self._loss.debias and self._loss.zeta > 0

    def __call__(self, states: Sequence[Tensor], mask: Tensor, places: Tensor) -> Tensor:
        """The penalty of one batch.

        Args:
            states: (B, T, d) each, from the embedding layer up.
            mask: (B, T) 1 where a token counts.
            places: where those are in the (B·T) tokens; known before the batch goes to the device, so that
                nothing waits for it.
        """
        if not isinstance(self._loss, IStarLoss | CosineRegularizer):
            return self.strength * self._loss(states, mask)
        with _of_states():
            return self._loss(token_rows(states, places, self.layers))

    def rebuild(self, model: Any, batches: Iterable[Mapping[str, Tensor]], max_vectors: int) -> None:
        """C₀ from the model as it is now, in eval mode."""
        with _of_states():
            found = token_covariance(model, batches, max_vectors=max_vectors, layers=self.layers)
        self._loss.set_covariance(found)

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must keep: C₀ is from the start of the epoch."""
        held = self._loss.covariance if self.needs_covariance else None
        return {} if held is None else {"covariance": held}

    def load_state(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Back to a checkpoint's."""
        if "covariance" in tensors:
            self._loss.set_covariance(tensors["covariance"].to(device))


@contextmanager
def _of_states() -> Iterator[None]:
    """An error over rows that are not finite says that they are the model's, not the caller's to drop."""
    try:
        yield
    except NotFiniteError as error:
        raise NotFiniteError("the token states are not finite") from error


def token_rows(states: Sequence[Tensor], places: Tensor, layers: Sequence[int] | None) -> Tensor:
    """(n, d) the states of the tokens that count, the chosen layers one after another."""
    chosen = chosen_layers(states, layers)
    return torch.cat([layer.flatten(0, 1).index_select(0, places) for layer in chosen])


def token_places(mask: Tensor) -> Tensor:
    """Which of the (B·T) tokens count; raises where none does."""
    places = mask.flatten().nonzero().squeeze(1)
    if not len(places):
        raise InputError("the attention mask leaves out every token of a batch; wanted tokens that count")
    return places
