"""Measure the reference spaces that `isoscope look` compares with, and write their numbers into the package.

python -m benchmarks.references                             all
python -m benchmarks.references "GloVe, frequent words"     some; the others stay as they are

It needs the models of `isoscope.models`, and the corpora in the folder ISOSCOPE_DATA.

Only numbers are written. Each corpus is cut to 5,000 distinct texts drawn with seed 0, so that neighbours are
searched among as many rows as `look` draws by default.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from isoscope.look import look
from isoscope.look.first_look import MAX_ROWS
from isoscope.look.references import PATH

STSB, BANKING, WORDS = "STS-B", "Banking77", "the 5,000 most frequent words"
GLOVE = "GloVe 6B, 50 dimensions"
SPACES: dict[str, tuple[str, str]] = {  # name: model, corpus
    "MiniLM on STS-B": ("all-MiniLM-L6-v2", STSB),
    "mpnet on STS-B": ("all-mpnet-base-v2", STSB),
    "e5-small on STS-B": ("e5-small", STSB),
    "SmolLM2 on STS-B": ("smollm2-135m", STSB),
    "GloVe on STS-B": (GLOVE, STSB),
    "GloVe, frequent words": (GLOVE, WORDS),
    "MiniLM on Banking77": ("all-MiniLM-L6-v2", BANKING),
    "SmolLM2 on Banking77": ("smollm2-135m", BANKING),
    "GloVe on Banking77": (GLOVE, BANKING),
}
PREFIXES = {"e5-small": "query: "}  # what a model was trained with before each text


def data_folder() -> Path:
    """Return the folder of the corpora."""
    return Path(os.environ["ISOSCOPE_DATA"])


def texts_of(corpus: str) -> tuple[list[str], list[str] | None]:
    """Return at most 5,000 distinct texts of a corpus, and their labels where it has some."""
    data = data_folder()
    labels: dict[str, str | None] = {}
    if corpus == STSB:
        for part in ("train", "dev", "test"):
            for row in _rows(data / "sts" / f"stsb_en_{part}.jsonl.gz"):
                labels |= dict.fromkeys((row["sentence1"], row["sentence2"]))
    else:
        for row in _rows(data / "banking77" / "banking77_test.jsonl.gz"):
            labels[row["text"]] = str(row["label"])
    texts = sorted(labels)
    chosen = sorted(random.Random(0).sample(texts, min(MAX_ROWS, len(texts))))
    known = [label for text in chosen if (label := labels[text]) is not None]
    return chosen, known or None


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def vectors_of(model: str, corpus: str) -> tuple[Any, list[str] | None]:
    """Return the vectors of a corpus by a model, and the labels."""
    from isoscope.models import averaged_vectors, encode, static_vectors, vocabulary

    if corpus == WORDS:
        return static_vectors(vocabulary()[:MAX_ROWS])[0], None
    texts, labels = texts_of(corpus)
    if model == GLOVE:
        vectors, places = averaged_vectors(texts)
        return vectors, labels and [labels[place] for place in places.tolist()]
    before = PREFIXES.get(model, "")
    return encode([before + text for text in texts], model=model), labels


def measured(name: str) -> dict[str, Any]:
    """Return one reference space as the package keeps it."""
    model, corpus = SPACES[name]
    vectors, labels = vectors_of(model, corpus)
    found = look(vectors, labels=labels)
    metrics = {one.metric: one.value for one in found.readings if one.value is not None}
    return {
        "name": name,
        "model": model,
        "corpus": corpus,
        "n": found.n,
        "d": found.d,
        "metrics": {metric: float(f"{value:.4g}") for metric, value in metrics.items()},
    }


def main(names: list[str]) -> None:
    """Measure the spaces named, or all, and write them."""
    content = json.loads(PATH.read_text()) if names else {"spaces": []}
    spaces = {one["name"]: one for one in content["spaces"]}
    for name in names or SPACES:
        spaces[name] = measured(name)
        print(json.dumps(spaces[name]), flush=True)
        ordered = [spaces[one] for one in SPACES if one in spaces]
        written = {"written_by": "python -m benchmarks.references", "spaces": ordered}
        PATH.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
