"""Neural collapse: how far labels have collapsed to points, and their means to a simplex."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.errors import InputError, ShapeError, UndefinedError
from isoscope.metrics.clusters import clustered
from isoscope.metrics.collapse_debiased import PAPYAN_2020, ZHU_2021, nc1_error, nc2_error
from isoscope.metrics.registry import ALL_INVARIANCES, family
from isoscope.statistics.collapse import LabelCollapse
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.moments import Moments
from isoscope.statistics.principal import ledoit_wolf
from isoscope.tables import percent

_metric = family(
    "collapse",
    needs=("label_moments",),
    range=(0.0, math.inf),
    better="low",
    invariances=ALL_INVARIANCES,
    default=False,
    paper=PAPYAN_2020,
)


@_metric(
    needs=("label_collapse",),
    high="labels spread widely about their means",
    sentence="variance within labels over that between their means, direction by direction: {value:.3g} "
    "(0 is full collapse)",
    error=lambda shelf: nc1_error(shelf, debias=False),
    error_needs=("moments",),
    fair="nc1_debiased",
)
def nc1(X: Any, labels: Any = None) -> float:
    """Compute the variance within labels over that between their means, direction by direction: NC1.

        tr(Σ_W Σ_B^†)/K,   Σ_W = mean over rows of (x − μ_k)(x − μ_k)ᵀ,
                           Σ_B = mean over labels of (μ_k − μ)(μ_k − μ)ᵀ,   μ the mean of the μ_k

    Along each of the K − 1 directions in which the means differ, the variance within labels is divided by
    that of the means; the sum of these ratios is divided by K. It is no ratio of the two total variances,
    which `between_share` tells. Range [0, ∞); 0 where every label has collapsed to a point. Labels count
    alike in μ and Σ_B, and rows alike in Σ_W: with equal numbers of rows this is the published one. Rows are
    taken about the mean of their own label, so no digits are lost however far the collapse has gone.
    Invariant to rotation, translation and scale. Paper: Papyan et al. 2020.

    Args:
        X: a labelled Space, (n, d) vectors in any array, or LabelCollapse.
        labels: one label for each vector.

    >>> round(nc1([[0.0], [1.0], [4.0], [5.0]], labels=[0, 0, 1, 1]), 12)  # (1/4)/4/2
    0.03125
    """
    collapse = as_collapse(X, labels)
    need_means(collapse.moments, "nc1")
    return float(collapse.squares.sum() / collapse.moments.counts.sum())


@_metric(
    range=(0.0, math.sqrt(2)),
    high="means of labels far from a simplex",
    sentence="the means of labels are {value:.3g} from a simplex (0 is a simplex, 1.41 the farthest)",
    paper=ZHU_2021,
    error=lambda shelf: nc2_error(shelf, debias=False),
    error_needs=("moments", "label_collapse"),
    fair="nc2_debiased",
)
def nc2(X: Any, labels: Any = None) -> float:
    """Compute the distance of the means of labels from a simplex, equally long and equally far apart: NC2.

        ‖G/‖G‖_F − P/‖P‖_F‖_F = √(2 − 2√(PR/(K − 1))),   G_kl = (μ_k − μ)·(μ_l − μ),   P = I − 1/K

    with μ the mean of the μ_k and PR = (tr G)²/‖G‖_F² the participation ratio of the means. Range [0, √2);
    0 for a simplex. Two labels are always one. K − 1 > d means cannot form one. Invariant to rotation,
    translation and scale. Paper: Zhu et al. 2021; the closed form is ours.

    >>> round(nc2([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]] * 2, labels=[0, 1, 2] * 2), 6)
    0.0
    """
    groups = _as_groups(X, labels)
    need_means(groups, "nc2")
    shares = groups.lengths_along.square()
    shares = shares / shares.sum()
    participation = 1 / float(shares @ shares)
    return math.sqrt(max(0.0, 2 - 2 * math.sqrt(participation / (_n_groups(groups) - 1))))


@_metric(
    high="means of labels differ in length",
    sentence=lambda value: (
        f"the lengths of the means of labels vary by {percent(value)} of their mean (0 % in a simplex)"
    ),
)
def nc2_equinorm(X: Any, labels: Any = None) -> float:
    """Compute how much the means of labels differ in length about their own mean: NC2, equal lengths.

        sd_k ‖μ_k − μ‖/mean_k ‖μ_k − μ‖,   μ the mean of the μ_k

    with the standard deviation over labels of divisor K. Range [0, √(K/2−1)]; 0 for a simplex. Invariant to
    rotation, translation and scale. Paper: Papyan et al. 2020.

    >>> round(nc2_equinorm([[0.0], [0.0], [3.0], [3.0], [3.0], [3.0]], labels=[0, 0, 1, 1, 2, 2]), 6)
    0.353553
    """
    groups = _as_groups(X, labels)
    need_means(groups, "nc2_equinorm")
    lengths = _present(groups).norm(dim=1)
    return float(lengths.std(correction=0) / lengths.mean())


@_metric(
    range=(0.0, 1.0),
    high="angles between means of labels differ",
    sentence="the cosines between means of labels vary by {value:.2g} (0 in a simplex)",
)
def nc2_equiangular(X: Any, labels: Any = None) -> float:
    """Compute how much the cosines between means of labels differ from each other: NC2, equal angles.

        sd_{k<l} cos(μ_k − μ, μ_l − μ),   μ the mean of the μ_k

    with the standard deviation over pairs of labels, of their number. Range [0, 1]; 0 for a simplex.
    Invariant to rotation, translation and scale. Paper: Papyan et al. 2020.

    >>> X = [[0.0, 1.0], [0.0, -1.0], [2.0, 0.0], [-2.0, 0.0]]
    >>> round(nc2_equiangular(X * 2, labels=[0, 1, 2, 3] * 2), 6)  # −1, −1 and four times 0
    0.471405
    """
    return float(_pair_cosines(_as_groups(X, labels), "nc2_equiangular").std(correction=0))


@_metric(
    range=(0.0, 180.0),
    high="angles between means of labels far from a simplex",
    sentence="means of labels miss the angles of a simplex by {value:.1f} degrees on average",
)
def class_mean_simplex_angle(X: Any, labels: Any = None) -> float:
    """Compute how far the angles between means of labels are from those of a simplex, in degrees.

        mean_{k<l} |arccos(cos(μ_k − μ, μ_l − μ)) − arccos(−1/(K − 1))|,   μ the mean of the μ_k

    Range [0, 180]; 0 for a simplex. Papyan et al. average |cos + 1/(K − 1)| instead. Invariant to rotation,
    translation and scale. Paper: Papyan et al. 2020, maximal angles.

    >>> X = [[0.0, 1.0], [0.0, -1.0], [2.0, 0.0], [-2.0, 0.0]]
    >>> round(class_mean_simplex_angle(X * 2, labels=[0, 1, 2, 3] * 2), 2)  # 109.47 in a tetrahedron
    36.49
    """
    groups = _as_groups(X, labels)
    angles = _pair_cosines(groups, "class_mean_simplex_angle").clamp(-1, 1).arccos()
    return math.degrees(float((angles - math.acos(-1 / (_n_groups(groups) - 1))).abs().mean()))


@_metric(
    needs=("moments", "label_moments"),
    call=lambda metric, shelf: metric(shelf.moments, shelf.label_moments),
    range=(0.0, 4.0),
    high="classifier and means of labels differ",
    sentence="a linear classifier is {value:.3g} from the means of labels (0 is self-dual, 2 unrelated)",
    paper=f"{PAPYAN_2020}; Han, Papyan, Donoho 2022, Neural collapse under MSE loss",
    biased_by_rows=True,
)
def nc3(X: Any, labels: Any = None, *, classifier: Any = None) -> float:
    """Compute the distance between a linear classifier and the means of labels, both of norm 1: NC3.

        ‖W/‖W‖_F − M/‖M‖_F‖_F²,   M the rows μ_k − μ,   μ the mean of the μ_k

    Range [0, 4]; 0 where the classifier is self-dual, 2 where it has nothing to do with the means. Without
    a classifier, W is the one that regularised least squares fits to the labels, every label counting alike:

        W = M ((1 − γ)·Σ + γ·(tr Σ/d)·I)⁻¹,   Σ = Σ_W + Σ_B as for `nc1`

    with Ledoit and Wolf's share γ, which falls with n: without it, directions that hardly vary would decide.
    This measures whether the vectors make their own means the best classifier. Invariant to rotation,
    translation and scale (rotate a given classifier too). Paper: Papyan et al. 2020; least squares as in
    Han, Papyan and Donoho 2022; the choice of γ is ours.

    Args:
        X: a labelled Space, (n, d) vectors in any array, or Moments.
        labels: one label for each vector, or GroupMoments of the labels.
        classifier: (K, d) weights, a row for each label in sorted order, of a classifier trained on X; or a
            pair of these and (K,) biases.

    >>> X = [[1.0, 0.1], [1.0, -0.1], [-1.0, 0.1], [-1.0, -0.1]]
    >>> round(nc3(X, ["a", "a", "b", "b"]), 12)
    0.0
    >>> round(nc3(X, ["a", "a", "b", "b"], classifier=[[1.0, 1.0], [-1.0, -1.0]]), 3)  # at 45 degrees
    0.586
    """
    groups = labels if isinstance(labels, GroupMoments) else GroupMoments.of(*clustered(X, labels))
    need_means(groups, "nc3")
    if classifier is None:
        return 2 - 2 * _least_squares_cosine(Moments.of(X), groups)
    W = _classifier(classifier, groups)[0]
    M = groups.coordinates @ groups.axes
    return 2 - 2 * float((W * M).sum() / (W.norm() * M.norm()))


@_metric(
    needs=("label_collapse",),
    range=(0.0, 1.0),
    high="rows nearer to the mean of another label",
    sentence=lambda value: (
        f"{percent(value, 1)} of rows are nearer to the mean of another label than to their own"
    ),
    error=lambda shelf: _share_error(shelf.label_collapse.wrong, shelf.label_collapse),
    fair="nc4_debiased",
)
def nc4(X: Any, labels: Any = None, *, classifier: Any = None) -> float:
    """Compute the share of rows on which a classifier and the nearest mean of a label disagree: NC4.

        mean over rows of [argmax_k (w_k·x + b_k) ≠ argmin_k ‖x − μ_k‖]

    Range [0, 1]; 0 where the classifier has become the nearest class mean. Without a classifier, its
    decisions are taken to be the labels, as they are from the beginning of the terminal phase of training
    on; the value is then the training error of the nearest class mean. Invariant to rotation, translation
    and scale (change a given classifier accordingly). Paper: Papyan et al. 2020.

    Args:
        X: a labelled Space, (n, d) vectors in any array, or LabelCollapse.
        labels: one label for each vector.
        classifier: (K, d) weights, a row for each label in sorted order, of a classifier trained on X; or a
            pair of these and (K,) biases.

    >>> nc4([[0.0], [1.0], [4.0], [5.0]], labels=[0, 0, 1, 1])
    0.0
    >>> nc4([[0.0], [1.0], [4.0], [5.0]], labels=[0, 0, 1, 1], classifier=([[0.0], [1.0]], [0.0, -4.5]))
    0.25
    """
    if classifier is None:
        collapse = as_collapse(X, labels)
        need_means(collapse.moments, "nc4")
        return float(collapse.wrong.sum() / collapse.moments.counts.sum())
    if isinstance(X, LabelCollapse):
        raise InputError("needs the vectors", argument="classifier", hint="pass X, not its LabelCollapse")
    matrix, clusters = clustered(X, labels)
    groups = GroupMoments.of(matrix, clusters)
    need_means(groups, "nc4")
    W, b = _classifier(classifier, groups)
    point, means = groups.about
    n_differing = 0
    for rows in blocks(matrix.detach()):
        near = torch.cdist(rows.double() - point, means, compute_mode="donot_use_mm_for_euclid_dist")
        n_differing += int((near.argmin(dim=1) != (rows.double() @ W.T + b).argmax(dim=1)).sum())
    return n_differing / len(matrix)


@_metric(
    needs=("label_collapse",),
    range=(0.0, 1.0),
    high="rows nearer to the mean of another label",
    sentence=lambda value: (
        f"{percent(value, 1)} of unseen rows would be nearer to the mean of another label than to their own"
    ),
    error=lambda shelf: _share_error(shelf.label_collapse.wrong_left_out, shelf.label_collapse),
)
def nc4_debiased(X: Any, labels: Any = None) -> float:
    """Compute NC4 without the bias of few rows a label: each row is left out of the mean of its label.

        mean over rows of [min_{l≠k} ‖x − μ_l‖² < (n_k/(n_k − 1))²·‖x − μ_k‖² − tr Σ_k/(n_k(n_k − 1))]

    an estimate of the error of the nearest class mean on rows that it has not seen. A mean of one row fewer
    is noisier; the last term takes off what that adds to the distance. A label with a single row is always
    missed. Range [0, 1]. Invariant to rotation, translation and scale. Paper: Papyan et al. 2020; the
    correction is ours.

    >>> nc4_debiased([[0.0], [3.0], [4.0], [5.0]], labels=[0, 0, 1, 1])  # 3 is 3 from 0, but 1.5 from 4.5
    0.25
    """
    collapse = as_collapse(X, labels)
    need_means(collapse.moments, "nc4_debiased")
    return float(collapse.wrong_left_out.sum() / collapse.moments.counts.sum())


def as_collapse(X: Any, labels: Any) -> LabelCollapse:
    """Return the statistic of labelled vectors; LabelCollapse passes through unchanged."""
    if isinstance(X, LabelCollapse):
        return X
    matrix, clusters = clustered(X, labels)
    return LabelCollapse.of(matrix.detach(), clusters, GroupMoments.of(matrix.detach(), clusters))


def _as_groups(X: Any, labels: Any) -> GroupMoments:
    """Return the moments of each label; GroupMoments pass through unchanged."""
    return X if isinstance(X, GroupMoments) else GroupMoments.of(*clustered(X, labels))


def _n_groups(groups: GroupMoments) -> int:
    """Return K, the number of labels that have rows."""
    return int((groups.counts > 0).sum())


def need_means(groups: GroupMoments, name: str) -> None:
    """Raise UndefinedError unless the means of labels differ, InputError where squares lose digits."""
    groups.check_scale()
    if not len(groups.lengths_along):
        raise UndefinedError(f"{name} is undefined: the means of all {_n_groups(groups)} labels are equal")


def _present(groups: GroupMoments) -> Tensor:
    return groups.coordinates[groups.counts > 0]


def _pair_cosines(groups: GroupMoments, name: str) -> Tensor:
    """Return the cosines between the means of every two labels, about the mean of the means."""
    need_means(groups, name)
    means = _present(groups)
    lengths = means.norm(dim=1)
    if not bool((lengths > len(means) * 2**-52 * lengths.max()).all()):
        raise UndefinedError(
            f"{name} is undefined: the mean of a label is the mean of all means, and has no direction from it"
        )
    units = means / lengths[:, None]
    above = torch.ones(len(units), len(units), dtype=torch.bool, device=units.device).triu(1)
    return (units @ units.T)[above]


def _share_error(wrong: Tensor, collapse: LabelCollapse) -> float:
    """Return the standard error of a share of rows, with two more of each kind (Agresti, Coull 1998)."""
    n = float(collapse.moments.counts.sum())
    moved = (float(wrong.sum()) + 2) / (n + 4)
    return math.sqrt(moved * (1 - moved) / (n + 4))


def _least_squares_cosine(moments: Moments, groups: GroupMoments) -> float:
    """Return cos(W, M) of the least-squares classifier W = M Σ⁻¹ from the spectrum of the shrunk Σ.

    Along an eigenvector of Σ, M has the squared length a and W has a/λ².
    """
    M = groups.coordinates @ groups.axes
    within = (moments.scatter - groups.between) / groups.counts.sum()
    covariance = (within + M.T @ M / _n_groups(groups)).detach()
    values, vectors = torch.linalg.eigh(covariance / covariance.trace())
    share = ledoit_wolf(moments)
    values = (1 - share) * values.clamp(min=0) + share / len(values)
    squares = (M @ vectors).square().sum(dim=0)
    kept = values > len(values) * 2**-52 * values[-1]
    values, squares = values[kept], squares[kept]
    return float((squares / values).sum() / ((squares / values.square()).sum() * squares.sum()).sqrt())


def _classifier(classifier: Any, groups: GroupMoments) -> tuple[Tensor, Tensor]:
    """Return (K, d) weights and (K,) biases of a classifier, checked."""
    weights, bias = classifier if isinstance(classifier, tuple) else (classifier, None)
    W = as_matrix(weights, name="classifier").detach().double().to(groups.means.device)
    K, d = groups.means.shape
    if W.shape != (K, d):
        raise ShapeError(
            f"has weights of shape {tuple(W.shape)}",
            argument="classifier",
            wanted=f"({K}, {d}), one row for each label",
        )
    b = torch.zeros(K) if bias is None else torch.as_tensor(bias).detach()
    if b.shape != (K,):
        raise ShapeError(
            f"has biases of shape {tuple(b.shape)}",
            argument="classifier",
            wanted=f"({K},), one for each label",
        )
    if not W.any():
        raise UndefinedError("nc3 is undefined: all weights of the classifier are zero")
    return W, b.to(W)
