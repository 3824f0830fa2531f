"""The studies stand on isoscope's public names alone.

Public is

    from isoscope import X          X in isoscope.__all__; iso.X the same
    iso.PART.X                      PART in isoscope._MODULES, and X in its __all__
    from isoscope.PART import X     PART one level down, without underscore, and X in its __all__; in a module
                                    without __all__ (isoscope.figures, isoscope.terminal), X a name without
                                    underscore that the module itself defines

and nothing else: no module two levels down, no `import isoscope.PART`, no package without __all__.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import isoscope
import isoscope_papers

ROOT = Path(isoscope_papers.__file__).parent


def taken(source: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of everything that a module imports from isoscope, or takes from it by a dot."""
    tree = ast.parse(source)
    aliases = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "isoscope":
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "isoscope":
                    aliases.add(alias.asname or alias.name)
                elif alias.name.startswith("isoscope."):
                    yield alias.name, ""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    modules = set()  # `iso.metrics`, where a name is taken from it: `iso.metrics.dunn_index`
    for node in attributes:
        inner = node.value
        named = isinstance(inner, ast.Attribute) and _is_alias(inner.value, aliases)
        if named and inner.attr in isoscope._MODULES:
            modules.add(inner)
            yield f"isoscope.{inner.attr}", node.attr
    for node in attributes:
        if _is_alias(node.value, aliases) and node not in modules:
            yield "isoscope", node.attr


def _is_alias(node: ast.expr, aliases: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in aliases


def is_public(module: str, name: str) -> bool:
    parts = module.split(".")
    if len(parts) > 2 or not name or any(part.startswith("_") for part in parts):
        return False
    imported = import_module(module)
    if hasattr(imported, "__all__"):
        return name in imported.__all__
    return not hasattr(imported, "__path__") and not name.startswith("_") and name in defined(imported)


def defined(module: ModuleType) -> set[str]:
    """Return the names that a module defines itself, at its top."""
    names = set()
    for node in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def private(path: Path) -> set[str]:
    found = taken(path.read_text(encoding="utf-8"))
    return {f"{module}:{name}" for module, name in found if not is_public(module, name)}


STUDIES = sorted({path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")})


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_imports_public_names_only(study: str) -> None:
    paths = [ROOT / f"{study}.py"] if (ROOT / f"{study}.py").exists() else (ROOT / study).rglob("*.py")
    assert not set().union(*map(private, paths)), "not public: take it from isoscope, or export it there"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from isoscope import isoscore", True),
        ("from isoscope import as_matrix", False),
        ("from isoscope.errors import InputError", True),
        ("from isoscope.errors import check_seed", False),
        ("from isoscope.figures import INK", True),
        ("from isoscope.figures import Path", False),
        ("from isoscope.metrics import ALL", False),
        ("from isoscope.metrics.isotropy import isoscore", False),
        ("from isoscope._starting import signal", False),
        ("import isoscope.metrics", False),
        ("import isoscope as iso\niso.isoscore", True),
        ("import isoscope as iso\niso.metrics", False),
        ("import isoscope as iso\niso.metrics.dunn_index", True),
        ("import isoscope as iso\niso.metrics.isotropy", False),
        ("import isoscope as iso\niso.engine.measure", False),
        ("def f():\n    from isoscope.io.files import kind", False),
    ],
)
def test_what_is_public(source: str, expected: bool) -> None:
    assert all(is_public(module, name) for module, name in taken(source)) is expected
