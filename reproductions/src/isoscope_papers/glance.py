"""The page of all claims of all papers, `index.md`, and the twelve claims of the README."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from isoscope.errors import InputError
from isoscope.io import write_json
from isoscope_papers.catalogue import OURS, PAPERS, Claim, catalogue
from isoscope_papers.classifiers.setups import SETUPS
from isoscope_papers.page import markdown_table, plain, write_text
from isoscope_papers.study import STUDIES, Study, study, tallied
from isoscope_papers.verdict import Finding, Verdict

COMMAND = "isoscope reproduce index"
_OURS, _EVIDENCE, _README = 200, 70, 110  # letters at most in a row of the page, and of the README
FEW = 2  # findings that are shown one by one; more are counted
_SYMBOLS = (
    "K: labels; d: dimensions; r, ρ: Pearson's and Spearman's correlation; λ: weight of the penalty on "
    "isotropy; τ: temperature of the contrastive loss."
)
BEGIN = "<!-- claims: written by `isoscope reproduce index --readme`; do not edit -->"
END = "<!-- end of claims -->"
HEADS = ("claim", "where", "paper", "ours", "verdict", "evidence")
MEANINGS = {
    Verdict.HELD: "as claimed, everywhere it was tested; a published number within its tolerance",
    Verdict.CONDITION: "as claimed under the condition stated, and not otherwise",
    Verdict.NOT_HELD: "the contrary was found, or a published number was not reached",
    Verdict.INCONCLUSIVE: "the interval holds both",
    Verdict.NOT_TESTABLE: "no data or models at hand that the claim is about; the reason is stated",
}
HEADLINES = (
    "classifiers/polarity-r",
    "classifiers/snli-r",
    "classifiers/glue-bounds",
    "classifiers/incompatible-objectives",
    "classifiers/isotropy-helps-sentences",
    "istar/star-stable",
    "istar/performance-falls",
    "istar/negative-beats-none",
    "manifolds/lid-lower",
    "contrastive/anisotropy-output",
    "contrastive/intra-rises",
    "contrastive/temperature-anisotropy",
)


def all_claims(runs: Path) -> list[Claim]:
    """Return every claim of the catalogue with the findings of the saved runs of all studies."""
    found: dict[str, Claim] = {}
    for name in STUDIES:
        one: Study = study(name)  # type: ignore[type-arg]
        for claim in one.claims(one.read(runs)):
            earlier = found.get(claim.name, claim)
            merged = claim.findings if earlier is claim else (*earlier.findings, *claim.findings)
            found[claim.name] = replace(claim, findings=merged)
    return [found.get(name, claim) for name, claim in catalogue().items()]


def of_papers(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims of the papers, without our own."""
    return [claim for claim in claims if claim.kind != OURS]


def headline(claims: Sequence[Claim]) -> str:
    """Return three sentences: reproduced results, counts of all verdicts, claims that did not hold."""
    theirs = of_papers(claims)
    by_name = {claim.name: claim for claim in theirs}
    n = {verdict: sum(claim.verdict is verdict for claim in theirs) for verdict in Verdict}
    results = [one for one in theirs if one.kind == "shows" and re.search(r"\d", one.published)]
    compared = [one for one in results if one.verdict is not Verdict.NOT_TESTABLE]
    same = sum(one.verdict is Verdict.HELD for one in compared)
    ours = " and ".join(_tested(by_name[name])[0].ours for name in HEADLINES[:2])
    published = " and ".join(by_name[name].published for name in HEADLINES[:2])
    fallen = [by_name[name].statement for name in HEADLINES if by_name[name].verdict is Verdict.NOT_HELD]
    quoted = ", ".join(f"“{plain(one).removesuffix('.')}”" for one in fallen)
    return (
        f"The first paper's headline correlations are {ours} here, {published} in the paper. "
        f"{len(compared)} published results could be compared; {same} agree in every test. Of all "
        f"{len(theirs)} things the four papers say, do or show, {n[Verdict.HELD]} held, "
        f"{n[Verdict.CONDITION]} held under a condition, {n[Verdict.NOT_HELD]} did not hold, "
        f"{n[Verdict.INCONCLUSIVE]} are inconclusive and {n[Verdict.NOT_TESTABLE]} could not be tested here, "
        "each with its reason. " + (f"Among the claims that did not hold: {quoted}." if fallen else "")
    ).strip()


def _tested(claim: Claim) -> Sequence[Finding]:
    """Return the tested findings; all findings where none could be tested."""
    return [one for one in claim.findings if one.verdict is not Verdict.NOT_TESTABLE] or claim.findings


def short(claim: Claim) -> str:
    """Return our values for a row: each of them where there are few, else counts by verdict."""
    findings = _tested(claim)
    if len(findings) <= FEW:
        return replace(claim, findings=tuple(findings)).ours
    counts = {verdict: sum(one.verdict is verdict for one in findings) for verdict in Verdict}
    said = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
    return f"{len(findings)} tests: {said}; {findings[0].subject}: {findings[0].ours}"


