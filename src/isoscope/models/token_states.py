"""The hidden states of every layer, kept: in memory, or memory-mapped in a folder that can be opened again.

layer-00.npy …      (n, d) float32, one file a layer, the embedding layer first
tokens.parquet      token, sentence, position, word, is_special, is_padding: one row a token
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import FileError, InputError, ShapeError
from isoscope.io.files import reading
from isoscope.io.numpy_files import map_npy
from isoscope.labels import Labels, as_labels
from isoscope.models.batches import text_batches, token_batches, usual_batch
from isoscope.models.forward import hidden_states
from isoscope.models.language_models import LanguageModel, load_language_model
from isoscope.models.pooling import pool
from isoscope.models.states import chosen_layers
from isoscope.models.tokens import TokenRows, tokenize
from isoscope.progress import Bar
from isoscope.space import Space

_TOKENS = "tokens.parquet"


@dataclass(frozen=True, eq=False)
class TokenStates:
    """The states of n tokens in some layers, and what is known of each token.

    Attributes:
        rows: the tokens: types, sentences, positions, words, which are special.
        by_layer: (n, d) float32 a layer, by the layer's number; 0 is the embedding layer.
        model: the model's name.
        notes: what a user should know, such as how many texts were cut.
    """

    rows: TokenRows
    by_layer: Mapping[int, Tensor]
    model: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def layers(self) -> list[int]:
        """The numbers of the layers kept."""
        return sorted(self.by_layer)

    @property
    def n_dims(self) -> int:
        """d, the dimensions of a state."""
        return int(next(iter(self.by_layer.values())).shape[1])

    def vectors(self, layer: int) -> Tensor:
        """(n, d) the states of a layer."""
        if layer not in self.by_layer:
            raise InputError(f"layer {layer} was not kept; there are {', '.join(map(str, self.layers))}")
        return self.by_layer[layer]

    def space(self, layer: int, *, rows: Tensor | None = None) -> Space:
        """A layer as a Space that knows its token types and sentences: all rows, or a mask or places."""
        vectors = self.vectors(layer)
        known = self.rows
        if rows is not None:
            chosen = torch.as_tensor(rows)
            if chosen.dtype == torch.bool and len(chosen) != len(self):
                raise ShapeError(f"rows is a mask of {len(chosen):,} for {len(self):,} tokens")
            known, vectors = self.rows.select(chosen), vectors[chosen.to(vectors.device)]
        return Space(
            vectors,
            token_types=known.types.seen(),
            sentences=known.sentences.seen(),
            layer=layer,
            name=f"{self.model}, layer {layer}",
        )

    def sentence_space(self, layer: int, *, pooling: str = "mean", special: bool = True) -> Space:
        """A layer with one vector a text: the mean or the maximum of its tokens, its first or its last.

        Args:
            layer: its number.
            pooling: "mean", "max", "cls" (the first token) or "lasttoken".
            special: whether special tokens count; padding never does.
        """
        counted = ~self.rows.is_padding if special else ~(self.rows.is_padding | self.rows.is_special)
        rows = self.rows.select(counted)
        if rows.sentences.seen().n_labels < self.rows.sentences.n_labels:
            left = set(self.rows.sentences.codes.tolist()) - set(rows.sentences.codes.tolist())
            raise InputError(
                f"texts[{min(left)}] has no token but special ones, so no vector without them; "
                "leave it out, or count special tokens"
            )
        vectors = self.vectors(layer)
        pooled = pool(vectors[counted.to(vectors.device)], rows.sentences.seen().codes, pooling=pooling)
        return Space(pooled, layer=layer, name=f"{self.model}, layer {layer}, {pooling}")

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, model: str = "") -> TokenStates:
        """States that `token_states(…, folder=…)` has written, memory-mapped."""
        folder = Path(folder)
        files = sorted(folder.glob("layer-*.npy"))
        if not files:
            raise FileError(f"{folder} has no layer-00.npy and others; wanted a folder of token states")
        rows = _read_rows(folder / _TOKENS)
        by_layer = {_number(file): _mapped(file) for file in files}
        for file, states in zip(files, by_layer.values(), strict=True):
            if states.ndim != 2 or len(states) != len(rows) or states.dtype != torch.float32:
                raise FileError(
                    f"{file} has {states.dtype} of shape {tuple(states.shape)} for {len(rows):,} tokens; "
                    "wanted one float32 state a token: was the run cut short?"
                )
        return cls(rows, by_layer, model or folder.name)


def token_states(
    texts: Sequence[str],
    *,
    model: str | os.PathLike[str] | LanguageModel = "all-MiniLM-L6-v2",
    layers: Iterable[int] | None = None,
    window: int | None = None,
    truncate: bool = False,
    max_tokens: int | None = None,
    padding: bool = False,
    folder: str | os.PathLike[str] | None = None,
    device: str | torch.device | None = None,
    keep_on: str | torch.device = "cpu",
    batch_tokens: int | None = None,
    progress: bool | None = None,
    download: bool = False,
) -> TokenStates:
    """The state of every token of the texts in every layer of a model.

    Args:
        texts: strings, none empty (unless they are read as one stream).
        model: a short name, folder, .gguf file or hub id (see `resolve_model`), or a loaded LanguageModel.
        layers: which to keep, 0 being the embedding layer and −1 the last; by default all.
        window: join the texts to one stream and cut it into windows of so many tokens.
        truncate: cut texts that are longer than the model takes; else they are refused.
        max_tokens: stop before the text or window that would pass so many.
        padding: also the state of one padding token behind each text that is shorter than the longest
            (a protocol of Xiao et al. 2023); it is marked in `rows.is_padding`.
        folder: write the states there, memory-mapped, for more than memory holds; else they are in memory.
        device: where the model computes; by default a CUDA device where there is one.
        keep_on: the device that states in memory are kept on.
        batch_tokens: how many tokens at a time; by default 4,096, and 32,768 on CUDA.
        progress: show a bar; by default on a terminal.
        download: fetch the model where it is not on this machine.
    """
    with Bar(show=progress) as bar:
        bar.step("loading the model", at_once=True)
        loaded = load_language_model(model, device=device, download=download)
        bar.step("tokenizing")
        tokenized = tokenize(
            texts, loaded, window=window, truncate=truncate, max_tokens=max_tokens, padding=padding
        )
        chosen = chosen_layers(layers, loaded.n_layers)
        kept = _room(chosen, (len(tokenized.ids), loaded.n_dims), folder, keep_on)
        bar.step(f"{len(tokenized.ids):,} tokens through {loaded.name}")
        n_done = 0
        at_once = usual_batch(loaded.device) if batch_tokens is None else batch_tokens
        for found in hidden_states(loaded, token_batches(tokenized, text_batches(tokenized, at_once))):
            rows = found.batch.rows
            assert rows is not None
            for layer in chosen:
                kept[layer][rows] = found.rows(layer).to(kept[layer].device)
            n_done += len(rows)
            bar.share(n_done / len(tokenized.ids))
    if folder is not None:
        _write_rows(tokenized.rows, Path(folder) / _TOKENS)
    return TokenStates(tokenized.rows, kept, loaded.name, tokenized.notes)


def _room(
    layers: list[int],
    shape: tuple[int, int],
    folder: str | os.PathLike[str] | None,
    device: str | torch.device,
) -> dict[int, Tensor]:
    """Where the states go: zeros in memory, or files of their size."""
    if folder is None:
        return {layer: torch.zeros(shape, device=device) for layer in layers}
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for old in (place / _TOKENS, *place.glob("layer-*.npy")):  # states of other texts would be mixed in
            old.unlink(missing_ok=True)
        return {layer: _new_file(place / f"layer-{layer:02}.npy", shape) for layer in layers}
    except OSError as error:
        raise FileError(
            f"{place} cannot be written: {error.strerror or error}; "
            f"the states take {4 * shape[0] * shape[1] * len(layers) / 2**20:,.0f} MB"
        ) from error


def _new_file(path: Path, shape: tuple[int, int]) -> Tensor:
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    return torch.from_numpy(mapped)


def _number(path: Path) -> int:
    number = path.stem.removeprefix("layer-")
    if not number.isdecimal():
        raise FileError(f"{path} is no layer by a number; wanted layer-00.npy and others")
    return int(number)


def _mapped(path: Path) -> Tensor:
    with reading(path), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a read-only map as a tensor: nothing here writes to it
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
        found = {name: table.column(name).to_numpy() for name in table.column_names}
        sentences = torch.from_numpy(found["sentence"].copy())
        return TokenRows(
            types=as_labels(found["token"].astype(str), name="token"),
            sentences=Labels(sentences, tuple(range(int(sentences.max()) + 1))),
            positions=torch.from_numpy(found["position"].copy()),
            is_special=torch.from_numpy(found["is_special"].copy()),
            is_padding=torch.from_numpy(found["is_padding"].copy()),
            words=torch.from_numpy(found["word"].copy()),
        )
