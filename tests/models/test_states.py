"""`States` is a source: its rows are those of `token_states`, whatever the blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from isoscope import Measurement, measure
from isoscope.engine.source import is_source
from isoscope.errors import FileError, InputError
from isoscope.models import (
    BatchStates,
    LanguageModel,
    States,
    load_language_model,
    measure_layers,
    token_states,
)

TEXTS = ["the cat sat on the mat", "a dog", "the dog ran to the cat", "a hat on a mat"] * 3


@pytest.fixture(scope="module")
def gpt(tiny_gpt: Path) -> LanguageModel:
    return load_language_model(tiny_gpt, device="cpu")


def test_rows_and_columns_are_those_of_the_tokens(gpt: LanguageModel) -> None:
    states = States(TEXTS, model=gpt, layers=[0, -1], special=True, batch_tokens=24)
    kept = token_states(TEXTS, model=gpt, batch_tokens=24, progress=False)
    assert is_source(states)
    vectors = torch.cat([block.vectors for block in states.blocks(5)])
    assert vectors.shape == (states.n_rows, states.n_dims)
    columns = {name: list(states.column(name)) for name in states.columns}
    assert {len(values) for values in columns.values()} == {states.n_rows}
    known = kept.rows
    places = {
        (sentence, position): row
        for row, (sentence, position) in enumerate(
            zip(known.sentences.codes.tolist(), known.positions.tolist(), strict=True)
        )
    }
    for vector, layer, sentence, position, token in zip(
        vectors,
        columns["layer"],
        columns["sentence"],
        columns["position"],
        columns["token_type"],
        strict=True,
    ):
        row = places[sentence, position]
        torch.testing.assert_close(vector, kept.vectors(layer)[row], atol=1e-6, rtol=1e-5)
        assert token == known.types.names[known.types.codes[row]]
    with pytest.raises(InputError, match="must be one of layer, token_type"):
        states.column("language")


def test_a_view_without_sinks(gpt: LanguageModel) -> None:
    """Everything that is 1.2 times as long as the median counts as a sink here."""
    everything = States(TEXTS, model=gpt, layers=[1], sink_ratio=1.2)
    without = States(TEXTS, model=gpt, layers=[1], sink_ratio=1.2, sinks=False)
    is_sink = torch.tensor(everything.column("is_sink"))
    assert 0 < int(is_sink.sum()) < len(is_sink)
    assert torch.equal(without.load().vectors, everything.load().vectors[~is_sink])
    assert without.n_rows == int((~is_sink).sum())
    assert without.identity != everything.identity


@pytest.mark.parametrize("other", [{"sink_ratio": 1.3}, {"batch_tokens": 12}], ids=["ratio", "batches"])
def test_a_checkpoint_of_other_rows_is_refused(gpt: LanguageModel, tmp_path: Path, other: dict) -> None:
    settings = {"layers": [1], "sinks": False, "sink_ratio": 1.2, "batch_tokens": 24}

    def run(**changed: Any) -> Measurement:
        states = States(TEXTS, model=gpt, **{**settings, **changed})
        return measure(states, metrics="isoscore", checkpoint=tmp_path / "run", progress=False)

    assert dict(run()) == dict(run())
    with pytest.raises(FileError, match="checkpoint"):
        run(**other)


@pytest.mark.parametrize("kind", ["texts", "batches"])
def test_a_model_that_was_trained_further_is_another(tiny_gpt: Path, kind: str) -> None:
    """One weight in the middle is changed by the least amount; the name and the folder stay the same."""
    model = load_language_model(tiny_gpt, device="cpu")
    batches = [{"input_ids": torch.tensor([[3, 4, 5]])}]
    states = States(TEXTS, model=model) if kind == "texts" else BatchStates(batches, model=model.model)
    before = states.identity
    assert states.identity == before
    with torch.no_grad():
        weight = model.model.h[1].mlp.c_fc.weight
        weight[1, 2] = torch.nextafter(weight[1, 2], weight.new_tensor(9.0))
    assert states.identity != before


def test_measured_like_any_source(gpt: LanguageModel) -> None:
    states = States(TEXTS, model=gpt, layers=[-1])
    streamed = measure(states, metrics=["isoscore", "mean_cosine", "self_similarity"], progress=False)
    whole = measure(states.load(), metrics=["isoscore", "mean_cosine", "self_similarity"], progress=False)
    for name in ("isoscore", "mean_cosine", "self_similarity"):
        assert streamed[name] == pytest.approx(whole[name], rel=1e-6)


def test_slices_are_the_layers_with_and_without_sinks(gpt: LanguageModel) -> None:
    """One pass by layer and view gives what `measure_layers` gives of all tokens but the sinks."""
    states = States(TEXTS, model=gpt, sink_ratio=1.2)
    sliced = measure(states, by=("layer", "view"), metrics=["mean_cosine", "mean_norm"], progress=False)
    profile = measure_layers(TEXTS, model=gpt, sink_ratio=1.2, clusters=False, progress=False)
    assert profile.n_sinks
    for metric in ("mean_cosine", "mean_norm"):
        values = {one.group["slice"]: one.value for one in sliced.slices if one.metric == metric}
        for layer, wanted in zip(profile.layers, profile.values(metric, sinks=False), strict=True):
            assert values[f"{layer}, without sinks"] == pytest.approx(wanted, rel=1e-5)
