"""*Should I whiten?*: runs on small data, claims from planted gains, the page of the kept runs."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raising import raises

from isoscope.advice import Outcome as Tried
from isoscope.errors import FileError, InputError
from isoscope_papers.corrections import setups
from isoscope_papers.corrections.findings import findings
from isoscope_papers.corrections.options import DEFAULT, Options
from isoscope_papers.corrections.run import (
    Outcome,
    Result,
    Task,
    _answered,
    keep_outcome,
    run_setup,
)
from isoscope_papers.corrections.setups import DATASETS, SETUPS, chosen_datasets
from isoscope_papers.corrections.study import STUDY, sections
from isoscope_papers.corrections.tallies import answer, best_of, differences, interval, settings_of, tally
from isoscope_papers.study import Place
from isoscope_papers.verdict import Verdict

WORDS = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay"]


@pytest.fixture
def table(tmp_path: Path, rng: np.random.Generator) -> Path:
    path = tmp_path / "words.txt"
    rows = [f"{word} " + " ".join(f"{x:.4f}" for x in rng.normal(size=6)) for word in WORDS]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def data(tmp_path: Path, rng: np.random.Generator) -> Path:
    def text() -> str:
        return " ".join(rng.choice(WORDS, 4))

    folder = tmp_path / "data"
    files = {
        "sts/stsb_en_test.jsonl.gz": [
            {
                "sentence1": text(),
                "sentence2": "unknown" if i == 3 else text(),
                "score": float(rng.uniform(0, 5)),
            }
            for i in range(60)
        ],
        "glue/cola_train.jsonl.gz": [
            {"sentence": text(), "label": int(rng.integers(0, 2))} for _ in range(80)
        ],
    }
    for name, records in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in records).encode()))
    return folder


@pytest.mark.slow
def test_a_setup_is_run_kept_and_read_again(table: Path, data: Path, tmp_path: Path) -> None:
    setup = STUDY.own_setup(str(table))
    assert setup.is_static
    options = Options(dataset=["stsb", "cola"], max_pairs=50, max_rows=60, repeats=1)
    found = run_setup(setup, options, Place(data))
    pairs, labels = found.results
    assert (pairs.dataset, labels.dataset) == ("stsb", "cola")
    assert pairs.tasks["similarity"].n_items + pairs.n_left == 50
    assert labels.tasks["knn"].n_items == 60
    assert list(labels.tasks) == ["linear_probe", "knn", "clustering", "retrieval"]
    assert set(pairs.geometry) == {"none", *pairs.tasks["similarity"].corrections}
    keep_outcome(found, tmp_path / "corrections-table.json")
    assert STUDY.read(tmp_path) == [found]
    again = run_setup(setup, replace(options, dataset=["cola"], seed=4), Place(data))
    keep_outcome(again, tmp_path / "corrections-table.json")
    (merged,) = STUDY.read(tmp_path)
    assert merged.results == (replace(pairs, about=found.about), *again.results)  # of the earlier run
    assert settings_of(merged) == (
        "STS-B: at most 50 pairs of a set, 5 folds × 1 repeats, seed 0; "
        "CoLA: at most 60 texts of a set, 5 folds × 1 repeats, seed 4"
    )


def test_the_probe_chooses_its_penalty_in_a_wide_range(table: Path, data: Path) -> None:
    setup = replace(STUDY.own_setup(str(table)), part="probe")
    found = run_setup(setup, Options(dataset=["cola"], max_rows=60), Place(data))
    (result,) = found.results
    assert list(result.tasks) == ["linear_probe"]
    assert set(result.geometry) == {"none", "whiten_soft", "whiten_shrunk", "whiten_reduced", "whiten"}
    assert all(1e-6 <= figures["penalty"] <= 1e6 for figures in result.geometry.values())
    assert result.geometry["whiten"]["isoscore"] > 0.99
    assert result.geometry["whiten_reduced"]["isoscore"] > 0.99
    tried = result.tasks["linear_probe"].corrections["whiten"]
    assert tried.gain == pytest.approx(np.mean(tried.scores) - result.tasks["linear_probe"].baseline)


def test_noise_before_whitening_is_amplified(
    table: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setups, "NOISE_DATASET", DATASETS["cola"])
    rows = [line.split() for line in table.read_text().splitlines()]
    weak = [[word, *values[:-1], f"{1e-3 * float(values[-1]):.6f}"] for word, *values in rows]
    table.write_text("\n".join(map(" ".join, weak)) + "\n")
    setup = replace(STUDY.own_setup(str(table)), part="noise")
    found = run_setup(setup, Options(max_rows=60, folds=2, repeats=1), Place(data))
    after, before = (found.results[0].tasks[f"noise {when} correction"] for when in ("after", "before"))
    assert after.baseline == before.baseline < 1
    assert len(after.corrections["whiten"].scores) == 2
    assert before.corrections["whiten"].gain < min(-0.2, after.corrections["whiten"].gain)


def test_analogies_leave_the_three_words_out() -> None:
    X = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.3, -1.0, 0.2]])
    assert _answered(X, torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]])) == [True, False]


def planted(gains: dict[str, dict[str, float]], p_value: float = 0.001, name: str = "minilm") -> Outcome:
    """Return a run in which every correction gains what is said on each kind of data set."""
    results = []
    for dataset in DATASETS.values():
        labelled = ("linear_probe", "knn", "clustering", "retrieval")
        tried = {
            correction: Tried(
                correction, 0.5 + by[dataset.kind], by[dataset.kind], (-1.0, 1.0), p_value, (0.5,)
            )
            for correction, by in gains.items()
        }
        tasks = {
            task: Task("score", 100, 0.6, tried)
            for task in (labelled if dataset.kind == "labels" else ("similarity",))
        }
        scores = dict(zip(("none", *gains), np.linspace(0.1, 0.9, len(gains) + 1).tolist(), strict=True))
        geometry = {one: {"isoscore": score, "mean_cosine": 0.6} for one, score in scores.items()}
        results.append(Result(dataset.name, dataset.title, dataset.kind, 0, geometry, tasks))
    about = {"max_pairs": 100, "max_rows": 100, "folds": 5, "repeats": 2, "seed": 0, "seconds": 1.0}
    return Outcome(SETUPS[name], about, tuple(results))


AS_CLAIMED = {
    "center": {"sentences": 0.01, "words": 0.01, "labels": -0.01},
    "all_but_the_top": {"sentences": 0.02, "words": 0.02, "labels": -0.02},
    "whiten": {"sentences": 0.03, "words": 0.03, "labels": -0.03},
}
REVERSED = {name: {kind: -x for kind, x in by.items()} for name, by in AS_CLAIMED.items()}
GRADED = ("whitening-sentences", "whitening-words", "isotropy-ranks-sentences", "isotropy-ranks-words")
LABELLED = (
    "whitening-probe", "whitening-knn", "whitening-clustering", "isotropy-ranks-probe", "isotropy-ranks-knn",
    "anisotropy-clusters-well", "conflict-explained",
)  # fmt: skip
RETRIEVAL = ("whitening-retrieval", "isotropy-ranks-retrieval")  # said to gain


def verdicts(found: Outcome) -> dict[str, Verdict]:
    return {one.claim.partition("/")[2]: one.verdict for one in findings([found])}


def test_claims_hold_where_they_were_planted() -> None:
    held = verdicts(planted(AS_CLAIMED))
    assert {held[claim] for claim in (*GRADED, *LABELLED, "all-but-the-top")} == {Verdict.HELD}
    assert {held[claim] for claim in RETRIEVAL} == {Verdict.NOT_HELD}
    contrary = verdicts(planted(REVERSED))
    assert {contrary[claim] for claim in (*GRADED, *LABELLED)} == {Verdict.NOT_HELD}
    assert {contrary[claim] for claim in RETRIEVAL} == {Verdict.HELD}
    calibrations = {one.claim: one for one in findings([planted(AS_CLAIMED)])}
    assert calibrations["classifiers/calibration-no-help"].condition == "on tasks with labels"
    assert held["dense-retrieval"] is contrary["dense-retrieval"] is Verdict.NOT_TESTABLE
    # no set by itself tells, but their mean does
    unseen = {one.claim: one for one in findings([planted(AS_CLAIMED, p_value=0.5)])}
    assert unseen["classifiers/whitening-sentences"].verdict is Verdict.HELD
    words = "helps on 0, hurts on 0 of 7; mean gain +0.030"
    assert unseen["classifiers/whitening-sentences"].ours.startswith(words)
    assert unseen["classifiers/conflict-explained"].verdict is Verdict.INCONCLUSIVE
    assert verdicts(planted(REVERSED, p_value=0.5))["whitening-words"] is Verdict.NOT_HELD


def test_what_is_said_of_static_vectors_is_judged_on_them() -> None:
    assert verdicts(planted(AS_CLAIMED))["isotropy-helps-words"] is Verdict.NOT_TESTABLE
    assert verdicts(planted(AS_CLAIMED, name="glove"))["isotropy-helps-words"] is Verdict.HELD
    assert verdicts(planted(REVERSED, name="glove"))["isotropy-helps-sentences"] is Verdict.NOT_HELD


def test_findings_say_which_data_sets_they_rest_on_and_how_those_were_run() -> None:
    found = planted(AS_CLAIMED)
    results = [replace(one, about=found.about | {"seed": 7}) if one.dataset == "sick" else one
               for one in found.results]  # fmt: skip
    evidence = {one.claim: one.evidence for one in findings([replace(found, results=tuple(results))])}
    splits = "at most 100 pairs of a set, 5 folds × 2 repeats, seed"
    sets = "STS-B, STS12, STS13, STS14, STS15, STS16"
    assert evidence["classifiers/whitening-sentences"] == f"MiniLM-L6; {sets}: {splits} 0; SICK: {splits} 7"
    assert "STS" not in evidence["classifiers/whitening-knn"]
    assert all(evidence.values())


@pytest.mark.parametrize(
    ("before", "cosine", "score", "verdict"),
    [
        (0.6, 0.0, 0.5, Verdict.CONDITION),
        (0.6, 0.3, 0.5, Verdict.NOT_HELD),
        (0.6, 0.0, 0.9, Verdict.NOT_HELD),
        (0.01, 0.0, 0.5, Verdict.INCONCLUSIVE),
    ],
)
def test_a_measure_is_improper_where_centring_alone_moves_it(
    before: float, cosine: float, score: float, verdict: Verdict
) -> None:
    """The mean cosine has to vanish, and IsoScore has to stay; one that is near zero anyway shows nothing."""
    found = planted(AS_CLAIMED)
    none = {"isoscore": 0.5, "mean_cosine": before}
    moved = {"center": {"isoscore": score, "mean_cosine": cosine}, "none": none, "all_but_the_top": none}
    made = replace(found, results=[replace(one, geometry=moved) for one in found.results])
    assert verdicts(made)["improper-measures"] is verdict


def test_effective_is_better_than_static_vectors() -> None:
    def verdict(rho: float, static: list[Outcome]) -> tuple[Verdict, str]:
        found = planted(AS_CLAIMED)
        stsb = found.results[0]
        task = replace(stsb.tasks["similarity"], baseline=rho)
        found = replace(found, results=(replace(stsb, tasks={"similarity": task}), *found.results[1:]))
        (one,) = (one for one in findings([found, *static]) if one.claim.endswith("contextual-anisotropic"))
        return one.verdict, one.condition

    static = [planted(AS_CLAIMED, name="glove")]  # 0.6 on 100 pairs
    assert verdict(0.8, static) == (Verdict.HELD, "")
    assert verdict(0.65, static) == (Verdict.INCONCLUSIVE, "")
    assert verdict(0.3, static) == (Verdict.NOT_HELD, "")
    assert verdict(0.8, [])[0] is Verdict.NOT_TESTABLE


def changed(found: Outcome, dataset: str, gain: float, p_value: float) -> Outcome:
    """Return the same run with another gain of whitening on one data set."""
    results = []
    for result in found.results:
        if result.dataset == dataset:
            tasks = {
                name: replace(
                    task,
                    corrections={
                        **task.corrections,
                        "whiten": replace(task.corrections["whiten"], gain=gain, p_value=p_value),
                    },
                )
                for name, task in result.tasks.items()
            }
            result = replace(result, tasks=tasks)
        results.append(result)
    return replace(found, results=tuple(results))


def test_sets_that_go_both_ways_or_say_nothing() -> None:
    both = changed(planted(AS_CLAIMED), "sts12", -0.02, 0.001)
    found = next(one for one in findings([both]) if one.claim == "classifiers/whitening-sentences")
    assert found.verdict is Verdict.CONDITION
    assert found.condition == "on STS-B, STS13, STS14, STS15, STS16, SICK; the contrary on STS12"
    silent = changed(planted(AS_CLAIMED, p_value=0.5), "sts12", -0.3, 0.5)
    assert verdicts(silent)["whitening-sentences"] is Verdict.INCONCLUSIVE


def test_clusterwise_is_held_against_the_global_correction_set_by_set() -> None:
    better = {"sentences": 0.05, "words": 0.0, "labels": -0.5}
    found = planted({**AS_CLAIMED, "clusterwise_all_but_the_top": better})
    claims = {
        one.subject: one.verdict for one in findings([found]) if one.claim.endswith("clusterwise-better")
    }
    assert claims["MiniLM-L6, sentences"] is Verdict.HELD
    assert claims["MiniLM-L6, words"] is Verdict.INCONCLUSIVE  # of three tests, five sets are too few
    gains = differences(found, ["knn", "retrieval"], "clusterwise_all_but_the_top", "all_but_the_top")
    assert gains == pytest.approx([-0.48] * 4)  # one a data set, whatever the number of tasks


def probed(**gains: float) -> Outcome:
    found = planted({name: dict.fromkeys(("sentences", "words", "labels"), x) for name, x in gains.items()})
    return replace(found, setup=SETUPS["minilm-probe"])


def test_the_probe_decides_whether_isotropy_harms_a_linear_classifier() -> None:
    names = ("whiten", "whiten_reduced", "whiten_shrunk", "whiten_soft")
    (all_lose,) = findings([probed(**dict.fromkeys(names, -0.1))])
    assert all_lose.claim == "classifiers/whitened-probe"
    assert all_lose.verdict is Verdict.HELD
    unsure = changed(probed(**dict.fromkeys(names, -0.1)), "sst2", 0.5, 0.5)
    assert [one.verdict for one in findings([unsure])] == [Verdict.INCONCLUSIVE]
    (none_loses,) = findings([probed(**dict.fromkeys(names, 0.1))])
    assert none_loses.verdict is Verdict.NOT_HELD


def test_the_answer_is_what_whitening_did() -> None:
    good = {"whiten": {"sentences": 0.1, "words": 0.1, "labels": 0.1}}
    bad = {"whiten": {"sentences": -0.1, "words": -0.1, "labels": -0.1}}
    helped, hurt, mixed = planted(good), planted(bad, name="glove"), planted(AS_CLAIMED)
    assert answer([helped]).startswith("Whiten. Whitening pays for MiniLM-L6 (")
    assert "of 28 tasks it helps 28, hurts 0" in answer([helped])
    assert answer([hurt]).startswith("No. It does harm to GloVe 6B (")
    assert answer([helped, hurt]).startswith("It depends on the encoder. Whitening pays for MiniLM-L6")
    said = answer([mixed])
    assert "it helps sentences, words and it hurts linear probe, knn, clustering, retrieval." in said
    assert "helps 12 of 12 of the tasks with graded scores and hurts 0 of 12" in said
    assert "with labels it helps 0 of 16 and hurts 16 of 16" in said
    wide = answer([mixed], {"MiniLM-L6": tally(probed(whiten=-0.01), "linear probe", "whiten")})
    assert "by −0.030 with a penalty of 1, 10 or 100, and −0.010 with one chosen among 25" in wide
    assert "pays" not in answer([planted(good, p_value=0.5)])


def test_the_best_helps_and_never_hurts() -> None:
    found = planted(AS_CLAIMED)
    best = best_of(found, "sentences")
    assert best is not None
    assert (best[0], len(best[1].helped), len(best[1].hurt), best[1].n) == ("whiten", 7, 0, 7)
    assert best_of(found, "retrieval") is None
    mixed = changed(found, "stsb", -0.01, 0.001)
    assert tally(mixed, "sentences", "whiten").hurt == ("STS-B",)
    other = best_of(mixed, "sentences")
    assert other is not None
    assert other[0] == "all_but_the_top"


def test_interval_is_students() -> None:
    from scipy.stats import t

    x = [0.1, 0.4, 0.2, 0.6]
    assert np.allclose(interval(x), t.interval(0.95, 3, np.mean(x), np.std(x, ddof=1) / 2))


@pytest.mark.slow
def test_pages_are_written(tmp_path: Path) -> None:
    found = [planted(AS_CLAIMED), probed(whiten=0.1, whiten_reduced=0.1, whiten_shrunk=0.1, whiten_soft=0.1)]
    page = tmp_path / "page.md"
    written = STUDY.write(found, tmp_path / "out", page=page)
    assert {path.name for path in written} == {"page.md", "should-i-whiten.json", "should-i-whiten.html"}
    text = page.read_text()
    assert text.splitlines()[3].startswith(answer(found[:1])[:100])  # before anything else
    assert "(out/corrections-gains.png)" in text
    assert (tmp_path / "out" / "corrections-gains.pdf").exists()
    assert "| MiniLM-L6 | whiten +0.030 (helps on 7 of 7) |" in text
    kept = json.loads((tmp_path / "out" / "should-i-whiten.json").read_text())
    assert kept.pop("checksum")
    assert kept == json.loads(json.dumps(STUDY.as_dict(found)))


def test_sections_without_figures() -> None:
    titles = [one.title for one in sections([planted(AS_CLAIMED)])]
    assert titles == ["What to do", "MiniLM-L6: gains", "MiniLM-L6: every data set", "How it was done"]


def test_bad_input(tmp_path: Path) -> None:
    with raises(InputError, argument="dataset", got="mnli"):
        chosen_datasets(["mnli"])
    with pytest.raises(FileError, match=r"has no wordsim/google_analogies\.tsv\.gz"):
        run_setup(SETUPS["glove-analogies"], Options(), Place(tmp_path))
    assert chosen_datasets(["words"])[0].name == "wordsim353"
    own = Options(model=["my-model"])
    assert [one.name for one in STUDY.chosen((), own)] == ["my-model"]
    assert [one.name for one in STUDY.chosen(DEFAULT, own)] == [*DEFAULT, "my-model"]  # asked for by name
    assert [one.name for one in STUDY.chosen((), Options())] == list(DEFAULT)
