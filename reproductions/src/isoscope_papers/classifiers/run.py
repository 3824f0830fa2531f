"""Run a setup of the classifier experiments and compare it with what the paper reports."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from torch import Tensor

from isoscope import isotropy_ceiling
from isoscope.arrays import as_device
from isoscope.encoders import encode, static_vectors
from isoscope.errors import FileError, InputError, UndefinedError
from isoscope.io import read_json, write_json
from isoscope.training import Trajectory, train_embeddings
from isoscope_papers.classifiers.setups import SAMPLE, SETUPS, Published, Setup
from isoscope_papers.corpora import Corpus, load_corpus
from isoscope_papers.rows import Row, below, equal, unpublished, within

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
class Outcome:
    """A setup that was run.

    Attributes:
        setup: what was run.
        encoder: with which vectors.
        trajectory: what was measured.
        source: where the texts came from.
        published: what the paper reports of it.
        comparable: whether it is the paper's own: encoder by name, number of items, and protocol.
        seconds: how long training took, metrics included; None where it was not noted.
    """

    setup: Setup
    encoder: str
    trajectory: Trajectory
    source: str
    published: Published
    comparable: bool
    seconds: float | None = None

    @property
    def title(self) -> str:
        """The setup with its encoder."""
        return f"{self.setup.title}, {self.encoder}"

    def rows(self) -> list[Row]:
        """Ours beside published, quantity by quantity."""
        run, theirs, same = self.trajectory, self.published, self.comparable
        n_items, mean = run.configuration["n_items"], run.mean()
        r, rho = _correlations(run, self.setup.first_step)
        found = [
            equal(self.title, "items", n_items, theirs.n_items, comparable=same),
            equal(self.title, "parameters", run.n_parameters, theirs.n_parameters, comparable=same),
            within(self.title, "r", r, theirs.r, tolerance=R_TOLERANCE, comparable=same),
            self._rho(rho),
            *self._spread(),
        ]
        if self.setup.first_step:
            found.append(unpublished(self.title, "r with the start", _correlations(run, 0)[0], 5))
        for metric, digits in (("silhouette", 3), ("isoscore", 4)):
            for moment, place in (("start", 0), ("end", -1)):
                value = float(mean[metric][place])
                found.append(unpublished(self.title, f"{metric}, {moment}", value, digits))
        if self.seconds is not None:
            found.append(unpublished(self.title, "seconds", self.seconds, 1))
        return found

    def _rho(self, rho: float | None) -> Row:
        """Compare ρ with its own figure where one is published, else with the bound stated for all setups."""
        theirs, same = self.published, self.comparable
        if theirs.rho is None:
            return below(self.title, "ρ", rho, theirs.rho_below, comparable=same)
        return within(self.title, "ρ", rho, theirs.rho, tolerance=RHO_TOLERANCE, comparable=same)

    def _spread(self) -> list[Row]:
        """Standard deviations over seeds (divisor n_seeds): the largest of either curve, the mean of both.

        The paper does not say how it divides and averages; so taken, its bounds hold.
        """
        run, theirs, same = self.trajectory, self.published, self.comparable
        if len(run.seeds) < 2:
            return []
        found = np.stack([run.curves(name).std(axis=0) for name in ("silhouette", "isoscore")])
        most, average = float(found.max()), float(found.mean())
        return [
            below(self.title, "sd, largest", most, theirs.max_sd_below, comparable=same),
            below(self.title, "sd, mean", average, theirs.mean_sd_below, comparable=same),
        ]

    @property
    def sampled(self) -> str:
        """What of the paper's protocol was sampled, in words; empty where nothing was."""
        about = self.trajectory.configuration
        n_seeds, every, tolerance = len(about["seeds"]), about["every"], about["silhouette_tolerance"]
        parts = [
            f"{n_seeds} of the paper's {N_SEEDS} seeds" if n_seeds != N_SEEDS else "",
            f"measured at every {every} updates and interpolated" if every > 1 else "",
            f"silhouettes estimated to ± {tolerance:g}" if tolerance is not None else "",
        ]
        return ", ".join(part for part in parts if part)

    def ceiling(self) -> tuple[int, int, float]:
        """Distinct label sets K, dimensions d of an item, and the IsoScore collapsed labels cannot pass."""
        about = self.trajectory.configuration
        K, d = int(about["n_clusters"]), int(about["d"]) * int(about["n_columns"])
        return K, d, float(isotropy_ceiling(n_labels=K, n_dims=d))


def prepare_task(
    setup: Setup,
    *,
    encoder: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    device: str | None = None,
    progress: bool | None = None,
) -> Task:
    """Read the corpus and make the table: each distinct string once, or a row an item."""
    corpus = load_corpus(setup.corpus, data=data, download=download)
    if setup.is_static:
        return _words(setup, corpus, encoder)
    texts = corpus.distinct() if setup.once else corpus.columns[0]
    model = encoder or setup.encoder
    prefix = PREFIXES.get(Path(model).name, "")
    prefixed = [prefix + text for text in texts]
    vectors = encode(prefixed, model=model, download=download, device=device, progress=progress)
    return Task(vectors, corpus.labels, corpus.pairs if setup.once else None, corpus.source)


