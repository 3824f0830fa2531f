"""Every notebook runs, cell by cell, and is one that Jupyter opens."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import pytest

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"


def load_execute() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_execute", NOTEBOOKS / "execute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


execute = load_execute()


def code_cells(script: Path) -> list[str]:
    return [cell.source for cell in execute.as_notebook(script).cells if cell.cell_type == "code"]


def run_cell(source: str, namespace: dict[str, Any]) -> Any:
    """Run a cell as Jupyter does: what its last line evaluates to is shown."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "<cell>", "exec"), namespace)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)


@pytest.fixture(autouse=True)
def _drawn_nowhere() -> Any:
    before = plt.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.slow
@pytest.mark.parametrize("script", execute.scripts(), ids=lambda path: path.stem)
def test_every_cell_runs(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOSCOPE_DATA", "")
    monkeypatch.setenv("ISOSCOPE_CACHE", str(tmp_path))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(NOTEBOOKS):
        shown = [run_cell(source, namespace) for source in code_cells(script)]
    assert plt.get_fignums(), "no figure was drawn"
    for value in shown:
        if hasattr(value, "_repr_html_"):
            assert "<table" in value._repr_html_()


@pytest.mark.parametrize("script", execute.scripts(), ids=lambda path: path.stem)
def test_scripts_are_notebooks(script: Path) -> None:
    import nbformat

    notebook = execute.as_notebook(script)
    nbformat.validate(notebook)
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds[0] == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    assert kinds.count("code") >= 3
    assert notebook.metadata["kernelspec"]["name"] == "python3"


def test_a_failing_cell_is_noticed() -> None:
    with pytest.raises(ZeroDivisionError):
        run_cell("a = 1\na / 0", {})
    assert run_cell("a = 1\na + 1", {}) == 2


def test_the_page_lists_them_all() -> None:
    page = (NOTEBOOKS.parent / "docs/notebooks.md").read_text()
    assert all(f"| `{script.name}` |" in page for script in execute.scripts())
