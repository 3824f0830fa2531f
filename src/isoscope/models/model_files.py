"""Check the files of a model before a library loads them: types of settings, and sizes against weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isoscope.errors import FileError, InputError, IsoscopeError
from isoscope.io.files import reading, reason
from isoscope.io.structure import Field, read_json
from isoscope.models.gguf_header import read_gguf_header

_MAX_VOCABULARY_BYTES = 256 * 2**20
_LEAST_SIZE = 1024  # sizes up to this are accepted, however few weights there are
_COUNTED = ("layer", "expert", "block_count")
_MEASURED = ("size", "dim")  # `vocab_size_per_layer_input` is a size, not a number of layers
_SIZES = (
    "hidden_size",
    "hidden_dim",
    "intermediate_size",
    "vocab_size",
    "d_model",
    "d_ff",
    "n_embd",
    "n_inner",
)
_WIDTHS = ("hidden_size", "d_model", "n_embd")
_HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head")
# each with a part of the names of the tensors that need it: Mamba has 0 heads and no attention
_GGUF_SIZES = {
    "embedding_length": "",
    "vocab_size": "",
    "feed_forward_length": "ffn",
    "attention.head_count": "attn",
    "attention.head_count_kv": "attn",
}
# parts of names of weights that no hidden state depends on, which many files leave out
_WITHOUT_EFFECT = ("pooler", "mask_token", "masked_spec_embed")


@contextmanager
def running(path: Path, what: str = "loaded") -> Iterator[None]:
    """Convert any exception of a library into an InputError that names the model."""
    try:
        yield
    except IsoscopeError:
        raise
    except Exception as error:
        raise InputError(f"the model in {path} cannot be {what}: {reason(error)}") from error


def check_model(path: Path) -> None:
    """Raise FileError if a setting has a wrong type, or a size that does not match the weights."""
    with reading(path):
        if path.is_file():
            _check_gguf(path)
            return
        for name, check in _CHECKS.items():
            if (file := path / name).is_file():
                check(read_json(file))
        _check_code(path / "config.json")
        inner = [path / module / "config.json" for module in _modules(path) if module != Path()]
        for config in filter(Path.is_file, inner):
            _check_module(read_json(config))
        for vocabulary in ("tokenizer.json", "vocab.json"):
            if (file := path / vocabulary).is_file():
                read_json(file, max_bytes=_MAX_VOCABULARY_BYTES).mapping()
        for config in filter(Path.is_file, (path / "config.json", *inner)):
            settings = read_json(config)
            _check_not_zero(settings)
            if shapes := _weights(config.parent):
                _check_sizes(settings, shapes)


def check_weights(path: Path, whole: Any, part: Any, report: Mapping[str, Any]) -> None:
    """Raise FileError if weights of the part that is used are missing or have another shape.

    transformers would give them random values.
    """
    for name, in_file, in_model in sorted(report["mismatched_keys"]):
        raise FileError(
            f"{path} has weights {name} of shape {tuple(in_file)}",
            wanted=f"{tuple(in_model)}, as in its configuration",
        )
    own = {id(weight) for weight in part.parameters()}
    used = [name for name, weight in whole.named_parameters() if id(weight) in own]
    missing = [
        name for name in used if name in report["missing_keys"] and not any(map(name.count, _WITHOUT_EFFECT))
    ]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise FileError(
            f"{path} has no weights for {missing[0]}{others}, which would be random",
            wanted="a file with all weights of its configuration",
        )


def modules_of(listing: Field) -> list[Path]:
    """Return the folders that modules.json names; raise FileError if one is outside the model's folder."""
    folders = []
    for entry in listing.entries(at_least=1):
        if (kind := entry.get("type")) is not None:
            kind.text()
        folder = Path(entry["path"].text())
        if folder.is_absolute() or ".." in folder.parts or "\0" in str(folder):
            entry["path"].refuse("a folder within the model's")
        folders.append(folder)
    return folders


def _modules(path: Path) -> list[Path]:
    listing = path / "modules.json"
    return modules_of(read_json(listing)) if listing.is_file() else []


