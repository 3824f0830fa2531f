"""From all-MiniLM-L6-v2 to all-mpnet-base-v2 on Banking77: the table of docs/migrate.md.

ISOSCOPE_DATA=<folder> .venv/bin/python -m benchmarks.migration          minutes on two cores, once encoded
"""

from __future__ import annotations

import os
from pathlib import Path

import isoscope as iso
from isoscope.migrate import Migration

PAGE = Path(__file__).parent.parent / "docs" / "migrate-banking77.md"
MODELS = ("all-MiniLM-L6-v2", "all-mpnet-base-v2")


def main() -> None:
    """Write the table."""
    folder = Path(os.environ["ISOSCOPE_DATA"]) / "banking77"
    texts = [
        text
        for split in ("train", "test")
        for text in iso.io.read_texts(folder / f"banking77_{split}.jsonl.gz", column="text")
    ]
    old, new = (iso.encode(texts, model=model, progress=False) for model in MODELS)
    lines = [
        "<!-- written by `python -m benchmarks.migration`; do not edit -->",
        "| from | to | old model | procrustes | ridge | features | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for names, sides in ((MODELS, (old, new)), (MODELS[::-1], (new, old))):
        found = iso.migrate(*sides, progress=False)
        lines.append(f"| {names[0]} | {names[1]} | {' | '.join(cells(found))} | {found.verdict} |")
        print(lines[-1], flush=True)
    PAGE.write_text("\n".join(lines) + "\n")


def cells(found: Migration) -> list[str]:
    """Return the overlap of each trial with half of its interval."""
    return [
        f"{100 * one.overlap:.1f} % ± {50 * (one.interval[1] - one.interval[0]):.1f}" for one in found.trials
    ]


if __name__ == "__main__":
    main()
