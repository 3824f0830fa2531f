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
from matplotlib.figure import Figure
from tests.raising import raises
from typer.testing import CliRunner

import isoscope as iso
from isoscope.cli.app import app
from isoscope.errors import FileError, InputError
from isoscope.tracking.trajectory import Trajectory
from isoscope_papers.corpora import Corpus
from isoscope_papers.dynamics import run as training
from isoscope_papers.dynamics.figures import _scaled
from isoscope_papers.dynamics.findings import GLOVE_RHO, findings
from isoscope_papers.dynamics.run import (
    Dynamics,
    Material,
    as_written,
    rows_of,
    run_dynamics,
    run_path,
    token_change,
)
from isoscope_papers.dynamics.setups import EVERY, STARTS, Setup, Start, chosen_runs, variants
from isoscope_papers.dynamics.study import STUDY, sections
from isoscope_papers.dynamics.views import INTRA, SELF, averaged, views
from isoscope_papers.runs import keep
from isoscope_papers.study import Place
from isoscope_papers.verdict import Finding, Verdict

WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")
SOURCE = random.Random(0)
SENTENCES = tuple(" ".join(SOURCE.choices(WORDS, k=SOURCE.randint(3, 9))) for _ in range(80))


def material_of(runs: Path | None = None) -> Material:
    """Made sentences in place of the corpora."""
    made = Material(Place(device="cpu", runs=runs), progress=False)
    made.pairs = Corpus("made", (SENTENCES[:70], tuple(" ".join(s.split()[::-1]) for s in SENTENCES[:70])))
    made.probe = list(SENTENCES[:30])
    made.scored = Corpus(
        "made", (SENTENCES[:10], SENTENCES[10:20]), tuple(map(float, range(10))), "test", "made"
    )
    return made


@pytest.fixture(scope="module")
def trained(tiny_bert: Path) -> Dynamics:
    pytest.importorskip("accelerate", reason="needs the extra `training`")
    setup = Setup(Start("tiny", "tiny", str(tiny_bert), 1e-3), "tau=0.05", batch_size=32)
    return run_dynamics(setup, material_of(), epochs=3)


@pytest.mark.slow
def test_a_run_is_followed_from_its_start_to_its_end(trained: Dynamics, tiny_bert: Path) -> None:
    assert trained.steps == 6
    assert trained.rows["step"] == [0, 6]
    assert trained.rows["loss"][0] is None
    states = iso.models.token_states(SENTENCES[:30], model=tiny_bert, device="cpu")
    space = states.space(2, rows=~states.rows.is_special)
    for column, value in (
        ("mean_cosine", iso.mean_cosine(space)),
        ("self_similarity", iso.metrics.self_similarity(space)),
        ("intra_similarity", iso.metrics.intra_similarity(space)),
        ("adjusted_intra_similarity", iso.metrics.intra_similarity(space) - iso.mean_cosine(space)),
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
        iso.models.token_states(texts, model=tiny_bert, device="cpu").sentence_space(2).vectors
        for texts in material_of().scored.columns
    ]
    cosines = torch.nn.functional.cosine_similarity(*vectors)
    assert trained.task["before"] == pytest.approx(stats.spearmanr(cosines, range(10)).statistic, abs=1e-6)


@pytest.mark.slow
def test_a_causal_model_has_two_views(tiny_gpt: Path) -> None:
    pytest.importorskip("accelerate", reason="needs the extra `training`")
    start = Start("gpt", "GPT", str(tiny_gpt), 1e-3, ("mean", "lasttoken", "max"))
    material = material_of()
    found = run_dynamics(Setup(start, "tau=0.05", batch_size=32), material, epochs=1)
    assert found.rows["sink_share"][0] == pytest.approx(30 / sum(len(s.split()) for s in SENTENCES[:30]))
    assert found.rows["mean_cosine"][0] != pytest.approx(found.rows["mean_cosine_without_sinks"][0], rel=0.02)
    assert [view.title for view in views([found])] == ["GPT", "GPT, no sinks"]
    assert found.change["sinks"] > 0
    subjects = [one.subject for one in findings([found]) if one.claim == "contrastive/intra-unique"]
    assert subjects == ["GPT, no sinks"]  # of what is read without sinks
    with raises(InputError, hint="lasttoken"):
        run_dynamics(Setup(start, "pooling=cls", pooling="cls"), material)
    with pytest.raises(InputError, match=r"`precision` must be one of .*, got 'half'"):
        run_dynamics(Setup(start, "tau=1"), material, precision="half")


