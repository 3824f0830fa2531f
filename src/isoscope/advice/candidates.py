"""The corrections that are tried, with settings that suit the number of rows and dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from isoscope.advice.tasks import split_names
from isoscope.errors import InputError, check_choice

NONE = "none"
DESCRIPTIONS = {
    "center": "subtract the mean",
    "standardize": "scale every dimension to variance 1",
    "normalize": "scale every vector to length 1",
    "remove_dimensions": "remove the dimensions that contribute most to the mean cosine",
    "all_but_the_top": "subtract the mean, remove the strongest directions",
    "whiten_soft": "whiten with strength 0.5",
    "whiten_reduced": "whiten, and keep the stronger half of the directions",
    "whiten": "whiten: make all variances equal",
    "cluster_center": "subtract the mean of each k-means cluster",
    "clusterwise_all_but_the_top": "center each k-means cluster, remove its strongest directions",
}
_ROWS_A_CLUSTER = 40  # the fewest, on average
_MAX_CLUSTERS = 8


def default_corrections(n_rows: int, n_dims: int) -> dict[str, Any]:
    """Return the unfitted corrections by name, with settings for this number of rows and dimensions."""
    from isoscope.corrections import (
        AllButTheTop,
        Center,
        ClusterCenter,
        ClusterwiseAllButTheTop,
        Normalize,
        RemoveDimensions,
        Standardize,
        Whiten,
    )

    top = max(1, n_dims // 100)
    n_clusters = max(1, min(_MAX_CLUSTERS, n_rows // _ROWS_A_CLUSTER))
    corrections: dict[str, Any] = {
        "center": Center(),
        "standardize": Standardize(),
        "normalize": Normalize(),
        "remove_dimensions": RemoveDimensions(min(top, n_dims - 1)),
        "all_but_the_top": AllButTheTop(top),
        "whiten_soft": Whiten(strength=0.5),
        "whiten": Whiten(),
    }
    if n_dims >= 4:
        corrections["whiten_reduced"] = Whiten(n_dims // 2)
    if n_clusters > 1:
        corrections["cluster_center"] = ClusterCenter(n_clusters)
        corrections["clusterwise_all_but_the_top"] = ClusterwiseAllButTheTop(n_clusters, top, small="keep")
    return {name: corrections[name] for name in DESCRIPTIONS if name in corrections}


def chosen_corrections(
    corrections: Iterable[str] | Mapping[str, Any] | None, n_rows: int, n_dims: int
) -> dict[str, Any]:
    """Return the corrections with these names, those of the caller, or all."""
    known = default_corrections(n_rows, n_dims)
    if corrections is None:
        return known
    if isinstance(corrections, Mapping):
        if NONE in corrections:
            raise InputError(
                f"must not have {NONE!r}, which is always tried", argument="corrections", hint="leave it out"
            )
        for name, correction in corrections.items():
            if not (hasattr(correction, "fit") and hasattr(correction, "transform")):
                raise InputError(
                    f"corrections[{name!r}] must have the methods fit and transform, "
                    f"got {type(correction).__name__}"
                )
        return dict(corrections)
    names = [  # `correct` and `compress` spell them with hyphens
        name.replace("-", "_") if name.replace("-", "_") in known else name
        for name in split_names(corrections)
    ]
    for name in names:
        check_choice("corrections", name, known)
    if not names:
        raise InputError(argument="corrections", got=names, wanted=f"some of {', '.join(known)}")
    return {name: known[name] for name in names}
