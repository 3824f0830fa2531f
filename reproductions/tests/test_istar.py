"""The λ sweep: runs kept and shared between processes, statistics against scipy, claims both ways, pages."""

from __future__ import annotations

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
from isoscope.errors import InputError, NotFiniteError
from isoscope_papers.claims import Claim, Holding
from isoscope_papers.corpora import load_task
from isoscope_papers.istar import claims
from isoscope_papers.istar import sweep as istar_sweep
from isoscope_papers.istar.claims import estimator_claims, judged_difference, judged_trend, sweep_claims
from isoscope_papers.istar.comparison import Difference, Trend, difference, sweeps_of, trend
from isoscope_papers.istar.estimators import ESTIMATORS, Cell, Estimator, Known, Study
from isoscope_papers.istar.report import Found, as_dict, as_text, read_found, sections, write_report
from isoscope_papers.istar.setups import (
    MODEL,
    NONE,
    SETUPS,
    STRENGTHS,
    Point,
    Settings,
    chosen_setups,
    chosen_strengths,
    points,
)  # fmt: skip
from isoscope_papers.istar.sweep import SweepRun, keep, own_settings, read_run, read_runs, run_sweep

LAMBDAS = (-1.0, -0.3, -0.1, -0.03, 0.0, 0.03, 0.1, 0.3, 1.0)


def made(
    point: Point, score: float | None, star: float, *, twonn: float = 10.0, settings: Settings | None = None
) -> SweepRun:
    geometry = {"layer": "all", "isoscore_star": star, "isoscore_debiased": star, "mean_cosine": 0.1}
    about = {"n_train": 100, "n_test": 10**6, "n_cut": 0, "device": "cpu", "seconds": 2.0}
    failed = "the loss is nan at update 3" if score is None else None
    rows = ((), (geometry | {"twonn": twonn},))
    return SweepRun(point, settings or Settings(), "accuracy", score, twonn / 2, *rows, about, failed)


def made_sweep(slope: float, *, noise: float = 0.001, task: str = "rte", seeds: int = 3) -> list[SweepRun]:
    """Isotropy rises with λ; the score with `slope` times isotropy, and a seed's own noise."""
    rng = np.random.default_rng(0)
    found = []
    for seed in range(seeds):
        for place, strength in enumerate(LAMBDAS):
            star = 0.1 + 0.02 * place + 0.0001 * seed
            score = 0.6 + slope * star + noise * rng.normal()
            kind = NONE if strength == 0 else "istar"
            found.append(made(Point(task, kind, strength, seed), score, star, twonn=10 + place))
        found.append(made(Point(task, "cosreg", 1.0, seed), 0.6 + slope * 0.18 - 0.03, 0.18))
    return found


def verdicts(runs: list[SweepRun], subject: str = "RTE") -> dict[str, Holding]:
    return {one.claim: one.holding for one in sweep_claims(sweeps_of(runs)) if one.subject == subject}


# ---------------------------------------------------------------- statistics and claims


def test_a_difference_is_a_paired_t_interval() -> None:
    a, b = {0: 0.61, 1: 0.64, 2: 0.6, 7: 0.9}, {0: 0.58, 1: 0.6, 2: 0.61, 5: 0.1}
    found = difference(a, b)
    wanted = stats.ttest_rel([a[k] for k in range(3)], [b[k] for k in range(3)])
    interval = wanted.confidence_interval(0.95)
    assert found == pytest.approx((np.mean([0.03, 0.04, -0.01]), interval.low, interval.high, 3))
    wide = wanted.confidence_interval(1 - 0.05 / 7)
    assert difference(a, b, n_choices=7)[1:3] == pytest.approx((wide.low, wide.high))
    assert difference({0: 1.0}, {0: 2.0}) is None


