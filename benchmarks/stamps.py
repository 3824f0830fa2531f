"""When a section of results was measured, of which commit, and what has changed in the code since.

python -m benchmarks.stamps      stamps sections and rows that have no stamp with the commit that saved them
"""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GPU = ROOT / "benchmarks" / "results" / "gpu.json"
Stamp = dict[str, Any]

# changes that move figures on CUDA, by section: the time of the commit, and what it changed
CHANGES: dict[str, tuple[tuple[str, str], ...]] = {
    "losses": (
        ("2026-11-18T22:04:35+00:00", "I-STAR's penalty computed score and gradient in one recording"),
    ),
    "calls": (
        ("2026-11-19T21:22:00+00:00", "steps of `measure` were recordings and its formulas ran on the CPU"),
    ),
    "peers": (
        ("2026-11-18T22:37:06+00:00", "labels were planned on the device, in one recording with the score"),
    ),
    "layers": (
        (
            "2026-11-18T22:35:25+00:00",
            "layers on CUDA found neighbours together and took eigenvalues on the CPU meanwhile",
        ),
        ("2026-11-19T21:30:00+00:00", "a triangle of each scatter was held and batches came in parts"),
    ),
}
CHANGES["large_model"] = (
    ("2026-11-19T21:30:00+00:00", "a triangle of each scatter was held and batches came in parts"),
)
CHANGES |= {"loss_share": CHANGES["losses"], "profiles": CHANGES["calls"]}


def stamp(seconds: float) -> Stamp:
    """Return the stamp of a section that has just been measured, in so many seconds."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"at": now, "commit": _commit(), "seconds": round(seconds, 1)}


def of_commit(path: Path, section: str) -> Stamp:
    """Return the stamp of a section, or of a row, as it is saved: the commit since which it is so."""
    now = _section(path.read_text(), section)
    found: Stamp = {}
    log = _git("log", "--format=%h %cI", "--", str(path.relative_to(ROOT))).splitlines()
    for commit, at in (line.split() for line in log):
        if _section(_git("show", f"{commit}:{path.relative_to(ROOT)}"), section) != now:
            break
        found = {"at": at, "commit": commit}
    return found


def lines(section: str, measured: Stamp | None, *, what: str = "") -> list[str]:
    """Return what the page says of when a section was measured."""
    if not measured:
        return ["", f"{what}Measured before figures carried a date."]
    at = datetime.fromisoformat(measured["at"])
    since = [change for when, change in CHANGES.get(section, ()) if at < datetime.fromisoformat(when)]
    commit = f" ({measured['commit']})" if measured.get("commit") else ""
    before = f", before {', and before '.join(since)}" if since else ""
    return ["", f"{what}Measured on {at:%Y-%m-%d}{commit}{before}."]


def _commit() -> str | None:
    try:
        return _git("describe", "--always", "--dirty").strip()
    except (OSError, subprocess.CalledProcessError):
        return None  # a copy of the tree without its history


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _section(text: str, section: str) -> Any:
    """Return a section of results, or a row of a list of them, without its stamp."""
    results = json.loads(text)
    if isinstance(results, dict):
        return results.get(section)
    rows = [row for row in results if row["what"] == section]
    return {name: value for name, value in rows[0].items() if name != "measured"} if rows else None


def main() -> None:
    """Stamp what was measured before stamps were."""
    results = json.loads(GPU.read_text())
    stamps = results.setdefault("measured", {})
    for section, rows in results.items():
        if isinstance(rows, list) and section not in stamps:
            stamps[section] = of_commit(GPU, section)
    GPU.write_text(json.dumps(results, indent=2) + "\n")
    for path in (GPU.with_name("layers.json"), GPU.with_name("large-model.json")):
        rows = json.loads(path.read_text())
        for row in rows:
            row.setdefault("measured", of_commit(path, row["what"]))
        path.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
