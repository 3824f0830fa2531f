from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from isoscope.errors import InputError, UndefinedError
from isoscope.models import load_language_model
from isoscope.models.layers import LayerComparison, LayerProfile, measure_layers

TEXTS = ["a cat sat on the mat", "boom the dog ran to the cat", "dog on a hat", "the hat sat to a cat"] * 8


@pytest.fixture(scope="module")
def profile(tiny_gpt: Path) -> LayerProfile:
    return measure_layers(TEXTS, model=tiny_gpt, k=10, progress=False, device="cpu")


@pytest.fixture(scope="module")
def other(tiny_bert: Path) -> LayerProfile:
    return measure_layers(TEXTS, model=tiny_bert, k=10, clusters=False, progress=False, device="cpu")


def printed(table: object) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


@pytest.mark.slow
def test_tables_fit_a_terminal(profile: LayerProfile) -> None:
    for sinks in (True, False):
        for grid in profile.grids(sinks=sinks):
            text = printed(grid.to_rich())
            assert "…" not in text
            assert ("without sinks" in text) == (not sinks)


def test_every_column_is_explained(profile: LayerProfile, tiny_bert: Path) -> None:
    asked = measure_layers(TEXTS, model=tiny_bert, metrics=["twonn", "informativity_1"], progress=False)
    for result, titles in ((profile, 8), (asked, 2)):
        (grid, *_) = result.grids()
        lines = [line.partition(":")[0] for line in result.lines()]
        assert len(grid.heads) == 1 + titles
        assert set(grid.names()[1:]) <= set(lines)


def test_plots_on_the_callers_axes(profile: LayerProfile, other: LayerProfile) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert profile.plot("isoscore", ax=ax) is ax
    with_sinks, without = ax.get_lines()
    assert list(with_sinks.get_ydata()) == profile.values("isoscore")
    assert list(without.get_ydata()) == profile.values("isoscore", sinks=False)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("layer", "IsoScore")
    other.plot("isoscore", ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        profile.model, f"{profile.model}, without sinks", other.model
    ]  # fmt: skip
    assert ax.get_lines()[2].get_color() != with_sinks.get_color()
    several = other.plot(["mean_cosine", "effective_rank"])
    assert [line.get_label() for line in several.get_lines()] == ["mean cosine", "effective rank"]
    with pytest.raises(InputError, match="isotropy"):
        profile.plot("isotropy")
    with pytest.raises(UndefinedError, match="no value in any layer: clusters were not asked"):
        other.plot("n_clusters")


def test_json_has_everything(profile: LayerProfile) -> None:
    found = json.loads(profile.to_json())
    assert [layer["layer"] for layer in found["layers"]] == profile.layers
    first = found["layers"][0]
    assert first["all tokens"]["isoscore"] == profile.by_layer[0][0]["isoscore"]
    assert first["without sinks"]["isoscore"] != first["all tokens"]["isoscore"]
    assert found["sinks"]
    assert set(found["seconds"]) == {"model", "measures", "sample"}


def test_prints_its_tables_and_gives_a_long_one(profile: LayerProfile) -> None:
    text = str(profile)
    assert text == repr(profile)
    assert text.splitlines()[0] == profile.title
    assert "tensor" not in text
    assert "attention sinks" in text
    found = profile.readings.where(layer=1, view="without sinks", metric="isoscore")
    assert found["value"] == [profile.by_layer[1][1]["isoscore"]]
    assert profile.readings.groups == ("layer", "view")
    undefined = profile.readings.where(metric="mean_norm", value=None)
    assert len(undefined) == 0


def test_speed_is_said(profile: LayerProfile) -> None:
    fast = replace(profile, n_tokens=1000, seconds={"model": 2.0, "measures": 0.5, "sample": 0.25})
    assert fast.speed().startswith("500 tokens per second in the model alone, 400 with sums (+25% time)")


def test_an_unknown_quantity(profile: LayerProfile) -> None:
    with pytest.raises(InputError, match=r"must be one of mean_norm, .*, got 'isotropy'"):
        profile.values("isotropy")


def test_a_plot_of_a_profile_without_mean_cosine(tiny_gpt: Path) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    profile = measure_layers(["a cat sat on the mat"] * 3, model=tiny_gpt, metrics="twonn", progress=False)
    assert profile.plot(ax=ax) is ax
    assert ax.get_ylabel() == "twonn"


@pytest.mark.slow
def test_the_figure(profile: LayerProfile, other: LayerProfile, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    one = profile.figure(tmp_path / "one.png")
    two = profile.figure(tmp_path / "two.png", against=other)
    assert 10_000 < one.stat().st_size < two.stat().st_size


def test_before_and_after(profile: LayerProfile, other: LayerProfile) -> None:
    found = LayerComparison.of(other, profile)
    assert found.pairs == [(0, 0), (1, 1), (1, 2), (2, 3)]
    after, before = profile.adjusted_by_type(), other.adjusted_by_type()
    assert found.changes["cat"] == pytest.approx(after["cat"] - before["cat"])
    assert "[CLS]" not in found.changes
    mixed = replace(found, changes={"cat": 0.2, "dog": -0.1, "hat": 0.5, "mat": 0.0})
    assert mixed.words(2) == ({"hat": 0.5, "cat": 0.2}, {"dog": -0.1})
    assert not any("the tokens differ" in note for note in found.notes)  # only the special tokens do
    some = replace(other, type_counts=other.type_counts * (torch.arange(len(other.type_counts)) > 2))
    assert any("the tokens differ" in note for note in replace(found, before=some).notes)
    assert any("self-similarity rises" in line for line in found.lines())
    cosines = replace(other, readings=other.readings.where(metric="mean_cosine"))
    assert not any("self-similarity" in line for line in replace(found, before=cosines).lines())
    assert "→" in str(found)
    assert set(found.to_dict()) == {"before", "after", "self_similarity_change"}
    assert len(LayerComparison.of(other, profile, n_types=2).changes) == 2


def test_models_without_a_token_in_common(profile: LayerProfile, tiny_gpt: Path) -> None:
    model = load_language_model(tiny_gpt, device="cpu")
    other = measure_layers(["sat ran", "mat to"], model=model, clusters=False, progress=False)
    with pytest.raises(UndefinedError, match="No token occurs twice or more in both models"):
        LayerComparison.of(profile, other)
