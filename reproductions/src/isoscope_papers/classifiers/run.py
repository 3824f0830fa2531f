"""Run a setup of the classifier experiments and compare it with what the paper reports."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from torch import Tensor

from isoscope import isotropy_ceiling
from isoscope.arrays import as_device
from isoscope.cli import parse_seeds
from isoscope.errors import FileError, InputError, UndefinedError
from isoscope.models import encode, static_vectors
from isoscope.training import Trajectory, train_embeddings
from isoscope_papers import runs
from isoscope_papers.classifiers.options import Options
from isoscope_papers.classifiers.setups import SAMPLE, SETUPS, Published, Setup
from isoscope_papers.corpora import load_corpus
from isoscope_papers.rows import OTHER_DATA, Row, below, equal, unpublished, within
from isoscope_papers.study import Place

R_TOLERANCE = RHO_TOLERANCE = 0.003
MAX_EVERY, MAX_TOLERANCE = 5, 1e-3  # updates between measurements, and error of a silhouette
N_SEEDS = 5
PREFIXES = {"e5-small": "query: "}  # what an encoder was trained with before each text
_ABOUT = "setup.json"


@dataclass(frozen=True)
class Task:
    """What a setup trains on: (n, d) vectors, a label or set of labels an item, and the rows of each item."""

    vectors: Tensor
    labels: Sequence[Any]
    pairs: np.ndarray | None
    source: str


@dataclass(frozen=True)
class About:
    """What is kept beside the trajectory of a run: its setup, encoder, source of texts, and seconds."""

    setup: str
    encoder: str
    source: str
    seconds: float | None = None


@dataclass(frozen=True)
class Outcome:
    """A setup that was run."""

    setup: Setup
    encoder: str
    trajectory: Trajectory
    source: str  # of the texts
    seconds: float | None = None  # of training, metrics included; None where it was not noted

    @property
    def title(self) -> str:
        """Return the setup with its encoder."""
        return f"{self.setup.title}, {self.encoder}"

    @property
    def published(self) -> Published:
        """Return what the paper reports of it, or of the setup with the first of its own encoders."""
        first = next(iter(self.setup.published.values()), Published())
        return self.setup.published.get(self.encoder, first)

    @property
    def comparable(self) -> bool:
        """Return whether it is the paper's own: encoder by name, number of items, and protocol.

        Fewer seeds, and curves between updates, move r by less than R_TOLERANCE: of the kept runs of five
        seeds measured at every update, one seed at every fifth update is within 0.003.
        """
        about = self.trajectory.configuration
        tolerance = about["silhouette_tolerance"]
        close = about["every"] <= MAX_EVERY and (tolerance is None or tolerance <= MAX_TOLERANCE)
        same = self.encoder in self.setup.published and about["n_items"] == self.published.n_items
        return bool(same and close and about["steps"] == self.setup.steps)

    @property
    def is_short(self) -> bool:
        """Return whether training stopped before the paper's number of updates."""
        return bool(self.trajectory.configuration["steps"] < self.setup.steps)

    @property
    def why_not(self) -> str:
        """Return why it is not comparable, in words; empty where it is."""
        if self.is_short:
            return f"{self.trajectory.configuration['steps']:,} of the paper's {self.setup.steps:,} updates"
        return "" if self.comparable else OTHER_DATA

    def rows(self) -> list[Row]:
        """Return ours beside published, quantity by quantity."""
        run, theirs, same, title = self.trajectory, self.published, self.comparable, self.title
        has_items = run.configuration["n_items"] == theirs.n_items and self.encoder in self.setup.published
        counts = same or (has_items and self.is_short)  # counts do not depend on the updates
        r, rho = _correlations(run, self.setup.first_step)
        found = [
            equal(title, "items", run.configuration["n_items"], theirs.n_items, comparable=counts),
            equal(title, "parameters", run.n_parameters, theirs.n_parameters, comparable=counts),
            within(title, "r", r, theirs.r, tolerance=R_TOLERANCE, comparable=same),
            # the bound is stated for all setups: it decides where ρ has no figure of its own
            below(title, "ρ", rho, theirs.rho_below, comparable=same)
            if theirs.rho is None
            else within(title, "ρ", rho, theirs.rho, tolerance=RHO_TOLERANCE, comparable=same),
        ]
        if len(run.seeds) > 1:
            # the paper does not say how it divides (here by the number of seeds) and averages (here over both
            # curves); so taken, its bounds hold
            spread = np.stack([run.curves(name).std(axis=0) for name in ("silhouette", "isoscore")])
            for name, value, bound in (
                ("largest", spread.max(), theirs.max_sd_below),
                ("mean", spread.mean(), theirs.mean_sd_below),
            ):
                found.append(below(title, f"sd, {name}", float(value), bound, comparable=same))
        if self.setup.first_step:
            found.append(unpublished(title, "r with the start", _correlations(run, 0)[0], 5))
        for metric, digits in (("silhouette", 3), ("isoscore", 4)):
            for moment, value in zip(("start", "end"), self.ends(metric), strict=True):
                found.append(unpublished(title, f"{metric}, {moment}", value, digits))
        if self.seconds is not None:
            found.append(unpublished(title, "seconds", self.seconds, 1))
        return found

    def ends(self, metric: str) -> tuple[float, float]:
        """Return a metric at the start and at the end, mean of the seeds."""
        curve = self.trajectory.mean()[metric]
        return float(curve[0]), float(curve[-1])

    @property
    def sampled(self) -> str:
        """Return what of the paper's protocol was sampled, in words; empty where nothing was."""
        about = self.trajectory.configuration
        steps, theirs = about["steps"], self.setup.steps
        n_seeds, every, tolerance = len(about["seeds"]), about["every"], about["silhouette_tolerance"]
        parts = [
            f"{steps:,} of the paper's {theirs:,} updates" if steps < theirs else "",
            f"{n_seeds} of the paper's {N_SEEDS} seeds" if n_seeds != N_SEEDS else "",
            f"measured at every {every} updates and interpolated" if every > 1 else "",
            f"silhouettes estimated to ± {tolerance:g}" if tolerance is not None else "",
        ]
        return ", ".join(part for part in parts if part)

    def ceiling(self) -> tuple[int, int, float]:
        """Return the label sets K, dimensions d of an item, and the IsoScore collapsed labels cannot pass."""
        about = self.trajectory.configuration
        K, d = int(about["n_clusters"]), int(about["d"]) * int(about["n_columns"])
        return K, d, float(isotropy_ceiling(n_labels=K, n_dims=d))


