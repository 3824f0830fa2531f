from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso
from isoscope.tracking.trajectory_figure import draw


def made(**columns: list[float]) -> iso.Trajectory:
    """Two seeds, three steps, given out of order."""
    keys = {"seed": np.array([4, 1, 1, 4, 1, 4]), "step": np.array([10, 0, 10, 0, 5, 5])}
    rest = {"loss": np.arange(6.0), "accuracy": np.linspace(0, 1, 6)}
    given = {name: np.array(values) for name, values in columns.items()}
    return iso.Trajectory(keys | rest | given, {"steps": 10, "n": 20, "d": 3}, 1234)


@pytest.fixture(scope="module")
def run() -> iso.Trajectory:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5)).astype(np.float32)
    return iso.train_embeddings(X, X[:, 0] > 0, steps=30, seeds=3, learning_rate=0.02)


def test_rows_are_sorted_by_seed_and_step() -> None:
    found = made(isoscore=[6, 1, 3, 4, 2, 5])
    assert found["seed"].tolist() == [1, 1, 1, 4, 4, 4]
    assert found["step"].tolist() == [0, 5, 10] * 2
    assert found["isoscore"].tolist() == [1, 2, 3, 4, 5, 6]
    assert found.curves("isoscore").tolist() == [[1, 2, 3], [4, 5, 6]]
    assert found.mean()["isoscore"].tolist() == [2.5, 3.5, 4.5]
    assert found.max_standard_deviation("isoscore") == pytest.approx(3 / 2**0.5)
    assert (found.seeds, found.metrics, len(found)) == ((1, 4), ("isoscore",), 6)


def test_curves_go_as_far_as_every_seed() -> None:
    keys = {"seed": np.array([0, 0, 0, 1, 1]), "step": np.array([0, 1, 2, 0, 1])}
    rest = {"loss": np.array([1.0, 2, 3, 3, 4]), "accuracy": np.zeros(5)}
    found = iso.Trajectory(keys | rest, {}, 1)
    assert found.steps.tolist() == [0, 1]
    assert found.mean()["loss"].tolist() == [2, 3]


def test_intervals_are_no_metrics() -> None:
    nothing = [0.0] * 6
    found = made(silhouette=nothing, silhouette_low=nothing, silhouette_high=nothing, very_high=nothing)
    assert found.metrics == ("silhouette", "very_high")


def test_one_column_is_plotted_with_its_range() -> None:
    found = made(isoscore=[6, 1, 3, 4, 2, 5])
    ax = found.plot()
    (line,) = ax.lines
    assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == ([0, 5, 10], [2.5, 3.5, 4.5])
    (band,) = ax.collections
    assert band.get_datalim(ax.transData).bounds == (0, 1, 10, 5)
    assert found.plot("loss", ax=ax) is ax
    with raises(iso.InputError, argument="metric", got="rank"):
        found.plot("rank")


def test_a_column_is_no_attribute_and_another_suffix_is_refused(tmp_path: Path) -> None:
    found = made(isoscore=[6, 1, 3, 4, 2, 5])
    with pytest.raises(AttributeError, match=r"Use trajectory\['isoscore'\]"):
        _ = found.isoscore
    with raises(iso.FileError, wanted=".parquet"):
        found.save(tmp_path / "run.csv")


def test_it_cannot_be_changed() -> None:
    found = made()
    with pytest.raises(TypeError):
        found.columns["loss"] = np.zeros(6)
    with pytest.raises(AttributeError):
        found.n_parameters = 3


def test_the_title_has_what_is_known_of_the_vectors() -> None:
    found = made(isoscore=[0.0] * 6)
    for about, told in (
        ({"n": 20, "d": 3}, "20 vectors × 3, 10 updates"),
        ({"n_items": 1200}, "1,200 items, 10 updates"),
        ({}, "10 updates, 2 seeds"),
    ):
        assert str(iso.Trajectory(found.columns, about, 7)).startswith(told)


def test_unknown_columns_are_named() -> None:
    with pytest.raises(KeyError, match="is not a column; the columns are seed, step, loss"):
        made()["isoscor"]


def test_one_seed_has_no_deviation() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    one = iso.train_embeddings(X, np.arange(20) % 2, steps=2, seeds=1)
    with pytest.raises(iso.UndefinedError, match="at least 2 seeds"):
        one.max_standard_deviation("loss")
    assert "–" in one.summary()


def test_a_metric_without_values_has_no_deviation() -> None:
    nan = float("nan")
    found = made(isoscore=[nan] * 6, silhouette=[1, nan, 2, 3, 4, 7])  # seed 4 has 3, 7, 1; seed 1 nan, 4, 2
    assert np.isnan(found.max_standard_deviation("isoscore"))
    assert found.max_standard_deviation("silhouette") == pytest.approx(3 / 2**0.5)
    assert found.to_dict()["columns"]["isoscore"]["max_standard_deviation"] is None


def test_the_main_pair() -> None:
    six = [0.0] * 6
    assert made(loss2=six, silhouette=six, isoscore=six).main_pair == ("isoscore", "silhouette")
    assert made(lid=six, silhouette=six, mean_norm=six).main_pair == ("lid", "silhouette")
    assert made(isoscore=six).main_pair is None


def test_pandas(run: iso.Trajectory) -> None:
    frame = run.to_pandas()
    assert list(frame.columns) == ["seed", "step", "loss", "accuracy", "isoscore", "silhouette"]
    assert frame.groupby("seed").size().tolist() == [31] * 3
    assert frame.dtypes["seed"] == np.int64


