"""A trajectory in short: a table for terminals, HTML for notebooks, a dict for JSON."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from typing import TYPE_CHECKING, Any

from isoscope.errors import UndefinedError
from isoscope.tables import shown

if TYPE_CHECKING:
    from rich.table import Table

    from isoscope.tracking.correlation import Correlation
    from isoscope.tracking.trajectory import Trajectory

_HEAD = ("", "start", "end", "largest sd over seeds")
_WIDTH = 110


def rows(run: Trajectory) -> list[tuple[str, float, float, float]]:
    """For each column its mean over seeds at the start and at the end, and the largest deviation."""
    mean = run.mean()
    found = []
    for name in ("loss", "accuracy", *run.metrics):
        spread = run.max_standard_deviation(name) if len(run.seeds) > 1 else math.nan
        found.append((name, float(mean[name][0]), float(mean[name][-1]), spread))
    return found


def main_pair(run: Trajectory) -> tuple[str, str] | None:
    """isoscore and silhouette, or the first two metrics; None where there are not two."""
    if {"isoscore", "silhouette"} <= set(run.metrics):
        return "isoscore", "silhouette"
    return (run.metrics[0], run.metrics[1]) if len(run.metrics) > 1 else None


def main_correlation(run: Trajectory) -> Correlation | None:
    """That of the main pair; None where there is none."""
    pair = main_pair(run)
    if pair is None:
        return None
    try:
        return run.correlation(*pair)
    except UndefinedError:
        return None


def title(run: Trajectory) -> str:
    """What was trained, in one line."""
    n_seeds, steps = len(run.seeds), int(run.steps[-1])
    seeds = f"{n_seeds} seed{'s' if n_seeds > 1 else ''}"
    trained = (f"{steps:,} updates", seeds, f"{run.n_parameters:,} parameters")
    return ", ".join([*_shape(run.configuration), *trained])


def _shape(about: Mapping[str, Any]) -> list[str]:
    """How many vectors of how many dimensions, from the least to the most where layers differ."""
    shapes = about.get("shapes") or ([[about["n"], about["d"]]] if "n" in about else [])
    if shapes:
        n, d = (_range(sizes) for sizes in zip(*shapes, strict=True))
        return [f"{n} vectors × {d}"]
    return [f"{about['n_items']:,} items"] if "n_items" in about else []


def _range(sizes: Sequence[int]) -> str:
    least, most = min(sizes), max(sizes)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def correlation_lines(found: Correlation | None) -> list[str]:
    """r and ρ with their intervals."""
    if found is None:
        return []
    parts = []
    for symbol, value, interval in (("r", found.r, found.r_interval), ("ρ", found.rho, found.rho_interval)):
        within = f" [{interval[0]:.5f}, {interval[1]:.5f}]" if interval else ""
        parts.append(f"{symbol} = {value:.5f}{within}")
    over = "; 95 % over seeds, leaving one out" if found.r_interval else ""
    return [f"{found.first} against {found.second} (curves averaged over seeds{over})", ", ".join(parts)]


def as_table(run: Trajectory) -> Table:
    """A rich table for terminals."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in _HEAD:
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for row in _cells(run):
        table.add_row(*row)
    return table


def as_text(run: Trajectory) -> str:
    """The table and the correlation as plain text."""
    from isoscope.console import Terminal

    page = StringIO()
    Terminal(width=_WIDTH, file=page, no_color=True, force_terminal=False).print(as_table(run))
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join([title(run), *lines, *correlation_lines(main_correlation(run))]).strip("\n")


def as_html(run: Trajectory) -> str:
    """The same for a notebook."""
    head = "".join(f"<th>{column}</th>" for column in _HEAD)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in _cells(run)
    )
    line = "<br>".join(html.escape(line) for line in correlation_lines(main_correlation(run)))
    return (
        f"<table><caption>{html.escape(title(run))}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><p>{line}</p>"
    )


def as_dict(run: Trajectory) -> dict[str, Any]:
    """JSON-ready: NaN as None."""
    found = main_correlation(run)
    return {
        "n_parameters": run.n_parameters,
        "seeds": list(run.seeds),
        "steps": int(run.steps[-1]),
        "columns": {
            name: {"start": _plain(start), "end": _plain(end), "max_standard_deviation": _plain(spread)}
            for name, start, end, spread in rows(run)
        },
        "correlation": None if found is None else asdict(found),
        "configuration": dict(run.configuration),
    }


def _cells(run: Trajectory) -> list[tuple[str, ...]]:
    return [(name, *(shown(_plain(value)) for value in values)) for name, *values in rows(run)]


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
