"""Any model on any batches: the rows are those of hooks of one's own, and metrics those of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.raising import raises
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import isoscope as iso
from isoscope.engine.source import is_source
from isoscope.errors import InputError, ShapeError
from isoscope.models import BatchStates, LanguageModel, load_language_model
from isoscope.models.layers.plan import OpenPlan
from isoscope.models.states import TokenBatch

QUICK: dict[str, Any] = {"clusters": False, "progress": False, "sample": 40, "k": 5}


@pytest.fixture(scope="module")
def bert(tiny_bert: Path) -> LanguageModel:
    return load_language_model(tiny_bert, device="cpu")


@pytest.fixture
def convolutions() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 5, 3, stride=2), nn.Flatten(), nn.Linear(245, 4)
    )


def check_same(profile: iso.models.LayerProfile, layer: Any, rows: Tensor, items: Tensor) -> None:
    """Compare a layer with the metrics of its rows, which are held here."""
    space = iso.Space(rows, sentences=items)
    for name in ("mean_cosine", "isoscore", "effective_rank", "intra_similarity", "mean_norm"):
        wanted = iso.measure(space, metrics=name, progress=False)[name]
        assert profile.by_layer[layer][0][name] == pytest.approx(wanted, rel=1e-4, abs=1e-6), (layer, name)


def test_modules_of_images(convolutions: nn.Sequential) -> None:
    """The rows are the places of an image, or the images where a layer has no places."""
    X = torch.randn(10, 3, 17, 17)
    loader = DataLoader(TensorDataset(X, torch.zeros(10)), batch_size=4)
    profile = iso.layers(convolutions, loader, modules=["0", "2", "4"], **QUICK)
    assert profile.layers == ["0", "2", "4"]
    assert profile.title == "Sequential: 2,250 vectors of 10 items, 3 layers × 8"
    with torch.no_grad():
        outputs = {"0": convolutions[0](X), "2": convolutions[:3](X), "4": convolutions(X)[..., None, None]}
    for layer, output in outputs.items():
        rows = output.flatten(2).transpose(1, 2)
        items = torch.arange(10).repeat_interleave(rows.shape[1])
        check_same(profile, layer, rows.flatten(0, 1), items)
    assert profile.values("self_similarity") == [None] * 3


def test_batches_of_a_loaded_model_without_padding_and_special_tokens(bert: LanguageModel) -> None:
    """The same states as through texts, with the same sinks."""
    texts = ["a cat sat on the mat", "the dog ran", "dog", "boom the dog ran to the cat"]
    encoded = bert.tokenizer(texts, return_tensors="pt", padding=True, return_special_tokens_mask=True)
    by_text, by_batch = (
        iso.layers(model, inputs, **QUICK) for model, inputs in ((bert, texts), (bert, [encoded]))
    )
    raw = iso.layers(bert.model, encoded, **QUICK)
    assert by_text.n_tokens == by_batch.n_tokens == raw.n_tokens
    for name in ("mean_cosine", "isoscore", "intra_similarity", "mean_norm"):
        for other in (by_batch, raw):
            assert other.values(name) == pytest.approx(by_text.values(name), rel=1e-5)


def test_special_tokens_of_batches_are_left_out_where_they_are_known(bert: LanguageModel) -> None:
    texts = ["a cat sat on the mat", "the dog ran", "dog", "boom the dog ran to the cat"]
    batches = [
        dict(bert.tokenizer(part, return_tensors="pt", padding=True)) for part in (texts[:2], texts[2:])
    ]
    wanted, everyone = (iso.layers(bert, texts, special=special, **QUICK) for special in (False, True))
    for model, options in ((bert, {}), (bert.model, {"tokenizer": bert.tokenizer})):
        profile = iso.layers(model, batches, **options, **QUICK)
        assert profile.n_tokens == wanted.n_tokens
        assert profile.values("isoscore") == pytest.approx(wanted.values("isoscore"), rel=1e-5)
        assert not any("tokenizer" in note for note in profile.notes)
    raw, asked = iso.layers(bert.model, batches, **QUICK), iso.layers(bert, batches, special=True, **QUICK)
    for profile in (raw, asked):
        assert profile.n_tokens == everyone.n_tokens > wanted.n_tokens
        assert profile.values("isoscore") == pytest.approx(everyone.values("isoscore"), rel=1e-5)
    assert any("tokenizer=" in note for note in raw.notes)
    assert not any("tokenizer=" in note for note in asked.notes)


def test_a_batch_of_special_tokens_alone(bert: LanguageModel) -> None:
    batches = [dict(bert.tokenizer([text], return_tensors="pt")) for text in ("a cat sat", "", "the dog ran")]
    with raises(ShapeError, argument="inputs[1]", hint="special"):
        iso.layers(bert, batches, **QUICK)
    assert iso.layers(bert, batches, special=True, **QUICK).n_tokens == 12


def test_a_loaded_model_reads_texts_with_a_tokenizer(bert: LanguageModel, tiny_bert: Path) -> None:
    """A model of transformers gives what its folder gives, and is left as it was."""
    import transformers

    texts = ["a cat sat on the mat", "the dog ran", "dog", "boom the dog ran to the cat"]
    model = transformers.AutoModelForMaskedLM.from_pretrained(tiny_bert).train()
    wanted = iso.layers(tiny_bert, texts, device="cpu", **QUICK).to_dict()["layers"]
    for one, options in (
        (model, {"tokenizer": bert.tokenizer}),
        ((model, bert.tokenizer), {}),
        (model, {}),  # the tokenizer is in the folder that the model was loaded from
        (nn.DataParallel(model), {}),
    ):
        profile = iso.layers(one, texts, **options, **QUICK)
        assert profile.model == tiny_bert.name
        assert profile.to_dict()["layers"] == wanted
    assert model.training
    assert all(weight.requires_grad for weight in model.parameters())
    model.config._name_or_path = "nobody/nothing"
    with raises(InputError, message="BertForMaskedLM has no tokenizer", hint="tokenizer"):
        iso.layers(model, texts, **QUICK)
    with raises(InputError, argument="model", wanted="pair"):
        iso.layers((model, bert.tokenizer, 1), texts, **QUICK)


def test_modules_of_texts(bert: LanguageModel) -> None:
    """The output of the last block is the last hidden state; attention is a layer of its own."""
    texts = ["a cat sat on the mat", "the dog ran", "dog on a hat", "boom the dog ran to the cat"] * 3
    hidden = iso.layers(bert, texts, **QUICK)
    blocks = iso.layers(bert, texts, modules="residual", **QUICK)
    assert blocks.layers == ["encoder.layer.0", "encoder.layer.1"]
    for name in ("mean_cosine", "self_similarity", "effective_rank"):
        assert blocks.values(name) == pytest.approx(hidden.values(name)[1:], rel=1e-6)
    attention = iso.layers(bert, texts, modules="attention", **QUICK)
    assert attention.values("mean_cosine") != pytest.approx(blocks.values("mean_cosine"), rel=1e-3)
    assert len(attention.readings) == len(hidden.readings) * 2 // 3
    with raises(InputError, argument="layers"):
        iso.layers(bert, texts, modules="attention", layers=[0])


def test_a_source_like_any_other(bert: LanguageModel) -> None:
    batches = [{"input_ids": torch.randint(5, 12, (3, n))} for n in (4, 6)]
    states = BatchStates(batches, model=bert.model, layers=[0, -1])
    assert is_source(states)
    assert states.n_rows is None
    vectors = torch.cat([block.vectors for block in states.blocks(5)])
    columns = {name: states.column(name) for name in states.columns}
    assert {len(values) for values in columns.values()} == {len(vectors)} == {states.n_rows} == {60}
    assert columns["position"][:5] == [0, 1, 2, 3, 0]
    assert columns["item"][-1] == 5
    assert set(columns["layer"]) == {0, 2}
    torch.testing.assert_close(states.load().vectors, vectors)
    sliced = iso.measure(states, by="layer", metrics="mean_norm", progress=False)
    profile = iso.layers(bert.model, batches, layers=[0, -1], **QUICK)
    found = {one.group["slice"]: one.value for one in sliced.slices if one.metric == "mean_norm"}
    assert [found["0"], found["2"]] == pytest.approx(profile.values("mean_norm"), rel=1e-5)
    assert states.identity == BatchStates(batches, model=bert.model, layers=[0, -1]).identity
    assert states.identity != BatchStates(batches[:1], model=bert.model, layers=[0, -1]).identity


def test_an_iterator_is_read_once(convolutions: nn.Sequential) -> None:
    batches = [torch.randn(4, 3, 17, 17) for _ in range(3)]
    whole = iso.layers(convolutions, batches, modules="0", **QUICK)
    once = iso.layers(convolutions, iter(batches), modules="0", **QUICK)
    assert once.values("mean_cosine") == whole.values("mean_cosine")
    with raises(InputError, argument="inputs", message="read once", hint="memory"):
        iso.layers(convolutions, iter(batches), modules=["0", "2"], memory="1KB", **QUICK)


def test_layers_in_several_passes_are_those_of_one(convolutions: nn.Sequential) -> None:
    batches = [torch.randn(4, 3, 17, 17) for _ in range(3)]
    one = iso.layers(convolutions, batches, modules=["0", "2"], **QUICK)
    many = iso.layers(convolutions, batches, modules=["0", "2"], memory="1KB", **QUICK)
    assert [reading.value for reading in many.readings] == [reading.value for reading in one.readings]


def test_the_sample_is_drawn_evenly() -> None:
    """Every row is in the sample as often as every other, wherever the batches end."""
    counts = torch.zeros(60)
    for seed in range(1000):
        plan, held = OpenPlan(sample=12, seed=seed), torch.full((12,), -1)
        for number, rows in enumerate(torch.arange(60).split([5, 20, 1, 34])):
            batch = TokenBatch([], lambda layer: layer, {}, None, rows, rows // 3)  # type: ignore[arg-type]
            own, places = plan.batch(number, batch).held
            held[places] = rows[own]
        assert len(held.unique()) == 12
        counts[held] += 1
    # the number of times is binomial: 200 with a standard deviation of 12.6
    assert ((counts - 200).abs() < 5 * 12.6).all()


@pytest.mark.parametrize(
    ("inputs", "fields"),
    [
        ([], {"argument": "inputs", "message": "no batches"}),
        ([torch.zeros(0, 3, 17, 17)], {"argument": r"inputs[0]", "message": "empty"}),
        (["a cat"], {"argument": "model", "wanted": "transformers, to read texts"}),
        (7, {"argument": "inputs", "got": 7}),
    ],
)
def test_bad_batches(convolutions: nn.Sequential, inputs: Any, fields: dict[str, Any]) -> None:
    with raises(InputError, **fields):
        iso.layers(convolutions, inputs, modules="*", **QUICK)


def test_bad_models(convolutions: nn.Sequential, bert: LanguageModel) -> None:
    X = torch.randn(2, 3, 17, 17)
    with raises(InputError, message="returns no hidden states", hint="modules"):
        iso.layers(convolutions, [X], **QUICK)
    with raises(InputError, argument="inputs", message="has pixel_values, but BertModel takes input_ids"):
        iso.layers(bert, [{"pixel_values": X}], **QUICK)
    with raises(InputError, argument="special", message="goes with tokens"):
        iso.layers(convolutions, [X], modules="*", special=True, **QUICK)
    with raises(InputError, argument="window", message="goes with texts"):
        iso.layers(convolutions, [X], modules="*", window=8, **QUICK)
    with raises(ShapeError, message="layer 4 has 4 dimensions and layer 0 has 8"):
        assert BatchStates([X], model=convolutions, modules=["0", "4"]).n_dims
    with raises(ShapeError, message=r"layer 0 has shape \(2, 3, 17, 17, 1\)", hint="modules"):
        iso.layers(nn.Sequential(nn.Unflatten(-1, (17, 1))), [X], modules="0", **QUICK)
