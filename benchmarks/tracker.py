"""What a GeometryTracker adds to the training of MiniLM: one measurement beside the steps between two.

python -m benchmarks.tracker                 on the CPU
python -m benchmarks.tracker --device cuda   on a CUDA device
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.timing import take_turns
from isoscope.models import load_language_model
from isoscope.tracking import GeometryTracker
from isoscope_papers.corpora import load_corpus

N_TEXTS, EVERY, BATCH = 256, 100, 32
# what is followed: the default metrics of the last layer; the same of all, with the contextual ones
CASES: dict[str, dict[str, Any]] = {
    "last layer": {"layers": (-1,)},
    "all 7 layers, contextual metrics too": {"layers": tuple(range(7)), "contextual": True},
}


def run(device: str = "cpu") -> list[dict[str, Any]]:
    """Seconds of a step (forward, backward, AdamW on 32 sentences) and of a measurement, in turns."""
    loaded = load_language_model("all-MiniLM-L6-v2", device=device)
    model = loaded.model.train().requires_grad_(True)
    texts = list(load_corpus("polarity").distinct())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    batch = loaded.tokenizer(texts[-BATCH:], padding=True, return_tensors="pt").to(device)

    def step() -> None:
        optimizer.zero_grad()
        model(**batch).last_hidden_state.square().mean().backward()
        optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()

    trackers = {
        name: GeometryTracker(texts[:N_TEXTS], tokenizer=loaded.tokenizer, **options)
        for name, options in CASES.items()
    }
    contenders: dict[str, Callable[[], object]] = {"step": step}
    contenders |= {name: lambda own=own: own.read(model) for name, own in trackers.items()}  # type: ignore[misc]
    seconds = take_turns(contenders)
    return [
        {
            "what": f"{N_TEXTS} texts every {EVERY} steps, {name}",
            "device": torch.cuda.get_device_name() if device != "cpu" else "CPU",
            "step_ms": 1e3 * seconds["step"],
            "measure_ms": 1e3 * seconds[name],
            "share_percent": 100 * seconds[name] / (seconds[name] + EVERY * seconds["step"]),
        }
        for name in CASES
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    print(json.dumps(run(parser.parse_args().device), indent=2))
