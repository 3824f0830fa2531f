"""Why a figure is missed, by case, once several ways have been tried; shown under its table while it is."""

from __future__ import annotations

_SHARE = "a step of a model this small is bound by launches on a GPU, and so is the penalty"
_LAUNCHES = (
    "a batch of a layer is measured in many small launches, which take longer there than the model itself"
)
REASONS: dict[str, str] = {
    "penalty of 6,144 vectors, ζ = 0.2, in a step of MiniLM, 32 × 32": _SHARE,
    "penalty of 6,144 vectors, debiased, in a step of MiniLM, 32 × 32": _SHARE,
    "smollm2-135m, 199,680 tokens × 31 layers on cuda": _LAUNCHES,
}
