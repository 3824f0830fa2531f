from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from isoscope.cli import app
from isoscope.cli.inputs import VectorOptions
from isoscope.io import open_vectors

runner = CliRunner()
X = np.random.default_rng(0).normal(size=(60, 4))
LABELS = np.array(["p", "q"])[np.arange(60) % 2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("labels.txt").write_text("\n".join(LABELS))
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.assign(year=2000 + np.arange(60) % 9).to_csv("year.csv", index=False)
    frame.to_csv("plain.csv", index=False)
    frame.assign(id=np.arange(60)).to_csv("id.csv", index=False)


def ran(*arguments: str) -> dict:
    result = runner.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def refused(*arguments: str) -> str:
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == 1
    return str(result.exception)


def test_every_option_is_an_argument_of_open_vectors() -> None:
    assert set(VectorOptions.__dataclass_fields__) <= set(inspect.signature(open_vectors).parameters)


@pytest.mark.parametrize(
    "command",
    [
        ["measure"],
        ["report"],
        ["advise", "--labels", "labels.txt", "--corrections", "center"],
        ["frontier", "--labels", "labels.txt"],
        ["train", "--labels", "labels.txt", "--steps", "2", "--seeds", "1"],
        ["compare", "year.csv"],
        ["correct", "--method", "center", "-o", "out.npy"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_asks_and_takes_the_answer(command: list[str]) -> None:
    message = refused(*command, "year.csv")
    assert "whole numbers in column 'year'" in message
    assert "Pass --exclude year, or --columns : to take all" in message
    result = runner.invoke(app, [*command, "year.csv", "--exclude", "year"])
    assert result.exit_code == 0, (result.output, result.exception)


def test_columns_by_name_and_range() -> None:
    def d(*options: str) -> int:
        return ran("measure", "year.csv", "-m", "mean_norm", *options)["d"]

    assert d("--columns", ":") == 5
    assert d("--columns", "a:c") == 3
    assert d("--columns", "a", "--columns", "c,d") == 3
    assert d("--columns", ":", "--exclude", "year,a") == 3


def test_columns_that_are_no_dimensions_say_what_to_pass() -> None:
    assert refused("measure", "year.csv", "--columns", "a").endswith("Give a range, such as d0:d767.")
    rows = "".join(f'{i},"[{i}.5, {i % 3}.25]"\n' for i in range(9))
    Path("lists.csv").write_text(f"n,embedding\n{rows}")
    assert refused("measure", "lists.csv", "--columns", "embedding").endswith("Pass --vectors embedding.")
    assert refused("measure", "lists.csv", "--vectors", "n").endswith("Pass --vectors embedding.")


def test_identifiers_change_no_number() -> None:
    wanted, found = (ran("measure", name, "-m", "isoscore") for name in ("plain.csv", "id.csv"))
    assert found["metrics"] == wanted["metrics"]
    assert found["notes"][0] == "columns that are not dimensions: id (by its name)"


@pytest.mark.slow
@pytest.mark.parametrize("command", [["frontier"], ["train", "--steps", "2"], ["advise", "--repeats", "1"]])
def test_every_command_says_once_how_a_table_was_read(command: list[str]) -> None:
    note = "note: columns that are not dimensions: id"
    typed = [*command, "id.csv", "--labels", "labels.txt"]
    assert runner.invoke(app, typed).output.count(note) == 1
    as_json = runner.invoke(app, [*typed, "--json"])
    assert note not in as_json.stdout
    assert as_json.stderr.count(note) == 1


def test_how_a_table_is_written() -> None:
    Path("marks.csv").write_text(
        "".join(f"{i / 8:.3f}|{1 + i % 7 / 8:.3f}\n" for i in range(9, 40)).replace(".", ",")
    )
    assert "one of thousands? Pass --decimal to say which" in refused(
        "measure", "marks.csv", "--delimiter", "|"
    )
    found = ran("measure", "marks.csv", "--delimiter", "|", "--decimal", ",", "-m", "mean_norm")
    rows = np.array([(i / 8, 1 + i % 7 / 8) for i in range(9, 40)])
    assert found["metrics"]["mean_norm"]["value"] == pytest.approx(np.linalg.norm(rows, axis=1).mean())


def test_a_header_of_numbers() -> None:
    pd.DataFrame(np.arange(80).reshape(20, 4) % 7).to_csv("whole.csv", index=False)
    assert refused("measure", "whole.csv").endswith("or a row? Pass --header, or --no-header.")
    assert ran("measure", "whole.csv", "--header", "-m", "mean_norm")["n"] == 20
    assert ran("measure", "whole.csv", "--no-header", "-m", "mean_norm")["n"] == 21


def test_packed_bits() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (60, 32), dtype=np.uint8)
    np.save("bits.npy", np.packbits(bits, axis=1))
    assert "Pass --unpack-bits, or --no-unpack-bits" in refused("measure", "bits.npy")
    found = ran("measure", "bits.npy", "--unpack-bits", "-m", "mean_norm")
    assert found["d"] == 32
    assert found["metrics"]["mean_norm"]["value"] == pytest.approx(np.sqrt(bits.sum(1)).mean())
    assert ran("measure", "bits.npy", "--no-unpack-bits", "-m", "mean_norm")["d"] == 4


def test_options_of_tables_go_with_vectors() -> None:
    assert "combined with --model" in refused("measure", "id.csv", "--model", "m", "--exclude", "id")
    np.save("v.npy", X)
    message = refused("measure", "v.npy", "--columns", "a,b")
    assert re.search(r"--columns 'a,b' is for .*\.parquet.* and v\.npy has no such choice", message)


def test_words_of_a_command_line() -> None:
    options = VectorOptions(columns=["a", "b:c"], header=False, unpack_bits=True, delimiter=";")
    assert options.words() == [
        *("--columns", "a", "--columns", "b:c", "--no-header", "--delimiter", ";", "--unpack-bits")
    ]
    assert VectorOptions().words() == []
