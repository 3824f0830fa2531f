"""`Regularizer`: a penalty on the geometry of token states, by name or as a function."""

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
    """λ times a penalty on the token states of the chosen layers, without padding.

    Args:
        kind: "istar" for λ·(1 − IsoScore*), "istar-debiased" for the same with the debiased score, "cosreg"
            for λ times the mean cosine, or a function of the hidden states (from the embedding layer up) and
            the attention mask.
        strength: λ.
        zeta: weight of C₀ in IsoScore*.
        layers: hidden states to penalise; None means all but the embedding layer.
    """

    def __init__(
        self,
        kind: str | Penalty,
        strength: float,
        *,
        zeta: float = 0.2,
        layers: Sequence[int] | None = None,
    ) -> None:
        self.strength = as_number(strength, "strength")
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
        """Whether C₀ must be computed at the start of each epoch."""
        return isinstance(self._loss, IStarLoss) and not self._loss.debias and self._loss.zeta > 0

    def __call__(self, states: Sequence[Tensor], mask: Tensor, places: Tensor) -> Tensor:
        """Return the penalty of one batch.

        Args:
            states: (B, T, d) states of each layer, from the embedding layer up.
            mask: (B, T) 1 for tokens, 0 for padding.
            places: flat positions of the tokens in (B·T). They are computed before the batch is copied to
                the device, so that nothing waits for it.
        """
        if not isinstance(self._loss, IStarLoss | CosineRegularizer):
            return self.strength * self._loss(states, mask)
        with _of_states():
            return self._loss(token_rows(states, places, self.layers))

    def rebuild(self, model: Any, batches: Iterable[Mapping[str, Tensor]], max_vectors: int) -> None:
        """Compute C₀ from the current model, in eval mode."""
        with _of_states():
            covariance = token_covariance(model, batches, max_vectors=max_vectors, layers=self.layers)
        self._loss.set_covariance(covariance)

    def state(self) -> dict[str, Tensor]:
        """Return C₀, which was computed at the start of the epoch, for a checkpoint."""
        covariance = self._loss.covariance if self.needs_covariance else None
        return {} if covariance is None else {"covariance": covariance}

    def load_state(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore C₀ from a checkpoint."""
        if "covariance" in tensors:
            self._loss.set_covariance(tensors["covariance"].to(device))


@contextmanager
def _of_states() -> Iterator[None]:
    """Name the token states in a NotFiniteError, which would otherwise speak of the caller's rows."""
    try:
        yield
    except NotFiniteError as error:
        raise NotFiniteError("the token states are not finite") from error


def token_rows(states: Sequence[Tensor], places: Tensor, layers: Sequence[int] | None) -> Tensor:
    """Return the (n, d) states of the tokens of the chosen layers, layer after layer."""
    chosen = chosen_layers(states, layers)
    return torch.cat([layer.flatten(0, 1).index_select(0, places) for layer in chosen])


def token_places(mask: Tensor) -> Tensor:
    """Return the flat positions of the tokens that are not padding; raise if there are none."""
    places = mask.flatten().nonzero().squeeze(1)
    if not len(places):
        raise InputError("the attention mask of a batch has no tokens, only padding")
    return places
