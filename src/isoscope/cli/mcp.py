"""`isoscope mcp`: the tools of isoscope for language models."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from isoscope.errors import not_installed
from isoscope.terminal import unguarded


def mcp(
    *,
    root: Annotated[
        Path,
        typer.Option("--root", help="The only folder whose files are read and written.", metavar="FOLDER"),
    ] = Path("."),
) -> None:
    """Serve look, measure, compare, advise and report to a language model (Model Context Protocol).

    The server talks on standard input and output, so a client starts it. It reads files under --root only,
    never uses the network, and downloads no model.

    **Example**

    What a client runs: `isoscope mcp --root /data/embeddings`
    """
    try:
        from isoscope.cli.mcp_server import build
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == "isoscope":
            raise
        raise not_installed("`isoscope mcp`", "mcp", extra="mcp") from None
    with redirect_stdout(unguarded(sys.stdout)):  # the protocol writes bytes
        build(root).run("stdio")
