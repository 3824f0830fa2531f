"""The clusters of two samples together: which came, which went, and what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.clustering import kmeans
from isoscope.engine.slices import holm
from isoscope.errors import UndefinedError
from isoscope.results import plain
from isoscope.statistics.intervals import newcombe

_EACH = 30  # rows of a cluster, on average
_MOST_CLUSTERS = 20
_EXAMPLES = 3
_LEVEL = 0.05


@dataclass(frozen=True)
class ClusterChange:
    """A cluster of both samples together.

    Attributes:
        cluster: its number.
        n_a, n_b: its rows of A and of B.
        share_a, share_b: its shares of A and of B.
        interval: the 95 % interval of the difference share_b − share_a (Newcombe).
        p_value: of equal shares (Fisher's exact test), adjusted by Holm's method for the number of clusters.
        texts: of the rows nearest to its centre, from the sample of which it has the larger share.
    """

    cluster: int
    n_a: int
    n_b: int
    share_a: float
    share_b: float
    interval: tuple[float, float]
    p_value: float
    texts: tuple[str, ...] = ()

    @property
    def difference(self) -> float:
        """The share of B minus the share of A."""
        return self.share_b - self.share_a

    @property
    def changed(self) -> bool:
        """Whether the adjusted p-value is below 0.05."""
        return self.p_value < _LEVEL

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values."""
        return {**plain(vars(self)), "difference": self.difference}


def cluster_changes(
    A: Tensor,
    B: Tensor,
    texts: tuple[Sequence[str] | None, Sequence[str] | None],
    *,
    n_clusters: int | None,
    seed: int,
) -> list[ClusterChange]:
    """Return the clusters of both samples together, the largest change first.

    Args:
        A, B: (n, d) and (m, d) vectors.
        texts: those of A and of B, where they are known.
        n_clusters: how many; by default one for every 30 rows, at most 20.
        seed: of k-means.
    """
    rows = torch.cat([A, B.to(A)])
    k = n_clusters or max(2, min(_MOST_CLUSTERS, len(rows) // _EACH))
    try:
        found = kmeans(rows, min(k, len(rows)), seed=seed)
    except UndefinedError:
        return []
    codes = found.labels.codes.cpu()
    sides = codes[: len(A)], codes[len(A) :]
    sizes = [torch.bincount(side, minlength=found.n_clusters).tolist() for side in sides]
    p_values = holm([_fisher(a, len(A), b, len(B)) for a, b in zip(*sizes, strict=True)])
    changes = []
    for cluster, (a, b) in enumerate(zip(*sizes, strict=True)):
        shares = a / len(A), b / len(B)
        grown = int(shares[1] > shares[0])
        changes.append(
            ClusterChange(
                cluster, a, b, *shares, newcombe(a, len(A), b, len(B)), p_values[cluster],
                _examples((A, B)[grown], sides[grown] == cluster, found.centers[cluster], texts[grown]),
            )
        )  # fmt: skip
    return sorted(changes, key=lambda one: -abs(one.difference))


def _fisher(a: int, n: int, b: int, m: int) -> float:
    from scipy.stats import fisher_exact

    return float(fisher_exact([[a, n - a], [b, m - b]]).pvalue)


def _examples(rows: Tensor, inside: Tensor, center: Tensor, texts: Sequence[str] | None) -> tuple[str, ...]:
    """Return the texts of the rows of a cluster nearest to its centre, each text once."""
    if texts is None:
        return ()
    places = inside.nonzero().flatten()
    distances = torch.linalg.vector_norm(rows[places.to(rows.device)].double() - center.double(), dim=1)
    ordered = places[distances.argsort().cpu()].tolist()
    return tuple(dict.fromkeys(texts[place] for place in ordered))[:_EXAMPLES]