def prepare_task(
    setup: Setup, place: Place, *, encoder: str | None = None, progress: bool | None = None
) -> Task:
    """Read the corpus and make the table: each distinct string once, or a row an item."""
    corpus, model = (
        load_corpus(setup.corpus, data=place.data, download=place.download),
        encoder or setup.encoder,
    )
    if not setup.is_static:
        prefix = PREFIXES.get(Path(model).name, "")
        texts = [prefix + text for text in (corpus.distinct() if setup.once else corpus.columns[0])]
        vectors = encode(texts, model=model, download=place.download, device=place.device, progress=progress)
        return Task(vectors, corpus.labels, corpus.pairs if setup.once else None, corpus.source)
    vectors, kept = static_vectors(corpus.columns[0], model=model)  # of the words the table has
    labels = [corpus.labels[row] for row in kept.tolist()]
    if setup.unit_length:
        vectors = vectors / vectors.norm(dim=1).mean()
    if setup.only_single:
        single = [row for row, label in enumerate(labels) if len(label) == 1]
        vectors, labels = vectors[single], [next(iter(labels[row])) for row in single]
    return Task(vectors, labels, None, corpus.source)


def serves(encoder: str, setup: Setup) -> bool:
    """Return whether an encoder is of the setup's kind: a file of vectors for words, a model for texts."""
    return setup.is_static == Path(encoder).is_file()


def run_setup(setup: Setup, options: Options, place: Place, *, progress: bool | None = None) -> Outcome:
    """Run one setup by the paper's protocol, or find it finished in its folder.

    The encoder asked for takes the place of the setup's own where it serves the setup.
    """
    device = as_device(place.device)
    own = options.encoder if options.encoder is not None and serves(options.encoder, setup) else None
    named = Path(own or setup.encoder).name
    folder = place.runs and place.runs / f"{setup.name}-{named}"
    task = prepare_task(setup, place, encoder=own, progress=progress)
    table = task.vectors if device is None else task.vectors.to(device)
    begun = folder is not None and (folder / "trajectory.parquet").exists()
    began = time.perf_counter()
    trajectory = train_embeddings(
        table, task.labels, pairs=task.pairs, steps=options.steps or setup.steps,
        seeds=parse_seeds(options.seeds), every=options.every, bias=setup.bias, sample_above=SAMPLE,
        sample_table=True, silhouette_tolerance=options.tolerance, run=folder, resume=True, log=options.log,
        progress=progress,
    )  # fmt: skip
    seconds = None if begun else time.perf_counter() - began
    if folder is not None and (folder / _ABOUT).exists():  # finished before: what it took then counts
        return _read(folder)
    if folder is not None:
        runs.keep(About(setup.name, named, task.source, seconds), folder / _ABOUT)
    return Outcome(setup, named, trajectory, task.source, seconds)


def read_outcomes(folder: Path) -> list[Outcome]:
    """Return the finished runs below a folder, by encoder, each in the order of the paper."""
    found = [_read(path.parent) for path in sorted(folder.glob(f"*/{_ABOUT}"))]
    if not found:
        raise InputError(
            f"{folder} has no runs of classifiers", wanted=f"folders with {_ABOUT}, as --output writes them"
        )
    order = list(SETUPS)
    return sorted(found, key=lambda one: (one.encoder, order.index(one.setup.name)))


def _read(folder: Path) -> Outcome:
    about = runs.read(folder / _ABOUT, About)
    if about.setup not in SETUPS:
        raise FileError(f"{folder / _ABOUT} names setup {about.setup!r}, which is not known")
    trajectory = Trajectory.load(folder / "trajectory.parquet")
    return Outcome(SETUPS[about.setup], about.encoder, trajectory, about.source, about.seconds)


def _correlations(run: Trajectory, first_step: int) -> tuple[float | None, float | None]:
    """Return r and ρ of the curves averaged over the seeds, from a step on.

    The paper has every update in them: between those that were measured, curves are interpolated linearly.
    """
    if run.configuration["every"] > 1:
        mean = run.mean()
        steps = np.arange(first_step, int(mean["step"][-1]) + 1)
        curves = [np.interp(steps, mean["step"], mean[name]) for name in ("isoscore", "silhouette")]
        if any(np.ptp(curve) == 0 for curve in curves):
            return None, None
        return float(np.corrcoef(*curves)[0, 1]), float(spearmanr(*curves).statistic)
    try:
        found = run.correlation("isoscore", "silhouette", from_step=first_step)
    except UndefinedError:
        return None, None
    return found.r, found.rho
