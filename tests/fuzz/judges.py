"""Whether a command answered well: the right numbers, or one line that refuses."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.oracle import InvalidError, OpenError, array_in, differs, readings
from tests.fuzz.processes import Ended
from tests.fuzz.row_oracle import label_readings, values_in, weight_readings
from tests.fuzz.vector_seeds import labels, weights

RIGHT, REFUSED, UNREAD, PLAUSIBLE = "right", "refused", "unread damage", "plausible"
FAULTS = (
    "wrong answer", "traceback", "hang", "memory", "escape", "not one line", "exit code", "left behind", "harness",
)  # fmt: skip
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
_TEMPORARY = re.compile(r"(\.tmp$|\.part$|^tmp|~$)")
_CLOCK = ("seconds", "isoscope", "name", "file", "output", "time", "notes")


@dataclass(frozen=True)
class Verdict:
    """RIGHT, REFUSED, UNREAD or PLAUSIBLE, or one of FAULTS with what was seen."""

    kind: str
    detail: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether something is to be mended."""
        return self.kind in FAULTS


def judge_ending(ended: Ended, may_fail: bool) -> Verdict | None:
    """What any command must keep, whatever it was given; None where nothing is amiss."""
    shown = (ended.out + b"\n" + ended.err).decode(errors="replace")
    if ended.over:
        return Verdict(
            {"time": "hang", "memory": "memory"}[ended.over],
            f"{ended.cpu_seconds:.0f} s, {ended.peak_mb:.0f} MB",
        )
    if ended.code < 0:
        return Verdict("traceback", f"signal {-ended.code}")
    if "Traceback (most recent call last)" in shown:
        return Verdict("traceback", shown.strip().splitlines()[-1][:300])
    control = _CONTROL.search(shown)
    if control:
        return Verdict("escape", repr(shown[max(0, control.start() - 60) : control.start() + 30]))
    if shown.encode() != ended.out + b"\n" + ended.err:
        return Verdict("escape", "bytes that are no UTF-8")
    lines = [
        line for line in ended.err.decode().split("\n") if line and not line.startswith("isoscope: warning: ")
    ]
    if ended.code == 2 and (len(lines) != 1 or not lines[0].startswith("isoscope: error: ")):
        return Verdict("not one line", repr(ended.err.decode()[:300]))
    if ended.code == 2 and len(lines[0]) > 8000:
        return Verdict("not one line", f"a line of {len(lines[0])} letters")
    if ended.code not in (0, 2) and not (ended.code == 1 and may_fail):
        return Verdict("exit code", f"{ended.code}: {ended.err.decode()[:200]!r}")
    return None


def judge_folder(before: set[str], after: set[str], temporary: Path) -> Verdict | None:
    """Whether only finished files are left."""
    new = sorted(name for name in after - before if any(_TEMPORARY.search(part) for part in Path(name).parts))
    # torch keeps what it has compiled, or would, in a folder of its own
    new += sorted(path.name for path in temporary.iterdir() if not path.name.startswith("torchinductor"))
    return Verdict("left behind", ", ".join(new)[:300]) if new else None


def judge_numbers(found: dict[str, Any], ranges: dict[str, tuple[float, float]]) -> Verdict | None:
    """Whether each metric is a finite number within its range."""
    metrics = found.get("metrics")
    for name, entry in metrics.items() if isinstance(metrics, dict) else ():
        value = entry.get("value") if isinstance(entry, dict) else None
        if value is None or name not in ranges:
            continue
        low, high = ranges[name]
        slack = 1e-6 * max(1.0, abs(value))
        if not math.isfinite(value) or not low - slack <= value <= high + slack:
            return Verdict("wrong answer", f"{name} is {value}, outside [{low}, {high}]")
    return None


