"""The hidden states of every layer, batch by batch as they pass; nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.arrays import working_dtype
from isoscope.errors import FileError, InputError
from isoscope.models.language_models import LanguageModel
from isoscope.models.model_files import running
from isoscope.models.tokens import Tokenized

BATCH_TOKENS, CUDA_BATCH_TOKENS = 4096, 32768
_TEXTS_SORTED = 2048  # texts of one length are put together within so many


@dataclass(frozen=True, eq=False)
class StateBatch:
    """The states of some tokens in every layer, on the model's device.

    Attributes:
        rows: (m,) int64 on the CPU, the places of the tokens among all.
        hidden: one (b, t, d) tensor a layer, the embedding layer first, padding still in.
        mask: (b, t) bool, what is no padding; None where there is none.
    """

    rows: Tensor
    hidden: tuple[Tensor, ...]
    mask: Tensor | None

    def layer(self, layer: int) -> Tensor:
        """Return the (m, d) states of one layer in float32, in the order of `rows`."""
        states = self.hidden[layer]
        return (states.reshape(-1, states.shape[-1]) if self.mask is None else states[self.mask]).float()

    def norms(self) -> Tensor:
        """Return the (layers, m) lengths of all states in float32; no state is copied for it."""
        lengths = torch.stack([_lengths(states) for states in self.hidden])
        return lengths.flatten(1) if self.mask is None else lengths[:, self.mask]


def state_batches(
    tokenized: Tokenized, model: LanguageModel, *, batch_tokens: int = BATCH_TOKENS
) -> Iterator[StateBatch]:
    """The states of all tokens, some texts at a time; every text is read once, whole.

    Args:
        tokenized: the texts' tokens.
        model: the model they were numbered for.
        batch_tokens: how many tokens a batch may have, padding included; a single longer text is one batch.
    """
    if batch_tokens < 1:
        raise InputError(f"batch_tokens is {batch_tokens}; wanted at least one token a batch")
    for texts in text_batches(tokenized, batch_tokens):
        places = torch.cat([torch.arange(*tokenized.starts[s : s + 2].tolist()) for s in texts])
        present = _present(tokenized.lengths[texts])
        ids = torch.zeros(present.shape, dtype=torch.int64)  # behind the end token 0, not attended to
        ids[present] = tokenized.ids[places]
        attended = present.clone()
        attended[present] = ~tokenized.rows.is_padding[places]
        hidden = _forward(model, ids.to(model.device), attended.long().to(model.device))
        yield StateBatch(places, hidden, None if bool(present.all()) else present.to(model.device))


def _present(lengths: Tensor) -> Tensor:
    """(b, t) which places hold a token of a text of that length."""
    return torch.arange(int(lengths.max())) < lengths[:, None]


def usual_batch(device: torch.device) -> int:
    """How many tokens go through a model at a time: on CUDA many, since each launch has its price."""
    return CUDA_BATCH_TOKENS if device.type == "cuda" else BATCH_TOKENS


def text_batches(tokenized: Tokenized, batch_tokens: int) -> list[list[int]]:
    """Which texts go together: of one length where possible, as many as fit; near the order they came in."""
    lengths = tokenized.lengths.tolist()
    batches: list[list[int]] = []
    for start in range(0, len(lengths), _TEXTS_SORTED):
        chunk = sorted(range(start, min(start + _TEXTS_SORTED, len(lengths))), key=lambda s: -lengths[s])
        while chunk:
            n = max(1, batch_tokens // lengths[chunk[0]])
            batches.append(chunk[:n])
            chunk = chunk[n:]
    return batches


def _lengths(states: Tensor) -> Tensor:
    return torch.linalg.vector_norm(states, dim=-1, dtype=working_dtype(states.dtype)).float()


@torch.no_grad()
def _forward(model: LanguageModel, ids: Tensor, attended: Tensor) -> tuple[Tensor, ...]:
    with running(model.path, "run"):
        found = model.model(input_ids=ids, attention_mask=attended, output_hidden_states=True)
    widths = {states.shape[-1] for states in found.hidden_states} - {model.n_dims}
    if widths:
        raise FileError(
            f"{model.path} has states of {widths.pop():,} dimensions where its configuration has "
            f"{model.n_dims:,}; wanted layers of one width: is the file damaged?"
        )
    return tuple(found.hidden_states)