def test_seeds_that_agree_by_chance_are_no_proof() -> None:
    a, b = {0: 0.61, 1: 0.64, 2: 0.6}, {0: 0.60, 1: 0.63, 2: 0.59}
    found = difference(a, b, step=0.01)
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.975, 2) * 0.01 / 3**0.5)
    assert judged_difference(found) is Holding.DEPENDS
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


def test_seeds_that_disagree_widen_a_trends_interval() -> None:
    steady = [np.array([[k] * 3, [k + 0.01, k, k - 0.01]]) for k in range(8)]
    noisy = [np.array([[k] * 3, [k + 9, k, k - 9.0]]) for k in range(8)]
    a, b = trend(steady), trend(noisy)
    assert a is not None
    assert b is not None
    assert a.rho == b.rho == 1
    assert a.low == 1 > b.low
    assert b.low < 0


def test_what_the_paper_says_can_hold() -> None:
    found = verdicts(made_sweep(-1.0))
    assert found == {
        claims.STEERS: Holding.HELD, claims.FALLS: Holding.HELD, claims.FALLS_SMALL: Holding.HELD,
        claims.FALLS_ABOVE: Holding.HELD, claims.RISES_BELOW: Holding.NOT_HELD,
        claims.BEATS_NONE: Holding.HELD, claims.BEATS_COSREG: Holding.HELD, claims.MOVES: Holding.HELD,
        claims.MOVES_SENTENCES: Holding.HELD,
    }  # fmt: skip


def test_a_score_that_is_highest_in_the_middle_is_seen() -> None:
    """A ρ over all λ is blind to it."""
    middle = 0.18  # IsoScore* of λ = 0
    runs = [
        replace(run, score=0.6 - abs(run.whole("isoscore_star") - middle) + 1e-4 * run.point.seed)
        for run in made_sweep(-1.0)
    ]
    found = verdicts(runs)
    assert found[claims.FALLS_ABOVE] is found[claims.RISES_BELOW] is Holding.HELD
    assert found[claims.FALLS] is Holding.DEPENDS


def test_and_the_contrary_can() -> None:
    found = verdicts(made_sweep(1.0))
    assert found[claims.FALLS] is found[claims.FALLS_SMALL] is Holding.NOT_HELD
    assert found[claims.BEATS_NONE] is Holding.NOT_HELD
    assert found[claims.STEERS] is Holding.HELD
    turned = [
        replace(run, geometry=({**run.geometry[0], "isoscore_star": 1 - run.whole("isoscore_star")},))
        for run in made_sweep(1.0)
    ]
    assert verdicts(turned)[claims.STEERS] is Holding.NOT_HELD


def test_what_lies_within_the_seeds_depends() -> None:
    found = verdicts(made_sweep(-1.0, noise=0.2))
    assert found[claims.BEATS_NONE] is Holding.DEPENDS
    assert found[claims.FALLS] is Holding.DEPENDS
    level = [replace(run, sentence_twonn=5 + (run.point.seed % 2)) for run in made_sweep(-1.0)]
    assert claims.MOVES_SENTENCES not in verdicts(level)  # no variation over λ, no trend


def test_the_best_of_many_is_held_to_more() -> None:
    close = {0: 0.03, 1: 0.05, 2: 0.04}
    none = dict.fromkeys(range(3), 0.0)
    alone, chosen = difference(close, none), difference(close, none, n_choices=30)
    assert judged_difference(alone) is Holding.HELD
    assert judged_difference(chosen) is Holding.DEPENDS
    assert judged_difference(Difference(-0.1, -0.2, -0.01, 3)) is Holding.NOT_HELD


def test_the_interval_of_a_claim_allows_for_the_choice_and_the_tasks() -> None:
    runs = [run for run in made_sweep(-1.0) if run.point.strength in (-1.0, -0.3, 0.0)]
    runs += [replace(run, point=replace(run.point, task="mrpc")) for run in runs]
    sweep = sweeps_of(runs)[0]
    scores, none = sweep.by_seed("istar", -1.0), sweep.by_seed("istar", 0.0)
    wanted = difference(scores, none, n_choices=4, step=sweep.step)
    found = next(one for one in sweep_claims(sweeps_of(runs)) if one.claim == claims.BEATS_NONE)
    assert f"[{claims.signed(wanted.low)}, {claims.signed(wanted.high)}]" in found.evidence


