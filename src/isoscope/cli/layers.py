"""`isoscope layers MODEL --texts FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from isoscope.cli.commands import drawn, present
from isoscope.cli.corpora import texts_of
from isoscope.cli.options import (
    Data,
    Device,
    Download,
    Json,
    MetricOptions,
    Seed,
    TextColumn,
    output,
    parse_numbers,
)
from isoscope.errors import FileError, InputError
from isoscope.terminal import as_json, say

RUNNING_TEXT = "wikitext2"
_WINDOW = 512


def layers(
    models: Annotated[
        list[str],
        typer.Argument(
            help="A model, or two: before and after. A name (all-MiniLM-L6-v2, smollm2-135m), a folder, "
            "a .gguf file, or a hub id.",
            metavar="MODEL [AFTER]",
            show_default=False,
        ),
    ],
    *,
    texts: Annotated[
        str,
        typer.Option(
            "--texts",
            "-t",
            help="Texts: .txt one a line, .jsonl, .csv, .tsv, .json, .parquet; or a corpus: wikitext2, "
            "stsb (its first sentences).",
            metavar="FILE",
            show_default=False,
        ),
    ],
    text_column: TextColumn = None,
    data: Data = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            help="Read all texts as one stream, in windows of so many tokens. [default: each text by "
            f"itself; {_WINDOW} for {RUNNING_TEXT}]",
            metavar="TOKENS",
        ),
    ] = None,
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut texts that are longer than the model takes.")
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", help="Stop after so many tokens.", metavar="N")
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers",
            help="Layers to measure, comma-separated: 0 is the embedding layer. [default: all]",
            metavar="NUMBERS",
        ),
    ] = None,
    metrics: MetricOptions,
    special: Annotated[
        bool, typer.Option("--special/--no-special", help="Count [CLS], [SEP] and their like too.")
    ] = False,
    clusters: Annotated[
        bool,
        typer.Option("--clusters/--no-clusters", help="Find clusters and centre them: the slowest part."),
    ] = True,
    sample: Annotated[
        int,
        typer.Option("--sample", help="Tokens sampled for clusters, local dimension and r².", metavar="N"),
    ] = 2500,
    memory_mb: Annotated[
        int | None,
        typer.Option(
            "--memory-mb",
            help="The most memory for sums; where it does not suffice, texts are read again.",
            metavar="MB",
        ),
    ] = None,
    seed: Seed = 0,
    output: Annotated[Path | None, output("Folder for layers.json and layers.png.")] = None,
    device: Device = None,
    download: Download = False,
    json: Json = False,
) -> None:
    """Measure every layer of a language model on texts: anisotropy, similarities, rank, clusters, dimension.

    Exact over all tokens, in bounded memory. Attention sinks are named, and every figure is given with
    and without them. With a second model: before and after, and the tokens that changed most.

    **Examples**

    Every layer on your own texts: `isoscope layers all-MiniLM-L6-v2 --texts reviews.jsonl`

    A GPT-like model on running text, in windows: `isoscope layers smollm2-135m --texts book.txt --window 512`

    Before and after fine-tuning: `isoscope layers bert-base-uncased ./tuned --texts reviews.csv -o layers`

    A corpus by name: `isoscope layers all-mpnet-base-v2 --texts stsb --data data`

    Metrics of your choice: `isoscope layers all-MiniLM-L6-v2 --texts reviews.jsonl -m isotropy,twonn`

    Quickly: `isoscope layers smollm2-135m --texts wikitext2 --data data --max-tokens 20000 --no-clusters`
    """
    from isoscope.models.layers import LayerComparison, measure_layers

    if len(models) > 2:
        raise InputError(f"{len(models)} models are given; wanted one, or two to compare")
    is_file = Path(texts).exists()
    if data is not None and is_file:
        raise InputError(f"goes with a corpus by name; {texts} is a file", argument="data")
    read = texts_of(texts, data, column=text_column, download=download, skip_blank=window is not None)
    if window is None and texts == RUNNING_TEXT and not is_file:
        window = _WINDOW
    options: dict[str, Any] = {} if memory_mb is None else {"memory_mb": memory_mb}
    chosen = metrics.chosen()
    profiles = [
        measure_layers(
            read, model=model, layers=None if layers is None else parse_numbers("layers", layers),
            window=window, truncate=truncate, max_tokens=max_tokens, special=special,
            metrics=chosen, clusters=clusters, sample=sample, device=device, seed=seed, download=download,
            **options,
        )
        for model in models
    ]  # fmt: skip
    result: Any = LayerComparison.of(*profiles) if len(profiles) == 2 else profiles[0]
    lines = []
    if output is not None:
        _write(result.to_dict(), output / "layers.json")
        against = profiles[1] if len(profiles) == 2 else None
        figure = drawn(lambda path: profiles[0].figure(path, against=against), output / "layers.png")
        lines = [] if json else [f"wrote {output / 'layers.json'}{figure}"]
    if len(profiles) == 2 and not json:
        for profile in profiles:
            profile.show()
            say("")
    present(result, lines, json=json)


def _write(content: dict[str, Any], path: Path) -> None:
    from isoscope.io.atomic import write_atomically

    text = as_json(content) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda place: place.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path.parent} cannot be written to: {error.strerror or error}") from error
