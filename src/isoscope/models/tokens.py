"""Tokenize texts, and record the type, text, position and word of each token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import InputError, Setting, ShapeError
from isoscope.labels import Labels
from isoscope.models.language_models import LanguageModel
from isoscope.models.model_files import running
from isoscope.models.texts import checked_texts

_AS_ONE = Setting("window", to="read all texts as one stream")
_CHUNK_TEXTS = 1024  # the lists of a tokenizer take some hundred bytes for each token
_PADDING_WORD = -2  # in the column of words, until `_joined` replaces it


@dataclass(frozen=True, eq=False)
class TokenRows:
    """The columns of a table of tokens, one row for each token, on the CPU.

    Attributes:
        types: the token types; their names are the tokenizer's strings, such as "Ġthe" or "##ing".
        sentences: the text or window of each token; their names are whole numbers from 0.
        positions: (n,) int64, the position in the text, from 0.
        is_special: (n,) bool, the tokens that the tokenizer adds: [CLS], [SEP], <s>.
        is_padding: (n,) bool, the padding tokens.
        words: (n,) int64, the number of the token's word in its text; −1 for special tokens and padding.
    """

    types: Labels
    sentences: Labels
    positions: Tensor
    is_special: Tensor
    is_padding: Tensor
    words: Tensor

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def counts(self) -> Tensor:
        """(n,) int64, the number of occurrences of each token's type."""
        return self.types.counts[self.types.codes]

    def select(self, rows: Tensor) -> TokenRows:
        """Return the rows of a mask or of positions; types and sentences keep their codes."""
        return TokenRows(
            Labels(self.types.codes[rows], self.types.names),
            Labels(self.sentences.codes[rows], self.sentences.names),
            self.positions[rows],
            self.is_special[rows],
            self.is_padding[rows],
            self.words[rows],
        )


@dataclass(frozen=True, eq=False)
class Tokenized:
    """The tokens of all texts, concatenated.

    Attributes:
        ids: (n,) int64, the id of each token in the tokenizer's vocabulary.
        starts: (S + 1,) int64, text s has tokens starts[s] … starts[s + 1] − 1.
        rows: the type, text, position and word of each token.
        notes: remarks for the user, such as how many texts were truncated.
        sources: (n,) int64, what the encoder reads where `ids` are the inputs of a decoder: the same texts,
            without the token that a decoder begins with.
    """

    ids: Tensor
    starts: Tensor
    rows: TokenRows
    notes: tuple[str, ...] = ()
    sources: Tensor | None = None

    @property
    def lengths(self) -> Tensor:
        """(S,) the number of tokens of each text."""
        return self.starts.diff()


@dataclass
class _Gathered:
    """Ids, special marks and words, one array for each text."""

    ids: list[np.ndarray] = field(default_factory=list)
    special: list[np.ndarray] = field(default_factory=list)
    words: list[np.ndarray] = field(default_factory=list)

    def add(self, ids: Sequence[int], special: Sequence[int], words: np.ndarray) -> None:
        self.ids.append(np.asarray(ids, np.int64))
        self.special.append(np.asarray(special, bool))
        self.words.append(words)

    @property
    def lengths(self) -> list[int]:
        return [len(ids) for ids in self.ids]


def tokenize(
    texts: Sequence[str],
    model: LanguageModel,
    *,
    window: int | None = None,
    truncate: bool = False,
    max_tokens: int | None = None,
    padding: bool = False,
) -> Tokenized:
    """Tokenize texts, either each on its own or joined into one stream that is cut into windows.

    Args:
        texts: strings. Empty ones raise an error, or are skipped if `window` is given.
        model: the model whose tokenizer is used.
        window: join the texts into one stream and cut it into windows of this many tokens, including special
            tokens; the last window may be shorter.
        truncate: truncate texts that exceed the model's maximum length; otherwise they raise an error.
        max_tokens: stop before the text or window that would exceed this many tokens.
        padding: add one padding token to each text that is shorter than the longest.
    """
    texts = checked_texts(texts)
    if not any(text.strip() for text in texts):
        raise ShapeError("has only empty strings", argument="texts", wanted="at least one word")
    _check_sizes(model, window, max_tokens)
    with running(model.path, "run"):
        if window is None:
            gathered, notes = _each(texts, model, truncate=truncate, max_tokens=max_tokens)
        else:
            gathered, notes = _windows(texts, model, window, max_tokens=max_tokens), ()
        if padding:
            _pad_shorter(gathered, model)
        if model.decoder_start is not None:
            sources = torch.from_numpy(np.concatenate(gathered.ids))
            shifted = _shifted(gathered, model.decoder_start)
            return replace(_joined(shifted, model, padding=padding, notes=notes), sources=sources)
        return _joined(gathered, model, padding=padding, notes=notes)


