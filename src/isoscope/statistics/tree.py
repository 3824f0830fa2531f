"""Many statistics merged as a tree: few are held at a time, and the order is that of pairs of pairs."""

from __future__ import annotations

from typing import Any


class Tree:
    """A running merge of dicts of statistics by name, in the order they are added.

    Neighbours are merged in pairs, pairs of neighbours in pairs, and so on: n statistics are held as at
    most log₂ n, what grows with the rows is copied log₂ n times and not n times, and merging the same
    statistics anywhere else in pairs gives the same bits.

    >>> from isoscope.statistics.moments import Moments
    >>> tree = Tree()
    >>> for row in ([[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 9.0]]):
    ...     tree.add({"moments": Moments.of(row)})
    >>> tree.total()["moments"].mean.tolist()
    [3.0, 5.0]
    """

    def __init__(self) -> None:
        self._parts: list[tuple[int, dict[str, Any]]] = []

    def add(self, part: dict[str, Any]) -> None:
        """Return the next statistics in order."""
        level = 0
        while self._parts and self._parts[-1][0] == level:
            part = merged(self._parts.pop()[1], part)
            level += 1
        self._parts.append((level, part))

    def total(self) -> dict[str, Any]:
        """Everything added, merged; empty where nothing was."""
        if not self._parts:
            return {}
        *before, (_, total) = self._parts
        for _, part in reversed(before):
            total = merged(part, total)
        return total


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Name by name, the statistics of both."""
    return {name: statistic.merge(second[name]) for name, statistic in first.items()}
