"""`isoscope correct FILE`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.options import Json, Key, VectorColumn, as_typed, parse_numbers
from isoscope.cli.table_options import AS_JUDGED, TableOptions, takes_tables
from isoscope.engine.measure import measure
from isoscope.engine.source import Source, Wrapped
from isoscope.errors import InputError, IsoscopeError
from isoscope.io import VectorFile, VectorShards, open_vectors
from isoscope.progress import Bar
from isoscope.space import Space
from isoscope.terminal import show_json

if TYPE_CHECKING:
    from isoscope.corrections import Correction

_GEOMETRY = (
    "isoscore",
    "mean_cosine",
    "effective_rank",
    "top_dimension_share",
    "mean_norm",
    "norm_variation",
)

# a method's name, and the options it takes
_TAKES: dict[str, tuple[str, ...]] = {
    "center": (),
    "standardize": (),
    "normalize": (),
    "whiten": ("components", "strength", "zca"),
    "all-but-the-top": ("components",),
    "remove-dimensions": ("dimensions",),
    "cluster-center": ("clusters", "seed", "labels"),
    "clusterwise": ("clusters", "components", "seed", "labels"),
}
# names that `advise` and Python have, and those here
_ALSO = {"clusterwise-all-but-the-top": "clusterwise"}
_SETTINGS = {
    "whiten-soft": "--method whiten --strength 0.5",
    "whiten-reduced": "--method whiten --components K, K half the dimensions",
}
# a parameter of a correction that a message begins with, and the option it comes from
_PARAMETER = re.compile(r"^(?:n_)?(components|clusters|dimensions|strength)(?= is )")
# advice that a message ends with and that only Python can follow, and what a command line can do
_IN_PYTHON = {
    ", more vectors, or a regularization of your own, such as 0.1": ", or more vectors",
    ", fewer clusters, or small='keep' to take out what there is": ", or fewer clusters",
}
_EPILOG = """
**Examples**

Whitened, and at length 1: `isoscope correct vectors.npy --method whiten,normalize -o white.npy`

The three strongest directions out:
`isoscope correct vectors.npy --method all-but-the-top --components 3 -o out.npy`

