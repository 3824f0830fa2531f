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


@pytest.mark.slow
def test_the_law_holds_in_the_spaces_of_the_paper(values: ModuleType) -> None:
    kept = json.loads((PAPER / "computed.json").read_text(encoding="utf-8"))
    for found in (values.law.law(n_spaces=4, n_first=50, n_seeds=1), kept["law"]):
        assert found["largest_difference"] < 1e-10
        assert found["n_first_right"] == found["n_first"]
        for row in found["unbalanced"]:
            assert abs(row["trained"] - row["with_bias"]) < 0.02 * row["with_bias"]
            assert abs(row["trained_without_bias"] - row["without_bias"]) < 0.03 * row["without_bias"]
        assert found["pentagon"] < 0.8 < 1 - 1e-6 < found["pentagon_without_bias"]
        assert found["five_in_three"] < found["five_in_three_without_bias"] < 0.95
    assert kept["law"]["unbalanced"][2]["adam"][1] > kept["law"]["unbalanced"][2]["adam"][0]
    for found in (values.law.silhouettes(n_spaces=100), kept["silhouettes"]):
        assert found["below"] == 0
        assert found["largest_gap"] < 1e-12


def test_a_space_under_the_bound_of_its_silhouettes_would_be_counted(
    values: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values.law, "least_between", lambda least, sizes: 0.9)
    assert values.law.silhouettes(n_spaces=100)["below"] > 0


def test_runs_of_the_experiment_are_counted_by_what_was_said_before(
    values: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = {"space": "a", "fails": [], "start": 0.5, "sign": 1, "predicted": 0.7}
    conditions = [
        {**one, "seen": [0.69, 0.4], "silhouette": [0.8, 0.9]},  # right and near, and wrong and far
        {**one, "seen": [0.9], "silhouette": [0.2]},  # right, and not collapsed
        {**one, "fails": ["vectors can move"], "seen": [0.1], "silhouette": [0.9]},
        {**one, "fails": ["one label a vector"], "seen": [0.1], "silhouette": [0.9]},
    ]
    monkeypatch.setattr(values.studies, "ROOT", tmp_path)
    assert values.studies.collapse() is None
    file = tmp_path / "docs/reproduction/collapse.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"conditions": conditions, "claims": []}), encoding="utf-8")
    found = values.studies.collapse()
    assert (found["n_runs"], found["n_held"], found["n_collapsed"]) == (4, 3, 2)
    assert found["right"] == found["rising"] == pytest.approx(2 / 3)
    assert found["near"] == 0.5


def test_a_space_above_the_frontier_would_be_counted(
    values: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "ceiling", lambda K, d, between: 0.2)
    assert values.frontier(n_spaces=50)["above"] > 0


def test_the_published_steps_score_known_spaces(values: ModuleType) -> None:
    assert values.published_steps(np.vstack([np.eye(3), -np.eye(3)])) == pytest.approx(1)
    assert values.published_steps(np.outer([1.0, 2.0, 4.0], [1.0, 1.0, 0.0])) == pytest.approx(0, abs=1e-12)
