"""What all studies share: pages from the kept runs, the order of runs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from isoscope.errors import FileError
from isoscope_papers.figures import Drawing
from isoscope_papers.runs import keep
from isoscope_papers.study import STUDIES, study
from isoscope_papers.theory.run import Run

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


@pytest.mark.parametrize("name", STUDIES)
def test_a_folder_without_runs_or_with_broken_ones_is_one_line(
    name: str, tmp_path: Path, fail: Callable[..., str]
) -> None:
    command = ("reproduce", name)
    assert "--report-only needs the folder of the runs. Pass --output" in fail(*command, "--report-only")
    assert "--setup must be all, " in fail(*command, "--setup", "nope")
    assert f"has no runs of {name}" in fail(*command, "--report-only", "-o", str(tmp_path))
    files = {"classifiers": "x/setup.json", "predicts": "predicts.parquet"}
    broken = tmp_path / "runs" / files.get(name, f"{name}-x.json")
    broken.parent.mkdir(parents=True)
    broken.write_text("{}")
    with pytest.raises(FileError, match=f"{broken.name} does not hold a run"):
        study(name).read(tmp_path / "runs")


def test_runs_are_in_the_order_of_the_setups_and_then_by_name(tmp_path: Path) -> None:
    for name in ("zebra", "yak", "triplet", "statements"):
        keep(Run(name), tmp_path / f"theory-{name}.json")
    assert [one.setup for one in study("theory").read(tmp_path)] == ["statements", "triplet", "yak", "zebra"]