def _check_sizes(model: LanguageModel, window: int | None, max_tokens: int | None) -> None:
    longest = model.max_length
    if window is not None and (window < 8 or (longest is not None and window > longest)):
        bounds = (
            f"from 8 to {longest} tokens, the maximum of {model.name}" if longest else "at least 8 tokens"
        )
        raise InputError(argument="window", got=window, wanted=bounds)
    if max_tokens is not None and max_tokens < 2:
        raise InputError(argument="max_tokens", got=max_tokens, wanted="at least 2")


def _each(
    texts: list[str], model: LanguageModel, *, truncate: bool, max_tokens: int | None
) -> tuple[_Gathered, tuple[str, ...]]:
    empty = [row for row, text in enumerate(texts) if not text.strip()]
    if empty:
        raise InputError(
            f"texts[{empty[0]}] is empty" + (f", and {len(empty) - 1:,} more" if len(empty) > 1 else ""),
            wanted="words in each text",
            hint=["leave empty texts out", _AS_ONE],
        )
    gathered, n_tokens, n_cut = _Gathered(), 0, 0
    for row, ids, special, words in _encoded(texts, model):
        if model.max_length is not None and len(ids) > model.max_length:
            ids, special, words = _cut(ids, special, words, model, row, truncate=truncate)
            n_cut += 1
        n_tokens += len(ids)
        if max_tokens is not None and n_tokens > max_tokens:
            break
        gathered.add(ids, special, words)
    if not gathered.ids:
        wanted = "at least the number of tokens of the first text"
        raise InputError(argument="max_tokens", got=max_tokens, wanted=wanted)
    if not n_cut:
        return gathered, ()
    texts_are = "1 text was" if n_cut == 1 else f"{n_cut:,} texts were"
    return gathered, (f"{texts_are} truncated to {model.max_length:,} tokens, the maximum of {model.name}",)


def _encoded(
    texts: list[str], model: LanguageModel, **options: Any
) -> Iterator[tuple[int, list[int], list[int], np.ndarray]]:
    """Yield each text's position, its token ids, the marks of special tokens, and the word of each token.

    A special token has word −1. A slow tokenizer does not report words: there, every token is a word.
    """
    for start in range(0, len(texts), _CHUNK_TEXTS):
        encoding = model.tokenizer(
            texts[start : start + _CHUNK_TEXTS], return_special_tokens_mask=True, verbose=False, **options
        )
        for i, ids in enumerate(encoding["input_ids"]):
            words = np.arange(len(ids))
            if encoding.is_fast:
                words = np.array([-1 if word is None else word for word in encoding.word_ids(i)], np.int64)
            yield start + i, ids, encoding["special_tokens_mask"][i], words


def _cut(
    ids: list[int], special: list[int], words: np.ndarray, model: LanguageModel, row: int, *, truncate: bool
) -> tuple[list[int], list[int], np.ndarray]:
    """Truncate a text to the model's maximum length, but keep the special tokens at its end."""
    longest = model.max_length
    assert longest is not None
    if not truncate:
        raise InputError(
            f"texts[{row}] has {len(ids):,} tokens, and {model.name} accepts {longest:,}",
            hint=[Setting("truncate", True, to="truncate such texts"), _AS_ONE],
        )
    n_last = _n_specials(special)[1]
    chosen = [*range(longest - n_last), *range(len(ids) - n_last, len(ids))]
    return [ids[i] for i in chosen], [special[i] for i in chosen], words[chosen]


def _n_specials(special: Sequence[int]) -> tuple[int, int]:
    """Return the number of special tokens at the beginning and at the end."""
    first = next((i for i, mark in enumerate(special) if not mark), len(special))
    last = next((i for i, mark in enumerate(reversed(special)) if not mark), 0)
    return first, last


