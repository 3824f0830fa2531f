"""Small models with random weights, in every layout that isoscope loads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.vector_seeds import WORDS, has

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_models(folder: Path) -> None:
    """`sentences`, `bert`, `gpt`, `static` and `onnx` as folders, `llama.gguf` as a file, where libraries allow."""
    folder.mkdir()
    if not has("transformers", "tokenizers"):
        return
    _write_bert(folder / "bert")
    _write_gpt(folder / "gpt")
    if has("sentence_transformers"):
        _write_sentences(folder / "bert", folder / "sentences")
    if has("onnxruntime"):
        _write_onnx(folder / "bert", folder / "onnx")
    if has("gguf", "accelerate"):
        _write_gguf(folder / "llama.gguf")


def _tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = [*_SPECIAL, *WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=24, **marks).save_pretrained(folder)


def _write_bert(folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    _tokenizer(folder)
    torch.manual_seed(1)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(_SPECIAL) + len(WORDS), max_position_embeddings=24, **sizes)
    BertModel(config).save_pretrained(folder)


def _write_gpt(folder: Path) -> None:
    import torch
    from transformers import GPT2Config, GPT2Model

    _tokenizer(folder)
    torch.manual_seed(2)
    vocabulary = len(_SPECIAL) + len(WORDS)
    GPT2Model(
        GPT2Config(vocab_size=vocabulary, n_positions=24, n_embd=8, n_layer=2, n_head=2)
    ).save_pretrained(folder)


def _write_sentences(bert: Path, folder: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

    modules = [Transformer(str(bert)), Pooling(8, "mean"), Dense(8, 6), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))


def _write_onnx(bert: Path, folder: Path) -> None:
    """A model that looks each token up in a table."""
    folder.mkdir()
    shutil.copyfile(bert / "tokenizer.json", folder / "tokenizer.json")
    (folder / "config.json").write_text(json.dumps({"hidden_size": 8, "max_position_embeddings": 24}))
    table = np.random.default_rng(3).normal(size=(len(_SPECIAL) + len(WORDS), 8)).astype("<f4")
    dims = b"".join(_field(1, size) for size in table.shape)
    weights = dims + _field(2, 1) + _field(8, b"table") + _field(9, table.tobytes())
    node = (
        _field(1, b"table") + _field(1, b"input_ids") + _field(2, b"last_hidden_state") + _field(4, b"Gather")
    )
    graph = _field(1, node) + _field(2, b"g") + _field(5, weights)
    for name in (b"input_ids", b"attention_mask"):
        graph += _field(11, _value(name, 7, 2))
    graph += _field(12, _value(b"last_hidden_state", 1, 3))
    model = _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))
    (folder / "model.onnx").write_bytes(model)


def _value(name: bytes, kind: int, n_axes: int) -> bytes:
    axes = b"".join(_field(1, _field(2, b"n%d" % axis)) for axis in range(n_axes))
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, axes)))


def _field(number: int, value: int | bytes) -> bytes:
    """One field of a protocol buffer."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    groups = []
    while True:
        groups.append(value & 127)
        value >>= 7
        if not value:
            return bytes(group | 128 for group in groups[:-1]) + bytes(groups[-1:])


def _write_gguf(path: Path) -> None:
    import gguf

    words = ["<unk>", "<s>", "</s>", "at", *WORDS, *(f"Ġ{word}" for word in WORDS), *"abcdefghijklmnoprstuw"]
    words = list(dict.fromkeys(words))
    writer = gguf.GGUFWriter(str(path), "llama")
    width, inner, rng = 32, 32, np.random.default_rng(4)
    numbers: dict[str, Any] = {
        "block_count": 1, "context_length": 32, "embedding_length": width, "feed_forward_length": inner,
        "head_count": 2, "head_count_kv": 2, "rope_dimension_count": width // 2, "vocab_size": len(words),
    }  # fmt: skip
    for name, value in numbers.items():
        getattr(writer, f"add_{name}")(value)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([1] * len(words))
    writer.add_token_merges(["a t", "c at"])
    writer.add_bos_token_id(1), writer.add_eos_token_id(2), writer.add_unk_token_id(0)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, rng.normal(size=shape).astype(np.float32))

    add("token_embd.weight", len(words), width)
    add("output_norm.weight", width)
    add("output.weight", len(words), width)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{name}.weight", width, width)
    for name in ("ffn_gate", "ffn_up"):
        add(f"blk.0.{name}.weight", inner, width)
    add("blk.0.ffn_down.weight", width, inner)
    add("blk.0.attn_norm.weight", width), add("blk.0.ffn_norm.weight", width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
