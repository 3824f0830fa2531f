from __future__ import annotations

import gzip
import itertools
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from isoscope import Space
from isoscope.cli.app import app
from isoscope.errors import InputError
from isoscope.models import TokenStates
from isoscope_papers.contrastive import run as measuring
from isoscope_papers.contrastive.findings import findings, rows
from isoscope_papers.contrastive.last_layer import intra_readings, last_layer
from isoscope_papers.contrastive.run import (
    Geometry,
    geometry_of,
    layer_readings,
    measure_geometry,
    token_rows,
    type_rows,
)
from isoscope_papers.contrastive.setups import CLEAN, PAPER, REMOVED, SETUPS, Setup
from isoscope_papers.contrastive.study import STUDY, sections
from isoscope_papers.contrastive.tokens import agreement, word
from isoscope_papers.study import Place
from isoscope_papers.verdict import Verdict

WORDS = ["a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat"]
DATA = os.environ.get("ISOSCOPE_DATA")


def cosine(a, b) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def tokens_of(states: TokenStates) -> list[tuple[int, str, bool, bool]]:
    known = states.rows
    names = [known.types.names[code] for code in known.types.codes.tolist()]
    columns = (known.sentences.codes.tolist(), names, known.is_special.tolist(), known.is_padding.tolist())
    return list(zip(*columns, strict=True))


def test_the_papers_protocol_by_brute_force(make_states) -> None:
    states = make_states()
    X = states.vectors(1).double().numpy()
    tokens = tokens_of(states)
    counts = {name: sum(token[1] == name for token in tokens) for _, name, _, _ in tokens}
    by_type: dict[str, dict[int, np.ndarray]] = {}
    by_sentence: dict[int, list[np.ndarray]] = {}
    for row, (sentence, name, _, is_padding) in enumerate(tokens):
        if counts[name] >= 5:
            by_type.setdefault(name, {}).setdefault(sentence, X[row])  # the first in its sentence
        if not is_padding:
            by_sentence.setdefault(sentence, []).append(X[row])
    pairs = [
        np.mean([cosine(a, b) for a, b in itertools.combinations(list(found.values()), 2)])
        for found in by_type.values()
        if len(found) > 1
    ]
    assert "[PAD]" in by_type
    found = layer_readings(states, 1, PAPER, [0, 1, 2])
    assert found["self_similarity"] == pytest.approx(np.mean(pairs), rel=1e-9)
    to_mean = [
        np.mean([cosine(row, np.mean(group, axis=0)) for row in group]) for group in by_sentence.values()
    ]
    assert found["intra_similarity"] == pytest.approx(np.mean(to_mean), rel=1e-6)
    norms = [np.linalg.norm(X[row]) for row, token in enumerate(tokens) if not token[3]]
    assert found["norm"] == pytest.approx(np.mean(norms), rel=1e-9)
    assert found["anisotropy_sd"] > 0


def test_the_clean_definitions_by_brute_force(make_states) -> None:
    states = make_states()
    X = states.vectors(2).double().numpy()
    tokens = tokens_of(states)
    words = [row for row, token in enumerate(tokens) if not token[2] and not token[3]]
    pairs = []
    for name in WORDS:
        of_type = [X[row] for row in words if tokens[row][1] == name]
        pairs.append(np.mean([cosine(a, b) for a, b in itertools.combinations(of_type, 2)]))
    found = layer_readings(states, 2, CLEAN, [])
    assert found["self_similarity"] == pytest.approx(np.mean(pairs), rel=1e-9)
    exact = np.mean([cosine(X[a], X[b]) for a, b in itertools.combinations(words, 2)])
    assert found["anisotropy"] == pytest.approx(exact, rel=1e-6)
    assert found["anisotropy_sd"] == 0
    assert 0 < found["isoscore"] < 1


def test_each_quirk_moves_something(make_states) -> None:
    states = make_states()
    base = type_rows(states.rows, CLEAN)
    for quirk in ({"first_only": True}, {"padding": True}, {"special": True}, {"min_count": 20}):
        assert not torch.equal(type_rows(states.rows, replace(CLEAN, **quirk)), base), quirk
    assert token_rows(states.rows, PAPER).sum() > token_rows(states.rows, CLEAN).sum()
    plain = layer_readings(states, 1, CLEAN, [0, 1])
    for quirk, name in (({"sampled": True}, "anisotropy"), ({"diagonal": True}, "top_share")):
        assert layer_readings(states, 1, replace(CLEAN, **quirk), [0, 1])[name] != plain[name]


