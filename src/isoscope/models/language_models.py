"""Load language models and their tokenizers from a folder, a GGUF file, or a copy from the hub."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from isoscope.errors import InputError, Setting, not_installed
from isoscope.io.files import reason
from isoscope.io.structure import read_json
from isoscope.models.inner import transformer_of, unwrapped
from isoscope.models.model_files import check_model, check_weights, modules_of, running
from isoscope.models.resolve import is_gguf, model_folder
from isoscope.models.untouched import device_of

# their position embeddings start after the id of the padding token: 514 rows are for 512 tokens
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "mpnet", "longformer"}
UNLIMITED = 10**9  # a tokenizer without a limit has a maximum of 10³⁰ tokens
_TOWERS = {"texts": "text_model", "images": "vision_model", "recordings": "audio_model"}  # of CLIP and CLAP
SIDES = ("encoder", "decoder")
DTYPES = ("auto", "bfloat16", "float16", "float32")


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A loaded model in eval mode, with its tokenizer.

    Attributes:
        name: the name of the model, its folder or its file.
        path: the folder or GGUF file that it was loaded from.
        model: the transformers model, without a head.
        tokenizer: the transformers tokenizer of the model.
        n_layers: the number of hidden states, including the embedding layer.
        n_dims: the number of dimensions of a hidden state.
        max_length: the maximum number of tokens, including special tokens; None where there is no limit.
        is_causal: whether a token attends only to the tokens before it.
        decoder_start: for the decoder of an encoder-decoder, the id that its inputs begin with.
    """

    name: str
    path: Path
    model: Any
    tokenizer: Any
    n_layers: int
    n_dims: int
    max_length: int | None
    is_causal: bool
    decoder_start: int | None = None

    @property
    def device(self) -> torch.device:
        """The device that inputs are moved to; of several devices, the first."""
        return device_of(self.model)


def load_language_model(
    model: Any,
    *,
    tokenizer: Any = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    device_map: str | Mapping[str, Any] | None = None,
    compile: bool = False,
    side: str | None = None,
    download: bool = False,
) -> LanguageModel:
    """Load a model and its tokenizer by name, folder, .gguf file or hub id; or join a loaded model with one.

    Only safetensors and GGUF files are read as weights. Code that comes with a model is never run. Quantised
    weights are loaded if transformers and its packages for them can do so.

    Args:
        model: the model to load, see `resolve_model`; a model of transformers that is loaded, or a pair of
            one and its tokenizer, whose weights stay as and where they are; a LanguageModel is returned as it
            is.
        tokenizer: the tokenizer of the model; by default the one that was saved with it.
        device: the device to compute on; by default a CUDA device if there is one.
        dtype: the type of the weights and states: "float32", "bfloat16", "float16", or "auto" for the type
            that the weights were saved in. Statistics are computed in float32 and float64 in any case.
        device_map: how accelerate places the modules on several devices, the CPU and the disk: "auto",
            "balanced", …, or a mapping from names of modules to devices. It replaces `device`.
        compile: compile the model by torch.compile, which takes a while at the first batch of each shape.
        side: the states of an encoder-decoder that are used: those of its "encoder", by default, or of its
            "decoder" as it reads a text that the encoder has read (teacher forcing).
        download: download the model if it is not on this machine. Nothing is downloaded otherwise.
    """
    if not isinstance(model, str | os.PathLike):
        _check_loaded_already(
            dtype=dtype not in ("float32", torch.float32), device_map=device_map, compile=compile
        )
    if isinstance(model, LanguageModel):
        return model
    if not isinstance(model, str | os.PathLike):
        return _joined(*pair_of(model, tokenizer), side)
    path = model_folder(model, download=download)
    transformers = transformers_library()
    with quiet_loading(), running(path):
        folder, options = pretrained(path)
        if tokenizer is None:
            _check_reads_texts(path, folder)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        loaded = load_weights(
            path, "texts", device=device, dtype=dtype, device_map=device_map, compile=compile, side=side
        )
        return _described(Path(os.fspath(model)).name, path, loaded, tokenizer, side)


def pair_of(model: Any, tokenizer: Any = None) -> tuple[Any, Any]:
    """Return a loaded model and its tokenizer: the one given, or that of a pair, or the model's own, or None.

    >>> pair_of(("model", "tokenizer")), pair_of("model")
    (('model', 'tokenizer'), ('model', None))
    """
    if isinstance(model, tuple):
        if len(model) != 2:
            raise InputError(argument="model", got=model, wanted="a model, or a pair (model, tokenizer)")
        model, of_pair = model
        tokenizer = of_pair if tokenizer is None else tokenizer
    own = getattr(model, "tokenizer", None) if tokenizer is None else tokenizer
    return model, own if tokenizer is not None or hasattr(own, "convert_ids_to_tokens") else None