def _windows(texts: list[str], model: LanguageModel, window: int, *, max_tokens: int | None) -> _Gathered:
    """Return the windows of one stream, each between the special tokens that surround a text."""
    around = model.tokenizer(["a"], return_special_tokens_mask=True)
    n_first, n_last = _n_specials(around["special_tokens_mask"][0])
    marks = around["input_ids"][0]
    before, after = marks[:n_first], marks[len(marks) - n_last :]
    room = window - n_first - n_last
    if max_tokens is not None and max_tokens < window:
        raise InputError(
            argument="max_tokens", got=max_tokens, wanted=f"at least one window of {window} tokens"
        )
    ids, words = _stream(texts, model, None if max_tokens is None else max_tokens // window * room)
    gathered = _Gathered()
    for start in range(0, len(ids), room):
        inner = ids[start : start + room]
        special = [1] * n_first + [0] * len(inner) + [1] * n_last
        outer = np.full(len(special), -1, np.int64)
        outer[n_first : n_first + len(inner)] = words[start : start + room]
        gathered.add([*before, *inner, *after], special, outer)
    return gathered


def _stream(texts: list[str], model: LanguageModel, max_tokens: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens of all texts, at most `max_tokens`, and the number of each token's word."""
    ids: list[np.ndarray] = []
    words: list[np.ndarray] = []
    n_tokens = n_words = 0
    filled = [text for text in texts if text.strip()]
    for _, text_ids, _, text_words in _encoded(filled, model, add_special_tokens=False):
        ids.append(np.asarray(text_ids, np.int64))
        words.append(text_words + n_words)
        n_tokens += len(text_ids)
        n_words += int(text_words.max(initial=-1)) + 1
        if max_tokens is not None and n_tokens >= max_tokens:
            break
    if not n_tokens:
        raise ShapeError("has no tokens", argument="texts", wanted="at least one word")
    return np.concatenate(ids)[:max_tokens], np.concatenate(words)[:max_tokens]


def _pad_shorter(gathered: _Gathered, model: LanguageModel) -> None:
    padding = model.tokenizer.pad_token_id
    if padding is None:
        raise InputError(f"the tokenizer of {model.name} has no padding token", hint="leave padding out")
    longest = max(gathered.lengths)
    for text, ids in enumerate(gathered.ids):
        if len(ids) < longest:
            gathered.ids[text] = np.append(ids, padding)
            gathered.special[text] = np.append(gathered.special[text], False)
            gathered.words[text] = np.append(gathered.words[text], _PADDING_WORD)


def _shifted(gathered: _Gathered, start: int) -> _Gathered:
    """Return the inputs of a decoder: a first token, and every token of a text but its last."""
    shifted = _Gathered()
    for ids, special, words in zip(gathered.ids, gathered.special, gathered.words, strict=True):
        shifted.add([start, *ids[:-1]], [True, *special[:-1]], np.append(-1, words[:-1]))
    return shifted


def _joined(gathered: _Gathered, model: LanguageModel, *, padding: bool, notes: tuple[str, ...]) -> Tokenized:
    lengths = torch.tensor(gathered.lengths)
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    ids = torch.from_numpy(np.concatenate(gathered.ids))
    words = torch.from_numpy(np.concatenate(gathered.words))
    codes = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    rows = TokenRows(
        types=_types(ids, model),
        sentences=Labels(codes, tuple(range(len(lengths)))),
        positions=torch.arange(len(ids)) - starts[codes],
        is_special=torch.from_numpy(np.concatenate(gathered.special)),
        is_padding=words == _PADDING_WORD if padding else torch.zeros(len(ids), dtype=torch.bool),
        words=words.clamp(min=-1),
    )
    return Tokenized(ids, starts, rows, notes)


def _types(ids: Tensor, model: LanguageModel) -> Labels:
    """Return the token types as labels, sorted by their strings."""
    distinct, codes = torch.unique(ids, return_inverse=True)
    names = [str(name) for name in model.tokenizer.convert_ids_to_tokens(distinct.tolist())]
    order = sorted(range(len(names)), key=lambda i: (names[i], i))
    rank = torch.empty(len(order), dtype=torch.int64)
    rank[torch.tensor(order)] = torch.arange(len(order))
    return Labels(rank[codes], tuple(names[i] for i in order))


def check_length(tokenizer: Any, max_length: int, *, of_pairs: bool = False) -> None:
    """Raise InputError if the special tokens leave no room for a token of each text."""
    n_special = int(tokenizer.num_special_tokens_to_add(pair=of_pairs))
    least = n_special + (2 if of_pairs else 1)
    if max_length < least:
        texts = "two texts" if of_pairs else "a text"
        specials = f"{n_special} special token{'' if n_special == 1 else 's'}"
        wanted = f"at least {least}, since the tokenizer adds {specials} to {texts}"
        raise InputError(argument="max_length", got=max_length, wanted=wanted)
