from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from isoscope.encoders import TokenStates
from isoscope.errors import InputError
from isoscope_papers.contrastive.comparison import change_correlation, n_for, rows, token_correlation, word
from isoscope_papers.contrastive.report import as_dict, as_text, sections, write_report
from isoscope_papers.contrastive.run import Geometry, geometry_of, read_runs, token_changes
from isoscope_papers.contrastive.setups import SETUPS, Setup
from isoscope_papers.dynamics.run import read_dynamics
from isoscope_papers.verdicts import Verdict


@pytest.fixture
def as_published(make_states) -> Callable[[str], Geometry]:
    """Runs that say what was published, and something in the paper's spirit where it is silent."""
    return lambda name: published_run(name, make_states())


def published_run(name: str, states: TokenStates) -> Geometry:
    theirs = SETUPS[name].published
    made = geometry_of(SETUPS[name], states, seeds=2)
    layers = [
        {
            "self_similarity": theirs.self_similarity[layer],
            "intra_similarity": theirs.intra_similarity[layer],
            "anisotropy": theirs.anisotropy[layer],
            "anisotropy_sd": 0.001,
            "norm": theirs.norm[layer] if theirs.norm else 9.0 - layer,
            "top_share": 0.005,
            "dimensions_for_half": theirs.dimensions_for_half,
        }
        for layer in range(len(theirs.anisotropy))
    ]
    r2 = list(theirs.informativity)
    return replace(
        made,
        n_sentences=1379,
        paper=layers,
        clean=[{**layer, "isoscore": 0.2} for layer in layers],
        informativity={
            "k": [1, 2, 3, 5, 10, 20, 50, 100, 300, 700][: len(r2)],
            "paper": {"mean": r2, "sd": [0.01] * len(r2)},
            "clean": {"mean": [min(1.0, value + 0.1) for value in r2], "sd": [0.0] * len(r2)},
        },
    )


def verdicts(found: Geometry) -> dict[str, Verdict]:
    return {row.quantity: row.verdict for row in rows(found)}


@pytest.mark.parametrize("name", ["minilm", "mpnet"])
def test_what_is_published_is_reproduced_and_what_is_off_is_not(name, as_published) -> None:
    found = as_published(name)
    assert set(verdicts(found).values()) == {Verdict.REPRODUCED, Verdict.UNPUBLISHED}
    for quantity, key, step in (
        ("self-similarity, layer 2", "self_similarity", 0.0006),
        ("intra-sentence, layer 2", "intra_similarity", -0.0006),
        ("anisotropy, layer 2", "anisotropy", 0.0041),
    ):
        layers = [dict(layer) for layer in found.paper]
        layers[2][key] += step
        assert verdicts(replace(found, paper=layers))[quantity] is Verdict.DIFFERS
        layers[2][key] -= step * 0.2
        assert verdicts(replace(found, paper=layers))[quantity] is Verdict.REPRODUCED
    r2 = {**found.informativity, "paper": {**found.informativity["paper"]}}
    r2["paper"]["mean"] = [value - 0.05 for value in r2["paper"]["mean"]]
    assert verdicts(replace(found, informativity=r2))["r², k = 2"] is Verdict.DIFFERS


def test_other_sentences_are_not_comparable(as_published) -> None:
    fewer = verdicts(replace(as_published("mpnet"), n_sentences=1000))
    assert fewer["norm, layer 0"] is Verdict.NOT_COMPARABLE
    assert fewer["last layer: anisotropy"] is Verdict.NOT_COMPARABLE


def test_claims_fail_where_the_last_layer_does_not_stand_out(as_published) -> None:
    found = as_published("mpnet")
    flat = [dict(layer) for layer in found.paper]
    flat[-1] |= {"anisotropy": 0.3, "intra_similarity": 0.5, "norm": 9.0, "top_share": 0.5}
    found = {q: v for q, v in verdicts(replace(found, paper=flat)).items() if q.startswith("last layer")}
    assert len(found) == 4
    assert set(found.values()) == {Verdict.DIFFERS}


def test_pages_and_figures(tmp_path, as_published, with_sinks) -> None:
    pytest.importorskip("matplotlib")
    runs = [as_published("minilm"), as_published("mpnet"), with_sinks]
    written = write_report(runs, tmp_path / "out", command="isoscope reproduce contrastive")
    page = (tmp_path / "out" / "contrastive.md").read_text()
    assert {path.name for path in written} == {"contrastive.json", "contrastive.md", "contrastive.html"}
    assert "0.9921 ✓" in page
    assert "✗" not in page.partition("## ")[2]
    assert "position 1 (norm " in page
    assert "the drop at k = 2 is that of the special tokens: r² is 0.846 with them, and 0.946 without" in page
    for name in ("layers", "dimensions", "sinks-smollm2"):
        assert (tmp_path / "out" / f"contrastive-{name}.png").exists()
        assert f"contrastive-{name}.png" in page
    kept = json.loads((tmp_path / "out" / "contrastive.json").read_text())
    assert len(kept["rows"]) == sum(len(rows(found)) for found in runs)


