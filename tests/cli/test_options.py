from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import typer

from isoscope.cli import app
from isoscope.cli.options import complete_metrics, complete_models, parse_numbers, parse_seeds
from isoscope.errors import InputError


def test_completion_offers_metrics_and_families() -> None:
    assert "silhouette" in complete_metrics("sil")
    assert "clusters" in complete_metrics("clu")
    assert "isoscore" not in complete_metrics("sil")


def test_completion_offers_installed_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.known_models.package_folder", lambda module: Path(module))
    assert complete_models("ALL-m") == ["all-MiniLM-L6-v2", "all-mpnet-base-v2"]
    monkeypatch.setattr("isoscope.known_models.package_folder", lambda module: None)
    assert complete_models("") == []


def test_seeds_are_how_many_or_which() -> None:
    assert parse_seeds("5") == 5
    assert parse_seeds(" 1, 2,5") == [1, 2, 5]
    assert parse_seeds("7,") == [7]


@pytest.mark.parametrize("text", ["", " ", ",", "two", "1,x", "1.5"])
def test_what_is_no_number(text: str) -> None:
    for name, parse in (("seeds", parse_seeds), ("hidden", partial(parse_numbers, "hidden"))):
        with pytest.raises(InputError) as caught:
            parse(text)
        assert (caught.value.argument, caught.value.got) == (name, text)


def test_options_of_a_group_stand_under_its_heading_in_that_command_only() -> None:
    def headings(name: str) -> dict[str, str | None]:
        command = typer.main.get_command(app).get_command(None, name)
        return {param.name: getattr(param, "rich_help_panel", None) for param in command.params}

    correct, measure = headings("correct"), headings("measure")
    assert correct["labels"] == correct["strength"] == "Settings of the methods"
    assert measure["labels"] is None
    assert measure["key"] == correct["key"] == "How the vectors are stored"
    assert measure["model"] == headings("compare")["model"] == "How texts are encoded"
