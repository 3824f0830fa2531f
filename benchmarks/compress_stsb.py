"""Scores of quantised vectors on STS-B's test set beside the published ones: the table of docs/compress.md.

ISOSCOPE_DATA=<folder> .venv/bin/python -m benchmarks.compress_stsb [--vectors FOLDER]

A minute on two cores; with --vectors the vectors are kept there. Published: sentence-transformers 2559.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import isoscope as iso
from benchmarks.texts import columns, vectors
from isoscope.corrections import ScalarQuantizer, SignQuantizer

PAGE = Path(__file__).parent.parent / "docs" / "compress-stsb.md"
MODEL = "all-mpnet-base-v2"
PUBLISHED = {"float32": 0.8342, "int8": 0.8313, "binary": 0.8244}


def stsb(kept: Path | None) -> tuple[np.ndarray, list[float]]:
    """Return the vectors of all first sentences and then of all second ones, and the scores of the pairs."""
    first, second, scores = columns(["sts/stsb_en_test.jsonl.gz"], ["sentence1", "sentence2", "score"])
    return vectors([*first, *second], MODEL, kept, "stsb"), scores


def spearman(X: np.ndarray, scores: list[float]) -> float:
    """Return Spearman's correlation of the cosines of the pairs with their scores."""
    units = X.astype(np.float64) / np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
    a, b = np.split(units, 2)
    return float(spearmanr((a * b).sum(axis=1), scores)[0])


def rows(X: np.ndarray, scores: list[float]) -> list[tuple[str, float, float, float]]:
    """Return for each precision the published score, that of our codes, and that of `iso.compress`."""
    codes = {
        "float32": X,
        # as published: each side with ranges of its own, and codes compared as they are
        "int8": np.vstack(
            [
                ScalarQuantizer(convention="sentence-transformers").fit(side).encode(side)
                for side in np.split(X, 2)
            ]
        ),
        "binary": np.unpackbits(SignQuantizer().fit(X).encode(X), axis=1),
    }
    n = len(scores)
    pairs = np.c_[np.arange(n), n + np.arange(n), scores]
    tried = iso.compress(X, pairs=pairs, methods=["int8", "binary"], max_queries=100, progress=False)
    decoded = {"float32": tried.exact_score, **{name: tried[name].score for name in ("int8", "binary")}}
    return [
        (name, PUBLISHED[name], spearman(codes[name], scores), float(decoded[name] or 0))
        for name in PUBLISHED
    ]


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=Path, help="a folder that keeps the vectors")
    lines = [
        "<!-- written by `python -m benchmarks.compress_stsb`; do not edit -->",
        "| vectors | published | codes, compared as published | `iso.compress`: one range, decoded |",
        "|---|---|---|---|",
    ]
    for name, *values in rows(*stsb(parser.parse_args().vectors)):
        lines.append(f"| {name} | " + " | ".join(f"{value:.4f}" for value in values) + " |")
        print(lines[-1], flush=True)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