def parsed(out: bytes) -> dict[str, Any]:
    """Standard output as a JSON object, a list as one of a single entry; NaN and infinity are no JSON."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} in JSON")

    found = json.loads(out.decode(), parse_constant=refuse)
    return found if isinstance(found, dict) else {"list": found}


def readings_in(command: str, found: dict[str, Any]) -> dict[str, float | None]:
    """n, d and the metrics that the oracle knows, out of a command's JSON."""
    if command == "measure":
        values = {name: entry["value"] for name, entry in found["metrics"].items()}
        return {"n": found["n"], "d": found["d"], **values}
    if command == "correct":
        return {"n": found["n"], "d": found["d"], **found["before"]}
    if command == "frontier":
        plain = found["plain"]
        return {"n": plain["n"], "d": plain["n_dims"], "isoscore": plain["isoscore"]}
    if command == "compare":
        values = {name: entry["a"] for name, entry in found["metrics"].items()}
        return {"n": found["n"], "d": found["a"]["d"], **values}
    return {name: found[name] for name in ("n", "d") if name in found}


def judge_file(command: str, found: dict[str, Any], path: Path, clean: dict[str, float | None]) -> Verdict:
    """Compare a command's readings with what the format's own library reads; run this in a child."""
    ours = readings_in(command, found)
    wrong_for_clean = [name for name in ours if name in clean and differs(name, ours[name], clean[name])]
    try:
        theirs = readings(array_in(path))
    except OpenError as error:
        return Verdict(PLAUSIBLE, str(error)[:200])
    except InvalidError as error:
        if wrong_for_clean:
            shown = {name: ours[name] for name in wrong_for_clean}
            return Verdict("wrong answer", f"invalid ({str(error)[:150]}) but read: {shown}")
        return Verdict(UNREAD, str(error)[:200])
    wrong = {
        name: (ours[name], theirs[name])
        for name in ours
        if name in theirs and differs(name, ours[name], theirs[name])
    }
    return Verdict("wrong answer", f"ours and the oracle's: {wrong}"[:300]) if wrong else Verdict(RIGHT)


def judge_rows(found: dict[str, Any], path: Path, stem: str, X: np.ndarray) -> Verdict:
    """Compare readings that hang on a file of labels or weights; run this in a child."""
    metrics = {name: entry["value"] for name, entry in found["metrics"].items()}
    ours = {"n_labels": found["n_labels"], **metrics}
    try:
        values = values_in(path, stem)
        theirs = label_readings(X, values) if stem == "labels" else weight_readings(X, values)
    except OpenError as error:
        return Verdict(PLAUSIBLE, str(error)[:200])
    except InvalidError as error:
        clean = labels() if stem == "labels" else weights()
        theirs = label_readings(X, clean) if stem == "labels" else weight_readings(X, clean)
        if all(ours[name] is not None and abs(ours[name] - value) < 1e-4 for name, value in theirs.items()):
            return Verdict(UNREAD, str(error)[:200])
        return Verdict("wrong answer", f"invalid ({str(error)[:150]}) but read: {ours}"[:300])
    wrong = {
        name: (ours[name], value)
        for name, value in theirs.items()
        if ours[name] is None or abs(ours[name] - value) > 1e-4
    }
    return Verdict("wrong answer", f"ours and the oracle's: {wrong}") if wrong else Verdict(RIGHT)


def numbers_of(value: Any, name: str = "") -> dict[str, float]:
    """Every number in a JSON value, by its place; times are left out."""
    if isinstance(value, dict):
        return {
            k: v
            for key, entry in value.items()
            if key not in _CLOCK
            for k, v in numbers_of(entry, f"{name}.{key}").items()
        }
    if isinstance(value, list):
        return {k: v for i, entry in enumerate(value) for k, v in numbers_of(entry, f"{name}.{i}").items()}
    return {name: float(value)} if isinstance(value, (int, float)) and not isinstance(value, bool) else {}


def judge_same(found: dict[str, Any], answer: dict[str, Any], out: Path, kept: Path) -> Verdict:
    """Compare every number that was printed, and the vectors written, with those of an undisturbed run."""
    ours, theirs = numbers_of(found), numbers_of(answer)
    if ours.keys() != theirs.keys():
        return Verdict("wrong answer", f"other entries: {sorted(ours.keys() ^ theirs.keys())[:5]}")
    for name, value in theirs.items():
        if not abs(ours[name] - value) <= 1e-9 * max(1e-3, abs(value)):
            return Verdict("wrong answer", f"{name} is {ours[name]!r}, undisturbed {value!r}")
    if kept.exists() and not np.array_equal(np.load(out), np.load(kept)):
        return Verdict("wrong answer", "other vectors were written")
    return Verdict(RIGHT)