def test_readings_of_a_sentence_by_brute_force(make_states) -> None:
    states = make_states()
    space = states.space(2, rows=token_rows(states.rows, CLEAN))
    found = intra_readings(space)
    sentences = [space.vectors[space.sentences.codes == code].double().numpy() for code in range(30)]
    pairs = [np.mean([cosine(a, b) for a, b in itertools.combinations(own, 2)]) for own in sentences]
    assert found["pairs"] == pytest.approx(np.mean(pairs))
    assert found["to the mean"] == pytest.approx(layer_readings(states, 2, CLEAN, [])["intra_similarity"])
    assert found["pairs"] < found["pairs with themselves"] < found["to the mean direction"]


def test_the_last_layer_knows_dominance_from_variance_and_content_from_grammar() -> None:
    generator = torch.Generator().manual_seed(0)
    sentences = torch.arange(40).repeat_interleave(6)
    names = ["the", "of", "piano", "onion", "table", "house"] * 39 + ["the", "a", *["piano"] * 4]
    means = torch.tensor([0.0, 8, 7, 6, 5, 4, 3, 2])  # dominance by the mean, against the variance
    vectors = torch.randn(240, 8, generator=generator) * torch.arange(1, 9) + means
    vectors += 3 * torch.randn(40, 8, generator=generator)[sentences]  # each sentence its own direction
    space = Space(vectors, token_types=names, sentences=sentences)
    found = last_layer(space, space)
    assert found["dominance and squared mean"] > 0.7 > found["dominance and variance"]
    assert found["variance and r² lost, dominant dimensions"] > 0.7
    own, other = (
        found[f"function tokens and the content of {which}"] for which in ("their sentence", "another")
    )
    assert own > other
    assert found["sentence and its content"] > found["sentence and its function tokens"]  # four against two


def test_sinks_are_found_and_left_out_of_a_view_of_their_own(make_states) -> None:
    states = make_states()
    assert geometry_of(SETUPS["smollm2"], states, seeds=2).without_sinks == []
    long = {layer: vectors.clone() for layer, vectors in states.by_layer.items()}
    first_word = states.rows.positions == 1
    long[1][first_word] *= 500
    found = geometry_of(SETUPS["smollm2"], TokenStates(states.rows, long, "made"), seeds=2)
    assert found.sinks["names"][0].startswith("position 1 (norm ")
    assert found.sinks["names"][0].endswith("in layer 1)")
    assert found.sinks["share"] == pytest.approx(30 / int((~states.rows.is_padding).sum()))
    words = ~states.rows.is_padding & ~states.rows.is_special
    norms = states.vectors(1)[words & ~first_word].norm(dim=1)
    assert found.without_sinks[1]["norm"] == pytest.approx(float(norms.mean()), rel=1e-6)
    assert found.clean[1]["norm"] > 10 * found.without_sinks[1]["norm"]


def test_one_seed_has_no_spread(make_states) -> None:
    with pytest.raises(InputError, match="at least 2"):
        geometry_of(SETUPS["minilm"], make_states(), seeds=1)


def test_declarations_agree_with_each_other() -> None:
    for name, n_layers, d in (("minilm", 7, 384), ("mpnet", 13, 768)):
        theirs = SETUPS[name].published
        assert {len(theirs.anisotropy), len(theirs.self_similarity), len(theirs.intra_similarity)} == {
            n_layers
        }
        assert len(theirs.informativity) == len([k for k in REMOVED if k < d])
        for raw, less in (
            (theirs.self_similarity, theirs.adjusted_self_similarity),
            (theirs.intra_similarity, theirs.adjusted_intra_similarity),
        ):
            for value, baseline, rest in zip(raw, theirs.anisotropy, less, strict=False):
                assert value - baseline == pytest.approx(rest, abs=0.00106)  # each rounded to three decimals


