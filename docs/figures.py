"""Draw the figures of the documentation from computations.

    python docs/figures.py            all, into docs/figures/ (about a minute; report.png needs chromium)
    python docs/figures.py clusters   some

Each figure keeps the numbers it shows inside its PNG, as JSON. Tests compute them again and compare, so a
picture cannot outlive the code.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import isoscope as iso
from isoscope.figures import INK, PALETTE, new_figure
from isoscope_papers.corpora import load_corpus

FOLDER = Path(__file__).resolve().parent / "figures"
DPI = 170
Numbers = dict[str, Any]
Drawn = tuple[Any, Numbers]


def isotropy() -> Drawn:
    """Two dimensions of a round, a stretched and an off-centre cloud, and the scores of each."""
    cloud = np.random.default_rng(0).normal(size=(2000, 50))
    spaces = {
        "round": cloud,
        "stretched": cloud * np.r_[10, np.ones(49)],
        "off centre": cloud + 2,
    }
    numbers = {name: [iso.isoscore(X), iso.mean_cosine(X)] for name, X in spaces.items()}
    with new_figure((7.0, 2.6)) as figure:
        for ax, (name, X) in zip(
            figure.subplots(1, 3, sharex=True, sharey=True), spaces.items(), strict=True
        ):
            ax.scatter(X[:600, 0], X[:600, 1], s=4, color=PALETTE[0], alpha=0.5, linewidths=0)
            ax.plot(0, 0, "+", color=INK, markersize=9)
            score, cosine = numbers[name]
            ax.set_title(f"{name}\nIsoScore {score:z.2f}, mean cosine {cosine:z.2f}")
            ax.set_xlabel("dimension 1 of 50")
            ax.set_aspect("equal")
            ax.set_xlim(-12, 12)
            ax.set_ylim(-8, 8)
        figure.axes[0].set_ylabel("dimension 2")
    return figure, numbers


def bias() -> Drawn:
    """IsoScore, plain and debiased, of samples of one space."""
    n_dims, n_draws = 64, 40
    sizes = (8, 16, 32, 64, 128, 256, 512)
    scales = np.sqrt(np.geomspace(1, 0.1, n_dims))
    truth = ((scales**2).sum() ** 2 / (scales**4).sum() - 1) / (n_dims - 1)
    numbers: Numbers = {"truth": truth, "plain": [], "debiased": []}
    for n in sizes:
        rng = np.random.default_rng(n)
        draws = [rng.normal(size=(n, n_dims)) * scales for _ in range(n_draws)]
        for name, debias in (("plain", False), ("debiased", True)):
            scores = [iso.isoscore(X, debias=debias) for X in draws]
            numbers[name].append([float(np.mean(scores)), float(np.std(scores, ddof=1))])
    with new_figure((4.6, 2.8)) as figure:
        ax = figure.subplots()
        ax.axhline(truth, color=INK, linewidth=0.8, linestyle="--", label="of the population")
        for color, name in zip(PALETTE, ("plain", "debiased"), strict=False):
            mean, sd = np.array(numbers[name]).T
            ax.plot(sizes, mean, "o-", color=color, markersize=3, linewidth=1, label=name)
            ax.fill_between(sizes, mean - sd, mean + sd, color=color, alpha=0.18, linewidth=0)
        ax.set_xscale("log", base=2)
        ax.set_xticks(sizes, [str(n) for n in sizes])
        ax.set_xlabel(f"vectors in the sample, of {n_dims} dimensions")
        ax.set_ylabel("IsoScore")
        ax.legend(frameon=False, loc="lower right")
    return figure, numbers


def clusters() -> Drawn:
    """Three labels moved apart, in a plane, and what the scores say."""
    rng = np.random.default_rng(0)
    y = np.arange(360) % 3
    noise = rng.normal(size=(360, 2))
    corners = np.array([[0, 1], [0.87, -0.5], [-0.87, -0.5]])
    spaces = {"hardly": noise + 0.8 * corners[y], "overlapping": noise + 2.2 * corners[y]}
    spaces["clear"] = noise + 6 * corners[y]
    numbers = {
        name: [iso.silhouette_score(X, y), iso.metrics.between_share(X, y), iso.knn_purity(X, y)]
        for name, X in spaces.items()
    }
    with new_figure((7.0, 2.7)) as figure:
        for ax, (name, X) in zip(figure.subplots(1, 3), spaces.items(), strict=True):
            for label, marker in enumerate("o^s"):
                ax.scatter(
                    *X[y == label].T, s=7, color=PALETTE[label], marker=marker, alpha=0.6, linewidths=0
                )
            silhouette, share, purity = numbers[name]
            ax.set_title(f"silhouette {silhouette:.2f}, ρ {share:.2f}\nneighbours' purity {purity:.2f}")
            ax.set_aspect("equal", adjustable="datalim")
            ax.set_xticks([])
            ax.set_yticks([])
    return figure, numbers


def ceiling() -> Drawn:
    """Draw the largest IsoScore by the share between labels for several numbers of labels, and the digits."""
    n_dims, shares = 64, np.linspace(0, 1, 201)
    X, y = load_digits(return_X_y=True)
    here = iso.frontier_position(X, y, debias=True)
    numbers: Numbers = {"digits": [here.between_share, here.isoscore, here.ceiling]}
    with new_figure((4.6, 3.0)) as figure:
        ax = figure.subplots()
        for color, n_labels in zip(
            (PALETTE[1], PALETTE[0], PALETTE[2], PALETTE[3]), (2, 10, 30, 65), strict=True
        ):
            top = [iso.isotropy_ceiling(n_labels, n_dims, between=float(share)) for share in shares]
            numbers[f"{n_labels} labels"] = top[::20]
            ax.plot(shares, top, color=color, linewidth=1.2, label=f"{n_labels} labels")
        ax.plot(here.between_share, here.isoscore, "o", color=PALETTE[0], markersize=5)
        ax.vlines(
            here.between_share, here.isoscore, here.ceiling, color=PALETTE[0], linestyle=":", linewidth=1
        )
        ax.annotate("digits", (here.between_share, here.isoscore), (6, -3), textcoords="offset points")
        ax.set_xlabel("ρ, share of the variance between labels")
        ax.set_ylabel(f"IsoScore in {n_dims} dimensions")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1.04)
        ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.97))
    return figure, numbers


def least_silhouette() -> Drawn:
    """Draw the least share between labels by the least silhouette, and the IsoScore that is left."""
    n_dims, rng, spaces = 768, np.random.default_rng(0), []
    while len(spaces) < 150:
        y, d = np.repeat([0, 1], 20), int(rng.integers(2, 12))
        X = rng.normal(size=(40, d)) * rng.lognormal(sigma=rng.uniform(0, 1.5), size=(2, d))[y]
        X += np.exp(rng.uniform(0, 3)) * y[:, None] * rng.normal(size=d)
        least = float(iso.metrics.silhouette_samples(X, y).min())
        if least > 1 - 2**-0.5:
            spaces.append([least, float(iso.metrics.between_share(X, y))])
    numbers: Numbers = {"spaces of two labels": spaces}
    r = np.linspace(2**-0.5, 0.02, 120)
    with new_figure((7.0, 2.9)) as figure:
        shares, scores = figure.subplots(1, 2)
        shares.plot(*np.transpose(spaces), "o", color=INK, markersize=2, alpha=0.4, label="random, 2 labels")
        for color, n_labels in zip((PALETTE[1], PALETTE[0], PALETTE[2]), (2, 10, 100), strict=True):
            odds = (1 - 1 / n_labels) * (1 - 2 * r**2).clip(0) / (2 * r**2)
            share = odds / (1 + odds)
            top = [iso.isotropy_ceiling(n_labels, n_dims, between=float(one)) for one in share]
            numbers[f"{n_labels} labels"] = [share[::20].tolist(), top[::20]]
            shares.plot(1 - r, share, color=color, linewidth=1.2, label=f"{n_labels} labels")
            scores.plot(1 - r, top, color=color, linewidth=1.2)
        shares.set_ylabel("ρ, at least")
        scores.set_ylabel(f"IsoScore in {n_dims} dimensions, at most")
        for ax in (shares, scores):
            ax.set_xlabel("least silhouette of a point")
            ax.set_xlim(0.25, 1)
            ax.set_ylim(0, 1.04)
        shares.legend(frameon=False, loc="lower right")
    return figure, numbers


def anchors() -> Drawn:
    """Draw the estimated silhouette and its interval over seeds, with the exact value."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 6000)
    X = rng.normal(size=(6000, 16)) + 2.5 * np.eye(16)[y]
    exact = iso.silhouette_score(X, y)
    found = [iso.metrics.estimate_silhouette(X, y, tolerance=3e-3, seed=seed) for seed in range(20)]
    intervals = [[one.interval[0], one.value, one.interval[1]] for one in found]
    with new_figure((5.4, 2.4)) as figure:
        ax = figure.subplots()
        for seed, (low, value, high) in enumerate(intervals):
            color = PALETTE[0] if low <= exact <= high else PALETTE[1]
            ax.plot([seed, seed], [low, high], color=color, linewidth=1.4)
            ax.plot(seed, value, "o", color=color, markersize=3)
        ax.axhline(exact, color=INK, linewidth=0.8, linestyle="--")
        ax.set_xticks(range(0, 20, 5))
        ax.set_xlabel(f"seed; {found[0].n_anchors} anchors of 6,000 points")
        ax.set_ylabel("silhouette")
    return figure, {"exact": exact, "intervals": intervals}