def _joined(model: Any, tokenizer: Any, side: str | None) -> LanguageModel:
    """Return a loaded model with its tokenizer, by default the one in the folder that it was loaded from."""
    core = transformer_of(unwrapped(model))
    if core is None:
        raise InputError(
            f"is a {type(model).__name__}", argument="model", wanted="a model of transformers, to read texts"
        )
    source = str(getattr(core.config, "_name_or_path", ""))
    path = Path(source)
    if tokenizer is None and source and (path / "tokenizer_config.json").is_file():
        tokenizer = load_tokenizer(path)
    if tokenizer is None:
        raise InputError(
            f"{type(model).__name__} has no tokenizer", hint=Setting("tokenizer", to="tokenize the texts")
        )
    name = path.name or type(core).__name__
    return _described(name, Path(source or name), _part_for(core, "texts", path, side), tokenizer, side)


def _described(name: str, path: Path, model: Any, tokenizer: Any, side: str | None) -> LanguageModel:
    """Return a model with the properties that its configuration has."""
    config = model.config.get_text_config()
    return LanguageModel(
        name=name,
        path=path,
        model=model,
        tokenizer=tokenizer,
        n_layers=_n_layers(config, side) + 1,
        n_dims=int(config.hidden_size),
        max_length=token_limit(tokenizer, config),
        is_causal=side == "decoder" or _is_causal(config),
        decoder_start=_decoder_start(config, tokenizer) if side == "decoder" else None,
    )


def load_weights(
    path: Path,
    kind: str,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    device_map: str | Mapping[str, Any] | None = None,
    compile: bool = False,
    side: str | None = None,
) -> Any:
    """Return the part of the model in a folder that reads inputs of a kind, in eval mode."""
    folder, options = pretrained(path)
    weights: dict[str, Any] = {} if is_gguf(path) else {"use_safetensors": True}
    if device_map is not None:
        _check_map(device)
    elif _is_quantized(folder):
        device_map = {"": str(best_device(device))}  # such weights cannot be moved afterwards
    weights |= {} if device_map is None else {"device_map": device_map}
    whole, report = transformers_library().AutoModel.from_pretrained(
        folder,
        dtype=_checked_dtype(dtype),
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they are named below
        **weights,
        **options,
    )
    whole.config.use_cache = False  # the model does not generate text
    model = _part_for(whole, kind, path, side)
    check_weights(path, whole, model, report)
    if device_map is None:
        model = _placed(model, device)
    if compile:
        model.compile()
    return model.eval().requires_grad_(False)


def pretrained(path: Path) -> tuple[Path, dict[str, Any]]:
    """Return the folder and the options for `from_pretrained`, which download nothing and run no code."""
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    if is_gguf(path):
        need_gguf(path)
    check_model(path)
    return (path.parent, options | {"gguf_file": path.name}) if is_gguf(path) else (_inner(path), options)


def load_tokenizer(path: Path) -> Any:
    """Load the tokenizer in a model's folder or GGUF file, with a padding token.

    A tokenizer without a padding token uses its end-of-text token or unknown token; padding is masked anyway.
    """
    transformers = transformers_library()
    folder, options = pretrained(path)
    with quiet_loading(), running(path):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        if tokenizer.pad_token_id is None:
            first = tokenizer.convert_ids_to_tokens(0)
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token or first
        return tokenizer


