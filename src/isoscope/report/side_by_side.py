"""Metrics of a space after each correction, side by side."""

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
from isoscope.tables import percent

MOST_ROWS = 20_000  # corrected and measured; of more rows a random sample
METRICS = ("isoscore", "mean_cosine", "effective_rank", "silhouette")


def side_by_side(shelf: Statistics, *, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
    """Return some metrics of a space without a correction, and after each one."""
    if len(shelf.space) > MOST_ROWS:
        generator = torch.Generator().manual_seed(shelf.seed)
        rows = torch.randperm(len(shelf.space), generator=generator)[:MOST_ROWS].sort().values
        shelf = Statistics(shelf.space.take(rows), seed=shelf.seed)
    space = shelf.space
    corrections = _corrections(space.n_dims)
    policy = silhouette_policy(len(space), times=len(corrections))
    tolerance = None if policy.exact or space.labels is None else float(f"{policy.tolerance:.1e}")
    before = _geometry(shelf, None if "separation" in vars(shelf) else tolerance)
    measured: list[dict[str, Any]] = [{"name": "uncorrected", "what": "the vectors as they are", **before}]
    for done, (name, what, correction) in enumerate(corrections):
        if progress is not None:
            progress(done / len(corrections))
        row: dict[str, Any] = {"name": name, "what": what}
        try:
            corrected = torch.as_tensor(correction.fit(space.vectors).transform(space.vectors))
            # centring does not change metrics that are invariant to translation
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
    removed = f"the {k} strongest directions are" if k > 1 else "the strongest direction is"
    return [
        ("Center", "the mean is subtracted", Center()),
        ("Standardize", "every dimension gets mean 0 and variance 1", Standardize()),
        (f"AllButTheTop({k})", f"the mean is subtracted, {removed} removed", AllButTheTop(k)),
        (
            "Whiten(strength=0.5)",
            "the mean is subtracted, variances are made more equal",
            Whiten(strength=0.5),
        ),
        ("Whiten()", "the mean is subtracted, all variances are made equal", Whiten()),
        ("Normalize", "every vector is scaled to length 1", Normalize()),
    ]


def _regularized(correction: Any) -> str:
    """Return a note where the covariance was regularised, because variances do not become equal then."""
    share = float(getattr(correction, "regularization_", 0.0))
    return (
        f"; the covariance is regularised by {percent(share, 1)}, because some directions have no variance"
        if share
        else ""
    )


def _geometry(
    shelf: Statistics, tolerance: float | None, known: dict[str, float | None] | None = None
) -> dict[str, float | None]:
    """Return the metrics of a shelf; the silhouette is estimated where a tolerance is given."""
    computed = dict(known or {})
    wanted = [name for name in METRICS if name not in computed]
    if shelf.space.labels is None:
        wanted.remove("silhouette")
    elif tolerance is not None and "silhouette" in wanted:
        wanted.remove("silhouette")
        try:
            estimate = estimate_silhouette(shelf.space, tolerance=tolerance, seed=shelf.seed)
            computed["silhouette"] = estimate.value
        except (InputError, UndefinedError):
            computed["silhouette"] = None
    computed |= values(shelf, wanted)
    return {name: computed[name] for name in METRICS if name in computed}