def test_a_trend_on_many_tasks_is_held_to_more() -> None:
    found = Trend(0.8, 0.5, 0.9, 0.03, 9)
    assert judged_trend(found, 1) is Holding.HELD
    assert judged_trend(found, 1, n_tests=2) is Holding.DEPENDS
    assert judged_trend(found._replace(p=0.001), 1, n_tests=2) is Holding.HELD


def test_a_task_that_is_not_learnt_is_said_to_be() -> None:
    def told(level: float) -> tuple[str, ...]:
        runs = [replace(run, score=level + 0.002 * run.point.seed) for run in made_sweep(0.0)]
        return sections(Found(None, tuple(replace(run, about=run.about | {"n_test": 277}) for run in runs)))[
            1
        ].notes

    assert "scores 0.5271, the model without a penalty +0.0749 [" in told(0.6)[0]
    assert told(0.6)[0].endswith(": the task is learnt")
    assert "is not shown" in told(0.525)[0]
    assert told(0.525)[1].startswith("No better than that on average: istar −1, istar −0.3,")
    assert not [
        note for note in sections(Found(None, tuple(made_sweep(0.0))))[1].notes if "commonest" in note
    ]


def test_what_stands_apart_and_what_was_not_run_is_said() -> None:
    page = sections(Found(None, tuple(made_sweep(-1.0, noise=1e-5))))
    apart, missing = page[1].notes
    assert apart == (
        "Of 9 intervals, each by itself, above λ = 0: istar −1, istar −0.3, istar −0.1, istar −0.03; below: "
        "istar +0.03, istar +0.1, istar +0.3, istar +1, cosreg +1"
    )
    assert missing == (
        "Declared but not run: istar λ ±0.01, ±3, ±5; cosreg λ +0.1, −1; istar-debiased, at any λ; of the "
        "paper's λ −5, −3, +0.5, +3, +5 are missing"
    )
    assert page[0].notes[-1] == "Tasks declared but not run: MRPC, CoLA, SST-2"


@pytest.mark.parametrize("name", SETUPS)
def test_the_commonest_label_is_that_of_the_data(name: str) -> None:
    folder = os.environ.get("ISOSCOPE_DATA")
    if not folder:
        pytest.skip("needs the folder of ISOSCOPE_DATA")
    labels = load_task(name, data=folder).arguments()["test"][-1]
    assert SETUPS[name].commonest == (Counter(labels).most_common(1)[0][1], len(labels))


def test_tasks_are_averaged_seed_by_seed() -> None:
    runs = made_sweep(-1.0) + made_sweep(1.0, task="mrpc")
    found = verdicts(runs, "mean of 2 tasks")
    assert found[claims.BEATS_NONE] is Holding.DEPENDS  # one up, one down
    both = made_sweep(-1.0) + made_sweep(-1.0, task="mrpc")
    assert verdicts(both, "mean of 2 tasks")[claims.BEATS_NONE] is Holding.HELD


def test_evidence_has_the_numbers() -> None:
    runs = [run for run in made_sweep(-1.0, noise=0) if run.point.strength in (-1, -0.3, 0)]
    evidence = next(one.evidence for one in sweep_claims(sweeps_of(runs)) if one.claim == claims.BEATS_NONE)
    assert evidence.startswith("λ −1: +0.0800 [+0.0800, +0.0800], 3 seeds; of 2 λ, each by itself, 2 better")


