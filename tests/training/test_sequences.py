from __future__ import annotations

from pathlib import Path

import pytest
import torch

from isoscope.errors import InputError
from isoscope.models.language_models import load_tokenizer
from isoscope.models.tokens import check_length
from isoscope.training.sequences import EpochOrder, Sequences, tokenized

ROWS = [[5, 6, 7], [8], [9, 10]]


def sequences() -> Sequences:
    return Sequences.of({"input_ids": ROWS, "token_type_ids": [[0, 1, 1], [1], [0, 1]]}, padding=3)


def test_batches_are_padded_on_the_right() -> None:
    batch = sequences().batch([1, 2])
    assert batch["input_ids"].tolist() == [[8, 3], [9, 10]]
    assert batch["attention_mask"].tolist() == [[1, 0], [1, 1]]
    assert batch["token_type_ids"].tolist() == [[1, 0], [0, 1]]


def test_all_by_length() -> None:
    met = list(sequences().by_length(2))
    assert [places for places, _ in met] == [[0, 2], [1]]
    assert met[0][1]["input_ids"].tolist() == [[5, 6, 7], [9, 10, 3]]


def test_an_order_for_every_epoch() -> None:
    order, again = EpochOrder(10, 4, seed=1), EpochOrder(10, 4, seed=1)
    first = list(order)
    assert [len(batch) for batch in first] == [4, 4, 2]
    assert sorted(place for batch in first for place in batch) == list(range(10))
    assert first == list(again)
    order.epoch = 1
    assert list(order) != first
    assert list(EpochOrder(10, 4, seed=2)) != first
    whole = EpochOrder(10, 4, seed=1, drop_last=True)
    assert [len(batch) for batch in whole] == [4, 4]
    assert len(whole) == 2
    assert len(EpochOrder(8, 4, seed=1)) == 2


def test_batches_are_whole_numbers() -> None:
    assert all(values.dtype == torch.int64 for values in sequences().batch([0, 1]).values())


@pytest.mark.parametrize(("of_pairs", "least"), [(False, 3), (True, 5)])
def test_special_tokens_must_leave_room_for_words(tiny_bert: Path, of_pairs: bool, least: int) -> None:
    tokenizer = load_tokenizer(tiny_bert)
    texts = [["the cat sat on the mat"]] * (2 if of_pairs else 1)
    shortest = tokenized(tokenizer, *texts, max_length=least).fields["input_ids"].tolist()
    words = [number for number in shortest if number not in tokenizer.all_special_ids]
    assert len(words) == len(texts)
    check_length(tokenizer, least, of_pairs=of_pairs)
    with pytest.raises(InputError, match=rf"`max_length` must be at least {least}\b"):
        check_length(tokenizer, least - 1, of_pairs=of_pairs)


def test_without_special_tokens_one_is_enough(tiny_gpt: Path) -> None:
    check_length(load_tokenizer(tiny_gpt), 1)
