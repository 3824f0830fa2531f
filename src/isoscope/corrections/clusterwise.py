"""`ClusterCenter` and `ClusterwiseAllButTheTop`, which correct each cluster separately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.clustering import kmeans
from isoscope.corrections.border import as_rows, blocks_of, check_taken_out
from isoscope.corrections.correction import Correction, Fitted
from isoscope.corrections.maps import Clusterwise, Map
from isoscope.corrections.scaling import Columns
from isoscope.errors import InputError, Setting, ShapeError, check_seed, check_whole
from isoscope.kernels.precision import full_precision
from isoscope.labels import Labels, as_labels
from isoscope.printable import quoted
from isoscope.statistics.moments import Moments
from isoscope.statistics.principal import Principal

_SAMPLE = 50_000  # rows of a stream for k-means


@dataclass(frozen=True, eq=False)
class _Clusters:
    """The statistic of each cluster, by name."""

    parts: dict[Any, Any]

    @property
    def names(self) -> list[Any]:
        return sorted(self.parts, key=lambda name: (str(type(name)), name))

    def merge(self, other: _Clusters) -> _Clusters:
        parts = dict(self.parts)
        for name, part in other.parts.items():
            parts[name] = parts[name].merge(part) if name in parts else part
        return _Clusters(parts)


class ClusterCenter(Correction):
    """Subtract the mean of each cluster. Differences between clusters vanish, those within clusters stay.

        y = x − m_c,   c the cluster whose centre is nearest to x

    Clusters come from k-means, or from labels given to `fit`. The targets `y` are not used. `transform`
    assigns each vector to the nearest centre.

    Args:
        n_clusters: K of k-means.
        init: (K, d) centres to assign by, instead of k-means.
        seed: seed of k-means.
        n_init: number of k-means runs; the best is used.

    Attributes:
        centers_: (K, d) the centres that vectors are assigned to.
        means_: (K, d) the mean of each cluster, which is subtracted.

    >>> ClusterCenter(2).fit_transform([[0.0], [2.0], [100.0], [104.0]]).tolist()
    [[-1.0], [1.0], [-2.0], [2.0]]
    """

    _axes: ClassVar[dict[str, str]] = {"centers_": "Kd", "means_": "Kd"}
    centers_ = Fitted("(K, d) the centres that vectors are assigned to.")
    means_ = Fitted("(K, d) the mean of each cluster, which is subtracted.")

    def __init__(self, n_clusters: int = 8, *, init: Any = None, seed: int = 0, n_init: int = 1) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.seed = seed
        self.n_init = n_init

    def fit(self, X: Any, y: Any = None, *, labels: Any = None) -> Self:  # noqa: ARG002
        """Fit on (n, d) vectors, with clusters from k-means or from `labels`. `y` is ignored."""
        rows = as_rows(self, X, reset=True)
        self._check_parameters(rows.shape[1])
        self._forget()
        self._take(rows, labels)
        self._solved()
        return self

    def partial_fit(self, X: Any, y: Any = None, *, labels: Any = None) -> Self:  # noqa: ARG002
        """Fit on one more block.

        With labels or `init`, all blocks together give the same result as `fit`. Otherwise k-means uses only
        the first block; `fit_blocks` samples from all of them.
        """
        self._take(self._next_block(X), labels)
        return self

    def fit_blocks(self, source: Any, *, use_labels: bool = False) -> Self:
        """Fit on a stream that can be read twice; k-means uses up to 50,000 rows sampled from all of it.

        Args:
            source: an opened file (`open_vectors`), a list of blocks, or a function that returns an iterator.
            use_labels: use the labels of the blocks as clusters.
        """
        self._forget()
        check_seed(self.seed)
        if not use_labels and self.init is None:
            drawn = _drawn(source, self.seed)
            self._next_block(drawn)
            self._centers = self._found(drawn)
        for block in blocks_of(source):
            labels = getattr(block, "labels", None) if use_labels else None
            if use_labels and labels is None:
                raise InputError("The blocks carry no labels", hint="name them in open_vectors")
            self.partial_fit(block, labels=labels)
        self._solved()
        return self

    def _forget(self) -> None:
        super()._forget()
        if hasattr(self, "_centers"):
            del self._centers

    def _begin(self, rows: Tensor) -> None:
        """Do nothing: `fit_blocks` has computed the centres before the first block."""

    def _check_parameters(self, n_dims: int) -> None:
        check_seed(self.seed)
        check_whole("n_clusters", self.n_clusters)
        if self.init is not None and as_matrix(self.init, name="init").shape[1] != n_dims:
            raise ShapeError(
                f"has shape {tuple(as_matrix(self.init).shape)}", argument="init", wanted=f"(K, {n_dims})"
            )

    def _take(self, rows: Tensor, labels: Any) -> None:
        """Merge a block into the statistics of its clusters."""
        codes = self._codes(rows, labels)
        part = _Clusters(
            {name: self._of_cluster(rows[codes.codes == i]) for i, name in enumerate(codes.names)}
        )
        known = getattr(self, "_statistic", None)
        if known is not None and hasattr(self, "_centers") != (labels is None):
            raise InputError("Some blocks have labels and others have none", wanted="all or none")
        self._statistic = part if known is None else known.merge(part)
        if hasattr(self, "_solution"):
            del self._solution

    def _codes(self, rows: Tensor, labels: Any) -> Labels:
        """Return the cluster of each row: its label, or its nearest centre."""
        if labels is not None:
            return as_labels(labels, n=len(rows)).to(rows.device).seen()
        if not hasattr(self, "_centers"):
            given = self.init is not None
            self._centers = as_matrix(self.init, name="init").double() if given else self._found(rows)
        self._centers = self._centers.to(rows.device)
        return Labels(_nearest(rows, self._centers), tuple(range(len(self._centers)))).seen()

    def _found(self, rows: Tensor) -> Tensor:
        if len(rows) < self.n_clusters:
            raise InputError(
                f"is {self.n_clusters}, and X has n_samples = {len(rows)}",
                argument="n_clusters",
                wanted=f"at most {len(rows)}",
            )
        found = kmeans(rows, int(self.n_clusters), seed=self.seed, n_init=self.n_init)
        return found.centers.double()

    def _of_cluster(self, rows: Tensor) -> Any:
        return Columns.of(rows.detach().double())

    def _solve(self, statistic: _Clusters) -> dict[str, Tensor]:
        means = torch.stack([statistic.parts[name].mean for name in statistic.names])
        if not hasattr(self, "_centers"):
            return {"centers_": means, "means_": means}
        # a centre without vectors stays, so that `transform` assigns vectors as `fit` did
        full = self._centers.clone()
        full[torch.tensor(statistic.names, device=full.device)] = means
        return {"centers_": self._centers, "means_": full}

    def _map(self, solution: dict[str, Tensor]) -> Map:
        return Clusterwise(solution["centers_"], solution["means_"], solution.get("components_"))


class ClusterwiseAllButTheTop(ClusterCenter):
    """Remove the mean and the k strongest directions of each cluster.

        y = (x − m_c) − Σ_i (v_ci·(x − m_c)) v_ci,   c the cluster whose centre is nearest to x

    Clusters are often stretched in different directions, which a single set of directions (`AllButTheTop`)
    does not remove. Clusters come from k-means, or from labels given to `fit`.
    Paper: Rajaee, Pilehvar 2021, A Cluster-based Approach for Improving Isotropy in Contextual Embedding
    Space.

    Args:
        n_clusters: K of k-means.
        n_components: k; None for d // 100, at least 1.
        init: (K, d) centres to assign by, instead of k-means.
        seed: seed of k-means.
        n_init: number of k-means runs; the best is used.
        small: what to do with a cluster whose vectors span fewer than k directions: raise an "error", or
            "keep" the cluster and remove the directions it has.

    Attributes:
        centers_: (K, d) the centres that vectors are assigned to.
        means_: (K, d) the mean of each cluster.
        components_: (K, k, d) the directions of each cluster; zeros where a small cluster has fewer.

    >>> upright, lying = [[0.0, 3.0], [0.5, 0.0], [0.0, -3.0]], [[96.0, 1.0], [90.0, 0.0], [84.0, 1.0]]
    >>> Y = ClusterwiseAllButTheTop(2, 1).fit_transform(upright + lying)
    >>> Y[:3, 1].round(6).any() or Y[3:, 0].round(6).any()
    np.False_
    """

    _axes: ClassVar[dict[str, str]] = {"centers_": "Kd", "means_": "Kd", "components_": "Kkd"}
    components_ = Fitted("(K, k, d) the directions removed from each cluster.")

    def __init__(
        self,
        n_clusters: int = 8,
        n_components: int | None = None,
        *,
        init: Any = None,
        seed: int = 0,
        n_init: int = 1,
        small: str = "error",
    ) -> None:
        super().__init__(n_clusters, init=init, seed=seed, n_init=n_init)
        self.n_components = n_components
        self.small = small

    def _check_parameters(self, n_dims: int) -> None:
        super()._check_parameters(n_dims)
        check_taken_out(max(1, n_dims // 100) if self.n_components is None else self.n_components, n_dims)
        if self.small not in ("error", "keep"):
            raise InputError(argument="small", got=self.small, wanted="'error' or 'keep'")

    def _of_cluster(self, rows: Tensor) -> Any:
        return Moments.of(rows.detach().double())

    def _solve(self, statistic: _Clusters) -> dict[str, Tensor]:
        found = super()._solve(statistic)
        n_clusters, d = found["means_"].shape
        k = self.n_components or max(1, d // 100)
        components = found["means_"].new_zeros(n_clusters, k, d)
        for place, name in enumerate(statistic.names):
            own = self._directions(statistic.parts[name], k, name)
            components[name if hasattr(self, "_centers") else place, : len(own)] = own
        return {**found, "components_": components}

    def _directions(self, moments: Moments, k: int, name: Any) -> Tensor:
        """Return the strongest directions of a cluster, at most k."""
        spread = moments.count > 1 and bool(moments.trace > 0)
        found = Principal.of(moments, what="ClusterwiseAllButTheTop") if spread else None
        rank = found.rank if found else 0
        if rank < k and self.small == "error":
            raise InputError(
                f"is {k}, and cluster {quoted(name)} has {moments.count} vectors of rank {rank} "
                f"(n_samples = {moments.count})",
                argument="n_components",
                wanted=f"at most {rank}",
                hint=["use fewer clusters", Setting("small", "keep", to="remove fewer directions there")],
            )
        return found.directions[:k] if found else moments.mean.new_zeros(0, moments.n_dims)


@full_precision
def _nearest(rows: Tensor, centers: Tensor) -> Tensor:
    """Return the nearest centre of each row, as `transform` finds it."""
    step = Clusterwise(centers, centers)
    return torch.cat([step.nearest(block.detach().double()) for block in rows.split(16_384)])


def _drawn(source: Any, seed: int) -> Tensor:
    """Return the rows of a stream, or a sample of them without replacement if there are many."""
    generator = torch.Generator().manual_seed(seed)
    rows, keys = None, torch.empty(0, dtype=torch.float64)
    for block in blocks_of(source):
        matrix = as_matrix(block).detach().cpu()
        keys = torch.cat([keys, torch.rand(len(matrix), generator=generator, dtype=torch.float64)])
        rows = matrix if rows is None else torch.cat([rows, matrix])
        if len(rows) > _SAMPLE:  # the rows with the smallest keys are a sample of all rows so far
            least = keys.topk(_SAMPLE, largest=False).indices.sort().values
            rows, keys = rows[least], keys[least]
    if rows is None:
        raise ShapeError("has no blocks", argument="source", wanted="at least one vector")
    return rows