def test_a_run_without_a_score_is_left_out_and_named() -> None:
    runs = made_sweep(-1.0)
    runs[0] = made(runs[0].point, None, 0.1)
    found = sweeps_of(runs)[0]
    assert list(found.by_seed("istar", -1.0)) == [1, 2]
    page = sections(Found(None, tuple(runs)))
    assert page[1].notes[0] == "1 runs have no score, their loss turned NaN: istar, λ -1, seed 0"


def test_other_settings_are_another_sweep() -> None:
    slow = replace(Settings(), learning_rate=1e-5)
    runs = made_sweep(-1.0) + [replace(run, settings=slow) for run in made_sweep(-1.0)]
    titles = {one.subject for one in sweep_claims(sweeps_of(runs))}
    assert titles == {
        "RTE (3 epochs of all, lr 1e-05, batch 32)", "RTE (3 epochs of all, lr 5e-05, batch 32)",
    }  # fmt: skip
    other = [replace(run, settings=replace(run.settings, model="bert")) for run in made_sweep(-1.0)]
    titles = {one.subject for one in sweep_claims(sweeps_of(made_sweep(-1.0) + other))}
    assert titles == {f"RTE, {MODEL}", "RTE, bert"}


def one_cell(biases: dict[Estimator, float], sd: float) -> Study:
    mean = tuple(0.5 + biases.get(one, 0.2) for one in ESTIMATORS)
    zeros = (0,) * len(ESTIMATORS)
    cell = Cell("p", "independent", 32, 400, mean, (sd,) * len(ESTIMATORS), zeros, zeros)
    return Study((Known("p", "P", "spectrum", 768, 0.5, "flat"),), (cell,), {"seed": 0})


@pytest.mark.parametrize(
    ("bias", "sd", "wanted"),
    [
        (0.004, 0.02, Holding.HELD),
        (-0.004, 0.02, Holding.HELD),
        (0.009, 0.04, Holding.DEPENDS),
        (-0.02, 0.02, Holding.NOT_HELD),
    ],
)
def test_a_bias_is_judged_with_its_error(bias: float, sd: float, wanted: Holding) -> None:
    study = one_cell({claims.DEBIASED: bias, Estimator("star", 0.7, "fresh"): bias}, sd)
    found = {one.claim: one for one in estimator_claims(study)}
    assert found[claims.UNBIASED].holding is wanted
    assert found[claims.CHOSEN].holding is wanted
    assert found[claims.CHOSEN].evidence.startswith("ζ 0.7: bias ")
    assert found[claims.PAPERS_ZETA].holding is Holding.NOT_HELD
    assert found[claims.CHOSEN_STALE].holding is Holding.NOT_HELD


# ---------------------------------------------------------------- setups


def test_strengths_and_points() -> None:
    assert chosen_strengths(None, None) == STRENGTHS
    assert chosen_strengths(None, [1.0, 0.0, -1.0]) == {"istar": (-1.0, 1.0)}
    assert chosen_strengths(["cosreg"], None) == {"cosreg": (-1.0, 0.1, 1.0)}
    found = points(SETUPS["rte"], {"istar": (-1.0, 1.0)}, (0, 1))
    assert [(p.regularizer, p.strength, p.seed) for p in found] == [
        (NONE, 0.0, 0), ("istar", -1.0, 0), ("istar", 1.0, 0),
        (NONE, 0.0, 1), ("istar", -1.0, 1), ("istar", 1.0, 1),
    ]  # fmt: skip
    assert [one.name for one in chosen_setups(["sst2,rte"])] == ["rte", "sst2"]
    assert own_settings(Settings(), SETUPS["sst2"]).max_train == 10_000
    assert own_settings(Settings(max_train=5), SETUPS["sst2"]).max_train == 5
    asked = {-5, -1, -0.1, -0.03, 0.03, 0.1, 1, 5}
    assert asked <= set(STRENGTHS["istar"])


# ---------------------------------------------------------------- runs


@pytest.fixture
def rte(tmp_path: Path) -> Path:
    import gzip

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


