"""Run every benchmark, or those named, print the tables, and write results and the documentation page.

python -m benchmarks                    all
python -m benchmarks clustering         one; the results of the others are kept
python -m benchmarks --page             none: the page is written from the results

Each machine has a file of results and a part of the page. ATEN_CPU_CAPABILITY=avx2
MKL_ENABLE_INSTRUCTIONS=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 makes another machine of one with AVX-512.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import (
    clustering,
    corrections,
    cpu_calls,
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
from benchmarks.timing import machine, short_name

SUITES = {
    "calls": cpu_calls.run,
    "silhouette_share": cpu_calls.silhouette_share,
    "silhouette_share_large": cpu_calls.silhouette_share_large,
    "silhouette_profile": cpu_calls.silhouette_profile,
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
    if not asked.page:
        _run(asked.suites)
    print(f"wrote {write_page()}")


def _run(suites: list[str]) -> None:
    described = machine()
    saved = RESULTS / f"cpu-{short_name(described)}.json"
    results: dict[str, Any] = json.loads(saved.read_text()) if suites and saved.exists() else {}
    results["machine"] = described
    for name in suites or SUITES:
        print(f"… {name}", flush=True)
        results[name] = SUITES[name]()
        for row in results[name]:
            print("   ", "  ".join(f"{key} {_shown(value)}" for key, value in row.items()))
        RESULTS.mkdir(exist_ok=True)
        saved.write_text(json.dumps(results, indent=2) + "\n")


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
