"""Type checkers see the public names: a user's own code passes `mypy --strict`, and mistakes do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.nightly  # mypy reads all of torch's types
TYPED = """
from typing import assert_type

import numpy as np
from matplotlib.axes import Axes

import isoscope as iso

X, labels = np.eye(4), [0, 0, 1, 1]
assert_type(iso.measure(X, labels=labels), iso.Measurement)
assert_type(iso.measure("vectors.npy", labels="topic")["isoscore"], float | None)
assert_type(iso.metrics.dunn_index(X, labels), float)
assert_type(iso.compare(X, X), iso.Comparison)
assert_type(iso.advise(X, labels=labels), iso.Advice)
assert_type(iso.compress(X), iso.compression.Compression)
assert_type(iso.threshold(X), iso.matching.MatchThreshold)
assert_type(iso.report(X, labels=labels), iso.Report)
assert_type(iso.layers("folder", ["a text"]), iso.LayerProfile)
assert_type(iso.train_embeddings(X, labels), iso.Trajectory)
assert_type(iso.finetune("folder", ["a text"], [0]), iso.training.FineTuned)
assert_type(iso.kmeans(X, 2), iso.clustering.Clustering)
assert_type(iso.Moments.of(X).merge(iso.Moments.of(X)), iso.Moments)
assert_type(iso.read("vectors.npy"), iso.Space)
assert_type(iso.plots.plot_spectrum(X), Axes)
assert_type(iso.losses.IStarLoss(0.5), iso.losses.IStarLoss)


@iso.metric(needs=("vectors",), high="long")
def longest(vectors: np.ndarray) -> float:
    return float(np.linalg.norm(vectors, axis=1).max())


assert_type(longest(X), float)
"""
MISTAKES = """
import isoscope as iso

iso.measure([[1.0]], label=[0])
iso.metrics.nonsense
iso.dunn_index([[1.0]], [0])
iso.layers("folder")
"""


def check(*paths: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", *map(str, paths)],
        env=os.environ | {"MYPYPATH": f"{ROOT / 'src'}:{ROOT / 'reproductions/src'}"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("folder", ["examples", "notebooks"])
def test_examples_and_notebooks(folder: str) -> None:
    code, output = check(*sorted((ROOT / folder).glob("*.py")))
    assert code == 0, output


def test_code_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED)
    code, output = check(tmp_path / "typed.py")
    assert code == 0, output


def test_mistakes_are_found(tmp_path: Path) -> None:
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    _, output = check(tmp_path / "mistakes.py")
    lines = {line.split(":")[1] for line in output.splitlines() if ": error: " in line}
    assert lines == {str(n) for n, line in enumerate(MISTAKES.splitlines(), 1) if line.startswith("iso.")}, (
        output
    )
