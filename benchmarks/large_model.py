"""Every layer of decoders with random weights: memory, and tokens a second; sections of `make bench-gpu`.

    python -m benchmarks.large_model                                # 7B parameters, on CUDA
    python -m benchmarks.large_model --device cpu --tokens 16384    # 8 layers × 1,024, on the CPU

writes benchmarks/results/large-model.json (or a file in $OUT), which `make bench` puts on its page; rows of
other devices stay.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import torch

import isoscope as iso
from benchmarks.timing import machine

RESULTS = Path(__file__).parent / "results" / "large-model.json"
BATCH, WINDOW, SAMPLE = 16, 512, 1000
WANTED_SHARE, WANTED_GB = 0.70, 4.0
SUMS = [
    "mean_norm",
    "mean_cosine",
    "isoscore",
    "isoscore_debiased",
    "sampled_anisotropy",
    "top_dimension_share",
]


# hidden size, intermediate size, blocks, heads, heads of keys, types
SHAPES = {
    "7B shape": (4096, 11008, 32, 32, 32, 32_000),
    "SmolLM2-135M's shape": (576, 1536, 30, 9, 3, 49_152),
    "8 layers × 1,024": (1024, 2816, 8, 16, 16, 32_000),
    "tiny": (64, 172, 2, 4, 4, 32_000),
}


def decoder(device: str, shape: str) -> Any:
    """Return a model of Llama's kind, made where it is to run."""
    from transformers import LlamaConfig, LlamaModel
    from transformers.initialization import no_init_weights

    names = (
        "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "vocab_size",
    )  # fmt: skip
    config = LlamaConfig(**dict(zip(names, SHAPES[shape], strict=True)))
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device), no_init_weights():
            model = LlamaModel(config).eval()
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        for name, values in model.named_parameters():
            values.fill_(1) if "norm" in name else values.normal_(0, 0.02)
    return model


def run(n_tokens: int, device: str, shape: str) -> list[dict[str, Any]]:
    """Measure all layers: what sums over all tokens give, and then all quantities."""
    model = decoder(device, shape)
    draw = torch.Generator().manual_seed(0)
    size = (BATCH if device != "cpu" else BATCH // 4) * WINDOW
    sizes = [min(size, n_tokens - start) // WINDOW for start in range(0, n_tokens, size)]
    batches = [{"input_ids": torch.randint(0, 32_000, (b, WINDOW), generator=draw)} for b in sizes if b]
    n_tokens = sum(batch["input_ids"].numel() for batch in batches)
    _forward(model, batches[:2], device)
    seconds, own_gb = _watched(lambda: _forward(model, batches, device), device)
    rows = []
    for what, options in (("sums over all tokens", {"metrics": SUMS}), ("all quantities", {})):
        options |= {"memory": "60GB", "progress": False, "sample": SAMPLE}
        iso.layers(model, batches[:2], **options)
        taken, gb = _watched(lambda options=options: iso.layers(model, batches, **options), device)
        n_layers = model.config.num_hidden_layers + 1
        rows.append(
            {
                "what": f"{shape}, bfloat16, {n_tokens:,} tokens × {n_layers} layers, {what}",
                "device": torch.cuda.get_device_name() if device != "cpu" else str(machine()["processor"]),
                "model_tokens_per_second": n_tokens / seconds,
                "tokens_per_second": n_tokens / taken,
                "share": seconds / taken,
                "wanted_share": WANTED_SHARE,
                "model_gb": own_gb,
                "more_gb": gb - own_gb,
                "wanted_gb": WANTED_GB,
            }
        )
    return rows


def _forward(model: Any, batches: list[dict[str, Any]], device: str) -> None:
    with torch.no_grad():
        for batch in batches:
            model(batch["input_ids"].to(device), use_cache=False)


def _watched(call: Any, device: str) -> tuple[float, float]:
    """Return the seconds of a call, and the most memory of the device in GB so far.

    On the CPU they are those of the process: other processes share its cores.
    """
    if device == "cpu":
        began = time.process_time()
        call()
        return time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - began, torch.cuda.max_memory_allocated() / 1e9


def main() -> None:
    """Write the rows as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args()
    rows = run(asked.tokens, asked.device, "7B shape" if asked.device != "cpu" else "8 layers × 1,024")
    file = (Path(os.environ["OUT"]) if "OUT" in os.environ else RESULTS.parent) / RESULTS.name
    kept = json.loads(file.read_text()) if file.exists() else []
    kept = [row for row in kept if row["device"] != rows[0]["device"]]
    file.write_text(json.dumps([*kept, *rows], indent=2) + "\n")
    for row in rows:
        print(
            f"{row['what']}: {row['share']:.2f} of the model's {row['model_tokens_per_second']:,.0f} "
            f"tokens/s, {row['more_gb']:.2f} GB more than its {row['model_gb']:.1f}"
        )


if __name__ == "__main__":
    main()
