"""The house keeps its order: who may import whom, what importing costs, what is public."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import typer

import isoscope
from isoscope.cli import app

ROOT = Path(isoscope.__file__).parent
# a part may import only the parts to its left, and itself
ORDER = (
    ("_version", "printable", "unchecked"),
    ("errors",),
    ("arguments", "list_columns", "table_columns"),
    ("frames",),
    ("arrays", "terminal"),
    ("console", "labels"),
    ("space", "tables"),
    ("engine.source",),
    ("kernels", "results"),
    ("statistics",),
    ("metrics",),
    ("engine.readings",),
    ("citations", "clustering", "io", "known_models", "measurement", "plugins", "progress"),
    ("engine",),
    ("queries",),
    ("comparison", "corrections", "figures", "look"),
    ("audit",),
    ("look.faults",),
    ("look.first_look",),
    ("look.__init__",),
    ("advice", "drift", "migrate", "models", "sides"),
    ("compression", "losses", "matching", "tracking"),
    ("training",),
    ("report",),
    ("plots",),
    ("cli",),
)
LEVEL = {part: level for level, parts in enumerate(ORDER) for part in parts}


def part_of(path: Path) -> str:
    inside = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(inside) if ".".join(inside) in LEVEL else inside[0]


def imports(path: Path) -> set[str]:
    """The parts of isoscope a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "isoscope" else [f"isoscope.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        inside = [name.split(".")[1:] for name in names if name.startswith("isoscope.")]
        found |= {".".join(parts) if ".".join(parts) in LEVEL else parts[0] for parts in inside}
    return found


MODULES = sorted(
    p for p in ROOT.rglob("*.py") if p.relative_to(ROOT).parts[0] not in ("__init__.py", "__main__.py")
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_imports_upward(path: Path) -> None:
    part = part_of(path)
    assert part in LEVEL, f"{part} has no place in the order: give it one, here and in docs/architecture.md"
    for other in imports(path) - {part}:
        assert LEVEL[other] < LEVEL[part], f"{part} imports {other}, which stands above or beside it"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


HEAVY = {
    "transformers",
    "sentence_transformers",
    "lightning",
    "matplotlib",
    "sklearn",
    "dask",
    "distributed",
    "fsspec",
    "zarr",
    "pandas",
    "polars",
    "pyarrow",
}


def test_import_is_light() -> None:
    assert not loaded_by("import isoscope") & (HEAVY | {"numpy", "rich", "torch", "typer"})


_COMMAND = """import os, sys
from isoscope.cli import main
os.environ.update({environment!r})
sys.argv, sys.stdout, sys.stderr = ["isoscope", *{words!r}], open(os.devnull, "w"), open(os.devnull, "w")
try:
    main()
except SystemExit:
    pass
sys.stdout = sys.__stdout__
"""
TEXT = "src/isoscope/cli/metric_names.txt"  # a file of a kind that is read
_COMPLETED = {
    "_ISOSCOPE_COMPLETE": "complete_bash",
    "COMP_WORDS": "isoscope measure -m sil",
    "COMP_CWORD": "3",
}


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (["--help"], {}),
        (["--version"], {}),
        (["measure", "--help"], {}),
        (["measure", "--nonsense"], {}),
        (["nonsense"], {}),
        ([TEXT, "-m", "isoscore"], {}),
        (["--model", "nonsense", TEXT], {}),
        ([TEXT, "measure"], {}),
        (["measure", "a.npy", "--seed", "nonsense"], {}),
        (["measure", "absent.npy"], {}),
        (["measure", "tests", "-m", "nonsense"], {}),
        (["measure", "a.npy", "b.npy", "c.npy"], {}),
        (["compare", "absent.npy", "b.npy"], {}),
        (["compress", "absent.npy"], {}),
        (["threshold", "absent.npy"], {}),
        (["correct", TEXT, "--method", "center"], {}),
        (["correct", TEXT, "--method", "center", "-o", "src"], {}),
        (["report", TEXT, "-o", "a.pdf"], {}),
        (["encode", TEXT, "-o", "a.csv"], {}),
        (["export", TEXT, "--atlas", "a.csv"], {}),
        (["layers", "nonsense", TEXT, "-o", TEXT], {}),
        (["correct", "absent.npy", "--method", "center", "-o", "b.npy"], {}),
        (["correct", TEXT, "--method", "nonsense", "-o", "b.npy"], {}),
        (["correct", TEXT, "--method", "center", "--strength", "1", "-o", "b.npy"], {}),
        (["report", "absent.npy"], {}),
        (["advise", "absent.npy"], {}),
        (["frontier", TEXT], {}),
        (["advise", TEXT], {}),
        (["measure", TEXT, "--csv", "--json"], {}),
        (["measure", "pyproject.toml"], {}),
        (["cite", "absent.json"], {}),
        (["metrics", "nonsense"], {}),
        (["train", "absent.npy", "-l", "y"], {}),
        (["layers", "nonsense", "absent.txt"], {}),
        (["finetune", "nonsense", "--texts", "absent.csv", "-l", "y"], {}),
        (["contrast", "nonsense", "--pairs", "absent.csv"], {}),
        ([], _COMPLETED),
        ([], _COMPLETED | {"COMP_WORDS": "isoscope correct --method wh"}),
    ],
)
def test_commands_that_compute_nothing_are_light(words: list[str], environment: dict[str, str]) -> None:
    loaded = loaded_by(_COMMAND.format(words=words, environment=environment))
    assert "typer" in loaded
    assert not loaded & (HEAVY | {"numpy", "torch", "isoscope_papers"})


