"""Sentence encoders in ONNX format: the mean of the last states of a text's tokens."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import FileError, InputError, not_installed
from isoscope.io.files import reason

_MAX_TOKENS = 512
_STATES = "last_hidden_state"


def is_onnx(folder: Path) -> bool:
    """Return whether a folder has an ONNX model and its tokenizer, and no safetensors weights."""
    if not folder.is_dir() or next(folder.rglob("*.safetensors"), None) is not None:
        return False
    return _model_file(folder) is not None and (folder / "tokenizer.json").is_file()


def _model_file(folder: Path) -> Path | None:
    files = sorted(folder.glob("*.onnx"))
    return files[0] if len(files) == 1 else None


class OnnxEncoder:
    """An encoder that runs on onnxruntime on the CPU, with the methods of SentenceTransformer that are used.

    Texts are encoded one at a time without padding, since some exported graphs accept nothing else.
    """

    max_seq_length = _MAX_TOKENS

    def __init__(self, folder: Path, *, pooling: str | None = None, normalize: bool | None = None) -> None:
        if importlib.util.find_spec("onnxruntime") is None:
            raise not_installed("An ONNX model", "onnxruntime", extra="onnx")
        if pooling not in (None, "mean"):
            raise InputError(argument="pooling", got=pooling, wanted="'mean' for an ONNX model")
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # must be set before the import
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            self._session = onnxruntime.InferenceSession(
                str(_model_file(folder)), options, providers=["CPUExecutionProvider"]
            )
            self._tokens = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the libraries raise many types over a damaged file
            raise FileError(f"the model in {folder} cannot be loaded: {reason(error)}") from error
        self._tokens.no_padding()
        self._tokens.enable_truncation(_MAX_TOKENS)
        self._inputs = {one.name for one in self._session.get_inputs()}
        if _STATES not in {one.name for one in self._session.get_outputs()}:
            raise FileError(f"the model in {folder} has no output {_STATES!r}")
        self._normalize = bool(normalize)

    def eval(self) -> OnnxEncoder:
        """Return the encoder itself, which has no training mode."""
        return self

    def tokenizer(self, texts: Sequence[str], **_options: Any) -> dict[str, list[list[int]]]:
        """Return the token ids of each text."""
        return {"input_ids": [one.ids for one in self._tokens.encode_batch(list(texts))]}

    def encode(self, texts: Sequence[str], **_options: Any) -> Tensor:
        """Return (n, d) float32 vectors: the mean of each text's states."""
        rows = torch.from_numpy(
            np.concatenate([self._mean(one.ids) for one in self._tokens.encode_batch(list(texts))])
        )
        return torch.nn.functional.normalize(rows, dim=1) if self._normalize else rows

    def _mean(self, tokens: list[int]) -> np.ndarray:
        ids = np.array([tokens], dtype=np.int64)
        known = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        states = self._session.run([_STATES], {name: known[name] for name in self._inputs})[0]
        return np.asarray(states, dtype=np.float32).mean(axis=1)
