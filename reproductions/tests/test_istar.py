"""The λ sweep: runs kept and shared between processes, statistics against scipy, findings, pages."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import isoscope as iso
from isoscope.errors import NotFiniteError
from isoscope_papers.corpora import load_task
from isoscope_papers.istar import sweep as istar_sweep
from isoscope_papers.istar.closed_forms import closed_forms
from isoscope_papers.istar.comparison import Trend, difference, sweeps_of, trend
from isoscope_papers.istar.estimators import DEBIASED, ESTIMATORS, Cell, Estimates, Estimator
from isoscope_papers.istar.findings import findings, judged_trend
from isoscope_papers.istar.populations import Known
from isoscope_papers.istar.setups import (
    MODEL,
    NONE,
    PAPER_STRENGTHS,
    STRENGTHS,
    TASKS,
    Point,
    Settings,
    chosen_strengths,
    points,
)
from isoscope_papers.istar.study import STUDY, sections
from isoscope_papers.istar.sweep import SweepRun, run_sweep
from isoscope_papers.runs import keep, read
from isoscope_papers.study import Place
from isoscope_papers.verdict import Finding, Verdict

HELD, NOT_HELD, INCONCLUSIVE = Verdict.HELD, Verdict.NOT_HELD, Verdict.INCONCLUSIVE
LAMBDAS = (-5.0, -3.0, -1.0, -0.3, -0.1, 0.0, 0.1, 0.3, 0.5, 1.0, 3.0, 5.0)


def made(point: Point, score: float | None, star: float, *, twonn: float = 10.0, **fields: Any) -> SweepRun:
    geometry = {"layer": "all", "isoscore_star": star, "isoscore_debiased": star, "mean_cosine": 0.1}
    about = {"n_train": 100, "n_test": 10**6, "n_cut": 0, "device": "cpu", "seconds": 2.0}
    failed = "the loss is nan at update 3" if score is None else None
    run = SweepRun(
        point.task, point.regularizer, point.strength, point.seed, Settings(), "accuracy", score, twonn / 2,
        geometry=(geometry | {"twonn": twonn}, {**geometry, "layer": 1}), about=about, failed=failed,
    )  # fmt: skip
    return replace(run, **fields)


def made_sweep(slope: float, *, noise: float = 0.001, task: str = "rte", seeds: int = 3) -> list[SweepRun]:
    """Isotropy rises with λ; the score with `slope` times isotropy, and a seed's own noise."""
    rng = np.random.default_rng(0)
    runs = []
    for seed in range(seeds):
        for place, strength in enumerate(LAMBDAS):
            star = 0.1 + 0.02 * place + 0.0001 * seed
            score = 0.6 + slope * star + noise * rng.normal()
            kind = NONE if strength == 0 else "istar"
            runs.append(made(Point(task, kind, strength, seed), score, star, twonn=10 + place))
        for strength in (-1.0, 1.0):
            star = 0.2 - 0.05 * strength + 0.0001 * seed
            runs.append(made(Point(task, "cosreg", strength, seed), 0.6 + slope * 0.2 - 0.03, star))
    return runs


def verdicts(runs: list[SweepRun], subject: str = "RTE") -> dict[str, Verdict]:
    return {one.claim.removeprefix("istar/"): one.verdict for one in findings(runs) if one.subject == subject}


# ---------------------------------------------------------------- statistics and findings


def test_a_difference_is_a_paired_t_interval() -> None:
    a, b = {0: 0.61, 1: 0.64, 2: 0.6, 7: 0.9}, {0: 0.58, 1: 0.6, 2: 0.61, 5: 0.1}
    wanted = stats.ttest_rel([a[k] for k in range(3)], [b[k] for k in range(3)])
    ends = wanted.confidence_interval(0.95)
    assert difference(a, b) == pytest.approx((np.mean([0.03, 0.04, -0.01]), ends.low, ends.high, 3))
    wide = wanted.confidence_interval(1 - 0.05 / 7)
    assert difference(a, b, n_choices=7)[1:3] == pytest.approx((wide.low, wide.high))
    assert difference({0: 1.0}, {0: 2.0}) is None


def test_seeds_that_agree_by_chance_are_no_proof() -> None:
    a, b = {0: 0.61, 1: 0.64, 2: 0.6}, {0: 0.60, 1: 0.63, 2: 0.59}
    found = difference(a, b, step=0.01)
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.975, 2) * 0.01 / 3**0.5)
    wide = {0: 0.9, 1: 0.2, 2: 0.6}
    assert difference(wide, b, step=0.01) == difference(wide, b)  # a floor, not a term


