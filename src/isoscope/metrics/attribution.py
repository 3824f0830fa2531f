"""Attribution of the anisotropy of a labelled space to its labels and principal directions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import as_matrix, working
from isoscope.errors import InputError, UndefinedError, check_seed
from isoscope.labels import Labels, as_labels
from isoscope.printable import shortened
from isoscope.results import Result
from isoscope.space import known_rows
from isoscope.statistics.group_sums import group_sums
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.moments import Moments
from isoscope.statistics.strata import Strata
from isoscope.tables import Grid, percent

_ROUNDING = 1e-12  # a share of the variance that is none


@dataclass(frozen=True)
class LabelPart:
    """The contribution of one label; each column adds up to the whole over all labels.

    Attributes:
        name: the label.
        n: its points.
        variance: its share of tr Σ, spread and distance of its mean together.
        within, cross, between: its shares of ‖Σ‖_F²: ⟨p_k W_k, W⟩, ⟨p_k W_k, B⟩ + p_k b_kᵀW b_k and
            p_k b_kᵀB b_k.
        part: their sum, its share of ‖Σ‖_F²; equal to `variance` for every label where Σ is flat.
        excess: its share of the anisotropy ‖Σ − τI‖_F², τ = tr Σ/d; under 0 for a label that evens out.
    """

    name: Any
    n: int
    variance: float
    within: float
    cross: float
    between: float
    part: float
    excess: float


@dataclass(frozen=True)
class DirectionPart:
    """The contribution of one principal direction; each column but the last two adds up to the whole.

    Attributes:
        variance: λ_j as a share of tr Σ.
        between, within: the shares of tr Σ that lie in it between labels and within them.
        part: λ_j², its share of ‖Σ‖_F².
        excess: λ_j(λ_j − τ), its share of the anisotropy ‖Σ − τI‖_F²; under 0 for a weak direction.
        label: the label with the most variance in it.
        label_share: that label's share of λ_j.
    """

    variance: float
    between: float
    within: float
    part: float
    excess: float
    label: Any
    label_share: float


_Part = TypeVar("_Part", LabelPart, DirectionPart)


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Result):
    """Anisotropy attributed to labels and to directions.

    Attributes:
        labels: one part a label, in the order of the names.
        directions: one part a principal direction, the widest first.
        parts: (K, d) what each label adds in each direction, as shares of ‖Σ‖_F²: rows add up to the labels'
            parts, columns to the directions'.
        components: (d, d) the principal directions, one a row.
        within, cross, between: ‖W‖², 2⟨W, B⟩ and ‖B‖² as shares of ‖Σ‖_F².
        debiased: the same three from unbiased estimates, where asked for; they add up to 1, and chance may
            put one under 0.
    """

    labels: tuple[LabelPart, ...]
    directions: tuple[DirectionPart, ...]
    parts: np.ndarray = field(repr=False)
    components: np.ndarray = field(repr=False)
    within: float
    cross: float
    between: float
    debiased: dict[str, float] | None = None

    def grids(self, *, top: int = 10) -> Iterable[Grid]:
        """Return tables of the labels and the directions that contribute most to the anisotropy."""
        first = sorted(self.labels, key=lambda part: -part.excess)[:top]
        labels = [
            (
                shortened(str(part.name)), f"{part.n:,}", percent(part.variance, 1), percent(part.part, 1),
                percent(part.excess, 1),
            )
            for part in first
        ]  # fmt: skip
        heads: tuple[str, ...] = ("label", "points", "of variance", "of ‖Σ‖²", "of anisotropy")
        yield Grid("", heads, labels, heads[1:])
        directions = [
            (
                str(place), percent(part.variance, 1),
                f"{percent(part.between / part.variance)} of it" if some else "–", percent(part.excess, 1),
                f"{shortened(str(part.label))} ({percent(part.label_share)})" if some else "–",
            )
            for place, part in enumerate(self.directions[:top], 1)
            for some in [part.variance > _ROUNDING]
        ]  # fmt: skip
        heads = ("direction", "of variance", "between labels", "of anisotropy", "mostly label")
        yield Grid("", heads, directions, heads[1:])

    def lines(self) -> list[str]:
        """Return how much lies within labels and between them."""
        return [
            f"of ‖Σ‖²: within labels {percent(self.within)}, between {percent(self.between)}, "
            f"both {percent(self.cross)}"
        ]

    def _columns(self) -> dict[str, list[Any]]:
        """Return a row for each label, then one for each direction."""
        rows = [{"kind": "label", **vars(part)} for part in self.labels]
        for place, part in enumerate(self.directions, 1):
            rows.append({"kind": "direction", "name": str(place), **vars(part)})
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}


def attribute_anisotropy(
    X: Any, labels: Any = None, *, debias: bool = False, n_splits: int = 8, seed: int = 0
) -> Attribution:
    """Compute how much each label and each principal direction contributes to the anisotropy, exactly.

        Σ = Σ_k C_k,   C_k = p_k(W_k + b_k b_kᵀ),   b_k = μ_k − μ,   p_k = n_k/n
        ‖Σ‖_F² = Σ_k ⟨C_k, Σ⟩ = Σ_k Σ_j λ_j·v_jᵀC_k v_j

    with v_j, λ_j the principal directions and variances: label k adds ⟨C_k, Σ⟩ ≥ 0, direction j λ_j². The
    same with Σ − τI in the place of the second Σ attributes what Σ has beyond a flat one. Labels may be
    clusters that were found (`kmeans`). Invariant to rotation, translation and one scale.

    `debias=True` adds unbiased estimates of ‖W‖², 2⟨W, B⟩ and ‖B‖²: each label is cut in two at random,
    W and B are estimated without bias from either half, and products are taken across the halves only;
    averaged over `n_splits` cuts. It needs 4 points a label.

    Args:
        X: a labelled Space, or (n, d) vectors in any array.
        labels: one label for each vector, where X does not carry it.
        debias, n_splits, seed: unbiased parts beside the plain ones.

    >>> X = [[3.0, 0.1], [3.0, -0.1], [-3.0, 0.1], [-3.0, -0.1]]
    >>> attribution = attribute_anisotropy(X, ["a", "a", "b", "b"])
    >>> [round(part.part, 6) for part in attribution.labels], round(attribution.directions[0].between, 4)
    ([0.5, 0.5], 0.9989)
    """
    matrix = as_matrix(X, apart=labels).detach()
    coded = as_labels(known_rows(X, labels, "labels"), n=len(matrix)).to(matrix.device).seen()
    Moments.of(matrix).need_spread("attribute_anisotropy")
    groups = GroupMoments.of(matrix, coded)
    offsets = groups.offsets  # b_k
    residuals = groups.residuals(matrix, coded.codes)
    scale = (residuals.square().sum() + groups.counts @ offsets.square().sum(dim=1)).sqrt()
    residuals, offsets = residuals / scale, offsets / scale * groups.counts.sqrt()[:, None]  # tr Σ = 1
    W, B = residuals.T @ residuals, offsets.T @ offsets
    values, vectors = torch.linalg.eigh(W + B)
    values, vectors = values.flip(0).clamp(min=0), vectors.flip(1)
    spread = group_sums((residuals @ vectors).square(), coded)  # (K, d) v_jᵀ p_k W_k v_j
    means = (offsets @ vectors).square()  # (K, d) v_jᵀ p_k b_k b_kᵀ v_j
    whole = values @ values
    parts = _label_parts(groups, coded, residuals, offsets, W, B, spread + means, values)
    debiased = _debiased(working(matrix).double() / scale, coded, n_splits, seed) if debias else None
    return Attribution(
        labels=parts,
        directions=_direction_parts(groups, spread, means, values),
        parts=((spread + means) * values / whole).cpu().numpy(),
        components=vectors.T.cpu().numpy(),
        within=float((W * W).sum() / whole),
        cross=float(2 * (W * B).sum() / whole),
        between=float((B * B).sum() / whole),
        debiased=debiased,
    )


def _label_parts(
    groups: GroupMoments, labels: Labels, residuals: Tensor, offsets: Tensor, W: Tensor, B: Tensor,
    variances: Tensor, values: Tensor,
) -> tuple[LabelPart, ...]:  # fmt: skip
    def of_spread(M: Tensor) -> Tensor:
        return group_sums(((residuals @ M) * residuals).sum(dim=1), labels)

    def of_means(M: Tensor) -> Tensor:
        return ((offsets @ M) * offsets).sum(dim=1)

    whole, flat = values @ values, 1 / len(values)
    return _rows(
        LabelPart,
        groups.names,
        groups.counts.long(),
        variances.sum(dim=1),
        of_spread(W) / whole,
        (of_spread(B) + of_means(W)) / whole,
        of_means(B) / whole,
        variances @ values / whole,
        _shares(variances @ (values - flat), whole - flat),
    )


def _direction_parts(
    groups: GroupMoments, spread: Tensor, means: Tensor, values: Tensor
) -> tuple[DirectionPart, ...]:
    whole, flat = values @ values, 1 / len(values)
    by_label = spread + means
    return _rows(
        DirectionPart,
        values,
        means.sum(dim=0),
        spread.sum(dim=0),
        values * values / whole,
        _shares(values * (values - flat), whole - flat),
        [groups.names[k] for k in by_label.argmax(dim=0).tolist()],
        by_label.amax(dim=0) / by_label.sum(dim=0).clamp(min=torch.finfo(values.dtype).tiny),
    )


def _rows(kind: type[_Part], *columns: Tensor | Sequence[Any]) -> tuple[_Part, ...]:
    """Return one part for each row of columns, which are in the order of its fields."""
    lists = [column.tolist() if isinstance(column, Tensor) else column for column in columns]
    return tuple(kind(*row) for row in zip(*lists, strict=True))


def _shares(parts: Tensor, whole: Tensor) -> Tensor:
    """Return parts as shares of the anisotropy, or zeros if there is none."""
    return parts / whole if whole > 1e-14 else torch.zeros_like(parts)


def _debiased(rows: Tensor, labels: Labels, n_splits: int, seed: int) -> dict[str, float]:
    """Return unbiased ‖W‖², 2⟨W, B⟩ and ‖B‖² as shares of their sum."""
    check_seed(seed)
    if not isinstance(n_splits, int) or n_splits < 1:
        raise InputError(argument="n_splits", got=n_splits, wanted="a whole number of at least 1")
    few = [
        shortened(str(name)) for name, n in zip(labels.names, labels.counts.tolist(), strict=True) if n < 4
    ]
    if few:
        raise UndefinedError(
            f"the debiased attribution needs 4 points a label; {', '.join(few[:3])} has fewer: "
            "leave small labels out"
        )
    generator = torch.Generator().manual_seed(seed)
    rows = rows - rows.mean(dim=0)
    sums = torch.zeros(3, dtype=torch.float64)
    for _ in range(n_splits):
        W, B = zip(*(_unbiased(rows[half], labels, half) for half in _halves(labels, generator)), strict=True)
        across = (W[0] * W[1]).sum(), (W[0] * B[1] + W[1] * B[0]).sum(), (B[0] * B[1]).sum()
        sums += torch.stack(across).cpu()
    if not sums.sum() > 0:
        raise UndefinedError("the debiased attribution is undefined: too few points to see ‖Σ‖_F at all")
    return dict(zip(("within", "cross", "between"), (sums / sums.sum()).tolist(), strict=True))


def _halves(labels: Labels, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the rows of two random halves that split each label in two."""
    strata = Strata.of(labels.codes, labels.n_labels, generator=generator)
    half = strata.counts // 2
    return strata.draw(torch.zeros_like(half), half)[0], strata.draw(half, strata.counts)[0]


def _unbiased(rows: Tensor, labels: Labels, half: Tensor) -> tuple[Tensor, Tensor]:
    """Return unbiased W and B from half the rows, with the proportions of all points.

    The means of m_k rows carry noise W_k/m_k, so B's plain estimate is Σ p_k(1 − p_k)·W_k/m_k too large.
    """
    groups = GroupMoments.of(rows, Labels(labels.codes[half], labels.names))
    p = (labels.counts / len(labels)).double()
    m = groups.counts
    residuals = groups.residuals(rows, labels.codes[half])
    each = (p / (m - 1))[labels.codes[half], None]
    noise = ((1 - p) / m)[labels.codes[half], None]
    offsets = (groups.means - p @ groups.means) * p.sqrt()[:, None]
    return residuals.T @ (each * residuals), offsets.T @ offsets - residuals.T @ (each * noise * residuals)
