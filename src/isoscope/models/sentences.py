"""Texts to vectors, one a text, through sentence-transformers."""

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

from isoscope.errors import InputError
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
_COUNT_ROWS = 1024  # texts tokenised at a time to see which are too long
_KEEP_ROWS = 8192  # vectors are kept as they come, so that a long run that is stopped has not run for nothing


def encode(
    texts: Sequence[str],
    *,
    model: str | os.PathLike[str] = "all-MiniLM-L6-v2",
    batch_size: int = 64,
    device: str | torch.device | None = None,
    pooling: str | None = None,
    normalize: bool | None = None,
    cache: bool = True,
    progress: bool | None = None,
    download: bool = False,
) -> Tensor:
    """One vector for each text: (n, d) float32, in the order of the texts, on the CPU.

    The same as `SentenceTransformer(model).encode(texts)` to 1e-6, and faster: each distinct text is
    encoded once, texts of the same number of tokens together, and none that an earlier call has seen.
    Texts beyond the model's length are cut, as the model says.

    Args:
        texts: strings; an empty one has a vector too.
        model: a short name, a folder, or an id on Hugging Face's hub; see `resolve_model`.
        batch_size: how many texts at a time.
        device: where to compute; by default a CUDA device where there is one.
        pooling: tokens to one vector by `mean`, `cls`, `max`, …; by default as the model says.
        normalize: vectors of length 1, or as they are pooled; by default as the model says.
        cache: keep the vectors on disk, and take those kept before.
        progress: show a bar; by default on a terminal.
        download: fetch the model where it is not on this machine. Nothing is fetched otherwise.

    Only safetensors are read as weights, and no code that comes with a model is ever run.
    """
    texts = checked(texts, batch_size, pooling)
    encoding = Encoding(
        resolve_model(model, download=download), batch_size=batch_size, device=device, pooling=pooling,
        normalize=normalize, progress=progress,
    )  # fmt: skip
    return encoding.vectors(texts, cache=cache)


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """A model in a folder, loaded when it is first needed, and how texts go through it."""

    folder: Path = field(kw_only=False)
    batch_size: int
    device: str | torch.device | None
    pooling: str | None
    normalize: bool | None
    progress: bool | None

    @cached_property
    def encoder(self) -> SentenceTransformer:
        """The model, loaded."""
        return load_encoder(self.folder, device=self.device, pooling=self.pooling, normalize=self.normalize)

    @property
    def store(self) -> VectorStore:
        """Where vectors are kept: by all that they depend on; the device moves only their last digits."""
        versions = {name: package_version(name) for name in ("sentence-transformers", "transformers")}
        return VectorStore.of(self.folder, pooling=self.pooling, normalize=self.normalize, **versions)

    def vectors(self, texts: Sequence[str], *, cache: bool = True) -> Tensor:
        """Return one vector a text, (n, d); with `cache`, kept on disk and taken from there."""
        with running(self.folder, "run"):
            return _remembered(self.store if cache else None, texts, self._encoded)

    def limits(self, texts: Sequence[str]) -> list[int]:
        """Return for each text that is longer than the model takes what it takes, in tokens; for others 0.

        Kept on disk as vectors are, so that texts seen before need no tokenizer, and no model.
        """
        with running(self.folder, "run"):
            store = VectorStore.of(
                self.folder, what="longer than this", transformers=package_version("transformers")
            )
            return [int(limit) for limit in _remembered(store, texts, self._overlong)]

    def _encoded(self, texts: list[str]) -> Iterator[tuple[list[str], Tensor]]:
        encoder = self.encoder
        with Bar(show=self.progress) as bar:
            bar.step(f"encoding {len(texts):,} texts")
            yield from _chunks(encoder, texts, self.batch_size, bar)

    def _overlong(self, texts: list[str]) -> Iterator[tuple[list[str], Tensor]]:
        tokenizer: Any = getattr(self.encoder, "tokenizer", None)
        limit = self.encoder.max_seq_length
        for start in range(0, len(texts), _COUNT_ROWS):
            some = texts[start : start + _COUNT_ROWS]
            found = torch.zeros(len(some), 1)
            if callable(tokenizer) and limit and limit < UNLIMITED:
                tokens = tokenizer(some, truncation=False, return_attention_mask=False, verbose=False)
                found[[len(ids) > limit for ids in tokens["input_ids"]]] = limit
            yield some, found


def _remembered(
    store: VectorStore | None,
    texts: Sequence[str],
    compute: Callable[[list[str]], Iterator[tuple[list[str], Tensor]]],
) -> Tensor:
    """Return a row a text: those that the store has, and the rest computed, some at a time, and kept."""
    distinct = list(dict.fromkeys(texts))
    known = store.find(distinct) if store else {}
    missing = [text for text in distinct if text not in known]
    for chunk, rows in compute(missing) if missing else ():
        known.update(zip(chunk, rows, strict=True))
        if store:
            store.keep(chunk, rows)
    return torch.stack([known[text] for text in texts])


def load_encoder(
    folder: Path,
    *,
    device: str | torch.device | None = None,
    pooling: str | None = None,
    normalize: bool | None = None,
) -> SentenceTransformer:
    """The model in a folder, with its pooling and normalisation changed where asked."""
    if is_onnx(folder):
        return OnnxEncoder(folder, pooling=pooling, normalize=normalize)
    if importlib.util.find_spec("sentence_transformers") is None:
        raise InputError(
            "encoding texts needs sentence-transformers, which is not installed",
            hint="pip install 'isoscope[text]'",
        )
    where = str(best_device(device))
    if is_gguf(folder):
        need_gguf(folder)
    check_model(folder)
    with quiet_loading(), running(folder):
        encoder = _from_gguf(folder, where) if is_gguf(folder) else _from_folder(folder, where)
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
    """A model without a pooling of its own: the mean of its last states, as for any plain folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    named = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    transformer = Transformer(
        str(file.parent),
        model_kwargs={"dtype": torch.float32, **named},
        processor_kwargs=named,
        config_kwargs=named,
        # texts as they are: a chat model's template would put its greeting around each
        modality_config={"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
        module_output_name="token_embeddings",
    )
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    return SentenceTransformer(modules=[transformer, pooling], device=device)


def checked(texts: Sequence[str], batch_size: int, pooling: str | None) -> list[str]:
    """The texts as a list, if they can be encoded so."""
    texts = checked_texts(texts)
    if batch_size < 1:
        raise InputError(argument="batch_size", got=batch_size, wanted="at least one text a batch")
    if pooling is not None and pooling not in POOLINGS:
        raise InputError(argument="pooling", got=pooling, wanted=f"one of {', '.join(POOLINGS)}")
    return texts


def package_version(package: str) -> str:
    """The version of an installed package, or "none"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _chunks(
    encoder: SentenceTransformer, texts: list[str], batch_size: int, bar: Bar
) -> Iterator[tuple[list[str], Tensor]]:
    """Texts with their vectors, some thousands at a time, the longest first."""
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
        if len(chunk) >= _KEEP_ROWS:
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
    """How many tokens each text has, at least 1: texts of one length make batches without padding."""
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
        at = [i for i, module in enumerate(encoder) if isinstance(module, Pooling)]
        if len(at) != 1:
            raise InputError(
                f"is {pooling!r}, but the model does not pool its tokens once: leave it out",
                argument="pooling",
            )
        encoder[at[0]] = Pooling(encoder[at[0]].embedding_dimension, pooling)
    if normalize is not None:
        for i in reversed([i for i, module in enumerate(encoder) if isinstance(module, Normalize)]):
            del encoder[i]
        if normalize:
            encoder.append(Normalize())
    return encoder
