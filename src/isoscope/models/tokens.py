"""Texts to tokens: what is known of each token, and which tokens a model reads together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
_TEXTS_AT_ONCE = 1024  # a tokenizer's own lists take some hundred bytes a token


@dataclass(frozen=True, eq=False)
class TokenRows:
    """What is known of each token, one entry a row, on the CPU.

    Attributes:
        types: the token type; names are the tokenizer's strings, such as "Ġthe" or "##ing".
        sentences: which text or window it stands in; names are whole numbers from 0.
        positions: (n,) int64, from 0 within its text.
        is_special: (n,) bool, tokens the model adds: [CLS], [SEP], <s>.
        is_padding: (n,) bool, padding that was asked for.
        words: (n,) int64, which word of its text the token is part of; −1 for special ones and padding.
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
        """(n,) int64, how often the type of each row occurs among all rows."""
        return self.types.counts[self.types.codes]

    def select(self, rows: Tensor) -> TokenRows:
        """Some of the rows: a mask or their places; types and sentences keep their codes."""
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
    """Texts as numbered tokens, end to end.

    Attributes:
        ids: (n,) int64, the tokenizer's number of each token.
        starts: (S + 1,) int64, text s has tokens starts[s] … starts[s + 1] − 1.
        rows: what is known of each token.
        notes: what a user should know, such as how many texts were cut.
    """

    ids: Tensor
    starts: Tensor
    rows: TokenRows
    notes: tuple[str, ...] = ()

    @property
    def lengths(self) -> Tensor:
        """(S,) tokens of each text."""
        return self.starts.diff()


@dataclass
class _Gathered:
    """Token columns as they come, a piece at a time."""

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
    """Number the tokens of texts, each text by itself or all as one stream cut into windows.

    Args:
        texts: strings. By themselves none may be empty; in a stream empty ones are skipped.
        model: whose tokenizer to use.
        window: join the texts to one stream and cut it into windows of so many tokens, special ones
            included; what is left at the end is a shorter window.
        truncate: cut texts that are longer than the model takes; else they are refused.
        max_tokens: stop before the text or window that would pass so many.
        padding: put one padding token behind each text that is shorter than the longest.
    """
    texts = checked_texts(texts)
    if not any(text.strip() for text in texts):
        raise ShapeError(f"all {len(texts):,} texts are empty; wanted some words")
    _check_sizes(model, window, max_tokens)
    with running(model.path, "run"):
        if window is None:
            gathered, notes = _each(texts, model, truncate=truncate, max_tokens=max_tokens)
        else:
            gathered, notes = _windows(texts, model, window, max_tokens=max_tokens), ()
        if padding:
            _pad_shorter(gathered, model)
        return _joined(gathered, model, padding=padding, notes=notes)


def _check_sizes(model: LanguageModel, window: int | None, max_tokens: int | None) -> None:
    longest = model.max_length
    if window is not None and (window < 8 or (longest is not None and window > longest)):
        most = f"8 … {longest}" if longest else "at least 8"
        raise InputError(argument="window", got=window, wanted=f"{most} tokens, which {model.name} can take")
    if max_tokens is not None and max_tokens < 2:
        raise InputError(argument="max_tokens", got=max_tokens, wanted="at least 2")