def test_a_trend_is_spearmans_with_a_permutation() -> None:
    rng = np.random.default_rng(1)
    curves = [rng.normal([[k], [-0.7 * k]], 1.5, size=(2, 4)) for k in range(8)]
    found = trend(curves)
    x, y = np.array([one.mean(axis=1) for one in curves]).T
    wanted = stats.permutation_test(
        (x,), lambda v: abs(stats.spearmanr(v, y).statistic), permutation_type="pairings",
        n_resamples=2000, alternative="greater", rng=rng,
    )  # fmt: skip
    assert found is not None
    assert found.rho == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found.p == pytest.approx(wanted.pvalue, abs=0.02)
    assert found.low <= found.rho <= found.high
    assert trend(curves[:3]) is None
    assert trend([np.ones((2, 3))] * 5) is None
    both = trend(curves, [one[::-1] for one in curves])
    assert both.rho == pytest.approx(found.rho)
    assert both.low <= both.rho <= both.high


def test_equal_means_share_their_rank_whatever_their_rounding() -> None:
    """Ties broken by the order of λ would add an agreement that is not there."""
    tied = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.1, 0.3]]
    assert len({float(np.mean(one)) for one in tied}) > 1  # equal but for rounding
    scores = [*tied, [0.4, 0.4, 0.4], [0.1, 0.1, 0.1]]
    found = trend([np.array([[k] * 3, one]) for k, one in enumerate(scores)])
    assert found.rho == pytest.approx(stats.spearmanr(range(5), [0, 0, 0, 1, -1]).statistic)


def test_seeds_that_disagree_widen_a_trends_interval() -> None:
    steady = trend([np.array([[k] * 3, [k + 0.01, k, k - 0.01]]) for k in range(8)])
    noisy = trend([np.array([[k] * 3, [k + 9, k, k - 9.0]]) for k in range(8)])
    assert steady.rho == noisy.rho == steady.low == 1
    assert noisy.low < 0


def test_a_trend_is_judged_by_seeds_and_by_chance() -> None:
    found = Trend(0.8, 0.5, 0.9, 0.03, 9)
    assert judged_trend(found, 1) is HELD
    assert judged_trend(found, -1) is NOT_HELD
    assert judged_trend(found, 0) is HELD
    assert judged_trend(found, 1, n_tests=2) is INCONCLUSIVE
    assert judged_trend(found, 1, n_tests=2, given=True) is HELD
    assert judged_trend(found._replace(low=-0.1), 1, given=True) is INCONCLUSIVE


def test_what_the_paper_says_can_hold() -> None:
    found = verdicts(made_sweep(-1.0))
    held = {
        "performance-falls", "istar-loss", "falls-all", "falls-small", "falls-above", "negative-beats-none",
        "small-negative-beats-none", "negative-beats-cosreg", "small-negative-beats-cosreg",
        "dimension-moves", "token-dimension-moves", "low-dimension-performs", "low-token-dimension-performs",
        "classifiers/anisotropic-training-helps", "cone-limits-expressiveness",
    }  # fmt: skip
    assert {key for key, verdict in found.items() if verdict is HELD} == held
    assert found["rises-below"] is found["uniform-improves"] is NOT_HELD


def test_and_the_contrary_can() -> None:
    found = verdicts(made_sweep(1.0))
    assert found["performance-falls"] is found["falls-all"] is found["negative-beats-none"] is NOT_HELD
    assert found["istar-loss"] is found["uniform-improves"] is HELD


@pytest.mark.slow
def test_the_papers_strengths_and_ours_are_two_claims() -> None:
    """A ρ over all λ is blind to a score that is highest in the middle; over each half it is not."""
    middle = 0.2  # IsoScore* of λ = 0
    runs = [
        replace(run, score=0.6 - abs(run.value("isoscore_star") - middle) + 1e-4 * run.seed)
        for run in made_sweep(-1.0)
    ]
    found = verdicts(runs)
    assert found["falls-above"] is found["rises-below"] is HELD
    assert found["falls-all"] is INCONCLUSIVE
    # small λ that tell otherwise do not touch the claim on the paper's λ
    turned = [
        replace(run, score=run.score + 9 * run.strength) if abs(run.strength) < 0.5 else run
        for run in made_sweep(-1.0)
    ]
    assert verdicts(turned)["performance-falls"] is HELD
    words = [one.ours for one in findings(turned) if one.claim == "istar/performance-falls"]
    assert [text.partition(",")[0] for text in words] == ["ρ −1.00 [−1.00"]
    assert "over 7 λ" in words[0]
    assert verdicts(turned)["falls-all"] is INCONCLUSIVE


