"""`isoscope layers MODEL --texts FILE`."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.corpora import texts_of
from isoscope.cli.options import (
    Data,
    Device,
    Download,
    Json,
    TextColumn,
    as_typed,
    parse_numbers,
)
from isoscope.errors import FileError, InputError
from isoscope.io.atomic import write_atomically
from isoscope.models.layers.run import MEMORY_MB
from isoscope.terminal import say, show_json

if TYPE_CHECKING:
    from isoscope.models.layers import LayerComparison, LayerProfile

RUNNING_TEXT = "wikitext2"
_WINDOW = 512
_EPILOG = """
**Examples**

Every layer of a sentence encoder on one's own texts: `isoscope layers all-MiniLM-L6-v2 --texts reviews.jsonl`

A GPT-like model on running text, in windows: `isoscope layers smollm2-135m --texts book.txt --window 512`

Before and after fine-tuning: `isoscope layers bert-base-uncased ./tuned --texts reviews.csv -o layers`

A corpus by name: `isoscope layers all-mpnet-base-v2 --texts stsb --data data`

Quickly: `isoscope layers smollm2-135m --texts wikitext2 --data data --max-tokens 20000 --no-clusters`
"""


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
    only: Annotated[
        str | None,
        typer.Option("--layers", help="Which, comma-separated: 0 is the embedding layer.", metavar="NUMBERS"),
    ] = None,
    special: Annotated[
        bool, typer.Option("--special/--no-special", help="Count [CLS], [SEP] and their like too.")
    ] = False,
    clusters: Annotated[
        bool,
        typer.Option("--clusters/--no-clusters", help="Find clusters and centre them: the slowest part."),
    ] = True,
    sample: Annotated[
        int, typer.Option("--sample", help="Tokens held for clusters, local dimension and r².", metavar="N")
    ] = 2500,
    memory_mb: Annotated[
        int, typer.Option("--memory-mb", help="What the sums may take; beyond, texts are read again.")
    ] = MEMORY_MB,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything sampled.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for layers.json and layers.png.", metavar="FOLDER"),
    ] = None,
    device: Device = None,
    download: Download = None,
    json: Json = False,
) -> None:
    """Measure every layer of a language model on texts: anisotropy, similarities, rank, clusters, dimension.

    Exact over all tokens, in bounded memory. Attention sinks are named, and every figure is given with
    and without them. With a second model: before and after, and the tokens that changed most.
    """
    if len(models) > 2:
        raise InputError(f"{len(models)} models are given; wanted one, or two to compare")
    from isoscope.models.layers import LayerComparison, measure_layers

    with as_typed():
        is_file = Path(texts).exists()
        if data is not None and is_file:
            raise InputError(f"--data goes with a corpus by name; {texts} is a file")
        found = texts_of(
            texts, data, column=text_column, download=bool(download), skip_blank=window is not None
        )
        running = texts == RUNNING_TEXT and not is_file
        options: dict[str, Any] = {
            "layers": None if only is None else parse_numbers("layers", only),
            "window": _WINDOW if window is None and running else window, "truncate": truncate,
            "max_tokens": max_tokens, "special": special, "clusters": clusters, "sample": sample,
            "memory_mb": memory_mb,
            "device": device, "seed": seed, "download": bool(download),
        }  # fmt: skip
        profiles = [measure_layers(found, model=model, **options) for model in models]
        comparison = LayerComparison.of(*profiles) if len(profiles) == 2 else None
    shown = profiles[0] if comparison is None else comparison
    written = None if output is None else _write(profiles, shown.to_dict(), output)
    if json:
        show_json(shown.to_dict())
        return
    _show(profiles, comparison)
    if written is not None:
        say(f"wrote {written}")


layers.__doc__ = f"{layers.__doc__}\n{_EPILOG}"


def _write(profiles: list[LayerProfile], content: dict[str, Any], folder: Path) -> str:
    """layers.json, and layers.png where matplotlib is; what to say of them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json_text.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(
            folder / "layers.json", lambda place: place.write_text(text + "\n", encoding="utf-8")
        )
    except OSError as error:
        raise FileError(f"{folder} cannot be written to: {error.strerror or error}") from error
    try:
        drawn = profiles[0].figure(folder / "layers.png", against=profiles[1] if profiles[1:] else None)
    except FileError:
        raise
    except InputError as error:  # matplotlib is not installed
        return f"{folder / 'layers.json'}; no figure: {error}"
    return f"{folder / 'layers.json'} and {drawn}"


def _show(profiles: list[LayerProfile], comparison: LayerComparison | None) -> None:
    for profile in profiles:
        profile.show()
        say("")
    if comparison is not None:
        comparison.show()
