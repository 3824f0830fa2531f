"""When launches are recorded, and what tells recordings apart; the recording itself needs a device."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from isoscope.kernels import recorded


@pytest.fixture
def recordings(monkeypatch) -> list[tuple[torch.Size, ...]]:
    """Calls in place of graphs; the shapes each was recorded for."""
    made = []

    class Plain:
        def __init__(self, function, inputs) -> None:
            made.append(tuple(one.shape for one in inputs))
            self._function = function
            self.n_bytes = sum(one.nbytes for one in inputs)

        def __call__(self, inputs):
            return self._function(*inputs)

    monkeypatch.setattr(recorded, "Recording", Plain)
    monkeypatch.setattr(recorded, "_recordings", type(recorded._recordings)())
    return made


def scaled(X: torch.Tensor, *, by: float) -> tuple[torch.Tensor]:
    return (X * by,)


def moved(X: torch.Tensor, *, by: float) -> tuple[torch.Tensor]:
    return (X + by,)


def test_recorded_the_second_time_by_function_options_and_shape(recordings) -> None:
    X = torch.ones(3)
    for _ in range(3):
        found = [recorded.replayed(f, X, by=by)[0][0].item() for f in (scaled, moved) for by in (2.0, 5.0)]
        assert found == [2, 5, 3, 6]
    assert recordings == [((3,),)] * 4
    recorded.replayed(scaled, torch.ones(4), by=2.0)
    recorded.replayed(scaled, X.double(), by=2.0)
    assert len(recordings) == 4  # other shapes and types are new


def test_the_least_used_recordings_go(recordings) -> None:
    for n in range(1, recorded._KEPT + 10):
        recorded.replayed(scaled, torch.ones(n), by=2.0)
    assert len(recorded._recordings) == recorded._KEPT


def test_recordings_go_when_their_inputs_are_too_large_together(recordings, monkeypatch) -> None:
    monkeypatch.setattr(recorded, "_KEPT_BYTES", 100)
    for n in (10, 12, 14, 10):  # 40, 48 and 56 bytes
        for _ in range(2):
            recorded.replayed(scaled, torch.ones(n), by=2.0)
    assert [shapes[0][0] for shapes in recordings] == [10, 12, 14, 10]
    kept = [key[2][0][0] for key, recording in recorded._recordings.items() if recording]
    assert kept == [14, 10]


def test_other_threads_call_plainly(recordings) -> None:
    """Two threads would write their inputs to the same place before either is replayed."""
    blocks = [torch.full((3,), float(number)) for number in range(40)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda one: recorded.replayed(scaled, one, by=2.0)[0][0].item(), blocks))
    assert found == [2.0 * number for number in range(40)]
    assert not recordings
    assert not recorded._recordings


def test_what_cannot_be_recorded_is_called_plainly(recordings, monkeypatch) -> None:
    tried = []

    def fails(function, inputs):
        tried.append(inputs)
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(recorded, "Recording", fails)
    X = torch.ones(3)
    assert recorded.replayed(scaled, X, by=2.0)[0][0] == 2
    with pytest.warns(RuntimeWarning, match="scaled.*not permitted when stream is capturing$"):
        assert recorded.replayed(scaled, X, by=2.0)[0][0] == 2
    assert recorded.replayed(scaled, 3 * X, by=2.0)[0][0] == 6
    assert len(tried) == 1
