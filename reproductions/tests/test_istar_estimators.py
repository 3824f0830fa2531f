"""Estimates of isotropy from mini-batches: populations with a known truth, formulas against brute force."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import FileError
from isoscope.models import TokenStates
from isoscope_papers.istar import estimators as module
from isoscope_papers.istar.estimators import (
    DEBIASED,
    ESTIMATORS,
    JACKKNIFE,
    PLAIN,
    Cell,
    Estimator,
    estimates,
    read_estimates,
    run_estimators,
)
from isoscope_papers.istar.populations import (
    FRESH,
    STALE,
    STRETCH,
    of_spectrum,
    of_states,
    of_vectors,
    spectra,
)
from isoscope_papers.runs import keep


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def brute(X: torch.Tensor, estimator: Estimator, references: dict[str, torch.Tensor]) -> float:
    """One batch by the functions of the package, in float64."""
    X = X.double()
    if estimator == DEBIASED:
        return iso.isoscore(X, debias=True)
    if estimator == JACKKNIFE:
        return iso.isoscore(X, debias="jackknife")
    if estimator == PLAIN:
        return iso.isoscore(X)
    return iso.isoscore_star(X, references[estimator.reference].double(), zeta=estimator.zeta)


@pytest.mark.parametrize("n", [6, 12])
def test_every_estimate_is_that_of_its_batch(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer vectors than dimensions, and more: the one way or the other to ‖S‖."""
    batches = torch.randn(5, n, 7, generator=source()) * torch.linspace(1, 9, 7) + 30
    roots = torch.randn(2, 9, 7, generator=source(1))
    references = {FRESH: roots[0].T @ roots[0], STALE: 50 * roots[1].T @ roots[1]}
    wanted = [[brute(X, one, references) for X in batches] for one in ESTIMATORS]
    np.testing.assert_allclose(estimates(batches, references), wanted, rtol=2e-4)
    assert len({tuple(np.round(row, 5)) for row in wanted}) > len(ESTIMATORS) - 2  # ζ = 1 alone is constant
    monkeypatch.setattr(module, "_JACKKNIFED", range(0))
    assert np.isnan(estimates(batches, references)[ESTIMATORS.index(JACKKNIFE)]).all()


def test_the_truth_of_a_spectrum_is_the_score_of_points_with_that_covariance() -> None:
    for variances in torch.rand(3, 24, generator=source(), dtype=torch.float64):
        axes = torch.diag(variances.sqrt())
        truth = of_spectrum("s", "s", variances, variances).known.truth
        assert truth == pytest.approx(iso.isoscore(torch.cat([axes, -axes])), rel=1e-9)
    known = {one.known.name: one.known.truth for one in spectra()}
    assert known["flat"] == 1
    assert known["rogue-50"] == pytest.approx(((767 + 50) ** 2 / (767 + 2500) - 1) / 767)


@pytest.mark.parametrize("heavy", [False, True])
def test_rows_and_references_have_the_spectrum(heavy: bool) -> None:
    variances = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64)
    one = of_spectrum("s", "s", variances, torch.ones(3, dtype=torch.float64), "flat", heavy=heavy)
    found = one.references(source())
    np.testing.assert_allclose(found[FRESH].diagonal(), variances, rtol=0.03)
    assert (found[FRESH] - torch.diag(found[FRESH].diagonal())).abs().max() < 0.03
    np.testing.assert_allclose(found[STALE], np.eye(3) * float(variances.sum()) / 3, rtol=1e-6)
    rows = one.rows(200_000, source(3))[:, 0]
    kurtosis = float(rows.pow(4).mean() / rows.pow(2).mean() ** 2)
    assert (kurtosis > 4.5) == heavy


def test_states_are_drawn_from_the_population() -> None:
    vectors = torch.randn(64, 5, generator=source())
    clusters = torch.arange(64).view(8, 8)
    one = of_vectors("s", "s", vectors, vectors[:20] * 3, "others", clusters)
    assert one.known.truth == iso.isoscore(vectors)
    assert one.stretches is not None
    known = {tuple(row) for row in vectors.tolist()}
    assert {tuple(row) for row in one.rows(500, source()).tolist()} == known
    drawn = one.stretches(3, source()).view(3, 8, 5)
    blocks = vectors.view(8, 8, 5)
    assert all(any(torch.equal(block, own) for own in blocks) for block in drawn)
    found = one.references(source())
    np.testing.assert_allclose(found[FRESH], np.cov(vectors.T.numpy(), bias=True), atol=0.01)
    np.testing.assert_allclose(found[STALE], np.cov(3 * vectors[:20].T.numpy()), rtol=1e-4, atol=1e-6)


def test_the_populations_of_a_model(make_states: Callable[..., TokenStates]) -> None:
    states = make_states(n_sentences=40, layers=5)
    middle, last, whole = of_states(states)
    n = len(states) // STRETCH * STRETCH
    assert [one.known.name for one in (middle, last, whole)] == ["made-2", "made-4", "made-all"]
    assert middle.known.truth == iso.isoscore(states.vectors(2)[:n])
    assert torch.equal(middle.references(source())[STALE], torch.cov(states.vectors(4)[:n].T))
    assert (whole.known.n_vectors, whole.known.n_dims) == (4 * n, states.n_dims)
    assert whole.stretches is not None
    drawn = whole.stretches(1, source()).view(4, STRETCH, -1)  # one stretch in every layer
    firsts = states.vectors(1)[:n].view(-1, STRETCH, states.n_dims)
    place = next(place for place, one in enumerate(firsts) if torch.equal(one, drawn[0]))
    for layer in range(1, 5):
        own = states.vectors(layer)[STRETCH * place : STRETCH * (place + 1)]
        assert torch.equal(drawn[layer - 1], own)