@pytest.fixture
def with_sinks(make_states) -> Geometry:
    states = make_states()
    states.vectors(1)[states.rows.positions == 1] *= 500
    return geometry_of(SETUPS["smollm2"], states, seeds=2)


def test_sections_without_a_folder_have_no_figures(as_published) -> None:
    found = sections([as_published("minilm")])
    assert not any(section.figures for section in found)
    assert [section.title for section in found] == [
        "MiniLM: every layer",
        "By clean definitions",
        "Dimensions",
        "The last layer, in direction",
        "Tokens",
    ]


def test_without_matplotlib_there_are_no_figures(tmp_path, monkeypatch, as_published) -> None:
    def absent(runs, folder):
        raise InputError("a figure needs matplotlib")

    monkeypatch.setattr("isoscope_papers.contrastive.report.draw_figures", absent)
    write_report([as_published("minilm")], tmp_path, command="x")
    assert "No figures: a figure needs matplotlib" in (tmp_path / "contrastive.md").read_text()


def test_text_has_every_row(as_published, with_sinks) -> None:
    found = as_published("minilm")
    text = as_text(found)
    assert "0.9550 ✓" in text
    assert "reproduced" in text
    assert "attention sinks: position 1" in as_text(with_sinks)
    assert as_dict([found])["runs"]["minilm"]["n_sentences"] == 1379


def tokens(found: Geometry, values: list[float]) -> Geometry:
    names = [f"w{k}" for k in range(len(values))]
    return replace(
        found, tokens={"name": names, "count": [9] * len(names), "adjusted_self_similarity": values}
    )


def test_two_models_are_correlated_over_their_tokens(tmp_path, as_published) -> None:
    made = as_published("minilm")
    values = torch.rand(40, generator=torch.Generator().manual_seed(0)).tolist()
    first, second = tokens(made, values), tokens(as_published("mpnet"), [2 * v + 1 for v in values])
    curve = token_correlation(first, second)
    assert curve is not None
    assert curve.values[-1] == pytest.approx(1)
    assert any(
        "correlation 1.000 over the 40 tokens" in note for s in sections([first, second]) for note in s.notes
    )
    assert token_correlation(first, tokens(made, values[:5])) is None  # too few
    renamed = replace(second, tokens={**second.tokens, "name": [f"w{k}" for k in range(18, 58)]})
    assert token_correlation(first, renamed) is not None  # 22 of 40 in common
    renamed.tokens["name"][:] = [f"w{k}" for k in range(22, 62)]
    assert token_correlation(first, renamed) is None  # most are others
    write_report([first, second], tmp_path, command="x")
    assert (tmp_path / "contrastive-tokens.png").exists()


def test_change_has_a_section(tmp_path, as_published, make_states) -> None:
    before = make_states(1)
    after = TokenStates(before.rows, {k: v.flip(0) for k, v in before.by_layer.items()}, "after")
    changed = token_changes(before, after)
    assert (changed["only_before"], changed["only_after"]) == (0, 0)
    assert len(set(changed["change"])) == len(changed["name"]) > 1
    many = {
        "before": "vanilla",
        "name": [f"w{k}" for k in range(30)],
        "count": [5] * 30,
        "change": torch.randn(30, generator=torch.Generator().manual_seed(1)).tolist(),
        "only_before": 2,
        "only_after": 1,
    }
    runs = [replace(as_published(name), change=many) for name in ("minilm", "mpnet")]
    curve = change_correlation(*runs)
    assert curve is not None
    assert curve.values[-1] == pytest.approx(1)
    section = next(s for s in sections(runs) if s.title == "Self-similarity change")
    assert any("against vanilla; 2 types" in note for note in section.notes)
    assert any("highest correlation 1.000" in note for note in section.notes)
    write_report(runs, tmp_path, command="x")
    assert (tmp_path / "contrastive-change.png").exists()


def test_shares_are_counted_as_the_metric_counts_them(make_states) -> None:
    found = geometry_of(SETUPS["minilm"], make_states(), seeds=2)
    assert n_for(found, 0.5) == found.paper[-1]["dimensions_for_half"]
    assert n_for(found, 0.5, "clean") == found.clean[-1]["dimensions_for_half"]
    assert n_for(found, 1.0) == found.n_dims


def test_words_lose_their_tokenizers_mark(as_published) -> None:
    assert [word("Ġthe"), word("##ing"), word("Ġ")] == ["the", "##ing", "Ġ"]
    unknown = replace(as_published("minilm"), setup="mine", model="mine")
    assert {row.verdict for row in rows(unknown)} == {Verdict.UNPUBLISHED}
    assert Setup("mine", "mine", "mine").published.anisotropy == ()


def test_the_page_of_the_documentation_is_what_the_kept_runs_give(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    kept = Path(__file__).parents[2] / "docs" / "reproduction"
    trained = read_dynamics(kept / "runs")
    write_report(
        read_runs(kept / "runs"), tmp_path, command="isoscope reproduce contrastive", dynamics=trained
    )
    wanted = (kept / "contrastive.md").read_text()
    assert (tmp_path / "contrastive.md").read_text() == wanted, "reproduce contrastive --report-only"
