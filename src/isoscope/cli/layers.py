"""`isoscope layers MODEL FILE`."""

from __future__ import annotations

import shlex
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
    complete_models,
    output_folder,
    parse_numbers,
)
from isoscope.errors import FileError, InputError
from isoscope.terminal import as_json, say

RUNNING_TEXT = "wikitext2"
_WINDOW = 512


def layers(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="A model, perhaps a second one to compare with it, then the texts. A model is a name "
            "(all-MiniLM-L6-v2, smollm2-135m), a folder, a .gguf file, or a hub id. Three models or more, a "
            "folder of checkpoints, or models as NAME@REVISION are checkpoints of a training. Texts are a "
            "file: .txt (one a line), .jsonl, .json, .csv, .tsv or .parquet; or a corpus: wikitext2, stsb.",
            metavar="MODEL… FILE",
            show_default=False,
            autocompletion=complete_models,
        ),
    ] = None,
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="The model, if it is not the first argument; give it twice to compare two.",
            metavar="NAME",
            autocompletion=complete_models,
        ),
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option(
            "--texts",
            "-t",
            help="The texts, if they are not the last argument.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    text_column: TextColumn = None,
    data: Data = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            help="Join all texts into one stream and cut it into windows of this many tokens. "
            f"[default: each text on its own; {_WINDOW} for {RUNNING_TEXT}]",
            metavar="TOKENS",
        ),
    ] = None,
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut texts that exceed the model's maximum length.")
    ] = False,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", help="Stop before this many tokens are exceeded.", metavar="N"),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers",
            help="Layers to measure, comma-separated; 0 is the embedding layer. [default: all]",
            metavar="NUMBERS",
        ),
    ] = None,
    modules: Annotated[
        str | None,
        typer.Option(
            "--modules",
            help="Measure the outputs of modules instead of hidden states: residual, attention and mlp of "
            "every block, or patterns such as encoder.layer.*.attention, comma-separated.",
            metavar="NAMES",
        ),
    ] = None,
    metrics: MetricOptions,
    special: Annotated[
        bool,
        typer.Option("--special/--no-special", help="Also count special tokens, such as [CLS] and [SEP]."),
    ] = False,
    clusters: Annotated[
        bool,
        typer.Option(
            "--clusters/--no-clusters", help="Find clusters and centre them, which is the slowest part."
        ),
    ] = True,
    sample: Annotated[
        int,
        typer.Option(
            "--sample",
            help="Tokens (or texts) sampled for clusters, local dimension, informativity, similarity.",
            metavar="N",
        ),
    ] = 2500,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            help="Memory limit for sums, such as 2GB; beyond it, the texts are read more than once.",
            metavar="SIZE",
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            "--similarity",
            help="Show how alike the layers are, as a matrix, in place of the metrics: cka_debiased, cka, "
            "rsa, procrustes or overlap. With a second model its layers are the columns, and each text is "
            "the mean of its tokens.",
            metavar="MEASURE",
        ),
    ] = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None, output_folder("Folder for layers.json and layers.png, or similarity.json and .png.")
    ] = None,
    device: Device = None,
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype",
            help="Type of the model's weights and states: float32, bfloat16, float16, or auto (as saved).",
            metavar="TYPE",
        ),
    ] = "float32",
    device_map: Annotated[
        str | None,
        typer.Option(
            "--device-map",
            help="Let accelerate place the model on several devices, the CPU and the disk: auto, balanced, "
            "sequential. It replaces --device.",
            metavar="HOW",
        ),
    ] = None,
    side: Annotated[
        str | None,
        typer.Option(
            "--side",
            help="Side of an encoder-decoder: encoder, or decoder (which reads each text after the encoder). "
            "[default: encoder]",
            metavar="SIDE",
        ),
    ] = None,
    compile: Annotated[bool, typer.Option("--compile", help="Compile the model by torch.compile.")] = False,
    download: Download = False,
    json: Json = False,
) -> None:
    """Measure every layer of a language model on texts, or compare two models layer by layer.

    For each layer the output has the anisotropy, similarities, ranks, clusters and dimensions of its hidden
    states. Sums are exact over all tokens, in bounded memory. Attention sinks are named, and every quantity
    is given with and without them. With a second model, the tokens that changed most are listed too. Over
    checkpoints, each quantity is shown by layer and checkpoint; with -o, a command that is interrupted
    continues where it stopped.

    **Examples**

    Every layer on your own texts: `isoscope layers all-MiniLM-L6-v2 reviews.jsonl`

    Metrics of your choice: `isoscope layers all-MiniLM-L6-v2 reviews.jsonl -m isotropy,twonn`

    A causal model on running text, in windows: `isoscope layers smollm2-135m book.txt --window 512`

    Before and after fine-tuning: `isoscope layers bert-base-uncased ./tuned reviews.csv --download`

    Over training, for a folder of checkpoints: `isoscope layers ./run reviews.csv -o layers`

    Revisions: `isoscope layers EleutherAI/pythia-70m@step1000 EleutherAI/pythia-70m@step2000 reviews.csv`

    A corpus by name: `isoscope layers all-mpnet-base-v2 stsb --data data`

    How alike the layers are: `isoscope layers all-MiniLM-L6-v2 reviews.jsonl --similarity cka_debiased`

    Quickly: `isoscope layers smollm2-135m wikitext2 --data data --max-tokens 20000 --no-clusters`
    """
    models, texts = _models_and_texts(arguments or [], model or [], texts)
    is_file = Path(texts).exists()
    if data is not None and is_file:
        raise InputError(f"goes with a corpus by name; {texts} is a file", argument="data")
    read = texts_of(texts, data, column=text_column, download=download, skip_blank=window is not None)
    from isoscope.models.layers import LayerComparison, measure_checkpoints, measure_layers

    if window is None and texts == RUNNING_TEXT and not is_file:
        window = _WINDOW
    options: dict[str, Any] = {
        "layers": None if layers is None else parse_numbers("layers", layers),
        "modules": modules and [name.strip() for name in modules.split(",")],
        "window": window, "truncate": truncate, "max_tokens": max_tokens, "special": special,
        "metrics": metrics.chosen(), "clusters": clusters, "sample": sample, "device": device, "seed": seed,
        "download": download, "memory": memory, "dtype": dtype, "device_map": device_map, "compile": compile,
        "side": side,
    }  # fmt: skip
    if measure is not None:
        _similarity(models, read, measure, output, json, options)
        return
    checkpoints = _checkpoints(models)
    if checkpoints is not None:
        trajectory = measure_checkpoints(
            checkpoints, read, folder=None if output is None else output / "checkpoints", **options
        )
        lines = []
        if output is not None:
            _write(trajectory.to_dict(), output / "layers.json")
            figure = drawn(trajectory.figure, output / "layers.png")
            lines = [] if json else [f"wrote {output / 'layers.json'}{figure}"]
        present(trajectory, lines, json=json)
        return
    profiles = [measure_layers(read, model=model, **options) for model in models]
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


