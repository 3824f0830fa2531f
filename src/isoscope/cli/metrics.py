"""`isoscope metrics`: what can be measured."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.commands import check_metrics
from isoscope.cli.options import Json, Plugin, complete_metrics, load_plugins
from isoscope.terminal import show_json

if TYPE_CHECKING:
    from isoscope.metrics.registry import Metric

_WHICH = {  # of several metrics of one family
    "spectrum": "which number of dimensions to use: effective_rank to compare spaces; participation_ratio "
    "where strong directions should count more; rankme where the mean belongs to the vectors; stable_rank "
    "for the strongest direction alone; dimensions_for_variance to choose how many principal components to "
    "keep",
}


def metrics(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Metrics to explain, or families to list. [default: list all]",
            metavar="[NAMES]",
            show_default=False,
            autocompletion=complete_metrics,
        ),
    ] = None,
    *,
    plugin: Plugin = None,
    json: Json = False,
) -> None:
    """List every metric with its range, what a high value means and what it needs; or explain some.

    With --json also where it comes from and what it promises (invariances, gradient, streaming).

    **Examples**

    All metrics: `isoscope metrics`

    What one of them is, with its formula and paper: `isoscope metrics isoscore`

    A family, and which of its metrics to use: `isoscope metrics spectrum`

    Which metrics stream? `isoscope metrics --json | jq 'map(select(.streams)) | map(.name)'`
    """
    asked = [name.strip().removesuffix("_score") for text in names or () for name in text.split(",")]
    asked = [] if "all" in asked else [name for name in asked if name]
    if not plugin:
        check_metrics(asked, argument=None)
    from isoscope.metrics.registry import registered

    load_plugins(plugin)
    everything = registered().values()
    chosen = [metric for metric in everything if not asked or {metric.name, metric.family} & set(asked)]
    if json:
        show_json([_entry(metric) for metric in chosen])
        return
    from isoscope.console import Terminal

    explained = [metric for metric in chosen if metric.name in asked]
    for metric in explained:
        _explain(metric, plugin)
    listed = [metric for metric in chosen if not asked or metric.family in asked]
    if listed:
        _show_table(listed)
    for family in {metric.family: None for metric in listed if metric.family in asked}:
        if family in _WHICH:
            Terminal().say(_WHICH[family])


def _show_table(chosen: Collection[Metric]) -> None:
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
    for metric in chosen:
        if metric.family != family:
            family = metric.family
            table.add_section()
            table.add_row(Text(family, style="bold"))
        name = f"{metric.name} •" if metric.default else metric.name
        table.add_row(f"  {name}", _range(metric), metric.high, ", ".join(_needs(metric)))
    console = Terminal()
    console.print(table)
    console.say("• measured by default, if the vectors come with what it needs")
    console.say("`isoscope metrics NAME` explains one")


def _plugin_words(plugin: list[Path] | None) -> list[str]:
    return [word for path in plugin or () for word in ("--plugin", str(path))]


def _explain(metric: Metric, plugin: list[Path] | None) -> None:
    """Print the docstring of a metric's function, without its parameters, and what the registry says."""
    from inspect import cleandoc

    from isoscope.console import Terminal

    console = Terminal()
    text = cleandoc((metric.function and metric.function.__doc__) or metric.high)
    console.say(metric.name, style="bold")
    for paragraph in text.partition("\n\nArgs:")[0].partition("\n\n>>>")[0].split("\n\n"):
        if paragraph.startswith("    "):  # a formula
            for line in paragraph.splitlines():
                console.say(line, whole=True)
        else:
            console.say(" ".join(paragraph.split()))
        console.say("")
    facts = {
        "range": _range(metric),
        "a high value means": metric.high,
        "needs": ", ".join(_needs(metric)),
        "unchanged by": ", ".join(sorted(metric.invariances)),
        "paper": metric.paper,
        "measure it": f"iso.measure(X, partners=Y, metrics={metric.name!r})"
        if "partners" in metric.needs
        else shlex.join(["isoscope", "measure", "FILE", "-m", metric.name, *_plugin_words(plugin)]),
    }
    for name, fact in facts.items():
        if fact:
            console.say(f"{name}: {fact}")
    console.say("")


def _range(metric: Metric) -> str:
    low, high = (f"{bound:.4g}".replace("inf", "∞").replace("-", "−") for bound in metric.range)
    return f"{low} … {high}"


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