@pytest.mark.slow
def test_the_masked_model_is_trained_once_and_kept(tmp_path: Path, tiny_bert: Path, monkeypatch) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate", reason="needs the extra `training`")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    folder = tmp_path / "tokenizer"
    tokenizer.save_pretrained(folder)
    monkeypatch.setattr("isoscope_papers.dynamics.run._TOKENIZER", str(folder))
    asked = []

    def texts(name: str, split: str, **_: Any) -> Corpus:
        asked.append((name, split))
        return Corpus(name, (SENTENCES,))

    monkeypatch.setattr("isoscope_papers.dynamics.run.load_texts", texts)
    small = {"n_layers": 1, "n_dims": 16, "n_heads": 2, "window": 12, "batch_size": 8}
    train = training.train_masked_lm
    monkeypatch.setattr(training, "train_masked_lm", lambda *texts, **o: train(*texts, **o | small))
    monkeypatch.setattr(training, "MASKED_STEPS", 3)
    setup = replace(chosen_runs(["masked:tau=1"])[0], batch_size=32)
    with pytest.raises(InputError, match="Pass `output`"):
        run_dynamics(setup, material_of(), epochs=1)
    found = run_dynamics(setup, material_of(tmp_path / "runs"), epochs=1)
    assert asked == [("wikitext2", "train"), ("wikitext2", "valid")]
    assert found.pretraining["held_out_loss"] > 0
    assert found.pretraining["steps"] == 3
    assert (tmp_path / "models" / "masked" / "model" / "model.safetensors").exists()
    assert found.layers == {}  # of the base run only
    again = run_dynamics(setup, material_of(tmp_path / "runs"), epochs=1)
    assert len(asked) == 2
    assert again.rows == found.rows


def test_wikitext_reads_as_it_was_written(tiny_bert: Path) -> None:
    tokenizer = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(tiny_bert)
    text = "a <unk> cat , 5 @,@ 000 well @-@ known 1 @.@ 5"
    assert as_written(Corpus("made", ((text,),)), tokenizer) == ["a [UNK] cat , 5,000 well-known 1.5"]


def test_runs_are_kept_and_read_again(trained: Dynamics, tmp_path: Path) -> None:
    setup = Setup(Start("a/b", "x", "y", 1.0), "tau=0.05")
    path = run_path(tmp_path / "runs", setup, 0)
    assert path.name == "dynamics-a-b-tau-0.05.json"
    assert run_path(tmp_path, setup, 3).name == "dynamics-a-b-tau-0.05-seed-3.json"
    keep(trained, path)
    assert STUDY.read(tmp_path / "runs") == [trained]
    path.write_text("{}")
    with pytest.raises(FileError, match="does not hold a run"):
        STUDY.read(tmp_path / "runs")


def test_setups_are_those_of_the_paper() -> None:
    names = [setup.variant for setup in variants(STARTS["smollm2"])]
    assert names == [
        "tau=0.001", "tau=0.01", "tau=0.025", "tau=0.05", "tau=0.1", "tau=1", "batch=16", "batch=256",
        "pooling=lasttoken", "pooling=max",
    ]  # fmt: skip
    assert len(chosen_runs(["all"])) == 20
    assert len(chosen_runs(["masked"])) == 10
    assert {setup.batch_size * setup.every for setup in chosen_runs(["all"])} == {64 * EVERY}
    own = chosen_runs(["tau=1", "pooling=max"], "folder/mine")
    assert [setup.name for setup in own] == ["mine:tau=1", "mine:pooling=max"]
    assert chosen_runs(["tau=1"], "smollm2-135m")[0].start is STARTS["smollm2"]
    for wrong in (["bert"], ["masked:tau=7"], ["tau=1"]):
        with raises(InputError, argument="setup", wanted="^all, masked, smollm2"):
            chosen_runs(wrong)


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
        "tau=0.001": (0.8, 9.0, 0.08, 0.05), "tau=0.025": (0.3, 4.0, 0.45, 0.4),
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


TESTED = (
    "intra-rises", "temperature-anisotropy", "temperature-norm",
    "low-raises-anisotropy", "low-raises-norm", "low-offset", "hot-self", "hot-intra", "batch-small",
    "cls-slowest", "mean-best", "max-excessive", "function-falls", "content-rises", "norm-output",
    "pooling-consistent",
)  # fmt: skip


def judged(runs: list[Dynamics]) -> dict[str, Finding]:
    found = {one.claim.removeprefix("contrastive/"): one for one in findings(runs)}
    return {name: found[name] for name in TESTED if name in found}


def verdicts(runs: list[Dynamics]) -> dict[str, Verdict]:
    return {name: one.verdict for name, one in judged(runs).items()}


