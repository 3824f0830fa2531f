"""Training a model on a CUDA device against the same on the CPU.

Also a script, for a machine without pytest: `PYTHONPATH=src python tests/training/test_encoder_cuda.py`.
With `--cpu` it runs there, to see that the script itself is sound.
"""

from __future__ import annotations

import contextlib
import math
import random
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import isoscope as iso
from isoscope.errors import NotFiniteError

with contextlib.suppress(ImportError):  # a machine with a device may have no pytest
    import pytest

    pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

DEVICE = "cpu" if "--cpu" in sys.argv else "cuda"
WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")
SOURCE = random.Random(0)
TEXTS = [" ".join(SOURCE.choices(WORDS, k=SOURCE.randint(3, 9))) for _ in range(80)]
LABELS = ["cat" if "cat" in text else "none" for text in TEXTS]
QUICK: dict[str, Any] = {"batch_size": 8, "learning_rate": 1e-3, "progress": False}


def tiny_model(folder: Path) -> Path:
    """A BERT of two layers without dropout, and a tokenizer of words."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=24, **marks
    ).save_pretrained(folder)
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    steady = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=24, **sizes, **steady)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def test_losses_are_those_of_the_cpu() -> None:
    with TemporaryDirectory() as folder:
        model = tiny_model(Path(folder))
        for penalty in (None, "istar", "istar-debiased", "cosreg"):
            options = QUICK | {"regularizer": penalty, "epochs": 2, "probe": TEXTS[:20], "every": 4}
            here, there = (iso.finetune(model, TEXTS, LABELS, device=d, **options) for d in ("cpu", DEVICE))
            np.testing.assert_allclose(there.loss, here.loss, rtol=2e-3)
            np.testing.assert_allclose(there.isoscore_star, here.isoscore_star, rtol=2e-2)
            np.testing.assert_allclose(
                there.trajectory["mean_cosine"], here.trajectory["mean_cosine"], rtol=2e-2
            )
        pairs = list(zip(TEXTS[:40], TEXTS[40:], strict=True))
        for pooling in ("mean", "cls", "max", "lasttoken"):
            options = QUICK | {"pooling": pooling, "epochs": 2}
            here, there = (iso.contrast(model, pairs, device=d, **options) for d in ("cpu", DEVICE))
            np.testing.assert_allclose(there.loss, here.loss, rtol=2e-3)


def test_half_precision() -> None:
    with TemporaryDirectory() as folder:
        model = tiny_model(Path(folder))
        options = QUICK | {"regularizer": "istar", "epochs": 2, "device": DEVICE}
        wide, half = (iso.finetune(model, TEXTS, LABELS, precision=p, **options) for p in ("float32", "bf16"))
        assert np.isfinite(half.loss).all()
        assert half.loss[0] != wide.loss[0]
        np.testing.assert_allclose(half.loss[0], wide.loss[0], rtol=0.05)


def test_a_loss_that_is_not_finite_is_named_by_its_step() -> None:
    """Losses wait on the device: the message must name the first that was bad, not the one that noticed."""
    calls = 0

    def trouble(states: Any, mask: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return states[-1].square().mean() * (math.nan if calls == 6 else 1.0)

    with TemporaryDirectory() as folder, TemporaryDirectory() as run:
        model = tiny_model(Path(folder))
        options = QUICK | {"epochs": 3, "save_every": 4, "device": DEVICE}
        said = ""
        try:
            iso.finetune(model, TEXTS, LABELS, regularizer=trouble, run=Path(run) / "run", **options)
        except NotFiniteError as error:
            said = str(error)
        assert "nan at step 6" in said, said
        assert "checkpoint of step 4 is kept" in said, said


def test_a_run_cut_short_goes_on() -> None:
    calls = 0

    def interrupt(states: Any, mask: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 7:
            raise MemoryError  # anything that ends the process
        return states[-1].square().mean()

    with TemporaryDirectory() as folder, TemporaryDirectory() as run:
        model = tiny_model(Path(folder))
        options = QUICK | {"epochs": 2, "save_every": 2, "device": DEVICE, "regularizer": interrupt}
        with contextlib.suppress(MemoryError):
            iso.finetune(model, TEXTS, LABELS, run=Path(run) / "run", **options)
        resumed = iso.finetune(model, TEXTS, LABELS, run=Path(run) / "run", resume=True, **options)
        whole = iso.finetune(model, TEXTS, LABELS, **options)
        np.testing.assert_allclose(resumed.loss, whole.loss, rtol=1e-5)
        exact = resumed.loss.tolist() == whole.loss.tolist()
        print(f"resumed to the same losses{', to the last bit' if exact else ' up to rounding'}")


if __name__ == "__main__":
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            try:
                test()
                print("passed", name, flush=True)
            except Exception:
                failed += 1
                print("FAILED", name, flush=True)
                traceback.print_exc()
    sys.exit(bool(failed))
