from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
import torch

from isoscope.kernels.workers import AbandonedError, go_on, in_order


def slow(value: int) -> Callable[[], int]:
    def task() -> int:
        time.sleep(0.002 * (5 - value % 5))  # later tasks are done sooner
        return value

    return task


@pytest.mark.parametrize("n_workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(n_workers: int) -> None:
    assert list(in_order([slow(i) for i in range(30)], n_workers=n_workers)) == list(range(30))


def test_tasks_run_beside_each_other_on_one_core_each() -> None:
    meet = threading.Barrier(2, timeout=60)

    def task() -> int:
        meet.wait()  # broken if the other one waits for this one to end
        return torch.get_num_threads()

    before = torch.get_num_threads()
    assert list(in_order([task, task], n_workers=2)) == [1, 1]
    assert torch.get_num_threads() == before
    found: list[int] = []
    later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert found == [before]


def test_only_a_few_tasks_are_under_way() -> None:
    begun: list[int] = []

    def noting(value: int) -> Callable[[], int]:
        return lambda: begun.append(value) or value

    results = in_order((noting(i) for i in range(1000)), n_workers=2)
    next(results)
    time.sleep(0.05)
    assert len(begun) < 50
    results.close()
    assert len(begun) < 50


def test_an_error_in_a_task_reaches_the_caller() -> None:
    def fail() -> int:
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        list(in_order([slow(1), fail, slow(2)], n_workers=2))


@pytest.mark.parametrize("inference", [False, True])
def test_tasks_run_in_the_callers_inference_mode(inference: bool) -> None:
    with torch.inference_mode(inference):
        assert list(in_order([torch.is_inference_mode_enabled] * 4, n_workers=2)) == [inference] * 4


def test_long_tasks_learn_that_nobody_waits_for_them() -> None:
    begun, ended = threading.Event(), []

    def endless() -> int:
        begun.set()
        for _ in range(2000):
            time.sleep(0.005)
            try:
                go_on()
            except AbandonedError:
                ended.append("told")
                raise
        return 0

    results = in_order([lambda: 1, endless, lambda: 2], n_workers=2)
    assert next(results) == 1
    assert begun.wait(timeout=60)
    results.close()
    assert ended == ["told"]
    go_on()  # elsewhere there is nobody to ask