def test_claims_hold_on_what_the_paper_describes(make: Make) -> None:
    found = judged(as_claimed(make))
    assert set(found) == set(TESTED)
    assert {one.verdict for one in found.values()} == {Verdict.HELD}
    assert found["hot-self"].ours == "adjusted self-similarity 0.300 against 0.400"
    assert found["function-falls"].ours == "mean −0.200; 2 of 2 tokens"
    assert found["hot-self"].evidence == "masked, 7 trainings on 70 entailment pairs, 1 seed"


def test_claims_fail_on_the_contrary(make: Make) -> None:
    runs = as_claimed(make)
    mirrored = []
    for run in runs:
        rows = dict(run.rows)
        for name, first in START.items():
            rows[name] = [first, 2 * first - rows[name][-1]]
        change = run.change and {**run.change, "change": [-value for value in run.change["change"]]}
        mirrored.append(replace(run, rows=rows, change=change))
    found = verdicts(mirrored)
    assert set(found) == set(TESTED)
    assert {name for name, verdict in found.items() if verdict is not Verdict.NOT_HELD} == {"batch-small"}
    far = [run for run in runs if run.variant != "batch=16"]
    far.append(make("batch=16", mean_cosine=0.9, mean_norm=30.0, **{SELF: 0.9, INTRA: 0.0}))
    assert verdicts(far)["batch-small"] is Verdict.NOT_HELD
    partly = make("tau=0.1", mean_cosine=0.2, mean_norm=3.5, **{SELF: 0.3, INTRA: 0.7})
    found = judged([partly if run.variant == "tau=0.1" else run for run in runs])
    for name, low in (("temperature-anisotropy", 0.001), ("temperature-norm", 0.025)):
        assert found[name].shown.endswith(f": from τ = {low} to 0.05; the contrary from τ = 0.05 to 0.1")


def test_what_one_seed_cannot_tell_is_inconclusive(make: Make) -> None:
    """Differences of cosines under 0.01 and of norms under 1 % count as none."""
    runs = [run for run in as_claimed(make) if run.variant not in ("tau=0.1", "pooling=max", "tau=0.001")]
    runs += [
        make("tau=0.1", mean_cosine=0.095, mean_norm=2.96, **{SELF: 0.395, INTRA: 0.607}),
        make("tau=0.001", mean_cosine=0.509, mean_norm=5.04, **{SELF: 0.095, INTRA: 0.05}),
        make("pooling=max", mean_cosine=0.1, mean_norm=3.0, **{SELF: 0.3, INTRA: 0.605}),
    ]
    small = {"name": ["the", "piano"], "change": [-0.009, 0.009], "sinks": 0.0}
    found = verdicts([replace(run, change=small if run.change else {}) for run in runs])
    assert {name for name, verdict in found.items() if verdict is Verdict.INCONCLUSIVE} == {
        "hot-self", "hot-intra", "low-raises-anisotropy", "low-raises-norm", "function-falls",
        "content-rises",
    }  # fmt: skip
    partly = {"temperature-anisotropy", "temperature-norm", "mean-best", "max-excessive"}
    assert {name for name, verdict in found.items() if verdict is Verdict.CONDITION} == partly
    assert Verdict.NOT_HELD not in found.values()


def test_the_best_of_three_is_not_the_second(make: Make) -> None:
    """Ahead of one and behind another does not hold under a condition."""
    runs = [make("tau=0.05", mean_cosine=0.1), make("pooling=cls", mean_cosine=0.2)]
    runs.append(make("pooling=max", mean_cosine=0.05))
    assert verdicts(runs)["mean-best"] is Verdict.NOT_HELD


def test_the_geometry_is_related_to_the_task(make: Make) -> None:
    """A run that is more anisotropic than the start and scores as well says that isotropy is not why."""
    runs = [
        replace(run, task={"before": 0.4, "after": 0.6 + place / 1000})
        for place, run in enumerate(as_claimed(make))
    ]
    found = {one.claim: one for one in findings(runs)}
    assert found["contrastive/gain-not-isotropy"].verdict is Verdict.HELD
    assert found["contrastive/vanilla-below-glove"].verdict is Verdict.NOT_TESTABLE  # no BERT
    assert found["contrastive/contrastive-isotropy"].verdict is Verdict.NOT_HELD  # 0.1 is not about 0
    assert found["contrastive/intra-and-performance"].verdict is Verdict.INCONCLUSIVE
    runs = [
        replace(run, start="bert", task={"before": 0.5, "after": 0.9 - run.rows["mean_cosine"][-1]})
        for run in runs
    ]
    found = {one.claim: one for one in findings(runs)}
    assert found["contrastive/gain-not-isotropy"].verdict is Verdict.NOT_HELD
    assert found["contrastive/contrastive-improves"].condition == "at τ = 0.025, 0.05, 0.1"
    assert found["contrastive/vanilla-below-glove"].verdict is Verdict.NOT_HELD


