"""Run every benchmark, print the tables, and write results and the documentation page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import clustering, isoscore, losses, memory, peers, silhouette, streaming, training
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
    "peers": peers.run,
    "memory": memory.run,
    "streaming": streaming.run,
}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    results: dict[str, Any] = {"machine": machine()}
    for name, run in SUITES.items():
        print(f"… {name}", flush=True)
        results[name] = run()
        for row in results[name]:
            print("   ", "  ".join(f"{key} {_shown(value)}" for key, value in row.items()))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "cpu.json").write_text(json.dumps(results, indent=2) + "\n")
    print(f"wrote {write_page(results)}")


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