def test_sinks_in_and_out(make_states: Callable[..., TokenStates]) -> None:
    states = make_states(n_sentences=40)
    first = states.rows.positions == 0
    for layer in (1, 2):
        states.by_layer[layer][first] *= 1000
    found = {one.known.name: one for one in of_states(states)}
    assert list(found) == ["made-1-sinks", "made-2-sinks", "made-all-sinks", "made-1", "made-2", "made-all"]
    longest = {name: one.rows(5000, source()).norm(dim=1).max() for name, one in found.items()}
    assert longest["made-2"] < 100 < longest["made-2-sinks"]


@pytest.mark.slow
def test_bias_and_spread_of_a_flat_spectrum() -> None:
    flat = of_spectrum("flat", "flat", torch.ones(64).double(), torch.arange(1, 65).double(), "other")
    found = run_estimators([flat], sizes=(16,), max_draws=3000, progress=False)
    cell = found.cells[0]
    plain, ours = cell.of(PLAIN, 1.0), cell.of(DEBIASED, 1.0)
    assert plain.mean == pytest.approx((16 / (1 + 16 / 64) - 1) / 63, abs=0.02)  # PR is about n/(1 + n/d)
    assert plain.bias == pytest.approx(plain.mean - 1)
    assert ours.bias is not None
    assert abs(ours.bias) < 0.04
    fresh = cell.of(Estimator("star", 1.0, FRESH), 1.0)
    assert fresh.sd < 1e-6 < plain.sd
    assert abs(fresh.bias) < 0.001


def test_what_a_cell_says_of_its_draws() -> None:
    values = np.random.default_rng(0).normal(0.6, 0.3, size=(len(ESTIMATORS), 50))
    values[0, :3] = np.nan
    cell = Cell.of_values("p", "independent", 8, values)
    defined = values[0, 3:]
    found = cell.of(PLAIN, 0.5)
    assert found.mean == pytest.approx(defined.mean())
    assert found.error == pytest.approx(defined.std(ddof=1) / 47**0.5)
    assert found.rmse == pytest.approx(np.sqrt(np.mean((defined - 0.5) ** 2)))
    assert (found.n_draws, found.n_undefined) == (50, 3)
    assert found.n_outside == int(((defined < 0) | (defined > 1)).sum()) > 0


def test_undefined_results_are_counted() -> None:
    axes = torch.eye(60)  # differences of four different ones are at right angles: no direction shows twice
    one = of_vectors("axes", "axes", axes, axes, "itself")
    cell = run_estimators([one], sizes=(4,), max_draws=400, progress=False).cells[0]
    found = cell.of(DEBIASED, one.known.truth)
    distinct = np.prod([1 - k / 60 for k in range(4)])
    assert found.n_undefined == pytest.approx(
        400 * distinct, abs=5 * (400 * distinct * (1 - distinct)) ** 0.5
    )
    assert cell.of(PLAIN, one.known.truth).n_undefined == 0
    nothing = Cell.of_values("p", "independent", 4, np.full((len(ESTIMATORS), 9), np.nan))
    assert nothing.of(DEBIASED, 0.5)[:5] == (None,) * 5


def test_a_cell_hangs_on_the_seed_and_on_nothing_else() -> None:
    flat, other = spectra(16)[:2]
    options = {"max_draws": 20, "progress": False}
    alone = run_estimators([flat], sizes=(8,), **options).cells
    among = run_estimators([other, flat], sizes=(4, 8), **options)
    assert among.cell("flat", 8) == alone[0]
    assert run_estimators([flat], sizes=(8,), seed=1, **options).cells != alone


@pytest.mark.slow
def test_stretches_are_cells_of_their_own() -> None:
    vectors = torch.randn(8, 6, generator=source()).repeat_interleave(4, dim=0)  # four alike in a row
    one = of_vectors("s", "s", vectors, vectors, "itself", torch.arange(32).view(8, 4))
    found = run_estimators([one], sizes=(8,), n_stretches=(2,), max_draws=300, progress=False)
    together, apart = found.cell("s", 8, "stretches"), found.cell("s", 8)
    assert together is not None
    assert apart is not None
    assert together.of(PLAIN, one.known.truth).mean < apart.of(PLAIN, one.known.truth).mean - 0.1
    assert found.populations[0].stretch == 4


def test_estimates_are_kept_and_read(tmp_path: Path) -> None:
    found = run_estimators(spectra(16)[:2], sizes=(4, 8), max_draws=20, progress=False)
    path = keep(found, tmp_path / "istar-estimators.json")
    assert read_estimates(tmp_path) == [found]
    assert read_estimates(tmp_path / "nothing") == []
    facts = json.loads(path.read_text())
    facts.pop("checksum", None)
    path.write_text(json.dumps(facts | {"estimators": []}))
    with pytest.raises(FileError, match="has other estimators"):
        read_estimates(tmp_path)
