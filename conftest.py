from __future__ import annotations

import importlib.util
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "isoscope", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("isoscope")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="run every test once, with its first parameters, and leave out tests marked slow or nightly",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let pytest-randomly choose the order of tests and nothing else: random numbers are seeded below."""
    config.option.randomly_reset_seed = False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out of `--quick` what takes seconds to import."""
    return True if config.getoption("quick") and collection_path.name == "test_lightning.py" else None


@pytest.hookimpl(tryfirst=True)  # before pytest-randomly shuffles: the first parameters are always the same
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of `--quick`: one for each function."""
    if not config.getoption("quick"):
        return
    functions: set[str] = set()
    chosen, others = [], []
    for item in items:
        function = item.nodeid.partition("[")[0]
        slow = item.get_closest_marker("slow") or item.get_closest_marker("nightly")
        (others if slow or function in functions else chosen).append(item)
        if not slow:
            functions.add(function)
    items[:] = chosen
    config.hook.pytest_deselected(items=others)


def _process_state() -> dict[str, Any]:
    """Settings of the whole process that would reach the tests that come after."""
    return {
        "threads": torch.get_num_threads(),
        "default type": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "float32 products": torch.get_float32_matmul_precision(),
        "TF32": torch.backends.cuda.matmul.allow_tf32,
        "working folder": os.getcwd(),
        "Ctrl-C": signal.getsignal(signal.SIGINT),
        "NumPy errors": np.geterr(),
        **{f"${name}": value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
    }


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Each test starts from the same random state, and leaves the process as it was."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    before = _process_state()
    yield
    after = _process_state()
    # a library may set variables of its own when it is first used
    changed = {name: after.get(name) for name in before if before[name] != after.get(name)}
    assert not changed, "settings of the process were left changed"


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    """Set torch's number of threads until the test ends."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def interpret(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Run a file of tests under Triton's interpreter, which is chosen when Triton is imported."""
    tier = request.config.getoption("markexpr")

    def run(file: str) -> str:
        options = ["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore", "-m", tier]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, file],
            env=os.environ | {"TRITON_INTERPRET": "1"},
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:]
        return done.stdout

    return run


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


WORDS = ["a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat", "boom"]


def _word_tokenizer(words: list[str], around: bool) -> Any:
    """Words are tokens; unknown ones are [UNK]; [CLS] and [SEP] around each text where asked for."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if around:
        tokenizer.post_processor = processors.BertProcessing(
            ("[SEP]", words.index("[SEP]")), ("[CLS]", words.index("[CLS]"))
        )
    return tokenizer


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with random weights and its tokenizer; takes 24 tokens."""
    transformers = pytest.importorskip("transformers", reason="needs the extra `text`")
    folder = tmp_path_factory.mktemp("tiny-bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=_word_tokenizer(words, around=True), model_max_length=24, **marks
    ).save_pretrained(folder)
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=24, **sizes)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 of three layers without padding or special tokens; position 0 and "boom" are sinks."""
    transformers = pytest.importorskip("transformers", reason="needs the extra `text`")
    folder = tmp_path_factory.mktemp("tiny-gpt")
    words = ["[UNK]", *WORDS]
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=_word_tokenizer(words, around=False), unk_token="[UNK]"
    ).save_pretrained(folder)
    torch.manual_seed(2)
    model = transformers.GPT2Model(
        transformers.GPT2Config(vocab_size=len(words), n_positions=64, n_embd=16, n_layer=3, n_head=2)
    )
    with torch.no_grad():
        model.wpe.weight[0] *= 3000
        model.wte.weight[words.index("boom")] *= 3000
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """Ctrl-C as in the foreground, however the tests were started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def fail(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command that must fail: the one line on standard error, and exit code 2."""

    from isoscope.cli import main

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["isoscope", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("isoscope: error: ")
        assert err.count("\n") == 1
        return err

    return run
