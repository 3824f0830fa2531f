"""The study of what geometry predicts: scores, correlations, regrets and the kept table, by other code."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from tests.raising import raises

from isoscope.errors import InputError
from isoscope_papers.predicts import setups
from isoscope_papers.predicts.analysis import analysed
from isoscope_papers.predicts.associations import GROUPS, TASKS, adjusted, by_lineage, spearman, t_interval
from isoscope_papers.predicts.choices import (
    ALL,
    AS_SAID,
    CORRECTION,
    DEFAULT,
    LAYER,
    LEARNT,
    RANDOM,
    all_regrets,
)
from isoscope_papers.predicts.findings import findings
from isoscope_papers.predicts.options import Options
from isoscope_papers.predicts.run import run_setup
from isoscope_papers.predicts.scores import analogies, on_labels, search, similarity
from isoscope_papers.predicts.setups import ENCODER, METRICS, SETUPS, Setup
from isoscope_papers.predicts.spaces import Space, correction_of, entailed
from isoscope_papers.predicts.study import STUDY
from isoscope_papers.predicts.table import FILE, TYPES, Spaces, joined, keep, load, table_of
from isoscope_papers.predicts.texts import load_items
from isoscope_papers.predicts.wide import UNCORRECTED, Wide
from isoscope_papers.study import Place
from isoscope_papers.verdict import Verdict

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# ---------------------------------------------------------------- scores


def test_similarity_is_the_mean_of_correlations(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 5)).astype("f4")
    rows, targets = rng.integers(40, size=(60, 2)), rng.normal(size=60)
    parts = np.repeat(["a", "b"], 30)
    cosines = [
        float(X[i].astype(float) @ X[j] / np.linalg.norm(X[i].astype(float)) / np.linalg.norm(X[j]))
        for i, j in rows
    ]
    by_hand = [stats.spearmanr(cosines[part], targets[part]).statistic for part in (slice(30), slice(30, 60))]
    found = similarity(X, rows, targets, parts)
    assert found.value == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert similarity(np.ones((40, 5)), rows, targets, parts).value == 0.0


def test_tasks_of_labels(rng: np.random.Generator) -> None:
    labels = np.repeat(["a", "b", "c"], 20)
    X = rng.normal(size=(60, 4)) + 1.2 * np.eye(3, 4).repeat(20, axis=0)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    codes = np.unique(labels, return_inverse=True)[1]

    def weights(distances: np.ndarray) -> np.ndarray:  # the cosine plus 1, from Euclidean distances of units
        return 2 - distances**2 / 2

    votes = KNeighborsClassifier(5, weights=weights, algorithm="brute")
    right = [
        votes.fit(np.delete(units, i, axis=0), np.delete(codes, i)).predict(units[i : i + 1])[0] == codes[i]
        for i in range(60)
    ]
    found = {one.task: one for one in on_labels(X, labels, ("knn", "probe", "clustering"))}
    assert found["knn"].value == pytest.approx(np.mean(right))
    assert found["knn"].standard_error == pytest.approx(np.std(right) / 60**0.5)
    far = {one.task: one.value for one in on_labels(X + 50 * np.eye(3, 4).repeat(20, axis=0), labels, found)}
    assert far == pytest.approx({"knn": 1.0, "probe": 1.0, "clustering": 1.0})
    assert 0.34 < found["probe"].value < 1
    moved = {one.task: one.value for one in on_labels(1e-3 * X + 5, labels, ("probe",))}
    assert moved["probe"] == pytest.approx(found["probe"].value), "scale and place do not matter to the probe"


def test_search_and_analogies(rng: np.random.Generator) -> None:
    first, second = rng.normal(size=(2, 30, 6))
    cosines = 1 - np.array(
        [
            [np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1)) for b in second]
            for a in first
        ]
    )
    ranks = [stats.rankdata(-row)[i] for i, row in enumerate(cosines)]
    assert search(first, second).value == pytest.approx(np.mean(1 / np.array(ranks)))
    assert search(first, 3 * first).value == 1.0
    countries, capital = np.eye(8)[:4], np.eye(8)[4]
    words = np.vstack([countries, countries + capital, np.eye(8)[5:]])
    rows = np.array([(0, 4, i, 4 + i) for i in (1, 2, 3)])
    assert analogies(words, rows, np.ones(len(words), dtype=bool)).value == 1.0
    wrong = rows[:, [0, 1, 2, 0]]
    assert analogies(words, wrong, np.ones(len(words), dtype=bool)).value == 0.0


# ---------------------------------------------------------------- statistics


def test_correlations_are_those_of_scipy(rng: np.random.Generator) -> None:
    x, y, z = rng.integers(9, size=(3, 40)).astype(float)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    gaps = np.where(np.arange(40) % 7 == 0, np.nan, x)
    assert spearman(gaps, y) == pytest.approx(stats.spearmanr(gaps, y, nan_policy="omit").statistic)
    assert np.isnan(spearman(np.ones(40), y))
    assert np.isnan(spearman(x[:4], y[:4]))
    left = [
        ranks - LinearRegression().fit(z[:, None], ranks).predict(z[:, None])
        for ranks in (stats.rankdata(x), stats.rankdata(y))
    ]
    assert spearman(x, y, z[:, None]) == pytest.approx(stats.pearsonr(*left).statistic)


def test_intervals_and_correction_are_those_of_scipy() -> None:
    values = [0.1, 0.5, 0.3, -0.2]
    test = stats.ttest_1samp(values, 0)
    low, high = test.confidence_interval()
    assert t_interval(values) == pytest.approx((np.mean(values), low, high, test.pvalue))
    z = stats.ttest_1samp(np.arctanh(values), 0)
    ends = z.confidence_interval()
    expected = (np.tanh(np.arctanh(values).mean()), np.tanh(ends.low), np.tanh(ends.high), z.pvalue)
    assert t_interval(values, fisher=True) == pytest.approx(expected)
    p = np.array([0.001, 0.2, 0.04, 0.03, 0.9])
    assert adjusted(p) == pytest.approx(stats.false_discovery_control(p))


def test_a_training_run_counts_with_the_model_it_begins_from() -> None:
    values = {"masked": 0.2, "contrastive": 0.6, "minilm": 1.0}
    assert by_lineage(values) == {"masked": pytest.approx(0.4), "minilm": 1.0}


# ---------------------------------------------------------------- a made table


def made(seed: int = 0, good: str = "isoscore_debiased") -> pd.DataFrame:
    """Return a table of three models of five layers and corrections, in which one metric is the score."""
    rng = np.random.default_rng(seed)
    rows = [
        row
        for model in ("minilm", "mpnet", "smollm2", "e5")
        for space in _made_spaces(model)
        for row in _made_rows(space, rng.normal(), rng, good)
    ]
    return table_of(pd.DataFrame(rows))


def _made_spaces(model: str) -> Iterator[Space]:
    for pooling in SETUPS[model].poolings[:2]:
        for layer in range(5):
            yield Space(model, setups.LAYERS, layer, layer / 4, pooling)
    for strength in (0.25, 0.5, 0.75, 1.0):
        yield Space(model, setups.CORRECTIONS, 4, 1.0, correction="whiten", strength=strength)


def _made_rows(space: Space, quality: float, rng: np.random.Generator, good: str) -> Iterator[dict[str, Any]]:
    about = {name: getattr(space, name) for name in ("model", "family", "layer", "depth", "pooling", "step")}
    about |= {"correction": space.correction, "strength": space.strength, "space": space.name, "n_dims": 8}
    about |= {"standard_error": np.nan, "n": 100}
    for corpus in dict.fromkeys(corpus for corpus, _ in TASKS):
        for name in METRICS:
            value = quality if name == good else rng.normal()
            yield about | {"corpus": corpus, "kind": "metric", "name": name, "value": value}
        for task in (task for own, task in TASKS if own == corpus):
            score = 0.5 + 0.1 * np.tanh(quality)
            yield about | {"corpus": corpus, "kind": "task", "name": task, "value": score}


def wide_of(table: pd.DataFrame) -> Wide:
    return Wide(joined([Spaces(table)]))


def test_a_metric_that_is_the_score_predicts_and_chooses(tmp_path: Path) -> None:
    keep(Spaces(made()), tmp_path / "runs" / "any.json")
    runs = STUDY.read(tmp_path / "runs")
    assert [str(run.rows["model"].iloc[0]) for run in runs] == ["minilm", "mpnet", "smollm2", "e5"]
    found = analysed(runs)
    rows = found.association(UNCORRECTED, "isoscore_debiased")
    assert rows["rho"].min() > 0.99
    for choice in (LAYER, CORRECTION):
        rule = found.rule(choice, f"isoscore_debiased, {AS_SAID}", ALL)
        assert rule is not None
        assert rule["regret"] == pytest.approx(0, abs=1e-4)
        default, at_random = (found.rule(choice, name, ALL) for name in (DEFAULT[choice], RANDOM))
        assert default is not None
        assert at_random is not None
        assert default["regret"] == pytest.approx(rule["gain"], abs=1e-4)
        assert at_random["regret"] > 1
    verdicts = {(one.claim, one.subject): one.verdict for one in findings(runs)}
    assert verdicts["predicts/labels-choose-better", "the layer"] is not Verdict.HELD
    written = STUDY.write(runs, tmp_path)
    text = written[1].read_text()
    assert "Is isotropy good?" in text
    assert "Is RankMe a model selector?" in text
    assert (tmp_path / "predicts-regret.pdf").stat().st_size > 1000
    rules = json.loads(written[0].read_text())["regrets"]
    assert {one["group"] for one in rules} == {ALL}
    assert {one["choice"] for one in rules} == {LAYER, CORRECTION}


def test_the_learnt_direction_is_from_other_models_alone() -> None:
    """For mean cosine, low is said to be good; here it is the score, so that high is learnt."""
    table = made(good="mean_cosine")
    regrets = all_regrets(wide_of(table), ("mean_cosine",)).set_index(["choice", "rule", "group"])["regret"]
    assert regrets[LAYER, f"mean_cosine, {LEARNT}", ALL] == pytest.approx(0, abs=1e-4)
    assert regrets[LAYER, f"mean_cosine, {AS_SAID}", ALL] > 5
    pair = table[table["model"].isin(["minilm", "mpnet"])].copy()
    is_metric = pair["name"] == "mean_cosine"
    pair.loc[is_metric & (pair["model"] == "minilm"), "value"] *= -1
    noisy = is_metric & (pair["model"] == "mpnet")
    pair.loc[noisy, "value"] += np.random.default_rng(0).normal(size=noisy.sum()).astype("f4")
    both = all_regrets(wide_of(pair), ("mean_cosine",)).set_index(["choice", "rule", "group"])
    by_model = both.loc[(LAYER, f"mean_cosine, {LEARNT}", ALL), "by_lineage"]
    assert by_model["minilm"] > 5, "its own labels would have told the direction, those of the other mislead"


def test_a_model_replaces_its_own_rows(tmp_path: Path) -> None:
    first, second = made(0), made(1)
    keep(Spaces(first), tmp_path / "x.json")
    keep(Spaces(second[second["model"] == "mpnet"]), tmp_path / "x.json")
    runs = {str(run.rows["model"].iloc[0]): run.rows for run in load(tmp_path)}
    assert list(runs) == ["minilm", "mpnet", "smollm2", "e5"]
    for model, table in (("minilm", first), ("mpnet", second)):
        expected = table.loc[table["model"] == model, "value"].to_numpy()
        assert np.array_equal(runs[model]["value"].to_numpy(), expected)
    with raises(InputError, wanted=FILE):
        load(tmp_path / "absent")


# ---------------------------------------------------------------- texts and runs


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data folder with a few pairs and labelled texts."""
    rng = np.random.default_rng(0)
    words = np.array(["a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat"])
    lines = {
        "sts/stsb_en_test.jsonl.gz": [
            {
                "sentence1": " ".join(rng.choice(words, 6)),
                "sentence2": " ".join(rng.choice(words, 6)),
                "score": i % 5,
            }
            for i in range(40)
        ],
        "glue/sst2_dev.jsonl.gz": [
            {"sentence": " ".join(rng.choice(words, 7)), "label": i % 2} for i in range(60)
        ],
    }
    lines["glue/sst2_dev.jsonl.gz"] += lines["glue/sst2_dev.jsonl.gz"][:5]
    for name, records in lines.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))
    return tmp_path / "data"


