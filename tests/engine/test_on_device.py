"""Blocks on one device or in turn on several, statistics brought together, and files read by many threads."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.engine import on_device
from isoscope.engine.inputs import as_input
from isoscope.engine.on_device import Meter, OnDevice, as_devices, statistic_on
from isoscope.engine.plan import plan
from isoscope.engine.run import run
from isoscope.errors import InputError
from isoscope.io import raw_rows
from isoscope.io.raw_rows import RawRows
from isoscope.models import layer_similarity
from isoscope.space import Space
from isoscope.statistics.moments import Moments

N, D = 3_000, 24
SEVERAL = ["cpu,cpu", "cpu, cpu, cpu", ["cpu", "cpu"], (torch.device("cpu"), "cpu")]
MEASURING = (iso.measure, iso.look, iso.report, iso.compare, iso.advise, iso.layers, layer_similarity)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 5, N)
    return draw.normal(size=(N, D)) + draw.normal(size=(5, D))[labels] + 3, labels


@pytest.fixture(scope="module")
def expected(rows: tuple[np.ndarray, np.ndarray]) -> Any:
    return iso.measure(rows[0], rows[1], metrics=["default", "silhouette", "lid"])


@pytest.mark.parametrize("device", SEVERAL, ids=str)
def test_several_devices_give_the_numbers_of_one(rows: Any, expected: Any, device: Any) -> None:
    found = iso.measure(*rows, metrics=["default", "silhouette", "lid"], device=device)
    assert found.device == "cpu"
    for one, other in zip(expected.readings, found.readings, strict=True):
        assert other.value == pytest.approx(one.value, rel=1e-10, abs=1e-12), one.metric
        error = one.standard_error and pytest.approx(one.standard_error, rel=1e-8)
        assert other.standard_error == error, one.metric


@pytest.mark.parametrize("memory", [None, "40MB"])
def test_a_file_on_several_devices(tmp_path: Path, rows: Any, memory: str | None) -> None:
    X, labels = rows
    np.save(tmp_path / "rows.npy", X.astype(np.float32))
    options = {"metrics": ["isoscore", "mean_cosine", "silhouette"], "memory": memory and _beside(memory)}
    one, two = (
        iso.measure(tmp_path / "rows.npy", labels, device=device, **options) for device in ("cpu", "cpu,cpu")
    )
    for name in options["metrics"]:
        assert two[name] == pytest.approx(one[name], rel=1e-6), name


def _beside(more: str) -> int:
    from isoscope.engine.options import resident_bytes

    return resident_bytes() + int(more.removesuffix("MB")) * 2**20


def test_slices_and_reports_on_several_devices(rows: Any) -> None:
    X, labels = rows
    one, two = (
        iso.measure(X, labels, by=labels % 2, metrics=["isoscore", "silhouette"], device=device)
        for device in ("cpu", "cpu,cpu")
    )
    assert [round(r.value, 9) for r in two.slices] == [round(r.value, 9) for r in one.slices]
    for function in (iso.look, iso.report):
        assert function(X[:300], labels[:300], device="cpu,cpu").to_dict()
    a = iso.compare(X[:300], X[:300] + 1, device="cpu,cpu")
    assert a.a["isoscore"] == pytest.approx(iso.isoscore(X[:300]))


def test_pairs_meet_on_all_devices(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from isoscope.statistics import device_pairs

    asked = []
    separate = device_pairs.separation_across

    def noted(X: Any, labels: Any, devices: Any, **more: Any) -> Any:
        asked.append(devices)
        return separate(X, labels, devices, **more)

    monkeypatch.setattr(device_pairs, "separation_across", noted)
    iso.measure(*rows, metrics="silhouette", device="cpu,cpu")
    iso.measure(*rows, metrics="silhouette", device="cpu")
    assert asked == [(torch.device("cpu"),) * 2]


def test_blocks_lie_on_each_device_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meta device stands for another one: a block there has no numbers, but knows where it is."""
    space = Space(torch.randn(10, 3))
    monkeypatch.setattr(Space, "with_vectors", lambda self, vectors: vectors)
    source = OnDevice(space, "cpu,meta")
    assert [block.device.type for block in source.blocks(2)] == ["cpu", "meta", "cpu", "meta", "cpu"]
    assert source.load().device == source.device == torch.device("cpu")
    assert [part.devices for part in source.parts(5)] == [source.devices] * len(source.parts(5))


