"""The MCP server: look, measure, compare, advise and report as tools for a language model.

A tool reads files under one folder only, opens no address and downloads no model. It answers with JSON; an
error is one line.
"""

from __future__ import annotations

import functools
import glob
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from isoscope._version import __version__
from isoscope.cli.inputs import InputOptions, notes_of
from isoscope.errors import FileError, IsoscopeError
from isoscope.io.addresses import is_address
from isoscope.terminal import as_json

if TYPE_CHECKING:
    from isoscope.look.next_steps import NextSteps

INSTRUCTIONS = """\
isoscope measures how an embedding space is shaped: isotropy, clusters, spectrum, intrinsic dimension.
Paths are relative to the folder {folder}; files outside it cannot be read.
Every answer is JSON. `notes` holds what the user should know; pass it on. A value of null is undefined, and
`reason` says why. Read `meaning` before interpreting a value."""
_PATTERN = frozenset("*?[")

File = Annotated[
    str,
    Field(
        description="Vectors: .npy .npz .safetensors .pt .parquet .arrow .csv .tsv .json .jsonl .txt .vec "
        ".zarr, or a folder or pattern of such files. With `model`, a file of texts."
    ),
]
Labels = Annotated[
    str | None,
    Field(description="Labels: a column of the file, a file with one label a line, or FILE.csv:column."),
]
Metrics = Annotated[
    list[str] | None,
    Field(
        description="Metrics or families (isotropy, cosine, spectrum, dimensions, clusters, manifold, "
        "contextual, objectives), or `all`. By default, those that need nothing else."
    ),
]
Model = Annotated[
    str | None,
    Field(description="Encode the texts in the file by this model: all-MiniLM-L6-v2, or a folder."),
]
TextColumn = Annotated[str | None, Field(description="The column that holds the texts, with `model`.")]
VectorColumn = Annotated[str | None, Field(description="The column of a table that holds the vectors.")]
Key = Annotated[str | None, Field(description="The array of an .npz, .safetensors or .pt file.")]
Seed = Annotated[int, Field(description="Seed of everything random.")]


