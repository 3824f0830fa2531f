from __future__ import annotations

import gzip
import itertools
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from isoscope.encoders import TokenStates
from isoscope.errors import FileError, InputError
from isoscope_papers.contrastive.comparison import rows
from isoscope_papers.contrastive.run import (
    Geometry,
    geometry_of,
    keep_run,
    layer_readings,
    measure_geometry,
    read_runs,
    token_rows,
    type_rows,
)
from isoscope_papers.contrastive.setups import CLEAN, PAPER, REMOVED, SETUPS, Setup, chosen_setups
from isoscope_papers.verdicts import Verdict

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
    found = layer_readings(states, 1, PAPER, seeds=[0, 1, 2])
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
    found = layer_readings(states, 2, CLEAN, seeds=[])
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
    plain = layer_readings(states, 1, CLEAN, seeds=[0, 1])
    for quirk, name in (({"sampled": True}, "anisotropy"), ({"diagonal": True}, "top_share")):
        assert layer_readings(states, 1, replace(CLEAN, **quirk), seeds=[0, 1])[name] != plain[name]


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


def test_runs_are_kept_and_read_again(tmp_path, make_states) -> None:
    found = geometry_of(Setup("my/model", "mine", "my/model"), make_states(), seeds=[3, 4])
    path = keep_run(found, tmp_path / "runs")
    assert path.name == "contrastive-my_model.json"
    assert read_runs(tmp_path / "runs") == [found]
    path.write_text("{}")
    with pytest.raises(FileError, match="not a kept run"):
        read_runs(tmp_path / "runs")
    with pytest.raises(FileError, match="cannot be made"):
        keep_run(found, path / "runs")
    with pytest.raises(InputError, match="holds no runs"):
        read_runs(tmp_path)


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
    with pytest.raises(InputError, match="not known; wanted all"):
        chosen_setups(["bert"])
    with pytest.raises(InputError, match="exclude each other"):
        chosen_setups(["minilm"], "x")
    assert chosen_setups(None, "all-mpnet-base-v2") == [SETUPS["mpnet"]]


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


def test_a_model_against_the_one_before(tmp_path, tiny_bert) -> None:
    data = write_sentences(tmp_path)
    mine = Setup("tiny", "tiny", str(tiny_bert))
    found = measure_geometry(mine, before=str(tiny_bert), data=data, seeds=2, progress=False)
    assert found.n_sentences == 40
    assert len(found.paper) == len(found.clean) == 3
    assert found.n_special == 80
    assert found.change["name"] == found.tokens["name"]
    assert set(found.change["change"]) == {0.0}  # nothing changed
    assert found.change["before"] == Path(tiny_bert).name
    assert not rows(found)[0].published
    assert found.seconds > 0


def test_a_causal_model_has_no_padding_and_its_sink_is_named(tmp_path, tiny_gpt) -> None:
    data = write_sentences(tmp_path)
    found = measure_geometry(Setup("tiny", "tiny", str(tiny_gpt)), data=data, seeds=2, progress=False)
    assert found.n_special == 0
    assert any('token "boom"' in name for name in found.sinks["names"])
    assert len(found.without_sinks) == 4


@pytest.mark.skipif(DATA is None, reason="needs the data folder: ISOSCOPE_DATA")
def test_minilm_on_stsb_is_as_published() -> None:
    pytest.importorskip("transformers", reason="needs the extra `text`")
    try:
        found = measure_geometry(SETUPS["minilm"], data=DATA, seeds=12, device="cpu", progress=False)
    except InputError as error:
        pytest.skip(str(error))
    assert found.n_types == 454
    compared = [row for row in rows(found) if row.verdict is not Verdict.UNPUBLISHED]
    assert len(compared) > 40
    assert [row for row in compared if row.verdict is not Verdict.REPRODUCED] == []
    theirs = SETUPS["minilm"].published
    for name in ("self_similarity", "intra_similarity"):
        ours = [reading[name] for reading in found.paper]
        assert ours == pytest.approx(getattr(theirs, name), abs=6e-5)  # rounding of four decimals
    r2 = dict(zip(found.informativity["k"], found.informativity["clean"]["mean"], strict=True))
    assert r2[2] > 0.99  # without special tokens nothing falls at k = 2


def test_kept_runs_name_every_field(make_states) -> None:
    found = geometry_of(SETUPS["minilm"], make_states(), seeds=2)
    assert isinstance(found, Geometry)
    assert found.n_types == len(WORDS) + 3  # and [CLS], [SEP], [PAD]
    assert [round(sum(shares), 9) for shares in found.shares.values()] == [1, 1]
    assert found.tokens["count"] == sorted(found.tokens["count"], reverse=True)