def brief(text: str, most: int) -> str:
    """Cut a text after the last sentence, or part of a sentence, that fits.

    >>> brief("The first. The second is longer.", 20)
    'The first. …'
    """
    if len(text) <= most:
        return text
    ends = [match.end() for match in re.finditer(r"[.;:,](?= )", text[:most])]
    return f"{text[: ends[-1]] if ends else text[:most].rpartition(' ')[0]} …"


def _evidence(claim: Claim) -> str:
    """Return the evidence of the first test, and the number of other models or data sets."""
    kinds = list(dict.fromkeys(one.evidence for one in _tested(claim) if one.evidence))
    others = f"; {len(kinds) - 1} more" if len(kinds) > 1 else ""
    return brief(kinds[0], _EVIDENCE) + others if kinds else ""


def as_markdown(claims: Sequence[Claim]) -> str:
    """Return the page: the headline, how to read it, a table per paper, and what was not run."""
    lines = ["---", "hide: [toc]", "---", f"<!-- written by `{COMMAND}`; do not edit -->"]
    lines += ["# The papers at a glance", ""]
    lines += [headline(claims), "", "| verdict | means |", "|---|---|"]
    lines += [f"| {verdict.mark} {verdict} | {meaning} |" for verdict, meaning in MEANINGS.items()]
    for paper, title in PAPERS.items():
        lines += _part(title, [claim for claim in of_papers(claims) if claim.paper == paper])
    lines += _part("Ours, tested beside them", [claim for claim in claims if claim.kind == OURS])
    lines += ["", "## What was not run", "", not_run(claims), ""]
    untested = [claim for claim in of_papers(claims) if claim.verdict is Verdict.NOT_TESTABLE]
    lines += [f"- {plain(claim.statement)} *{plain(claim.condition)}*" for claim in untested]
    return "\n".join(lines) + "\n"


def _part(title: str, claims: Sequence[Claim]) -> list[str]:
    """Return a heading, the counts and the table of some claims, in a div that the site can filter."""
    if not claims:
        return []
    table = markdown_table(HEADS, [_row(claim) for claim in claims])
    counted = tallied(claims)
    return ["", f"## {title}", "", counted, "", '<div class="claims" markdown>', "", *table, "", "</div>"]


def _row(claim: Claim) -> tuple[str, ...]:
    condition = f": {claim.condition}" if claim.condition else ""
    links = [f"[{name}]({_page(name)})" for name in dict.fromkeys(one.study for one in claim.findings)]
    where = "; ".join(part for part in (claim.where, *links) if part)
    verdict = f"{claim.verdict.mark} {claim.verdict}{condition}"
    published = re.sub(r"(?<=\d) (?=\d{3})", "\N{NO-BREAK SPACE}", claim.published)
    return claim.statement, where, published, brief(short(claim), _OURS), verdict, _evidence(claim)


def _page(name: str) -> str:
    return "../should-i-whiten.md" if name == "corrections" else f"{name}.md"


def not_run(claims: Sequence[Claim]) -> str:
    """Return which cells of the GLUE tables were run."""
    cells = {
        one.subject
        for claim in claims
        if claim.paper == "classifiers" and claim.key.endswith("-correlation")
        for one in claim.findings
        if one.verdict is not Verdict.NOT_TESTABLE
    }
    n_cells = sum(len(setup.published) for setup in SETUPS.values() if setup.part == "glue")
    return (
        f"Of the {n_cells} cells of the GLUE tables (tasks by encoders) {len(cells)} were run on the paper's "
        f"own data: {'; '.join(sorted(cells))}. The encoder distilroberta and the training sets of the "
        "other tasks are not at hand; rows marked ≠ on the paper's page have other sets in their place. "
        "These claims could not be tested:"
    )


def readme_table(claims: Sequence[Claim]) -> list[str]:
    """Return the lines of the README's short form."""
    by_name = {claim.name: claim for claim in claims}
    chosen = [by_name[name] for name in HEADLINES]
    rows = [
        (one.statement, one.published or "—", brief(short(one), _README), one.verdict.mark) for one in chosen
    ]
    marks = ", ".join(f"{one.mark} {one}" for one in dict.fromkeys(one.verdict for one in chosen))
    return [*markdown_table(("claim", "paper", "ours", ""), rows), "", f"{marks}. {_SYMBOLS}"]


def write_index(folder: Path, *, readme: Path | None = None) -> list[Path]:
    """Write index.md and index.json to the folder of the runs, and the table of a README."""
    claims = all_claims(folder / "runs")
    text = None if readme is None else in_readme(readme.read_text(encoding="utf-8"), claims)
    written = [
        write_text(folder / "index.md", as_markdown(claims)),
        write_json(folder / "index.json", {"claims": [claim.to_dict() for claim in claims]}, indent=1),
    ]
    if readme is not None and text is not None:
        written.append(write_text(readme, text))
    return written


def in_readme(text: str, claims: Sequence[Claim]) -> str:
    """Return a README with a new table of claims between its two marks."""
    if BEGIN not in text or END not in text:
        raise InputError("The README has no place for the claims", wanted=f"the lines {BEGIN} and {END}")
    table = "\n".join([BEGIN, headline(claims), "", *readme_table(claims), END])
    return re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: table, text, flags=re.DOTALL)
