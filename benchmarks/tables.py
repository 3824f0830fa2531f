"""Tables of the benchmarks page, with the figures that were missed under them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.reasons import REASONS

Row = dict[str, Any]


def table(
    header: str,
    rows: Iterable[Row],
    line: Callable[[Row], str],
    *,
    missed: Callable[[Row], bool] | None = None,
) -> list[str]:
    """Return a table, followed by the missed targets with their reasons."""
    rows = list(rows)
    misses = [f"- {row['what']}: {_reason(row)}." for row in rows if missed and missed(row)]
    return [
        f"| {header} |",
        "|" + "---|" * (header.count("|") + 1),
        *(f"| {line(row)} |" for row in rows),
        *(["", "Missed, and why:", "", *misses] if misses else []),
    ]


def _reason(row: Row) -> str:
    return str(row.get("reason") or REASONS.get(row["what"], "no reason known yet"))


def too_slow(row: Row) -> bool:
    return bool(row["times_faster"] < row["wanted"])


def _or_none(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def penalty_table(rows: list[Row]) -> list[str]:
    return table(
        "case | theirs, ms | ours, ms | times faster | wanted | difference",
        rows,
        lambda row: (
            f"{row['what']} | {row['peer_ms']:.1f} | {row['ours_ms']:.2f} | {row['times_faster']:.1f} "
            f"| ≥ {row['wanted']:g} | {_or_none(row['gradient_difference'])}"
        ),
        missed=too_slow,
    )


def share_table(rows: list[Row]) -> list[str]:
    return table(
        "case | step, ms | penalty alone, ms | share | wanted | step with it, ms",
        rows,
        lambda row: (
            f"{row['what']} | {row['step_ms']:.0f} | {row['penalty_ms']:.1f} "
            f"| {row['share_percent']:.1f} % | ≤ {row['wanted_percent']:g} % "
            f"| {row['with_penalty_ms']:.0f}"
        ),
        missed=lambda row: row["share_percent"] > row["wanted_percent"],
    )
