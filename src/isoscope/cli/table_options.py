"""Options that say how FILE is written, for every command that reads vectors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer


@dataclass(frozen=True)
class TableOptions:
    """How a table is written and which of its columns are dimensions, as typed; None is what was not."""

    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            help="Columns of a table that are dimensions: names, ranges (d0:d767), : for every one.",
            metavar="NAMES",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", help="Columns of a table that are no dimensions.", metavar="NAMES"),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether a .csv or .tsv begins with names. [default: judged]"
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter", help="Between the cells of a .csv: ; or tab, for instance.", metavar="MARK"
        ),
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", help="The decimal mark of a .csv: . or ,", metavar="MARK")
    ] = None
    unpack_bits: Annotated[
        bool | None,
        typer.Option(
            "--unpack-bits/--no-unpack-bits", help="Whether bytes are eight dimensions each, or numbers."
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """The options that were typed, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value not in (None, [])}

    def words(self) -> list[str]:
        """The options that were typed, as words of a command line."""
        words = []
        for name, value in self.given().items():
            option = name.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--{option}" if value else f"--no-{option}")
            else:
                texts = value if isinstance(value, list) else [value]
                words += [word for text in texts for word in (f"--{option}", text)]
        return words


AS_JUDGED = TableOptions()


def takes_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `TableOptions`, which reach it as its argument `table`."""
    hints = inspect.get_annotations(TableOptions, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(name, kind, default=None, annotation=of) for name, of in hints.items()]
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        own = [parameter.replace(kind=kind)]
        parameters += options if parameter.name == "table" else own

    @functools.wraps(command)
    def run(**values: Any) -> None:
        table = TableOptions(**{name: values.pop(name) for name in hints})
        command(table=table, **values)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
