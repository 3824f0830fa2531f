"""Run every benchmark, or those named, print the tables, and write results and the documentation page.

python -m benchmarks                    all
python -m benchmarks clustering         one; the results of the others are kept
python -m benchmarks --page             none: the page is written from the results
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import (
    clustering,
    corrections,
    isoscore,
    losses,
    memory,
    peers,
    report,
    silhouette,
    startup,
    streaming,
    tracker,
    training,
)
from benchmarks.page import write_page
from benchmarks.timing import machine

SUITES = {
    "isoscore": isoscore.run,
    "silhouette": silhouette.run,
    "limits": silhouette.limits,
    "clustering": clustering.run,
    "training": training.run,
    "losses": losses.run,
    "loss_share": losses.step_share,
    "tracker": tracker.run,
    "peers": peers.run,
    "memory": memory.run,
    "corrections": corrections.run,
    "report": report.run,
    "streaming": streaming.run,
    "startup": startup.run,
}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="which to run; all if none is named")
    parser.add_argument("--page", action="store_true", help="run nothing: write the page again")
    asked = parser.parse_args()
    kept = (asked.suites or asked.page) and (RESULTS / "cpu.json").exists()
    results: dict[str, Any] = json.loads((RESULTS / "cpu.json").read_text()) if kept else {}
    results["machine"] = machine()
    for name in [] if asked.page else asked.suites or SUITES:
        print(f"… {name}", flush=True)
        results[name] = SUITES[name]()
        for row in results[name]:
            print("   ", "  ".join(f"{key} {_shown(value)}" for key, value in row.items()))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "cpu.json").write_text(json.dumps(results, indent=2) + "\n")
    print(f"wrote {write_page(results)}")


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
