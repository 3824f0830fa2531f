import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from isoscope.cli import app
from isoscope.errors import FileError, InputError
from isoscope.metrics.frontier import between_share
from isoscope.metrics.isotropy import isoscore
from isoscope.training import trade_off
from isoscope_papers.claims import Holding
from isoscope_papers.theory import run as theory
from isoscope_papers.theory.deep_classifiers import DeepRun, deep_claims, run_deep
from isoscope_papers.theory.equations import STATEMENTS
from isoscope_papers.theory.report import as_text, write_report
from isoscope_papers.theory.run import Findings, read_findings, run_theory

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
        assert run.steps[0] == 0
        assert run.steps[-1] == 150
        assert len(run.steps) == len(run.isoscore) == len(run.between_share) == len(run.score_isoscore)
        assert run.isoscore[-1] <= run.ceiling + 1e-9
        assert DeepRun.from_dict(json.loads(json.dumps(run.to_dict()))) == run
    assert deep[0].accuracy[-1] > 0.95 > deep[0].accuracy[0]
    assert deep[0].between_share[-1] > deep[0].between_share[0]
    assert deep[0].simplex == pytest.approx(2 / 7)
    assert deep[2].simplex == 1  # four labels in three dimensions
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


def run_of(start, end, share, *, width=8, n_labels=4):
    return DeepRun(
        "made", 1, width, 60, n_labels, (0, 9), (start, end), (0.2, share), (0.3, 1.0), 0.6, (0.5, 0.4)
    )


def test_claims_hold_or_not():
    held = {claim.claim.split(":")[0]: claim.holding for claim in deep_claims([run_of(0.4, 0.29, 0.95)])}
    assert set(held.values()) == {Holding.HELD}
    assert len(held) == 3
    not_held = deep_claims([run_of(0.4, 0.7, 0.95)])
    assert {claim.holding for claim in not_held} == {Holding.NOT_HELD}
    assert len(deep_claims([run_of(0.4, 0.1, 0.5)])) == 2  # nothing has collapsed
    assert len(deep_claims([run_of(0.4, 0.1, 0.95, width=3)])) == 2  # a simplex would be isotropic


@pytest.fixture(scope="module")
def found(deep):
    trades = {"noise: silhouette": trade_off(X, Y, weights=3, steps=20)}
    held = {one.key: theory.N_CASES for one in STATEMENTS}
    return Findings(held, tuple(deep), trades, ("something was left out",))


def test_report_and_back(found, tmp_path):
    pytest.importorskip("matplotlib")
    written = write_report(found, tmp_path, command="isoscope reproduce theory")
    assert [path.name for path in written] == ["theory.json", "theory.md", "theory.html"]
    page = (tmp_path / "theory.md").read_text()
    for words in ("something was left out", "Traded: noise: silhouette", "theory-deep-noise.png", "eq. 4"):
        assert words in page
    assert (tmp_path / "theory-trade-noise-silhouette.png").is_file()
    again = read_findings(tmp_path / "theory.json")
    assert again.to_dict() == found.to_dict()
    result = CliRunner().invoke(app, ["reproduce", "theory", "--report-only", "-o", str(tmp_path)])
    assert result.exit_code == 0
    assert as_text(found) in result.output
    assert (tmp_path / "theory.md").read_text() == page
    found.held["chord"] -= 1
    try:
        write_report(found, tmp_path, command="isoscope reproduce theory")
        result = CliRunner().invoke(
            app, ["reproduce", "theory", "--report-only", "-o", str(tmp_path), "--json"]
        )
        assert result.exit_code == 1
    finally:
        found.held["chord"] += 1


def test_bad_input(tmp_path):
    with pytest.raises(FileError, match="does not hold the findings"):
        read_findings(tmp_path / "absent.json")
    result = CliRunner().invoke(app, ["reproduce", "theory", "--report-only"])
    assert isinstance(result.exception, InputError)


def test_what_is_not_at_hand_is_left_out(monkeypatch):
    def absent(**_):
        raise InputError("no texts here")

    monkeypatch.setattr(theory, "polarity", absent)
    monkeypatch.setattr(theory, "supersenses", absent)
    monkeypatch.setattr(theory, "run_deep", lambda *_, **__: [run_of(0.4, 0.1, 0.5)])
    monkeypatch.setattr(theory, "checked", lambda *_, **__: 1)
    assert len(run_theory(keep_going=True).notes) == 2
    with pytest.raises(InputError, match="no texts here"):
        run_theory()


def test_the_page_is_what_its_findings_say(tmp_path):
    """The kept page, written again from the kept findings."""
    pytest.importorskip("matplotlib")
    kept = read_findings(DOCS / "theory.json")
    write_report(kept, tmp_path, command="isoscope reproduce theory")
    assert (tmp_path / "theory.md").read_text() == (DOCS / "theory.md").read_text(), "--report-only"
    assert set(kept.held) == {one.key for one in STATEMENTS}
    assert all(held == theory.N_CASES for held in kept.held.values())
    for one in kept.trades.values():
        assert all(point.isoscore < point.ceiling + 1e-9 for point in (one.start, *one.points))
    for name in (tmp_path).glob("*.png"):
        assert (DOCS / name.name).is_file()
