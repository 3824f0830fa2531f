"""Every layer of SmolLM2 on WikiText-2: peak memory, tokens a second beside the model's own, and the plan.

    python -m benchmarks.layers [--tokens 200000] [--device cpu]

takes some minutes, and writes benchmarks/results/layers.json, which `make bench` puts on its page.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import torch

from isoscope.models import States, load_language_model
from isoscope.models.language_models import LanguageModel
from isoscope.models.layers import measure_layers
from isoscope.models.layers.plan import LayerPlan
from isoscope.models.layers.run import MEMORY, layer_groups
from isoscope_papers.corpora import load_texts

RESULTS = Path(__file__).parent / "results" / "layers.json"
MODEL, WINDOW, SAMPLE = "smollm2-135m", 512, 2500
WANTED_MB, WANTED_SHARE = 4000.0, 0.30


def run(n_tokens: int, device: str) -> dict[str, Any]:
    """Measure, then work out what the sums would take for more tokens."""
    texts = list(load_texts("wikitext2", split="train"))
    model = load_language_model(MODEL, device=device)
    began = time.perf_counter()
    found = measure_layers(
        texts, model=model, window=WINDOW, max_tokens=n_tokens, sample=SAMPLE, progress=True
    )
    seconds = time.perf_counter() - began
    forward = found.seconds["model"]
    on_device = torch.cuda.max_memory_allocated() / 2**20 if device.startswith("cuda") else 0.0
    return {
        "what": f"{MODEL}, {found.n_tokens:,} tokens × {len(found.layers)} layers on {device}",
        "tokens": found.n_tokens,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "device_mb": on_device,
        "seconds": seconds,
        "model_tokens_per_second": found.n_tokens / forward,
        "tokens_per_second": found.n_tokens / seconds,
        "streamed_share": found.seconds["measures"] / forward,
        "sampled_share": found.seconds["sample"] / forward,
        "wanted_share": WANTED_SHARE,
        "wanted_mb": WANTED_MB,
        "plan": [_accounted(texts, model, n) for n in (n_tokens, 10 * n_tokens)],
    }


def _accounted(texts: list[str], model: LanguageModel, n_tokens: int) -> dict[str, Any]:
    """Return the planned cost of the sums of all layers for a number of tokens."""
    states = States(texts, model=model, window=WINDOW, max_tokens=n_tokens)
    plan = LayerPlan.of(states, sample=SAMPLE, seed=0)
    layer_mb = plan.layer_bytes(model.n_dims) / 2**20
    groups = layer_groups(list(range(model.n_layers)), plan, model.n_dims, MEMORY)
    return {
        "tokens": len(states.counted),
        "types": int((plan.types.counts > 0).sum()),
        "repeated_types": int((plan.types.counts > 1).sum()),
        "types_held_at_once": plan.types.n_slots,
        "sums_mb": model.n_layers * layer_mb,
        "passes": len(groups),
        "pass_mb": len(groups[0]) * layer_mb,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    row = run(asked.tokens, asked.device)
    kept = json.loads(asked.output.read_text()) if asked.output.exists() else []
    kept = [other for other in kept if other["what"] != row["what"]] + [row]
    asked.output.write_text(json.dumps(kept, indent=2) + "\n")
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
