"""What a run has come to: verdicts by family, as a table for the page on security."""

from __future__ import annotations

import json
import platform
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from tests.fuzz.judges import FAULTS, PLAUSIBLE, REFUSED, RIGHT, UNREAD
from tests.fuzz.suite import Result

_ANSWERS = (RIGHT, PLAUSIBLE, REFUSED, UNREAD)
_START, _END = "<!-- table -->", "<!-- end of table -->"


@dataclass
class Tally:
    """Verdicts counted by family, and the results that are faults."""

    seed: int
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    faults: list[Result] = field(default_factory=list)
    n_cases: int = 0
    slowest_seconds: float = 0.0
    largest_mb: float = 0.0

    def add(self, result: Result) -> None:
        """Count a result, and show it where it is a fault."""
        self.n_cases += 1
        self.slowest_seconds = max(self.slowest_seconds, result.cpu_seconds)
        self.largest_mb = max(self.largest_mb, result.peak_mb)
        self.counts.setdefault(result.case.family, Counter())[result.verdict.kind] += 1
        if result.verdict.is_fault:
            self.faults.append(result)
            called, verdict = " ".join(result.case.argv), result.verdict
            print(
                f"{result.number}: {verdict.kind}: {called!a}: {result.case.what!a}: {verdict.detail!a}",
                flush=True,
            )
        if self.n_cases % 500 == 0:
            print(f"{self.n_cases:,} cases, {len(self.faults)} faults", file=sys.stderr, flush=True)

    def table(self) -> str:
        """Return the counts as a table in Markdown; a kind of fault has a column where there is one."""
        total: Counter[str] = sum(self.counts.values(), Counter())
        shown = [*_ANSWERS, *(fault for fault in FAULTS if total[fault])]
        rows = [f"| input | cases | {' | '.join(shown)} | faults |", "|---|" + "---:|" * (len(shown) + 2)]
        for name, counted in [*sorted(self.counts.items()), ("all", total)]:
            n_faults = sum(counted[fault] for fault in FAULTS)
            cells = [sum(counted.values()), *(counted[kind] for kind in shown), n_faults]
            rows.append(f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} |")
        return "\n".join(rows)

    def summary(self) -> str:
        """Return what was run, and the most that a case took."""
        libraries = ", ".join(
            f"{name} {version(name)}" for name in ("torch", "numpy", "pyarrow", "safetensors")
        )
        return (
            f"{self.n_cases:,} cases of seed {self.seed}: {len(self.faults)} faults. The slowest took "
            f"{self.slowest_seconds:.1f} s of CPU time, the largest {self.largest_mb:,.0f} MB. "
            f"Python {platform.python_version()}, {libraries}."
        )

    def write_json(self, path: Path) -> None:
        """Write everything to a file."""
        content = {**vars(self), "faults": [asdict(fault) for fault in self.faults]}
        path.write_text(json.dumps(content, indent=1))

    def write_page(self, page: Path) -> None:
        """Put summary and table in their place on a page."""
        before, _, rest = page.read_text().partition(_START)
        after = rest.partition(_END)[2]
        page.write_text(f"{before}{_START}\n\n{self.summary()}\n\n{self.table()}\n\n{_END}{after}")
