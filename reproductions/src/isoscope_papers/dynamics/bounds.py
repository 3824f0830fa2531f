"""Equations 12 to 17 of Xiao, Long and Al Moubayed 2023 in closed form: what the ≈ of the last one is worth.

With all n − 1 negatives at cosine c and the positive at cosine s, equation 12 is

    ℓ(τ) = log(1 + (n − 1)·e^{−(s − c)/τ})

upper: c = 0 (equation 15); lower: c = −1 (equation 16). The paper writes the lower one's exponent 2s/τ, where
it is (s + 1)/τ, and concludes ℓ_lower(2τ) ≈ ℓ_upper(τ) (equation 17). They are equal at s = 1, for every τ
and n; below, their ratio is e^{−(1 − s)/(2τ)} while both are small: the ≈ asks for 1 − s well under 2τ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from isoscope.errors import InputError
from isoscope.losses import MultipleNegativesLoss
from isoscope_papers.verdict import Finding, decide, judged

WITHIN = 0.1  # what two figures that are "about" the same may differ by, as a share
_TAU, _N, _S = 0.05, 64, 0.9  # temperature, batch size and positive cosine that the claims are tested at


def contrastive_loss(temperature: float, n: int, *, positive: float = 1.0, negative: float = 0.0) -> float:
    """Return equation 12 with a batch of n and every negative at one cosine.

    >>> round(contrastive_loss(1.0, 2, positive=0.5, negative=0.5), 6)  # a toss-up: log 2
    0.693147
    """
    if not (temperature > 0 and math.isfinite(temperature)):
        raise InputError(argument="temperature", got=temperature, wanted="a positive number")
    if n < 2:
        raise InputError(argument="n", got=n, wanted="at least 2, since one pair has no negatives")
    return float(np.logaddexp(0, math.log(n - 1) - (positive - negative) / temperature))


upper_loss = partial(contrastive_loss, negative=0.0)  # equation 15: negatives at right angles
lower_loss = partial(contrastive_loss, negative=-1.0)  # equation 16's first line: opposite to the anchor


def attainable_loss(temperature: float, n: int) -> float:
    """Return the lowest loss all n anchors of a batch can have at once, in n − 1 dimensions or more.

    n unit vectors have a mean cosine of −1/(n − 1) at the least: one anchor can have all negatives opposite
    to it, and not all anchors at once.
    """
    return contrastive_loss(temperature, n, negative=-1 / (n - 1))


def doubling_ratio(temperature: float, n: int, *, positive: float = 1.0) -> float:
    """Return ℓ_lower(2τ)/ℓ_upper(τ): 1 where equation 17 is exact.

    >>> doubling_ratio(0.05, 64), round(doubling_ratio(0.05, 64, positive=0.9), 3)  # e⁻¹ = 0.368
    (1.0, 0.368)
    """
    return lower_loss(2 * temperature, n, positive=positive) / upper_loss(temperature, n, positive=positive)


def equation_17_room() -> float:
    """Return the largest (1 − s)/τ, in hundredths, up to which the two sides of equation 17 are about equal.

    >>> equation_17_room()
    0.21
    """
    shares = (place / 100 for place in range(100))
    return max(x for x in shares if _about(doubling_ratio(_TAU, _N, positive=1 - x * _TAU), 1))


def thrust(temperature: float, n: int, *, negative: float = 0.0) -> float:
    """Return how hard the loss pushes all negatives together at s = 1: ∂ℓ/∂c = (1 − e^{−ℓ})/τ."""
    return -math.expm1(-contrastive_loss(temperature, n, negative=negative)) / temperature


def hardness(temperature: float, first: float, second: float) -> float:
    """Return how many times harder a negative at the first cosine is pushed than one at the second."""
    return math.exp((first - second) / temperature)


def findings() -> Iterator[Finding]:
    """Yield what closed forms say of the paper's equations."""
    term = hardness(_TAU, 0.0, 1.0)
    ours = f"at τ = 0.05 the term of a negative at cosine 0 is {term:.1e} of the positive's, below it less"
    yield decide("temperature-range", term < 1e-6, ours)
    square = torch.eye(_N, dtype=torch.float64)  # anchors at right angles to all negatives
    # equation 16 writes (s + 1)/τ as 2s/τ: a negative at 0 and the positive at 2s
    exact, written = lower_loss(_TAU, _N, positive=_S), upper_loss(_TAU, _N, positive=2 * _S)
    parts = {
        "equation 15": _about(MultipleNegativesLoss(_TAU)(square, square).item(), upper_loss(_TAU, _N)),
        "equation 16 at s = 1": _about(upper_loss(_TAU, _N, positive=2.0), lower_loss(_TAU, _N)),
        "equation 16 below": _about(written, exact),
    }
    ours = f"its last step (s + 1)/τ ≈ 2s/τ turns {exact:.2e} into {written:.2e} at τ = 0.05, n = 64, s = 0.9"
    yield decide("loss-bounds", parts, ours)
    ratios = {f"s = {s:g}": doubling_ratio(_TAU, _N, positive=s) for s in (1.0, 0.95, 0.9)}
    verdict, condition = judged({s: _about(ratio, 1) for s, ratio in ratios.items()})
    if condition:
        condition = f"for 1 − s ≤ {equation_17_room():g}·τ, within {100 * WITHIN:g} %"
    ours = ", ".join(f"{ratio:.3f} at {s}" for s, ratio in ratios.items())
    yield decide("equation-17", (verdict, condition), f"ratio at τ = 0.05, n = 64: {ours}")
    push = thrust(2 * _TAU, _N, negative=-1.0) / thrust(_TAU, _N)
    ours = f"at s = 1 the negatives are pushed {push:.2f} times as hard"
    yield decide("double-temperature", _about(push, 1), f"{ours} at 2τ and cosine −1 as at τ and cosine 0")
    cold, warm = hardness(0.025, 0.8, 0.2), hardness(1.0, 0.8, 0.2)
    ours = f"cosine 0.8 against 0.2: {cold:.1e} times the gradient at τ = 0.025, {warm:.1f} times at τ = 1"
    yield decide("hard-negatives", cold > 10 * warm, ours)
    flat = {f"{tau:g}": hardness(tau, 0.0, -1.0) for tau in (0.025, 0.05, 0.1, 1.0)}
    ours = ", ".join(f"{ratio:.1e} at τ = {tau}" for tau, ratio in flat.items())
    flat_at = {tau: _about(ratio, 1) for tau, ratio in flat.items()}
    yield decide("flat-gradients", flat_at, f"gradient at cosine 0 over that at −1, e^{{1/τ}}: {ours}")
    shares = []
    for seed in range(100):
        W = np.abs(np.random.default_rng(seed).normal(size=(2 + seed % 20, 8)))
        shares.append(float(np.linalg.eigvalsh(W @ W.T)[-1] / (W @ W.T).sum()))
    ours = f"largest eigenvalue at most {max(shares):.3f} of the sum of entries"
    yield decide("spectrum-bound", max(shares) <= 1, f"{ours}, in 100 random non-negative matrices")


def _about(first: float, second: float) -> bool:
    return abs(first / second - 1) < WITHIN
