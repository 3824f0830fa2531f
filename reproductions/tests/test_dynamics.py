"""Runs of the paper's training dynamics on tiny models: what is read, kept, skipped and claimed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import FileError, InputError
from isoscope.training.trajectory import Trajectory
from isoscope_papers.claims import Holding
from isoscope_papers.corpora import SimilarityPairs, Texts
from isoscope_papers.dynamics import claims
from isoscope_papers.dynamics.readings import token_change
from isoscope_papers.dynamics.report import as_dict, as_text, sections
from isoscope_papers.dynamics.run import (
    Dynamics,
    Material,
    as_written,
    keep_dynamics,
    read_dynamics,
    read_one,
    rows_of,
    run_dynamics,
    run_path,
)
from isoscope_papers.dynamics.setups import EVERY, STARTS, Setup, Start, chosen_setups, variants
from isoscope_papers.dynamics.views import INTRA, SELF, averaged, views

WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")
SOURCE = random.Random(0)
SENTENCES = tuple(" ".join(SOURCE.choices(WORDS, k=SOURCE.randint(3, 9))) for _ in range(80))


def material_of(**options: Any) -> Material:
    """Made sentences in place of the corpora."""
    made = Material(device="cpu", progress=False, **options)
    made.pairs = Texts("made", (SENTENCES[:70], tuple(" ".join(s.split()[::-1]) for s in SENTENCES[:70])))
    made.probe = SENTENCES[:30]
    made.scored = SimilarityPairs(
        "made", (SENTENCES[:10], SENTENCES[10:20]), tuple(map(float, range(10))), "test", "made"
    )
    return made


@pytest.fixture(scope="module")
def trained(tiny_bert: Path) -> Dynamics:
    pytest.importorskip("accelerate", reason="needs the extra `training`")
    setup = Setup(Start("tiny", "tiny", str(tiny_bert), 1e-3), "tau=0.05", batch_size=32)
    return run_dynamics(setup, material_of(), epochs=3)


def test_a_run_is_followed_from_its_start_to_its_end(trained: Dynamics, tiny_bert: Path) -> None:
    assert trained.steps == 6
    assert trained.rows["step"] == [0, 6]
    assert trained.rows["loss"][0] is None
    states = iso.token_states(SENTENCES[:30], model=tiny_bert, device="cpu")
    space = states.space(2, rows=~states.rows.is_special)
    for column, value in (
        ("mean_cosine", iso.mean_cosine(space)),
        ("self_similarity", iso.self_similarity(space)),
        ("intra_similarity", iso.intra_similarity(space)),
        ("adjusted_intra_similarity", iso.intra_similarity(space) - iso.mean_cosine(space)),
    ):
        assert trained.rows[column][0] == pytest.approx(value, rel=1e-4)
        assert trained.layers["before"][column][-1] == pytest.approx(value, rel=1e-4)
        assert trained.layers["after"][column][-1] == pytest.approx(trained.rows[column][-1], rel=1e-4)
    assert len(trained.layers["after"]["mean_norm"]) == 3
    assert trained.rows["mean_cosine"][0] != trained.rows["mean_cosine"][-1]
    assert trained.task["before"] != trained.task["after"]
    assert set(trained.change["name"]) <= set(WORDS)
    assert trained.change["sinks"] == 0


def test_the_task_is_ranked_as_scipy_ranks_it(trained: Dynamics, tiny_bert: Path) -> None:
    stats = pytest.importorskip("scipy.stats")
    vectors = [
        iso.token_states(texts, model=tiny_bert, device="cpu").sentence_space(2).vectors
        for texts in material_of().scored.columns
    ]
    cosines = torch.nn.functional.cosine_similarity(*vectors)
    assert trained.task["before"] == pytest.approx(stats.spearmanr(cosines, range(10)).statistic, abs=1e-6)


def test_a_causal_model_has_two_views(tiny_gpt: Path) -> None:
    pytest.importorskip("accelerate", reason="needs the extra `training`")
    start = Start("gpt", "GPT", str(tiny_gpt), 1e-3, ("mean", "lasttoken", "max"))
    material = material_of()
    found = run_dynamics(Setup(start, "tau=0.05", batch_size=32), material, epochs=1)
    assert found.rows["sink_share"][0] == pytest.approx(30 / sum(len(s.split()) for s in SENTENCES[:30]))
    assert found.rows["mean_cosine"][0] != pytest.approx(found.rows["mean_cosine_without_sinks"][0], rel=0.02)
    assert [view.title for view in views([found])] == ["GPT", "GPT, no sinks"]
    assert found.change["sinks"] > 0
    assert [one.subject for one in claims.all_claims([found]) if one.claim == claims.CONTENT] == [
        "GPT, no sinks"
    ]
    with pytest.raises(InputError, match="take lasttoken"):
        run_dynamics(Setup(start, "pooling=cls", pooling="cls"), material)
    with pytest.raises(InputError, match="precision is 'half'"):
        run_dynamics(Setup(start, "tau=1"), material, precision="half")


def test_the_masked_model_is_trained_once_and_kept(tmp_path: Path, tiny_bert: Path, monkeypatch) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate", reason="needs the extra `training`")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    folder = tmp_path / "tokenizer"
    tokenizer.save_pretrained(folder)
    monkeypatch.setattr("isoscope_papers.dynamics.run._TOKENIZER", str(folder))
    asked = []

    def texts(name: str, split: str, **_: Any) -> Texts:
        asked.append((name, split))
        return Texts(name, (SENTENCES,))

    monkeypatch.setattr("isoscope_papers.dynamics.run.load_texts", texts)
    small = {"steps": 3, "n_layers": 1, "n_dims": 16, "n_heads": 2, "window": 12, "batch_size": 8}
    setup = replace(chosen_setups(["masked:tau=1"])[0], batch_size=32)
    with pytest.raises(InputError, match="pass --output"):
        run_dynamics(setup, material_of(), epochs=1)
    found = run_dynamics(setup, material_of(output=tmp_path, masked_options=small), epochs=1)
    assert asked == [("wikitext2", "train"), ("wikitext2", "valid")]
    assert found.pretraining["held_out_loss"] > 0
    assert found.pretraining["steps"] == 3
    assert (tmp_path / "models" / "masked" / "model" / "model.safetensors").exists()
    assert found.layers == {}  # of the base run only
    again = run_dynamics(setup, material_of(output=tmp_path), epochs=1)
    assert len(asked) == 2
    assert again.rows == found.rows


def test_wikitext_reads_as_it_was_written(tiny_bert: Path) -> None:
    tokenizer = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(tiny_bert)
    text = "a <unk> cat , 5 @,@ 000 well @-@ known 1 @.@ 5"
    assert as_written(Texts("made", ((text,),)), tokenizer) == ["a [UNK] cat , 5,000 well-known 1.5"]


def test_runs_are_kept_and_read_again(trained: Dynamics, tmp_path: Path) -> None:
    setup = Setup(Start("a/b", "x", "y", 1.0), "tau=0.05")
    path = run_path(tmp_path / "runs", setup, 0)
    assert path.name == "dynamics-a-b-tau-0.05.json"
    assert run_path(tmp_path, setup, 3).name == "dynamics-a-b-tau-0.05-seed-3.json"
    assert read_dynamics(tmp_path / "runs") == []
    keep_dynamics(trained, path)
    assert read_dynamics(tmp_path / "runs") == [trained]
    path.write_text("{}")
    with pytest.raises(FileError, match="is not a kept run"):
        read_one(path)


def test_setups_are_those_of_the_paper() -> None:
    names = [setup.variant for setup in variants(STARTS["smollm2"])]
    assert names == [
        "tau=0.001", "tau=0.01", "tau=0.025", "tau=0.05", "tau=0.1", "tau=1", "batch=16", "batch=256",
        "pooling=lasttoken", "pooling=max",
    ]  # fmt: skip
    assert len(chosen_setups(None)) == 20
    assert len(chosen_setups(["masked"])) == 10
    assert {setup.batch_size * setup.every for setup in chosen_setups(None)} == {64 * EVERY}
    own = chosen_setups(["tau=1,pooling=max"], "folder/mine")
    assert [setup.name for setup in own] == ["mine:tau=1", "mine:pooling=max"]
    assert chosen_setups(["tau=1"], "smollm2-135m")[0].start is STARTS["smollm2"]
    for wrong in (["bert"], ["masked:tau=7"], ["tau=1"]):
        with pytest.raises(InputError, match="is not known; wanted all, masked, smollm2"):
            chosen_setups(wrong)


Make = Callable[..., Dynamics]
START = {"mean_cosine": 0.5, "mean_norm": 5.0, SELF: 0.4, INTRA: 0.2}


@pytest.fixture
def make(trained: Dynamics) -> Make:
    """A run of made values, from the same start to the end given."""

    def made(variant: str, *, suffix: str = "", start: str = "masked", **ends: float) -> Dynamics:
        rows: dict[str, list[float | None]] = {
            "step": [0.0, 20.0],
            "loss": [None, 1.0],
            "sink_share": [0.0, 0.0],
        }
        for name, first in START.items():
            rows[name] = [first, ends.get(name, first)]
        rows |= {"self_similarity": [0.9, 0.8], "intra_similarity": [0.7, 0.9]}
        return replace(
            trained, start=start, title=start, variant=variant, rows=rows, batch_size=64,
            temperature=float(variant[4:]) if variant.startswith("tau=") else 0.05,
        )  # fmt: skip

    return made


def as_claimed(make: Make) -> list[Dynamics]:
    """Runs that are all the paper says."""
    ends = {
        "tau=0.001": (0.8, 9.0, 0.1, 0.05), "tau=0.025": (0.3, 4.0, 0.45, 0.4),
        "tau=0.05": (0.1, 3.0, 0.4, 0.6), "tau=0.1": (0.02, 2.0, 0.3, 0.7),
        "batch=16": (0.11, 3.1, 0.41, 0.61), "pooling=cls": (0.4, 4.0, 0.4, 0.5),
        "pooling=max": (0.2, 3.0, 0.3, 0.8),
    }  # fmt: skip
    runs = [make(name, **dict(zip(START, values, strict=True))) for name, values in ends.items()]
    change = {
        "name": ["the", ".", "Ġpiano", "onion", "12"],
        "change": [-0.3, -0.1, 0.2, 0.1, -9.0],
        "sinks": 0.0,
    }
    return [replace(run, change=change if run.variant == "tau=0.05" else {}) for run in runs]


ALL = {
    claims.ISOTROPY, claims.SHARP, claims.HIGHER_ANISOTROPY, claims.HIGHER_NORM, claims.LOW_ANISOTROPY,
    claims.LOW_NORM, claims.LOW_OFFSET, claims.HOT_SELF, claims.HOT_INTRA, claims.BATCH, claims.SLOWEST,
    claims.BEST, claims.EXCESSIVE, claims.GRAMMAR, claims.CONTENT,
}  # fmt: skip


def test_claims_hold_on_what_the_paper_describes(make: Make) -> None:
    found = {one.claim: one for one in claims.all_claims(as_claimed(make))}
    assert set(found) == ALL
    assert {one.holding for one in found.values()} == {Holding.HELD}
    assert found[claims.HOT_SELF].evidence == "0.300 against 0.400"
    assert found[claims.GRAMMAR].evidence == "mean −0.200; 2 of 2 tokens"
    assert claims.tallies(list(found.values())) == ("masked: of 15 claims 15 held",)


def test_claims_fail_on_the_contrary(make: Make) -> None:
    runs = as_claimed(make)
    mirrored = []
    for run in runs:
        rows = dict(run.rows)
        for name, first in START.items():
            rows[name] = [first, 2 * first - rows[name][-1]]
        change = run.change and {**run.change, "change": [-value for value in run.change["change"]]}
        mirrored.append(replace(run, rows=rows, change=change))
    found = {one.claim: one.holding for one in claims.all_claims(mirrored)}
    assert set(found) == ALL
    assert {name for name, holding in found.items() if holding is not Holding.NOT_HELD} == {claims.BATCH}
    far = [run for run in runs if run.variant != "batch=16"]
    far.append(make("batch=16", mean_cosine=0.9, mean_norm=30.0, **{SELF: 0.9, INTRA: 0.0}))
    batch = next(one for one in claims.all_claims(far) if one.claim == claims.BATCH)
    assert batch.holding is Holding.NOT_HELD
    partly = make("tau=0.1", mean_cosine=0.2, mean_norm=3.5, **{SELF: 0.3, INTRA: 0.7})
    runs = [partly if run.variant == "tau=0.1" else run for run in runs]
    found = {one.claim: one.holding for one in claims.all_claims(runs)}
    assert found[claims.HIGHER_ANISOTROPY] is found[claims.HIGHER_NORM] is Holding.DEPENDS


def test_what_one_seed_cannot_tell_depends(make: Make) -> None:
    """Differences of cosines under 0.01 and of norms under 1 % count as none."""
    runs = [run for run in as_claimed(make) if run.variant not in ("tau=0.1", "pooling=max", "tau=0.001")]
    runs += [
        make("tau=0.1", mean_cosine=0.095, mean_norm=2.96, **{SELF: 0.395, INTRA: 0.607}),
        make("tau=0.001", mean_cosine=0.509, mean_norm=5.04, **{SELF: 0.395, INTRA: 0.1}),
        make("pooling=max", mean_cosine=0.1, mean_norm=3.0, **{SELF: 0.3, INTRA: 0.605}),
    ]
    small = {"name": ["the", "piano"], "change": [-0.009, 0.009], "sinks": 0.0}
    runs = [replace(run, change=small if run.change else {}) for run in runs]
    found = {one.claim: one.holding for one in claims.all_claims(runs)}
    assert {claim for claim, holding in found.items() if holding is Holding.DEPENDS} == {
        claims.HIGHER_ANISOTROPY, claims.HIGHER_NORM, claims.HOT_SELF, claims.HOT_INTRA,
        claims.LOW_ANISOTROPY, claims.LOW_NORM, claims.LOW_OFFSET, claims.BEST, claims.EXCESSIVE,
        claims.GRAMMAR, claims.CONTENT,
    }  # fmt: skip
    assert Holding.NOT_HELD not in found.values()


def test_the_best_of_three_is_not_the_second(make: Make) -> None:
    """Ahead of one and behind another is no "depends"."""
    runs = [make("tau=0.05", mean_cosine=0.1), make("pooling=cls", mean_cosine=0.2)]
    runs.append(make("pooling=max", mean_cosine=0.05))
    found = {one.claim: one.holding for one in claims.all_claims(runs)}
    assert found[claims.BEST] is Holding.NOT_HELD


def test_a_sink_of_before_or_after_is_left_out_of_the_change(tiny_bert: Path) -> None:
    states = iso.token_states(SENTENCES[:30], model=tiny_bert, layers=[2], device="cpu")
    none = torch.zeros(len(states), dtype=torch.bool)
    some = none.clone()
    some[:40] = True
    counts = [
        sum(token_change((states, before), (states, after))["count"])
        for before, after in ((none, none), (some, none), (none, some))
    ]
    assert counts[0] > counts[1] == counts[2]


def test_the_page_says_what_was_not_run(make: Make) -> None:
    short = [replace(make(name), epochs=1, steps=158, seconds=40.0) for name in ("tau=0.05", "tau=1")]
    notes = sections(short)[0].notes
    assert "masked: 1 of 3 epochs, 158 updates of 474, to save device time: 40 s a run" in notes[-2]
    assert notes[-1] == (
        "masked: declared but not run: tau=0.001, tau=0.01, tau=0.025, tau=0.1, batch=16, batch=256, "
        "pooling=cls, pooling=max"
    )
    titles = [section.title for section in sections(short)]
    assert "Dynamics: temperature" in titles
    assert "Dynamics: batch size" not in titles  # one size is no comparison
    whole = [make(setup.variant) for setup in variants(STARTS["masked"])]
    assert not [note for note in sections(whole)[0].notes if "not run" in note or "device time" in note]


def test_one_scale_for_all_rows_of_a_metric() -> None:
    figure = pytest.importorskip("matplotlib.figure")
    from isoscope_papers.dynamics.figures import _scaled

    for values, wanted in (
        ([[0.02, 0.9], [0.3, 0.4]], "log"),
        ([[0.2, 0.9], [0.3, 0.4]], "linear"),
        ([[0.02, 0.9], [-0.1, 0.4]], "linear"),
    ):
        panels = figure.Figure().subplots(2, 1)
        _scaled(panels, values)
        assert [panel.get_yscale() for panel in panels] == [wanted, wanted]


def test_claims_wait_for_their_runs(make: Make) -> None:
    assert claims.all_claims([make("tau=0.1")]) == []
    assert {one.claim for one in claims.all_claims([make("tau=0.05")])} >= {claims.ISOTROPY, claims.SHARP}
    assert {one.claim for one in claims.all_claims([make("tau=0.001")])} == {
        claims.LOW_ANISOTROPY, claims.LOW_NORM, claims.LOW_OFFSET,
    }  # fmt: skip


def test_seeds_are_averaged(make: Make) -> None:
    first, second = make("tau=0.05", mean_cosine=0.1), make("tau=0.05", mean_cosine=0.3)
    (found,) = averaged([first, replace(second, seed=1, task={"before": 0.0, "after": 1.0})])
    assert found.rows["mean_cosine"] == [0.5, pytest.approx(0.2)]
    assert found.rows["loss"][0] is None
    assert found.task["after"] == pytest.approx((first.task["after"] + 1) / 2)


def test_the_spread_of_seeds_is_said(make: Make) -> None:
    runs = as_claimed(make)
    section = sections(runs)[-1]
    assert section.notes[-1].startswith("One seed a run")
    other = replace(next(run for run in runs if run.variant == "tau=0.05"), seed=1)
    other = replace(other, rows={**other.rows, "mean_cosine": [0.5, 0.3]})
    note = sections([*runs, other])[-1].notes[-1]
    assert "over 2 seeds: anisotropy 0.1414, mean norm 0.0000" in note


def test_the_loss_of_a_row_is_the_mean_since_the_row_before() -> None:
    columns = {
        name: np.array([0.0, 2.0, 5.0]) for name in ("seed", "step", "loss", "accuracy", "mean_cosine")
    }
    columns["mean_cosine"] = np.array([0.5, np.nan, 0.25])
    rows = rows_of(Trajectory(columns, {}, 0), [1.0, 3.0, 5.0, 6.0, 10.0])
    assert rows == {"step": [0, 2, 5], "loss": [None, 2.0, 7.0], "mean_cosine": [0.5, None, 0.25]}


def test_pages_have_every_question_and_a_figure_each(make: Make, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    runs = as_claimed(make)
    runs += [replace(run, start="gpt", title="GPT") for run in runs]
    found = {section.title: section for section in sections(runs, tmp_path)}
    assert list(found) == [
        "Training dynamics", "Dynamics: temperature", "Dynamics: batch size", "Dynamics: pooling",
        "Dynamics: every layer", "Dynamics: self-similarity change", "Dynamics: equation 17",
        "Dynamics: the claims",
    ]  # fmt: skip
    assert {path.stem for path in tmp_path.glob("*.pdf")} == {
        "dynamics-temperatures", "dynamics-batches", "dynamics-poolings", "dynamics-bounds",
    }  # fmt: skip
    table = found["Dynamics: temperature"].cells
    assert [cells[:3] for cells in table[:2]] == [
        ("masked", "start", "0.500"),
        ("masked", "τ = 0.001", "0.800"),
    ]
    assert found["Dynamics: the claims"].notes[0] == "masked: of 15 claims 15 held"
    assert all(not section.figures for section in sections(runs))
    words = found["Dynamics: self-similarity change"].cells[0]
    assert words[1].startswith("piano · onion")
    assert words[2].startswith("12 · the")
    json.dumps(as_dict(runs), allow_nan=False)


def test_text_says_start_and_end(trained: Dynamics, make: Make) -> None:
    text = as_text(make("tau=0.1", mean_cosine=0.25))
    assert "τ = 0.1, batches of 64, mean pooling" in text
    assert "anisotropy                     0.500 →    0.250" in text
    about = {
        "steps": 5,
        "batch_size": 2,
        "window": 8,
        "n_tokens": 1000,
        "held_out_loss": 2.0,
        "unigram_loss": 7.0,
    }
    assert "costs 2.000 nats, and 7.000 by frequency" in as_text(replace(trained, pretraining=about))
