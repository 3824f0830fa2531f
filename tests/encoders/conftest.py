"""A cache of its own for each test, and a model small enough to make on the spot."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

TEXTS = ["a cat sat", "the dog ran to the cat", "dog", "", "a a a a a a a a a", "the cat", "dog"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOSCOPE_CACHE", str(tmp_path / "cache"))
    # no test may reach a network, whatever the code does
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer with random weights, saved by sentence-transformers: mean, then normalised."""
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("needs sentence-transformers: the extra `text`")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "the", "cat", "dog", "sat", "ran", "to"]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=8, **marks).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=16, **sizes)).save_pretrained(folder)
    whole = tmp_path_factory.mktemp("tiny-sentences")
    modules = [Transformer(str(folder)), Pooling(16, "mean"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(whole))
    return whole