@pytest.mark.usefixtures("training")
def test_a_run_is_that_of_finetune(tiny_bert: Path, rte: Path) -> None:
    settings = Settings(str(tiny_bert), epochs=1, batch_size=8, learning_rate=1e-3, max_length=12)
    point = Point("rte", "istar", -2.0, 1)
    found = istar_sweep.run_point(point, settings, data=rte, device="cpu")
    arguments = load_task("rte", data=rte).arguments()
    texts, labels = arguments.pop("texts"), arguments.pop("labels")
    wanted = iso.finetune(
        tiny_bert, texts, labels, **arguments, regularizer="istar", strength=-2.0, seed=1, epochs=1,
        batch_size=8, learning_rate=1e-3, max_length=12, device="cpu", progress=False,
    )  # fmt: skip
    assert found.score == wanted.score
    assert found.whole("isoscore_star") == wanted.isoscore_star
    columns = load_task("rte", data=rte).test.columns
    lengths = [len(a.split()) + len(b.split()) + 3 for a, b in zip(*columns, strict=True)]
    lengths += [len(a.split()) + len(b.split()) + 3 for a, b in zip(texts, arguments["pairs"], strict=True)]
    assert found.about["n_cut"] == sum(length > 12 for length in lengths) > 0
    states = {}
    with torch.no_grad():
        for pair in zip(*columns, strict=True):
            inputs = wanted.tokenizer(
                *pair, truncation=True, max_length=12, return_token_type_ids=True, return_tensors="pt"
            )
            states[str(inputs)] = wanted.model(**inputs, output_hidden_states=True).hidden_states[-1][0, 0]
    assert len(states) == 19  # one text comes twice
    assert found.sentence_twonn == pytest.approx(iso.twonn(torch.stack(list(states.values()))), rel=1e-3)


def test_a_sweep_leaves_alone_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Point] = []

    def run(point: Point, settings: Settings, **_: Any) -> SweepRun:
        asked.append(point)
        if point.strength == 1.0 and len(asked) == 3:
            raise KeyboardInterrupt
        return made(point, 0.5, 0.1, settings=settings)

    monkeypatch.setattr(istar_sweep, "run_point", run)
    wanted = points(SETUPS["rte"], {"istar": (-1.0, 1.0)}, (0,))
    with pytest.raises(KeyboardInterrupt):
        run_sweep(wanted, Settings(), tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "istar-rte-istar--1-0.json", "istar-rte-none-0-0.json",
    ]  # fmt: skip
    assert run_sweep(wanted, Settings(), tmp_path) == 1
    assert asked[-1] == wanted[-1]
    assert run_sweep(wanted, Settings(), tmp_path) == 0
    assert run_sweep(wanted, Settings(epochs=4), tmp_path) == 3
    assert {run.settings.epochs for run in read_runs(tmp_path)} == {4}