def write_sentences(folder: Path) -> Path:
    rng = np.random.default_rng(7)
    (folder / "sts").mkdir()
    lines = [
        {
            "sentence1": " ".join(rng.choice([*WORDS, "boom"], size=rng.integers(3, 12))),
            "sentence2": "a",
            "score": 1,
        }
        for _ in range(40)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "sts" / "stsb_en_test.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def test_a_causal_model_has_no_padding_and_its_sink_is_named(tmp_path, tiny_gpt) -> None:
    place = Place(data=write_sentences(tmp_path))
    found = measure_geometry(Setup("tiny", "tiny", str(tiny_gpt)), place, seeds=2, progress=False)
    assert found.n_special == 0
    assert any('token "boom"' in name for name in found.sinks["names"])
    assert len(found.without_sinks) == 4


@pytest.mark.nightly
@pytest.mark.skipif(DATA is None, reason="needs the data folder: ISOSCOPE_DATA")
def test_minilm_on_stsb_is_as_published() -> None:
    assert DATA is not None
    pytest.importorskip("transformers", reason="needs the extra `text`")
    try:
        found = measure_geometry(SETUPS["minilm"], Place(Path(DATA), device="cpu"), seeds=12, progress=False)
    except InputError as error:
        pytest.skip(str(error))
    assert found.n_types == 454
    compared = [row for row in rows(found) if row.verdict is not None]
    assert len(compared) > 40
    assert [row for row in compared if row.verdict is not Verdict.HELD] == []
    theirs = SETUPS["minilm"].published
    for name in ("self_similarity", "intra_similarity"):
        ours = [reading[name] for reading in found.paper]
        assert ours == pytest.approx(getattr(theirs, name), abs=6e-5)  # rounding of four decimals
    r2 = dict(zip(found.informativity["k"], found.informativity["clean"]["mean"], strict=True))
    assert r2[2] > 0.99  # without special tokens nothing falls at k = 2


def as_published(name: str, states: TokenStates) -> Geometry:
    """Return a run that says what was published, and something in the paper's spirit where it is silent."""
    theirs = SETUPS[name].published
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
        geometry_of(SETUPS[name], states, seeds=2),
        n_sentences=1379,
        paper=layers,
        clean=[{**layer, "isoscore": 0.2} for layer in layers],
        informativity={
            "k": list(REMOVED[: len(r2)]),
            "paper": {"mean": r2, "sd": [0.01] * len(r2)},
            "clean": {"mean": [min(1.0, value + 0.1) for value in r2], "sd": [0.0] * len(r2)},
        },
    )


def verdicts(found: Geometry) -> dict[str, Verdict | None]:
    return {row.quantity: row.verdict for row in rows(found)}


@pytest.mark.parametrize("name", ["minilm", "mpnet"])
def test_what_is_published_is_reproduced_and_what_is_off_is_not(name, make_states) -> None:
    found = as_published(name, make_states())
    assert set(verdicts(found).values()) == {Verdict.HELD, None}
    for quantity, key, step in (
        ("self-similarity, layer 2", "self_similarity", 0.0006),
        ("intra-sentence, layer 2", "intra_similarity", -0.0006),
        ("anisotropy, layer 2", "anisotropy", 0.0041),
    ):
        layers = [dict(layer) for layer in found.paper]
        layers[2][key] += step
        assert verdicts(replace(found, paper=layers))[quantity] is Verdict.NOT_HELD
        layers[2][key] -= step * 0.2
        assert verdicts(replace(found, paper=layers))[quantity] is Verdict.HELD
    fewer = verdicts(replace(found, n_sentences=1000))
    assert set(fewer.values()) == {Verdict.NOT_TESTABLE, None}


def test_claims_fail_where_the_last_layer_does_not_stand_out(make_states) -> None:
    found = as_published("mpnet", make_states())
    flat = [dict(layer) for layer in found.paper]
    flat[-1] |= {"anisotropy": 0.3, "intra_similarity": 0.5, "norm": 9.0, "top_share": 0.5}
    names = ("anisotropy-output", "intra-rises", "space-toward-origin", "dimensions-flattened")

    def judgements(run: Geometry) -> list[Verdict]:
        by_claim = {one.claim: one.verdict for one in findings([run])}
        return [by_claim[f"contrastive/{name}"] for name in names]

    assert judgements(found) == [Verdict.HELD] + [Verdict.NOT_TESTABLE] * 3  # no model before training
    assert judgements(replace(found, paper=flat)) == [Verdict.NOT_HELD] * 4


