from __future__ import annotations

import builtins
import json
import math
from typing import Any

import pytest
from tests.raising import raises

from isoscope.engine.readings import Reading, Readings
from isoscope.errors import InputError


@pytest.fixture
def table() -> Readings:
    return Readings(
        [
            Reading("isoscore", 0.1234567890123456, 0.01, 0.5, "even", (0.0, 1.0), group={"layer": 0}),
            Reading("isoscore", None, meaning="all vectors are equal", group={"layer": 1}),
            Reading("n_clusters", 12, group={"layer": 0}),
            Reading("condition", math.inf, space="<b>x</b>", group={"layer": 1, "view": "all"}),
        ]
    )


def test_columns_are_those_of_the_contract(table: Readings) -> None:
    assert table.names == (
        "space", "layer", "view", "metric", "value", "standard_error", "low", "high", "ceiling", "reason",
    )  # fmt: skip
    assert table["value"] == [0.1234567890123456, None, 12, math.inf]
    assert isinstance(table["value"][2], int)
    assert table["reason"] == [None, "all vectors are equal", None, None]
    assert table["view"] == [None, None, None, "all"]


def test_selection(table: Readings) -> None:
    assert table.where(layer=1, metric="isoscore")[0].reason == "all vectors are equal"
    assert table.where(metric=["n_clusters", "condition"])["layer"] == [0, 1]
    assert len(table.where(layer=7)) == 0
    assert list(table[:2]) == list(table.where(metric="isoscore"))
    assert len(table + table[:1]) == 5
    with pytest.raises(InputError, match="there is no column 'layr'; there are space, layer"):
        table.where(layr=1)


def test_interval_comes_from_the_error_and_stays_inside_the_range() -> None:
    reading = Reading("isoscore", 0.001, 0.01, range=(0.0, 1.0))
    assert reading.interval == (0.0, pytest.approx(0.0206, abs=1e-4))
    assert (reading.low, reading.high) == reading.interval
    assert Reading("gain", 0.1, interval=(0.0, 0.3)).interval == (0.0, 0.3)
    assert Reading("gain", 0.1).interval is None


def test_not_a_number_is_undefined() -> None:
    assert Reading("isoscore", math.nan).value is None
    assert Reading("isoscore", math.nan).reason == "undefined"


def test_wide_has_a_row_for_each_group(table: Readings) -> None:
    assert table[:3].wide() == {
        "space": [None, None],
        "layer": [0, 1],
        "isoscore": [0.1234567890123456, None],
        "n_clusters": [12, None],
    }


def test_json_is_strict_and_complete(table: Readings) -> None:
    found = json.loads(table.to_json(), parse_constant=pytest.fail)
    assert found["value"] == [0.1234567890123456, None, 12, None]
    assert list(found) == list(table.names)


def test_data_frames_agree(table: Readings) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    pandas, polars = table.to_pandas(), table.to_polars()
    assert list(pandas.columns) == list(polars.columns) == list(table.names)
    assert polars["value"].to_list() == [0.1234567890123456, None, 12.0, math.inf]
    assert pandas["value"].tolist()[::2] == [0.1234567890123456, 12.0]
    assert str(pandas["value"].dtype) == "float64"
    assert polars["layer"].to_list() == pandas["layer"].tolist() == [0, 1, 0, 1]


def test_groups_of_several_types_become_strings() -> None:
    polars = pytest.importorskip("polars")
    frame = Readings([Reading("a", 1.0, group={"layer": layer}) for layer in (1, "all", None)]).to_polars()
    assert frame["layer"].to_list() == ["1", "all", None]
    assert frame["layer"].dtype == polars.String


def test_a_column_that_is_empty_keeps_its_type() -> None:
    polars = pytest.importorskip("polars")
    types = dict(Readings([Reading("a", 1.0)]).to_polars().schema)
    assert types["ceiling"] == types["low"] == polars.Float64
    assert types["reason"] == types["space"] == polars.String
    assert dict(Readings([]).to_polars().schema)["value"] == polars.Float64


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_missing_is_named(
    table: Readings, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name == library:
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr("isoscope.results.import_module", without)
    with raises(InputError, message=f"needs {library}", hint=r"isoscope\[frames\]"):
        getattr(table, f"to_{library}")()


def test_prints_what_there_is_and_escapes_it(table: Readings) -> None:
    text = str(table)
    assert "0.1235" in text
    assert "all vectors are equal" in text
    assert "∞" in text
    assert "<b>x</b>" in text
    assert "&lt;b&gt;x&lt;/b&gt;" in table._repr_html_()
    assert "<b>" not in table.to_html()
    assert "reason" not in str(table[:1])
    assert repr(table) == text


def test_a_long_table_prints_its_ends() -> None:
    text = str(Readings([Reading("a", n, group={"step": n}) for n in range(1000)]))
    assert len(text.splitlines()) < 30
    assert "… 980 more" in text
    assert "999" in text