def test_the_long_table() -> None:
    found = made(
        **{
            "isoscore@2": [1, 2, float("nan"), 4, 5, 6],
            "lid": [0.5] * 6,
            "lid_low": [0.4] * 6,
            "lid_high": [0.6] * 6,
        }
    )
    table = found.readings
    assert table.groups == ("seed", "step", "layer")
    assert set(table["metric"]) == {"loss", "accuracy", "isoscore", "lid"}
    assert sorted(table.where(metric="isoscore", layer=2)["reason"], key=str)[-1] == "no value at this step"
    assert table.where(metric="lid")[0].interval == (0.4, 0.6)
    assert table.where(metric="isoscore")[0].interval is None


def test_saved_and_loaded(run: iso.Trajectory, tmp_path: Path) -> None:
    path = run.save(tmp_path / "run.parquet")
    again = iso.Trajectory.load(path)
    for name in run.columns:
        np.testing.assert_array_equal(again[name], run[name])
    assert again.n_parameters == run.n_parameters
    assert dict(again.configuration) == dict(run.configuration)
    assert again.configuration["isoscope"] == iso.__version__
    assert again.summary() == run.summary()


def test_missing_values_survive(tmp_path: Path) -> None:
    found = made(isoscore=[1, 2, float("nan"), 4, 5, 6])
    again = iso.Trajectory.load(found.save(tmp_path / "run.parquet"))
    np.testing.assert_array_equal(again["isoscore"], found["isoscore"])


def test_what_is_no_trajectory(tmp_path: Path) -> None:
    text = tmp_path / "text.parquet"
    text.write_text("hello")
    table = iso.save(np.eye(3), tmp_path / "table.parquet")
    for path, message in (
        (text, "cannot be read"),
        (table, "not a trajectory"),
        (tmp_path / "no", "cannot be"),
    ):
        with pytest.raises(iso.FileError, match=message):
            iso.Trajectory.load(path)
    with pytest.raises(iso.FileError, match="cannot be written"):
        made().save(tmp_path / "absent" / "run.parquet")


def test_summary_says_start_end_and_correlation(run: iso.Trajectory) -> None:
    text = str(run)
    assert "90 vectors × 5, 30 updates, 3 seeds, 462 parameters" in text
    found = run.correlation()
    assert f"r = {found.r:.5f}" in text
    assert "silhouette" in text
    page = run._repr_html_()
    assert "<table" in page
    assert f"{found.rho:.5f}" in page
    few = made(isoscore=[6, 1, 3, 4, 2, 5], silhouette=[1, 2, 3, 5, 4, 6])
    assert few.correlation().n_points == 3
    assert "r = " not in str(few)


def test_dict_is_strict_json(run: iso.Trajectory) -> None:
    found = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert found["n_parameters"] == 462
    assert found["columns"]["silhouette"]["end"] == pytest.approx(run.curves("silhouette")[:, -1].mean())
    assert found["correlation"]["r"] == run.correlation().r
    assert made().to_dict()["correlation"] is None
    one = made(isoscore=[1.0] * 6, silhouette=[2.0] * 6)
    assert one.to_dict()["correlation"] is None  # flat curves have none


def test_names_in_html_are_escaped() -> None:
    assert "<script>" not in made(**{"<script>": [1.0] * 6})._repr_html_()


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_figure(run: iso.Trajectory, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"figure.{suffix}"
    figure = run.figure(path, title="a title")
    assert path.stat().st_size > 5000
    curve, score, relation = figure.axes[:3]
    np.testing.assert_allclose(curve.lines[0].get_ydata(), run.mean()["silhouette"])
    np.testing.assert_allclose(score.lines[0].get_ydata(), run.mean()["isoscore"])
    assert (score.get_yscale(), relation.get_xscale(), curve.get_yscale()) == ("log", "log", "linear")
    np.testing.assert_allclose(relation.collections[0].get_array(), run.steps)
    assert f"{run.correlation().r:.3f}".removeprefix("-") in relation.texts[0].get_text()
    assert figure.get_suptitle() == "a title"


def test_figure_of_other_columns_and_bad_ones(run: iso.Trajectory, tmp_path: Path) -> None:
    figure = draw(run, first="loss", second="accuracy", log=False)
    assert figure.axes[1].get_ylabel() == "loss"
    assert figure.axes[1].get_yscale() == "linear"
    with pytest.raises(iso.InputError, match=r"`first` must be .*, got .rank."):
        run.figure(first="rank")
    with pytest.raises(iso.FileError, match="must end in one of"):
        run.figure(tmp_path / "figure.doc")
    with pytest.raises(iso.FileError, match="not a folder"):
        run.figure(tmp_path / "absent" / "figure.png")


def test_figure_of_flat_and_of_estimated_curves() -> None:
    flat = made(isoscore=[0.5] * 6, silhouette=[0.1] * 6, silhouette_low=[0.0] * 6, silhouette_high=[0.2] * 6)
    figure = flat.figure()
    assert not figure.axes[2].texts
    assert len(figure.axes[0].collections) == 2  # the spread over seeds, and the interval


def test_without_matplotlib(run: iso.Trajectory, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(iso.InputError, match=r"pip install 'isoscope\[figures\]'"):
        run.figure()