def _check_code(config: Path) -> None:
    """Raise InputError if a model needs code that comes with it: transformers has no model of its type."""
    if not config.is_file():
        return
    settings = read_json(config)
    kind = settings.get("model_type")
    if settings.get("auto_map") is None or kind is None:
        return
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    if kind.text() not in CONFIG_MAPPING_NAMES:
        raise InputError(
            f"the model in {config.parent} needs code of its own for {kind.text()!r}",
            wanted="a model that transformers has code for, since code that comes with a model is never run",
            hint="load it yourself, and pass the loaded model",
        )


def _weights(folder: Path) -> dict[str, tuple[int, ...]]:
    from safetensors import safe_open

    shapes: dict[str, tuple[int, ...]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with reading(path), safe_open(str(path), framework="pt") as file:
            shapes |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return shapes


def _check_not_zero(config: Field) -> None:
    """Raise FileError if a width, vocabulary or number of heads is 0, at any level of nesting."""
    for name, field in config.mapping().items():
        if isinstance(field.value, dict):
            _check_not_zero(field)
        elif name in (*_SIZES, *_HEADS) and _is_number(field.value):
            field.whole(at_least=1)


def _check_sizes(config: Field, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Compare the sizes in a model's settings with the shapes of its weights, at any level of nesting."""
    lengths = {length for shape in shapes.values() for length in shape}
    widest = max(*lengths, _LEAST_SIZE)
    for name, field in config.mapping().items():
        is_counted = any(word in name for word in _COUNTED)
        is_size = name in _SIZES or (is_counted and any(word in name for word in _MEASURED))
        if isinstance(field.value, dict):
            _check_sizes(field, shapes)
        elif _is_number(field.value) and is_counted and not is_size:
            field.number(at_most=max(len(shapes), _LEAST_SIZE))
        elif field.value is not None and is_size and not isinstance(field.value, list):
            field.whole(at_least=0, at_most=widest)
            if name in _WIDTHS and field.value not in lengths:
                field.refuse("a length in the shape of a weight")
        elif _is_number(field.value) and "heads" in name:
            field.number(at_most=widest)


def _check_gguf(path: Path) -> None:
    header = read_gguf_header(path)
    architecture = header.fields.get("general.architecture")
    if architecture is None or not header.shapes:
        raise FileError(f"{path} has no architecture or no tensors in its header")
    widest = max(length for shape in header.shapes.values() for length in shape)
    prefix = f"{architecture.text()}."
    for name, field in header.fields.items():
        key = name.removeprefix(prefix)
        if isinstance(field.value, list) or not name.startswith(prefix):
            continue
        if key == "block_count":
            field.whole(at_least=1, at_most=len(header.shapes))
        elif key in _GGUF_SIZES:
            is_used = any(_GGUF_SIZES[key] in tensor for tensor in header.shapes)
            field.whole(at_least=int(is_used), at_most=widest)


def _check_prompts(settings: Field) -> None:
    _optional(settings, "prompts", lambda prompts: [prompt.text() for prompt in prompts.mapping().values()])
    for name in ("default_prompt_name", "similarity_fn_name"):
        _optional(settings, name, Field.text)


def _check_sentences(settings: Field) -> None:
    _optional(settings, "max_seq_length", lambda length: length.whole(at_least=1, at_most=2**31 - 1))
    _optional(settings, "do_lower_case", Field.flag)
    _optional(settings, "modality_config", _check_modalities)


def _check_modalities(modalities: Field) -> None:
    for modality in modalities.mapping().values():
        method = modality["method"].text()
        if method != "forward" and not method.startswith("get_"):  # the library calls this method
            modality["method"].refuse("forward, or begin with get_")


def _check_module(settings: Field) -> None:
    for name, field in settings.mapping().items():
        if name.startswith("pooling_mode_"):
            field.flag()
        elif name in ("word_embedding_dimension", "in_features", "out_features"):
            field.whole(at_least=1, at_most=2**24)


def _check_tokenizer(settings: Field) -> None:
    _optional(settings, "model_max_length", lambda length: length.number(at_least=1))


def _optional(settings: Field, name: str, check: Callable[[Field], Any]) -> None:
    field = settings.get(name)
    if field is not None and field.value is not None:
        check(field)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CHECKS: dict[str, Callable[[Field], Any]] = {
    "config.json": Field.mapping,
    "config_sentence_transformers.json": _check_prompts,
    "sentence_bert_config.json": _check_sentences,
    "tokenizer_config.json": _check_tokenizer,
    "special_tokens_map.json": Field.mapping,
    "added_tokens.json": Field.mapping,
}
