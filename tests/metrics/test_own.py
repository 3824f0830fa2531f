"""A metric of one's own: registered in a few lines, taken wherever a name is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import isoscope as iso
from isoscope.cli import app
from isoscope.errors import InputError
from isoscope.metrics import registry
from isoscope.metrics.registry import _own

X = np.random.default_rng(0).normal(size=(120, 6))
RADIUS = float(np.sqrt(((X - X.mean(0)) ** 2).sum(1).mean()))
FILE = """
import isoscope as iso

@iso.metric(needs=("moments",), range=(0, float("inf")), high="spread out")
def gyration_radius(moments):
    return (moments.trace / moments.count).sqrt()
"""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    _own.clear()


def radius() -> object:
    @iso.metric(needs=("moments",), range=(0.0, np.inf), high="spread out")
    def gyration_radius(moments):
        return (moments.trace / moments.count).sqrt()

    return gyration_radius


def test_by_function_by_name_and_as_an_entry(tmp_path: Path) -> None:
    own = radius()
    for metrics in (own, [own], "gyration_radius", own.metric, "own", ["isoscore", own]):
        assert iso.measure(X, metrics=metrics)["gyration_radius"] == pytest.approx(RADIUS, rel=1e-12)
    np.save(tmp_path / "x.npy", X)
    file = iso.open_vectors(tmp_path / "x.npy")
    assert iso.measure(file, metrics=[own])["gyration_radius"] == pytest.approx(RADIUS, rel=1e-12)
    weighted = iso.measure(X, weights=np.full(len(X), 2.0), metrics=[own])
    assert weighted["gyration_radius"] == pytest.approx(RADIUS, rel=1e-12)
    assert "gyration_radius" not in iso.measure(X)  # not unless asked for


def test_the_name_may_come_first() -> None:
    @iso.metric("radius", needs=("moments",))
    def gyration_radius(moments):
        return (moments.trace / moments.count).sqrt()

    assert gyration_radius.metric.name == "radius"
    assert iso.measure(X, metrics="radius")["radius"] == pytest.approx(RADIUS, rel=1e-12)


def test_vectors_and_labels_come_as_tensors() -> None:
    @iso.metric(needs=("vectors", "labels"))
    def first_label_share(vectors, labels):
        assert vectors.shape == (120, 6)
        return float((labels == 0).double().mean())

    y = np.array(["a", "b", "b"] * 40)
    assert iso.measure(X, labels=y, metrics=[first_label_share])["first_label_share"] == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="first_label_share needs labels"):
        iso.measure(X, metrics=[first_label_share])


def test_labels_beside_a_statistic_are_read_from_a_file_too(tmp_path: Path) -> None:
    @iso.metric(needs=("moments", "labels"))
    def rows_a_label(moments, labels):
        return moments.count / len(labels.unique())

    np.savez(tmp_path / "x.npz", X=X, y=np.arange(120) % 3)
    file = iso.open_vectors(tmp_path / "x.npz", key="X", labels="y")
    assert iso.measure(file, metrics=[rows_a_label])["rows_a_label"] == 40


def test_the_tracker_and_training_take_it() -> None:
    own = radius()
    rows = torch.from_numpy(X).float()
    tracker = iso.GeometryTracker(rows, layers=("0",), metrics=["isoscore", own], every=1)
    network = torch.nn.Sequential(torch.nn.Identity())
    assert tracker(network, 0)["gyration_radius"] == pytest.approx(RADIUS, rel=1e-5)
    run = iso.train_embeddings(X, np.arange(120) % 2, steps=2, seeds=1, metrics=[own], progress=False)
    assert run["gyration_radius"][0] == pytest.approx(RADIUS, rel=1e-5)


@pytest.mark.parametrize("broken", ["no_such_module", "mine_broken"])
def test_a_broken_entry_point_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    (tmp_path / "mine_broken.py").write_text("1 / 0")
    whole = f"beside_{broken}"
    (tmp_path / f"{whole}.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    found = [EntryPoint(name, name, "isoscope.metrics") for name in (broken, whole)]
    monkeypatch.setattr(registry, "entry_points", lambda **_: found)
    registry._load_entry_points.cache_clear()
    with pytest.warns(UserWarning, match=f"the metrics of '{broken}' cannot be loaded") as warned:
        assert "gyration_radius" in iso.registered()  # of the package that is whole
    assert len(warned) == 1
    assert "\n" not in str(warned[0].message)
    assert iso.registered() is iso.registered()


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([lambda X: 1.0], "decorate it with @iso.metric"),
        ([np.mean], "decorate it with @iso.metric"),
        ([3], "must be names or families"),
        (3, "must be names or families"),
    ],
)
def test_what_is_no_metric_is_refused(metrics: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        iso.measure(X, metrics=metrics)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "isoscore"}, "'isoscore', the name of another metric"),
        ({"name": "cosine"}, "'cosine', the name of another metric"),
        ({"name": "a b"}, "must be letters, digits and underscores"),
        ({"name": "mine", "needs": ("momentum",)}, "`needs` has 'momentum'; expected some of"),
    ],
)
def test_bad_entries_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        iso.metric(lambda X: 1.0, **options)


def test_on_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "mine.py").write_text(FILE)
    plugin = ["--plugin", str(tmp_path / "mine.py")]
    done = CliRunner().invoke(
        app, ["measure", str(tmp_path / "x.npy"), *plugin, "-m", "gyration_radius", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["metrics"]["gyration_radius"]["value"] == pytest.approx(RADIUS)
    listed = CliRunner().invoke(app, ["metrics", *plugin, "--json"])
    assert json.loads(listed.stdout)[-1]["name"] == "gyration_radius"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be run: FileNotFoundError"),
        ("1/0", "cannot be run: ZeroDivisionError: division by zero"),
        (
            "import isoscope as iso\niso.metric(len, name='isoscore')",
            "'isoscore', the name of another metric",
        ),
    ],
)
def test_a_bad_plugin_is_one_line(tmp_path: Path, fail, text: str | None, message: str) -> None:
    np.save(tmp_path / "x.npy", X)
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    said = fail("measure", str(tmp_path / "x.npy"), "--plugin", str(tmp_path / "mine.py"))
    assert message in said
    assert said.count("\n") == 1
