"""How often the promises of `threshold` are broken: the table of docs/threshold.md.

ISOSCOPE_DATA=<folder> .venv/bin/python -m benchmarks.threshold_coverage [--vectors FOLDER]

Minutes on two cores, once encoded; with --vectors the vectors are kept there. The pairs of a corpus stand for
all pairs: samples are drawn from them with replacement, so that the true precision and rate are known.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.texts import columns, vectors
from isoscope.matching.guarantees import false_match_threshold, precision_threshold

PAGE = Path(__file__).parent.parent / "docs" / "threshold-coverage.md"
N_DRAWS = 1000
SIZES = (300, 1000)
RATE, CONFIDENCE = 0.05, 0.95
MODELS = ("all-MiniLM-L6-v2", "e5-small")
MOST_PAIRS = 4000  # of a corpus, the first ones
CORPORA = {
    "MRPC": ("sentence", [f"glue/mrpc_{split}.jsonl.gz" for split in ("train", "dev", "test")]),
    "QQP": ("question", ["glue/qqp_subset_23k.jsonl.gz"]),
}


def corpus(name: str, model: str, kept: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines of the pairs of a corpus by a model, and whether they match."""
    column, files = CORPORA[name]
    read = columns(files, [f"{column}1", f"{column}2", "label"])
    firsts, seconds, labels = (values[:MOST_PAIRS] for values in read)
    texts = list(dict.fromkeys([*firsts, *seconds]))
    units = vectors(texts, model, kept, name).astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    rows = {text: row for row, text in enumerate(texts)}
    a, b = (units[[rows[text] for text in side]] for side in (firsts, seconds))
    return (a * b).sum(axis=1), np.array([str(label) in ("1", "1.0") for label in labels])


def row(name: str, cosines: np.ndarray, matches: np.ndarray, n: int, promise: str) -> str:
    """Return the row of a corpus, a size of sample and a promise."""
    target = RATE if promise == "false-match rate" else target_of(matches)
    truth = _rate(cosines, matches) if promise == "false-match rate" else _precision(cosines, matches)
    broken, known, recalls = 0, 0, []
    for seed in range(N_DRAWS):
        drawn = np.random.default_rng(seed).integers(0, len(cosines), n)
        some, right = cosines[drawn], matches[drawn]
        if promise == "false-match rate":
            found = false_match_threshold(some[~right], rate=target, confidence=CONFIDENCE)
        else:
            found = precision_threshold(some, right, target=target, confidence=CONFIDENCE, seed=seed)
        if found is None:
            continue
        known += 1
        broken += (
            truth(found) > target if promise == "false-match rate" else truth(found) < target
        )  # no pair above it has no precision
        recalls.append((cosines[matches] >= found).mean())
    sign = "≤" if promise == "false-match rate" else "≥"
    recall = f"{100 * np.median(recalls):.0f} %" if recalls else "–"
    shares = " | ".join(f"{count / N_DRAWS:.3f}" for count in (broken, known))
    return f"| {name} | {n:,} | {promise} {sign} {target:g} | {shares} | {recall} |"


def target_of(matches: np.ndarray) -> float:
    """Return a precision that can be reached: half way from the share of matches to 1, in steps of 0.05."""
    return round(20 * (1 + matches.mean()) / 2) / 20


def _precision(cosines: np.ndarray, matches: np.ndarray) -> Callable[[float], float]:
    return lambda cosine: float(matches[cosines >= cosine].mean()) if (cosines >= cosine).any() else 1.0


def _rate(cosines: np.ndarray, matches: np.ndarray) -> Callable[[float], float]:
    return lambda cosine: float((cosines[~matches] >= cosine).mean())


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=Path, help="a folder that keeps the vectors")
    kept = parser.parse_args().vectors
    lines = [
        "<!-- written by `python -m benchmarks.threshold_coverage`; do not edit -->",
        f"| pairs | drawn | promise, with confidence {CONFIDENCE} | broken, of {N_DRAWS:,} draws "
        "| made | median recall |",
        "|---|---|---|---|---|---|",
    ]
    for name in CORPORA:
        for model in MODELS:
            cosines, matches = corpus(name, model, kept)
            title = f"{name}, {len(cosines):,} pairs, {model}"
            for n in SIZES:
                for promise in ("precision", "false-match rate"):
                    lines.append(row(title, cosines, matches, n, promise))
                    print(lines[-1], flush=True)
                    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
