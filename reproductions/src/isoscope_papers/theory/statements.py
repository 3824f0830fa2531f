"""The statements of Mickus, Grönroos and Attieh 2024, one by one: verdict, check, smallest counterexample."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from isoscope_papers.catalogue import catalogue
from isoscope_papers.rows import Table
from isoscope_papers.theory import checks
from isoscope_papers.verdict import Finding, Verdict


@dataclass(frozen=True)
class Statement:
    """One statement of the paper; statements.toml says what each field is."""

    key: str
    claim: str
    verdict: Verdict
    holds: str
    condition: str = ""
    points: tuple[tuple[float, ...], ...] = ()
    labels: str = ""
    counterexample: str = ""

    @property
    def refuted_by(self) -> str:
        """Return the counterexample with its number of points, labels and dimensions; empty where none is."""
        size = (
            f"n = {len(self.points)}, K = {len(set(self.labels))}, d = {len(self.points[0])}: "
            if self.points
            else ""
        )
        return size + self.counterexample

    def n_held(self, *, n_cases: int = 50, seed: int = 0) -> int:
        """Return in how many random cases what `holds` says was so."""
        check = getattr(checks, self.key)
        return sum(check(np.random.default_rng([seed, case])) for case in range(n_cases))


_TEXT = files(__package__).joinpath("statements.toml").read_text(encoding="utf-8")
STATEMENTS = {
    key: Statement(key, **entry | {"verdict": Verdict(entry["verdict"])})
    for key, entry in tomllib.loads(_TEXT).items()
}


def statement_findings(held: Mapping[str, int], n_cases: int) -> Iterator[Finding]:
    """Yield the verdict on each statement; inconclusive where its check failed on some case."""
    for key, n_held in held.items():
        one = STATEMENTS[key]
        ours = one.holds + (f" Counterexample, {one.refuted_by}." if one.points else "")
        verdict = one.verdict if n_held == n_cases else Verdict.INCONCLUSIVE
        evidence = f"mathematics, checked on {n_held} of {n_cases} random cases"
        yield Finding(f"classifiers/{one.claim}", "any space", verdict, ours, one.condition, evidence)


def statements_table() -> Table:
    """Return heads and cells for the page on theory."""
    cells = []
    for one in STATEMENTS.values():
        claim = catalogue()[f"classifiers/{one.claim}"]
        verdict = f"{one.verdict}: {one.condition}" if one.condition else str(one.verdict)
        cells.append((claim.where, claim.statement, verdict, one.holds, one.refuted_by or "—"))
    return ("where", "the paper says", "verdict", "what holds", "smallest counterexample"), tuple(cells)