def test_glove_scores_as_the_kept_run_of_corrections_says() -> None:
    path = Path(__file__).parents[2] / "docs" / "reproduction" / "runs" / "corrections-glove.json"
    similarity = json.loads(path.read_text())["results"][0]["tasks"]["similarity"]
    assert similarity["n_items"] == 1379
    assert similarity["baseline"] == pytest.approx(GLOVE_RHO, abs=0.0005)


def test_a_sink_of_before_or_after_is_left_out_of_the_change(tiny_bert: Path) -> None:
    states = iso.models.token_states(SENTENCES[:30], model=tiny_bert, layers=[2], device="cpu")
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
    assert notes[-2] == (
        "masked: declared but not run: tau=0.001, tau=0.01, tau=0.025, tau=0.1, batch=16, batch=256, "
        "pooling=cls, pooling=max"
    )
    titles = [section.title for section in sections(short)]
    assert "Temperature" in titles
    assert "Batch size" not in titles  # one size is no comparison
    whole = [make(setup.variant) for setup in variants(STARTS["masked"])]
    assert not [note for note in sections(whole)[0].notes if "not run" in note]


def test_one_scale_for_all_rows_of_a_metric() -> None:
    for values, wanted in (
        ([[0.02, 0.9], [0.3, 0.4]], "log"),
        ([[0.2, 0.9], [0.3, 0.4]], "linear"),
        ([[0.02, 0.9], [-0.1, 0.4]], "linear"),
    ):
        panels = Figure().subplots(2, 1)
        _scaled(panels, values)
        assert [panel.get_yscale() for panel in panels] == [wanted, wanted]


def test_claims_wait_for_their_runs(make: Make) -> None:
    assert verdicts([make("tau=0.1")]) == {}
    assert set(verdicts([make("tau=0.05")])) >= {"norm-output", "intra-rises"}
    assert set(verdicts([make("tau=0.001")])) == {"low-raises-anisotropy", "low-raises-norm", "low-offset"}


def test_seeds_are_averaged(make: Make) -> None:
    first, second = make("tau=0.05", mean_cosine=0.1), make("tau=0.05", mean_cosine=0.3)
    (found,) = averaged([first, replace(second, seed=1, task={"before": 0.0, "after": 1.0})])
    assert found.rows["mean_cosine"] == [0.5, pytest.approx(0.2)]
    assert found.rows["loss"][0] is None
    assert found.task["after"] == pytest.approx((first.task["after"] + 1) / 2)


def test_seeds_of_other_epochs_have_no_mean(make: Make) -> None:
    short = make("tau=0.05")
    long = replace(short, seed=1, epochs=5, rows={name: [*v, v[-1]] for name, v in short.rows.items()})
    with pytest.raises(InputError, match=r"masked:tau=0\.05 has 3 epochs of seed 0, 5 epochs of seed 1"):
        sections([short, long])


@pytest.mark.parametrize("metric", ["mean_norm", "mean_cosine"])
def test_a_run_with_an_undefined_measurement_is_left_out_and_named(make: Make, metric: str) -> None:
    """A training that diverged, or has sinks only, is no reason to write no page."""
    runs = [
        replace(run, rows={name: [*v, v[-1]] for name, v in run.rows.items()}) for run in as_claimed(make)
    ]
    base = next(run for run in runs if run.variant == "tau=0.05")
    other = replace(base, seed=1, rows={**base.rows, metric: [base.rows[metric][0], None, None]})
    assert verdicts([*runs, other]) == verdicts(runs)
    assert "left out, since a metric has no value at some update: tau=0.05 of seed 1" in " ".join(
        sections([*runs, other])[0].notes
    )
    assert "tau=0.05: τ = 0.05" in STUDY.as_text([other])
    layers = {when: {**columns, metric: [None, 0.1, 0.2]} for when, columns in base.layers.items()}
    claims = {one.claim for one in findings([replace(base, layers=layers)])}
    assert "contrastive/norm-output" in claims
    assert "contrastive/intra-unique" not in claims  # one on layers


@pytest.mark.slow
def test_the_spread_of_seeds_is_said(make: Make) -> None:
    runs = as_claimed(make)
    assert "one seed a run" in sections(runs)[0].notes[-1]
    other = replace(next(run for run in runs if run.variant == "tau=0.05"), seed=1)
    other = replace(other, rows={**other.rows, "mean_cosine": [0.5, 0.3]})
    assert "over 2 seeds: anisotropy 0.1414, mean norm 0.0000" in sections([*runs, other])[0].notes[-1]


