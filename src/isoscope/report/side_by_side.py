"""Corrections side by side: how each would change the geometry of this space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from isoscope.engine.measure import values
from isoscope.engine.plan import silhouette_policy
from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.registry import registered
from isoscope.metrics.silhouette_estimate import estimate_silhouette
from isoscope.statistics.gathered import Statistics

MOST_ROWS = 20_000  # corrected and measured; a sample stands for more
METRICS = ("isoscore", "mean_cosine", "effective_rank", "silhouette")  # the columns, by name


def side_by_side(shelf: Statistics, *, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
    """Return some metrics of a space as it is, and after each correction."""
    if len(shelf.space) > MOST_ROWS:
        generator = torch.Generator().manual_seed(shelf.seed)
        rows = torch.randperm(len(shelf.space), generator=generator)[:MOST_ROWS].sort().values
        shelf = Statistics(shelf.space.take(rows), seed=shelf.seed)
    space = shelf.space
    corrections = _corrections(space.n_dims)
    policy = silhouette_policy(len(space), times=len(corrections))
    tolerance = None if policy.exact or space.labels is None else float(f"{policy.tolerance:.1e}")
    before = _geometry(shelf, None if "separation" in vars(shelf) else tolerance)
    measured: list[dict[str, Any]] = [{"name": "as it is", "what": "no correction", **before}]
    for done, (name, what, correction) in enumerate(corrections):
        if progress is not None:
            progress(done / len(corrections))
        row: dict[str, Any] = {"name": name, "what": what}
        try:
            corrected = torch.as_tensor(correction.fit(space.vectors).transform(space.vectors))
            # what moving the origin does not change need not be measured again
            known = {
                metric: value
                for metric, value in before.items()
                if name == "Center" and "translation" in registered()[metric].invariances
            }
            row |= _geometry(Statistics(space.with_vectors(corrected), seed=shelf.seed), tolerance, known)
            row["what"] += _regularized(correction)
        except (InputError, UndefinedError) as error:
            row["why_not"] = error.problem
        measured.append(row)
    return {
        "rows": measured,
        "n": len(space),
        "has_labels": space.labels is not None,
        "tolerance": tolerance,
    }


def _corrections(d: int) -> list[tuple[str, str, Any]]:
    from isoscope.corrections import AllButTheTop, Center, Normalize, Standardize, Whiten

    k = max(1, d // 100)
    removed = f"the {k} strongest directions" if k > 1 else "the strongest direction"
    return [
        ("Center", "the mean subtracted", Center()),
        ("Standardize", "every dimension with mean 0 and variance 1", Standardize()),
        (f"AllButTheTop({k})", f"centred, {removed} removed", AllButTheTop(k)),
        ("Whiten(strength=0.5)", "centred, variances brought halfway to equal", Whiten(strength=0.5)),
        ("Whiten()", "centred, all variances equal", Whiten()),
        ("Normalize", "every vector with length 1", Normalize()),
    ]


def _regularized(correction: Any) -> str:
    """Say where a covariance was shrunk, as variances do not become equal then."""
    share = float(getattr(correction, "regularization_", 0.0))
    return f"; shrunk by {share:.1%} first, as some directions hold no variance" if share else ""


def _geometry(
    shelf: Statistics, tolerance: float | None, known: dict[str, float | None] | None = None
) -> dict[str, float | None]:
    """Read the metrics off a shelf; the silhouette is estimated where a tolerance is given."""
    found = dict(known or {})
    wanted = [name for name in METRICS if name not in found]
    if shelf.space.labels is None:
        wanted.remove("silhouette")
    elif tolerance is not None and "silhouette" in wanted:
        wanted.remove("silhouette")
        try:
            found["silhouette"] = estimate_silhouette(shelf.space, tolerance=tolerance, seed=shelf.seed).value
        except (InputError, UndefinedError):
            found["silhouette"] = None
    found |= values(shelf, wanted)
    return {name: found[name] for name in METRICS if name in found}
