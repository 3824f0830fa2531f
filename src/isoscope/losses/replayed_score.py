"""The score of a batch on CUDA and its gradient in one recording of launches, read back once.

At the size of a batch the launches of a penalty take longer than its kernels. So the score and its gradient
are computed together, whether or not the gradient is asked for, by functions that wait for nothing and depend
on nothing but the shape of the batch: rows that do not count have weight 0, and batches are padded to one of
four sizes an octave. Numbers that tell whether float32 was enough come back with the score; where it was not,
the score is computed as everywhere else, with its checks and errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from isoscope.kernels.precision import float32_suits, full_precision
from isoscope.kernels.products import product_of_runs, sum_of_squares, weighted_sums
from isoscope.kernels.recorded import MOST_NUMBERS, replayed
from isoscope.losses.score import NO_SQUARE, Shrinkage

_SINGLES = (torch.float32, torch.float16, torch.bfloat16)
_SIZES_AN_OCTAVE = 4
_FAR = 1e6  # squared means of so many variances show the rounding of the mean in the deviations


def replayed_score(
    layers: Sequence[Tensor], mask: Tensor | None, *, shrinkage: Shrinkage | None, debias: bool, least: int
) -> Tensor | None:
    """Return the score of the rows of all layers that the mask counts, differentiable in the layers.

    None where there are fewer than `least` rows or than dimensions, numbers that are not finite, or sums for
    which float32 is not enough. The layers are those that the launches serve.
    """
    with torch.no_grad():
        rows, weights = _padded(layers, mask)
        about: dict[str, Any] = {"debias": debias, "zeta": 0.0, "C0_trace": 0.0, "C0_square": 0.0}
        inputs = [rows, weights]
        if shrinkage is not None:
            about |= {"zeta": shrinkage.zeta, "C0_trace": shrinkage.trace, "C0_square": shrinkage.square}
            inputs.append(shrinkage.covariance)
        if rows.numel() <= MOST_NUMBERS:
            score, gradient, numbers = replayed(score_and_gradient, *inputs, **about)
        else:
            score, gradient, numbers = score_and_gradient(*inputs, **about)
        if not _is_sound(numbers.tolist(), rows.shape[1], least, debias):
            return None
    differentiable: Tensor = _Ready.apply(score, gradient, *layers)  # type: ignore[no-untyped-call]
    return differentiable


def serves(layers: Sequence[Tensor]) -> bool:
    """Return whether there are launches for these layers: for more rows than dimensions, on CUDA."""
    n = sum(math.prod(layer.shape[:-1]) for layer in layers)
    alike = {(layer.device, layer.shape) for layer in layers}
    return (
        _is_on_cuda(layers[0]) and len(alike) == 1 and n > layers[0].shape[-1] > 1
        and all(layer.dtype in _SINGLES for layer in layers)
    )  # fmt: skip


def _is_on_cuda(layer: Tensor) -> bool:
    return layer.is_cuda


def _padded(layers: Sequence[Tensor], mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return (m, d) float32 rows of all layers, padded to a usual size, and (m,) whether each counts."""
    flat = [layer.flatten(0, -2) for layer in layers]
    n_layer, d = flat[0].shape
    n = n_layer * len(flat)
    step = max(1, 2 ** (n.bit_length() - 1) // _SIZES_AN_OCTAVE)
    n_more = -n % step
    rows = torch.cat([*flat, flat[0].new_zeros(n_more, d, dtype=torch.float32)])
    if mask is None:
        counts = rows.new_ones(n)
    else:
        counts = mask.flatten().to(rows.dtype).expand(len(flat), n_layer).reshape(n)
    return rows, torch.nn.functional.pad(counts, (0, n_more))


def _is_sound(numbers: list[float], d: int, least: int, debias: bool) -> bool:
    """Return whether there are rows enough and float32 kept their digits, and no formula is at its border."""
    trace, mean_square, quartic, n, first, second = numbers
    if not (n >= max(least, d) and math.isfinite(sum(numbers))):
        return False
    if n * mean_square > _FAR * trace or not float32_suits(trace, quartic, n, d):
        return False
    return trace > 0 and first > 0 and second > (NO_SQUARE * first if debias else 0.0)


class _Sums(NamedTuple):
    """Sums of n rows U about their mean, float64 but for the rows; `cubic` only where it is used."""

    n: Tensor
    mean: Tensor
    U: Tensor
    scatter: Tensor
    cubic: Tensor
    quartic: Tensor


@full_precision
def score_and_gradient(
    rows: Tensor,
    weights: Tensor,
    covariance: Tensor | None = None,
    *,
    debias: bool,
    zeta: float,
    C0_trace: float,
    C0_square: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the score, its (m, d) gradient, and the numbers that tell whether both can be trusted.

    Those are tr A, ‖mean‖², Σ‖u‖⁴ and n, then the two quantities whose ratio the score is: t and s of
    `shrunk_score`, or the unbiased (tr Σ)² and tr Σ².
    """
    sums, d = _sums(rows, weights, fourth=debias), rows.shape[1]
    trace, square = sums.scatter.trace(), sums.scatter.square().sum()
    if debias:
        score, first, second, slopes = _debiased(sums.n, d, trace, square, sums.quartic)
    else:
        inner = trace * 0 if covariance is None else (sums.scatter * covariance).sum()
        score, first, second, slopes = _shrunk(sums.n, d, trace, square, inner, zeta, C0_trace, C0_square)
    in_trace, in_square, in_quartic, in_inner = slopes
    matrix = sums.scatter * (4 * in_square)
    if covariance is not None:
        matrix = matrix + covariance * (2 * in_inner)
    matrix = matrix + torch.diag_embed((2 * in_trace).expand(d))
    gradient = sums.U @ matrix.to(rows.dtype)
    if debias:
        lengths = sum_of_squares(sums.U)[:, None]
        pull = (4 * in_quartic * sums.cubic / sums.n).to(rows.dtype)
        gradient = gradient + (4 * in_quartic).to(rows.dtype) * lengths * sums.U - weights[:, None] * pull
    numbers = torch.stack([trace, sums.mean @ sums.mean, sums.quartic, sums.n, first, second])
    return score.to(rows.dtype), gradient, numbers


def _sums(rows: Tensor, weights: Tensor, *, fourth: bool) -> _Sums:
    """Return the sums of the rows of weight 1 about their mean, rounded to the type of the rows."""
    n = weights.sum(dtype=torch.float64)
    mean = (weighted_sums(weights[None], rows)[0] / n).to(rows.dtype)
    U = (rows - mean) * weights[:, None]
    squares = sum_of_squares(U)
    wide = squares.double()
    cubic = weighted_sums(squares[None], U)[0] if fourth else mean
    return _Sums(n, mean.double(), U, product_of_runs(U), cubic, wide @ wide)


def _shrunk(
    n: Tensor, d: int, trace: Tensor, square: Tensor, inner: Tensor, zeta: float, t0: float, s0: float
) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
    """`shrunk_score` of numbers on a device."""
    a = (1 - zeta) / (n - 1)
    t = a * trace + zeta * t0
    s = a * a * square + 2 * a * zeta * inner + zeta * zeta * s0
    c = t / s
    in_t, in_s = 2 * c / (d - 1), -c * c / (d - 1)
    return (t * c - 1) / (d - 1), t, s, (a * in_t, a * a * in_s, torch.zeros_like(t), 2 * a * zeta * in_s)


def _debiased(
    n: Tensor, d: int, trace: Tensor, square: Tensor, quartic: Tensor
) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
    """`debiased_score` of numbers on a device."""
    f, q = square / trace / trace, quartic / trace / trace
    first = (2 * f + n * n - 3 * n + 1) / (n - 1) ** 2 - n * q / (n - 1)
    second = (n - 2) * f / (n - 1) + 1 / (n - 1) ** 2 - n * q / (n - 1)
    ratio, unit = first / second, 1 / (second * (d - 1))
    in_f = unit * (2 / (n - 1) ** 2 - ratio * (n - 2) / (n - 1))
    in_q = unit * (ratio - 1) * n / (n - 1)
    in_trace = -2 * (f * in_f + q * in_q) / trace
    slopes = (in_trace, in_f / trace / trace, in_q / trace / trace, torch.zeros_like(trace))
    return (ratio - 1) / (d - 1), first, second, slopes


class _Ready(torch.autograd.Function):
    """A score whose gradient is there already."""

    @staticmethod
    def forward(ctx: Any, score: Tensor, gradient: Tensor, *layers: Tensor) -> Tensor:
        ctx.gradient, ctx.shape = gradient, layers[0].shape
        ctx.dtypes = [layer.dtype for layer in layers]
        return score.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        n_layer, d = math.prod(ctx.shape[:-1]), ctx.shape[-1]
        gradient = ctx.gradient[: n_layer * len(ctx.dtypes)] * upstream
        parts = gradient.view(len(ctx.dtypes), n_layer, d).unbind()
        return (
            None,
            None,
            *(part.view(ctx.shape).to(dtype) for part, dtype in zip(parts, ctx.dtypes, strict=True)),
        )
