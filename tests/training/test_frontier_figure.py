import numpy as np
import pytest

from isoscope.errors import InputError
from isoscope.metrics.frontier import frontier_curve
from isoscope.metrics.frontier_position import frontier_position
from isoscope.training import train_embeddings
from isoscope.training.frontier_figure import plot_against_frontier

pytest.importorskip("matplotlib")
RNG = np.random.default_rng(0)
Y = np.arange(40) % 3
X = (RNG.normal(size=(40, 6)) + RNG.normal(size=(3, 6))[Y]).astype(np.float32)


@pytest.fixture(scope="module")
def run():
    return train_embeddings(
        X, Y, steps=40, seeds=2, every=10, metrics=("isoscore", "between_share"), learning_rate=0.05
    )


@pytest.mark.slow
def test_curve_points_and_runs(run, tmp_path):
    positions = {"measured": frontier_position(X, Y), "debiased": frontier_position(X, Y, debias=True)}
    axes = plot_against_frontier(positions, runs={"classifier": run}, path=tmp_path / "f.png", title="t")
    assert (tmp_path / "f.png").stat().st_size > 5_000
    shares, ceilings = frontier_curve(3, 6)
    np.testing.assert_allclose(axes.lines[0].get_xdata(), shares)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), ceilings)
    assert set(axes.get_legend_handles_labels()[1]) == {"measured", "debiased", "classifier"}
    drawn = next(line for line in axes.lines if line.get_label() == "classifier")
    np.testing.assert_allclose(drawn.get_xdata(), run.curves("between_share").mean(axis=0))
    np.testing.assert_allclose(drawn.get_ydata(), run.curves("isoscore").mean(axis=0))
    assert (drawn.get_ydata() <= np.interp(drawn.get_xdata(), shares, ceilings) + 1e-3).all()


def test_axes_of_the_caller():
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    assert plot_against_frontier(frontier_position(X, Y), ax=axes) is axes
    assert plot_against_frontier([frontier_position(X, Y)] * 2, ax=axes) is axes
    other = plot_against_frontier(frontier_position(X, Y), n_labels=2, n_dims=9)
    assert other.get_xlabel() == "ρ, share of variance between 2 labels (9 dimensions)"
    assert sum(line.get_linestyle() == ":" for line in other.lines) == 1  # the space's own curve


def test_what_cannot_be_drawn():
    with pytest.raises(InputError, match="nothing to draw"):
        plot_against_frontier()
    plain = train_embeddings(X, Y, steps=2, seeds=1)
    with pytest.raises(InputError, match="did not record between_share"):
        plot_against_frontier(runs={"plain": plain})
    pairs = train_embeddings(
        X, Y[:20], pairs=np.arange(40).reshape(20, 2), steps=2, seeds=1, metrics=("isoscore", "between_share")
    )
    with pytest.raises(InputError, match="pairs of vectors"):
        plot_against_frontier(runs={"pairs": pairs})
