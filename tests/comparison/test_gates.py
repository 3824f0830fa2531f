from __future__ import annotations

import numpy as np
import pytest

from isoscope.comparison import compare, parse_gates
from isoscope.errors import InputError


@pytest.mark.parametrize(
    ("text", "passed"),
    [("isoscore>=0.5", True), ("isoscore > 0.5", False), ("isoscore<=.5", True), ("isoscore<5e-1", False)],
)
def test_signs(text: str, passed: bool) -> None:
    (gate,) = parse_gates([text])
    assert gate.holds(0.5) is passed
    assert not gate.holds(None)


def test_gates_meet_b_its_change_and_correspondences(rng: np.random.Generator) -> None:
    A = rng.normal(size=(100, 4))
    found = compare(A, A * [4, 1, 1, 1], metrics="isoscore", errors=False)
    results = found.check(parse_gates(["isoscore>=0.9", "delta:isoscore<-0.5", "cka>=0.99", "procrustes<1"]))
    assert [one.passed for one in results] == [False, True, False, True]
    assert results[0].value == found["isoscore"].after
    assert results[1].value == found["isoscore"].difference
    assert results[1].to_dict()["gate"] == "delta:isoscore<-0.5"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("isoscore", "must be NAME>=NUMBER"),
        ("isoscore=0.1", "must be NAME>=NUMBER"),
        ("isoscore>=", "must be NAME>=NUMBER"),
        ("isoscore>=much", "must be NAME>=NUMBER"),
        ("isoscore>=nan", "must be NAME>=NUMBER"),
        ("isoscor>=0.1", "did you mean isoscore"),
        ("delta:cka>=0.1", "has no delta"),
        ("neighbours>=0.9", r"did you mean overlap\?"),
        ("rsa>=0.9", "there is no 'rsa'"),  # it needs partners
        ("foo>=3", r"lists the metrics\. Others are cka, "),
    ],
)
def test_malformed(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_gates([text])


def test_metrics_of_two_spaces_are_correspondences() -> None:
    gates = parse_gates(["neighbor_overlap>=0.7", "worst:neighbor_overlap>=0.7", "linear_cka>=0.9"])
    assert [str(gate) for gate in gates] == ["overlap>=0.7", "worst:overlap>=0.7", "cka>=0.9"]
