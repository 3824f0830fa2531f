"""The filter of the page at a glance, docs/claims.js, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "claims.js"
ROWS = (("Clusters form.", "✓ held"), ("Isotropy falls.", "✗ not held"), ("Norms fall.", "✓ held: on two"))
PAGE = (
    "<article><table><tbody><tr><td>✓ held</td></tr><tr><td>✗ not held</td></tr></tbody></table><h2>P</h2>"
    "<div class='claims'><table><thead><tr>" + "<th>head</th>" * 6 + "</tr></thead><tbody>"
    + "".join(f"<tr><td>{claim}</td><td/><td/><td/><td>{verdict}</td><td/></tr>" for claim, verdict in ROWS)
    + "</tbody></table></div></article>"
)  # fmt: skip


def _shown(page: Any) -> list[str]:
    rows = page.locator(".claims tbody tr:not([hidden]) td:first-child")
    return rows.all_text_contents()


@pytest.mark.slow
def test_claims_are_filtered_by_verdict_and_words(browser: Any) -> None:
    page = browser.new_page()
    page.add_init_script(path=SCRIPT)
    page.route("**/*", lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=PAGE))
    page.goto("http://claims.test/")
    assert _shown(page) == [claim for claim, _ in ROWS]
    assert page.locator(".claims-filter label").all_text_contents() == [" ✓ held", " ✗ not held"]
    page.locator(".claims-filter input[value='✓ held']").uncheck()
    assert _shown(page) == ["Isotropy falls."]
    page.locator(".claims-filter input[value='✓ held']").check()
    page.locator(".claims-filter input[type=search]").fill("FALL norms")
    assert _shown(page) == ["Norms fall."]
    assert page.locator(".claims-filter output").text_content() == "1 of 3 claims"
    page.close()
