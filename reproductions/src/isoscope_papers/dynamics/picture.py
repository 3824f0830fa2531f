"""The paper's figure 1: token states before training and after 200 updates, in one plane by UMAP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import isoscope as iso
from isoscope.figures import INK, PALETTE
from isoscope.report import installed_projections, projection
from isoscope_papers.contrastive.run import token_rows
from isoscope_papers.contrastive.setups import CLEAN
from isoscope_papers.dynamics.run import Material, read_states, train
from isoscope_papers.dynamics.setups import Setup
from isoscope_papers.figures import Drawing
from isoscope_papers.page import Section
from isoscope_papers.verdict import Finding, decide, on
from isoscope_papers.words import span

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PREFIX = "picture-"  # of the files that keep pictures
STEPS = 200  # the paper's
N_TOKENS = 1_000
N_SEEDS = 5  # of UMAP, which is random
TITLES = {"before": "before training", "after": f"after {STEPS} updates"}


@dataclass(frozen=True)
class Picture:
    """Token states of one start in the plane, both times ("before" and "after") in one projection."""

    start: str
    title: str
    n_tokens: int  # states that the metrics are of; the points are a sample
    mean_cosine: dict[str, float]
    isoscore: dict[str, float]
    points: dict[str, list[list[float]]]  # coordinates of the same tokens by UMAP's first seed
    spread: list[float]  # by UMAP's seed: the area (√det of the covariance) after over that before


def can_picture() -> bool:
    """Return whether umap-learn is installed."""
    return "UMAP" in installed_projections()


def take_picture(setup: Setup, material: Material) -> Picture:
    """Train for 200 updates, and put the last layer's states of both times into one plane."""
    before, _ = material.begin(setup.start)
    after = replace(before, model=train(setup, material, steps=STEPS).model)
    states = [read_states(model, material.probe) for model in (before, after)]
    rows = token_rows(states[0][0].rows, CLEAN, ~(states[0][1] | states[1][1]))
    spaces = [each.space(each.layers[-1], rows=rows).vectors.float().cpu().numpy() for each, _ in states]
    return pictured(setup, dict(zip(TITLES, spaces, strict=True)))


def pictured(setup: Setup, states: Mapping[str, np.ndarray]) -> Picture:
    """Return the picture of (n, d) states "before" and "after" of the same tokens."""
    n = len(states["before"])
    some = np.sort(np.random.default_rng(0).choice(n, min(n, N_TOKENS), replace=False))
    planes = [_plane([states[when][some] for when in TITLES], seed) for seed in range(N_SEEDS)]
    return Picture(
        start=setup.start.name,
        title=setup.start.title,
        n_tokens=n,
        mean_cosine={when: float(iso.mean_cosine(states[when])) for when in TITLES},
        isoscore={when: float(iso.isoscore(states[when])) for when in TITLES},
        points=dict(zip(TITLES, (points.round(3).tolist() for points in planes[0]), strict=True)),
        spread=[_area(after) / _area(before) for before, after in planes],
    )


def _plane(states: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    return np.split(projection(np.concatenate(states), method="UMAP", seed=seed), len(states))


def _area(points: np.ndarray) -> float:
    return float(np.sqrt(np.linalg.det(np.cov(points.T))))


def picture_findings(pictures: Sequence[Picture]) -> Iterator[Finding]:
    """Yield whether the embeddings of each start spread out in the plane."""
    for one in pictures:
        wider = sum(ratio > 1 for ratio in one.spread)
        cosine = one.mean_cosine
        parts = {
            "the mean cosine falls": cosine["after"] < cosine["before"],
            "the points cover more of the plane": (wider > 0) - (wider < len(one.spread)),
        }
        ours = (
            f"area in one plane after training {span(one.spread, 2)} times that "
            f"before ({N_SEEDS} seeds of UMAP); mean cosine {cosine['before']:.3f} → {cosine['after']:.3f}"
        )
        found = decide("umap-spread", parts, ours, where="in that {}")
        about = f"{one.title}, {STEPS} updates, {one.n_tokens:,} token states"
        yield from on("contrastive", one.title, [found], about)


def picture_section(pictures: Sequence[Picture]) -> Section:
    """Return the section with the paper's figure 1."""
    text = (
        f"Figure 1 of the paper: token states of the probe before training and after {STEPS} updates, by "
        "UMAP, both times in one plane. UMAP keeps who is near whom and not the angle at the origin: that a "
        "cone has opened is seen in the mean cosine of the states themselves, and hardly in the picture."
    )
    heads = ("start", "token states", "mean cosine", "after", "IsoScore", "after",
             "area after / before, by seed")  # fmt: skip
    cells, drawings = [], []
    for one in pictures:
        figures = (f"{value:.3f}" for values in (one.mean_cosine, one.isoscore) for value in values.values())
        spread = ", ".join(f"{ratio:.2f}" for ratio in one.spread)
        cells.append((one.title, f"{one.n_tokens:,}", *figures, spread))
        n = len(one.points["before"])
        caption = f"{one.title}: {n:,} tokens by UMAP before and after {STEPS} updates; grey: the other time"
        stem = f"dynamics-umap-{one.start}"
        drawings.append(Drawing(caption, stem, (7.0, 3.2), partial(_draw, one), dpi=200))
    return Section("The picture", text, (), heads, tuple(cells), tuple(drawings))


def _draw(picture: Picture, figure: Figure) -> None:
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for panel, when, other, color in zip(panels, TITLES, reversed(TITLES), PALETTE, strict=False):
        for name, hue, order in ((other, "#dddddd", 1), (when, color, 2)):
            panel.scatter(*np.array(picture.points[name]).T, s=2.5, color=hue, linewidths=0, zorder=order)
        panel.set_title(f"{TITLES[when]}: mean cosine {picture.mean_cosine[when]:.3f}", color=INK)
        panel.set_xticks([])
        panel.set_yticks([])
