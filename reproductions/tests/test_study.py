"""What all studies share: the page of the documentation is what the kept runs give."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoscope_papers.figures import Drawing
from isoscope_papers.study import STUDIES, study

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_is_what_the_kept_runs_give(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blank(one: Drawing, folder: Path) -> None:
        assert (DOCS / "reproduction" / f"{one.stem}.png").exists()
        (folder / f"{one.stem}.png").touch()

    monkeypatch.setattr(Drawing, "save", blank)  # each study's own tests draw
    folder, one = tmp_path / "reproduction", study(name)
    page = tmp_path / "should-i-whiten.md" if name == "corrections" else None
    one.write(one.read(DOCS / "reproduction" / "runs"), folder, page=page)
    for path in (*tmp_path.rglob("*.md"), *tmp_path.rglob("*.csv")):
        wanted = DOCS / path.relative_to(tmp_path)
        assert path.read_text() == wanted.read_text(), f"isoscope reproduce {name} --report-only"
