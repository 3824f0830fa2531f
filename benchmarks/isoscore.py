"""IsoScore's closed form against PyPI IsoScore 2.0.1."""

from __future__ import annotations

import warnings
from typing import Any

import torch

import isoscope as iso
from benchmarks.timing import take_turns

# (rows, dimensions, with backward, how many times faster is wanted)
CASES = (
    (10_662, 384, False, 2.0),
    (20_000, 768, False, 1.8),
    (4_096, 768, False, 3.0),
    (32, 768, True, 100.0),
)


def run() -> list[dict[str, Any]]:
    return [_case(*case) for case in CASES]


def _case(n: int, d: int, backward: bool, wanted: float) -> dict[str, Any]:
    from IsoScore.IsoScore import IsoScore, istar

    X = torch.randn(n, d, generator=torch.Generator().manual_seed(0)) * torch.linspace(1, 3, d)
    module, identity = istar(), torch.eye(d)

    def theirs() -> float:
        if not backward:
            return float(IsoScore(X))
        points = X.clone().requires_grad_()
        score = module.IsoScore_star(points, identity, 0.0, is_eval=False)
        score.backward()
        return float(score.detach())

    def ours() -> float:
        if not backward:
            return iso.isoscore(X)
        points = X.clone().requires_grad_()
        score = iso.isoscore(points)
        score.backward()
        return float(score.detach())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = take_turns({"theirs": theirs, "ours": ours})
        difference = abs(theirs() - ours())
    return {
        "what": f"IsoScore {n:,} × {d}" + (", forward and backward" if backward else ""),
        "peer": "PyPI IsoScore 2.0.1",
        "peer_ms": 1e3 * seconds["theirs"],
        "ours_ms": 1e3 * seconds["ours"],
        "times_faster": seconds["theirs"] / seconds["ours"],
        "wanted": wanted,
        "difference": difference,
    }
