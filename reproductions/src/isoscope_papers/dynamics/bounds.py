"""Equations 12 to 17 of Xiao, Long and Al Moubayed 2023 in closed form: what the ≈ of the last one is worth.

With all n − 1 negatives at cosine c and the positive at cosine s, equation 12 is

    ℓ(τ) = log(1 + (n − 1)·e^{−(s − c)/τ})

upper: c = 0 (equation 15); lower: c = −1 (equation 16). The paper writes the lower one's exponent 2s/τ, where
it is (s + 1)/τ, and concludes ℓ_lower(2τ) ≈ ℓ_upper(τ) (equation 17):

    ℓ_lower(2τ) = log(1 + (n − 1)·e^{−(s + 1)/(2τ)}),   ℓ_upper(τ) = log(1 + (n − 1)·e^{−s/τ})

Equal at s = 1, for every τ and n. Below, the left side is the smaller one, and while both are small their
ratio is e^{−(1 − s)/(2τ)}, whatever n is: the ≈ asks for 1 − s well under 2τ.
"""

from __future__ import annotations

import math

from isoscope.errors import InputError


def contrastive_loss(temperature: float, n: int, *, positive: float = 1.0, negative: float = 0.0) -> float:
    """Equation 12 with every negative at one cosine: log(1 + (n − 1)·e^{−(s − c)/τ}), n the batch size.

    >>> round(contrastive_loss(1.0, 2, positive=0.5, negative=0.5), 6)  # a toss-up: log 2
    0.693147
    """
    if not (temperature > 0 and math.isfinite(temperature)):
        raise InputError(f"temperature is {temperature!r}; wanted a number above 0")
    if n < 2:
        raise InputError(f"n is {n}; wanted a batch of at least 2: one pair has no negatives")
    exponent = math.log(n - 1) - (positive - negative) / temperature
    return exponent + math.log1p(math.exp(-exponent)) if exponent > 0 else math.log1p(math.exp(exponent))


def upper_loss(temperature: float, n: int, *, positive: float = 1.0) -> float:
    """Equation 15: negatives at right angles."""
    return contrastive_loss(temperature, n, positive=positive)


def lower_loss(temperature: float, n: int, *, positive: float = 1.0) -> float:
    """Equation 16's first line: negatives opposite to the anchor."""
    return contrastive_loss(temperature, n, positive=positive, negative=-1.0)


def lower_loss_approximation(temperature: float, n: int, *, positive: float = 1.0) -> float:
    """Equation 16's last line, (s + 1)/τ written as 2s/τ; exact at s = 1, too high below."""
    return contrastive_loss(temperature, n, positive=2 * positive)


def attainable_loss(temperature: float, n: int, *, positive: float = 1.0) -> float:
    """The lowest loss all n anchors of a batch can have at once, in n − 1 dimensions or more.

    n unit vectors have a mean cosine of −1/(n − 1) at the least: opposite to one anchor, negatives are not
    opposite to each other. So c = −1 can be had by one anchor, c = −1/(n − 1) by all.
    """
    return contrastive_loss(temperature, n, positive=positive, negative=-1 / (n - 1))


def doubling_ratio(temperature: float, n: int, *, positive: float = 1.0) -> float:
    """ℓ_lower(2τ)/ℓ_upper(τ): 1 where equation 17 is exact.

    >>> doubling_ratio(0.05, 64), round(doubling_ratio(0.05, 64, positive=0.9), 3)  # e⁻¹ = 0.368
    (1.0, 0.368)
    """
    return lower_loss(2 * temperature, n, positive=positive) / upper_loss(temperature, n, positive=positive)


def thrust(temperature: float, n: int, *, positive: float = 1.0, negative: float = 0.0) -> float:
    """∂ℓ/∂c over all negatives together: how hard the loss pushes them, (1 − e^{−ℓ})/τ.

    Where two losses are equal at τ and 2τ, the second pushes half as hard.
    """
    return -math.expm1(-contrastive_loss(temperature, n, positive=positive, negative=negative)) / temperature
