"""Standard errors of differences between two spaces of the same rows, by a grouped jackknife.

The rows are assigned to G groups at random. Leaving out one group in both spaces gives G values of any
quantity θ, and from them its standard error s (the delete-a-group jackknife; Kott 2001):

    s² = (G − 1)/G · Σ_g (θ_(g) − θ̄)²,      interval  θ ± t_{G−1} · s

A group is left out of both spaces at once, so that variation which both share cancels in the difference.
Unlike in a bootstrap no row occurs twice, which would change distances to neighbours. Of many rows a random
sample of m is used, and its standard error is multiplied by √(m/n).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.engine.measure import values
from isoscope.errors import LabelError
from isoscope.kernels.tiles import Progress
from isoscope.metrics.registry import registered
from isoscope.space import Space
from isoscope.statistics.cross import CrossMoments
from isoscope.statistics.gathered import Statistics
from isoscope.statistics.pairs import ClusterDistances, Separation

N_GROUPS = 20
MAX_ROWS = 2500  # of the jackknife
MIN_ROWS = 40  # two for each group: fewer give no standard error
Figures = dict[str, float | None]
# whole numbers and extremes: leaving out rows does not show their standard error
_NO_ERROR = frozenset({"dimensions_for_variance", "dimensions_for_half", "dunn_index"})
_GROWS = frozenset({"calinski_harabasz"})  # with the number of rows: a sample does not show its error
_SUMS_BYTES = 64 * 2**20  # of sums of distances by label and group


@dataclass(frozen=True)
class Groups:
    """The rows of a jackknife, and the group of each.

    Attributes:
        n: the number of all rows.
        rows: (m,) the numbers of the rows that were drawn, sorted.
        codes: (m,) the group of each, from 0 to G − 1.
        n_groups: the number of groups, G.
    """

    n: int
    rows: Tensor
    codes: Tensor
    n_groups: int = N_GROUPS

    @classmethod
    def dealt(
        cls,
        n: int,
        strata: Tensor | None = None,
        *,
        n_groups: int = N_GROUPS,
        max_rows: int | None = None,
        seed: int = 0,
    ) -> Groups:
        """Return random rows in random groups; `strata`, (n,) codes of labels, are spread over the groups."""
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randperm(n, generator=generator)[: max_rows or MAX_ROWS]
        if strata is not None:
            rows = rows[strata.cpu()[rows].argsort(stable=True)]
        order = rows.argsort()
        return cls(n, rows[order], order % n_groups, n_groups)

    def jackknife(
        self, figures: Callable[[int], Figures], *, progress: Progress | None = None
    ) -> dict[str, float | None]:
        """Return the standard error of each value, by name.

        Args:
            figures: returns the values, by name, without the rows of the group of this number.
            progress: is called with the share of the work that is done.
        """
        left_out = []
        for group in range(self.n_groups):
            left_out.append(figures(group))
            if progress:
                progress((group + 1) / self.n_groups)
        return {name: self.error([one.get(name) for one in left_out]) for name in left_out[0]}

    def error(self, values: Sequence[float | None]) -> float | None:
        """Return the standard error from the values without each group; None where one is undefined."""
        known = [value for value in values if value is not None and math.isfinite(value)]
        if len(known) < len(values):
            return None
        mean = math.fsum(known) / len(known)
        spread = math.fsum((value - mean) ** 2 for value in known)
        return math.sqrt(len(self.rows) / self.n) * math.sqrt((len(known) - 1) / len(known) * spread)

    def p_value(self, difference: float, standard_error: float) -> float | None:
        """Return the two-sided p-value of a difference by the same t; None without a standard error."""
        from scipy.special import stdtr

        if not standard_error > 0:
            return None
        return float(2 * stdtr(self.n_groups - 1, -abs(difference) / standard_error))

    def half_width(self, standard_error: float) -> float:
        """Return half the width of the 95 % interval, by Student's t with G − 1 degrees of freedom."""
        from scipy.stats import t

        return float(t.ppf(0.975, self.n_groups - 1)) * standard_error


