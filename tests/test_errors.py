import ast
import pickle
import re
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import typer
from tests.raising import raises

import isoscope as iso
from isoscope.cli.commands import Command
from isoscope.errors import (
    FileError,
    InputError,
    IsoscopeError,
    Setting,
    ShapeError,
    UndefinedError,
    check_seed,
    not_installed,
)

SOURCE = Path(iso.__file__).parent
_INSTALLED = re.compile(r"pip install|not installed")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            InputError(argument="n", got=1, wanted="at least 2", hint="add rows"),
            "`n` must be at least 2, got 1. Add rows.",
        ),
        (InputError(argument="n", wanted="at least 2"), "`n` must be at least 2."),
        (
            InputError(argument="X", got=np.zeros(2), wanted="a path"),
            "`X` must be a path, got array([0., 0.]).",
        ),
        (FileError("has no numbers", argument="columns"), "`columns` has no numbers."),
        (
            ShapeError("has 2 entries for 3 rows", argument="labels[1]", wanted="one for each"),
            "`labels[1]` has 2 entries for 3 rows; expected one for each.",
        ),
        (FileError("is empty", argument="a.npy", wanted="a vector"), "a.npy is empty; expected a vector."),
        (
            InputError("a.csv does not exist", hint="did you mean b.csv?"),
            "a.csv does not exist. Did you mean b.csv?",
        ),
        (InputError("A plain message."), "A plain message."),
        (UndefinedError("All points are equal", hint="add points"), "All points are equal. Add points."),
    ],
)
def test_a_message_is_made_from_its_fields(error: IsoscopeError, text: str) -> None:
    assert str(error) == text


def test_fields_are_kept() -> None:
    with raises(InputError, argument="n", got=1, wanted="^at least", hint="^add"):
        raise InputError(argument="n", got=1, wanted="at least 2", hint="add rows")
    for other in ({"argument": "m"}, {"got": 2}, {"wanted": "^least"}, {"hint": "rows of"}):
        with pytest.raises(AssertionError), raises(InputError, **other):
            raise InputError(argument="n", got=1, wanted="at least 2", hint="add rows")


def test_the_problem_stands_within_another_sentence() -> None:
    error = InputError(argument="n", got=1, wanted="at least 2", hint="add rows")
    assert error.problem == "`n` must be at least 2, got 1"
    other = error.advise(Setting("n", 2))
    assert (type(other), str(other)) == (InputError, "`n` must be at least 2, got 1. Pass `n=2`.")
    assert other.text(lambda one: f"--{one.argument}") == "--n must be at least 2, got 1. Pass --n."
    assert str(error).endswith("Add rows.")


def test_hints_name_arguments() -> None:
    both = [Setting("truncate", True, to="cut it"), Setting("window", to="read on")]
    error = InputError("The text is long", hint=both)
    assert str(error) == "The text is long. Pass `truncate=True` to cut it, or `window` to read on."
    assert error.text(lambda one: f"--{one.argument}").endswith(
        "Pass --truncate to cut it, or --window to read on."
    )
    only_one = error.text(lambda one: "--window" if one.argument == "window" else None)
    assert only_one == "The text is long. Pass --window to read on."
    assert error.text(lambda _: None) == str(error)


def test_fields_survive_a_worker() -> None:
    error = pickle.loads(pickle.dumps(FileError("is odd", argument="key", hint=Setting("key"))))
    assert isinstance(error, FileError)
    assert error.text(lambda one: f"--{one.argument}") == "--key is odd. Pass --key."


@pytest.mark.parametrize("seed", [-1, 2**32, "a", 1.5, None])
def test_seeds(seed: object) -> None:
    with raises(InputError, argument="seed", got=seed):
        check_seed(seed)


def test_the_command_line_spells_arguments_as_its_options() -> None:
    app = typer.Typer(add_completion=False)

    @app.command(cls=Command)
    def one(
        file: Annotated[str, typer.Argument(metavar="FILE")],
        header: Annotated[bool, typer.Option("--header/--no-header")] = True,
        only: Annotated[str, typer.Option("--layers", "-l")] = "",
        strength: Annotated[float, typer.Option("--lambda")] = 1.0,
    ) -> None: ...

    command = typer.main.get_command(app)
    spelled = {
        Setting("file"): "FILE",
        Setting("header"): "--header",
        Setting("header", True): "--header",
        Setting("header", False): "--no-header",
        Setting("layers", 7): "--layers 7",
        Setting("layers", "a b"): "--layers 'a b'",
        Setting("strength"): "--lambda",
        Setting("other", 1): None,
    }
    for setting, typed in spelled.items():
        assert command.typed(setting) == typed


def test_every_optional_package_that_is_missing_is_reported_in_one_form() -> None:
    """Errors over packages come from `not_installed`, which names the command that installs them."""
    strays = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                texts = [part.value for part in ast.walk(node.exc) if isinstance(part, ast.Constant)]
                if any(isinstance(text, str) and _INSTALLED.search(text) for text in texts):
                    strays.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert strays == [
        where for where in strays if where.startswith("models/static.py")
    ]  # a model, no package


def test_an_import_that_fails_is_never_another_error() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ExceptHandler) or node.type is None:
                continue
            if {"ImportError", "ModuleNotFoundError"} & {getattr(n, "id", "") for n in ast.walk(node.type)}:
                calls = [one.exc.func for one in ast.walk(node) if isinstance(one, ast.Raise) and one.exc]
                assert {getattr(call, "id", "") for call in calls} <= {"not_installed"}, (
                    f"{path}:{node.lineno}"
                )


def test_an_error_over_packages() -> None:
    error = not_installed("A map", "umap-learn", "numba", extra="maps", error=FileError)
    assert isinstance(error, FileError)
    assert error.hint == ("pip install 'isoscope[maps]'",)
    assert str(error) == (
        "A map needs umap-learn and numba, which are not installed. Run `pip install 'isoscope[maps]'`."
    )
    assert not_installed("A map", "umap-learn").hint == ("pip install umap-learn",)
