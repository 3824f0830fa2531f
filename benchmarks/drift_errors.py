"""How often `drift` errs and finds: the table of docs/drift.md.

ISOSCOPE_DATA=<folder> .venv/bin/python -m benchmarks.drift_errors          about half an hour on two cores
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import isoscope as iso

PAGE = Path(__file__).parent.parent / "docs" / "drift-errors.md"
N_PERMUTATIONS = 99
_LEVEL = 0.05
Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Case:
    """A way to draw two samples, and how often."""

    name: str
    draw: Draw
    n_draws: int
    share: float


def halves(X: np.ndarray, n: int, new: np.ndarray | None = None, share: float = 0.0) -> Draw:
    """Return a draw of two samples of n rows without common rows; a share of the second is of other rows."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = rng.permutation(len(X))
        n_new = round(share * n)
        second = X[rows[n : 2 * n - n_new]]
        if new is not None and n_new:
            second = np.vstack([second, new[rng.permutation(len(new))[:n_new]]])
        return X[rows[:n]], second

    return draw


def cases(n_draws: int) -> list[Case]:
    """Return the null cases, drawn often, and the mixtures, a tenth as often."""
    reviews = _vectors("sentence_polarity/sentence_polarity.jsonl.gz", "text")
    sentences = _vectors("snli/snli_dev.jsonl.gz", "hypothesis", 3000)
    gaussian = np.random.default_rng(0).normal(size=(20_000, 32)).astype(np.float32)
    few = max(1, n_draws // 10)
    found = [
        Case("random halves of 1,000 normal rows × 32", halves(gaussian, 500), n_draws, 0.0),
        Case("random halves of 2,000 reviews × 384", halves(reviews, 1000), n_draws, 0.0),
        Case("random halves of all 10,662 reviews", halves(reviews, 5331), few, 0.0),
    ]
    for share in (0.02, 0.05, 0.10, 0.20):
        name = f"of 5,331 reviews, {share:.0%} replaced by sentences of SNLI"
        found.append(Case(name, halves(reviews, 5331, sentences, share), few, share))
    return found


def _vectors(file: str, column: str, n: int | None = None) -> np.ndarray:
    texts = iso.io.read_texts(Path(os.environ["ISOSCOPE_DATA"]) / file, column=column)
    return iso.encode(list(dict.fromkeys(texts))[:n], progress=False).numpy()


def row(case: Case) -> str:
    """Return the row of one case."""
    found = []
    for seed in range(case.n_draws):
        A, B = case.draw(np.random.default_rng(seed))
        found.append(iso.drift(A, B, n_permutations=N_PERMUTATIONS, n_clusters=2, seed=seed, progress=False))
    p_values = np.array([one.p_value for one in found])
    drifts = np.array([one.drift for one in found])
    covered = np.mean([one.interval[0] <= case.share for one in found])
    alarms = np.mean([one.alarm for one in found])
    mean = f"{100 * drifts.mean():z.1f}".replace("-", "−")
    return (
        f"| {case.name} | {case.n_draws:,} | {np.mean(p_values <= _LEVEL):.3f} | {alarms:.3f} "
        f"| {mean} % ± {100 * drifts.std():.1f} | {covered:.3f} |"
    )


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    wanted = parser.parse_args()
    lines = [
        "<!-- written by `python -m benchmarks.drift_errors`; do not edit -->",
        f"| samples | draws | p ≤ 0.05, by {N_PERMUTATIONS} permutations | alarm, 2 % tolerated "
        "| drift, mean ± deviation | lower end at or below the share |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases(wanted.draws):
        lines.append(row(case))
        print(lines[-1], flush=True)
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
