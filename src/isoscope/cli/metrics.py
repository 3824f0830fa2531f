"""`isoscope metrics`: what can be measured."""

from __future__ import annotations

import json as json_text
import math
from typing import Annotated, Any

import typer

from isoscope.metrics.registry import KNOWN, Metric, registered


def metrics(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """List every metric: family, range, what a high value means, what it needs, where it comes from.

    **Example**

    Which metrics stream? `isoscope metrics --json | jq 'map(select(.streams)) | map(.name)'`
    """
    if json:
        typer.echo(
            json_text.dumps(
                [_entry(metric) for metric in registered().values()], indent=2, ensure_ascii=False
            )
        )
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("metric", "family", "range", "high means", "needs", "default"):
        table.add_column(column, no_wrap=column == "metric")
    for metric in registered().values():
        needs = ", ".join(_known_needs(metric)) or "vectors"
        table.add_row(
            metric.name, metric.family, _range(metric), metric.high, needs, "yes" if metric.default else ""
        )
    Console().print(table)


def _entry(metric: Metric) -> dict[str, Any]:
    return {
        "name": metric.name,
        "family": metric.family,
        "range": [bound if math.isfinite(bound) else None for bound in metric.range],
        "high": metric.high,
        "needs": _known_needs(metric),
        "invariances": sorted(metric.invariances),
        "differentiable": metric.differentiable,
        "streams": metric.streams,
        "default": metric.default,
        "paper": metric.paper,
    }


def _known_needs(metric: Metric) -> list[str]:
    return [name for name in KNOWN if name in metric.needs]


def _range(metric: Metric) -> str:
    low, high = (f"{bound:g}".replace("inf", "∞").replace("-", "−") for bound in metric.range)
    return f"{low} … {high}"
