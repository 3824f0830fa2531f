"""`Audit`: what `audit` returns, as text, HTML, JSON and a table of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from isoscope._version import __version__
from isoscope.comparison.gates import GateResult
from isoscope.engine.readings import Readings
from isoscope.look.finding import Finding
from isoscope.look.result import Findings
from isoscope.queries import Retrieval
from isoscope.tables import Cell, Grid, percent, span

NAMES = {
    "not_finite": "NaN or infinity",
    "zero_vectors": "zero vectors",
    "odd_lengths": "odd lengths",
    "inner_product": "cosine ≠ inner product",
    "constant_dimensions": "constant dimensions",
    "padded_rows": "padded rows",
    "duplicates": "duplicates",
    "near_duplicates": "near duplicates",
    "outliers": "outliers",
    "mixture": "two kinds of rows",
    "hubs": "hubs",
    "never_retrieved": "never retrieved",
    "ann_recall": "recall of the index",
}


@dataclass(frozen=True, repr=False)
class Audit(Findings):
    """The findings of an audit, the worst first.

    Attributes:
        findings: each with its share, rows and texts.
        name: what was audited.
        n: vectors. d: dimensions.
        n_sampled: rows whose neighbours were searched; n where all were.
        n_queries: queries whose neighbours were searched; None without queries.
        retrieval: how well the queries find what is relevant to them; None without relevance.
        gates: the conditions that were tested.
        dtype: what the vectors are held as.
        notes: how the input was read.
        seed: of the sample.
        seconds: how long it took.
        texts_of: the texts of rows; none where they are not known.
    """

    findings: tuple[Finding, ...]
    name: str | None
    n: int
    d: int
    n_sampled: int
    n_queries: int | None
    retrieval: Retrieval | None
    gates: Sequence[GateResult]
    dtype: str
    notes: tuple[str, ...]
    seed: int
    seconds: float
    texts_of: Callable[[Sequence[int]], Sequence[str]] = field(repr=False, compare=False)

    @property
    def readings(self) -> Readings:
        """The share of each finding, one row a reading."""
        return Readings([finding.reading for finding in self.findings])

    @property
    def passed(self) -> bool:
        """Whether no condition of `fail_on` holds."""
        return all(gate.passed for gate in self.gates)

    @property
    def title(self) -> str:
        """What was audited, in one line."""
        queries = "" if self.n_queries is None else f", {self.n_queries:,} queries"
        return f"{self.name or 'space'}: {self.n:,} vectors × {self.d:,} dimensions ({self.dtype}){queries}"

    @property
    def detailed(self) -> tuple[Finding, ...]:
        """The findings that are not healthy."""
        return tuple(finding for finding in self.findings if finding.severity != "healthy")

    def grids(self) -> list[Grid]:
        """Return one row for each finding, and the figures of retrieval."""
        rows: list[list[Cell]] = [
            [
                NAMES[one.name],
                one.count,
                "–" if one.reading.value is None else percent(one.reading.value, 2),
                span(one.reading.interval, lambda share: percent(share, 2)),
                one.severity,
            ]
            for one in self.findings
        ]
        heads = ("finding", "count", "share", "95 % interval", "severity")
        grids = [Grid("", heads, rows, ("count", "share"))]
        if self.retrieval is not None:
            grids += [
                Grid(self.retrieval.title, one.heads, one.rows, one.numbers) for one in self.retrieval.grids()
            ]
        return grids

    def lines(self) -> list[str]:
        """Return what was sampled, the gates and the notes."""
        neighbors = (
            f"Neighbours: those of {self.n_sampled:,} rows drawn at random (seed {self.seed}), searched "
            f"among all {self.n:,}; their shares have 95 % intervals. Everything else: all rows."
            if self.n_sampled < self.n
            else f"Everything was computed from all {self.n:,} rows; neighbours by cosine."
        )
        return [neighbors, *map(str, self.gates), *(f"note: {note}" for note in self.notes)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        more: dict[str, Any] = {} if self.retrieval is None else self.retrieval.to_dict()
        return {
            "isoscope": __version__,
            "name": self.name,
            "n": self.n,
            "d": self.d,
            "n_sampled": self.n_sampled,
            "dtype": self.dtype,
            "seed": self.seed,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "findings": [finding.to_dict() for finding in self.findings],
            **more,
            **({"gates": [gate.to_dict() for gate in self.gates]} if self.gates else {}),
        }

    def rows(self) -> dict[str, list[Any]]:
        """Return one row for each row of the input that a finding is about: what to look at, or to remove.

        The columns are finding, row, group (rows of one group are copies, or near copies, of each other) and
        text, where the texts are known.
        """
        found: dict[str, list[Any]] = {"finding": [], "row": [], "group": []}
        for finding in self.findings:
            groups = finding.listed.get("groups")
            parts = (
                [(row, place) for place, group in enumerate(groups) for row in group]
                if groups is not None
                else [(row, None) for row in finding.listed.get("rows", ())]
            )
            for row, group in parts:
                for name, value in zip(found, (finding.name, row, group), strict=True):
                    found[name].append(value)
        texts = self.texts_of(found["row"])
        return found | {"text": list(texts)} if texts else found
