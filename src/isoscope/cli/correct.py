"""`isoscope correct FILE`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.commands import present
from isoscope.cli.inputs import VectorOptions
from isoscope.cli.options import Json, Labels, Seed, parse_numbers, written_file
from isoscope.errors import FileError, InputError, Setting, check_choice
from isoscope.io.files import check_file
from isoscope.io.targets import BLOCKWISE, CORRECTION, check_targets

if TYPE_CHECKING:
    from isoscope.corrections import Correction

_CLUSTERS = ("n_clusters", "labels")
# each method: the class of `isoscope.corrections`, and the options below that it takes
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "center": ("Center", ()),
    "standardize": ("Standardize", ()),
    "normalize": ("Normalize", ()),
    "whiten": ("Whiten", ("n_components", "strength", "zca")),
    "all-but-the-top": ("AllButTheTop", ("n_components",)),
    "remove-dimensions": ("RemoveDimensions", ("n_dimensions",)),
    "cluster-center": ("ClusterCenter", _CLUSTERS),
    "clusterwise": ("ClusterwiseAllButTheTop", ("n_components", *_CLUSTERS)),
}
# names from Python and from `advise`
_ALSO = {"clusterwise-all-but-the-top": "clusterwise"}
_SETTINGS = {
    "whiten-soft": "--method whiten --strength 0.5",
    "whiten-reduced": "--method whiten --components K, where K is half the number of dimensions",
}


def complete_methods(incomplete: str) -> list[str]:
    """Return the methods that begin so, after the last comma."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in METHODS if name.startswith(last)]


@dataclass(frozen=True)
class CorrectionOptions:
    """The parameters of the corrections, by their names in Python; None where an option was not given."""

    panel = "Settings of the methods"

    n_components: Annotated[
        int | None,
        typer.Option(
            "--components",
            help="Directions that whiten keeps [default: all], or that all-but-the-top and clusterwise "
            "remove [default: one for every 100 dimensions].",
            metavar="K",
        ),
    ] = None
    strength: Annotated[
        float | None,
        typer.Option("--strength", help="Strength of whiten, from 0 to 1. [default: 1]", metavar="S"),
    ] = None
    zca: Annotated[
        bool | None,
        typer.Option("--zca", help="Rotate whitened vectors back, close to what they were."),
    ] = None
    n_dimensions: Annotated[
        str | None,
        typer.Option(
            "--dimensions",
            help="Dimensions that remove-dimensions removes: how many, or which, comma-separated. "
            "[default: 1]",
            metavar="N",
        ),
    ] = None
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "--clusters", help="Clusters of cluster-center and clusterwise. [default: 8]", metavar="K"
        ),
    ] = None
    labels: Labels = None

    def given(self) -> list[str]:
        """Return the names of the options that were given."""
        return [field.name for field in fields(self) if getattr(self, field.name) is not None]

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the corrections."""
        found = {name: getattr(self, name) for name in self.given() if name not in ("labels", "zca")}
        if self.zca:
            found["method"] = "zca"
        if self.n_dimensions is not None:
            numbers = parse_numbers("n_dimensions", self.n_dimensions)
            which = "," in self.n_dimensions
            found |= {"n_dimensions": 1 if which else numbers[0], "dimensions": numbers if which else None}
        return found


def correct(
    file: Annotated[
        Path,
        typer.Argument(
            help="Vectors, in any format that `isoscope measure` reads.", metavar="FILE", show_default=False
        ),
    ],
    *,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help=f"One or more, comma-separated, applied in this order: {', '.join(METHODS)}.",
            metavar="NAMES",
            autocompletion=complete_methods,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        written_file("--output", "-o", help="The corrected vectors: .npy or .parquet.", kinds=BLOCKWISE),
    ] = None,
    settings: CorrectionOptions,
    fit: Annotated[
        Path | None,
        typer.Option("--fit", help="Fit on these vectors. [default: those in FILE]", metavar="OTHER"),
    ] = None,
    save: Annotated[
        Path | None,
        written_file("--save", help="Save the fitted correction, as .safetensors.", kinds=CORRECTION),
    ] = None,
    load: Annotated[
        Path | None,
        typer.Option(
            "--load", help="Apply a correction that --save wrote; nothing is fitted.", metavar="FILE"
        ),
    ] = None,
    source: VectorOptions,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Centre, normalise, whiten or otherwise correct the vectors in FILE, and write the result.

    The output shows metrics before and after the correction. FILE is read in blocks, once or more to fit and
    once to correct, so it may be larger than memory. With --labels, the clusters of cluster-center and
    clusterwise are those of the labels.

    **Examples**

    The mean subtracted: `isoscope correct vectors.npy --method center -o centered.npy`

    Whitened, then scaled to length 1: `isoscope correct vectors.npy --method whiten,normalize -o white.npy`

    The three strongest directions removed:
    `isoscope correct vectors.npy --method all-but-the-top --components 3 -o out.npy`

    Fitted once, saved, applied to queries:
    `isoscope correct documents.npy --method whiten --components 128 --save whiten.safetensors`,
    then `isoscope correct queries.npy --load whiten.safetensors -o queries-white.npy`
    """
    check_targets(output, save)
    _check_not_read(file, fit, load, output, save)
    if load is None:
        names = methods_in(method, settings)
    else:
        given = {"method": method, "fit": fit, **dict.fromkeys(settings.given(), True)}
        for name in (name for name, value in given.items() if value is not None):
            raise InputError("cannot be combined with --load", argument=name, hint="leave one of them out")
        _check_correction(load)
    from isoscope.corrections import load_correction
    from isoscope.corrections.correct import correct as correct_source

    correction = build(names, settings, seed) if load is None else load_correction(load)
    labels = settings.labels
    opened = source.open_vectors(file, labels=labels if fit is None else None)
    learnt = opened if fit is None else source.open_vectors(fit, labels=labels)
    corrected = correct_source(
        opened,
        correction,
        fit=learnt if load is None else None,
        use_labels=labels is not None,
        output=output,
        save=save,
    )
    more = {"file": str(file)} | ({} if load is None else {"correction": str(load)})
    lines = [f"wrote {path}" for path in (output, save) if path is not None]
    present(corrected, [] if json else lines, json=json, more=more)


