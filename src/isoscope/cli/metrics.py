"""`isoscope metrics`: what can be measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from isoscope.cli.options import Json, Plugin, load_plugins
from isoscope.terminal import show_json

if TYPE_CHECKING:
    from isoscope.metrics.registry import Metric


def metrics(*, plugin: Plugin = None, json: Json = False) -> None:
    """List every metric: its range, what a high value means, and what it needs.

    With --json also where it comes from and what it promises (invariances, gradient, streaming).

    **Example**

    Which metrics stream? `isoscope metrics --json | jq 'map(select(.streams)) | map(.name)'`
    """
    from isoscope.metrics.registry import registered

    load_plugins(plugin)
    if json:
        show_json([_entry(metric) for metric in registered().values()])
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from isoscope.console import Terminal

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("metric", no_wrap=True)
    table.add_column("range", no_wrap=True)
    for column in ("a high value means", "needs"):
        table.add_column(column)
    family = ""
    for metric in registered().values():
        if metric.family != family:
            family = metric.family
            table.add_section()
            table.add_row(Text(family, style="bold"))
        name = f"{metric.name} •" if metric.default else metric.name
        low, high = (f"{bound:.4g}".replace("inf", "∞").replace("-", "−") for bound in metric.range)
        table.add_row(f"  {name}", f"{low} … {high}", metric.high, ", ".join(_needs(metric)))
    console = Terminal()
    console.print(table)
    console.say("• measured by default, if the vectors come with what it needs")


def _entry(metric: Metric) -> dict[str, Any]:
    return {
        "name": metric.name,
        "family": metric.family,
        "range": [bound if math.isfinite(bound) else None for bound in metric.range],
        "high": metric.high,
        "needs": _needs(metric),
        "invariances": sorted(metric.invariances),
        "differentiable": metric.differentiable,
        "streams": metric.streams,
        "default": metric.default,
        "paper": metric.paper,
    }


def _needs(metric: Metric) -> list[str]:
    from isoscope.metrics.registry import KNOWN

    return [name for name in KNOWN if name in metric.needs]
