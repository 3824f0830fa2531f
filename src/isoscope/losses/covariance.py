"""C₀, the covariance that IsoScore* shrinks towards: of many vectors, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.errors import InputError
from isoscope.losses.states import States, masked_rows
from isoscope.models.forward import hidden_states
from isoscope.statistics.moments import Moments
from isoscope.statistics.processes import all_moments, several

Block = States | tuple[States, Tensor]
MAX_VECTORS = 250_000  # the paper's


def reference_covariance(
    blocks: Iterable[Any],
    *,
    max_vectors: int = MAX_VECTORS,
    layers: Sequence[int] | None = None,
    across_processes: bool = True,
) -> Tensor:
    """(d, d) covariance of the first vectors of a stream, for `IStarLoss.set_covariance`.

        C₀ = Σ (x − x̄)(x − x̄)ᵀ/(n − 1)

    in one pass and float64, with nothing kept but sums. Gradients are not followed.

    Args:
        blocks: what `IStarLoss` takes, one after another: states, or pairs (states, mask).
        max_vectors: where to stop; no block after that is asked for. The paper's 250,000.
        layers: as in `IStarLoss`.
        across_processes: whether to join the vectors of all processes, each bringing its own share of
            `max_vectors`.

    Paper: Rudman and Eickhoff 2024, who rebuild it at the start of each epoch.

    >>> reference_covariance([torch.eye(2), -torch.eye(2)]) * 3
    tensor([[2., 0.],
            [0., 2.]], dtype=torch.float64)
    """
    return reference_moments(
        blocks, max_vectors=max_vectors, layers=layers, across_processes=across_processes
    ).covariance


def token_covariance(
    model: nn.Module,
    batches: Iterable[Mapping[str, Any]],
    *,
    max_vectors: int = MAX_VECTORS,
    layers: Sequence[int] | None = None,
    across_processes: bool = True,
) -> Tensor:
    """(d, d) covariance of a language model's token states over a data loader, in eval mode.

    Args:
        model: see `isoscope.models.hidden_states`; it is left as it was.
        batches: dicts with an `attention_mask`, which leaves padding out. Where they have a
            `special_tokens_mask`, special tokens are left out too.
        max_vectors, layers, across_processes: as in `reference_covariance`; layer 0 is the embedding layer.
    """
    return reference_covariance(
        _states(model, batches), max_vectors=max_vectors, layers=layers, across_processes=across_processes
    )


def reference_moments(
    blocks: Iterable[Any],
    *,
    max_vectors: int | None = None,
    layers: Sequence[int] | None = None,
    across_processes: bool = True,
) -> Moments:
    """Return the moments from which `reference_covariance` is computed."""
    processes = several(across_processes)
    share = max_vectors
    if max_vectors is not None and processes:
        share = -(-max_vectors // torch.distributed.get_world_size())
    moments: Moments | None = None
    rows: Tensor | None = None
    with torch.no_grad():
        for rows in _limited(blocks, share, layers):
            if len(rows):
                part = Moments.of(rows.detach())
                moments = part if moments is None else moments.merge(part)
        if processes and rows is not None:
            moments = all_moments(moments, like=rows)
    if moments is None or moments.count < 2:
        n = moments.count if moments else 0
        raise InputError(
            f"has {'1 vector that counts' if n == 1 else f'{n} vectors that count'}",
            argument="blocks",
            wanted="at least 2",
        )
    return moments


def _limited(blocks: Iterable[Any], limit: int | None, layers: Sequence[int] | None) -> Iterator[Tensor]:
    left = limit
    for block in blocks:
        states, mask = block if _is_pair(block) else (block, None)
        rows = masked_rows(states, mask, layers)
        yield rows if left is None else rows[:left]
        if left is not None:
            left -= len(rows)
            if left <= 0:
                return


def _is_pair(block: Any) -> bool:
    """(states, mask): two entries, the second of whole numbers or booleans."""
    return (
        isinstance(block, tuple | list)
        and len(block) == 2
        and isinstance(block[1], Tensor)
        and not block[1].is_floating_point()
    )


def _states(model: nn.Module, batches: Iterable[Mapping[str, Any]]) -> Iterator[tuple[States, Tensor]]:
    for found in hidden_states(model, map(_checked, batches)):
        assert found.batch.counted is not None
        yield found.hidden, found.batch.counted


def _checked(batch: Mapping[str, Any]) -> Mapping[str, Any]:
    if "attention_mask" not in batch:
        raise InputError(
            f"A batch has no attention_mask, only {', '.join(sorted(batch))}",
            wanted="a mask that is 1 where a token counts",
        )
    return batch
