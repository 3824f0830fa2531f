from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.raising import raises

from isoscope.errors import InputError, ShapeError
from isoscope.models import load_language_model
from isoscope.models.language_models import LanguageModel
from isoscope.models.tokens import tokenize

TEXTS = ["a cat sat", "the dog ran to the cat", "dog"]


@pytest.fixture(scope="module")
def bert(tiny_bert: Path) -> LanguageModel:
    return load_language_model(tiny_bert, device="cpu")


@pytest.fixture(scope="module")
def llama(tiny_gpt: Path) -> LanguageModel:
    return load_language_model(tiny_gpt, device="cpu")


def names(found: object) -> list[str]:
    types = found.rows.types  # type: ignore[attr-defined]
    return [types.names[code] for code in types.codes.tolist()]


def test_each_text_by_itself(bert: LanguageModel) -> None:
    found = tokenize(TEXTS, bert)
    assert names(found)[:5] == ["[CLS]", "a", "cat", "sat", "[SEP]"]
    assert found.lengths.tolist() == [5, 8, 3]
    assert found.rows.sentences.codes.tolist() == [0] * 5 + [1] * 8 + [2] * 3
    assert found.rows.positions.tolist() == [*range(5), *range(8), *range(3)]
    assert found.rows.is_special.nonzero().flatten().tolist() == [0, 4, 5, 12, 13, 15]
    assert found.rows.words.tolist()[:5] == [-1, 0, 1, 2, -1]
    assert not found.rows.is_padding.any()
    assert list(found.rows.types.names) == sorted(found.rows.types.names)
    assert [bert.tokenizer.convert_ids_to_tokens(i) for i in found.ids.tolist()] == names(found)


def test_frequencies(bert: LanguageModel) -> None:
    rows = tokenize(TEXTS, bert).rows
    by_name = dict(zip(names(tokenize(TEXTS, bert)), rows.counts.tolist(), strict=True))
    assert (by_name["[CLS]"], by_name["cat"], by_name["the"], by_name["sat"]) == (3, 2, 2, 1)


def test_one_stream_in_windows(bert: LanguageModel) -> None:
    """[CLS] + 6 + [SEP]: ten words make a full window and one of four."""
    found = tokenize(["", *TEXTS, "  "], bert, window=8)
    assert found.lengths.tolist() == [8, 6]
    assert names(found) == [
        "[CLS]", "a", "cat", "sat", "the", "dog", "ran", "[SEP]",
        "[CLS]", "to", "the", "cat", "dog", "[SEP]",
    ]  # fmt: skip
    assert found.rows.words.tolist() == [-1, *range(6), -1, -1, *range(6, 10), -1]


def test_windows_of_a_model_without_special_tokens(llama: LanguageModel) -> None:
    found = tokenize(TEXTS, llama, window=8)
    assert found.lengths.tolist() == [8, 2]
    assert not found.rows.is_special.any()


def test_at_most_so_many_tokens(bert: LanguageModel) -> None:
    assert tokenize(TEXTS, bert, max_tokens=13).lengths.tolist() == [5, 8]
    assert tokenize(TEXTS * 9, bert, window=8, max_tokens=20).lengths.tolist() == [8, 8]
    with pytest.raises(InputError, match="tokens of the first text"):
        tokenize(TEXTS, bert, max_tokens=4)
    with raises(InputError, argument="max_tokens"):
        tokenize(TEXTS, bert, max_tokens=1)


def test_texts_that_are_too_long(bert: LanguageModel) -> None:
    long = "a " * 30
    with pytest.raises(
        InputError, match=r"texts\[1\] has 32 tokens, and .* accepts 24\. Pass `truncate=True`"
    ):
        tokenize(["dog", long], bert)
    found = tokenize(["dog", long], bert, truncate=True)
    assert found.lengths.tolist() == [3, 24]
    assert names(found)[-1] == "[SEP]"
    assert names(found)[3] == "[CLS]"
    assert found.notes == (f"1 text was truncated to 24 tokens, the maximum of {bert.name}",)


def test_padding_behind_all_but_the_longest(bert: LanguageModel) -> None:
    found = tokenize(TEXTS, bert, padding=True)
    assert found.lengths.tolist() == [6, 8, 4]
    assert found.rows.is_padding.nonzero().flatten().tolist() == [5, 17]
    assert names(found)[5] == "[PAD]"
    assert found.rows.words.tolist()[5] == -1


def test_a_tokenizer_without_padding(llama: LanguageModel) -> None:
    with pytest.raises(InputError, match="no padding token"):
        tokenize(TEXTS, llama, padding=True)


@pytest.mark.parametrize(
    ("texts", "error", "words"),
    [
        ("a cat", InputError, r"ass \[text\]"),
        ([], ShapeError, "at least one string"),
        (["a", 3], InputError, r"`texts\[1\]` must be a string"),
        (["", "  "], ShapeError, "only empty strings"),
        (["dog", " "], InputError, r"texts\[1\] is empty.*`window`"),
    ],
)
def test_bad_texts(bert: LanguageModel, texts: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        tokenize(texts, bert)  # type: ignore[arg-type]


@pytest.mark.parametrize("window", [3, 25])
def test_windows_that_cannot_be(bert: LanguageModel, window: int) -> None:
    with raises(InputError, argument="window", wanted="from 8 to 24 tokens"):
        tokenize(TEXTS, bert, window=window)


def test_some_rows(bert: LanguageModel) -> None:
    rows = tokenize(TEXTS, bert).rows
    chosen = rows.select(~rows.is_special)
    assert len(chosen) == 10
    assert chosen.types.names == rows.types.names
    assert torch.equal(chosen.positions[:3], torch.tensor([1, 2, 3]))


class Empty(dict):
    is_fast = False


def test_texts_without_a_token(bert: LanguageModel) -> None:
    class Silent:
        def __call__(self, texts: list[str], **_: object) -> Empty:
            return Empty({"input_ids": [[]], "special_tokens_mask": [[]]})

    with pytest.raises(ShapeError, match="no tokens"):
        tokenize(["\u200b"], replace(bert, tokenizer=Silent()), window=16)
    with pytest.raises(InputError, match="surrogate"):
        tokenize(["\ud800"], bert)
    with pytest.raises(InputError, match="at least one window of 12"):
        tokenize(TEXTS, bert, window=12, max_tokens=11)