class Folder:
    """The folder whose files the tools may read and write.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()
        if not self.path.is_dir():
            raise FileError(argument="root", got=str(path), wanted="a folder")

    def file(self, name: str, argument: str) -> str:
        """Return the absolute path of a file, a folder or a pattern that stay inside the folder."""
        path = self.path / name
        if is_address(name) or "\0" in name:
            raise self._outside(name, argument)
        paths = [path]
        if _PATTERN & set(name) and not path.exists():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise self._outside(name, argument)
            paths += map(Path, glob.glob(str(path)))  # what the reader of shards will open
        paths += [inside for one in paths if one.is_dir() for inside in one.rglob("*")]
        if not all(one.resolve().is_relative_to(self.path) for one in paths):
            raise self._outside(name, argument)
        return str(path)

    def file_or_name(self, name: str | None, argument: str) -> str | None:
        """Return the absolute path of a file, or of FILE:column; the name of a column or model as it is."""
        if name is None:
            return None
        if name.startswith("~"):
            raise self._outside(name, argument)
        head, colon, column = name.rpartition(":")
        for path, rest in ((name, ""), *([(head, f":{column}")] if colon and head else [])):
            full = self.file(path, argument)
            if Path(full).exists():
                return full + rest
            if Path(path).exists():  # in the working folder, where a reader would look
                raise self._outside(name, argument)
        return name

    def _outside(self, name: str, argument: str) -> FileError:
        return FileError(argument=argument, got=name, wanted=f"a file under the root folder {self.path}")


class Tools:
    """The tools of the server, over the files of one folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def _open(
        self,
        file: str,
        *,
        argument: str = "file",
        labels: str | None = None,
        by: tuple[str, ...] | None = None,
        model: str | None = None,
        **options: Any,
    ) -> Any:
        source = InputOptions(model=self.folder.file_or_name(model, "model"), **options)
        return source.open(
            self.folder.file(file, argument),
            labels=self.folder.file_or_name(labels, "labels"),
            by=by,
        )

    def look(
        self,
        file: File,
        labels: Labels = None,
        model: Model = None,
        text_column: TextColumn = None,
        vectors: VectorColumn = None,
        key: Key = None,
        seed: Seed = 0,
    ) -> str:
        """Take a first look at the vectors in a file: call this first.

        The answer has seven or eight findings, the worst first. Each has a number with its interval, the same
        number of known models, what it means for search, clustering or a classifier, and what to try next.
        """
        from isoscope.look import look

        source = self._open(
            file, labels=labels, model=model, text_column=text_column, vectors=vectors, key=key
        )
        options = {"vectors": vectors, "key": key}
        steps = _steps(file, options, labels, {"model": model, "text_column": text_column})
        return as_json(look(source, seed=seed, steps=steps).to_dict())

    def measure(
        self,
        file: File,
        labels: Labels = None,
        metrics: Metrics = None,
        by: Annotated[
            str | None, Field(description="Measure every value of this column too, the worst slice first.")
        ] = None,
        model: Model = None,
        text_column: TextColumn = None,
        vectors: VectorColumn = None,
        key: Key = None,
        seed: Seed = 0,
    ) -> str:
        """Measure the vectors in a file: every metric with its 95 % interval and what its value means."""
        from isoscope.engine.measure import measure

        column = self.folder.file_or_name(by, "by")
        columns = None if column is None else (column,)
        source = self._open(
            file,
            labels=labels,
            by=columns,
            model=model,
            text_column=text_column,
            vectors=vectors,
            key=key,
        )
        return as_json(measure(source, metrics=metrics, by=columns, seed=seed).to_dict())

    def compare(
        self,
        a: File,
        b: Annotated[str, Field(description="Vectors of the same items, such as a new model's.")],
        labels: Labels = None,
        metrics: Metrics = None,
        gates: Annotated[
            list[str] | None,
            Field(
                description='Conditions to check: "isoscore>=0.1" on b, "delta:isoscore>=-0.02" on b − a, '
                '"overlap>=0.8", "cka>=0.9".'
            ),
        ] = None,
        ids: Annotated[
            str | None,
            Field(
                description="The column that rows are matched by; none keeps the order. By default a column "
                "named id, ids, _id, key or uuid that is in another order in b."
            ),
        ] = None,
        vectors: VectorColumn = None,
        seed: Seed = 0,
    ) -> str:
        """Compare two files of vectors of the same items.

        The answer has the difference of every metric with its interval, linear CKA, the share of nearest
        neighbours that both have, and the rows that moved most.
        """
        from isoscope.comparison import compare, parse_gates

        conditions = parse_gates(gates or ())
        comparison = compare(
            self._open(a, argument="a", labels=labels, vectors=vectors),
            self._open(b, argument="b", vectors=vectors),
            ids=ids,
            metrics=[*(metrics or ["default"]), *(gate.metric for gate in conditions if gate.metric)],
            seed=seed,
        )
        checked = [result.to_dict() for result in comparison.check(conditions)]
        return as_json(comparison.to_dict() | {"gates": checked})

    def advise(
        self,
        file: File,
        labels: Labels = None,
        tasks: Annotated[
            list[str] | None, Field(description="linear_probe, knn, clustering, retrieval. By default, all.")
        ] = None,
        corrections: Annotated[
            list[str] | None,
            Field(
                description="Corrections to try, such as center, whiten, all_but_the_top. By default, all."
            ),
        ] = None,
        max_rows: Annotated[int, Field(description="Rows to try at most, drawn at random.")] = 2000,
        model: Model = None,
        text_column: TextColumn = None,
        vectors: VectorColumn = None,
        key: Key = None,
        seed: Seed = 0,
    ) -> str:
        """Try corrections of the vectors, such as centering and whitening, on tasks with the labels.

        Each correction is fitted on training rows and scored on held-out rows. The answer tells which
        correction helps, or that none does.
        """
        from isoscope.advice import advise

        source = self._open(
            file, labels=labels, model=model, text_column=text_column, vectors=vectors, key=key
        )
        advice = advise(source.load(), tasks=tasks, corrections=corrections, max_rows=max_rows, seed=seed)
        return as_json(advice.to_dict() | {"notes": notes_of(source)})

    def report(
        self,
        file: File,
        output: Annotated[str, Field(description="The .html file to write, under the root folder.")],
        labels: Labels = None,
        title: Annotated[str | None, Field(description="Title of the page.")] = None,
        model: Model = None,
        text_column: TextColumn = None,
        vectors: VectorColumn = None,
        key: Key = None,
        seed: Seed = 0,
    ) -> str:
        """Write one self-contained HTML page about the vectors.

        The page has findings in words, numbers, pictures, and sliders for what corrections would do.
        """
        from isoscope.report import report

        page = Path(self.folder.file(output, "output"))
        if page.exists() and page.suffix.lower() not in (".html", ".htm"):
            raise FileError(argument="output", got=output, wanted="a new .html file")
        source = self._open(
            file, labels=labels, model=model, text_column=text_column, vectors=vectors, key=key
        )
        made = report(source, path=page, title=title, seed=seed)
        return as_json(
            {
                "page": str(made.path),
                "n_bytes": made.n_bytes,
                "headline": made.headline,
                "thresholds": made.thresholds,
                "measurement": made.measurement.to_dict(),
            }
        )


def build(root: str | Path) -> MCPServer[Any]:
    """Return the server with its tools, over the files under `root`."""
    folder = Folder(root)
    server: MCPServer[Any] = MCPServer(
        "isoscope",
        version=__version__,
        instructions=INSTRUCTIONS.format(folder=folder.path),
        log_level="WARNING",
    )
    tools = Tools(folder)
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    writes = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)
    for tool in (tools.look, tools.measure, tools.compare, tools.advise, tools.report):
        server.add_tool(
            _answered(tool), annotations=writes if tool == tools.report else reads, structured_output=False
        )
    return server


def _steps(
    file: str, options: dict[str, str | None], labels: str | None, texts: dict[str, str | None]
) -> NextSteps:
    """Return the writer of next steps, with the names that the caller used."""
    from isoscope.look.next_steps import NextSteps

    words, of_texts = (
        [word for name, value in given.items() if value for word in (f"--{name.replace('_', '-')}", value)]
        for given in (options, texts)
    )
    return NextSteps((file, *words), of_texts, labels, labels is not None, not texts["model"])


def _answered(tool: Callable[..., str]) -> Callable[..., str]:
    """Return the tool with what isoscope raises as an error of the tool, in one line."""

    @functools.wraps(tool)
    def run(*args: Any, **options: Any) -> str:
        try:
            return tool(*args, **options)
        except (IsoscopeError, OSError, MemoryError) as error:
            raise ToolError(" ".join(str(error).split()) or type(error).__name__) from error

    return run