class LeftOut:
    """The statistics of one space without each group of rows; distances are computed once for all groups.

    Args:
        space: the rows of the jackknife.
        groups: the groups of the rows.
        metrics: the names of the metrics that will be computed.
        seed: the seed of everything that is sampled.
    """

    def __init__(self, space: Space, groups: Groups, metrics: Iterable[str], seed: int) -> None:
        self.space, self.groups, self.seed = space, groups, seed
        self._sums: Tensor | None = None
        needs = {need for name in metrics for need in registered()[name].needs}
        if space.labels is None or "separation" not in needs:
            return
        n_sums = space.labels.n_labels * groups.n_groups
        if 8 * len(space) * n_sums <= _SUMS_BYTES:
            both = space.labels.codes * groups.n_groups + groups.codes.to(space.labels.codes.device)
            distances = ClusterDistances.of(space.vectors, both)
            sums = distances.sums.new_zeros(len(space), n_sums)
            sums[:, list(distances.labels.names)] = distances.sums
            self._sums = sums.view(len(space), -1, groups.n_groups)

    def without(self, group: int) -> Statistics:
        """Return the statistics of all rows except those of one group."""
        rows = (self.groups.codes != group).nonzero().flatten()
        shelf = Statistics(self.space.take(rows), seed=self.seed)
        if self._sums is not None:
            try:
                labels = shelf.labels
            except LabelError:  # metrics of labels are undefined without this group
                return shelf
            others = [other for other in range(self.groups.n_groups) if other != group]
            assert shelf.space.labels is not None
            present = shelf.space.labels.codes.unique()
            sums = self._sums[rows.to(self._sums.device)][:, present][:, :, others].sum(dim=2)
            counts = labels.counts.double()
            vars(shelf)["separation"] = Separation.from_sums(ClusterDistances(sums, labels, counts))
        return shelf


class CrossLeftOut:
    """The `CrossMoments` of two spaces without each group of rows: all sums minus those of the group."""

    def __init__(self, X: Tensor, Y: Tensor, groups: Groups) -> None:
        self.sums, self.groups = CrossMoments.of(X, Y), groups
        self._u = X.double() - self.sums.left_mean
        self._v = Y.to(X.device).double() - self.sums.right_mean

    def without(self, group: int) -> CrossMoments:
        """Return the moments of all rows except those of one group, about their own means."""
        whole = self.sums
        remains = (self.groups.codes != group).to(self._u.device)
        u, v, n = self._u[~remains], self._v[~remains], int(remains.sum())
        right, left = -v.sum(dim=0) / n, -u.sum(dim=0) / n  # the changes of the means
        p, q = (
            (rows[remains] - step).square().sum(dim=1) for rows, step in ((self._u, left), (self._v, right))
        )
        return CrossMoments(
            n,
            whole.left_mean + left,
            whole.right_mean + right,
            whole.left - u.T @ u - n * torch.outer(left, left),
            whole.right - v.T @ v - n * torch.outer(right, right),
            whole.cross - u.T @ v - n * torch.outer(left, right),
            p @ p,
            q @ q,
            p @ q,
        )


def difference_errors(
    first: Space,
    second: Space,
    groups: Groups,
    metrics: Sequence[str],
    *,
    seed: int,
    correspondences: Callable[[CrossMoments], Figures] | None = None,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Return the standard errors of the differences B − A of metrics, and of correspondences, by name.

    Args:
        first, second: both spaces, with all rows.
        groups: the rows of the jackknife.
        metrics: the names of the metrics.
        seed: the seed of everything that is sampled.
        correspondences: computes values of both spaces from their moments.
        progress: is called with the share of the work that is done.
    """
    some = [space.take(groups.rows) for space in (first, second)]
    sides = [LeftOut(space, groups, metrics, seed) for space in some]
    cross = correspondences and CrossLeftOut(some[0].vectors, some[1].vectors, groups)

    def figures(group: int) -> Figures:
        results = correspondences(cross.without(group)) if correspondences and cross else {}
        before, after = (values(side.without(group), metrics) for side in sides)
        for name in metrics:
            old, new = before[name], after[name]
            results[name] = None if old is None or new is None else new - old
        return results

    without = _NO_ERROR if len(groups.rows) == len(first) else _NO_ERROR | _GROWS
    errors = groups.jackknife(figures, progress=progress)
    return {name: error for name, error in errors.items() if error is not None and name not in without}
