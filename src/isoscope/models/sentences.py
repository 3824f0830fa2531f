"""Encode texts by sentence-transformers: one vector for each text."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isoscope.arrays import as_device
from isoscope.errors import InputError, check_choice, not_installed
from isoscope.models.cache import VectorStore
from isoscope.models.language_models import UNLIMITED, best_device, need_gguf, quiet_loading
from isoscope.models.model_files import check_model, running
from isoscope.models.onnx import OnnxEncoder, is_onnx
from isoscope.models.resolve import is_gguf, resolve_model
from isoscope.models.texts import checked_texts
from isoscope.progress import Bar

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

POOLINGS = ("mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
_COUNT_ROWS = 1024  # texts in a batch when token counts are compared with the model's maximum
_CACHE_ROWS = 8192  # vectors are cached in chunks of this size, so that an interrupted run can continue


def encode(
    texts: Any,
    *,
    text_column: str | None = None,
    model: str | os.PathLike[str] = "all-MiniLM-L6-v2",
    batch_size: int = 64,
    device: str | torch.device | None = None,
    pooling: str | None = None,
    normalize: bool | None = None,
    cache: bool = True,
    progress: bool | None = None,
    download: bool = False,
) -> Tensor:
    """Return one vector for each text: (n, d) float32 on the CPU, in the order of the texts.

    The vectors equal those of `SentenceTransformer(model).encode(texts)` to 1e-6. Each distinct text is
    encoded once, in batches of texts of similar length, and a text that was encoded before is read from the
    cache. An interrupted call continues from the cache. Texts that exceed the model's maximum length are
    truncated.

    Args:
        texts: strings; an empty string has a vector too. Also a data frame, or the path of a file of texts.
        text_column: the column of a data frame or a file that holds the texts; by default the only column of
            strings, or one called text, sentence, ….
        model: a short name, a folder, or an id on Hugging Face's hub; see `resolve_model`.
        batch_size: texts in a batch.
        device: the device to compute on; by default a CUDA device if there is one.
        pooling: how token states become one vector: `mean`, `cls`, `max`, …; by default the model's own.
        normalize: whether to scale vectors to length 1; by default as the model does.
        cache: read vectors from the cache on disk, and write new ones to it.
        progress: show a progress bar; by default on a terminal.
        download: download the model if it is not on this machine. Nothing is downloaded otherwise.

    Only safetensors, GGUF and ONNX files are read as weights. Code that comes with a model is never run.
    """
    texts = checked(texts, batch_size, pooling, column=text_column)
    encoding = Encoding(
        resolve_model(model, download=download), batch_size=batch_size, device=device, pooling=pooling,
        normalize=normalize, progress=progress,
    )  # fmt: skip
    return encoding.vectors(texts, cache=cache)


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """A model in a folder, loaded on first use, and the settings for encoding texts with it."""

    folder: Path = field(kw_only=False)
    batch_size: int
    device: str | torch.device | None
    pooling: str | None
    normalize: bool | None
    progress: bool | None

    def __post_init__(self) -> None:
        as_device(self.device)  # checked even where every vector is cached

    @cached_property
    def encoder(self) -> SentenceTransformer:
        """The loaded model."""
        return load_encoder(self.folder, device=self.device, pooling=self.pooling, normalize=self.normalize)

    @property
    def store(self) -> VectorStore:
        """The cache for vectors of this model, these settings and these versions of the libraries."""
        versions = {name: package_version(name) for name in ("sentence-transformers", "transformers")}
        return VectorStore.of(self.folder, pooling=self.pooling, normalize=self.normalize, **versions)

    def vectors(self, texts: Sequence[str], *, cache: bool = True) -> Tensor:
        """Return (n, d) vectors, one for each text, from the cache or the model."""
        with running(self.folder, "run"):
            return _cached(self.store if cache else None, texts, self._encoded)

    def limits(self, texts: Sequence[str]) -> list[int]:
        """Return for each text the model's maximum number of tokens if the text exceeds it, and 0 otherwise.

        The results are cached like vectors, so that known texts need neither the tokenizer nor the model.
        """
        with running(self.folder, "run"):
            store = VectorStore.of(
                self.folder, what="longer than this", transformers=package_version("transformers")
            )
            return [int(limit) for limit in _cached(store, texts, self._overlong)]

    def _encoded(self, texts: list[str]) -> Iterator[tuple[list[str], Tensor]]:
        encoder = self.encoder
        with Bar(show=self.progress) as bar:
            bar.step(f"encoding {len(texts):,} texts")
            yield from _chunks(encoder, texts, self.batch_size, bar)

    def _overlong(self, texts: list[str]) -> Iterator[tuple[list[str], Tensor]]:
        tokenizer: Any = getattr(self.encoder, "tokenizer", None)
        limit = self.encoder.max_seq_length
        for start in range(0, len(texts), _COUNT_ROWS):
            chunk = texts[start : start + _COUNT_ROWS]
            limits = torch.zeros(len(chunk), 1)
            if callable(tokenizer) and limit and limit < UNLIMITED:
                tokens = tokenizer(chunk, truncation=False, return_attention_mask=False, verbose=False)
                limits[[len(ids) > limit for ids in tokens["input_ids"]]] = limit
            yield chunk, limits


def _cached(
    store: VectorStore | None,
    texts: Sequence[str],
    compute: Callable[[list[str]], Iterator[tuple[list[str], Tensor]]],
) -> Tensor:
    """Return one row for each text; rows that are not in the store are computed and added to it in chunks."""
    distinct = list(dict.fromkeys(texts))
    by_text = store.find(distinct) if store else {}
    missing = [text for text in distinct if text not in by_text]
    for chunk, rows in compute(missing) if missing else ():
        by_text.update(zip(chunk, rows, strict=True))
        if store:
            store.keep(chunk, rows)
    return torch.stack([by_text[text] for text in texts])


def load_encoder(
    folder: Path,
    *,
    device: str | torch.device | None = None,
    pooling: str | None = None,
    normalize: bool | None = None,
) -> SentenceTransformer:
    """Load the model in a folder; `pooling` and `normalize` replace its own unless they are None."""
    if is_onnx(folder):
        return OnnxEncoder(folder, pooling=pooling, normalize=normalize)
    if importlib.util.find_spec("sentence_transformers") is None:
        raise not_installed("An encoder of texts", "sentence-transformers", extra="text")
    place = str(best_device(device))
    if is_gguf(folder):
        need_gguf(folder)
    check_model(folder)
    with quiet_loading(), running(folder):
        encoder = _from_gguf(folder, place) if is_gguf(folder) else _from_folder(folder, place)
        return _adapted(encoder.eval(), pooling, normalize)


def _from_folder(folder: Path, device: str) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(
        str(folder),
        device=device,
        trust_remote_code=False,
        local_files_only=True,
        model_kwargs={"use_safetensors": True, "dtype": torch.float32},
    )


def _from_gguf(file: Path, device: str) -> SentenceTransformer:
    """Load a GGUF file, which has no pooling of its own, with the mean of the last states."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    named = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    transformer = Transformer(
        str(file.parent),
        model_kwargs={"dtype": torch.float32, **named},
        processor_kwargs=named,
        config_kwargs=named,
        # otherwise a chat model's template would be applied to each text
        modality_config={"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
        module_output_name="token_embeddings",
    )
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    return SentenceTransformer(modules=[transformer, pooling], device=device)