@pytest.mark.slow
def test_what_lies_within_the_seeds_is_inconclusive() -> None:
    found = verdicts(made_sweep(-1.0, noise=0.5))
    assert found["negative-beats-none"] is found["falls-all"] is INCONCLUSIVE
    level = [replace(run, sentence_twonn=5 + (run.seed % 2)) for run in made_sweep(-1.0)]
    assert "dimension-moves" not in verdicts(level)  # no variation over λ, no trend


@pytest.mark.slow
def test_silhouettes_are_judged_where_runs_recorded_them() -> None:
    assert "isotropy-silhouette" not in verdicts(made_sweep(-1.0))
    runs = [replace(run, silhouette=1 - run.value("isoscore_star")) for run in made_sweep(-1.0)]
    assert verdicts(runs)["isotropy-silhouette"] is HELD


@pytest.mark.slow
def test_cosreg_is_judged_by_what_it_moves() -> None:
    runs = [
        replace(run, geometry=({**run.geometry[0], "mean_cosine": 0.1 - 0.05 * run.strength},))
        if run.regularizer == "cosreg" else run
        for run in made_sweep(0.0, noise=1e-4)
    ]  # fmt: skip
    found = verdicts(runs)
    assert found["cosreg"] is HELD
    assert found["cosreg-isotropy"] is NOT_HELD
    assert found["cone-limits-expressiveness"] is HELD
    narrow = [
        replace(run, geometry=(run.geometry[0], {"layer": 1, "mean_cosine": 0.95})) for run in made_sweep(0.0)
    ]
    assert verdicts(narrow)["narrow-cone"] is HELD
    assert verdicts(made_sweep(0.0))["narrow-cone"] is NOT_HELD


def test_the_interval_allows_for_the_choice_and_the_tasks() -> None:
    runs = [run for run in made_sweep(-1.0) if run.strength in (-1.0, -3.0, 0.0)]
    runs += [replace(run, task="mrpc") for run in runs]
    sweep = sweeps_of(runs)[0]
    scores, none = sweep.by_seed("istar", -3.0), sweep.by_seed("istar", 0.0)
    wanted = difference(scores, none, n_choices=4, step=sweep.step)
    words = [
        one.ours for one in findings(runs) if (one.claim, one.subject) == ("istar/negative-beats-none", "RTE")
    ]
    assert words == [f"λ −3: {wanted.words}, 3 seeds; of 2 λ, each by itself, 2 better, 0 worse"]


@pytest.mark.slow
def test_tasks_are_averaged_seed_by_seed() -> None:
    found = verdicts(made_sweep(-1.0) + made_sweep(1.0, task="mrpc"), "mean of 2 tasks")
    assert found["negative-beats-none"] is INCONCLUSIVE  # one up, one down
    assert found["performance-falls"] is INCONCLUSIVE
    both = verdicts(made_sweep(-1.0) + made_sweep(-1.0, task="mrpc"), "mean of 2 tasks")
    assert both["negative-beats-none"] is both["performance-falls"] is HELD


def test_other_settings_are_another_sweep() -> None:
    slow = replace(Settings(), learning_rate=1e-5)
    runs = made_sweep(-1.0) + [replace(run, settings=slow) for run in made_sweep(-1.0)]
    assert {one.subject for one in sweeps_of(runs)} == {
        "RTE (3 epochs of all, lr 1e-05, batch 32)", "RTE (3 epochs of all, lr 5e-05, batch 32)",
    }  # fmt: skip
    other = [replace(run, settings=replace(run.settings, model="bert")) for run in made_sweep(-1.0)]
    assert {one.subject for one in sweeps_of(made_sweep(-1.0) + other)} == {f"RTE, {MODEL}", "RTE, bert"}


