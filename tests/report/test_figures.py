from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import InputError
from isoscope.figures import panels

matplotlib_figure = pytest.importorskip("matplotlib.figure", reason="needs the extra `figures`")


@pytest.fixture
def labelled(rng) -> tuple[np.ndarray, list[str]]:
    y = rng.integers(0, 3, 150)
    return rng.normal(size=(150, 6)) + 3 * np.eye(6)[y], [["_a", "$b", "c"][k] for k in y]


PLOTS = {
    "spectrum": lambda X, y, ax: iso.plots.plot_spectrum(X, ax=ax),
    "cosines": lambda X, y, ax: iso.plots.plot_cosines(X, y, ax=ax),
    "dimensions": lambda X, y, ax: iso.plots.plot_dimensions(X, ax=ax),
    "scatter": lambda X, y, ax: iso.plots.plot_scatter(X, y, ax=ax),
    "silhouette": lambda X, y, ax: iso.plots.plot_silhouette(X, y, ax=ax),
    "frontier": lambda X, y, ax: iso.plots.plot_frontier(X, y, ax=ax),
}


@pytest.mark.parametrize("name", PLOTS)
def test_axes_in_axes_out(labelled, name: str) -> None:
    given = matplotlib_figure.Figure().subplots()
    assert PLOTS[name](*labelled, given) is given
    assert given.has_data()
    made = PLOTS[name](*labelled, None)
    assert made is not given
    assert made.get_xlabel() == given.get_xlabel() != ""
    made.figure.canvas.draw()


def test_spectrum_shows_the_shares(labelled) -> None:
    X, _ = labelled
    values = np.asarray(iso.metrics.eigenvalues(X))
    drawn = iso.plots.plot_spectrum(X).lines[0].get_ydata()
    np.testing.assert_allclose(drawn, values / values.sum(), rtol=1e-9)


def test_dimensions_show_the_strongest(labelled) -> None:
    X, _ = labelled
    shares = np.asarray(iso.metrics.dimension_contributions(X))
    shares /= np.abs(shares).sum()
    order = np.argsort(-np.abs(shares))[:2]
    ax = iso.plots.plot_dimensions(X, n_dims=2)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], shares[order])
    assert [text.get_text() for text in ax.get_xticklabels()] == [str(j) for j in order]


def test_frontier_shows_the_space_under_the_curve(labelled) -> None:
    split = iso.metrics.scatter_decomposition(*labelled)
    ax = iso.plots.plot_frontier(*labelled)
    assert ax.lines[1].get_xydata().tolist() == [[split.between_share, split.isoscore]]
    x, y = ax.lines[0].get_data()
    assert np.interp(split.between_share, x, y) == pytest.approx(split.ceiling, abs=1e-2)


def test_silhouettes_are_ordered_and_names_are_plain(labelled) -> None:
    ax = iso.plots.plot_silhouette(*labelled)
    means = iso.metrics.silhouette_by_cluster(*labelled)
    assert ax.collections[-1].get_offsets()[:, 0].tolist() == pytest.approx(sorted(means.values())[::-1])
    assert {text.get_text() for text in ax.get_yticklabels()} == {" _a", r"\$b", "c"}


def test_scatter_takes_other_directions_and_fewer_points(labelled) -> None:
    X, _ = labelled
    ax = iso.plots.plot_scatter(X, components=(2, 3), n_points=20)
    assert ax.get_xlabel() == "principal direction 2"
    assert len(ax.collections[0].get_offsets()) == 20
    with pytest.raises(InputError, match=r"components.* must be two of 1 to 6"):
        iso.plots.plot_scatter(X, components=(1, 7))
    with pytest.raises(InputError, match=r"n_dims.* must be at least 1, got 0"):
        iso.plots.plot_dimensions(X, n_dims=0)


def test_a_space_brings_its_labels(labelled) -> None:
    X, y = labelled
    space = iso.Space(X, labels=y)
    assert len(iso.plots.plot_scatter(space).collections) == 3
    assert len(iso.plots.plot_cosines(space).get_legend().get_texts()) == 3
    assert iso.plots.plot_silhouette(space).get_xlabel() == "silhouette"


def test_trajectory(tmp_path: Path) -> None:
    columns = {
        "seed": np.repeat([0, 1], 3),
        "step": np.tile([0, 1, 2], 2),
        "loss": np.array([3.0, 2.0, 1.0, 5.0, 4.0, 3.0]),
    }
    run = iso.Trajectory(columns, {}, 1)
    run.save(tmp_path / "trajectory.parquet")
    ax = iso.plots.plot_trajectory(tmp_path, metric="loss")
    assert ax.lines[0].get_ydata().tolist() == [4, 3, 2]
    with pytest.raises(InputError, match=r"metric.* must be one of seed, step, loss"):
        iso.plots.plot_trajectory(run, metric="rank")


@pytest.mark.slow
def test_figures_are_written_twice_each(labelled, tmp_path: Path) -> None:
    X, y = labelled
    run = iso.Trajectory({"seed": np.zeros(2, int), "step": np.arange(2), "loss": np.ones(2)}, {}, 1)
    made = iso.report(X, labels=y, run=run, figures=tmp_path / "new" / "figures")
    names = {*PLOTS, "trajectory-loss"}
    assert {path.name for path in made.figures} == {f"{n}.{kind}" for n in names for kind in ("pdf", "png")}
    assert {path.read_bytes()[:4] for path in made.figures} == {b"%PDF", b"\x89PNG"}


def test_without_matplotlib_there_is_a_page_and_a_word_about_figures(labelled, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert iso.report(labelled[0]).n_bytes > 0
    with pytest.raises(InputError, match="needs matplotlib"):
        iso.report(labelled[0], figures=tmp_path)
    with pytest.raises(InputError, match="needs matplotlib"):
        iso.plots.plot_spectrum(labelled[0])


def test_panels_are_the_callers_or_new_and_as_many_as_are_drawn(tmp_path: Path) -> None:
    given = matplotlib_figure.Figure().subplots(1, 2)
    with panels(1, 2, (4.0, 2.0), axes=given, path=tmp_path / "both.png", title="both") as drawn:
        assert drawn == list(given)
    assert given[0].figure.get_suptitle() == "both"
    assert (tmp_path / "both.png").is_file()
    with panels(2, 2, (4.0, 2.0)) as drawn:
        assert len(drawn) == 4
    with (
        pytest.raises(InputError, match="`axes` must be 3 Axes, one for each panel, got 2"),
        panels(1, 3, (1.0, 1.0), axes=given),
    ):
        pass
