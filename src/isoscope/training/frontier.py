"""`frontier`: compare a labelled space with the frontier, and find the causes of its anisotropy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from isoscope.clustering import choose_clusters, kmeans
from isoscope.errors import FileError, InputError, UndefinedError, check_seed
from isoscope.labels import as_clusters
from isoscope.metrics.attribution import Attribution, attribute_anisotropy
from isoscope.metrics.frontier import isotropy_ceiling
from isoscope.metrics.frontier_position import QUANTITIES, FrontierPosition, frontier_position
from isoscope.results import Result
from isoscope.space import Space
from isoscope.tables import Cell, Grid
from isoscope.tracking.trajectory import Trajectory
from isoscope.training.collapse import CollapsePrediction, prediction_beside
from isoscope.training.frontier_figure import checked_run, plot_against_frontier

_VISIBLE = 5e-5  # the smallest difference of IsoScore that four digits show


@dataclass(frozen=True, repr=False)
class Frontier(Result):
    """The position of a labelled space under the frontier.

    Attributes:
        plain: the position as measured.
        debiased: the position with the bias of small samples removed; None where that is undefined.
        attribution: the contribution of each label and each direction to the anisotropy.
        collapse: where training with a classifier is predicted to take IsoScore; None for more than 200
            labels, and where numbers would leave the range of float32.
        runs: training runs to compare with, by name.
        notes: the reason where there is no debiased position.
        top: number of labels and of directions to list.
    """

    plain: FrontierPosition
    debiased: FrontierPosition | None
    attribution: Attribution
    collapse: CollapsePrediction | None = None
    runs: Mapping[str, Trajectory] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    top: int = 5

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values, unrounded."""
        return {
            "plain": self.plain.to_dict(),
            "debiased": None if self.debiased is None else self.debiased.to_dict(),
            "attribution": self.attribution.to_dict(),
            "collapse": None if self.collapse is None else self.collapse.to_dict(),
            "runs": {name: ends(run) for name, run in self.runs.items()},
        }

    def _columns(self) -> dict[str, list[Any]]:
        rows = self.attribution.to_dict()["labels"]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def figure(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """Draw the positions and runs under the frontier, and return the axes."""
        positions = {"measured": self.plain} | ({} if self.debiased is None else {"debiased": self.debiased})
        return plot_against_frontier(positions, runs=self.runs, path=path, **options)

    def grids(self) -> Iterable[Grid]:
        """Return the tables of the positions, the labels and the directions."""
        yield self._positions()
        yield from self.attribution.grids(top=self.top)

    def lines(self) -> list[str]:
        """Return the meaning of the numbers, the runs and the notes."""
        lines = [_meaning(self.debiased or self.plain), *self.attribution.lines()]
        if self.collapse is not None:
            rate = f"learning rate {self.collapse.learning_rate:g}"
            training = f"trained with a linear classifier for {self.collapse.steps:,} updates, {rate}"
            lines += [f"{training}: {self.collapse.opening}", self.collapse.caution]
        for name, run in self.runs.items():
            start, end = ends(run).values()
            lines.append(
                f"run {name}: ρ {start['between_share']:.3f} → {end['between_share']:.3f}, IsoScore "
                f"{start['isoscore']:.3f} → {end['isoscore']:.3f}, under a ceiling of "
                f"{start['ceiling']:.3f} → {end['ceiling']:.3f}"
            )
        return [*filter(None, lines), *(f"note: {note}" for note in self.notes)]

    def _positions(self) -> Grid:
        """Return the table of the plain position, with the debiased values beside it."""
        plain, fair = self.plain, self.debiased
        (measured,), (other,) = plain.grids(), (fair or plain).grids()
        rows: list[tuple[Cell, ...]] = []
        for name, (title, value, _), (_, better, interval) in zip(
            QUANTITIES, measured.rows, other.rows, strict=True
        ):
            if name == "sample_ceiling":
                if plain.sample_ceiling > plain.ceiling - _VISIBLE:
                    continue
                title, better, interval = f"largest of {plain.n:,} points", None, ""
            rows.append((title, value, None if fair is None else better, "" if fair is None else interval))
        title = f"{plain.n:,} vectors, {plain.n_dims} dimensions, {plain.n_labels} labels"
        return Grid(title, ("", "measured", "debiased", "95 % interval"), rows)


def frontier(
    X: Any,
    labels: Any = None,
    *,
    clusters: int | str | None = None,
    runs: Mapping[str, Trajectory] | None = None,
    top: int = 5,
    seed: int = 0,
    learning_rate: float = 1e-3,
) -> Frontier:
    """Compute the largest IsoScore that the labels allow, the distance to it, and its causes.

    The share of the variance that lies between labels sets an exact ceiling on IsoScore. Share, IsoScore
    and ceiling are reported as measured and with the bias of small samples removed, followed by the labels
    and directions that contribute most to the anisotropy, and by where training with a linear classifier is
    predicted to take IsoScore (`predict_collapse`), for at most 200 labels.

    Args:
        X: a labelled Space, or (n, d) vectors in any array.
        labels: one label for each vector; not needed where X has labels.
        clusters: use k-means clusters in place of labels: their number, or "auto" to choose it by the
            silhouette.
        runs: training runs that recorded isoscore and between_share, by name (`read_runs`).
        top: number of labels and of directions to list.
        seed: seed of k-means.
        learning_rate: of the training that is predicted: 1,000 updates of Adam.

    >>> result = frontier([[3.0, 0.1], [3.0, -0.1], [-3.0, 0.1], [-3.0, -0.1]], ["a", "a", "b", "b"])
    >>> round(result.plain.between_share, 3), round(result.plain.ceiling, 3)
    (0.999, 0.002)
    """
    check_seed(seed)
    if top < 0:
        raise InputError(argument="top", got=top, wanted="at least 0")
    space = X if isinstance(X, Space) else Space(X)
    if clusters is None:
        coded = as_clusters(space.labels if labels is None else labels, n=len(space))
    else:
        coded = as_clusters(_clusters(space, clusters, seed), n=len(space), name="clusters")
    plain = frontier_position(space, coded)
    fair: FrontierPosition | None = None
    notes: tuple[str, ...] = ()
    try:
        fair = frontier_position(space, coded, debias=True)
    except UndefinedError as error:
        notes = (error.problem,)
    collapse = prediction_beside(space, coded, learning_rate=learning_rate)
    return Frontier(plain, fair, attribute_anisotropy(space, coded), collapse, dict(runs or {}), notes, top)


def read_runs(folders: Iterable[str | os.PathLike[str]]) -> dict[str, Trajectory]:
    """Read runs of `train_embeddings` from their folders.

    The keys are the names of the folders, or their paths where names repeat.

    Raises:
        FileError: a folder has no trajectory.parquet.
        InputError: a run did not record isoscore and between_share.
    """
    paths = [Path(folder) for folder in folders]
    names = [path.name for path in paths]
    runs = {}
    for path in paths:
        file = path / "trajectory.parquet"
        if not file.is_file():
            raise FileError(f"{path} has no trajectory.parquet; pass a folder written by `isoscope train`")
        name = path.name if names.count(path.name) == 1 else str(path)
        runs[name] = checked_run(Trajectory.load(file), path.name)
    return runs


def ends(run: Trajectory) -> dict[str, dict[str, float]]:
    """Return the means over seeds at the start and the end of a run."""
    K, d = int(run.configuration["n_clusters"]), int(run.configuration["d"])
    shares, scores = (run.curves(name) for name in ("between_share", "isoscore"))  # (seeds, steps)
    return {
        when: {
            "step": int(run.steps[place]),
            "between_share": float(shares[:, place].mean()),
            "isoscore": float(scores[:, place].mean()),
            "ceiling": fmean(isotropy_ceiling(K, d, between=share) for share in shares[:, place].tolist()),
        }
        for when, place in (("start", 0), ("end", -1))
    }


def _clusters(space: Space, n_clusters: int | str, seed: int) -> Any:
    if n_clusters == "auto":
        return choose_clusters(space, seed=seed).labels
    if not str(n_clusters).isdecimal():
        raise InputError(argument="clusters", got=n_clusters, wanted="a whole number or 'auto'")
    return kmeans(space, int(n_clusters), seed=seed, n_init=10).labels


def _meaning(one: FrontierPosition) -> str:
    if one.n_labels > one.n_dims:
        return (
            f"{one.n_labels} labels in {one.n_dims} dimensions cost no isotropy: collapsed, they can have "
            "IsoScore 1"
        )
    knee = f"labels cost isotropy from ρ = (K − 1)/d = {one.knee:.3f} on"
    if one.between_share <= one.knee:
        return f"{knee}; here ρ is below that: IsoScore could be 1"
    return f"{knee}; at ρ = {one.between_share:.3f}, {1 - one.ceiling:.3f} of it"
