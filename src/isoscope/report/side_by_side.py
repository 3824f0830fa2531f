"""Corrections side by side: how each would move the geometry of this space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import InputError, UndefinedError
from isoscope.labels import Labels
from isoscope.metrics.cosine import mean_cosine
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.silhouette_estimate import estimate_silhouette
from isoscope.metrics.silhouettes import silhouette_score
from isoscope.metrics.spectrum import effective_rank
from isoscope.space import Space
from isoscope.statistics.moments import Moments

MOST_ROWS = 20_000  # corrected and measured; a sample stands for more
EXACT_ROWS = 5_000  # up to here silhouettes are exact: seven of them take a second or two
TOLERANCE = 0.002  # half the interval of a silhouette beyond


def side_by_side(
    X: Any, labels: Labels | None, *, seed: int = 0, progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """IsoScore, mean cosine, effective rank and silhouette, as it is and after each correction."""
    matrix = as_matrix(X).detach()
    rows = _sample(len(matrix), seed)
    if rows is not None:
        matrix = matrix[rows.to(matrix.device)]
        labels = None if labels is None else Labels(labels.codes[rows.to(labels.codes.device)], labels.names)
    corrections = _corrections(matrix.shape[1])
    before: dict[str, Any] = {"name": "as it is", "what": "no correction"}
    measured = [before | _geometry(matrix, labels, seed)]
    for done, (name, what, correction) in enumerate(corrections):
        if progress is not None:
            progress(done / len(corrections))
        row: dict[str, Any] = {"name": name, "what": what}
        try:
            row |= _geometry(torch.as_tensor(correction.fit(matrix).transform(matrix)), labels, seed)
            row["what"] += _regularized(correction)
        except (InputError, UndefinedError) as error:
            row["why_not"] = str(error)
        measured.append(row)
    estimated = labels is not None and len(matrix) > EXACT_ROWS
    return {
        "rows": measured,
        "n": len(matrix),
        "has_labels": labels is not None,
        "tolerance": TOLERANCE if estimated else None,
    }


def _corrections(d: int) -> list[tuple[str, str, Any]]:
    from isoscope.corrections import AllButTheTop, Center, Normalize, Standardize, Whiten

    k = max(1, d // 100)
    return [
        ("Center", "the mean subtracted", Center()),
        ("Standardize", "every dimension with mean 0 and variance 1", Standardize()),
        (
            f"AllButTheTop({k})",
            f"centred, the {k} strongest directions removed"
            if k > 1
            else "centred, the strongest direction removed",
            AllButTheTop(k),
        ),
        ("Whiten(strength=0.5)", "centred, variances brought halfway to equal", Whiten(strength=0.5)),
        ("Whiten()", "centred, all variances equal", Whiten()),
        ("Normalize", "every vector with length 1", Normalize()),
    ]


def _regularized(correction: Any) -> str:
    """Where a covariance had to be shrunk, variances do not become equal: the row says so."""
    share = float(getattr(correction, "regularization_", 0.0))
    return f"; shrunk by {share:.1%} first, as some directions hold no variance" if share else ""


def _geometry(X: Tensor, labels: Labels | None, seed: int) -> dict[str, float | None]:
    moments = Moments.of(X)
    row: dict[str, float | None] = {
        "isoscore": _or_none(lambda: float(isoscore(moments))),
        "mean_cosine": _or_none(lambda: float(mean_cosine(X))),
        "effective_rank": _or_none(lambda: float(effective_rank(moments))),
    }
    if labels is not None:
        row["silhouette"] = _or_none(lambda: _silhouette(X, labels, seed))
    return row


def _silhouette(X: Tensor, labels: Labels, seed: int) -> float:
    if len(X) <= EXACT_ROWS:
        return float(silhouette_score(X, labels))
    return estimate_silhouette(Space(X, labels=labels), tolerance=TOLERANCE, seed=seed).value


def _or_none(compute: Callable[[], float]) -> float | None:
    try:
        return compute()
    except (InputError, UndefinedError):
        return None


def _sample(n: int, seed: int) -> Tensor | None:
    if n <= MOST_ROWS:
        return None
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:MOST_ROWS].sort().values
