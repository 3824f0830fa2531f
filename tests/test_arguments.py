"""Arguments are named and default alike in all public functions and commands; former names warn."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import isoscope as iso
from isoscope.arguments import renamed
from isoscope.cli import app

# Every argument of a public function or class. A new name is added there only where no other says it: names
# follow scikit-learn, torch and transformers.
NAMES = set((Path(__file__).parent / "argument_names.txt").read_text().split())
OF_COMMANDS = {
    "atlas", "csv", "data", "figure", "fit", "gate", "json", "keep", "load", "max_train", "multi_label",
    "output", "pair_column", "pair_ids", "plan", "plugin", "projection", "queries_b", "query_prefix", "root",
    "rows", "save", "sweep", "task", "top", "zca",
}  # fmt: skip
DEFAULTS = {
    "deterministic": False,
    "device": None,
    "download": False,
    "labels": None,
    "memory": None,
    "partners": None,
    "progress": None,
    "resume": False,
    "run": None,
    "save_every": None,
    "sentences": None,
    "seed": 0,
    "skip_bad": False,
    "token_types": None,
    "truncate": False,
}
# flags that are shorter, or the field's own word
FLAGS = {
    "k": "--neighbors",
    "n_clusters": "--clusters",
    "n_components": "--components",
    "n_dimensions": "--dimensions",
    "n_lost": "--lost",
    "n_moved": "--moved",
    "n_permutations": "--permutations",
    "n_texts": "--show",
    "silhouette_tolerance": "--tolerance",
    "test": "--held-out",
}
OWN_FLAGS = {("audit", "k")}  # where --neighbors names a file of them
_REQUIRED = inspect.Parameter.empty


def public_functions() -> dict[str, Callable[..., Any]]:
    """Public functions, and the constructors of public classes that are more than a record."""
    places = [iso, *(getattr(iso, module) for module in iso._MODULES)]
    values = {f"{place.__name__}.{name}": getattr(place, name) for place in places for name in place.__all__}
    return {
        name: value
        for name, value in values.items()
        if callable(value) and not is_dataclass(value) and not _is_error(value)
    }


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def parameters() -> dict[str, dict[str, Any]]:
    """By name of an argument: the functions that take it, each with its default."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for function, value in public_functions().items():
        for name, parameter in inspect.signature(value).parameters.items():
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                found[name][function] = parameter.default
    return found


def options() -> dict[str, dict[str, Any]]:
    """By name of an option's value: the commands that take it, each with its default."""
    group: Any = typer.main.get_command(app)
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for name in group.list_commands(None):
        for option in group.get_command(None, name).params:
            if option.param_type_name == "option":
                found[option.name][name] = option.default
    return found


def test_arguments_have_known_names() -> None:
    used = {name: list(functions) for name, functions in parameters().items()}
    assert not {name: used[name] for name in used.keys() - NAMES}, (
        "take a name of argument_names.txt, or add it"
    )
    assert sorted(NAMES - used.keys()) == [], "names that no public function takes"
    taken = options()
    assert not {name: list(taken[name]) for name in taken.keys() - NAMES - OF_COMMANDS}


@pytest.mark.parametrize("name", DEFAULTS)
def test_an_argument_has_one_default(name: str) -> None:
    defaults = {function: value for function, value in parameters()[name].items() if value is not _REQUIRED}
    assert {function: value for function, value in defaults.items() if value != DEFAULTS[name]} == {}
    asked = options()[name]  # None: where the command cannot tell, the function's own default holds
    assert {command: value for command, value in asked.items() if value not in (DEFAULTS[name], None)} == {}


def test_options_are_spelled_as_arguments() -> None:
    group: Any = typer.main.get_command(app)
    for command in group.list_commands(None):
        for option in group.get_command(None, command).params:
            if option.param_type_name == "option" and option.name != "strength":
                own = {} if (command, option.name) in OWN_FLAGS else FLAGS
                spelled = own.get(option.name, f"--{option.name.replace('_', '-')}")
                assert spelled in (option.opts[0], f"--{option.name}"), (command, option.opts)


def test_a_former_name_warns_and_works() -> None:
    X, labels = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    with pytest.warns(
        DeprecationWarning, match="`memory_mb` of `silhouette_score` is deprecated: use `memory`"
    ):
        found = iso.silhouette_score(X, labels, memory_mb=200)  # type: ignore[call-arg]
    assert found == iso.silhouette_score(X, labels, memory=200 * 2**20)
    with pytest.warns(DeprecationWarning, match="use `n_dimensions`") as caught:
        assert iso.metrics.informativity(X, k=2) == iso.metrics.informativity(X, n_dimensions=2)  # type: ignore[call-arg]
    assert caught[0].filename == __file__


def former_names() -> list[Any]:
    """Every former name of an argument, with its function; methods of public classes included."""
    functions: dict[str, Any] = dict(public_functions())
    for name, value in public_functions().items():
        if inspect.isclass(value):
            functions |= {f"{name}.{member}": getattr(value, member) for member in vars(value)}
    return [
        pytest.param(function, old, new, id=f"{name}-{old}")
        for name, function in functions.items()
        for old, new in getattr(function, "former_names", {}).items()
    ]


@pytest.mark.parametrize(("function", "old", "new"), former_names())
def test_every_former_name_warns_where_it_is_called(function: Any, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"use `{new}`") as caught, pytest.raises(TypeError):
        function(**{old: None})  # the arguments that are missing are an error after the warning
    assert [warning.filename for warning in caught] == [__file__]


def test_former_names_are_found() -> None:
    names = {parameter.id for parameter in former_names()}
    assert {"isoscope.read-vector_column", "isoscope.models.measure_layers-memory_mb"} <= names
    assert len(names) >= 9


@pytest.mark.filterwarnings("ignore:The argument:DeprecationWarning")
def test_no_limit_by_a_former_name() -> None:
    X, labels = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    found = iso.silhouette_score(X, labels, memory_mb=None)  # type: ignore[call-arg]
    assert found == iso.silhouette_score(X, labels)


def test_one_of_two_names_is_given() -> None:
    @renamed(old="new")
    def function(*, new: int = 0) -> int:
        return new

    with pytest.raises(iso.InputError) as raised:
        function(old=1, new=2)  # type: ignore[call-arg]
    assert raised.value.argument == "old"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(new=2) == 2
