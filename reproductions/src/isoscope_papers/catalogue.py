"""The catalogue of the claims of the papers, and its join with our findings.

`claims/PAPER.toml` lists the claims of one paper in the order of the paper. A claim of the kind "ours" is an
additional one of our own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from isoscope_papers.rows import Table
from isoscope_papers.verdict import MANY, Finding, Verdict, together

PAPERS = {
    "classifiers": "Mickus, Grönroos and Attieh 2024, Isotropy, Clusters, and Classifiers",
    "istar": "Rudman and Eickhoff 2024, Stable Anisotropic Regularization",
    "manifolds": "Cai, Huang, Bian and Church 2021, Isotropy in the Contextual Embedding Space",
    "contrastive": "Xiao, Long and Al Moubayed 2023, On Isotropy, Contextualization and Learning Dynamics",
    "layers": "Every layer of four models: our own study",
    "collapse": "The collapse law: our own study",
    "predicts": "What geometry predicts: our own study",
}
OURS = "ours"


@dataclass(frozen=True)
class Claim:
    """One thing that a paper says, does or shows, with our findings.

    Attributes:
        paper: a key of `PAPERS`.
        key: the name of the claim, unique in its paper.
        where: the place in the paper.
        kind: "says", "does" (a step of the protocol), "shows" (a figure or table), or "ours".
        statement: the claim in one sentence.
        quantity: the quantity that decides the claim.
        published: the published number, as printed.
        untested: why the claim cannot be tested here, or empty.
        follows: for a step of the protocol, the evidence that our runs follow it.
        departs: for a step of the protocol, how our runs depart from it.
        contrary: a fact that contradicts the claim without any run.
        findings: our findings, one per subject.
    """

    paper: str
    key: str
    where: str
    kind: str
    statement: str
    quantity: str = ""
    published: str = ""
    untested: str = ""
    follows: str = ""
    departs: str = ""
    contrary: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the claim in findings."""
        return f"{self.paper}/{self.key}"

    @property
    def verdict(self) -> Verdict:
        """Return the verdict over all subjects; a step of the protocol is held if our runs follow it."""
        if self.findings or self.untested:
            return together(self.findings)[0]
        decided = {"contrary": Verdict.NOT_HELD, "departs": Verdict.CONDITION, "follows": Verdict.HELD}
        return next((one for name, one in decided.items() if getattr(self, name)), Verdict.NOT_TESTABLE)

    @property
    def condition(self) -> str:
        """Return the condition under which the claim held, or why it could not be tested."""
        return together(self.findings)[1] if self.findings else self.untested or self.departs

    @property
    def ours(self) -> str:
        """Return our values in words, by subject where there are several."""
        if not self.findings:
            return self.follows or self.contrary
        if len(self.findings) == 1:
            return self.findings[0].ours
        return "; ".join(f"{one.subject}: {one.ours}" for one in self.findings if one.ours)

    @property
    def evidence(self) -> str:
        """Return the models, data and seeds of the tests."""
        return "; ".join(dict.fromkeys(one.evidence for one in self.findings if one.evidence))

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-ready."""
        return {
            "claim": self.name, "where": self.where, "kind": self.kind, "statement": self.statement,
            "quantity": self.quantity, "published": self.published, "verdict": str(self.verdict),
            "condition": self.condition,
            "findings": [
                {"subject": one.subject, "verdict": str(one.verdict), "ours": one.ours,
                 "condition": one.condition, "evidence": one.evidence, "study": one.study}
                for one in self.findings
            ],
        }  # fmt: skip


@cache
def catalogue() -> dict[str, Claim]:
    """Return every claim of every paper by name, without findings, in the order of the papers."""
    claims = {}
    for paper in PAPERS:
        text = files(__package__).joinpath("claims", f"{paper}.toml").read_text(encoding="utf-8")
        for entry in tomllib.loads(text)["claims"]:
            claim = Claim(paper, **entry)
            claims[claim.name] = claim
    return claims


def with_findings(findings: Iterable[Finding]) -> list[Claim]:
    """Return the claims that were tested, in the order of the papers, with their findings."""
    by_claim: dict[str, list[Finding]] = {}
    for one in findings:
        by_claim.setdefault(one.claim, []).append(one)
    unknown = sorted(set(by_claim) - set(catalogue()))
    if unknown:
        raise KeyError(f"no claim {unknown[0]!r} in the catalogue")
    return [
        replace(claim, findings=tuple(by_claim[name]))
        for name, claim in catalogue().items()
        if name in by_claim
    ]


def _lines(findings: Sequence[Finding]) -> Iterator[tuple[str, str, str]]:
    """Yield subject, verdict and values of each finding; many findings are grouped by verdict."""
    if len(findings) <= MANY:
        yield from ((one.subject, one.shown, one.ours) for one in findings)
        return
    order = list(Verdict)
    for shown in dict.fromkeys(
        one.shown for one in sorted(findings, key=lambda one: order.index(one.verdict))
    ):
        own = [one for one in findings if one.shown == shown]
        names = "; ".join(one.subject for one in own) if len(own) <= len(findings) / 2 else ""
        subjects = f"{len(own)} of {len(findings)}" + (f": {names}" if names else "")
        yield subjects, shown, f"{own[0].subject}: {own[0].ours}; all in the JSON file"


def claims_table(claims: Iterable[Claim]) -> Table:
    """Return heads and cells for the page of a study: each claim, then each of its subjects."""
    lines = []
    for claim in claims:
        where = "ours" if claim.kind == OURS else claim.where
        for place, cells in enumerate(_lines(claim.findings)):
            head = (claim.statement, where, claim.published) if place == 0 else ("", "", "")
            lines.append((*head, *cells))
    return ("claim", "where", "paper", "tested on", "verdict", "our figures"), tuple(lines)