def precision() -> Drawn:
    """How far IsoScore is off in float32 when the mean is large."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 32)) * np.linspace(1, 2, 32)
    shifts = [10.0**power for power in np.arange(0, 5.1, 0.5)]
    rows = []
    for shift in shifts:
        far = (X + shift).astype(np.float32)
        truth = _isoscore_of(np.cov((far.astype(np.float64) - shift).T))
        raw = (far.T @ far) / len(far) - np.outer(far.mean(0), far.mean(0))
        rows.append([abs(_isoscore_of(raw) - truth), abs(iso.isoscore(far) - truth)])
    with new_figure((4.6, 2.6)) as figure:
        ax = figure.subplots()
        for color, values, name in zip(
            (PALETTE[1], PALETTE[0]), np.array(rows).T, ("raw sums in float32", "isoscope"), strict=True
        ):
            ax.plot(
                shifts, np.maximum(values, 1e-17), "o-", color=color, markersize=3, linewidth=1, label=name
            )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("the mean, in every coordinate (deviations are 1 to 2)")
        ax.set_ylabel("error of IsoScore")
        ax.legend(frameon=False, loc="upper left")
    return figure, {"worst isoscope": max(row[1] for row in rows) < 1e-6, "worst raw": rows[-1][0] > 0.01}


def _isoscore_of(S: np.ndarray) -> float:
    S = S.astype(np.float64)
    return float((np.trace(S) ** 2 / (S**2).sum() - 1) / (len(S) - 1))


def manifold() -> Drawn:
    """Draw a curved sheet, and its dimension by local and global methods."""
    rng = np.random.default_rng(0)
    turn, height = 1.5 * np.pi * (1 + 2 * rng.random(1500)), 20 * rng.random(1500)
    sheet = np.stack([turn * np.cos(turn), height, turn * np.sin(turn)], 1)
    dims = (1, 2, 3, 5, 8, 12, 16)
    rows = []
    for dim in dims:
        spheres = [_sphere(np.random.default_rng([dim, draw]), 1500, dim) for draw in range(3)]
        rows.append(
            [
                float(np.mean([score(X) for X in spheres]))
                for score in (lambda X: iso.lid(X, k=30), iso.twonn, iso.participation_ratio)
            ]
        )
    seen = [iso.lid(sheet, k=15), iso.twonn(sheet), iso.participation_ratio(sheet)]
    with new_figure((7.0, 3.0)) as figure:
        left = figure.add_subplot(1, 2, 1, projection="3d")
        left.scatter(*sheet.T, c=turn, s=3, cmap="viridis", linewidths=0)
        left.set_title(f"a sheet: LID {seen[0]:.1f}, TwoNN {seen[1]:.1f}\nparticipation ratio {seen[2]:.1f}")
        left.set_xticks([])
        left.set_yticks([])
        left.set_zticks([])
        left.view_init(12, -70)
        ax = figure.add_subplot(1, 2, 2)
        ax.plot(dims, dims, color=INK, linewidth=0.8, linestyle="--", label="true")
        for color, values, name in zip(
            PALETTE, np.array(rows).T, ("LID", "TwoNN", "participation ratio"), strict=False
        ):
            ax.plot(dims, values, "o-", color=color, markersize=3, linewidth=1, label=name)
        ax.set_xlabel("dimension of a curved sphere in 64 dimensions")
        ax.set_ylabel("estimate from 1,500 points")
        ax.legend(frameon=False)
    return figure, {"sheet": seen, "spheres": rows}


def _sphere(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    """n points of a sphere of `dim` dimensions, turned into 64."""
    X = rng.normal(size=(n, dim + 1))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    turned, _ = np.linalg.qr(rng.normal(size=(64, 64)))
    return X @ turned[: dim + 1]


def scales() -> Drawn:
    """Draw the dimension over scales of a line with noise, and of handwritten digits."""
    rng = np.random.default_rng(0)
    line = np.zeros((1000, 10))
    line[:, 0] = rng.random(1000)
    spaces = {
        "a line with noise in 10 dimensions": line + 0.002 * rng.normal(size=line.shape),
        "handwritten digits, 64 dimensions": load_digits().data,
    }
    measured = {name: iso.metrics.dimension_scales(X, max_k=128) for name, X in spaces.items()}
    with new_figure((7.0, 2.6)) as figure:
        for ax, (name, found) in zip(figure.subplots(1, 2), measured.items(), strict=True):
            iso.plots.plot_dimension_scales(found, ax=ax)
            ax.set_title(name)
    return figure, {name: [row.value for row in found.rows] for name, found in measured.items()}


def _reviews(n: int) -> list[str]:
    films = load_corpus("polarity", source="embedded")
    return [text for text in films.columns[0][::53] if len(text) < 120][:n]


def contextual() -> Drawn:
    """Every layer of all-MiniLM-L6-v2 on film reviews."""
    profile = iso.models.measure_layers(_reviews(60), model="all-MiniLM-L6-v2", clusters=False, sample=200)
    names = ("mean_cosine", "self_similarity", "intra_similarity")
    numbers = {name: profile.values(name) for name in names}
    adjusted = {name: profile.values(f"adjusted_{name}") for name in names[1:]}
    words = ("any two tokens", "one token in two contexts", "a token and its sentence")
    with new_figure((7.0, 2.9)) as figure:
        raw, less = figure.subplots(1, 2, sharey=True)
        for color, name, label in zip(PALETTE, names, words, strict=False):
            raw.plot(numbers[name], "o-", color=color, markersize=3, linewidth=1, label=label)
            if name in adjusted:
                less.plot(adjusted[name], "o-", color=color, markersize=3, linewidth=1)
        raw.set_title("mean cosine")
        less.set_title("less that of any two tokens")
        raw.set_ylim(0, 1)
        figure.legend(frameon=False, loc="outside lower center", ncols=3)
        for ax in (raw, less):
            ax.set_xlabel("layer of all-MiniLM-L6-v2")
    return figure, {**numbers, **{f"adjusted_{name}": values for name, values in adjusted.items()}}


def sinks() -> Drawn:
    """Lengths of tokens in one layer of SmolLM2, and IsoScore in every third layer with and without sinks."""
    states = iso.models.token_states(_reviews(24), model="smollm2-135m", layers=range(0, 31, 3))
    norms = np.stack([states.vectors(layer).norm(dim=1).numpy() for layer in states.layers])
    found = iso.metrics.find_sinks(norms, positions=states.rows.positions, layers=states.layers)
    kept = ~found.mask
    scores = [
        [iso.isoscore(X, debias=True), iso.isoscore(X[kept], debias=True)]
        for X in map(states.vectors, states.layers)
    ]
    middle = states.layers.index(15)
    with new_figure((7.0, 2.7)) as figure:
        left, right = figure.subplots(1, 2)
        for color, rows, name in ((PALETTE[0], kept, "other tokens"), (PALETTE[1], found.mask, "sinks")):
            left.scatter(
                np.asarray(states.rows.positions)[rows],
                norms[middle][rows],
                s=8,
                color=color,
                alpha=0.7,
                label=name,
            )
        left.axhline(10 * np.median(norms[middle]), color=INK, linewidth=0.8, linestyle="--")
        left.set_yscale("log")
        left.set_xlabel("position in the text")
        left.set_ylabel("length in layer 15")
        left.legend(frameon=False)
        for color, values, name in zip(
            (PALETTE[1], PALETTE[0]), np.array(scores).T, ("all", "without"), strict=True
        ):
            right.plot(states.layers, values, "o-", color=color, markersize=3, linewidth=1, label=name)
        right.set_xlabel("layer of SmolLM2-135M")
        right.set_ylabel("debiased IsoScore")
        right.legend(frameon=False)
    return figure, {"n_sinks": int(found.mask.sum()), "scores": scores}


def overview() -> Drawn:
    """Digits as points; trained by a linear classifier; and the training under the frontier."""
    X, y = load_digits(return_X_y=True)
    X, y = (X[:600] / 16).astype("float32"), y[:600]
    run = iso.train_embeddings(
        X,
        y,
        steps=100,
        seeds=2,
        every=5,
        learning_rate=0.01,
        metrics=["isoscore", "silhouette", "between_share"],
    )
    mean = run.mean()
    numbers = {name: mean[name][::4].tolist() for name in ("isoscore", "silhouette", "between_share")}
    with new_figure((7.0, 2.5)) as figure:
        first, second, third = figure.subplots(1, 3)
        iso.plots.plot_scatter(X, y, ax=first)
        first.get_legend().remove()
        first.set_title("before: ten digits")
        for color, name in zip(PALETTE, ("isoscore", "silhouette"), strict=False):
            second.plot(run.steps, mean[name], color=color, linewidth=1.4, label=name)
        second.set_title("a classifier trains them")
        second.set_xlabel("update")
        second.set_ylim(0, 0.75)
        second.legend(frameon=False, loc="center right")
        iso.plots.plot_against_frontier(runs={"training": run}, n_labels=10, n_dims=64, ax=third)
        third.set_title("towards clusters, off isotropy")
        third.set_xlabel("ρ, share between labels")
    return figure, numbers


FIGURES: dict[str, Callable[[], Drawn]] = {
    "isotropy": isotropy,
    "bias": bias,
    "clusters": clusters,
    "ceiling": ceiling,
    "least_silhouette": least_silhouette,
    "anchors": anchors,
    "precision": precision,
    "manifold": manifold,
    "scales": scales,
    "contextual": contextual,
    "sinks": sinks,
    "overview": overview,
}


def main() -> None:
    """Draw the figures asked for."""
    parser = argparse.ArgumentParser(description="Draw the figures of the documentation.")
    parser.add_argument("names", nargs="*", help=f"some of {', '.join([*FIGURES, 'report'])}; all by default")
    for name in parser.parse_args().names or [*FIGURES, "report"]:
        path = FOLDER / f"{name}.png"
        if name == "report":
            screenshot(path)
        else:
            figure, numbers = FIGURES[name]()
            figure.savefig(path, dpi=DPI, metadata={"Software": None, "Description": json.dumps(numbers)})
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


def screenshot(path: Path) -> None:
    """Take a picture of the first screens of the report on the digits."""
    from playwright.sync_api import sync_playwright

    X, y = load_digits(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        iso.report(iso.Space(X, labels=y, name="digits"), path=page_file)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 1150})
        page.goto(page_file.as_uri())
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    main()
