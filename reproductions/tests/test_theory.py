from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from isoscope import isoscore, trade_off
from isoscope.cli import app
from isoscope.errors import InputError
from isoscope.metrics import between_share
from isoscope_papers.runs import keep
from isoscope_papers.study import Place
from isoscope_papers.theory import run as theory
from isoscope_papers.theory.deep import DeepRun, deep_findings, run_deep
from isoscope_papers.theory.run import Followed, Run, run_setup
from isoscope_papers.theory.setups import N_CASES, SETUPS
from isoscope_papers.theory.statements import STATEMENTS
from isoscope_papers.theory.study import STUDY
from isoscope_papers.verdict import Verdict

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reproduction"
RNG = np.random.default_rng(0)
Y = np.arange(60) % 4
X = RNG.normal(size=(60, 6)) + 2 * RNG.normal(size=(4, 6))[Y]


@pytest.fixture(scope="module")
def deep():
    return run_deep(X, Y, data="noise", depths=(1, 2), widths=(8, 3), steps=150, seeds=(0,))


def test_networks_are_trained_and_measured(deep):
    assert [(run.width, run.depth) for run in deep] == [(8, 1), (8, 2), (3, 1), (3, 2)]
    for run in deep:
        assert (run.steps[0], run.steps[-1]) == (0, 150)
        assert len(run.steps) == len(run.isoscore) == len(run.between_share) == len(run.score_isoscore)
    assert deep[0].accuracy[-1] > 0.95 > deep[0].accuracy[0]
    assert deep[0].between_share[-1] > deep[0].between_share[0]
    again = run_deep(X, Y, data="noise", depths=(1,), widths=(8,), steps=150, seeds=(0,))
    assert again[0] == deep[0]


def test_the_last_hidden_layer_is_what_is_measured(deep):
    """The first point of the curves, from the network as it is drawn."""
    rows = torch.tensor(X - X.mean(axis=0), dtype=torch.float32)
    rows = rows / rows.square().mean().sqrt()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        hidden = torch.nn.Linear(6, 8)(rows).relu()
        scores = torch.nn.Linear(8, 4)(hidden)
    assert deep[0].isoscore[0] == pytest.approx(isoscore(hidden), rel=1e-5)
    assert deep[0].between_share[0] == pytest.approx(between_share(hidden, Y), rel=1e-5)
    assert deep[0].score_isoscore[0] == pytest.approx(isoscore(scores), rel=1e-5)
    assert deep[0].accuracy[0] == pytest.approx((scores.argmax(dim=1).numpy() == Y).mean())
    assert deep[0].input_isoscore == pytest.approx(isoscore(X), rel=1e-5)


def run_of(start, end, depth=1):
    return DeepRun("made", depth, 8, 60, 4, (0, 9), (start, end), (0.2, 0.9), (0.3, 1.0), 0.6, (0.5, 0.4))


def test_the_conjecture_holds_at_some_depths_at_all_or_at_none():
    def verdicts(*runs):
        return [(one.verdict, one.condition) for one in deep_findings(runs)]

    assert verdicts(run_of(0.4, 0.29)) == [(Verdict.HELD, "")] * 2
    assert verdicts(run_of(0.4, 0.7)) == [(Verdict.NOT_HELD, "")] * 2
    assert verdicts(run_of(0.4, 0.7), run_of(0.4, 0.1, 2)) == [(Verdict.CONDITION, "depth 2")] * 2


def followed(objective="triplet", end=0.1):
    curves = {name: [[0.3, end], [0.3, end]] for name in ("loss", "accuracy", *theory.FOLLOWED)}
    return Followed(objective, "noise", 60, (0, 5), curves, -0.9, (-0.9, -0.8))


def test_a_triplet_loss_that_lowers_isoscore_is_told_from_one_that_does_not():
    def verdict(*runs):
        return [one.verdict for one in STUDY.findings([Run("triplet", followed=runs)])]

    assert verdict(followed(), followed("classifier", 0.5)) == [Verdict.HELD]
    assert verdict(followed(end=0.4)) == [Verdict.NOT_HELD]


@pytest.mark.slow
def test_report_and_back(deep, tmp_path):
    trades = {"noise: silhouette": trade_off(X, Y, weights=3, steps=20).to_dict()}
    kept = [
        Run("statements", dict.fromkeys(STATEMENTS, N_CASES)),
        Run("digits", deep=tuple(deep), trades=trades),
        Run("triplet", followed=(followed(), followed("classifier"))),
    ]
    for run in kept:
        keep(run, tmp_path / "runs" / f"theory-{run.setup}.json")
    assert STUDY.read(tmp_path / "runs") == kept
    result = CliRunner().invoke(app, ["reproduce", "theory", "--report-only", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "theory.md").read_text()
    for words in ("Traded: noise: silhouette", "theory-deep-noise.png", "equation 4", "theory-chord.png"):
        assert words in page
    for name in ("trade-noise-silhouette", "deep-noise", "chord", "triplet"):
        assert (tmp_path / f"theory-{name}.png").is_file()
    assert "noise: silhouette\n60 vectors" in result.output


def test_a_check_that_fails_is_named_and_sets_the_exit_code(tmp_path):
    held = {**dict.fromkeys(STATEMENTS, N_CASES), "angle": N_CASES - 1}
    keep(Run("statements", held), tmp_path / "runs" / "theory-statements.json")
    result = CliRunner().invoke(app, ["reproduce", "theory", "--report-only", "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert f"angle\n  cases                        {N_CASES - 1}" in result.output
    assert "figure_chord" not in result.output


def test_a_setup_does_what_it_declares_and_is_kept(monkeypatch, tmp_path):
    monkeypatch.setitem(theory._SPACES, "polarity", lambda _: (X, Y.tolist()))
    monkeypatch.setattr(theory.setups, "FOLLOW", {"steps": 4, "every": 2, "seeds": 2})
    (run,) = STUDY.run_and_keep(SETUPS["triplet"], None, Place(runs=tmp_path))
    assert [one.objective for one in run.followed] == ["triplet", "classifier"]
    assert run.followed[0].steps == (0, 2, 4)
    assert np.shape(run.followed[0].curves["isoscore"]) == (2, 3)
    assert STUDY.read(tmp_path) == [run]
    monkeypatch.setattr(theory.setups, "N_CASES", 1)
    (run,) = run_setup(SETUPS["statements"], None, Place())
    assert set(run.held.values()) == {1}


def test_bad_input():
    result = CliRunner().invoke(app, ["reproduce", "theory", "--setup", "digits", "--device", "abacus"])
    assert isinstance(result.exception, InputError)


def test_the_kept_runs_are_of_every_setup_and_pass_no_frontier():
    runs = STUDY.read(DOCS / "runs")
    assert [run.setup for run in runs] == list(SETUPS)
    assert runs[0].held == dict.fromkeys(STATEMENTS, N_CASES)
    for trade in (trade for run in runs for trade in run.trades.values()):
        assert all(
            point["isoscore"] < point["ceiling"] + 1e-9 for point in (trade["start"], *trade["points"])
        )
