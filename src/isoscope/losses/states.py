"""What a loss is taken of: the border between a model's outputs and (n, d) rows."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import working
from isoscope.errors import InputError, Setting, ShapeError
from isoscope.labels import Labels, as_labels

States = Tensor | Sequence[Tensor]
_WANTED_STATES = "a torch tensor of shape (n, d) or (B, T, d), or a sequence of them with one entry per layer"
_SINGLE = torch.finfo(torch.float32)  # losses of half precision and of float32 are reckoned in it


def masked_rows(states: States, mask: Tensor | None, layers: Sequence[int] | None) -> Tensor:
    """(n, d) the vectors that count: of one tensor, or of the chosen layers one after another.

    Args:
        states: (n, d) vectors, (B, T, d) token states, or a sequence of either, one entry a layer from
            the embedding layer up.
        mask: (n,) or (B, T), true or 1 where a vector counts. Token states need one.
        layers: which entries of the sequence; None is all but the first, the embedding layer.
    """
    return _joined(*checked_layers(states, mask, layers))


def checked_layers(
    states: States, mask: Tensor | None, layers: Sequence[int] | None
) -> tuple[list[Tensor], Tensor | None]:
    """Return the chosen layers, checked to be of one shape, and the mask as bool; see `masked_rows`."""
    if isinstance(states, Tensor):
        if layers is not None:
            raise InputError(
                "is one tensor",
                argument="states",
                wanted="a sequence with one entry per layer",
                hint=Setting("layers", verb="leave out"),
            )
        return [states], _checked_mask(states, mask)
    chosen = chosen_layers(states, layers)
    shapes = {tuple(one.shape) for one in chosen}
    if len(shapes) > 1:
        raise ShapeError(
            f"has layers of shapes {sorted(shapes)}", argument="states", wanted="the same shape for each"
        )
    return chosen, _checked_mask(chosen[0], mask)


def chosen_layers(states: Sequence[Tensor], layers: Sequence[int] | None) -> list[Tensor]:
    """Return the chosen entries, or all but the first, after checking that each is a tensor."""
    if not isinstance(states, Sequence):  # an array of NumPy would be walked through row by row
        raise InputError(f"is of type {type(states).__name__}", argument="states", wanted=_WANTED_STATES)
    states = list(states)
    if layers is None:
        above = _check_tensors(states[1:] or states)
        if len(states) < 2:
            raise ShapeError(
                f"has length {len(states)}",
                argument="states",
                wanted="the embedding layer and at least one layer above it",
                hint=["pass the tensor itself", Setting("layers", to="choose the entries")],
            )
        return above
    try:
        return _check_tensors([states[layer] for layer in layers])
    except IndexError:
        raise ShapeError(
            argument="layers", got=list(layers), wanted=f"indices of `states`, which has length {len(states)}"
        ) from None


def _check_tensors(layers: list[Any]) -> list[Tensor]:
    for layer in layers:
        if not isinstance(layer, Tensor):
            raise InputError(
                f"has an entry of type {type(layer).__name__}", argument="states", wanted=_WANTED_STATES
            )
    return layers


def _checked_mask(states: Tensor, mask: Tensor | None) -> Tensor | None:
    if states.ndim not in (2, 3) or states.shape[-1] == 0:
        raise ShapeError(
            f"has shape {tuple(states.shape)}",
            argument="states",
            wanted="vectors of shape (n, d) or token states of shape (B, T, d)",
        )
    if not states.is_floating_point():
        raise InputError(f"is of {states.dtype}", argument="states", wanted="floating-point numbers")
    if mask is None:
        if states.ndim == 3:
            raise InputError(
                f"is missing for token states of shape {tuple(states.shape)}",
                argument="mask",
                wanted=f"a tensor of shape {tuple(states.shape[:2])} that is true where a token counts",
                hint="pass the attention mask, or ones if there is no padding",
            )
        return None
    if not isinstance(mask, Tensor):
        raise InputError(
            f"is of type {type(mask).__name__}",
            argument="mask",
            wanted=f"a torch tensor of shape {tuple(states.shape[:-1])} that is true where a vector counts",
        )
    if mask.is_floating_point() or mask.is_complex():
        raise InputError(
            f"is of {mask.dtype}",
            argument="mask",
            wanted="true or 1 where a vector counts, and false or 0 elsewhere",
        )
    if mask.shape != states.shape[:-1]:
        raise ShapeError(
            f"has shape {tuple(mask.shape)}",
            argument="mask",
            wanted=f"{tuple(states.shape[:-1])}, one entry per vector",
        )
    return mask.to(states.device).bool()


def _joined(layers: list[Tensor], mask: Tensor | None) -> Tensor:
    """(n, d) the rows of all layers where the mask is true, one layer after another."""
    if mask is None and len(layers) == 1:
        return layers[0]
    places = None if mask is None else mask.flatten().nonzero().flatten()
    if places is not None and mask is not None and len(places) == mask.numel():
        places = None
    rows: Tensor = _Joined.apply(places, *layers)  # type: ignore[no-untyped-call]
    return rows


class _Joined(torch.autograd.Function):
    """Rows gathered into one tensor; a row is taken once, so the way back is a copy and not a sum.

    Layers may differ in type, as under autocast: the widest holds all.
    """

    @staticmethod
    def forward(ctx: Any, places: Tensor | None, *layers: Tensor) -> Tensor:
        ctx.places, ctx.shape = places, layers[0].shape
        ctx.kinds = [(layer.dtype, layer.device) for layer in layers]
        widest = functools.reduce(torch.promote_types, (layer.dtype for layer in layers))
        n = math.prod(ctx.shape[:-1]) if places is None else len(places)
        rows = layers[0].new_empty(len(layers), n, ctx.shape[-1], dtype=widest)
        for part, layer in zip(rows, layers, strict=True):
            flat = layer.reshape(-1, ctx.shape[-1])
            part.copy_(flat if places is None else flat.index_select(0, places.to(flat.device)))
        return rows.flatten(0, 1)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        parts = slopes[0].view(len(ctx.kinds), -1, ctx.shape[-1])
        if ctx.places is not None:
            everywhere = parts.new_zeros(len(ctx.kinds), math.prod(ctx.shape[:-1]), ctx.shape[-1])
            parts = everywhere.index_copy_(1, ctx.places, parts)
        return None, *(
            part.view(ctx.shape).to(dtype=dtype, device=device)
            for part, (dtype, device) in zip(parts, ctx.kinds, strict=True)
        )


def check_count(n: int, least: int, what: str, mask: Tensor | None = None) -> None:
    """Raise InputError unless there are so many vectors."""
    if n >= least:
        return
    if n == 0 and mask is not None:
        raise InputError(
            "is false for every vector", argument="mask", wanted=f"at least {least} that count for {what}"
        )
    vectors = "1 vector" if n == 1 else f"{n} vectors"
    raise InputError(
        f"{what} of {vectors} is undefined", wanted=f"at least {least}", hint="use a larger batch"
    )


def as_rows(X: Any, name: str) -> Tensor:
    """(n, d) vectors in their working type: half precision is lifted to float32."""
    if not isinstance(X, Tensor) or not X.is_floating_point():
        got = X.dtype if isinstance(X, Tensor) else f"type {type(X).__name__}"
        raise InputError(
            f"is of {got}", argument=name, wanted="a torch tensor of floating-point numbers, (n, d)"
        )
    if X.ndim != 2 or X.shape[1] == 0:
        raise ShapeError(
            f"has shape {tuple(X.shape)}", argument=name, wanted="two axes (n, d), one vector per row"
        )
    return working(X)


def matching_rows(**named: Any) -> list[Tensor]:
    """Several (n, d) tensors of one shape, in their working type."""
    rows = [as_rows(X, name) for name, X in named.items()]
    first = next(iter(named))
    for name, other in zip(named, rows, strict=True):
        if other.shape != rows[0].shape:
            raise ShapeError(
                f"has shape {tuple(other.shape)}",
                argument=name,
                wanted=f"{tuple(rows[0].shape)}, as `{first}` has",
            )
    return rows


def units(rows: Tensor) -> tuple[Tensor, Tensor]:
    """(n, d) unit vectors and (n,) whether there is a direction; a zero vector stays zero, its slope too."""
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    present = lengths > 0
    scale = torch.where(present, 1 / torch.where(present, lengths, 1.0), 0.0)
    return rows * scale, present.squeeze(1)


def label_codes(labels: Any, n: int, device: torch.device) -> Tensor:
    """(n,) whole numbers, one for each label. Tensors of whole numbers mean the same on every process."""
    if isinstance(labels, Tensor) and not labels.is_floating_point() and labels.ndim == 1:
        if len(labels) != n:
            raise ShapeError(
                f"has {len(labels)} entries for {n} vectors", argument="labels", wanted="one for each"
            )
        return labels.to(device)
    coded: Labels = as_labels(labels, n=n)
    return coded.codes.to(device)


def as_number(value: Any, name: str, *, positive: bool = False) -> float:
    """Return the value as a float, or raise InputError unless float32 can represent it."""
    wanted = "a positive number" if positive else "a finite number"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(argument=name, got=value, wanted=wanted)
    limits = f"from {_SINGLE.tiny:.2g} to" if positive else "of at most"
    in_range = f"{wanted} {limits} {_SINGLE.max:.2g}, the range of float32"
    try:
        number = float(value)
    except OverflowError:
        raise InputError("has hundreds of digits", argument=name, wanted=in_range) from None
    if not math.isfinite(number) or (positive and number <= 0):
        raise InputError(argument=name, got=value, wanted=wanted)
    if abs(number) > _SINGLE.max or (positive and number < _SINGLE.tiny):
        raise InputError(argument=name, got=value, wanted=in_range)
    return number
