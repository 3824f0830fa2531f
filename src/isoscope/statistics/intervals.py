"""95 % intervals of shares: Wilson's, that of Clopper and Pearson, and Newcombe's of a difference."""

from __future__ import annotations

import math

Z95 = 1.959963984540054  # 97.5 % of a normal distribution lie below
_TAIL = 0.025


def wilson(share: float, n: float, *, variance: float | None = None) -> tuple[float, float]:
    """Return the 95 % interval of a share of n trials (Wilson 1927).

    Args:
        share: from 0 to 1.
        n: the number of trials.
        variance: of one trial; by default that of yes and no, share·(1 − share).

    >>> [round(end, 3) for end in wilson(0.5, 100)]
    [0.404, 0.596]
    """
    z = Z95**2 / n
    middle = (share + z / 2) / (1 + z)
    spread = share * (1 - share) if variance is None else variance
    half = Z95 / (1 + z) * math.sqrt(spread / n + z / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def clopper_pearson(count: int, n: int) -> tuple[float, float]:
    """Return the exact 95 % interval of the share count/n (Clopper and Pearson 1934).

    >>> [round(end, 4) for end in clopper_pearson(8, 10)]
    [0.4439, 0.9748]
    """
    from scipy.special import betaincinv  # scipy.stats takes seconds to import

    low = float(betaincinv(count, n - count + 1, _TAIL)) if count else 0.0
    return low, float(betaincinv(count + 1, n - count, 1 - _TAIL)) if count < n else 1.0


def newcombe(a: int, n: int, b: int, m: int) -> tuple[float, float]:
    """Return the 95 % interval of b/m − a/n, from Wilson's intervals of both (Newcombe 1998).

    >>> low, high = newcombe(5, 100, 20, 100)
    >>> round(low, 3), round(high, 3)
    (0.059, 0.243)
    """
    p, q = a / n, b / m
    (p_low, p_high), (q_low, q_high) = wilson(p, n), wilson(q, m)
    difference = q - p
    return (
        difference - math.hypot(q - q_low, p_high - p),
        difference + math.hypot(q_high - q, p - p_low),
    )