def _similarity(
    models: list[str], texts: Any, measure: str, folder: Path | None, json: bool, options: dict[str, Any]
) -> None:
    """Show the similarity of the layers, and write it to a folder."""
    from isoscope.models.layers import layer_similarity

    if len(models) > 2:
        raise InputError(f"takes one model or two, got {len(models)}", argument="measure")
    not_taken = ("metrics", "memory", "side")
    for argument in not_taken:
        if options[argument] is not None:
            raise InputError("goes without --similarity", argument=argument)
    known = {name: value for name, value in options.items() if name not in (*not_taken, "clusters")}
    against = models[1] if len(models) == 2 else None
    matrix = layer_similarity(models[0], texts, against=against, measure=measure, **known)
    lines = []
    if folder is not None:
        from isoscope.figures import figure_of, save_figure
        from isoscope.plots import plot_similarity

        _write(matrix.to_dict(), folder / "similarity.json")
        figure = drawn(
            lambda path: save_figure(figure_of(plot_similarity(matrix)), path), folder / "similarity.png"
        )
        lines = [] if json else [f"wrote {folder / 'similarity.json'}{figure}"]
    present(matrix, lines, json=json)


def _models_and_texts(arguments: list[str], named: list[str], texts: str | None) -> tuple[list[str], str]:
    """Return the models, and the file or corpus of texts: the last argument where --texts is not given."""
    if texts is None:
        if not arguments:
            example = f"isoscope layers {' '.join(named) or 'all-MiniLM-L6-v2'} reviews.txt"
            raise InputError("MODEL and a FILE of texts are needed", hint=example)
        *arguments, texts = arguments
        if not Path(texts).exists() and (files := [word for word in arguments if _is_file(word)]):
            words = [*(word for word in arguments if word not in files), texts, files[0]]
            raise InputError("The texts must come last", hint=shlex.join(["isoscope", "layers", *words]))
        if not (arguments or named) or Path(texts).is_dir():
            raise _only_one(texts, [*named, *arguments])
    models = [*named, *arguments]
    if not models:
        raise InputError("MODEL is missing", hint=f"isoscope layers all-MiniLM-L6-v2 {texts}")
    return models, texts


def _only_one(word: str, before: list[str]) -> InputError:
    """Return the error over a model without texts, or texts without a model."""
    if _is_file(word):
        return InputError(
            f"{word} is a file of texts",
            wanted="a model before it",
            hint=f"isoscope layers all-MiniLM-L6-v2 {word}",
        )
    hint = f"isoscope layers {' '.join([*before, word])} reviews.txt"
    return InputError(f"{word} is a model; a file of texts must follow", hint=hint)


def _checkpoints(models: list[str]) -> list[str] | str | None:
    """Return the checkpoints of a training, or the folder that holds them; None for one model or two."""
    from isoscope.models.layers.checkpoints import subfolders

    if len(models) == 1 and subfolders(Path(models[0])):
        return models[0]
    are_revisions = len(models) > 1 and all("@" in model for model in models)
    return models if are_revisions or len(models) > 2 else None


def _is_file(word: str) -> bool:
    return Path(word).is_file() and not word.endswith(".gguf")


def _write(content: dict[str, Any], path: Path) -> None:
    from isoscope.io.atomic import write_atomically

    text = as_json(content) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda place: place.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path.parent} cannot be written to: {error.strerror or error}") from error
