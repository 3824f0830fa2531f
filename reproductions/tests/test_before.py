"""The numbers of every page before the studies were put on one framework; kept runs still give them."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isoscope_papers.study import study

BEFORE = json.loads(gzip.decompress((Path(__file__).parent / "before.json.gz").read_bytes()))
PAGES = Path(__file__).parents[2] / "docs" / "reproduction"
PARTS = {"contrastive": ("contrastive", "dynamics")}  # studies whose pages were one
# by study: what was corrected since, by the beginning of its path or by its text
CORRECTED: dict[str, tuple[str, ...]] = {
    "manifolds": (  # S_inter and S_intra were one claim; clusters are isolated from a silhouette of 0.5 on
        "0.061 … 0.204 and 0.755 … 0.841 (1 of 6 layers)",
        "0.070 … 0.233 and 0.613 … 0.932 (2 of 12 layers)",
        "0.281 … 0.667 and 0.749 … 0.997",
        "0.281 … 0.668 and 0.751 … 0.998",
        "0.113 … 0.402",
        "0.053 … 0.247 (3 of 12 layers)",
        "0.150 … 0.994",
        "0.083 … 0.805 (26 of 30 layers)",
    ),
}


def _numbers(content: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _numbers(value, f"{path}/{key}")
    elif isinstance(content, list):
        for place, value in enumerate(content):
            yield from _numbers(value, f"{path}/{place}")
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield path.strip("/"), content


def _now(name: str) -> tuple[dict[str, float], set[tuple[str, str]]]:
    numbers: dict[str, float] = {}
    evidence: set[tuple[str, str]] = set()
    for part in PARTS.get(name, (name,)):
        one = study(part)
        found = one.as_dict(one.read(PAGES / "runs"))
        for row in found.pop("rows"):
            if row["ours"] is not None:
                numbers[f"rows/{row['setup']}/{row['quantity']}"] = row["ours"]
        for claim in found.pop("claims"):
            evidence |= {(each["subject"], each["ours"]) for each in claim["findings"]}
        numbers |= dict(_numbers(found))
    return numbers, evidence


@pytest.mark.parametrize("name", BEFORE)
def test_kept_runs_give_the_numbers_they_gave(name: str) -> None:
    numbers, evidence = _now(name)
    corrected = CORRECTED.get(name, ())
    lost = {
        path: (value, numbers.get(path))
        for path, value in BEFORE[name]["numbers"].items()
        if not path.startswith(corrected)
        and not math.isclose(numbers.get(path, math.nan), value, rel_tol=1e-12, abs_tol=1e-15)
    }
    assert not lost
    untold = [
        (subject, text)
        for subject, text in BEFORE[name]["evidence"]
        if text not in corrected and not any(subject == one and text in ours for one, ours in evidence)
    ]
    assert not untold
