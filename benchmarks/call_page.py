"""What the benchmarks page says of public calls on the CPU."""

from __future__ import annotations

from benchmarks.tables import Row, table


def call_lines(results: Row) -> list[str]:
    """Public calls, and what share of the exact silhouette its products are."""
    calls = results.get("calls", [])
    shares = [*results.get("silhouette_share", []), *results.get("silhouette_share_large", [])]
    lines = ["", "## Calls as users make them"] if calls or shares else []
    if calls:
        lines += ["", *table("call | ms", calls, lambda row: f"`{row['what']}` | {row['ms']:.1f}")]
    if shares:
        lines += [
            "",
            "`silhouette_score(X, labels)`. Products alone: the same tiles multiplied and nothing else, on",
            "the same threads. Times are the best of some rounds in turns. The share is the median over the",
            "rounds, in CPU time, which does not count what other processes take of the cores.",
            "",
            *table(
                "case | ms | products alone, ms | share of the products | wanted",
                shares,
                lambda row: (
                    f"{row['what']} | {row['ms']:.0f} | {row['products_ms']:.0f} | {row['share']:.2f} "
                    f"| ≥ {row['wanted']:g}"
                ),
                missed=lambda row: row["share"] < row["wanted"],
            ),
        ]
    return lines + _profile_lines(results.get("silhouette_profile", []))


def _profile_lines(rows: list[Row]) -> list[str]:
    """Return what the exact silhouette spends its time on."""
    if not rows:
        return []
    return [
        "",
        "Shares of the CPU time of `silhouette_score` by operation of torch, on one core: `mm` is the",
        "products, `sqrt_` the roots, `sum` or `scatter_add_` the sums by label, `native_channel_shuffle`",
        "a transposed copy, `amin` the search for pairs that are too close and for the nearest label.",
        "",
        *table(
            "case | operations",
            rows,
            lambda row: (
                f"{row['what']} | "
                + ", ".join(f"`{name}` {share:.1%}" for name, share in row["shares"].items())
            ),
        ),
    ]
