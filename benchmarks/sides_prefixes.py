"""Questions and the sentences that answer them under e5-small, with and without its prefixes: docs/sides.md.

ISOSCOPE_DATA=<folder> .venv/bin/python -m benchmarks.sides_prefixes          about ten minutes on two cores
"""

from __future__ import annotations

import os
from pathlib import Path

import isoscope as iso

PAGE = Path(__file__).parent.parent / "docs" / "sides-prefixes.md"
FILE = "glue/qnli_dev.jsonl.gz"
PREFIXES = (
    ("query: ", "passage: "),
    ("", ""),
    ("passage: ", "passage: "),
    ("query: ", "query: "),
)


def main() -> None:
    """Write the table."""
    path = Path(os.environ["ISOSCOPE_DATA"]) / FILE
    columns = {name: iso.io.read_texts(path, column=name) for name in ("question", "sentence", "label")}
    rows = [row for row, label in enumerate(columns["label"]) if label == "entailment"]
    lines = [
        "<!-- written by `python -m benchmarks.sides_prefixes`; do not edit -->",
        "| prefix of questions | of sentences | gap | separability | questions: first | of first 10 "
        "| centred | sentences: of first 10 | centred |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for prefixes in PREFIXES:
        sides = [
            iso.encode([prefix + columns[name][row] for row in rows], model="e5-small", progress=False)
            for prefix, name in zip(prefixes, ("question", "sentence"), strict=True)
        ]
        found = iso.sides(*sides, names=("questions", "sentences"), sample=len(rows), progress=False)
        shares = [
            f"{100 * found[key].number:.1f} %"
            for key in (
                ("hit_rate@1", "questions", "as they are"),
                *(("hit_rate@10", side, kind) for side in found.sizes for kind in ("as they are", "centred")),
            )
        ]
        told = [prefix.strip() or "none" for prefix in prefixes]
        apart = f"{100 * found['gap'].number:.1f} %", f"{found['separability'].number:.3f}"
        lines.append(f"| {' | '.join((*told, *apart, *shares))} |")
        print(lines[-1], flush=True)
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