@pytest.mark.parametrize("device", ["", "cpu,", ",", [], "cpu,nowhere", ["cpu", None], "cpu,cuda:77"])
def test_a_device_that_is_not_there(rows: Any, device: Any) -> None:
    with raises(InputError, argument="device"):
        iso.measure(*rows, device=device)


def test_every_call_that_measures_takes_a_device() -> None:
    for function in (*MEASURING, iso.widget):
        assert "device" in inspect.signature(function).parameters, function


def test_a_statistic_is_moved_with_all_its_tensors() -> None:
    moments = Moments.of(torch.randn(8, 3))
    assert statistic_on(moments, torch.device("cpu")) is moments
    held = {"a": {"moments": moments}, "b": (moments, 3)}
    assert statistic_on(held, torch.device("cpu")) is held
    moved = statistic_on(held, torch.device("meta"))
    assert moved["a"]["moments"].scatter_matrix.device.type == "meta"
    assert moved["b"][0].mean.device.type == "meta"
    assert (moved["b"][1], moved["b"][0].count) == (3, 8)


def test_what_cuda_reads_is_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CUDA, a tensor of bytes stands for pinned memory."""
    asked, empty = [], torch.empty

    def noted(n: int, *, dtype: torch.dtype, pin_memory: bool) -> torch.Tensor:
        asked.append(pin_memory)
        return empty(n, dtype=dtype)

    monkeypatch.setattr(raw_rows, "_LARGE_BYTES", 0)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(
        torch, "empty", lambda n, dtype, pin_memory: asked.append(pin_memory) or empty(n, dtype=dtype)
    )
    X = np.arange(24, dtype=np.float16).reshape(8, 3)
    (tmp_path / "rows").write_bytes(X.tobytes())
    blocks = list(RawRows(tmp_path / "rows", 0, X.dtype, 3).read(0, 8, 3))
    assert np.array_equal(np.concatenate(blocks), X)
    assert asked == [True] * 3


def test_the_slowest_part_is_named() -> None:
    block = torch.empty(2**28)
    meter = Meter()
    assert meter.notes() == []
    meter.add(block, reading=3.0, copying=0.5)
    meter.seconds = 4.0
    assert "1.1 GB came in at 0.3 GB/s, bound by reading the file" in meter.notes()[0]
    meter.seconds = 40.0
    assert "bound by the device" in meter.notes()[0]


@pytest.mark.parametrize("step", [1, 7, 100, 1000])
@pytest.mark.parametrize("uncached", [False, True])
def test_rows_read_by_many_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, uncached: bool
) -> None:
    monkeypatch.setattr(raw_rows, "_LARGE_BYTES", 0)
    monkeypatch.setattr(raw_rows, "_PIECE_BYTES", 50)
    X = np.random.default_rng(0).normal(size=(500, 6)).astype(np.float16)
    path = tmp_path / "rows"
    path.write_bytes(b"header" + X.tobytes())
    stored = RawRows(path, 6, X.dtype, 6, uncached)
    blocks = list(stored.read(10, 490, step))
    assert [len(block) for block in blocks[:-1]] == [step] * (len(blocks) - 1)
    assert np.array_equal(np.concatenate(blocks), X[10:490])
    with pytest.raises(EOFError, match="bytes are missing at row"):
        list(stored.read(0, 600, step))
    reading = stored.read(0, 500, step)
    next(reading)
    reading.close()


def test_a_plan_and_a_run_over_devices(rows: Any) -> None:
    source = as_input(rows[0], device="cpu,cpu").source
    assert isinstance(source, OnDevice)
    decided = plan("isoscore", source)
    assert decided.where == "streamed"
    assert float(iso.isoscore(run(decided, source).moments)) == pytest.approx(iso.isoscore(rows[0]))
    assert as_devices("cpu") == (torch.device("cpu"),)
    assert on_device.devices_of(as_input(rows[0], device="cpu").source) == ()