def checked(texts: Any, batch_size: int, pooling: str | None, *, column: str | None = None) -> list[str]:
    """Return the texts as a list; raise InputError if an argument is not valid."""
    texts = checked_texts(texts, column=column)
    if batch_size < 1:
        raise InputError(argument="batch_size", got=batch_size, wanted="at least 1")
    if pooling is not None:
        check_choice("pooling", pooling, POOLINGS)
    return texts


def package_version(package: str) -> str:
    """Return the version of an installed package, or "none"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _chunks(
    encoder: SentenceTransformer, texts: list[str], batch_size: int, bar: Bar
) -> Iterator[tuple[list[str], Tensor]]:
    """Yield texts with their vectors in chunks, the longest texts first."""
    lengths = _token_counts(encoder, texts)
    order = sorted(range(len(texts)), key=lambda i: -lengths[i])
    n_tokens, n_done = sum(lengths), 0
    chunk: list[str] = []
    rows: list[Tensor] = []
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        chunk += [texts[i] for i in batch]
        rows.append(_batch(encoder, [texts[i] for i in batch]))
        n_done += sum(lengths[i] for i in batch)
        bar.share(n_done / n_tokens)
        if len(chunk) >= _CACHE_ROWS:
            yield chunk, torch.cat(rows)
            chunk, rows = [], []
    if chunk:
        yield chunk, torch.cat(rows)


def _batch(encoder: SentenceTransformer, texts: list[str]) -> Tensor:
    vectors: Any = encoder.encode(
        texts, batch_size=len(texts), convert_to_tensor=True, show_progress_bar=False
    )
    return torch.as_tensor(vectors).to("cpu", torch.float32)


def _token_counts(encoder: SentenceTransformer, texts: list[str]) -> list[int]:
    """Return the number of tokens of each text, at least 1."""
    tokenizer: Any = getattr(encoder, "tokenizer", None)
    if not callable(tokenizer):
        return [len(text) + 1 for text in texts]
    longest = encoder.max_seq_length or 512
    tokens = tokenizer(texts, truncation=True, max_length=longest, return_attention_mask=False)
    return [max(len(ids), 1) for ids in tokens["input_ids"]]


def _adapted(
    encoder: SentenceTransformer, pooling: str | None, normalize: bool | None
) -> SentenceTransformer:
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    if pooling is not None:
        positions = [i for i, module in enumerate(encoder) if isinstance(module, Pooling)]
        if len(positions) != 1:
            raise InputError(
                "cannot be changed for this model, which does not have exactly one pooling module",
                argument="pooling",
                hint="leave it out",
            )
        (at,) = positions
        encoder[at] = Pooling(encoder[at].embedding_dimension, pooling)
    if normalize is not None:
        for i in reversed([i for i, module in enumerate(encoder) if isinstance(module, Normalize)]):
            del encoder[i]
        if normalize:
            encoder.append(Normalize())
    return encoder
