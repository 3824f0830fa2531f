from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from isoscope.errors import InputError
from isoscope_papers.catalogue import Claim, catalogue
from isoscope_papers.glance import BEGIN, END, HEADLINES, all_claims, headline, in_readme, short, write_index
from isoscope_papers.verdict import Finding, Verdict

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "reproduction"
CLAIM = Claim("classifiers", "a", "section 1", "says", "A claim.", published="1")


def _finding(verdict: Verdict, subject: str = "MiniLM") -> Finding:
    return Finding("classifiers/a", subject, verdict, f"0.5 on {subject}", study="classifiers")


@pytest.fixture(scope="module")
def claims() -> list[Claim]:
    return all_claims(KEPT / "runs")


@pytest.mark.slow
def test_every_claim_has_a_verdict_and_a_reason(claims: list[Claim]) -> None:
    assert [claim.name for claim in claims] == list(catalogue())
    undecided = [
        claim.name for claim in claims if claim.verdict is Verdict.NOT_TESTABLE and not claim.condition
    ]
    unstated = [claim.name for claim in claims if claim.verdict is Verdict.CONDITION and not claim.condition]
    assert (undecided, unstated) == ([], [])


@pytest.mark.slow
def test_the_page_and_the_readme_are_what_the_kept_runs_give(tmp_path: Path, claims: list[Claim]) -> None:
    (tmp_path / "runs").symlink_to(KEPT / "runs")
    page, data = write_index(tmp_path)
    command = "isoscope reproduce index -o docs/reproduction --readme README.md"
    assert page.read_text() == (KEPT / "index.md").read_text(), command
    assert json.loads(data.read_text()) == json.loads((KEPT / "index.json").read_text()), command
    readme = (ROOT / "README.md").read_text()
    assert in_readme(readme, claims) == readme, command
    assert len(HEADLINES) == 12
    assert all(
        f"| {catalogue()[name].statement.replace('*', chr(92) + '*')} |" in readme for name in HEADLINES
    )


def test_the_headline_counts_what_the_papers_say() -> None:
    first, second = (replace(CLAIM, key=name.partition("/")[2], kind="shows") for name in HEADLINES[:2])
    held = [replace(one, findings=(_finding(Verdict.HELD),)) for one in (first, second)]
    others = [replace(catalogue()[name], untested="No data.") for name in HEADLINES[2:]]
    fallen = replace(others[0], findings=(_finding(Verdict.NOT_HELD),))
    ours = replace(held[0], key="c", kind="ours")
    text = headline([*held, fallen, *others[1:], ours])
    assert "are 0.5 on MiniLM and 0.5 on MiniLM here, 1 and 1 in the paper" in text
    assert "Of all 12 things the four papers say, do or show, 2 held" in text
    assert "1 did not hold, 0 are inconclusive and 9 could not be tested" in text
    assert text.endswith(f"Among the claims that did not hold: “{fallen.statement.removesuffix('.')}”.")


def test_many_findings_are_counted() -> None:
    few = replace(CLAIM, findings=(_finding(Verdict.HELD), _finding(Verdict.NOT_TESTABLE, "GloVe")))
    assert short(few) == "0.5 on MiniLM"
    many = replace(CLAIM, findings=tuple(_finding(Verdict.HELD, name) for name in "abc"))
    assert short(many) == "3 tests: 3 held; a: 0.5 on a"


@pytest.mark.slow
def test_a_readme_without_a_place_is_refused() -> None:
    with pytest.raises(InputError, match="no place for the claims"):
        in_readme("# isoscope", [])
    assert "\nold\n" not in in_readme(f"{BEGIN}\nold\n{END}", all_claims(KEPT / "runs"))
