"""`isoscope cite`: BibTeX entries for isoscope and the papers of metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from isoscope.cli.commands import check_metrics
from isoscope.cli.options import MetricOptions
from isoscope.io.files import check_file
from isoscope.terminal import show


def cite(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A result as JSON, as `isoscope measure FILE -o RESULT` writes it: its metrics are cited; "
            "or names of metrics.",
            metavar="[RESULT]",
            show_default=False,
        ),
    ] = None,
    *,
    metrics: MetricOptions,
) -> None:
    """Print BibTeX entries for isoscope, and for the papers that metrics come from.

    **Examples**

    The entry of isoscope alone: `isoscope cite`

    The papers of two metrics too: `isoscope cite isoscore,silhouette`

    The papers behind a result: `isoscope measure vectors.npy -o result.json && isoscope cite result.json`
    """
    names: list[str] = []
    if file is not None and not file.exists() and file.name == str(file) and not file.suffix:
        names, file = str(file).split(","), None
        if not metrics.plugin:
            check_metrics(names, argument=None)
    if file is not None:
        check_file(file, what="results")
    from isoscope.citations import cite as cited
    from isoscope.io.structure import read_json

    used = [*names, *(metrics.chosen() or [])]
    if file is not None:
        used += _metric_names(read_json(file).value)
    show(cited(used) if used else cited())


def _metric_names(content: Any) -> Iterator[str]:
    """Yield every name of a metric in a JSON result, as a key or under the key `metric`."""
    from isoscope.metrics.registry import registered

    if isinstance(content, dict):
        yield from (name for name in (*content, content.get("metric")) if name in registered())
        for value in content.values():
            yield from _metric_names(value)
    elif isinstance(content, list):
        for value in content:
            yield from _metric_names(value)