def test_closed_forms() -> None:
    found = {one.claim.removeprefix("istar/"): one for one in closed_forms()}
    assert found["line-circle-sphere"].ours == "IsoScore 0.000, 0.500, 1.000 of a line, a circle and a sphere"
    assert "mean cosine 0.978 and 0.00" in found["cosine-two-clouds"].ours
    assert found.pop("cosine-two-clouds").verdict is Verdict.NOT_TESTABLE
    held = {"definition", "line-circle-sphere", "star-zero-shrinkage"}
    assert {key for key, one in found.items() if one.verdict is HELD} == held
    assert {one.verdict for key, one in found.items() if key not in held} == {Verdict.CONDITION}


def one_cell(biases: dict[Estimator, float], sd: float) -> Estimates:
    mean = tuple(0.5 + biases.get(one, 0.2) for one in ESTIMATORS)
    zeros = (0,) * len(ESTIMATORS)
    cell = Cell("p", "independent", 32, 400, mean, (sd,) * len(ESTIMATORS), zeros, zeros)
    return Estimates({"seed": 0}, ESTIMATORS, (Known("p", "P", "spectrum", 768, 0.5, "flat"),), (cell,))


@pytest.mark.parametrize(
    ("bias", "sd", "wanted"),
    [(0.004, 0.02, HELD), (-0.004, 0.02, HELD), (0.009, 0.04, INCONCLUSIVE), (-0.02, 0.02, NOT_HELD)],
)
def test_a_bias_is_judged_with_its_error(bias: float, sd: float, wanted: Verdict) -> None:
    estimates = one_cell({DEBIASED: bias, Estimator("star", 0.7, "fresh"): bias}, sd)
    found = {one.claim: one for one in findings([estimates]) if one.subject == "P"}
    assert found["istar/debiased-near"].verdict is wanted
    assert found["istar/star-best-zeta"].verdict is wanted
    assert found["istar/star-best-zeta"].ours.startswith("ζ 0.7: bias ")
    assert found["istar/star-stable"].verdict is found["istar/star-other-covariance"].verdict is NOT_HELD
    assert found["istar/isoscore-unstable"].verdict is HELD
    assert found["istar/figure-4-zeta"].condition == "with another C₀"  # with its own it rises from ζ = 0.7


# ---------------------------------------------------------------- notes and pages


def test_what_scores_are_worth_and_what_was_not_run_is_said() -> None:
    def told(level: float) -> str:
        runs = [replace(run, score=level + 0.002 * run.seed) for run in made_sweep(0.0)]
        return "\n".join(sections([replace(run, about=run.about | {"n_test": 277}) for run in runs])[0].notes)

    assert (
        "RTE: the commonest label for all texts scores 0.5271, the model without a penalty +0.0749 ["
        in told(0.6)
    )
    assert ": the task is learnt" in told(0.6)
    assert "is not shown" in told(0.525)
    assert "no better than the commonest label on average: istar −5, istar −3," in told(0.525)
    notes = sections(made_sweep(-1.0, noise=1e-5))[0].notes
    assert not any("commonest" in note for note in notes)
    assert any(
        "above λ = 0: istar −5, istar −3, istar −1, istar −0.3, istar −0.1; below: " in one for one in notes
    )
    assert any("declared but not run: cosreg +0.1, istar +0.01" in note for note in notes)
    assert notes[-1] == "Tasks declared but not run: MRPC, CoLA, SST-2"


def test_a_run_without_a_score_is_left_out_and_named() -> None:
    runs = made_sweep(-1.0)
    runs[0] = made(runs[0], None, 0.1)
    assert list(sweeps_of(runs)[0].by_seed("istar", -5.0)) == [1, 2]
    note = "RTE: 1 runs have no score, their loss turned NaN: istar, λ -5, seed 0"
    assert note in sections(runs)[0].notes


@pytest.mark.parametrize("name", TASKS)
def test_the_commonest_label_is_that_of_the_data(name: str) -> None:
    folder = os.environ.get("ISOSCOPE_DATA")
    if not folder:
        pytest.skip("needs the folder of ISOSCOPE_DATA")
    labels = load_task(name, data=folder)["test"][-1]
    assert TASKS[name].commonest == (Counter(labels).most_common(1)[0][1], len(labels))


