"""`isoscope metrics`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.raising import raises

from isoscope.metrics.registry import FAMILIES, choose, forget, registered


def test_every_metric_is_listed_and_one_is_explained(command) -> None:
    listed = json.loads(command("metrics", "--json").out)
    assert [entry["name"] for entry in listed] == list(registered())
    [one] = json.loads(command("metrics", "isoscore", "--json").out)
    assert one == next(entry for entry in listed if entry["name"] == "isoscore")
    shown = command("metrics", "isoscore").out
    assert "IsoScore = (PR − 1)/(d − 1)" in shown
    assert "paper: Rudman" in shown
    assert "isoscope measure FILE -m isoscore" in shown
    assert ">>>" not in shown
    assert "Args:" not in shown


def test_names_may_be_families_and_former_names(command) -> None:
    shown = command("metrics", "spectrum").out
    assert "stable_rank" in shown
    assert "isoscore" not in shown
    assert "which number of dimensions to use" in shown
    names = [
        entry["name"] for entry in json.loads(command("metrics", "silhouette_score,twonn", "--json").out)
    ]
    assert names == ["silhouette", "twonn"]
    assert command("metrics", "all").out == command("metrics").out


def test_the_command_for_a_metric_of_a_plugin_names_the_plugin(command, tmp_path: Path) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text("import isoscope as iso\n@iso.metric\ndef own_norm(X):\n    return X.norm()\n")
    shown = command("metrics", "own_norm", "--plugin", plugin).out
    forget("own_norm")
    assert f"isoscope measure FILE -m own_norm --plugin {plugin}" in " ".join(shown.split())


def test_names_in_capitals_are_answered_with_the_name(command) -> None:
    assert "did you mean nc1?" in " ".join(command("metrics", "NC1").err.lower().split())
    with raises(argument="metrics", hint="nc1"):
        choose("NC1")


def test_every_metric_can_be_explained(command) -> None:
    shown = command("metrics", *FAMILIES, *registered()).out
    shown = " ".join(shown.split())
    for name, metric in registered().items():
        is_of_two = "partners" in metric.needs
        assert (f"isoscope measure FILE -m {name}", f"partners=Y, metrics={name!r})")[is_of_two] in shown
