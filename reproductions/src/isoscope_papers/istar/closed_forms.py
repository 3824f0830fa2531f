"""Claims of Rudman and Eickhoff 2024 that a closed form decides, computed with isoscope's own functions."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from isoscope import isoscore, isoscore_star, isotropy_ceiling, mean_cosine
from isoscope_papers.istar.populations import power_law
from isoscope_papers.istar.setups import PAPER_ZETA
from isoscope_papers.verdict import Finding, Verdict, decide
from isoscope_papers.words import number

_EXACT = 1e-9


def closed_forms() -> Iterator[Finding]:
    """Yield the findings that need no run."""
    eye = torch.eye(3, dtype=torch.float64)
    line, circle, sphere = (_axes(eye[:k]) for k in (1, 2, 3))
    scores = [isoscore(space) for space in (line, circle, sphere)]
    yield _held(
        "line-circle-sphere", max(abs(a - b) for a, b in zip(scores, (0, 0.5, 1), strict=True)) < _EXACT,
        "IsoScore " + ", ".join(number(value) for value in scores) + " of a line, a circle and a sphere",
    )  # fmt: skip
    stretched = isoscore(sphere * torch.tensor([2.0, 1.0, 1.0]))
    star = isoscore_star(sphere, eye, zeta=PAPER_ZETA)
    yield _held(
        "definition", min(scores[2], star) > 1 - _EXACT and stretched < 1,
        f"covariance proportional to the identity: IsoScore {number(scores[2])}, IsoScore* {number(star)}; "
        f"one variance four times the others: IsoScore {number(stretched)}",
    )  # fmt: skip
    cloud = torch.randn(500, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cloud = cloud - cloud.mean(dim=0)
    moved = [cloud + torch.tensor([shift, 0.0, 0.0]) for shift in (9.4, 0.15)]
    isotropy, cosines = ([metric(space) for space in moved] for metric in (isoscore, mean_cosine))
    yield decide(
        "cosine-two-clouds", Verdict.NOT_TESTABLE,
        f"one cloud with its mean moved: mean cosine {number(cosines[0])} and {number(cosines[1])}, IsoScore "
        f"{number(isotropy[0])} and {number(isotropy[1])}",
        why="the clouds are not published; ours was made to have such cosines",
    )  # fmt: skip
    ends = [isoscore_star(line, C0, zeta=PAPER_ZETA) for C0 in (torch.cov(line.T), eye)]
    uneven = sphere * torch.tensor([1.2**0.5, 1.0, 1.0])
    made_up = (torch.cov(uneven.T).max() * eye - (1 - PAPER_ZETA) * torch.cov(uneven.T)) / PAPER_ZETA
    evened = isoscore_star(uneven, made_up, zeta=PAPER_ZETA)
    yield _held(
        "star-ends", min(star, evened) > 1 - _EXACT and ends[0] < _EXACT < ends[1],
        f"1 on a sphere; at ζ = {PAPER_ZETA} on a line {number(ends[0])} with a C₀ of that line and "
        f"{number(ends[1])} with a flat C₀; {number(evened)} of variances 1.2, 1, 1 with a C₀ of 1.2, 2, 2",
        "of the shrunk covariance: a batch of unequal components has 1 where C₀ makes up for them",
    )  # fmt: skip
    space = _axes(torch.diag(power_law().sqrt()))
    own, flat = torch.cov(space.T), torch.eye(space.shape[1], dtype=torch.float64)
    flat *= own.trace() / len(flat)
    plain = isoscore(space)
    shifts = [isoscore_star(space, C0, zeta=PAPER_ZETA) - plain for C0 in (own, flat)]
    yield _held(
        "star-many-samples", abs(shifts[0]) < _EXACT < abs(shifts[1]),
        f"limit of many samples at ζ = {PAPER_ZETA}, power-law spectrum: IsoScore* less IsoScore "
        f"{number(abs(shifts[0]), 4)} with the population's C₀, {number(shifts[1], 4)} with a flat one",
        "with a C₀ of the same population; with another the limit is another",
    )  # fmt: skip
    zero = max(
        abs(isoscore_star(one, torch.eye(one.shape[1]), zeta=0.0) - isoscore(one)) for one in (cloud, space)
    )
    yield _held("star-zero-shrinkage", zero < _EXACT, f"difference at ζ = 0: {number(zero)}")
    ceilings = {(K, d): isotropy_ceiling(K, d) for K, d in ((2, 768), (77, 768), (769, 768))}
    yield _held(
        "isotropy-clustering", ceilings[2, 768] == 0 and ceilings[769, 768] == 1,
        "largest IsoScore of collapsed labels: "
        + ", ".join(f"{number(value)} for K = {K}" for (K, _), value in ceilings.items()) + ", d = 768",
        "both at their maximum, and at most as many labels as dimensions, K ≤ d",
    )  # fmt: skip


def _axes(rows: torch.Tensor) -> torch.Tensor:
    """Return the rows and their opposites, a cloud around 0."""
    return torch.cat([rows, -rows])


def _held(key: str, holds: bool, ours: str, condition: str = "") -> Finding:
    verdict = Verdict.CONDITION if condition else Verdict.HELD
    return decide(key, (verdict, condition) if holds else Verdict.NOT_HELD, ours)
