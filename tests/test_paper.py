"""The paper says what the commands computed and recorded."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

PAPER = Path(__file__).parents[1] / "docs/paper"


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PAPER))
    return importlib.import_module("write")


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PAPER))
    return importlib.import_module("values")


def test_the_paper_is_what_its_command_writes(write: ModuleType) -> None:
    assert (PAPER / "paper.md").read_text(encoding="utf-8") == write.paper(), "run docs/paper/write.py"


def test_the_latex_is_of_this_paper(write: ModuleType) -> None:
    tex = (PAPER / "paper.tex").read_text(encoding="utf-8")
    assert tex.startswith(write.signature(write.paper())), "run docs/paper/write.py"


def test_no_figure_is_typed_by_hand() -> None:
    text = (PAPER / "text.md").read_text(encoding="utf-8")
    by_hand = re.sub(r"<<.*?>>|<%.*?%>|\]\([^)]*\)|^## .*$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"\d+[.,]\d+ ?%|\d+\.\d+", by_hand) == []


def test_figures_of_the_paper_are_on_its_pages() -> None:
    text = (PAPER / "paper.md").read_text(encoding="utf-8")
    for path in re.findall(r"\]\(([^)#:]+)", text):
        assert (PAPER / path).exists(), path


def test_computed_values_are_what_the_code_computes(values: ModuleType) -> None:
    kept = json.loads((PAPER / "computed.json").read_text(encoding="utf-8"))
    again = values.closed_form(n_spaces=30)
    assert max(again["largest_difference"], kept["closed_form"]["largest_difference"]) < 1e-13
    seen = values.frontier(n_spaces=300)
    assert seen["above"] == kept["frontier"]["above"] == 0
    assert max(seen["largest_gap"], kept["frontier"]["largest_gap"]) < 1e-12


def test_a_space_above_the_frontier_would_be_counted(
    values: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "ceiling", lambda K, d, between: 0.2)
    assert values.frontier(n_spaces=50)["above"] > 0


def test_the_published_steps_score_known_spaces(values: ModuleType) -> None:
    assert values.published_steps(np.vstack([np.eye(3), -np.eye(3)])) == pytest.approx(1)
    assert values.published_steps(np.outer([1.0, 2.0, 4.0], [1.0, 1.0, 0.0])) == pytest.approx(0, abs=1e-12)
