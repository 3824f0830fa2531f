"""`isoscope advise FILE`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoscope.cli.commands import present
from isoscope.cli.inputs import InputOptions, QueryOptions, notes_of
from isoscope.cli.options import Json, JsonOutput, Labels, Seed, written_file
from isoscope.errors import InputError, Setting
from isoscope.io.targets import CORRECTION
from isoscope.terminal import say

if TYPE_CHECKING:
    from isoscope.io.pair_files import FilePairs
    from isoscope.space import Space


def advise(
    file: Annotated[
        str | None,
        typer.Argument(
            help="Vectors in any format that `isoscope measure` reads; with --model, texts. "
            "Can be left out where --pairs has texts.",
            metavar="[FILE]",
            show_default=False,
        ),
    ] = None,
    *,
    labels: Labels = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            "--pairs",
            help="A table of pairs: two row numbers (from 0) or two texts, and a score. "
            "PAIRS.csv:first,second,score names the columns.",
            metavar="FILE",
        ),
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--tasks",
            "-t",
            help="linear_probe, knn, clustering, retrieval, similarity, search. "
            "[default: all that are possible]",
            metavar="NAMES",
        ),
    ] = None,
    corrections: Annotated[
        list[str] | None,
        typer.Option(
            "--corrections",
            "-c",
            help="center, standardize, normalize, remove_dimensions, all_but_the_top, whiten_soft, "
            "whiten_reduced, whiten, cluster_center, clusterwise_all_but_the_top. [default: all]",
            metavar="NAMES",
        ),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", help="Folds of the cross-validation.", metavar="N")] = 5,
    repeats: Annotated[
        int, typer.Option("--repeats", help="Repeats of the cross-validation.", metavar="N")
    ] = 3,
    max_rows: Annotated[
        int,
        typer.Option(
            "--max-rows", help="The most labelled rows to use; more are sampled at random.", metavar="N"
        ),
    ] = 2000,
    max_pairs: Annotated[
        int,
        typer.Option("--max-pairs", help="The most pairs to use; more are sampled at random.", metavar="N"),
    ] = 3000,
    save: Annotated[
        Path | None,
        written_file(
            "--save", help="Save the recommended correction, fitted, as .safetensors.", kinds=CORRECTION
        ),
    ] = None,
    source: InputOptions,
    asked: QueryOptions,
    seed: Seed = 0,
    output: JsonOutput = None,
    json: Json = False,
) -> None:
    """Try corrections of the vectors in FILE on your own task, and say which one helps.

    Each correction is fitted on training folds and scored on held-out rows. With labels the tasks are a
    linear probe, nearest neighbours, clustering and retrieval; with scored pairs the task is to rank them.
    With queries the task is to search all rows of FILE, with each correction fitted on all of them.
    For each task the output has the gain of every correction with its interval, and the advice.

    **Examples**

    With labels: `isoscope advise vectors.npy --labels labels.txt`

    With scored pairs of rows (row, row, score): `isoscope advise vectors.npy --pairs pairs.csv`

    Pairs of texts and a model: `isoscope advise --pairs sts.jsonl --model all-MiniLM-L6-v2`

    Queries and the rows that answer them: `isoscope advise docs.npy --queries q.npy --relevance pairs.csv`

    One task, two corrections: `isoscope advise vectors.npy -l labels.txt -t retrieval -c center,whiten`

    Save the recommended correction: `isoscope advise vectors.npy -l labels.txt --save correction.safetensors`
    """
    if file is None and pairs is None:
        raise InputError(
            "FILE is missing", hint="pass vectors or texts, or --pairs of texts with --model NAME"
        )
    if labels is None and pairs is None and asked.queries is None:
        any_of = [
            Setting("labels", to="label the rows"),
            Setting("pairs", to="give scored pairs of rows"),
            Setting("queries", to="search the rows"),
        ]
        raise InputError("There is no task to test corrections on", hint=any_of)
    from isoscope.advice import advise as advise_space
    from isoscope.io.pair_files import read_scored_pairs

    scored = None if pairs is None else read_scored_pairs(pairs)
    if file is not None:
        opened = source.open(file, labels=labels, by=asked.columns or None)
        space, notes = opened.load(), notes_of(opened)
        queries = asked.open(opened, source)
    else:
        for name in {"labels": labels} if labels is not None else source.of_vectors():
            raise InputError("needs FILE, which is missing", argument=name)
        assert scored is not None
        if asked.queries is not None:
            raise InputError("needs FILE, which is missing", argument="queries")
        space, notes, queries = _encoded(scored, source), [], None
    advice = advise_space(
        space,
        pairs=scored,
        queries=queries,
        tasks=tasks,
        corrections=corrections,
        folds=folds,
        repeats=repeats,
        max_rows=max_rows,
        max_pairs=max_pairs,
        seed=seed,
    )
    lines = []
    if save is not None:
        nothing = "nothing saved: no correction is recommended"
        lines.append(nothing if advice.fitted is None else f"wrote {advice.save(save)}")
    for note in notes:
        say(note, err=True)
    if file is not None and source.model is None and advice.fitted is not None and not json:
        from isoscope.cli.correct import words_of
        from isoscope.look.next_steps import output_of

        how = words_of(advice.fitted) if save is None else ["--load", str(save)]
        words = ["isoscope", "correct", file, *how, *source.words(), "-o", output_of(file, "corrected")]
        lines.append(f"to apply it: {shlex.join(words)}")
    present(advice, lines, json=json, output=output)


def _encoded(pairs: FilePairs, options: InputOptions) -> Space:
    """Return the vectors of the texts of the pairs."""
    from isoscope.models import encode
    from isoscope.space import Space

    if pairs.are_rows or options.model is None:
        raise InputError(
            "FILE is missing", hint="--pairs without FILE must be pairs of texts, with --model NAME"
        )
    given = options.of_texts() | ({} if options.device is None else {"device": options.device})
    given.pop("text_column", None)
    before = given.pop("prefix", "")
    vectors = encode([before + text for text in pairs.texts], model=options.model, **given)
    return Space(vectors, texts=pairs.texts, name="pairs")
