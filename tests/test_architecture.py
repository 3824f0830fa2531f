"""The house keeps its order: who may import whom, what importing costs, what is public."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import isoscope

ROOT = Path(isoscope.__file__).parent
# a part may import only the parts to its left, and itself
ORDER = (
    ("_starting", "_version", "errors", "printable"),
    ("table_columns",),
    ("frames",),
    ("arrays", "terminal"),
    ("console", "labels"),
    ("space", "tables"),
    ("engine.source",),
    ("kernels", "results"),
    ("statistics",),
    ("metrics",),
    ("engine.readings",),
    ("clustering", "io", "losses", "measurement", "plugins", "progress"),
    ("engine",),
    ("comparison", "corrections", "figures"),
    ("advice", "models"),
    ("encoders", "layers", "tracking"),
    ("training",),
    ("report",),
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
    code = f"{statement}; import sys; print(' '.join(sys.modules))"
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
    assert not loaded_by("import isoscope") & (HEAVY | {"rich", "typer"})


def test_the_lightness_test_can_fail() -> None:
    assert "sklearn" in loaded_by("import isoscope, sklearn")


def test_import_costs_little_more_than_torch() -> None:
    """One after the other in the same process: what slows one down slows the other too."""
    code = (
        "from time import process_time as now; a = now(); import torch; b = now(); import isoscope; "
        "print((now() - b) / (b - a))"
    )

    def share() -> float:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return float(done.stdout)

    assert min(share() for _ in range(4)) < 0.5


def test_public_names_are_sorted_complete_and_documented() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]  # those for later too
    imported = {alias.name for node in nodes for alias in node.names}
    assert isoscope.__all__ == sorted(isoscope.__all__)
    assert set(isoscope.__all__) == imported
    for name in isoscope.__all__:
        if name != "__version__":
            assert getattr(isoscope, name).__doc__, name


def test_every_metric_has_a_public_function() -> None:
    """A reading is reachable as a function too, under its own name or a stated one."""
    other = {
        "isoscore_debiased": "isoscore",
        "mean_norm": "norm_statistics",
        "norm_variation": "norm_statistics",
        "silhouette": "silhouette_score",
        "silhouette_macro": "silhouette_score",
        "silhouette_cosine": "silhouette_score",
        "silhouette_squared": "silhouette_score",
        "calinski_harabasz": "calinski_harabasz_score",
        "davies_bouldin": "davies_bouldin_score",
        "dimensions_for_half": "dimensions_for_share",
    }
    for name in isoscope.registered():
        assert other.get(name, name) in isoscope.__all__, name


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
        if name == "torch":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = [{program!r}]
import isoscope
"""


@pytest.mark.parametrize(("program", "is_command"), [("bin/isoscope", True), ("notebook.py", False)])
def test_an_interrupt_while_torch_is_imported(program: str, is_command: bool) -> None:
    code = _INTERRUPTED.format(program=program)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stderr == "isoscope: interrupted\n" and done.returncode == 130) == is_command
    assert ("Traceback" in done.stderr) != is_command
