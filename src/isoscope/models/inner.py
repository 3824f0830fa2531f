"""Find the transformer inside a model that is wrapped, has a head, or is of sentence-transformers."""

from __future__ import annotations

from typing import Any

from torch import nn


def unwrapped(model: Any) -> Any:
    """Return the model inside DistributedDataParallel, DataParallel or torch.compile.

    >>> layer = nn.Linear(2, 2)
    >>> unwrapped(nn.DataParallel(layer)) is layer
    True
    """
    while True:
        if isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel):
            model = model.module
        elif isinstance(model, nn.Module) and isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod
        else:
            return model


def transformer_of(model: Any) -> Any:
    """Return the model of transformers without its head; None where there is none.

    An encoder-decoder is returned whole.
    """
    inner = model
    if is_sentence_model(model):
        inner = getattr(model, "transformers_model", None) or getattr(model[0], "auto_model", None)
    config = getattr(inner, "config", None)
    if not hasattr(config, "get_text_config"):
        return None
    return inner if getattr(config, "is_encoder_decoder", False) else getattr(inner, "base_model", inner)


def is_sentence_model(model: Any) -> bool:
    """Return whether a model is of sentence-transformers."""
    return isinstance(model, nn.Sequential) and hasattr(model, "encode")