def test_the_loss_of_a_row_is_the_mean_since_the_row_before() -> None:
    columns = {
        name: np.array([0.0, 2.0, 5.0]) for name in ("seed", "step", "loss", "accuracy", "mean_cosine")
    }
    columns["mean_cosine"] = np.array([0.5, np.nan, 0.25])
    rows = rows_of(Trajectory(columns, {}, 0), [1.0, 3.0, 5.0, 6.0, 10.0])
    assert rows == {"step": [0, 2, 5], "loss": [None, 2.0, 7.0], "mean_cosine": [0.5, None, 0.25]}


@pytest.mark.slow
def test_pages_have_every_question_and_a_figure_each(make: Make, tmp_path: Path) -> None:
    runs = as_claimed(make)
    runs += [replace(run, start="gpt", title="GPT") for run in runs]
    STUDY.write(runs, tmp_path)
    found = {section.title: section for section in sections(runs)}
    assert list(found) == [
        "The trainings", "Temperature", "Batch size", "Pooling", "Every layer", "Self-similarity change",
        "Equation 17",
    ]  # fmt: skip
    assert {path.stem for path in tmp_path.glob("*.pdf")} == {
        "dynamics-temperatures", "dynamics-batches", "dynamics-poolings", "dynamics-bounds",
    }  # fmt: skip
    table = found["Temperature"].cells
    assert [cells[:3] for cells in table[:2]] == [
        ("masked", "start", "0.500"),
        ("masked", "τ = 0.001", "0.800"),
    ]
    words = found["Self-similarity change"].cells[0]
    assert words[1].startswith("piano · onion")
    assert words[2].startswith("12 · the")
    json.dumps(STUDY.as_dict(runs), allow_nan=False)


@pytest.fixture
def trainings(monkeypatch, make: Make) -> list[dict[str, Any]]:
    """Trainings that need no model; what was asked of them."""
    calls: list[dict[str, Any]] = []

    def train(setup, material, **options):
        calls.append({"setup": setup.name, "place": material.place, **options})
        run = make(setup.variant, start=setup.start.name, mean_cosine=0.25)
        about = {"title": setup.start.title, "batch_size": setup.batch_size, "pooling": setup.pooling}
        return replace(run, **about, **options)

    monkeypatch.setattr(training, "run_dynamics", train)
    return calls


def run(*arguments: str):
    return CliRunner().invoke(app, ["reproduce", "dynamics", *arguments])


def test_trainings_take_their_options(trainings, tmp_path: Path) -> None:
    found = run(
        "-s", "masked:tau=0.1", "-s", "smollm2:batch=16", "--seeds", "2,3", "--epochs", "5", "--precision",
        "tf32", "--device", "cpu", "--data", str(tmp_path),
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert [(call["setup"], call["seed"]) for call in trainings] == [
        ("masked:tau=0.1", 2), ("masked:tau=0.1", 3), ("smollm2:batch=16", 2), ("smollm2:batch=16", 3),
    ]  # fmt: skip
    assert trainings[0] == {
        "setup": "masked:tau=0.1", "place": Place(tmp_path, device="cpu"), "seed": 2, "epochs": 5,
        "precision": "tf32",
    }  # fmt: skip
    assert "SmolLM2, batch=16: τ = 0.05, batches of 16" in found.output
    assert "anisotropy 0.500 → 0.250" in found.output
    trainings.clear()
    assert run("--model", "folder/mine", "-s", "tau=1").exit_code == 0
    assert [(call["setup"], call["seed"], call["epochs"]) for call in trainings] == [("mine:tau=1", 0, 3)]
    assert isinstance(run("-s", "minilm").exception, InputError)


@pytest.mark.slow
def test_a_training_that_is_kept_is_not_run_again(trainings, tmp_path: Path) -> None:
    first = run("-s", "masked:tau=0.05", "-o", str(tmp_path))
    assert first.exit_code == 0, first.output
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["dynamics-masked-tau-0.05.json"]
    found = run("-s", "masked:tau=0.05,masked:tau=1", "-o", str(tmp_path), "--json")
    assert found.exit_code == 0, found.output
    assert [call["setup"] for call in trainings] == ["masked:tau=0.05", "masked:tau=1"]
    assert "contrastive/intra-rises" in {one["claim"] for one in json.loads(found.stdout)["claims"]}
    other = run("-s", "masked:tau=1", "-o", str(tmp_path), "--epochs", "4")
    assert "was run with epochs 3, now 4" in str(other.exception)
