"""`isoscope frontier FILE`."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.inputs import TextOptions, open_input, say_notes
from isoscope.cli.options import (
    BatchSize,
    Download,
    EncodingDevice,
    Json,
    Key,
    LabelsWhere,
    Model,
    Normalize,
    Pooling,
    Prefix,
    TextColumn,
    VectorColumn,
    VectorsOrTexts,
    as_typed,
)
from isoscope.cli.table_options import AS_JUDGED, TableOptions, takes_tables
from isoscope.errors import FileError, InputError, UndefinedError, check_seed
from isoscope.terminal import say, show_json

if TYPE_CHECKING:
    from isoscope.labels import Labels
    from isoscope.metrics.attribution import Attribution
    from isoscope.metrics.frontier_position import FrontierPosition
    from isoscope.space import Space
    from isoscope.tables import Grid
    from isoscope.tracking import Trajectory

_SEEN = 5e-5  # of IsoScore, in four digits

_EPILOG = """
**Examples**

Where labelled vectors lie: `isoscope frontier vectors.npy --labels labels.txt -o frontier.png`

Clusters instead of labels: `isoscope frontier vectors.npy --clusters auto`

A training run under the frontier: `isoscope train vectors.npy -l labels.txt -o run -m
isoscore,silhouette,between_share`, then `isoscope frontier vectors.npy -l labels.txt --run run -o run.png`
"""


@takes_tables
def frontier(
    file: VectorsOrTexts,
    labels: LabelsWhere = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters",
            help="Instead of labels: so many clusters by k-means, or `auto` for as many as the silhouette "
            "speaks for.",
            metavar="K|auto",
        ),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            "--run",
            help="A folder of `isoscope train` that followed isoscore and between_share; repeated for "
            "several.",
            metavar="FOLDER",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Figure: .png, .pdf or .svg.", metavar="FILE"),
    ] = None,
    top: Annotated[int, typer.Option("--top", help="Labels and directions to list, each.", metavar="N")] = 5,
    model: Model = None,
    text_column: TextColumn = None,
    prefix: Prefix = None,
    pooling: Pooling = None,
    normalize: Normalize = None,
    batch_size: BatchSize = None,
    device: EncodingDevice = None,
    download: Download = None,
    key: Key = None,
    vector_column: VectorColumn = None,
    table: TableOptions = AS_JUDGED,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the clusters.")] = 0,
    json: Json = False,
) -> None:
    """Say how isotropic these labels let the vectors be at all, how far they are from it, and what causes it.

    The share of variance between labels sets an exact ceiling on IsoScore. Both are given as measured and
    with the bias of small samples removed; then the labels and directions that the anisotropy comes from.
    """
    if (labels is None) == (clusters is None):
        raise InputError("wanted either --labels WHERE or --clusters K (or auto)")
    if top < 0:
        raise InputError(f"--top is {top}; wanted how many to list, 0 or more")
    texts = TextOptions(model, text_column, prefix, pooling, normalize, batch_size, device, download)
    from isoscope.labels import as_clusters
    from isoscope.metrics.attribution import attribute_anisotropy
    from isoscope.metrics.frontier_position import frontier_position

    with as_typed():
        check_seed(seed)
        source = open_input(
            file, labels=labels, key=key, vector_column=vector_column, table=table, texts=texts
        )
        runs = {name: _run(folder) for name, folder in _named(run or []).items()}
        space = source.load()
        named = space.labels if clusters is None else _clusters(space, clusters, seed)
        named = as_clusters(named, n=len(space), name="--labels" if clusters is None else "--clusters")
        plain = frontier_position(space, named)
        fair, why = _debiased(space, named)
        parts = attribute_anisotropy(space, named)
    if output is not None:
        _draw(plain, fair, runs, output)
    if json:
        content = {
            "plain": plain.to_dict(),
            "debiased": None if fair is None else fair.to_dict(),
            "attribution": parts.to_dict(),
            "runs": {name: _ends(one) for name, one in runs.items()},
        }
        show_json(content)
        say_notes(source, err=True)
        return
    _show(plain, fair, parts, runs, top=top)
    if why:
        say(f"note: {why}")
    say_notes(source)
    if output is not None:
        say(f"wrote {output}")


frontier.__doc__ = f"{frontier.__doc__}\n{_EPILOG}"


def _clusters(space: Space, wanted: str, seed: int) -> Labels:
    from isoscope.clustering import choose_clusters, kmeans

    if wanted == "auto":
        return choose_clusters(space, seed=seed).labels
    if not wanted.isdecimal():
        raise InputError(f"--clusters is {wanted!r}; wanted a whole number, or auto")
    return kmeans(space, int(wanted), seed=seed, n_init=10).labels


def _debiased(space: Space, labels: Any) -> tuple[FrontierPosition | None, str | None]:
    from isoscope.metrics.frontier_position import frontier_position

    try:
        return frontier_position(space, labels, debias=True), None
    except UndefinedError as error:
        return None, str(error)


def _named(folders: list[Path]) -> dict[str, Path]:
    """Folders by their names; by their whole paths where two have one name."""
    names = [folder.name for folder in folders]
    return {folder.name if names.count(folder.name) == 1 else str(folder): folder for folder in folders}


def _run(folder: Path) -> Trajectory:
    from isoscope.tracking import Trajectory
    from isoscope.training.frontier_figure import checked_run

    path = folder / "trajectory.parquet"
    if not path.is_file():
        raise FileError(f"{folder} holds no trajectory.parquet; wanted a folder written by isoscope train")
    return checked_run(Trajectory.load(path), folder.name)


def _ends(run: Trajectory) -> dict[str, Any]:
    """Start and end of a run, mean over its seeds; of the ceilings too, for a mean of spaces is no space."""
    from isoscope.metrics.frontier import isotropy_ceiling

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


def _draw(
    plain: FrontierPosition, fair: FrontierPosition | None, runs: dict[str, Trajectory], path: Path
) -> None:
    from isoscope.training.frontier_figure import plot_against_frontier

    positions = {"measured": plain} | ({} if fair is None else {"debiased": fair})
    plot_against_frontier(positions, runs=runs, path=path)


def _show(
    plain: FrontierPosition,
    fair: FrontierPosition | None,
    parts: Attribution,
    runs: dict[str, Trajectory],
    *,
    top: int,
) -> None:
    from isoscope.console import Terminal

    console = Terminal()
    console.say(f"{plain.n:,} vectors, {plain.n_dims} dimensions, {plain.n_labels} labels")
    console.print(_positions(plain, fair).to_rich())
    for line in (_sentence(fair or plain), *parts.lines()):
        console.say(line)
    for grid in parts.grids(top=top):
        console.print(grid.to_rich())
    for name, run in runs.items():
        start, end = _ends(run).values()
        console.say(
            f"run {name}: ρ {start['between_share']:.3f} → {end['between_share']:.3f}, IsoScore "
            f"{start['isoscore']:.3f} → {end['isoscore']:.3f}, under a ceiling of {start['ceiling']:.3f} → "
            f"{end['ceiling']:.3f}",
            whole=True,
        )


def _positions(plain: FrontierPosition, fair: FrontierPosition | None) -> Grid:
    """Return the table of `plain`, with the debiased values beside it."""
    from isoscope.metrics.frontier_position import QUANTITIES
    from isoscope.tables import Grid

    (measured,), (debiased,) = plain.grids(), (fair or plain).grids()
    rows = []
    for name, (said, value, _), (_, other, interval) in zip(
        QUANTITIES, measured.rows, debiased.rows, strict=True
    ):
        if name == "sample_ceiling":
            if plain.sample_ceiling > plain.ceiling - _SEEN:
                continue
            said, other, interval = f"largest of {plain.n:,} points", None, ""
        rows.append((said, value, None if fair is None else other, "" if fair is None else interval))
    return Grid("", ("", "measured", "debiased", "95 % interval"), rows)


def _sentence(one: FrontierPosition) -> str:
    if one.n_labels > one.n_dims:
        return (
            f"{one.n_labels} labels in {one.n_dims} dimensions cost no isotropy: collapsed, they can have "
            "IsoScore 1"
        )
    knee = f"(K − 1)/d = {one.knee:.3f}"
    if one.between_share <= one.knee:
        return f"labels cost isotropy from ρ = {knee} on; these have not come so far: IsoScore could be 1"
    lost = f"at ρ = {one.between_share:.3f}, {1 - one.ceiling:.3f} of it"
    return f"labels cost isotropy from ρ = {knee} on; {lost}"