def _words(setup: Setup, corpus: Corpus, encoder: str | os.PathLike[str] | None) -> Task:
    """The words the table of vectors has, with their sets of labels."""
    vectors, kept = static_vectors(corpus.columns[0], model=encoder or setup.encoder)
    labels = [corpus.labels[place] for place in kept.tolist()]
    if setup.unit_length:
        vectors = vectors / vectors.norm(dim=1).mean()
    if setup.only_single:
        single = [row for row, label in enumerate(labels) if len(label) == 1]
        return Task(vectors[single], [next(iter(labels[row])) for row in single], None, corpus.source)
    return Task(vectors, labels, None, corpus.source)


def run_setup(
    setup: Setup,
    *,
    encoder: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    device: str | None = None,
    seeds: int | Iterable[int] = N_SEEDS,
    steps: int | None = None,
    every: int = 1,
    tolerance: float | None = None,
    folder: str | os.PathLike[str] | None = None,
    log: str | None = None,
    progress: bool | None = None,
) -> Outcome:
    """Run one setup by the paper's protocol, or find it finished in its folder.

    Args:
        setup: of `SETUPS`.
        encoder: a name, a folder or a file of word vectors, in place of the setup's own.
        data: folder of the corpora; ISOSCOPE_DATA where not given.
        download: fetch corpus and model where they are not on this machine.
        device: where to train: "cpu", "cuda".
        seeds, steps, every: as of `train_embeddings`; the paper's where not given.
        tolerance: estimate silhouettes to ± this instead of exactly.
        folder: keeps the run, to be continued or read again.
        log: "tensorboard", "wandb" or "mlflow".
        progress: show a bar.
    """
    place = as_device(device)
    task = prepare_task(
        setup, encoder=encoder, data=data, download=download, device=device, progress=progress
    )
    table = task.vectors if place is None else task.vectors.to(place)
    begun = folder is not None and (Path(folder) / "trajectory.parquet").exists()
    began = time.perf_counter()
    trajectory = train_embeddings(
        table, task.labels, pairs=task.pairs, steps=steps or setup.steps, seeds=seeds, every=every,
        bias=setup.bias, sample_above=SAMPLE, sample_table=True, silhouette_tolerance=tolerance,
        run=folder, log=log, progress=progress,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    if folder is None:
        return outcome(setup, encoder, trajectory, task.source, seconds)
    if (Path(folder) / _ABOUT).exists():  # it was finished before: what it took then counts
        return _read(Path(folder))
    found = outcome(setup, encoder, trajectory, task.source, None if begun else seconds)
    note_run(found, Path(folder))
    return found


def note_run(found: Outcome, folder: Path) -> None:
    """Write beside a finished run which setup it was."""
    about = {
        "setup": found.setup.name,
        "encoder": found.encoder,
        "source": found.source,
        "seconds": found.seconds,
    }
    write_json(folder / _ABOUT, about, indent=2)


def read_outcomes(folder: str | os.PathLike[str]) -> list[Outcome]:
    """The finished runs below a folder, by encoder, each in the order of the paper."""
    found = [_read(path.parent) for path in sorted(Path(folder).glob(f"*/{_ABOUT}"))]
    if not found:
        raise InputError(
            f"{folder} holds no finished runs; wanted folders with {_ABOUT}, as --output keeps them"
        )
    order = list(SETUPS)
    return sorted(found, key=lambda one: (one.encoder, order.index(one.setup.name)))


def _read(folder: Path) -> Outcome:
    """A finished run, as `note_run` describes it."""
    path = folder / _ABOUT
    try:
        about = read_json(path, sealed=False)
        setup, encoder, source = SETUPS[about["setup"]], str(about["encoder"]), str(about["source"])
        seconds = about.get("seconds")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{path} does not say which setup was run: {error}") from error
    return outcome(setup, encoder, Trajectory.load(folder / "trajectory.parquet"), source, seconds)


def outcome(
    setup: Setup,
    encoder: str | os.PathLike[str] | None,
    trajectory: Trajectory,
    source: str,
    seconds: float | None = None,
) -> Outcome:
    """A run with what the paper reports of it, and whether the two can be compared."""
    named, about = Path(encoder or setup.encoder).name, trajectory.configuration
    published = setup.published.get(named)
    shown = published or next(iter(setup.published.values()), Published())
    same_size = published is not None and about["n_items"] == published.n_items
    return Outcome(setup, named, trajectory, source, shown, same_size and _by_protocol(about, setup), seconds)


def _by_protocol(about: Mapping[str, Any], setup: Setup) -> bool:
    """Whether a run had the paper's updates and was measured closely enough for its correlation to stand.

    Fewer seeds, and curves between updates, move r by less than R_TOLERANCE: of the kept runs of five seeds
    measured at every update, one seed at every fifth update is within 0.003.
    """
    tolerance = about["silhouette_tolerance"]
    close = about["every"] <= MAX_EVERY and (tolerance is None or tolerance <= MAX_TOLERANCE)
    return bool(close and about["steps"] == setup.steps)


def _correlations(run: Trajectory, first_step: int) -> tuple[float | None, float | None]:
    """r and ρ of the curves averaged over the seeds, from a step on; the paper has every update in them.

    Between the updates that were measured, curves are interpolated linearly.
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