def test_two_processes_do_not_make_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(istar_sweep, "run_point", lambda point, settings, **_: made(point, 0.5, 0.1))
    wanted = points(SETUPS["rte"], {"istar": (1.0,)}, (0,))
    lines: list[str] = []
    with (tmp_path / "istar-rte-none-0-0.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert run_sweep(wanted, Settings(), tmp_path, tell=lines.append) == 1
    assert lines[0] == "istar-rte-none-0-0: another process is at it"
    assert [run.point for run in read_runs(tmp_path)] == wanted[1:]
    assert run_sweep(wanted, Settings(), tmp_path) == 1
    assert not list(tmp_path.glob("*.lock"))


@pytest.mark.usefixtures("training")
def test_a_loss_that_turns_nan_is_kept_as_such(
    tiny_bert: Path, rte: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(*_: Any, **__: Any) -> None:
        raise NotFiniteError("the loss is nan at update 3")

    monkeypatch.setattr(istar_sweep, "finetune", diverge)
    lines: list[str] = []
    point = Point("rte", "istar", 5.0, 0)
    settings = Settings(str(tiny_bert))
    assert run_sweep([point], settings, tmp_path, data=rte, device="cpu", tell=lines.append) == 1
    found = read_run(tmp_path / f"{point.stem(str(tiny_bert))}.json")
    assert (found.score, found.failed) == (None, "the loss is nan at update 3")
    assert "no score" in lines[0]
    assert run_sweep([point], settings, tmp_path, data=rte, device="cpu") == 0


def test_runs_are_kept_and_read(tmp_path: Path) -> None:
    runs = made_sweep(-1.0)
    for run in runs:
        keep(run, tmp_path / f"{run.point.stem(MODEL)}.json")
    found = read_found(tmp_path)
    assert sorted(found.runs, key=str) == sorted(runs, key=str)
    assert as_dict(found)["sweeps"]["RTE"]["settings"]["learning_rate"] == Settings().learning_rate
    text = as_text(found)
    assert f"{claims.FALLS}\n  held         RTE: ρ −1.00" in text
    assert "RTE: accuracy and IsoScore* by λ" in text
    with pytest.raises(InputError, match="holds no runs of istar"):
        read_found(tmp_path / "nothing")


def test_no_file_has_the_folder_of_a_model(tmp_path: Path) -> None:
    settings = Settings(model="/home/someone/models/own-bert")
    run = made(Point("rte", NONE, 0.0, 0), 0.5, 0.1, settings=settings)
    path = keep(run, tmp_path / f"{run.point.stem(settings.model)}.json")
    assert path.name == "istar-rte-none-0-0-own-bert.json"
    assert "someone" not in path.read_text()


def test_pages_and_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    study = one_cell({claims.DEBIASED: 0.001}, 0.01)
    runs = [*made_sweep(-1.0), *made_sweep(-1.0, task="cola")]
    written = write_report(Found(study, tuple(runs)), tmp_path, command="isoscope reproduce istar")
    assert [path.name for path in written] == ["istar.json", "istar.md", "istar.html", "istar-estimators.csv"]
    page = (tmp_path / "istar.md").read_text()
    for name in ("istar-strength", "istar-score", "istar-dimension", "istar-batch-size", "istar-zeta"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
        assert (tmp_path / f"{name}.pdf").exists()
        assert f"({name}.png)" in page
    assert "| istar | −1 | 3 | 0.4997 ± 0.0009 | +0.08" in page
    lines = (tmp_path / "istar-estimators.csv").read_text().splitlines()
    assert len(lines) == 1 + len(ESTIMATORS)
    assert lines[0].startswith("population,truth,sampling,n,kind,zeta,reference,mean,bias,error,sd,rmse")
    assert "The debiased score is beyond" not in page
    far = sections(Found(one_cell({claims.DEBIASED: 0.02, claims.JACKKNIFE: 0.0099}, 0.01), ()))[0].notes
    assert far[-2:] == (
        "The debiased score is beyond 0.01 on P",
        "With a jackknife it may be beyond 0.01 on P",
    )
    assert lines[-2].startswith("p,0.5,independent,32,debiased,0,,0.501,0.001,0.0005,0.01,")


def test_claims_are_told_by_how_many_held() -> None:
    from isoscope_papers.istar.report import _tallies

    rows = [Claim("x", "a", Holding.HELD, ""), Claim("x", "b", Holding.DEPENDS, "")]
    assert _tallies(rows) == ("x: 1 held, 1 depends (of 2)",)


def test_the_page_of_the_documentation_is_what_the_kept_runs_give(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    kept = Path(__file__).parents[2] / "docs" / "reproduction"
    write_report(read_found(kept / "runs"), tmp_path, command="isoscope reproduce istar")
    wanted = (kept / "istar.md").read_text()
    assert (tmp_path / "istar.md").read_text() == wanted, "reproduce istar --report-only"
