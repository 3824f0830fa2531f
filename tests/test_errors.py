import pickle
from typing import Annotated

import pytest
import typer

from isoscope.cli.commands import Command
from isoscope.errors import FileError, InputError, Setting, check_seed


def test_a_message_is_made_from_its_fields() -> None:
    error = InputError(argument="n", got=1, wanted="at least 2", hint="add rows")
    assert str(error) == "n must be at least 2, got 1; add rows"
    assert (error.argument, error.got, error.wanted, error.hint) == ("n", 1, "at least 2", ("add rows",))
    assert str(FileError("has no numbers", argument="columns")) == "columns has no numbers"
    assert str(InputError("a plain message")) == "a plain message"


def test_hints_name_arguments() -> None:
    both = [Setting("truncate", True, to="cut it"), Setting("window", to="read on")]
    error = InputError("the text is long", hint=both)
    assert str(error) == "the text is long; pass truncate=True to cut it, or window= to read on"
    assert error.text(lambda one: f"--{one.argument}").endswith(
        "pass --truncate to cut it, or --window to read on"
    )
    only_one = error.text(lambda one: "--window" if one.argument == "window" else None)
    assert only_one == "the text is long; pass --window to read on"
    assert error.text(lambda _: None) == str(error)


def test_fields_survive_a_worker() -> None:
    error = pickle.loads(pickle.dumps(FileError("is odd", argument="key", hint=Setting("key"))))
    assert isinstance(error, FileError)
    assert error.text(lambda one: f"--{one.argument}") == "--key is odd; pass --key"


@pytest.mark.parametrize("seed", [-1, 2**32, "a", 1.5, None])
def test_seeds(seed: object) -> None:
    with pytest.raises(InputError) as caught:
        check_seed(seed)
    assert (caught.value.argument, caught.value.got) == ("seed", seed)


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
