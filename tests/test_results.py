"""Every public result prints, shows itself in a notebook, and becomes JSON and data frames."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoscope as iso
from isoscope.audit.shares import Share
from isoscope.audit.sweep import Setting, Sweep
from isoscope.comparison import separability
from isoscope.comparison.similarity import similarity_matrix
from isoscope.corrections.correct import GEOMETRY, CorrectedFile
from isoscope.engine.plan import plan
from isoscope.engine.readings import Reading, Readings, View
from isoscope.models.layers.checkpoints import LayerTrajectory
from isoscope.queries import retrieval
from isoscope.results import Result, plain
from isoscope.training.finetune import OverSeeds
from isoscope.training.frontier import Frontier
from isoscope.training.masked import MaskedLM

HOSTILE = "<script>alert(1)</script> [red]\x1b[31m"
LABELS = np.array([HOSTILE, "b", "c"])[np.arange(60) % 3]
SPACE = np.random.default_rng(0).normal(size=(60, 6)) + np.eye(3, 6)[np.arange(60) % 3] * 3
# public dataclasses that are something else: rows of a result, inputs, statistics
NO_RESULTS = {
    "Assumption", "Change", "ClusterDistances", "Compressed", "Correspondence", "CrossMoments",
    "DimensionAtScale", "DirectionPart", "Directions", "Gain", "Gate", "GateResult", "GroupDirections",
    "GroupMoments", "Guarantee", "InputModel", "KernelAlignment", "LabelPart", "Labels",
    "LanguageModel", "Metric", "Moments", "MovedLabel", "MovedRow", "Neighbors", "Outcome", "Reading",
    "Separation", "SliceChange", "SliceOverlap", "Space", "TaskAdvice", "TokenRows", "TokenStates",
    "TradeOffPoint",
}  # fmt: skip


@cache
def trajectory() -> iso.Trajectory:
    return iso.train_embeddings(SPACE, LABELS, steps=4, seeds=2, progress=False)


def trained(kind: type, **values: Any) -> Any:
    about = {
        "model": HOSTILE, "temperature": 0.05, "batch_size": 8, "pooling": "mean", "seed": 0, "metric": "f1",
        "regularizer": None, "strength": 0.0, "n_train": 90, "n_test": 30, "n_layers": 2, "n_dims": 8,
    }  # fmt: skip
    losses = {"loss": np.linspace(2, 1, 30)}
    return kind(losses=losses, trajectory=trajectory(), configuration=about, stopped="asked to", **values)


def finetuned() -> iso.training.FineTuned:
    scores = {"accuracy": 0.5, "f1": 0.4, "matthews": 0.1}
    geometry = {"isoscore_star": 0.2, "isoscore_debiased": 0.3, "mean_cosine": 0.4, "twonn": float("nan")}
    epochs = [{"epoch": n, "step": 15 * n, "loss": 1.0 / n, **scores} for n in (1, 2)]
    return trained(
        iso.training.FineTuned,
        epochs=epochs,
        geometry=[{"layer": layer, **geometry} for layer in (1, 2, "all")],
    )


@cache
def profile() -> iso.LayerProfile:
    import torch

    names = ("mean_norm", "mean_cosine", "isoscore", "effective_rank")
    rows = [
        Reading(name, None if name == "isoscore" and layer else 0.5, group={"layer": layer, "view": view})
        for layer in (0, 1)
        for view in ("all tokens", "without sinks")
        for name in names
    ]
    return iso.LayerProfile(
        model=HOSTILE, n_tokens=100, n_texts=9, n_types=40, n_dims=8,
        readings=Readings(rows),
        sinks=("the first token",),
        n_sinks=9, sample=50, type_names=("a", "b"), type_counts=torch.tensor([3, 4]),
        type_similarities={layer: torch.tensor([0.5, 0.4]) for layer in (0, 1)},
        seconds={"model": 1.0, "measures": 0.1, "sample": 0.1}, notes=("few texts",),
    )  # fmt: skip


def measured() -> iso.Measurement:
    return replace(iso.measure(SPACE, labels=LABELS, progress=False), name=HOSTILE, notes=(HOSTILE,))


def changed() -> iso.metrics.SelfSimilarityChange:
    return iso.metrics.SelfSimilarityChange({HOSTILE: 0.1, 7: -0.2}, {HOSTILE: 4, 7: 3}, (), ("x",))


def corrected() -> CorrectedFile:
    geometry = dict.fromkeys(GEOMETRY, 0.5) | {GEOMETRY[0]: None}
    return CorrectedFile(iso.Center(), 60, 6, 4, geometry, geometry, Path("a.npy"), None, (HOSTILE,))


EXAMPLES: dict[str, Callable[[], Any]] = {
    "Advice": lambda: iso.advise(SPACE, labels=LABELS, tasks="knn", repeats=1, progress=False),
    "Attribution": lambda: iso.metrics.attribute_anisotropy(SPACE, LABELS),
    "ChosenClusters": lambda: iso.clustering.choose_clusters(SPACE),
    "ClassCollapse": lambda: iso.metrics.class_collapse(SPACE, LABELS),
    "ClusterAdjustedSimilarities": lambda: iso.metrics.ClusterAdjustedSimilarities(0.1, 0.2, 3, 0),
    "Clustering": lambda: iso.kmeans(SPACE, 3),
    "CollapsePrediction": lambda: iso.predict_collapse(SPACE, LABELS),
    "Comparison": lambda: iso.compare(SPACE, SPACE[:, ::-1] ** 3, labels=LABELS, progress=False),
    "Audit": lambda: iso.audit(iso.Space(SPACE, texts=[HOSTILE] * 60, name=HOSTILE), progress=False),
    "Compression": lambda: iso.compress(
        iso.Space(SPACE, labels=LABELS, name=HOSTILE), methods=["int8", "pq:5"], k=3, progress=False
    ),
    "Contrasted": lambda: trained(iso.training.Contrasted),
    "CorrectedFile": corrected,
    "Correlation": lambda: trajectory().correlation(),
    "DimensionScales": lambda: iso.metrics.dimension_scales(SPACE),
    "DimensionShares": lambda: iso.metrics.self_similarity_shares(SPACE, token_types=LABELS),
    "FineTuned": finetuned,
    "Frontier": lambda: Frontier(
        iso.frontier_position(SPACE, LABELS),
        None,
        iso.metrics.attribute_anisotropy(SPACE, LABELS),
        notes=(HOSTILE,),
    ),
    "FrontierPosition": lambda: iso.frontier_position(SPACE, LABELS, debias=True),
    "Drift": lambda: iso.drift(
        SPACE, SPACE[:, ::-1] ** 3, texts=([HOSTILE] * len(SPACE),) * 2, progress=False
    ),
    "DriftOverTime": lambda: iso.drift_over_time(
        SPACE, ["2024-05-01", "2024-05-08"] * (len(SPACE) // 2), n_permutations=19, progress=False
    ),
    "Migration": lambda: iso.migrate(SPACE, SPACE**3, texts=[HOSTILE] * 60, progress=False),
    "Retrieval": lambda: retrieval(SPACE, SPACE[:20], [(row, row) for row in range(20)], progress=False),
    "Sides": lambda: iso.sides(SPACE, SPACE[:, ::-1], names=(HOSTILE, "b"), progress=False),
    "Separability": lambda: separability(SPACE, SPACE + 1),
    "Snapshot": lambda: iso.Snapshot.of(SPACE, texts=[HOSTILE] * len(SPACE)),
    "LayerComparison": lambda: iso.models.LayerComparison(profile(), profile(), {HOSTILE: 0.2, "b": -0.1}),
    "LayerProfile": profile,
    "LayerTrajectory": lambda: LayerTrajectory({HOSTILE: profile(), "step 2": profile()}),
    "MaskedLM": lambda: trained(MaskedLM, held_out_loss=2.5, unigram_loss=3.0),
    "Measurement": measured,
    "NormStatistics": lambda: iso.metrics.norm_statistics(SPACE),
    "OverSeeds": lambda: OverSeeds([finetuned(), finetuned()]),
    "Plan": lambda: plan(None, iso.Space(SPACE, labels=LABELS, name="a space")),
    "Readings": lambda: Readings([Reading("a", n, group={HOSTILE: n}) for n in range(100)]),
    "Look": lambda: iso.look(SPACE, labels=LABELS, progress=False),
    "Report": lambda: iso.report(SPACE, labels=LABELS, progress=False),
    "RogueDimension": lambda: iso.metrics.RogueDimension(3, 0.5, 1.0, 0.1),
    "RunningCorrelation": lambda: iso.metrics.RunningCorrelation((HOSTILE, "b", "c"), (None, None, 0.5)),
    "ScatterDecomposition": lambda: iso.metrics.scatter_decomposition(SPACE, LABELS),
    "SelfSimilarityChange": changed,
    "Sweep": lambda: Sweep(
        (Setting(HOSTILE, "nprobe=4", Share(0.9, (0.6, 1.0)), 1000.0, 0.1),), 10, 60, 20, 0.95
    ),
    "SilhouetteEstimate": lambda: iso.metrics.estimate_silhouette(SPACE, LABELS),
    "SimilarityMatrix": lambda: similarity_matrix({HOSTILE: SPACE, "b": SPACE**3}),
    "Sinks": lambda: iso.metrics.find_sinks([1.0, 1.0, 90.0], token_types=["a", "b", HOSTILE]),
    "SlicedMeasurement": lambda: iso.measure(SPACE, by=LABELS, metrics="mean_norm", progress=False),
    "MatchThreshold": lambda: iso.threshold(
        iso.Space(SPACE, labels=[HOSTILE, "b"] * 30, name=HOSTILE), by=[HOSTILE, "c"] * 30, progress=False
    ),
    "TradeOff": lambda: iso.trade_off(SPACE, LABELS, weights=(0.0, 1.0), steps=2, progress=False),
    "Trajectory": trajectory,
}


def test_every_public_result_is_listed() -> None:
    places = [iso, *(getattr(iso, module) for module in iso._MODULES)]
    values = {name: getattr(place, name) for place in places for name in place.__all__}
    classes = {name: value for name, value in values.items() if inspect.isclass(value)}
    public = {name for name, value in classes.items() if is_dataclass(value) or issubclass(value, Result)}
    assert public - NO_RESULTS <= set(EXAMPLES)
    assert all(issubclass(classes[name], Result) for name in public - NO_RESULTS)


@pytest.mark.slow
def test_every_result_is_listed() -> None:
    """Also those that are not public, by the names of their bases."""
    root = Path(iso.__file__).parent
    nodes = [node for path in root.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for node in nodes
        if isinstance(node, ast.ClassDef)
    }
    found: set[str] = set()
    while more := {name for name, of in bases.items() if of & (found | {"Result"})} - found:
        found |= more
    assert found - {"Findings", "Record", "Trained", "View"} == set(EXAMPLES)


@pytest.fixture(scope="module", params=EXAMPLES)
def result(request: pytest.FixtureRequest) -> Result:
    return EXAMPLES[request.param]()


def test_prints_as_a_table(result: Result) -> None:
    text = str(result)
    assert text
    assert max(map(len, text.splitlines())) <= 110
    assert len(text.splitlines()) < 90
    for leak in ("tensor(", "array(", " object at ", "dtype=", "\x1b", "nan"):
        assert leak not in text
    assert result.summary() == text


def test_shows_itself_in_a_notebook(result: Result) -> None:
    page = result._repr_html_()
    assert "<table" in page or "<iframe sandbox" in page
    assert "<script" not in page
    assert "\x1b" not in page


def test_becomes_strict_json(result: Result) -> None:
    found = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert found == json.loads(json.dumps(result.to_dict()))


def test_becomes_data_frames(result: Result) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    pandas, polars = result.to_pandas(), result.to_polars()
    assert list(pandas.columns) == polars.columns
    assert len(pandas) == len(polars) > 0


def test_readings_of_views_have_the_common_columns(result: Result) -> None:
    if not isinstance(result, View):
        return
    table = result.readings
    assert isinstance(table, Readings)
    assert len(table) > 0
    assert table.names[-7:] == ("metric", "value", "standard_error", "low", "high", "ceiling", "reason")
    assert all((row.value is None) == (row.reason is not None) for row in table)


def test_plain_values() -> None:
    found = plain({1: (np.float32(0.5), float("inf"), np.arange(2), Path("a"), None, True)})
    assert found == {"1": [0.5, None, [0, 1], "a", None, True]}


def test_texts_are_written_where_there_is_a_path(tmp_path: Path) -> None:
    measured = iso.measure(np.random.default_rng(0).normal(size=(30, 3)), metrics="isoscore")
    for kind in ("json", "csv", "html"):
        to_text = getattr(measured, f"to_{kind}")
        assert (
            to_text(tmp_path / f"m.{kind}")
            == to_text()
            == (tmp_path / f"m.{kind}").read_text(encoding="utf-8")
        )
    assert len(list(tmp_path.iterdir())) == 3


def test_a_near_name_is_suggested() -> None:
    clusters = iso.kmeans(np.random.default_rng(0).normal(size=(30, 3)), 2)
    with pytest.raises(AttributeError, match=r"has no attribute 'labels_'\. Did you mean 'labels'\?"):
        _ = clusters.labels_
    with pytest.raises(AttributeError, match=r"to_pandas\(\)\.to_latex\(\)"):
        clusters.to_latex()