def test_vanilla_models_bring_the_change(make_states) -> None:
    """The changes of two encoders are compared where both were run before training, too."""
    values = torch.rand(40, generator=torch.Generator().manual_seed(0)).tolist()

    def run(name: str, scale: float) -> Geometry:
        tokens = {"name": [f"w{k}" for k in range(40)], "count": [9] * 40,
                  "adjusted_self_similarity": [scale * value for value in values]}  # fmt: skip
        return replace(geometry_of(SETUPS[name], make_states(), seeds=2), tokens=tokens)

    runs = [run("minilm", 3.0), run("mpnet", 2.0), run("minilm-vanilla", 1.0)]
    assert "contrastive/ssc-all" not in {one.claim for one in findings(runs)}
    runs.append(run("mpnet-vanilla", 1.0))
    by_claim = {one.claim: one for one in findings(runs)}
    assert by_claim["contrastive/informativity-vanilla"].verdict is Verdict.NOT_TESTABLE  # other sentences
    assert by_claim["contrastive/ssc-all"].verdict is Verdict.HELD
    assert by_claim["contrastive/ssc-all"].subject == "MiniLM and mpnet"
    assert by_claim["contrastive/ssc-peak"].verdict is Verdict.NOT_HELD  # 1, not the paper's 0.857
    assert sections(runs)[-1].title == "Self-similarity change"


def test_models_agree_where_most_tokens_are_shared() -> None:
    first = {f"w{k}": float(k % 7) for k in range(40)}
    assert agreement(first, dict(list(first.items())[:5])) is None  # too few
    assert agreement(first, {f"w{k}": float(k % 5) for k in range(18, 58)}) is not None  # 22 of 40 in common
    assert agreement(first, {f"w{k}": float(k % 5) for k in range(22, 62)}) is None  # most are others
    assert [word("Ġthe"), word("##ing"), word("Ġ")] == ["the", "##ing", "Ġ"]


@pytest.mark.slow
def test_pages_and_figures(tmp_path, make_states) -> None:
    states = make_states()
    states.vectors(1)[states.rows.positions == 1] *= 500
    runs = [as_published(name, make_states()) for name in ("minilm", "mpnet")]
    runs.append(geometry_of(SETUPS["smollm2"], states, seeds=2))
    STUDY.write(runs, tmp_path)
    page = (tmp_path / "contrastive.md").read_text()
    assert "0.9921 ✓" in page
    assert "position 1 (norm " in page
    assert "the drop at k = 2 is that of the special tokens: r² is 0.846 with them, and 0.946 without" in page
    for name in ("layers", "dimensions", "sinks-smollm2"):
        assert (tmp_path / f"contrastive-{name}.png").exists()
        assert f"contrastive-{name}.png" in page


@pytest.fixture
def asked(monkeypatch, make_states) -> list[dict[str, Any]]:
    """Runs that need no model; what was asked of them."""
    calls: list[dict[str, Any]] = []

    def measure(setup, place, **options):
        calls.append({"setup": setup.name, "model": setup.model, "place": place, **options})
        if setup.name == "mpnet":
            raise InputError("the model is not here")
        return geometry_of(setup, make_states(), seeds=[3, 4])

    monkeypatch.setattr(measuring, "measure_geometry", measure)
    return calls


def run(*arguments: str):
    return CliRunner().invoke(app, ["reproduce", "contrastive", *arguments])


def test_options_reach_the_run(asked, tmp_path) -> None:
    found = run("-s", "minilm", "--data", str(tmp_path), "--device", "cpu", "--seeds", "4,5", "--download")
    assert found.exit_code == 0, found.output
    place = Place(tmp_path, download=True, device="cpu")
    assert asked == [{"setup": "minilm", "model": "all-MiniLM-L6-v2", "place": place, "seeds": [4, 5]}]
    assert "≠ not testable here" in found.output  # thirty sentences are not the paper's
    found = run("--model", "folder/mine", "--json")
    assert found.exit_code == 0, found.output
    assert (asked[1]["model"], asked[1]["seeds"]) == ("folder/mine", 30)
    found = run("--keep-going")
    assert "mpnet: not run: the model is not here" in found.output
    assert [call["setup"] for call in asked[2:]] == ["minilm", "mpnet", "smollm2"]


@pytest.mark.slow
def test_pages_gather_the_runs_of_earlier_calls(asked, tmp_path) -> None:
    for name in ("minilm", "smollm2"):
        assert run("-s", name, "-o", str(tmp_path)).exit_code == 0
    kept = sorted((tmp_path / "runs").iterdir())
    assert [path.name for path in kept] == ["contrastive-minilm.json", "contrastive-smollm2.json"]
    page = (tmp_path / "contrastive.md").read_text()
    assert "## MiniLM: every layer" in page
    (tmp_path / "contrastive.md").unlink()
    asked.clear()
    assert run("--report-only", "-o", str(tmp_path)).exit_code == 0
    assert asked == []
    assert (tmp_path / "contrastive.md").read_text() == page