Learnt once, kept, applied to queries:
`isoscope correct documents.npy --method whiten --components 128 --save whiten.safetensors`,
then `isoscope correct queries.npy --load whiten.safetensors -o queries-white.npy`
"""


@takes_tables
def correct(
    file: Annotated[
        Path,
        typer.Argument(help="Vectors, in any format `measure` reads.", metavar="FILE", show_default=False),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help=f"One, or several in turn with commas between: {', '.join(_TAKES)}.",
            metavar="NAMES",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The corrected vectors: .npy or .parquet.", metavar="FILE"),
    ] = None,
    components: Annotated[
        int | None,
        typer.Option(
            "--components",
            help="Directions that whiten keeps, or that all-but-the-top and clusterwise take out. "
            "[default: all; a hundredth of the dimensions]",
            metavar="K",
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option("--strength", help="Of whiten, from 0 to 1. [default: 1]", metavar="S"),
    ] = None,
    zca: Annotated[
        bool | None,
        typer.Option("--zca", help="Whitened vectors turned back to lie close to what they were."),
    ] = None,
    dimensions: Annotated[
        str | None,
        typer.Option(
            "--dimensions",
            help="Of remove-dimensions: how many, or which, comma-separated. [default: 1]",
            metavar="N",
        ),
    ] = None,
    clusters: Annotated[
        int | None,
        typer.Option("--clusters", help="Of cluster-center and clusterwise. [default: 8]", metavar="K"),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            "-l",
            help="Clusters by label: a column of the file learnt from, or a file with one label a line.",
            metavar="WHERE",
        ),
    ] = None,
    fit: Annotated[
        Path | None,
        typer.Option("--fit", help="Learn from these vectors. [default: FILE itself]", metavar="OTHER"),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="Keep what was learnt, as .safetensors.", metavar="FILE"),
    ] = None,
    load: Annotated[
        Path | None,
        typer.Option("--load", help="Apply what --save kept; nothing is learnt.", metavar="FILE"),
    ] = None,
    key: Key = None,
    vector_column: VectorColumn = None,
    table: TableOptions = AS_JUDGED,
    seed: Annotated[int | None, typer.Option("--seed", help="Of k-means. [default: 0]", metavar="N")] = None,
    json: Json = False,
) -> None:
    """Correct the vectors in FILE: centre, whiten, take directions out; and say how the geometry moved.

    FILE is read in blocks, once or more to learn and once to correct, so it may be larger than memory.
    """
    given = {
        "components": components,
        "strength": strength,
        "zca": zca,
        "dimensions": dimensions,
        "clusters": clusters,
        "labels": labels,
        "seed": seed,
    }
    given = {name: value for name, value in given.items() if value is not None}
    where: dict[str, Any] = {"key": key, "vector_column": vector_column, **table.given()}
    with _as_typed(), Bar() as bar:
        _check_paths(file, fit, load, output, save)
        _check_targets(output, save)
        wanted = _asked(method, given) if load is None else _loaded(load, method, fit, given)
        source = open_vectors(file, labels=labels if fit is None else None, **where)
        fitted = wanted
        if load is None:
            learnt = source
            if fit is not None:
                learnt = open_vectors(fit, labels=labels, **where)
            bar.step("learning")
            fitted = wanted.fit_blocks(_Watched(learnt, bar).blocks, use_labels=labels is not None)
        if save is not None:
            fitted.save(save)
        found = _applied(source, fitted, output, bar)
    result = {
        "file": str(file),
        "output": None if output is None else str(output),
        "saved": None if save is None else str(save),
        "correction": repr(fitted) if load is None else f"{load}",
        **found,
    }
    if json:
        show_json(result)
    else:
        _show(result)


@contextmanager
def _as_typed() -> Iterator[None]:
    """Errors over parameters name the options they came from."""
    try:
        with as_typed():
            yield
    except InputError as error:
        said = _PARAMETER.sub(r"--\1", str(error))
        for advice, instead in _IN_PYTHON.items():
            said = said.replace(advice, instead)
        raise type(error)(said) from error


class _Watched(Wrapped):
    """A file whose blocks move the progress bar."""

    def __init__(self, source: Source, bar: Bar) -> None:
        super().__init__(source)
        self.bar = bar

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        done = 0
        for block in self.source.blocks(n_rows):
            yield block
            done += len(block)
            if self.n_rows:
                self.bar.share(done / self.n_rows)


def _check_paths(file: Path, fit: Path | None, load: Path | None, *targets: Path | None) -> None:
    wanted = [path for path in targets if path is not None]
    if not wanted:
        raise InputError("nothing to write: pass --output FILE for the vectors, or --save FILE, or both")
    for target in wanted:
        for source in (file, fit, load):
            if source is not None and source.exists() and target.exists() and target.samefile(source):
                raise InputError(f"{target} is read from; wanted another name to write to")
    if len(wanted) == 2 and wanted[0].resolve() == wanted[1].resolve():
        raise InputError(f"{wanted[0]} is named for the vectors and for the correction; wanted two names")


def _check_targets(output: Path | None, save: Path | None) -> None:
    """What could not be written is said before hours of work, not after."""
    from isoscope.corrections.files import KIND
    from isoscope.io.save import check_target

    if output is not None:
        check_target(output)
    if save is not None:
        check_target(save, KIND)


def _loaded(load: Path, method: str | None, fit: Path | None, given: dict[str, Any]) -> Correction:
    """What --save kept, if nothing else says what to learn."""
    from isoscope.corrections import load_correction

    others = [name for name, value in {"method": method, "fit": fit, **given}.items() if value is not None]
    if others:
        raise InputError(
            f"--{others[0]} is for what is learnt, and --load brings it learnt already: leave one out"
        )
    return load_correction(load)


def _asked(method: str | None, given: dict[str, Any]) -> Correction:
    """The correction that the options ask for, not fitted."""
    from isoscope.corrections import Chain

    names = [name.strip().replace("_", "-") for name in (method or "").split(",") if name.strip()]
    names = [_ALSO.get(name, name) for name in names]
    if not names:
        raise InputError(f"--method is missing; wanted one of {', '.join(_TAKES)}, or --load FILE")
    for name in names:
        if name in _SETTINGS:
            raise InputError(f"--method is {name!r}; wanted it spelt out: {_SETTINGS[name]}")
        if name not in _TAKES:
            raise InputError(f"--method is {name!r}; wanted one of {', '.join(_TAKES)}")
    for option in given:
        if not any(option in _TAKES[name] for name in names):
            takers = ", ".join(name for name, takes in _TAKES.items() if option in takes)
            raise InputError(f"--{option} goes with --method {takers}; leave it out")
    steps = [_built(name, given) for name in names]
    return steps[0] if len(steps) == 1 else Chain(steps)


def _built(name: str, given: dict[str, Any]) -> Correction:
    from isoscope import corrections

    k, clusters, seed = given.get("components"), given.get("clusters", 8), given.get("seed", 0)
    if name == "whiten":
        turned = "zca" if given.get("zca") else "pca"
        return corrections.Whiten(k, given.get("strength", 1.0), method=turned)
    if name == "all-but-the-top":
        return corrections.AllButTheTop(k)
    if name == "remove-dimensions":
        text = given.get("dimensions", "1")
        numbers = parse_numbers("dimensions", text)
        if "," in text:
            return corrections.RemoveDimensions(dimensions=numbers)
        return corrections.RemoveDimensions(numbers[0])
    if name == "cluster-center":
        return corrections.ClusterCenter(clusters, seed=seed)
    if name == "clusterwise":
        return corrections.ClusterwiseAllButTheTop(clusters, k, seed=seed)
    return _kinds()[name]()


def options_of(correction: Correction) -> list[str]:
    """The options that ask for this correction: `_asked` the other way."""
    from isoscope import corrections

    name = next(name for name, kind in _kinds().items() if type(correction) is kind)
    options: dict[str, Any] = {}
    if isinstance(correction, corrections.Whiten):
        options = {"components": correction.n_components}
        options |= {"strength": correction.strength} if correction.strength != 1 else {}
    elif isinstance(correction, corrections.AllButTheTop):
        options = {"components": correction.n_components}
    elif isinstance(correction, corrections.RemoveDimensions):
        options = {"dimensions": correction.n_dimensions}
    elif isinstance(correction, corrections.ClusterCenter):
        options = {"clusters": correction.n_clusters, "components": getattr(correction, "n_components", None)}
    given = [(f"--{key}", f"{value}") for key, value in options.items() if value is not None]
    return ["--method", name, *(word for pair in given for word in pair)]


def _kinds() -> dict[str, type[Correction]]:
    from isoscope import corrections

    return {
        "center": corrections.Center,
        "standardize": corrections.Standardize,
        "normalize": corrections.Normalize,
        "whiten": corrections.Whiten,
        "all-but-the-top": corrections.AllButTheTop,
        "remove-dimensions": corrections.RemoveDimensions,
        "cluster-center": corrections.ClusterCenter,
        "clusterwise": corrections.ClusterwiseAllButTheTop,
    }


def _applied(
    source: VectorFile | VectorShards, fitted: Correction, output: Path | None, bar: Bar
) -> dict[str, Any]:
    """The vectors corrected and written where they are asked for, and the geometry before and after."""
    from isoscope.corrections.correction import Corrected
    from isoscope.io.save import write_blocks

    first = fitted.transform(next(iter(source.blocks(1))))  # other dimensions are said before a long pass
    bar.step("measuring before")
    before = _geometry(_Watched(source, bar))
    lost: list[str] = []
    corrected: Any = Corrected(_Watched(source, bar), fitted)
    if output is not None:
        bar.step("correcting")
        is_table = output.suffix.lower() == ".parquet"
        rows = source.table_rows() if is_table else None
        write_blocks(corrected.blocks(), output, table=rows)
        where = {} if rows is None else rows.where(first.n_dims)
        if is_table and rows is None and source.columns:
            lost.append("only vectors, labels and texts are written")
        corrected = _Watched(open_vectors(output, **where), bar)
    bar.step("measuring after")
    after = _geometry(corrected)
    return {
        "n": source.n_rows if source.n_rows is not None else sum(map(len, source.blocks())),
        "d": source.n_dims,
        "d_corrected": first.n_dims,
        "before": before,
        "after": after,
        "notes": [*source.notes, *lost],
    }


def _geometry(source: Any) -> dict[str, float | None]:
    """The geometry by metric; None for what has no value, as of one vector alone."""
    try:
        found = measure(source, metrics=_GEOMETRY, errors=False, progress=False)
    except IsoscopeError:
        return dict.fromkeys(_GEOMETRY)
    return {name: found[name] for name in _GEOMETRY}


def _show(result: dict[str, Any]) -> None:
    from rich.table import Table

    from isoscope.console import Terminal

    console = Terminal()
    title = f"{result['n']:,} vectors, {result['d']} dimensions → {result['d_corrected']}"
    table = Table("metric", title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("before", "after"):
        table.add_column(column, justify="right")
    for name in _GEOMETRY:
        values = (result["before"][name], result["after"][name])
        table.add_row(name, *("–" if value is None else f"{value:.4g}" for value in values))
    console.print(table)
    for what in ("output", "saved"):
        if result[what] is not None:
            console.say(f"wrote {result[what]}", whole=True)
    for note in result["notes"]:
        console.say(f"note: {note}")


correct.__doc__ = f"{correct.__doc__}\n{_EPILOG}"