@pytest.mark.slow
def test_the_lightness_tests_can_fail() -> None:
    assert "torch" in loaded_by("import isoscope; isoscope.isoscore")
    assert "torch" in loaded_by(_COMMAND.format(words=["metrics"], environment={}))


@pytest.mark.slow
@pytest.mark.parametrize("first", ["", "import isoscope.engine.measure, isoscope.report; "])
def test_a_function_is_not_hidden_by_the_module_of_its_name(first: str) -> None:
    code = f"import isoscope; {first}assert callable(isoscope.measure) and callable(isoscope.report)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_few_sorted_there_and_documented() -> None:
    assert len(isoscope.__all__) <= 80
    assert isoscope.__all__ == sorted(set(isoscope.__all__))
    assert {*isoscope.__all__, *isoscope._MODULES} <= set(dir(isoscope))
    for module, names in isoscope._PUBLIC.items():
        for name in names:
            value = getattr(isoscope, name)
            assert value is getattr(importlib.import_module(f"isoscope.{module}"), name)
            assert name == "__version__" or value.__doc__, name
    assert set(dir(isoscope)) == {*isoscope.__all__, *isoscope._MODULES}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("isoscor", "Did you mean isoscope.isoscore?"),
        ("Isoscore", "Did you mean isoscope.isoscore?"),
        ("dun_index", "Did you mean isoscope.metrics.dunn_index?"),
        ("mean_norm", "Did you mean isoscope.metrics.mean_norm?"),
        ("metrcs", "Did you mean isoscope.metrics?"),
        ("tracker", "Did you mean isoscope.GeometryTracker?"),
        ("train", "Use isoscope.train_embeddings."),
        ("zzz", "has no attribute 'zzz'"),
    ],
)
def test_a_name_that_does_not_exist_has_a_suggestion(name: str, message: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(isoscope, name)
    assert str(raised.value).startswith(f"module 'isoscope' has no attribute {name!r}")
    assert str(raised.value).endswith(message)


@pytest.mark.slow
def test_every_command_is_a_name_or_has_a_suggestion() -> None:
    names = set(typer.main.get_command(app).list_commands(None))
    assert "measure" in names
    assert names - set(dir(isoscope)) == set(isoscope._COMMANDS)


@pytest.mark.parametrize("module", isoscope._MODULES)
def test_public_names_of_a_module_are_there(module: str) -> None:
    part = getattr(isoscope, module)
    assert sorted(set(part.__all__)) == sorted(part.__all__)
    for name in part.__all__:
        assert hasattr(part, name), name


@pytest.mark.slow
def test_modules_need_no_import_of_their_own() -> None:
    code = "import isoscope; [getattr(isoscope, module).__all__ for module in isoscope._MODULES]"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", isoscope._MOVED_TO)
def test_a_name_that_has_moved_warns_and_works(name: str) -> None:
    place = isoscope._MOVED_TO[name]
    with pytest.warns(DeprecationWarning, match=f"^isoscope.{name} is deprecated: use {re.escape(place)}.$"):
        value = getattr(isoscope, name)
    if place.count(".") == 1:
        assert value is importlib.import_module(place)
        return
    module = importlib.import_module(place.rpartition(".")[0])
    assert name in module.__all__
    assert value is getattr(module, name)
    assert not isinstance(value, types.ModuleType)


def test_nothing_is_ever_unpickled() -> None:
    for path in ROOT.rglob("*.py"):
        text = path.read_text()
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text
        assert text.count("torch.load(") == text.count("weights_only=True"), path


_INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent ignores
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["isoscope", "metrics"]
from isoscope.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "torch"])
def test_an_interrupt_while_modules_are_imported(module: str) -> None:
    code = _INTERRUPTED.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("isoscope: interrupted\n", 130)


def test_the_page_on_architecture_names_what_there_is() -> None:
    """Every module and folder the page names is found in the project, at its place or in some package."""
    project = ROOT.parents[1]
    page = (project / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", page))
    assert len(named) > 40
    every = {str(path.relative_to(project)) for path in project.glob("*/**/*.py")}
    every |= {f"{folder}/" for path in every for folder in map(str, Path(path).parents)}
    assert not {name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in every)}
