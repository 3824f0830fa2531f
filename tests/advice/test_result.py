from __future__ import annotations

import numpy as np

from isoscope.advice.advise import _judged
from isoscope.advice.outcomes import Outcome, TaskAdvice, recommended
from isoscope.advice.validation import gain
from isoscope.engine.slices import holm


def task(name: str, **gains: float) -> TaskAdvice:
    """Every gain significant."""
    found = tuple(Outcome(one, 0.5 + x, x, (x - 0.01, x + 0.01), 0.001) for one, x in gains.items())
    return TaskAdvice(name, "score", 100, 0.5, found)


def test_recommended_helps_most_and_hurts_none() -> None:
    probe = task("linear_probe", whiten=-0.1, center=0.01, top=0.02)
    pairs = task("similarity", whiten=0.3, center=0.02, top=0.03)
    assert recommended([pairs]) == "whiten"
    assert recommended([probe, pairs]) == "top"
    assert recommended([probe, task("similarity", whiten=0.3, center=-0.1, top=-0.1)]) is None
    assert pairs.best.correction == "whiten"
    assert [one.correction for one in probe.hurting] == ["whiten"]


def test_p_values_are_adjusted_over_the_corrections_of_a_task(rng: np.random.Generator) -> None:
    base = rng.normal(size=10).tolist()
    scores = {name: (np.array(base) + 0.1 * rng.normal(size=10) + shift).tolist() for name, shift in
              (("a", 0.15), ("b", 0.1), ("c", 0.0))}  # fmt: skip
    found = _judged("knn", {"none": base, **scores, "d": "no rank"}, 100, 0.25)
    gains = [
        gain([x - y for x, y in zip(one, base, strict=True)], test_share=0.25) for one in scores.values()
    ]
    plain = [one.p_value for one in gains]
    assert [one.p_value for one in found.outcomes[:3]] == holm(plain)
    assert found.outcomes[0].p_value > plain[0]
    assert found.outcomes[3].verdict == "no rank"


def test_a_gain_that_is_lost_to_holm_is_no_help() -> None:
    lone = Outcome("a", 0.6, 0.1, (0.01, 0.19), 0.04)
    assert lone.verdict == "helps"
    assert Outcome("a", 0.6, 0.1, (0.01, 0.19), 0.4).verdict == "uncertain"
    assert Outcome("a", 0.1, -0.4, (-0.8, -0.03), 0.1).verdict == "uncertain"
    assert Outcome("a", 0.6, 0.1, (-0.01, 0.21), 0.4).verdict == "no difference seen"
    noise = Outcome("a", 0.5, 1e-6, (0.9e-6, 1.1e-6), 0.0001)
    assert noise.verdict == "no difference seen"
    assert (
        "leave it alone"
        in TaskAdvice("knn", "s", 9, 0.5, (Outcome("a", 0.6, 0.1, (0.0, 0.2), 0.4),)).sentence
    )