@pytest.mark.slow
def test_every_layer_of_a_model(
    tiny_bert: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOSCOPE_CACHE", str(tmp_path / "cache"))
    few = {name: setups.MATERIALS[name] for name in ("stsb", "sst2")}
    monkeypatch.setattr("isoscope_papers.predicts.texts.MATERIALS", few)
    setup = Setup("tiny", "tiny", str(tiny_bert), poolings=("mean", setups.WITHOUT_FIRST))
    monkeypatch.setattr("isoscope_papers.predicts.spaces.CORRECTED", {"center": (1,), "pca": (2,)})
    place = Place(data, device="cpu")
    (run,) = run_setup(setup, Options(), place, progress=False)
    rows = run.rows.astype({"space": str, "family": str})
    layers = rows[rows["family"] == setups.LAYERS]["layer"].nunique()
    assert rows["space"].nunique() == 2 * layers + 2
    assert set(rows["kind"]) == {"metric", "label metric", "task"}
    centered = rows[rows["space"].str.contains("center") & (rows["name"] == "mean_cosine")]
    assert (centered["value"].abs() < 0.1).all()
    (again,) = run_setup(setup, Options(), place, progress=False)
    pd.testing.assert_frame_equal(again.rows, run.rows)


def test_texts_are_drawn_once_and_labels_evenly(data: Path) -> None:
    items = load_items(setups.MATERIALS["sst2"], Place(data))
    assert load_items(setups.MATERIALS["sst2"], Place(data)).texts == items.texts
    assert len(items.rows) == len(items.texts), "a text belongs to one item"
    missing = np.ones(len(items.texts), dtype=bool)
    missing[:3] = False
    assert items.known(missing).sum() == len(items.rows) - 3


def test_corrections_by_name() -> None:
    X = np.random.default_rng(0).normal(size=(80, 8)) + 3
    for name, strengths in setups.CORRECTED.items():
        for strength in strengths[:2]:
            rows = np.asarray(correction_of(name, strength, 8).fit(X).transform(X))
            part = 8 // max(1, int(strength))
            left = {"pca": part, "truncate": part, "remove_dimensions": 7}
            assert rows.shape == (80, left.get(name, 8))
            assert np.allclose(rows, X[:, : rows.shape[1]]) == (name == "truncate")


def test_pairs_of_the_task_are_in_no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    from isoscope_papers.corpora import Corpus

    asked = []

    def corpus(name: str, *, split: str, **_: Any) -> Corpus:
        asked.append((name, split))
        return Corpus(name, (("a", "b"), ("c", "d")), ("entailment", "neutral"))

    monkeypatch.setattr("isoscope_papers.predicts.spaces.load_corpus", corpus)
    monkeypatch.setattr(
        "isoscope_papers.predicts.spaces.load_pairs", lambda *_, **__: Corpus("mnli", (("e",), ("f",)))
    )
    assert entailed(Place()) == [("e", "f"), ("a", "c")]
    assert asked == [("snli", "test")]
    assert setups.MATERIALS["snli"].corpora == (("snli", "dev"),)


def test_an_encoder_has_one_space_and_its_corrections() -> None:
    assert {setup.kind for setup in SETUPS.values()} == {
        setups.LAYERS, ENCODER, setups.TABLE, setups.MASKED, setups.CONTRAST,
    }  # fmt: skip
    assert Space("e5", setups.CORRECTIONS, 0, 1.0, correction="whiten", strength=0.5).name == (
        "e5/layer-00/mean/whiten=0.5"
    )


# ---------------------------------------------------------------- the kept table, by other code


@pytest.fixture(scope="module")
def kept() -> pd.DataFrame:
    rows = pd.read_parquet(KEPT / "runs" / FILE)
    assert list(rows) == list(TYPES)
    return rows.astype({name: "str" for name, kind in TYPES.items() if kind == "category"})


def values(rows: pd.DataFrame, corpus: str, name: str) -> pd.Series:
    return rows[(rows["corpus"] == corpus) & (rows["name"] == name)].set_index("space")["value"].astype(float)


@pytest.mark.parametrize(
    ("metric", "group"),
    [("isoscore_debiased", "similarity"), ("twonn", "neighbours"), ("rankme_debiased", "probe")],
)
def test_correlations_of_the_kept_table(kept: pd.DataFrame, metric: str, group: str) -> None:
    """ρ of each model, and the mean of Fisher's z over models, from the table by pandas and scipy."""
    rows = json.loads((KEPT / "predicts.json").read_text())["correlations"]
    (row,) = [
        one for one in rows if (one["view"], one["metric"], one["group"]) == (UNCORRECTED, metric, group)
    ]
    of_layers = kept[kept["family"].isin(["layers", "checkpoints"])]
    by_lineage: dict[str, list[float]] = {}
    for model, own in of_layers.groupby("model"):
        if own["space"].nunique() < 5:
            continue
        pairs = [(values(own, corpus, metric), values(own, corpus, task)) for corpus, task in GROUPS[group]]
        rhos = [stats.spearmanr(x, y.loc[x.index], nan_policy="omit").statistic for x, y in pairs]
        assert row["by_model"][str(model)] == pytest.approx(np.nanmean(rhos), abs=1e-9)
        by_lineage.setdefault(str(model).replace("contrastive", "masked"), []).append(float(np.nanmean(rhos)))
    z = np.arctanh([np.mean(own) for own in by_lineage.values()])
    assert row["rho"] == pytest.approx(np.tanh(z.mean()), abs=1e-9)
    assert row["p"] == pytest.approx(stats.ttest_1samp(z, 0).pvalue)


@pytest.mark.parametrize("metric", ["rankme_debiased", "isoscore_debiased"])
def test_regrets_of_the_kept_table(kept: pd.DataFrame, metric: str) -> None:
    """What choosing the layer by a metric costs, from the table by pandas."""
    rows = json.loads((KEPT / "predicts.json").read_text())["regrets"]
    by_rule = {one["rule"]: one for one in rows if (one["choice"], one["group"]) == ("layer", "all tasks")}
    plain = kept[
        (kept["correction"] == "none") & (kept["step"] == kept.groupby("model")["step"].transform("max"))
    ]
    regrets: dict[str, dict[str, list[float]]] = {"last layer": {}, f"{metric}, as said": {}}
    for model, own in plain.groupby("model"):
        each: dict[str, list[float]] = {rule: [] for rule in regrets}
        for _, line in own.groupby("pooling"):
            order = line.drop_duplicates("space").set_index("space")["layer"].sort_values()
            for corpus, task in TASKS if len(order) > 2 else ():
                scores = 100 * values(line, corpus, task).loc[order.index]
                chosen = values(line, corpus, metric).loc[order.index]
                best = chosen == chosen.max()
                each["last layer"].append(scores.max() - scores.iloc[-1])
                each[f"{metric}, as said"].append(
                    scores.max() - (scores[best].mean() if best.any() else scores.iloc[-1])
                )
        name = str(model).replace("contrastive", "masked")
        for rule, found in each.items():
            if found:
                regrets[rule].setdefault(name, []).append(float(np.mean(found)))
    for rule, by_model in regrets.items():
        assert by_rule[rule]["regret"] == pytest.approx(
            np.mean([np.mean(own) for own in by_model.values()]), abs=1e-6
        )


def test_the_kept_table_is_sound(kept: pd.DataFrame) -> None:
    tasks = kept[kept["kind"] == "task"]
    assert tasks["value"].notna().all()
    assert tasks["value"].between(-1, 1).all()
    assert (kept.groupby("space")["n_dims"].nunique() == 1).all()
    assert not kept.duplicated(["space", "corpus", "kind", "name"]).any()