def _each(
    texts: list[str], model: LanguageModel, *, truncate: bool, max_tokens: int | None
) -> tuple[_Gathered, tuple[str, ...]]:
    empty = [row for row, text in enumerate(texts) if not text.strip()]
    if empty:
        raise InputError(
            f"texts[{empty[0]}] is empty ({len(empty):,} of {len(texts):,} are); wanted words in each",
            hint=["leave those out", _AS_ONE],
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
        raise InputError(
            f"is {max_tokens}, which is less than the first text has; raise it", argument="max_tokens"
        )
    if not n_cut:
        return gathered, ()
    texts_are = "1 text is" if n_cut == 1 else f"{n_cut:,} texts are"
    return gathered, (f"{texts_are} longer than the {model.max_length:,} tokens {model.name} takes, and cut",)


def _encoded(
    texts: list[str], model: LanguageModel, **options: Any
) -> Iterator[tuple[int, list[int], list[int], np.ndarray]]:
    """Yield each text's place, its tokens, which of them are special, and the word of each.

    A special token is of word −1; every token is a word where the tokenizer cannot tell.
    """
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        encoding = model.tokenizer(
            texts[start : start + _TEXTS_AT_ONCE], return_special_tokens_mask=True, verbose=False, **options
        )
        for i, ids in enumerate(encoding["input_ids"]):
            words = np.arange(len(ids))
            if encoding.is_fast:
                words = np.array([-1 if word is None else word for word in encoding.word_ids(i)], np.int64)
            yield start + i, ids, encoding["special_tokens_mask"][i], words


def _cut(
    ids: list[int], special: list[int], words: np.ndarray, model: LanguageModel, row: int, *, truncate: bool
) -> tuple[list[int], list[int], np.ndarray]:
    """The longest beginning the model takes, with the special tokens at its end kept."""
    longest = model.max_length
    assert longest is not None
    if not truncate:
        raise InputError(
            f"texts[{row}] has {len(ids):,} tokens, and {model.name} takes {longest:,}",
            hint=[Setting("truncate", True, to="cut such texts"), _AS_ONE],
        )
    n_last = _n_specials(special)[1]
    kept = [*range(longest - n_last), *range(len(ids) - n_last, len(ids))]
    return [ids[i] for i in kept], [special[i] for i in kept], words[kept]


def _n_specials(special: Sequence[int]) -> tuple[int, int]:
    """How many special tokens stand at the beginning and at the end."""
    first = next((i for i, mark in enumerate(special) if not mark), len(special))
    last = next((i for i, mark in enumerate(reversed(special)) if not mark), 0)
    return first, last


def _windows(texts: list[str], model: LanguageModel, window: int, *, max_tokens: int | None) -> _Gathered:
    """All texts as one stream in windows, each between the special tokens the model puts around a text."""
    around = model.tokenizer(["a"], return_special_tokens_mask=True)
    n_first, n_last = _n_specials(around["special_tokens_mask"][0])
    marks = around["input_ids"][0]
    before, after = marks[:n_first], marks[len(marks) - n_last :]
    room = window - n_first - n_last
    if max_tokens is not None and max_tokens < window:
        raise InputError(
            f"is {max_tokens}, which is less than a window of {window}; raise it", argument="max_tokens"
        )
    most = None if max_tokens is None else max_tokens // window * room
    ids, words = _stream(texts, model, most)
    gathered = _Gathered()
    for start in range(0, len(ids), room):
        inner = ids[start : start + room]
        special = [1] * n_first + [0] * len(inner) + [1] * n_last
        outer = np.full(len(special), -1, np.int64)
        outer[n_first : n_first + len(inner)] = words[start : start + room]
        gathered.add([*before, *inner, *after], special, outer)
    return gathered


def _stream(texts: list[str], model: LanguageModel, most: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of all texts end to end, at most so many, and the word of the stream each is part of."""
    ids: list[np.ndarray] = []
    words: list[np.ndarray] = []
    n_tokens = n_words = 0
    filled = [text for text in texts if text.strip()]
    for _, own, _, numbers in _encoded(filled, model, add_special_tokens=False):
        ids.append(np.asarray(own, np.int64))
        words.append(numbers + n_words)
        n_tokens += len(own)
        n_words += int(numbers.max(initial=-1)) + 1
        if most is not None and n_tokens >= most:
            break
    if not n_tokens:
        raise ShapeError("the texts have no tokens; wanted some words")
    return np.concatenate(ids)[:most], np.concatenate(words)[:most]


def _pad_shorter(gathered: _Gathered, model: LanguageModel) -> None:
    padding = model.tokenizer.pad_token_id
    if padding is None:
        raise InputError(f"{model.name}'s tokenizer has no padding token; leave padding out")
    longest = max(gathered.lengths)
    for place, ids in enumerate(gathered.ids):
        if len(ids) < longest:
            gathered.ids[place] = np.append(ids, padding)
            gathered.special[place] = np.append(gathered.special[place], False)
            gathered.words[place] = np.append(gathered.words[place], -2)  # told apart from special ones


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
        is_padding=words == -2 if padding else torch.zeros(len(ids), dtype=torch.bool),
        words=words.clamp(min=-1),
    )
    return Tokenized(ids, starts, rows, notes)


def _types(ids: Tensor, model: LanguageModel) -> Labels:
    """The numbers as labels, in the order of the token's strings."""
    numbers, codes = torch.unique(ids, return_inverse=True)
    names = [str(name) for name in model.tokenizer.convert_ids_to_tokens(numbers.tolist())]
    order = sorted(range(len(names)), key=lambda i: (names[i], i))
    place = torch.empty(len(order), dtype=torch.int64)
    place[torch.tensor(order)] = torch.arange(len(order))
    return Labels(place[codes], tuple(names[i] for i in order))


def check_length(tokenizer: Any, max_length: int, *, of_pairs: bool = False) -> None:
    """Raise InputError where the special tokens leave no room for a token of the text, or of each of two."""
    n_special = int(tokenizer.num_special_tokens_to_add(pair=of_pairs))
    least = n_special + (2 if of_pairs else 1)
    if max_length < least:
        texts, rest = ("two texts", "one of each") if of_pairs else ("a text", "one of its own")
        raise InputError(
            argument="max_length",
            got=max_length,
            wanted=f"at least {least}",
            hint=f"the tokenizer adds {n_special} special token{'' if n_special == 1 else 's'} to {texts}, "
            f"and {rest} must be left",
        )