def best_device(device: str | torch.device | None) -> torch.device:
    """Return the chosen device; by default a CUDA device if there is one, otherwise the CPU."""
    try:
        return torch.device(device if device else "cuda" if torch.cuda.is_available() else "cpu")
    except RuntimeError:
        raise InputError(
            argument="device", got=device, wanted="a device such as cpu, cuda or cuda:1"
        ) from None


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Silence the progress bars and messages of the libraries while a model is loaded."""
    from transformers import modeling_gguf_pytorch_utils as gguf
    from transformers.utils import logging as messages

    had_bar, verbosity, bar = messages.is_progress_bar_enabled(), messages.get_verbosity(), gguf.tqdm
    sentences = logging.getLogger("sentence_transformers")
    level = sentences.level
    messages.disable_progress_bar()
    messages.set_verbosity_error()
    sentences.setLevel(logging.ERROR)
    gguf.tqdm = partial(bar, disable=True)  # this bar ignores the setting
    try:
        yield
    finally:
        gguf.tqdm = bar
        sentences.setLevel(level)
        messages.set_verbosity(verbosity)
        if had_bar:
            messages.enable_progress_bar()


def transformers_library() -> Any:
    """Return transformers; raise InputError where it is not installed."""
    try:
        import transformers
    except ImportError:
        raise not_installed("A language model", "transformers", extra="text") from None
    return transformers


def need_gguf(path: Path) -> None:
    """Raise InputError unless the packages that read GGUF files are installed."""
    missing = [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        raise not_installed(f"{path.name}, a GGUF file,", *missing, extra="gguf")


def _inner(folder: Path) -> Path:
    """Return the folder of the transformer: in a sentence-transformers folder it may be that of a module."""
    listing = folder / "modules.json"
    if (folder / "config.json").is_file() or not listing.is_file():
        return folder
    return folder / modules_of(read_json(listing))[0]


def _part_for(model: Any, kind: str, path: Path, side: str | None) -> Any:
    """Return the model whose hidden states are used: of two towers the one for a kind, or the encoder.

    A decoder needs its encoder: there, it is the whole model.
    """
    has_sides = getattr(model.config, "is_encoder_decoder", False)
    if side is not None and (side not in SIDES or not has_sides):
        wanted = f"one of {', '.join(SIDES)}" if has_sides else "left out, since the model has no decoder"
        raise InputError(argument="side", got=side, wanted=wanted)
    if side == "decoder":
        return model
    tower = getattr(model, _TOWERS[kind], None)
    is_pair = sum(hasattr(model, name) for name in _TOWERS.values()) > 1
    chosen = tower if is_pair and tower is not None else model
    if has_sides:
        chosen = model.get_encoder()
    if kind != "texts":
        return chosen
    if not hasattr(chosen.config.get_text_config(), "num_hidden_layers"):
        raise InputError(f"the model in {path} has no hidden states", wanted="a transformer for text")
    return chosen


def _check_loaded_already(**options: Any) -> None:
    """Raise InputError for options of loading that are given with a model that is loaded."""
    for argument, value in options.items():
        if value:
            raise InputError(
                "goes with a model that is loaded here, by its name or folder; this one is loaded",
                argument=argument,
            )


def _check_reads_texts(path: Path, folder: Path) -> None:
    """Raise InputError for a model of images or recordings."""
    names = [name.name for name in folder.iterdir()] if folder.is_dir() else []
    is_of_texts = any(
        name.startswith(("tokenizer", "vocab", "merges")) or name.endswith(".model") for name in names
    )
    if "preprocessor_config.json" in names and not is_of_texts:
        raise InputError(
            f"has texts, but {path} has no tokenizer",
            argument="inputs",
            wanted="images or recordings for this model",
        )


def _checked_dtype(dtype: str | torch.dtype) -> str | torch.dtype:
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise InputError(argument="dtype", got=dtype, wanted=f"one of {', '.join(DTYPES)}")
    return name if name == "auto" else getattr(torch, name)


def _check_map(device: str | torch.device | None) -> None:
    if device is not None:
        raise InputError("cannot be given with device_map, which replaces it", argument="device")
    if importlib.util.find_spec("accelerate") is None:
        raise not_installed("", "accelerate", extra="large", argument="device_map")


def _is_quantized(folder: Path) -> bool:
    config = folder / "config.json"
    return config.is_file() and read_json(config).get("quantization_config") is not None


def _placed(model: Any, device: str | torch.device | None) -> Any:
    try:
        return model.to(best_device(device))
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"{device!r} cannot be used: {reason(error)}", argument="device") from None


def _n_layers(config: Any, side: str | None) -> int:
    names = ("num_decoder_layers", "decoder_layers") if side == "decoder" else ()
    return int(next((n for name in names if (n := getattr(config, name, None))), config.num_hidden_layers))


def _decoder_start(config: Any, tokenizer: Any) -> int:
    candidates = (config.decoder_start_token_id, tokenizer.bos_token_id, tokenizer.pad_token_id, 0)
    return int(next(one for one in candidates if one is not None))


def token_limit(tokenizer: Any, config: Any) -> int | None:
    """Return the maximum number of tokens of a model and its tokenizer; None where there is no limit."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions and config.model_type in _OFFSET_POSITIONS:
        positions -= (config.pad_token_id or 0) + 1
    limits = [n for n in (positions, getattr(tokenizer, "model_max_length", None)) if n and n < UNLIMITED]
    return int(min(limits)) if limits else None


def _is_causal(config: Any) -> bool:
    """Return whether the configuration says so, or the architecture has a causal but no masked model."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    kind = config.model_type
    only_causal = kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return only_causal or bool(getattr(config, "is_decoder", False))
