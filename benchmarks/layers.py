"""Every layer of SmolLM2 on WikiText-2: peak memory, tokens a second beside the model's own, and the plan.

    python -m benchmarks.layers [--tokens 200000] [--device cpu]
    python -m benchmarks.layers --shape-of FOLDER --texts FILE.json

The second has random weights in the shape of the config.json of a folder with a tokenizer, and reads texts
from a list: for a machine that has neither the model nor the corpus. `--sinks` makes one of its tokens an
attention sink. It takes some minutes, and writes benchmarks/results/layers.json, which `make bench` puts on
its page.
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
from isoscope.models.batches import token_batches
from isoscope.models.language_models import LanguageModel
from isoscope.models.layers import measure_layers
from isoscope.models.layers.plan import LayerPlan
from isoscope.models.layers.run import MEMORY, layer_groups

RESULTS = Path(__file__).parent / "results" / "layers.json"
MODEL, WINDOW, SAMPLE = "smollm2-135m", 512, 2500
WANTED_MB, WANTED_SHARE = 4000.0, 0.30
_NOT_OF_SHAPE = {"quantization_config", "dtype", "_model_name_or_path"}


def of_random_weights(folder: Path, device: str, *, sinks: bool) -> LanguageModel:
    """Return a decoder of the shape and with the tokenizer in a folder."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaModel

    shape = json.loads((folder / "config.json").read_text())
    config = LlamaConfig(**{name: value for name, value in shape.items() if name not in _NOT_OF_SHAPE})
    torch.manual_seed(0)
    model, tokenizer = LlamaModel(config).eval().to(device), AutoTokenizer.from_pretrained(folder)
    if sinks:
        with torch.no_grad():
            model.embed_tokens.weight[tokenizer("=")["input_ids"]] *= 100
    n_layers, n_dims = config.num_hidden_layers + 1, config.hidden_size
    name = f"{MODEL}'s shape, random weights" + (", sinks" if sinks else "")
    return LanguageModel(name, folder, model, tokenizer, n_layers, n_dims, WINDOW, True)


def run(
    n_tokens: int,
    device: str,
    shape_of: Path | None = None,
    texts_in: Path | None = None,
    *,
    sinks: bool = False,
) -> dict[str, Any]:
    """Measure, then work out what the sums would take for more tokens."""
    if texts_in is None:
        from isoscope_papers.corpora import load_texts

        texts = list(load_texts("wikitext2", split="train"))
    else:
        texts = json.loads(texts_in.read_text())
    if shape_of is None:
        model = load_language_model(MODEL, device=device)
    else:
        model = of_random_weights(shape_of, device, sinks=sinks)
    for _ in range(2 if device.startswith("cuda") else 0):  # kernels are loaded at their first launch
        measure_layers(texts, model=model, window=WINDOW, max_tokens=n_tokens, sample=SAMPLE, progress=False)
    alone = _alone(texts, model, n_tokens)
    began = time.perf_counter()
    found = measure_layers(
        texts, model=model, window=WINDOW, max_tokens=n_tokens, sample=SAMPLE, progress=True
    )
    seconds = time.perf_counter() - began
    forward = min(found.seconds["model"], alone)  # beside which sums may run
    on_device = torch.cuda.max_memory_allocated() / 2**20 if device.startswith("cuda") else 0.0
    name = MODEL if shape_of is None else model.name
    return {
        "what": f"{name}, {found.n_tokens:,} tokens × {len(found.layers)} layers on {device}",
        "tokens": found.n_tokens,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "device_mb": on_device,
        "seconds": seconds,
        "model_tokens_per_second": found.n_tokens / forward,
        "tokens_per_second": found.n_tokens / seconds,
        "streamed_share": (seconds - found.seconds["sample"]) / forward - 1,
        "sampled_share": found.seconds["sample"] / forward,
        "wanted_share": WANTED_SHARE,
        "wanted_mb": WANTED_MB,
        "plan": [_accounted(texts, model, n) for n in (n_tokens, 10 * n_tokens)],
    }


def _alone(texts: list[str], model: LanguageModel, n_tokens: int) -> float:
    """Return the seconds of the model's own passes over the batches, without states; the better of two."""
    states = States(texts, model=model, window=WINDOW, max_tokens=n_tokens)
    times = []
    for _ in range(2):
        began = time.perf_counter()
        with torch.no_grad():
            for batch in token_batches(states.tokenized, states.groups):
                inputs = {name: values.to(model.device) for name, values in batch.inputs.items()}
                model.model(**inputs, use_cache=False)
        if model.device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times)


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
    parser.add_argument("--shape-of", type=Path, help="a folder with config.json and a tokenizer")
    parser.add_argument("--texts", type=Path, help="a JSON list of texts")
    parser.add_argument("--sinks", action="store_true", help="with --shape-of: make a token a sink")
    asked = parser.parse_args()
    row = run(asked.tokens, asked.device, asked.shape_of, asked.texts, sinks=asked.sinks)
    kept = json.loads(asked.output.read_text()) if asked.output.exists() else []
    kept = [other for other in kept if other["what"] != row["what"]] + [row]
    asked.output.write_text(json.dumps(kept, indent=2) + "\n")
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