@pytest.mark.slow
def test_pages_figures_and_tables(tmp_path: Path) -> None:
    runs = [*made_sweep(-1.0), *made_sweep(-1.0, task="cola"), one_cell({DEBIASED: 0.001}, 0.01)]
    written = STUDY.write(runs, tmp_path)
    assert [path.name for path in written] == ["istar.json", "istar.md", "istar.html"]
    page = (tmp_path / "istar.md").read_text()
    for name in ("istar-strength", "istar-score", "istar-dimension", "istar-batch-size", "istar-zeta"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
        assert (tmp_path / f"{name}.pdf").exists()
        assert f"({name}.png)" in page
    assert "| istar | −5 † | 0." in page
    rows = list(csv.DictReader((tmp_path / "istar-strengths.csv").read_text().splitlines()))
    first = next(row for row in rows if row["regularizer"] == "istar")
    assert (first["subject"], first["strength"], first["n_seeds"]) == ("RTE", "-5", "3")
    assert float(first["difference"]) == pytest.approx(0.1, abs=0.003)
    lines = (tmp_path / "istar-estimators.csv").read_text().splitlines()
    assert len(lines) == 1 + len(ESTIMATORS)
    assert lines[-2].startswith("p,0.5,independent,32,debiased,0,,0.501,0.001,0.0005,0.01,")


# ---------------------------------------------------------------- setups and runs


def test_strengths_and_points() -> None:
    assert chosen_strengths(None, None) == STRENGTHS
    assert set(PAPER_STRENGTHS) <= set(STRENGTHS["istar"])
    assert chosen_strengths(None, "1,0,-1") == {"istar": (-1.0, 1.0)}
    assert chosen_strengths("cosreg", None) == {"cosreg": (-1.0, 0.1, 1.0)}
    found = points("rte", {"istar": (-1.0, 1.0)}, (0, 1))
    assert [(p.regularizer, p.strength, p.seed) for p in found] == [
        (NONE, 0.0, 0), ("istar", -1.0, 0), ("istar", 1.0, 0),
        (NONE, 0.0, 1), ("istar", -1.0, 1), ("istar", 1.0, 1),
    ]  # fmt: skip


@pytest.fixture
def rte(tmp_path: Path) -> Path:
    words, source = ("a", "the", "cat", "dog", "sat", "ran"), random.Random(0)
    (tmp_path / "data" / "glue").mkdir(parents=True)
    for split in ("train", "dev"):
        texts = [" ".join(source.choices(words, k=source.randint(2, 12))) for _ in range(20)]
        texts[-1] = texts[0]
        rows = [
            {"sentence1": t, "sentence2": "a cat", "label": "entailment" if "cat" in t else "not_entailment"}
            for t in texts
        ]
        path = tmp_path / "data" / "glue" / f"rte_{split}.jsonl.gz"
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return tmp_path / "data"


@pytest.fixture
def training() -> None:
    pytest.importorskip("transformers", reason="needs the extra `training`")
    pytest.importorskip("accelerate", reason="needs the extra `training`")


@pytest.mark.slow
@pytest.mark.usefixtures("training")
def test_a_run_is_that_of_finetune_with_its_sentence_vectors(tiny_bert: Path, rte: Path) -> None:
    settings = Settings(str(tiny_bert), epochs=1, batch_size=8, learning_rate=1e-3, max_length=12)
    found = istar_sweep.run_point(Point("rte", "istar", -2.0, 1), settings, Place(rte, device="cpu"))
    arguments = load_task("rte", data=rte)
    texts, labels = arguments.pop("texts"), arguments.pop("labels")
    wanted = iso.finetune(
        tiny_bert, texts, labels, **arguments, regularizer="istar", strength=-2.0, seed=1, epochs=1,
        batch_size=8, learning_rate=1e-3, max_length=12, device="cpu", progress=False,
    )  # fmt: skip
    assert found.score == wanted.score
    assert found.value("isoscore_star") == wanted.isoscore_star
    *columns, answers = arguments["test"]
    pairs = [*zip(*columns, strict=True), *zip(texts, arguments["pairs"], strict=True)]
    assert found.about["n_cut"] == sum(len(a.split()) + len(b.split()) + 3 > 12 for a, b in pairs) > 0
    states, kinds = {}, {}
    with torch.no_grad():
        for pair, label in zip(zip(*columns, strict=True), answers, strict=True):
            inputs = wanted.tokenizer(
                *pair, truncation=True, max_length=12, return_token_type_ids=True, return_tensors="pt"
            )
            states[str(inputs)] = wanted.model(**inputs, output_hidden_states=True).hidden_states[-1][0, 0]
            kinds.setdefault(str(inputs), label)
    assert len(states) == 19  # one text comes twice
    vectors = torch.stack(list(states.values()))
    assert found.sentence_twonn == pytest.approx(iso.twonn(vectors), rel=1e-3)
    assert found.silhouette == pytest.approx(iso.silhouette_score(vectors, list(kinds.values())), abs=1e-4)


def test_a_sweep_leaves_alone_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Point] = []

    def run(point: Point, settings: Settings, _: Place) -> SweepRun:
        asked.append(point)
        if point.strength == 1.0 and len(asked) == 3:
            raise KeyboardInterrupt
        return made(point, 0.5, 0.1, settings=settings)

    monkeypatch.setattr(istar_sweep, "run_point", run)
    wanted, place = points("rte", {"istar": (-1.0, 1.0)}, (0,)), Place(runs=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(wanted, Settings(), place)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "istar-rte-istar--1-0.json", "istar-rte-none-0-0.json",
    ]  # fmt: skip
    assert len(run_sweep(wanted, Settings(), place)) == 3
    assert (len(asked), asked[-1]) == (4, wanted[-1])
    run_sweep(wanted, Settings(), place)
    assert len(asked) == 4
    run_sweep(wanted, Settings(epochs=4), place)
    assert {run.settings.epochs for run in STUDY.read(tmp_path)} == {4}
    assert len(run_sweep(wanted, Settings(), Place())) == 3  # kept nowhere