def _check_correction(path: Path) -> None:
    check_file(path, what="corrections")
    if path.suffix.lower() not in CORRECTION:
        raise FileError(
            f"{path} is no correction", wanted=f"a file that --save wrote, {' or '.join(CORRECTION)}"
        )


def _check_not_read(file: Path, fit: Path | None, load: Path | None, *targets: Path | None) -> None:
    for target in (path for path in targets if path is not None):
        for source in (file, fit, load):
            if source is not None and source.exists() and target.exists() and target.samefile(source):
                raise InputError(f"{target} is an input", hint="write to another file")


def methods_in(method: str | None, settings: CorrectionOptions) -> list[str]:
    """Return the methods that are asked for, after checking that each option belongs to one of them."""
    names = [name.strip().replace("_", "-") for name in (method or "").split(",") if name.strip()]
    names = [_ALSO.get(name, name) for name in names]
    if not names:
        raise InputError(
            "is missing",
            argument="method",
            wanted=f"one of {', '.join(METHODS)}",
            hint=Setting("load", to="use a saved correction"),
        )
    for name in names:
        if name in _SETTINGS:
            raise InputError(f"has {name!r}", argument="method", hint=f"pass {_SETTINGS[name]}")
        check_choice("method", name, METHODS)
    for option in settings.given():
        if not any(option in METHODS[name][1] for name in names):
            takers = ", ".join(name for name, (_, options) in METHODS.items() if option in options)
            raise InputError(f"belongs to --method {takers}", argument=option, hint="leave it out")
    return names


def build(names: Sequence[str], settings: CorrectionOptions, seed: int = 0) -> Correction:
    """Build the correction, or the chain of corrections, without fitting it."""
    from isoscope import corrections

    parameters = settings.parameters() | {"seed": seed}
    steps = []
    for name in names:
        kind = _kind(name)
        takes = kind().get_params()
        steps.append(kind(**{key: value for key, value in parameters.items() if key in takes}))
    return steps[0] if len(steps) == 1 else corrections.Chain(steps)


def _kind(name: str) -> type[Correction]:
    from isoscope import corrections

    kind: type[Correction] = getattr(corrections, METHODS[name][0])
    return kind


def words_of(correction: Correction) -> list[str]:
    """Return the options that ask for this correction."""
    name = next(name for name in METHODS if type(correction) is _kind(name))
    plain = _kind(name)().get_params()
    options = {field.name for field in fields(CorrectionOptions)}
    changed = {
        key: value for key, value in correction.get_params().items() if key in options and value != plain[key]
    }
    words = [word for key, value in changed.items() for word in (f"--{key.removeprefix('n_')}", f"{value}")]
    return ["--method", name, *words]
