"""A language model with its tokenizer, loaded for its hidden states: from a folder, a GGUF file, the hub."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from isoscope.errors import InputError
from isoscope.io.files import reason
from isoscope.io.structure import read_json
from isoscope.models.model_files import check_model, modules_of, running
from isoscope.models.resolve import is_gguf, model_folder

# their tables of positions begin behind the padding's number: 514 rows serve 512 tokens
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "mpnet", "longformer"}
UNLIMITED = 10**9  # tokenizers that know no limit say 10³⁰


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A model ready to read texts, in eval mode, float32.

    Attributes:
        name: what it was asked for by, without its folders.
        path: the folder or GGUF file it came from.
        model: the transformers model, without a head.
        tokenizer: the transformers tokenizer that belongs to it.
        n_layers: how many hidden states there are, the embedding layer included.
        n_dims: dimensions of each.
        max_length: the most tokens it takes, special ones included; None where it knows no limit.
        is_causal: whether a token sees only those before it.
    """

    name: str
    path: Path
    model: Any
    tokenizer: Any
    n_layers: int
    n_dims: int
    max_length: int | None
    is_causal: bool

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return torch.device(self.model.device)


def load_language_model(
    model: str | os.PathLike[str] | LanguageModel,
    *,
    device: str | torch.device | None = None,
    download: bool = False,
) -> LanguageModel:
    """A model and its tokenizer by name, folder, .gguf file or hub id; a LanguageModel passes through.

    Only safetensors and GGUF are read as weights, and no code that comes with a model is ever run.

    Args:
        model: what to load; see `resolve_model`.
        device: where to compute; by default a CUDA device where there is one.
        download: fetch it where it is not on this machine. Nothing is fetched otherwise.
    """
    if isinstance(model, LanguageModel):
        return model
    path = model_folder(model, download=download)
    transformers = _transformers()
    folder, options = pretrained(path)
    with quiet_loading(), running(path):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        weights = {} if is_gguf(path) else {"use_safetensors": True}
        loaded = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32, **weights, **options)
        loaded.config.use_cache = False  # no text is continued
        loaded = _placed(_decoder_or_encoder(loaded, path), device)
        config = loaded.config.get_text_config()
        return LanguageModel(
            name=Path(os.fspath(model)).name,
            path=path,
            model=loaded.eval().requires_grad_(False),
            tokenizer=tokenizer,
            n_layers=int(config.num_hidden_layers) + 1,
            n_dims=int(config.hidden_size),
            max_length=token_limit(tokenizer, config),
            is_causal=_is_causal(config),
        )


def pretrained(path: Path) -> tuple[Path, dict[str, Any]]:
    """What `from_pretrained` is called with: a folder, and options that fetch nothing and run no code."""
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    if is_gguf(path):
        need_gguf(path)
    check_model(path)
    return (path.parent, options | {"gguf_file": path.name}) if is_gguf(path) else (_inner(path), options)


def load_tokenizer(path: Path) -> Any:
    """The tokenizer in a model's folder or GGUF file, with a padding token.

    One that has none pads with its end of text, or its unknown word: what is padding is masked anyway.
    """
    transformers = _transformers()
    folder, options = pretrained(path)
    with quiet_loading(), running(path):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        if tokenizer.pad_token_id is None:
            first = tokenizer.convert_ids_to_tokens(0)
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token or first
        return tokenizer


def best_device(device: str | torch.device | None) -> torch.device:
    """The device asked for, else a CUDA device where there is one."""
    try:
        return torch.device(device if device else "cuda" if torch.cuda.is_available() else "cpu")
    except RuntimeError:
        raise InputError(f"{device!r} is not known; wanted cpu, cuda, cuda:1, …", argument="device") from None


@contextmanager
def quiet_loading() -> Iterator[None]:
    """No bars and no notices from the libraries while a model is loaded; their settings are put back."""
    from transformers import modeling_gguf_pytorch_utils as gguf
    from transformers.utils import logging as notices

    was_shown, was_level, bar = notices.is_progress_bar_enabled(), notices.get_verbosity(), gguf.tqdm
    sentences = logging.getLogger("sentence_transformers")
    its_level = sentences.level
    notices.disable_progress_bar()
    notices.set_verbosity_error()
    sentences.setLevel(logging.ERROR)
    gguf.tqdm = partial(bar, disable=True)  # the one bar that heeds no setting
    try:
        yield
    finally:
        gguf.tqdm = bar
        sentences.setLevel(its_level)
        notices.set_verbosity(was_level)
        if was_shown:
            notices.enable_progress_bar()


def _transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise InputError(
            "language models need transformers, which is not installed", hint="pip install 'isoscope[text]'"
        ) from None
    return transformers


def need_gguf(path: Path) -> None:
    """Raise InputError unless what reads GGUF is installed."""
    missing = [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"{path.name} is a GGUF file, which needs {' and '.join(missing)}",
            hint="pip install 'isoscope[gguf]'",
        )


def _inner(folder: Path) -> Path:
    """Where the transformer itself lies in a folder of sentence-transformers: at its top, or in a module."""
    listed = folder / "modules.json"
    if (folder / "config.json").is_file() or not listed.is_file():
        return folder
    return folder / modules_of(read_json(listed))[0]


def _decoder_or_encoder(model: Any, path: Path) -> Any:
    """The stack whose states are taken: of an encoder-decoder, its encoder."""
    chosen = model.get_encoder() if getattr(model.config, "is_encoder_decoder", False) else model
    if not hasattr(chosen.config.get_text_config(), "num_hidden_layers"):
        raise InputError(f"the model in {path} has no layers of hidden states; wanted a transformer for text")
    return chosen


def _placed(model: Any, device: str | torch.device | None) -> Any:
    try:
        return model.to(best_device(device))
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"{device!r} cannot be used: {reason(error)}", argument="device") from None


def token_limit(tokenizer: Any, config: Any) -> int | None:
    """The most tokens a model takes; None where neither it nor its tokenizer knows a limit."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions and config.model_type in _OFFSET_POSITIONS:
        positions -= (config.pad_token_id or 0) + 1
    limits = [n for n in (positions, getattr(tokenizer, "model_max_length", None)) if n and n < UNLIMITED]
    return int(min(limits)) if limits else None


def _is_causal(config: Any) -> bool:
    """By its settings where they say so, else by what models of its kind are trained for."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    kind = config.model_type
    only_causal = kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return only_causal or bool(getattr(config, "is_decoder", False))