def test_two_processes_do_not_make_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(istar_sweep, "run_point", lambda point, *_: made(point, 0.5, 0.1))
    wanted, place = points("rte", {"istar": (1.0,)}, (0,)), Place(runs=tmp_path)
    lines: list[str] = []
    with (tmp_path / "istar-rte-none-0-0.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert len(run_sweep(wanted, Settings(), place, say=lines.append)) == 1
    assert lines[0] == "istar-rte-none-0-0: another process is at it"
    assert len(run_sweep(wanted, Settings(), place)) == 2
    assert not list(tmp_path.glob("*.lock"))


@pytest.mark.usefixtures("training")
def test_a_loss_that_turns_nan_is_kept_as_such(
    tiny_bert: Path, rte: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(*_: Any, **__: Any) -> None:
        raise NotFiniteError("the loss is nan at update 3")

    monkeypatch.setattr(istar_sweep, "finetune", diverge)
    lines: list[str] = []
    place = Place(rte, device="cpu", runs=tmp_path)
    found = run_sweep([Point("rte", "istar", 5.0, 0)], Settings(str(tiny_bert)), place, say=lines.append)
    assert (found[0].score, found[0].failed) == (None, "the loss is nan at update 3")
    assert "no score" in lines[0]
    assert STUDY.read(tmp_path) == found
    assert "declared" in "".join(sections(found)[0].notes)  # a page of nothing but failures


@pytest.mark.slow
def test_runs_are_kept_and_read(tmp_path: Path) -> None:
    runs = made_sweep(-1.0)
    for run in runs:
        keep(run, tmp_path / f"{run.stem(MODEL)}.json")
    found = STUDY.read(tmp_path)
    assert sorted(found, key=str) == sorted(runs, key=str)
    assert STUDY.as_dict(found)["sweeps"]["RTE"]["settings"]["learning_rate"] == Settings().learning_rate
    text = STUDY.as_text(found)
    assert "✓ held [RTE]: ρ −1.00" in text
    assert "RTE: accuracy and IsoScore* by λ" in text
    old = json.loads((tmp_path / "istar-rte-none-0-0.json").read_text())
    del old["silhouette"], old["checksum"]  # runs made before it was recorded
    (tmp_path / "istar-rte-none-0-0.json").write_text(json.dumps(old))
    assert read(tmp_path / "istar-rte-none-0-0.json", SweepRun).silhouette is None


@pytest.mark.slow
@pytest.mark.usefixtures("training")
def test_no_file_has_the_folder_of_a_model(tiny_bert: Path, rte: Path, tmp_path: Path) -> None:
    settings = Settings(str(tiny_bert), epochs=1, max_train=4)
    run_sweep([Point("rte", NONE, 0.0, 0)], settings, Place(rte, device="cpu", runs=tmp_path / "runs"))
    (path,) = (tmp_path / "runs").iterdir()
    assert path.name == f"istar-rte-none-0-0-{tiny_bert.name}.json"
    assert str(tiny_bert.parent) not in path.read_text()


def test_findings_are_of_the_catalogue() -> None:
    assert all(isinstance(one, Finding) for claim in STUDY.claims(made_sweep(-1.0)) for one in claim.findings)
