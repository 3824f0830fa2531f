"""The hidden states of every layer, stored in memory or in the memory-mapped files of a folder.

layer-00.npy …      (n, d) float32, one file for each layer, the embedding layer first
tokens.parquet      token, sentence, position, word, is_special, is_padding: one row for each token
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import FileError, InputError, Setting, ShapeError
from isoscope.io.files import reading
from isoscope.io.numpy_files import map_npy
from isoscope.labels import Labels, as_labels
from isoscope.models.language_models import LanguageModel, load_language_model
from isoscope.models.pooling import pool
from isoscope.models.states import States
from isoscope.models.tokens import TokenRows
from isoscope.progress import Bar
from isoscope.space import Space

_TOKENS = "tokens.parquet"


@dataclass(frozen=True, eq=False)
class TokenStates:
    """The states of n tokens in some layers, and the type, text and position of each token.

    Attributes:
        rows: the columns of the tokens: types, sentences, positions, words, is_special, is_padding.
        by_layer: (n, d) float32 for each layer, by its number; 0 is the embedding layer.
        model: the model's name.
        notes: remarks for the user, such as how many texts were truncated.
    """

    rows: TokenRows
    by_layer: Mapping[int, Tensor]
    model: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def layers(self) -> list[int]:
        """The numbers of the layers, in ascending order."""
        return sorted(self.by_layer)

    @property
    def n_dims(self) -> int:
        """The number of dimensions of a state."""
        return int(next(iter(self.by_layer.values())).shape[1])

    def vectors(self, layer: int) -> Tensor:
        """Return the (n, d) states of a layer."""
        if layer not in self.by_layer:
            names = ", ".join(map(str, self.layers))
            raise InputError(argument="layer", got=layer, wanted=f"one of the layers stored: {names}")
        return self.by_layer[layer]

    def space(self, layer: int, *, rows: Tensor | None = None) -> Space:
        """Return a layer as a Space with token types and sentences.

        Args:
            layer: its number.
            rows: a mask or the positions of the tokens to take; by default all.
        """
        vectors = self.vectors(layer)
        tokens = self.rows
        if rows is not None:
            chosen = torch.as_tensor(rows)
            if chosen.dtype == torch.bool and len(chosen) != len(self):
                raise ShapeError(f"has {len(chosen):,} entries for {len(self):,} tokens", argument="rows")
            tokens, vectors = self.rows.select(chosen), vectors[chosen.to(vectors.device)]
        return Space(
            vectors,
            token_types=tokens.types.seen(),
            sentences=tokens.sentences.seen(),
            layer=layer,
            name=f"{self.model}, layer {layer}",
        )

    def sentence_space(self, layer: int, *, pooling: str = "mean", special: bool = True) -> Space:
        """Return a layer as a Space with one vector for each text.

        Args:
            layer: its number.
            pooling: "mean", "max", "cls" (the first token) or "lasttoken".
            special: whether special tokens are counted; padding never is.
        """
        counted = ~self.rows.is_padding if special else ~(self.rows.is_padding | self.rows.is_special)
        rows = self.rows.select(counted)
        if rows.sentences.seen().n_labels < self.rows.sentences.n_labels:
            missing = set(self.rows.sentences.codes.tolist()) - set(rows.sentences.codes.tolist())
            raise InputError(
                f"texts[{min(missing)}] has only special tokens, so it has no vector without them",
                hint=["leave the text out", Setting("special", True, to="count special tokens")],
            )
        vectors = self.vectors(layer)
        pooled = pool(vectors[counted.to(vectors.device)], rows.sentences.seen().codes, pooling=pooling)
        return Space(pooled, layer=layer, name=f"{self.model}, layer {layer}, {pooling}")

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, model: str = "") -> TokenStates:
        """Open the states that `token_states(…, folder=…)` has written, memory-mapped."""
        folder = Path(folder)
        files = sorted(folder.glob("layer-*.npy"))
        if not files:
            raise FileError(f"{folder} has no file layer-*.npy", wanted="a folder of token states")
        rows = _read_rows(folder / _TOKENS)
        by_layer = {_number(file): _mapped(file) for file in files}
        for file, states in zip(files, by_layer.values(), strict=True):
            if states.ndim != 2 or len(states) != len(rows) or states.dtype != torch.float32:
                raise FileError(
                    f"{file} has {states.dtype} of shape {tuple(states.shape)} for {len(rows):,} tokens",
                    wanted="one float32 state for each token",
                    hint="write the folder again, in case the run was interrupted",
                )
        return cls(rows, by_layer, model or folder.name)


def token_states(
    texts: Sequence[str],
    *,
    model: str | os.PathLike[str] | LanguageModel = "all-MiniLM-L6-v2",
    folder: str | os.PathLike[str] | None = None,
    device: str | torch.device | None = None,
    keep_on: str | torch.device = "cpu",
    progress: bool | None = None,
    download: bool = False,
    **reading: Any,
) -> TokenStates:
    """Return the state of every token of the texts in every layer of a model.

    Args:
        texts: strings, none of them empty unless `window` is given.
        model: a short name, folder, .gguf file or hub id (see `resolve_model`), or a loaded LanguageModel.
        folder: write the states to memory-mapped files in this folder; by default they are in memory.
        device: the device to run the model on; by default a CUDA device if there is one.
        keep_on: the device for states in memory.
        progress: show a progress bar; by default on a terminal.
        download: download the model if it is not on this machine.
        **reading: how the texts are read, as in `States`: layers, window, truncate, max_tokens, padding and
            batch_tokens.
    """
    with Bar(show=progress) as bar:
        bar.step("loading the model", at_once=True)
        loaded = load_language_model(model, device=device, download=download)
        bar.step("tokenizing")
        states = States(texts, model=loaded, **reading)
        tokens, n_tokens = states.tokenized.rows, len(states.tokenized.ids)
        by_layer = _allocated(states.layers, (n_tokens, loaded.n_dims), folder, keep_on)
        bar.step(f"{n_tokens:,} tokens through {loaded.name}")
        n_done = 0
        for batch in states.forward():
            rows = batch.batch.rows
            assert rows is not None
            for layer, stored in by_layer.items():
                stored[rows] = batch.rows(layer).to(stored.device)
            n_done += len(rows)
            bar.share(n_done / n_tokens)
    if folder is not None:
        _write_rows(tokens, Path(folder) / _TOKENS)
    return TokenStates(tokens, by_layer, loaded.name, tuple(states.notes))


def _allocated(
    layers: list[int],
    shape: tuple[int, int],
    folder: str | os.PathLike[str] | None,
    device: str | torch.device,
) -> dict[int, Tensor]:
    """Return a tensor of zeros for each layer, in memory or in a memory-mapped file."""
    if folder is None:
        return {layer: torch.zeros(shape, device=device) for layer in layers}
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for old in (target / _TOKENS, *target.glob("layer-*.npy")):  # the states of other texts
            old.unlink(missing_ok=True)
        return {
            layer: torch.from_numpy(
                np.lib.format.open_memmap(
                    target / f"layer-{layer:02}.npy", mode="w+", dtype=np.float32, shape=shape
                )
            )
            for layer in layers
        }
    except OSError as error:
        raise FileError(
            f"{target} cannot be written: {error.strerror or error}",
            hint=f"free {4 * shape[0] * shape[1] * len(layers) / 2**20:,.0f} MB for the states",
        ) from error


def _number(path: Path) -> int:
    number = path.stem.removeprefix("layer-")
    if not number.isdecimal():
        raise FileError(f"{path} has no layer number in its name", wanted="a name such as layer-00.npy")
    return int(number)


def _mapped(path: Path) -> Tensor:
    with reading(path), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch warns of a read-only array; nothing writes to it
        return torch.from_numpy(map_npy(path))


def _write_rows(rows: TokenRows, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.array(rows.types.names)
    columns = {
        "token": names.take(pa.array(rows.types.codes.numpy())),
        "sentence": pa.array(rows.sentences.codes.numpy()),
        "position": pa.array(rows.positions.numpy()),
        "word": pa.array(rows.words.numpy()),
        "is_special": pa.array(rows.is_special.numpy()),
        "is_padding": pa.array(rows.is_padding.numpy()),
    }
    try:
        pq.write_table(pa.table(columns), path, write_page_checksum=True)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error


def _read_rows(path: Path) -> TokenRows:
    import pyarrow.parquet as pq

    with reading(path):
        table = pq.read_table(path)
        columns = {name: table.column(name).to_numpy() for name in table.column_names}
        sentences = torch.from_numpy(columns["sentence"].copy())
        return TokenRows(
            types=as_labels(columns["token"].astype(str), name="token"),
            sentences=Labels(sentences, tuple(range(int(sentences.max()) + 1))),
            positions=torch.from_numpy(columns["position"].copy()),
            is_special=torch.from_numpy(columns["is_special"].copy()),
            is_padding=torch.from_numpy(columns["is_padding"].copy()),
            words=torch.from_numpy(columns["word"].copy()),
        )
