"""*Should I whiten?*: runs on small data, claims from planted gains, the page of the kept runs."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isoscope.advice import Outcome as Tried
from isoscope.advice import TaskAdvice
from isoscope.errors import FileError, InputError
from isoscope_papers.claims import Holding
from isoscope_papers.corrections.answer import answer
from isoscope_papers.corrections.claims import all_claims, best_of, interval, tally
from isoscope_papers.corrections.report import as_dict, as_text, sections, write_report
from isoscope_papers.corrections.run import Outcome, Result, keep, read_outcomes, run_setup
from isoscope_papers.corrections.setups import DATASETS, SETUPS, Setup, chosen_datasets, chosen_setups

WORDS = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay"]
KEPT = Path(__file__).resolve().parents[2] / "docs" / "reproduction" / "runs"


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


def test_a_setup_is_run_kept_and_read_again(table: Path, data: Path, tmp_path: Path) -> None:
    setup = chosen_setups(None, [table])[0]
    assert setup.is_static
    options: dict[str, Any] = {"data": data, "max_pairs": 50, "max_rows": 60, "repeats": 1}
    found = run_setup(setup, datasets=["stsb", "cola"], **options)
    pairs, labels = found.results
    assert (pairs.dataset.name, labels.dataset.name) == ("stsb", "cola")
    assert pairs.tasks[0].n_items + pairs.n_left == 50
    assert labels.tasks[0].n_items == 60
    assert [one.task for one in labels.tasks] == ["linear_probe", "knn", "clustering", "retrieval"]
    assert set(pairs.geometry) == {"none", *(one.correction for one in pairs.tasks[0].outcomes)}
    keep(found, tmp_path / "runs")
    assert read_outcomes(tmp_path / "runs") == [found]
    again = run_setup(setup, datasets=["cola"], seed=4, **options)
    keep(again, tmp_path / "runs")
    (merged,) = read_outcomes(tmp_path / "runs")
    assert merged.results[0] == pairs  # of the earlier run
    assert merged.results[1] != labels


def planted(gains: dict[str, dict[str, float]], p_value: float = 0.001) -> Outcome:
    """A run in which every correction gains what is said on each kind of data set."""
    results = []
    for name, dataset in DATASETS.items():
        tasks = (
            ["similarity"] if dataset.kind != "labels" else ["linear_probe", "knn", "clustering", "retrieval"]
        )
        found = tuple(
            TaskAdvice(
                task,
                "score",
                100,
                0.5,
                tuple(
                    Tried(correction, 0.5 + by[dataset.kind], by[dataset.kind], (-1.0, 1.0), p_value)
                    for correction, by in gains.items()
                ),
            )
            for task in tasks
        )
        scores = dict(zip(("none", *gains), np.linspace(0.1, 0.9, len(gains) + 1), strict=True))
        geometry = {one: {"isoscore": float(score), "mean_cosine": 0.0} for one, score in scores.items()}
        results.append(Result(DATASETS[name], found, geometry))
    about = {"max_pairs": 100, "max_rows": 100, "folds": 5, "repeats": 2, "seed": 0, "seconds": 1.0}
    return Outcome(SETUPS["minilm"], about, tuple(results))


AS_CLAIMED = {
    "center": {"sentences": 0.01, "words": 0.01, "labels": -0.01},
    "all_but_the_top": {"sentences": 0.02, "words": 0.02, "labels": -0.02},
    "whiten": {"sentences": 0.03, "words": 0.03, "labels": -0.03},
}


def test_claims_hold_where_they_were_planted() -> None:
    claims = all_claims([planted(AS_CLAIMED)])
    assert len(claims) == 12
    assert {one.holding for one in claims} == {Holding.HELD}
    reversed_gains = {name: {kind: -x for kind, x in by.items()} for name, by in AS_CLAIMED.items()}
    assert {one.holding for one in all_claims([planted(reversed_gains)])} == {Holding.NOT_HELD}
    # no set by itself tells, but their mean does
    unseen = [one for one in all_claims([planted(AS_CLAIMED, p_value=0.5)]) if "by whitening" in one.claim]
    assert {one.holding for one in unseen} == {Holding.HELD}
    assert unseen[0].evidence.startswith("helps on 0, hurts on 0 of 7; mean gain +0.030")
    against = [
        one for one in all_claims([planted(reversed_gains, p_value=0.5)]) if "by whitening" in one.claim
    ]
    assert {one.holding for one in against} == {Holding.NOT_HELD}


def changed(found: Outcome, dataset: str, gain: float, p_value: float) -> Outcome:
    """The same run with another gain of whitening on one data set."""
    results = []
    for result in found.results:
        if result.dataset.name == dataset:
            tasks = tuple(
                replace(
                    task,
                    outcomes=tuple(
                        replace(one, gain=gain, p_value=p_value) if one.correction == "whiten" else one
                        for one in task.outcomes
                    ),
                )
                for task in result.tasks
            )
            result = replace(result, tasks=tasks)
        results.append(result)
    return replace(found, results=tuple(results))


def test_a_claim_depends_where_sets_go_both_ways_or_say_nothing() -> None:
    both = changed(planted(AS_CLAIMED), "sts12", -0.02, 0.001)
    assert all_claims([both])[0].holding is Holding.DEPENDS
    silent = changed(planted(AS_CLAIMED, p_value=0.5), "sts12", -0.3, 0.5)
    assert all_claims([silent])[0].holding is Holding.DEPENDS


def test_the_answer_is_what_whitening_did() -> None:
    good = {"whiten": {"sentences": 0.1, "words": 0.1, "labels": 0.1}}
    bad = {"whiten": {"sentences": -0.1, "words": -0.1, "labels": -0.1}}
    helped, hurt, mixed = planted(good), planted(bad), planted(AS_CLAIMED)
    hurt = replace(hurt, setup=SETUPS["glove"])
    assert answer([helped]).startswith("Whiten. Whitening pays for MiniLM-L6 (")
    assert "of 28 tasks it helps 28, hurts 0" in answer([helped])
    assert answer([hurt]).startswith("No. It does harm to GloVe 6B (")
    assert answer([helped, hurt]).startswith("It depends on the encoder. Whitening pays for MiniLM-L6")
    said = answer([mixed])
    assert "Of MiniLM-L6 (" in said
    assert "it helps sentences, words and it hurts linear probe, knn, clustering, retrieval." in said
    assert "helps 12 of 12 of the tasks with graded scores and hurts 0 of 12" in said
    assert "with labels it helps 0 of 16 and hurts 16 of 16" in said
    unsure = answer([planted(good, p_value=0.5)])
    assert "pays" not in unsure
    assert "isoscope advise" in unsure


def test_the_best_helps_and_never_hurts() -> None:
    found = planted(AS_CLAIMED)
    name, one = best_of(found, "sentences")
    assert (name, one.n_helps, one.n_hurts, one.n) == ("whiten", 7, 0, 7)
    assert best_of(found, "retrieval") is None
    first = found.results[0]
    hurt = replace(first.tasks[0].outcomes[2], gain=-0.01)
    task = replace(first.tasks[0], outcomes=(*first.tasks[0].outcomes[:2], hurt))
    mixed = replace(found, results=(replace(first, tasks=(task,)), *found.results[1:]))
    assert tally(mixed, "sentences", "whiten").n_hurts == 1
    assert best_of(mixed, "sentences")[0] == "all_but_the_top"


def test_interval_is_students() -> None:
    from scipy.stats import t

    x = [0.1, 0.4, 0.2, 0.6]
    assert np.allclose(interval(x), t.interval(0.95, 3, np.mean(x), np.std(x, ddof=1) / 2))


def test_pages_are_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra `figures`")
    found = [planted(AS_CLAIMED)]
    page = tmp_path / "page.md"
    written = write_report(found, tmp_path / "out", command="isoscope reproduce corrections", page=page)
    assert {path.name for path in written} == {"page.md", "should-i-whiten.json", "should-i-whiten.html"}
    text = page.read_text()
    assert text.splitlines()[3] == answer(found)  # before anything else
    assert "(out/corrections-gains.png)" in text
    assert (tmp_path / "out" / "corrections-gains.pdf").exists()
    assert "| MiniLM-L6 | whiten +0.030 (helps on 7 of 7) |" in text
    kept = json.loads((tmp_path / "out" / "should-i-whiten.json").read_text())
    assert kept.pop("checksum")
    assert kept == as_dict(found)
    assert "leave it alone" in as_text(found)
    alone = write_report(found, tmp_path / "alone", command="isoscope reproduce corrections")
    assert "(corrections-gains.png)" in alone[1].read_text()


def test_sections_without_figures() -> None:
    titles = [one.title for one in sections([planted(AS_CLAIMED)])]
    assert titles[:2] == ["What to do", "Do the papers' claims hold?"]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="setup 'bert' is not known"):
        chosen_setups(["bert"])
    with pytest.raises(InputError, match="dataset 'mnli' is not known"):
        chosen_datasets(["mnli"])
    with pytest.raises(InputError, match="holds no runs"):
        read_outcomes(tmp_path)
    (tmp_path / "corrections-x.json").write_text("{}")
    with pytest.raises(FileError, match="does not hold a run"):
        read_outcomes(tmp_path)
    assert chosen_datasets(["words"])[0].name == "wordsim353"
    assert chosen_setups(["all"]) == list(SETUPS.values())
    assert Setup("a", "A", "a").prefix == ""


@pytest.mark.skipif(not list(KEPT.glob("corrections-*.json")), reason="no runs are kept")
def test_the_page_of_the_documentation_is_what_the_kept_runs_give(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra `figures`")
    page = tmp_path / "should-i-whiten.md"
    write_report(
        read_outcomes(KEPT), tmp_path / "reproduction", command="isoscope reproduce corrections", page=page
    )
    assert page.read_text() == (KEPT.parents[1] / "should-i-whiten.md").read_text()
