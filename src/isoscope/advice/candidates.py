"""The corrections that are tried, with settings that suit the number of rows and dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from isoscope.advice.tasks import split_names
from isoscope.errors import InputError

NONE = "none"
DESCRIPTIONS = {
    "center": "the mean taken off",
    "standardize": "every dimension to variance 1",
    "normalize": "every vector to length 1",
    "remove_dimensions": "the dimensions that add most to the mean cosine taken away",
    "all_but_the_top": "centred, the strongest directions taken out",
    "whiten_soft": "whitened half way: eigenvalues to the power −1/4",
    "whiten_reduced": "whitened, the strongest half of the directions kept",
    "whiten": "whitened",
    "cluster_center": "each k-means cluster centred by itself",
    "clusterwise_all_but_the_top": "each k-means cluster centred, its strongest directions taken out",
}
_ROWS_A_CLUSTER = 40  # at least, on average, for k-means to find something
_MAX_CLUSTERS = 8


def default_corrections(n_rows: int, n_dims: int) -> dict[str, Any]:
    """Return the corrections by name, unfitted, for n rows to fit on."""
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
    found: dict[str, Any] = {
        "center": Center(),
        "standardize": Standardize(),
        "normalize": Normalize(),
        "remove_dimensions": RemoveDimensions(min(top, n_dims - 1)),
        "all_but_the_top": AllButTheTop(top),
        "whiten_soft": Whiten(strength=0.5),
        "whiten": Whiten(),
    }
    if n_dims >= 4:
        found["whiten_reduced"] = Whiten(n_dims // 2)
    if n_clusters > 1:
        found["cluster_center"] = ClusterCenter(n_clusters)
        found["clusterwise_all_but_the_top"] = ClusterwiseAllButTheTop(n_clusters, top, small="keep")
    return {name: found[name] for name in DESCRIPTIONS if name in found}


def chosen_corrections(
    corrections: Iterable[str] | Mapping[str, Any] | None, n_rows: int, n_dims: int
) -> dict[str, Any]:
    """Return the corrections asked for by name, the caller's own, or all."""
    known = default_corrections(n_rows, n_dims)
    if corrections is None:
        return known
    if isinstance(corrections, Mapping):
        if NONE in corrections:
            raise InputError(
                f"has {NONE!r}, which is what all others are held against: leave it out",
                argument="corrections",
            )
        for name, correction in corrections.items():
            if not (hasattr(correction, "fit") and hasattr(correction, "transform")):
                raise InputError(
                    f"corrections[{name!r}] is a {type(correction).__name__}; wanted fit and transform"
                )
        return dict(corrections)
    names = split_names(corrections)
    for name in names:
        if name not in known:
            raise InputError(f"correction {name!r} is not known; wanted some of {', '.join(known)}")
    if not names:
        raise InputError(f"is empty; wanted some of {', '.join(known)}", argument="corrections")
    return {name: known[name] for name in names}
