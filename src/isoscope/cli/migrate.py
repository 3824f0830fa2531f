"""`isoscope migrate OLD NEW`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.commands import FAILED, present
from isoscope.cli.compare import TwoInputs
from isoscope.cli.options import Json, Seed, Texts, written_file
from isoscope.errors import InputError
from isoscope.io.targets import CORRECTION


def migrate(
    a: Annotated[
        str,
        typer.Argument(
            help="Vectors by the old model, as `isoscope measure` takes them; with --model, texts.",
            metavar="OLD",
            show_default=False,
        ),
    ],
    b: Annotated[
        str | None,
        typer.Argument(
            help="Vectors of the same items by the new model; leave it out where two models encode texts.",
            metavar="[NEW]",
            show_default=False,
        ),
    ] = None,
    *,
    k: Annotated[
        int | None, typer.Option("--neighbors", "-k", help="Nearest neighbours. [default: 10]", metavar="N")
    ] = None,
    accept: Annotated[
        float,
        typer.Option("--accept", help="The smallest share of neighbours kept to accept.", metavar="SHARE"),
    ] = 0.9,
    texts: Texts = None,
    n_lost: Annotated[
        int, typer.Option("--lost", help="How many rows that are lost to list.", metavar="N")
    ] = 5,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            help='A condition on the overlap of the best map ("overlap>=0.9"). The exit code is 1 unless it '
            "holds.",
            metavar="CONDITION",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        written_file("--output", "-o", help="Save the best map, as .safetensors.", kinds=CORRECTION),
    ] = None,
    source: TwoInputs,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Try whether old vectors can be mapped to a new model, or have to be embedded again.

    A map is fitted to half of the items; the others are mapped, and searched with their new vectors. The
    output has the share of the neighbours in NEW that this search finds, by three maps and by the old model
    as it is, the thresholds of both models, and the rows that are lost most.

    **Examples**

    A sample of the items by both models: `isoscope migrate old.npy new.npy -o map.safetensors`, then
    `isoscope correct all-old.npy --load map.safetensors -o mapped.npy`

    With the texts that are lost: `isoscope migrate old.parquet new.parquet --texts text`

    Two models on one file: `isoscope migrate texts.txt --model all-MiniLM-L6-v2 --model all-mpnet-base-v2`
    """
    first, second = source.each()
    if b is None and (first.key, first.model) == (second.key, second.model):
        raise InputError(
            "NEW is missing", hint=["pass a second file", "pass --model twice to encode OLD with two models"]
        )
    from isoscope.comparison import parse_gates
    from isoscope.migrate import migrate as migrate_from

    gates = parse_gates(gate or (), ("overlap",))
    found = migrate_from(
        first.open(a), second.open(b or a), k=k, accept=accept, texts=texts, n_lost=n_lost, seed=seed
    )
    results = found.check(gates)
    lines = [str(one) for one in results]
    if save is not None:
        lines.append(f"wrote {found.save(save)}")
    more = {"gates": [one.to_dict() for one in results]}
    present(found, [] if json else lines, json=json, more=more)
    if not all(one.passed for one in results):
        raise typer.Exit(FAILED)
