"""The tracker's values are those of states taken by hand, and a run does not feel it."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises
from torch import Tensor, nn

import isoscope as iso
from isoscope.models.inner import unwrapped
from isoscope.tracking.tracker import GeometryTracker

TEXTS = [
    "the cat sat on the mat",
    "a dog ran",
    "the dog sat on the hat",
    "a cat ran to the mat",
    "the mat",
    "a hat on the dog on the mat on a cat",
]
METRICS = ("isoscore_debiased", "mean_cosine", "effective_rank")


class Network(nn.Module):
    """A stack with dropout and batch norm, so that modes and random states matter."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 8)
        )
        self.unused = nn.Linear(2, 2)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.encoder(x)))


def network() -> Network:
    torch.manual_seed(3)
    return Network()


@pytest.fixture
def probe() -> Tensor:
    return torch.randn(40, 6, generator=torch.Generator().manual_seed(5))


def by_hand(X: Tensor, names: tuple[str, ...] = METRICS, **known: Any) -> list[float]:
    """The metrics of states, each on its own, in float64."""
    return [float(iso.registered()[name].of(X.detach().double(), **known)) for name in names]


def bert(folder: Path, kind: str = "BertModel") -> Any:
    transformers = pytest.importorskip("transformers")
    return getattr(transformers, kind).from_pretrained(folder, local_files_only=True)


def tokenizer(folder: Path) -> Any:
    return pytest.importorskip("transformers").AutoTokenizer.from_pretrained(folder)


def hidden_states(model: Any, tokens: Any, text: str) -> tuple[Tensor, list[int]]:
    """(layers, t, d) states of one text by itself, without padding, and its token numbers."""
    encoded = tokens(text, return_tensors="pt")
    model.eval()
    with torch.no_grad():
        found = model(**encoded, output_hidden_states=True).hidden_states
    return torch.stack([layer[0] for layer in found]), encoded["input_ids"][0].tolist()


# ---------------------------------------------------------------- what is measured


def test_hidden_states_of_a_bert_are_those_taken_text_by_text(tiny_bert: Path) -> None:
    model, tokens = bert(tiny_bert), tokenizer(tiny_bert)
    tracker = GeometryTracker(TEXTS, tokenizer=tokens, layers=(0, 1, -1), metrics=METRICS, contextual=True)
    row = tracker.measure(model.train(), step=0, loss=0.5)
    assert model.training
    each = [hidden_states(model, tokens, text) for text in TEXTS]
    for layer in (0, 1, -1):
        words = torch.cat([states[layer][1:-1] for states, _ in each])  # without [CLS] and [SEP]
        types = [token for _, ids in each for token in ids[1:-1]]
        sentences = [i for i, (_, ids) in enumerate(each) for _ in ids[1:-1]]
        names = (*METRICS, "adjusted_self_similarity", "adjusted_intra_similarity", "mean_norm")
        wanted = by_hand(words, names, token_types=types, sentences=sentences)
        assert [row[f"{name}@{layer}"] for name in names] == pytest.approx(wanted, rel=1e-4)
    assert row["loss"] == 0.5
    assert tracker.trajectory["step"].tolist() == [0]


def test_special_tokens_count_where_asked_for(tiny_bert: Path) -> None:
    model, tokens = bert(tiny_bert), tokenizer(tiny_bert)
    tracker = GeometryTracker(TEXTS, tokenizer=tokens, special=True, metrics=METRICS)
    row = tracker.measure(model, step=0)
    everything = torch.cat([hidden_states(model, tokens, text)[0][-1] for text in TEXTS])
    assert [row[name] for name in METRICS] == pytest.approx(by_hand(everything), rel=1e-4)


@pytest.mark.parametrize(
    ("pooling", "reduce"),
    [
        ("mean", lambda states: states.mean(dim=0)),
        ("max", lambda states: states.amax(dim=0)),
        ("cls", lambda states: states[0]),
        ("lasttoken", lambda states: states[-1]),
    ],
)
def test_pooling_makes_one_vector_a_text(
    tiny_bert: Path, pooling: str, reduce: Callable[[Tensor], Tensor]
) -> None:
    model, tokens = bert(tiny_bert), tokenizer(tiny_bert)
    tracker = GeometryTracker(TEXTS, tokenizer=tokens, pooling=pooling, metrics=METRICS, batch_size=4)
    row = tracker.measure(model, step=0)
    vectors = torch.stack([reduce(hidden_states(model, tokens, text)[0][-1]) for text in TEXTS])
    assert [row[name] for name in METRICS] == pytest.approx(by_hand(vectors), rel=1e-4)
    assert tracker.trajectory.configuration["n"] == len(TEXTS)


def test_a_batch_of_ones_own_reads_as_the_texts_do(tiny_bert: Path) -> None:
    model, tokens = bert(tiny_bert), tokenizer(tiny_bert)
    options: dict[str, Any] = {"tokenizer": tokens, "metrics": METRICS, "contextual": True}
    wanted = GeometryTracker(TEXTS, **options).read(model)
    encoded = tokens(TEXTS, padding=True, return_tensors="pt")
    labelled = {**encoded, "labels": torch.zeros(len(TEXTS))}
    for batch_size in (None, 2):
        found = GeometryTracker(labelled, batch_size=batch_size, **options).read(model)
        assert found == pytest.approx(wanted, rel=1e-4)
    marked = tokens(TEXTS, padding=True, return_tensors="pt", return_special_tokens_mask=True)
    assert GeometryTracker(marked, metrics=METRICS).read(model)["mean_cosine"] == pytest.approx(
        wanted["mean_cosine"], rel=1e-4
    )


def test_a_head_is_not_run_and_layers_count_as_in_the_model_below(tiny_bert: Path) -> None:
    model = bert(tiny_bert, "BertForSequenceClassification")
    tokens = tokenizer(tiny_bert)
    calls = []
    model.classifier.register_forward_hook(lambda *_: calls.append(1))
    options: dict[str, Any] = {"tokenizer": tokens, "metrics": METRICS}
    found = GeometryTracker(TEXTS, **options).read(model)
    assert found == GeometryTracker(TEXTS, **options).read(model.bert)
    assert not calls
    both = GeometryTracker(TEXTS, layers=(-1, "bert.encoder.layer.1", "output"), **options).read(model)
    assert calls
    for name in METRICS:  # the last hidden state is what the last block returns
        assert both[f"{name}@-1"] == pytest.approx(found[name])
        assert both[f"{name}@bert.encoder.layer.1"] == pytest.approx(found[name])
    assert both["effective_rank@output"] <= 2  # two classes


def test_a_causal_model_without_padding_token(tiny_gpt: Path) -> None:
    model, tokens = bert(tiny_gpt, "GPT2LMHeadModel"), tokenizer(tiny_gpt)
    row = GeometryTracker(TEXTS, tokenizer=tokens, layers=1, metrics=METRICS).measure(model, step=0)
    states = torch.cat([hidden_states(model, tokens, text)[0][1] for text in TEXTS])
    assert [row[name] for name in METRICS] == pytest.approx(by_hand(states), rel=1e-4, abs=1e-7)


def test_texts_are_cut_to_what_model_and_caller_allow(tiny_bert: Path) -> None:
    model, tokens = bert(tiny_bert), tokenizer(tiny_bert)
    long = [*TEXTS, "the cat sat on the mat to " * 8]
    tracker = GeometryTracker(long, tokenizer=tokens)
    tracker.measure(model, step=0)
    assert "truncated to 24 tokens" in tracker.trajectory.configuration["notes"][0]
    short = GeometryTracker(TEXTS, tokenizer=tokens, max_length=4)
    short.measure(model, step=0)
    assert short.trajectory.configuration["n"] == 2 * len(TEXTS)  # two words of each
    with raises(iso.InputError, argument="max_length", wanted="at least 3"):
        GeometryTracker(TEXTS, tokenizer=tokens, max_length=2).measure(model, step=0)


def test_a_sentence_model_brings_its_tokenizer(tiny_model: Path) -> None:
    model = pytest.importorskip("sentence_transformers").SentenceTransformer(str(tiny_model), device="cpu")
    vectors = torch.as_tensor(model.encode(TEXTS))
    found = GeometryTracker(TEXTS, layers=(-1, "output", "1"), metrics=METRICS, pooling="mean").read(model)
    assert [found[f"{name}@output"] for name in METRICS] == pytest.approx(by_hand(vectors), rel=1e-4)
    # mean pooling comes before normalising, which leaves cosines as they are
    for layer in ("-1", "1"):
        assert found[f"mean_cosine@{layer}"] == pytest.approx(iso.mean_cosine(vectors), rel=1e-4)
    assert found["effective_rank@-1"] == pytest.approx(found["effective_rank@1"], rel=1e-5)
    called = GeometryTracker(TEXTS, metrics=METRICS).read(model.encode)  # a bare function of texts
    assert list(called.values()) == pytest.approx(by_hand(vectors), rel=1e-4)


def test_a_static_sentence_model_has_its_output_alone(tiny_model: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    tokens = tokenizer(tiny_model)
    torch.manual_seed(0)
    table = StaticEmbedding(tokens.backend_tokenizer, embedding_dim=12)
    model = sentence_transformers.SentenceTransformer(modules=[table], device="cpu")
    found = GeometryTracker(TEXTS, metrics=METRICS, batch_size=4).read(model)
    assert list(found.values()) == pytest.approx(by_hand(torch.as_tensor(model.encode(TEXTS))), rel=1e-4)


def test_of_an_encoder_decoder_the_encoder_is_followed() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    config = transformers.T5Config(vocab_size=20, decoder_start_token_id=0, **sizes)
    model = transformers.T5ForConditionalGeneration(config)
    ids = torch.randint(1, 20, (8, 5))
    found = GeometryTracker({"input_ids": ids}, layers=1, metrics=METRICS).read(model)
    states = model.eval().get_encoder()(ids, output_hidden_states=True).hidden_states[1]
    assert list(found.values()) == pytest.approx(by_hand(states.flatten(0, 1)), rel=1e-4)


def test_named_layers_of_a_plain_module(probe: Tensor) -> None:
    model = network()
    tracker = GeometryTracker(probe, layers=("encoder.0", "encoder", "output", -1), metrics=METRICS)
    row = tracker.measure(model, step=7)
    assert model.training
    model.eval()
    wanted = {
        "encoder.0": model.encoder[0](probe),
        "encoder": model.encoder(probe),
        "output": model(probe),
        "-1": model(probe),
    }
    for layer, states in wanted.items():
        assert [row[f"{name}@{layer}"] for name in METRICS] == pytest.approx(by_hand(states), rel=1e-4)
    assert tracker.trajectory.n_parameters == sum(p.numel() for p in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


def test_functions_arrays_and_doubles(probe: Tensor) -> None:
    W = torch.randn(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    wanted = by_hand(probe.double() @ W)
    found = GeometryTracker(probe, metrics=METRICS).read(lambda X: (X.double() @ W).numpy())
    assert list(found.values()) == pytest.approx(wanted, rel=1e-9)
    layer = nn.Linear(6, 5, bias=False)
    layer.weight.data = W.T.float()
    in_double = GeometryTracker(probe.double().numpy(), metrics=METRICS, batch_size=7).read(layer)
    assert list(in_double.values()) == pytest.approx(wanted, rel=1e-4)


def test_half_precision_models_and_outer_autocast(probe: Tensor) -> None:
    model = network()
    wanted = GeometryTracker(probe, metrics=METRICS).read(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert GeometryTracker(probe, metrics=METRICS).read(model) == wanted
        assert torch.is_autocast_enabled("cpu")
    half = GeometryTracker(probe, metrics=METRICS).read(model.bfloat16())
    assert half == pytest.approx(wanted, rel=0.1)
    assert half != wanted


def test_layers_of_token_states_in_a_plain_module() -> None:
    """Ids in, mask known: padding is left out of (n, t, d) states whatever module made them."""

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(9, 6)

        def forward(self, input_ids: Tensor) -> Tensor:
            return self.table(input_ids).mean(dim=1)

    torch.manual_seed(0)
    model = Tagger()
    ids = torch.tensor([[1, 2, 3, 0], [4, 5, 0, 0], [6, 1, 2, 8]])
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]])
    batch = {"input_ids": ids, "attention_mask": mask}
    found = GeometryTracker(batch, layers="table", metrics=("mean_cosine", "self_similarity")).read(model)
    states, types = model.table(ids[mask.bool()]), ids[mask.bool()]
    wanted = by_hand(states, ("mean_cosine", "self_similarity"), token_types=types.tolist())
    assert list(found.values()) == pytest.approx(wanted, rel=1e-5)


def test_labels_belong_to_items_and_to_their_tokens(tiny_bert: Path, probe: Tensor) -> None:
    labels = ["a", "b", "a", "b", "a", "b"]
    model, tokens = bert(tiny_bert), tokenizer(tiny_bert)
    tracker = GeometryTracker(TEXTS, tokenizer=tokens, metrics=("silhouette",), labels=labels)
    each = [hidden_states(model, tokens, text)[0][-1][1:-1] for text in TEXTS]
    repeated = [label for label, states in zip(labels, each, strict=True) for _ in states]
    assert tracker.read(model)["silhouette"] == pytest.approx(
        iso.silhouette_score(torch.cat(each), repeated), rel=1e-4
    )
    plain = GeometryTracker(probe, metrics="clusters", labels=probe[:, 0] > 0)
    assert "silhouette" in plain.metrics


def test_wrappers_are_taken_off() -> None:
    layer = nn.Linear(2, 2)
    assert unwrapped(nn.DataParallel(layer)) is layer
    assert unwrapped(torch.compile(layer, backend="eager")) is layer


# ---------------------------------------------------------------- a run does not feel it


def losses(tracker: GeometryTracker | None, steps: int = 12) -> tuple[list[float], Network]:
    """A loop with dropout, batch norm, shuffling and momentum."""
    random.seed(0)
    np.random.seed(0)
    model = network()
    model.encoder[1].eval()  # frozen on purpose
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = torch.randn(64, 6, generator=torch.Generator().manual_seed(9))
    found = []
    for step in range(steps):
        rows = torch.randperm(64)[:16]
        loss = model(data[rows]).square().mean() + 0.01 * random.random() * np.random.random()
        optimizer.zero_grad()
        loss.backward()
        if tracker is not None:
            tracker(model, step, loss=loss)  # between backward and update: gradients must survive
        optimizer.step()
        found.append(loss.item())
    return found, model


def test_losses_and_weights_are_bit_identical_with_a_tracker(probe: Tensor) -> None:
    without, plain = losses(None)
    tracker = GeometryTracker(probe, layers=("encoder.3", "output"), metrics="all", every=1)
    watched, followed = losses(tracker)
    assert watched == without
    for name, value in plain.state_dict().items():
        assert torch.equal(value, followed.state_dict()[name]), name
    assert followed.encoder.training
    assert not followed.encoder[1].training
    assert tracker.trajectory["loss"].tolist() == without


def test_random_states_come_back_whatever_the_model_draws(probe: Tensor) -> None:
    class Noisy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.rand_like(x) * random.random() * np.random.random()

    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    wanted = (random.random(), np.random.random(), torch.rand(1))
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    tracker = GeometryTracker(probe, metrics="mean_cosine")
    first = tracker.read(Noisy())
    assert tracker.read(Noisy()) == first  # the same draws again
    assert (random.random(), np.random.random(), torch.rand(1)) == wanted


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_cuda_device_values_agree_and_its_random_state_stays(probe: Tensor) -> None:
    options: dict[str, Any] = {"layers": ("encoder", "output"), "metrics": METRICS}
    wanted = GeometryTracker(probe, **options).read(network())
    model = network().cuda()
    torch.cuda.manual_seed(4)
    state = torch.cuda.get_rng_state()
    found = GeometryTracker(probe, **options).read(model)
    assert found == pytest.approx(wanted, rel=1e-3)
    noisy = GeometryTracker(probe, metrics=METRICS)
    noisy.read(nn.Sequential(model, _Noise()))
    assert torch.equal(torch.cuda.get_rng_state(), state)


class _Noise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand_like(x)


def test_modes_come_back_even_after_an_error(probe: Tensor) -> None:
    model = network()
    state = torch.get_rng_state()
    with pytest.raises(iso.InputError, match="did not reach"):
        GeometryTracker(probe, layers="unused").read(model)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module._forward_hooks for module in model.modules())


def test_measured_every_so_many_steps(probe: Tensor) -> None:
    tracker = GeometryTracker(probe, every=5)
    assert tracker.overhead_share == 0
    losses(tracker)
    assert tracker.steps == [0, 5, 10]
    assert tracker(network(), 11) is None
    assert 0 < tracker.overhead_share <= 1
    row = tracker.measure(network(), step=5, loss=1.0)  # once more: the row is replaced
    assert tracker.steps == [0, 5, 10]
    assert tracker.trajectory["loss"][1] == row["loss"] == 1.0
    tracker.note(10, loss=2.5, accuracy=0.75)
    assert tracker.trajectory["loss"][2] == 2.5
    assert tracker.trajectory["accuracy"][2] == 0.75
    assert "effective_rank" in tracker.trajectory.summary()
    with pytest.raises(iso.InputError, match="no rows yet"):
        _ = GeometryTracker(probe).trajectory


def test_the_summary_counts_the_vectors_of_layers_of_any_width(probe: Tensor, tmp_path: Path) -> None:
    for layers, told in ((("encoder", "output"), "40 vectors × 3 to 8"), ("encoder", "40 vectors × 8")):
        tracker = GeometryTracker(probe, layers=layers, run=tmp_path / told)
        tracker.measure(network(), step=30)
        for found in (tracker.trajectory, iso.Trajectory.load(tmp_path / told / "trajectory.parquet")):
            assert str(found).startswith(f"{told}, 30 updates, 1 seed, ")
            assert f"{told}, 30 updates" in found._repr_html_()


def test_the_summary_counts_tokens_and_texts(tiny_bert: Path) -> None:
    tracker = GeometryTracker(TEXTS, tokenizer=tokenizer(tiny_bert), layers=(-1, "pooler"))
    tracker.measure(bert(tiny_bert), step=0)
    n_words = sum(len(text.split()) for text in TEXTS)
    d = bert(tiny_bert).config.hidden_size
    assert str(tracker.trajectory).startswith(f"{len(TEXTS)} to {n_words} vectors × {d}, 0 updates")


# ---------------------------------------------------------------- collapse


def shrinking(share: float) -> Callable[[Tensor], Tensor]:
    """All variance but that of the first dimension scaled down."""
    return lambda X: X * torch.tensor([1.0] + [share] * 5)


def test_stops_where_the_effective_rank_falls_under_its_bound(probe: Tensor) -> None:
    tracker = GeometryTracker(probe, metrics="effective_rank", stop_below={"effective_rank": 2.0}, every=1)
    shares = [1.0, 0.5, 0.2, 0.05]
    ranks = [iso.effective_rank(shrinking(share)(probe)) for share in shares]
    first = next(step for step, rank in enumerate(ranks) if rank < 2)
    assert first > 0
    for step, share in enumerate(shares):
        tracker(shrinking(share), step)
        assert tracker.should_stop == (step >= first)
    assert (
        tracker.stop_reason == f"effective_rank is {ranks[first]:.4g} after {first} steps, below its bound 2"
    )
    tracker.truncate(first - 1)
    assert not tracker.should_stop


def test_a_point_is_a_collapse_too_in_any_layer(probe: Tensor) -> None:
    model = network()
    tracker = GeometryTracker(
        probe, layers=("encoder", "output"), metrics=METRICS, stop_below={"effective_rank": 0.5}
    )
    tracker.measure(model, step=0)
    assert not tracker.should_stop
    nn.init.zeros_(model.head.weight)
    row = tracker.measure(model, step=1_000)
    assert math.isnan(row["effective_rank@output"])
    assert tracker.stop_reason is not None
    assert "effective_rank@output has no value after 1,000 steps" in tracker.stop_reason


# ---------------------------------------------------------------- resuming


def train(tracker: GeometryTracker, steps: range, state: dict[str, Any] | None = None) -> dict[str, Any]:
    """Some steps of a loop that can be taken up again; the state to do so after the fifth."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    kept: dict[str, Any] = {}
    for step in steps:
        torch.manual_seed(step)
        loss = model(torch.randn(16, 6)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        tracker(model, step, loss=loss)
        optimizer.step()
        if step == 5:
            states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            kept = copy.deepcopy({**states, "tracker": tracker.state_dict()})
    return kept


@pytest.mark.parametrize("by_folder", [True, False])
def test_a_resumed_run_has_the_rows_of_one_that_was_not_stopped(
    probe: Tensor, tmp_path: Path, by_folder: bool
) -> None:
    options: dict[str, Any] = {"layers": ("encoder", "output"), "every": 2}
    whole = GeometryTracker(probe, **options)
    train(whole, range(12))
    state = train(GeometryTracker(probe, run=tmp_path, **options), range(9))  # killed after step 8
    assert len(iso.Trajectory.load(tmp_path / "trajectory.parquet")) == 5
    if by_folder:
        resumed = GeometryTracker(probe, run=tmp_path, resume=True, **options)
        assert resumed.steps == [0, 2, 4, 6, 8]
    else:
        resumed = GeometryTracker(probe, **options)
        resumed.load_state_dict(state["tracker"])
    resumed.truncate(5)
    assert resumed.steps == [0, 2, 4]
    train(resumed, range(6, 12), state)
    for name, wanted in whole.trajectory.columns.items():
        np.testing.assert_array_equal(resumed.trajectory[name], wanted)
    if by_folder:
        kept = iso.Trajectory.load(tmp_path / "trajectory.parquet")
        np.testing.assert_array_equal(kept["loss"], whole.trajectory["loss"])
        assert np.isnan(kept["accuracy"]).all()
        assert kept.n_parameters == whole.trajectory.n_parameters
        assert [path.name for path in tmp_path.iterdir()] == ["trajectory.parquet"]


def test_the_state_goes_through_torch_save(probe: Tensor, tmp_path: Path) -> None:
    tracker = GeometryTracker(probe, every=4)
    losses(tracker)
    torch.save(tracker.state_dict(), tmp_path / "state.pt")
    other = GeometryTracker(probe, every=4)
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert other.steps == [0, 4, 8]
    np.testing.assert_array_equal(other.trajectory["mean_cosine"], tracker.trajectory["mean_cosine"])


def test_what_cannot_be_resumed_is_refused(probe: Tensor, tmp_path: Path) -> None:
    tracker = GeometryTracker(probe, run=tmp_path)
    tracker.measure(network(), step=0)
    with pytest.raises(iso.InputError, match="already has a trajectory"):
        GeometryTracker(probe, run=tmp_path)
    with pytest.raises(iso.InputError, match=r"the rows have the metrics .* tracker: lid"):
        GeometryTracker(probe, run=tmp_path, resume=True, metrics="lid")
    with pytest.raises(iso.InputError, match="have seed 0; expected the tracker's, 1"):
        GeometryTracker(probe, run=tmp_path, resume=True, seed=1)
    with pytest.raises(iso.InputError, match="no columns and rows"):
        tracker.load_state_dict({})
    (tmp_path / "file").write_text("")
    with pytest.raises(iso.FileError, match="cannot be created"):
        GeometryTracker(probe, run=tmp_path / "file" / "run")


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("step", [-5, 2.5, 10.0, "5", None, True, math.nan])
def test_a_step_is_a_whole_number(probe: Tensor, step: Any) -> None:
    tracker = GeometryTracker(probe, every=5)
    for call in (lambda: tracker(network(), step), lambda: tracker.measure(network(), step=step)):
        with pytest.raises(iso.InputError, match=rf"`step` must be a whole number .*, got {step!r}"):
            call()
    assert tracker.steps == []


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, torch.tensor])
def test_whole_numbers_of_every_kind_are_steps(probe: Tensor, kind: Callable[[int], Any]) -> None:
    tracker = GeometryTracker(probe, every=5)
    assert tracker(network(), kind(4)) is None
    row = tracker(network(), kind(5))
    assert row is not None
    assert type(row["step"]) is int
    assert tracker.steps == [5]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.ones(3), r"is a tensor of shape \(3,\); expected a number"),
        (np.ones((2, 1)), r"is a tensor of shape \(2, 1\)"),
        (torch.ones(0), r"is a tensor of shape \(0,\)"),
        ("0.5", "must be a number .*, got '0.5'"),
        ([0.5], r"must be a number .*, got \[0.5\]"),
    ],
)
def test_a_loss_is_one_number(probe: Tensor, value: Any, message: str) -> None:
    tracker = GeometryTracker(probe, every=5)
    for name in ("loss", "accuracy"):
        with pytest.raises(iso.InputError, match=f"`{name}` {message}"):
            tracker(network(), 15, **{name: value})
        assert tracker.steps == []
        assert tracker(network(), 14, **{name: value}) is None  # not looked at: that would wait for a device
    tracker.measure(network(), step=15)
    with pytest.raises(iso.InputError, match=f"`loss` {message}"):
        tracker.note(15, loss=value)


@pytest.mark.parametrize("value", [torch.full((1, 1), 0.5), np.array([0.5]), np.float32(0.5)])
def test_a_tensor_of_one_is_a_number(probe: Tensor, value: Any) -> None:
    row = GeometryTracker(probe).measure(network(), step=0, loss=value)
    assert row["loss"] == 0.5


def test_a_probe_the_model_does_not_take_is_told_with_the_models_own_error(
    probe: Tensor, tiny_bert: Path
) -> None:
    told = (
        r"^the model failed on the probe of shape \(40, 5\): mat1 and mat2 .*; expected inputs that Network"
    )
    model = network()
    with pytest.raises(iso.InputError, match=told) as caught:
        GeometryTracker(probe[:, :5]).read(model)
    assert type(caught.value.__cause__) is RuntimeError
    assert model.training
    with pytest.raises(iso.InputError, match=r"the model failed on the probe: .*BertModel accepts") as caught:
        GeometryTracker({"input_ids": torch.ones(3, 30, dtype=torch.long)}).read(bert(tiny_bert))
    assert type(caught.value.__cause__) is RuntimeError


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, NotImplementedError, KeyError, AssertionError])
def test_other_errors_of_the_model_pass_as_they_are(probe: Tensor, error: type[Exception]) -> None:
    def failing(_: Tensor) -> Tensor:
        raise error("mine")

    with pytest.raises(error, match="mine"):
        GeometryTracker(probe).read(failing)


def test_bounds_on_what_is_not_followed_name_what_is(probe: Tensor) -> None:
    for metrics in (("isoscore",), ("isoscore", "lid")):
        with raises(argument="stop_below", got="silhouette", wanted=f"bounds on {', '.join(metrics)}$"):
            GeometryTracker(probe, metrics=metrics, stop_below={"silhouette": 1.0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "`every` must be .*, got 0"),
        ({"every": 2.5}, "`every` must be .*, got 2.5"),
        ({"layers": ()}, "`layers` is empty"),
        ({"layers": (1.5,)}, "`layers` must be .*, got 1.5"),
        ({"layers": ("a", "a")}, "a layer twice"),
        ({"pooling": "sum"}, "`pooling` must be .*, got 'sum'"),
        ({"metrics": "isoscor"}, "Did you mean isoscore"),
        ({"metrics": "silhouette"}, "silhouette needs labels"),
        ({"metrics": "clusters"}, "none that can be computed .*: clusters"),
        ({"metrics": "self_similarity"}, "token_types, which only token states have"),
        ({"metrics": "alignment"}, "partners, which a tracker does not have"),
        ({"contextual": True}, "which only token states have"),
        ({"stop_below": {"lid": 3.0}}, "`stop_below` must be bounds on .*, got 'lid'"),
        ({"stop_below": {"mean_cosine": "x"}}, "must be a finite number"),
        ({"labels": [1, 2]}, "labels"),
        ({"seed": -1}, "`seed` must be a whole number"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
    ],
)
def test_bad_settings(options: dict[str, Any], message: str, probe: Tensor) -> None:
    with pytest.raises(iso.InputError, match=message):
        GeometryTracker(probe, **options)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "`probe` is empty"),
        ({}, "`probe` is empty"),
        (torch.zeros(0, 3), "at least 2 items"),
        ("text", "`probe` must be"),
        (["a", " "], r"`probe\[1\]` is empty"),
        (["a", 3], r"`probe\[1\]` must be a string"),
        (object(), "cannot be converted to a tensor"),
        ({"input_ids": torch.ones(2, 3), "attention_mask": torch.ones(3, 3)}, "several lengths"),
        (
            {"input_ids": torch.ones(2, 2), "attention_mask": torch.tensor([[1, 0], [0, 0]])},
            r"\['attention_mask'\]\[1\]` masks every token",
        ),
    ],
)
def test_bad_probes(inputs: Any, message: str) -> None:
    with pytest.raises(iso.InputError, match=message):
        GeometryTracker(inputs)


def test_layers_that_do_not_exist_are_named_with_those_that_do(probe: Tensor, tiny_bert: Path) -> None:
    with pytest.raises(iso.InputError, match=r"must be one of 'encoder', .*, got 'decoder'"):
        GeometryTracker(probe, layers="decoder").read(network())
    with pytest.raises(iso.InputError, match="`layers` has 2, but Network returns no hidden states"):
        GeometryTracker(probe, layers=2).read(network())
    tokens, model = tokenizer(tiny_bert), bert(tiny_bert)
    with pytest.raises(iso.InputError, match=r"`layers` must be numbers from 0 .* to 2 for BertModel, got 3"):
        GeometryTracker(TEXTS, tokenizer=tokens, layers=3).read(model)
    with pytest.raises(iso.InputError, match=r"must be one of 'embeddings', .* more, got 'heads'"):
        GeometryTracker(TEXTS, tokenizer=tokens, layers="heads").read(model)
    with pytest.raises(iso.InputError, match="the input is a tensor, but BertModel takes inputs by name"):
        GeometryTracker(torch.ones(3, 4)).read(model)
    with raises(iso.InputError, argument="probe", hint="tokenizer"):
        GeometryTracker(TEXTS).read(model)
    model.forward = lambda **_: {"last_hidden_state": torch.ones(6, 3, 16)}
    with pytest.raises(iso.InputError, match="returned no hidden states"):
        GeometryTracker(TEXTS, tokenizer=tokens).read(model)


def test_states_no_metric_is_taken_of(probe: Tensor, tiny_bert: Path) -> None:
    def broken(X: Tensor) -> Tensor:
        return torch.where(torch.arange(len(X))[:, None] == 3, torch.nan, X)

    with pytest.raises(
        iso.NotFiniteError, match="layer -1 has NaN or infinity on the probe after 1,200 steps"
    ):
        GeometryTracker(probe).measure(broken, step=1200)
    with pytest.raises(iso.ShapeError, match="has 40 vectors of 1 dimension;"):
        GeometryTracker(probe).read(lambda X: X[:, :1])
    with pytest.raises(iso.ShapeError, match="has 1 vector of 6 dimensions"):
        GeometryTracker(probe[:1]).read(lambda X: X)
    with pytest.raises(iso.ShapeError, match=r"has shape \(40, 2, 3, 1\) for 40 items"):
        GeometryTracker(probe).read(lambda X: X.reshape(40, 2, 3, 1))
    with pytest.raises(iso.InputError, match="is a dict; expected a tensor"):
        GeometryTracker(probe).read(lambda X: {"other": X})
    model, tokens = bert(tiny_bert), tokenizer(tiny_bert)
    with pytest.raises(iso.InputError, match="'pooler' has one vector an item, and contextual metrics"):
        GeometryTracker(TEXTS, tokenizer=tokens, layers="pooler", contextual=True).read(model)


def test_attention_sinks_are_left_out_in_a_second_view(tiny_gpt: Path, tiny_bert: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModel.from_pretrained(tiny_gpt).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(tiny_gpt)
    tracker = GeometryTracker(TEXTS, tokenizer=tokens, metrics="mean_cosine", contextual=True, sinks=True)
    found = tracker.measure(model, step=0)
    with torch.no_grad():
        states = [model(**tokens(text, return_tensors="pt")).last_hidden_state[0] for text in TEXTS]
    n = sum(map(len, states))
    without = torch.cat([one[1:] for one in states])  # the first token of each text is the sink
    assert found["sink_share"] == pytest.approx(len(TEXTS) / n)
    assert found["mean_cosine"] == pytest.approx(iso.mean_cosine(torch.cat(states)), rel=1e-4)
    assert found["mean_cosine_without_sinks"] == pytest.approx(iso.mean_cosine(without), rel=1e-4)
    assert found["mean_norm_without_sinks"] == pytest.approx(float(without.norm(dim=1).mean()), rel=1e-4)
    assert found["mean_cosine"] != pytest.approx(found["mean_cosine_without_sinks"], rel=0.02)
    assert tracker.trajectory.metrics[-1] == "sink_share"
    plain = GeometryTracker(TEXTS, tokenizer=tokenizer(tiny_bert), layers=(0, -1), sinks=True)
    values = plain.read(bert(tiny_bert))
    assert values["sink_share@0"] == 0
    assert values["mean_cosine@-1"] == values["mean_cosine_without_sinks@-1"]


def test_sinks_are_found_among_token_states_only(probe: Tensor, tiny_bert: Path) -> None:
    with pytest.raises(iso.InputError, match="`sinks` need token states"):
        GeometryTracker(probe, sinks=True).read(network())
    with pytest.raises(iso.InputError, match="`sinks` need token states"):
        GeometryTracker(TEXTS, tokenizer=tokenizer(tiny_bert), pooling="mean", sinks=True).read(
            bert(tiny_bert)
        )


@pytest.mark.parametrize("hook", ["on_train_begin", "setup"])
def test_a_trainer_that_takes_a_tracker_for_a_callback_is_told_how_to_get_one(hook: str) -> None:
    tracker = iso.GeometryTracker(torch.randn(8, 3))
    with pytest.raises(AttributeError, match=r"geometry_callback\(tracker\).*lightning_callback\(tracker\)"):
        getattr(tracker, hook)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = tracker.nonsense
    assert not hasattr(tracker, hook)
    assert copy.deepcopy(tracker).columns == tracker.columns


def test_what_is_guessed_of_a_tracker() -> None:
    tracker = iso.GeometryTracker(torch.randn(8, 3), every=5)
    model = nn.Linear(3, 2)
    assert repr(tracker) == "GeometryTracker(8 items, layers -1, every 5 steps, 0 rows so far)"
    with pytest.raises(AttributeError, match=r"tracker\.trajectory\.to_pandas"):
        tracker.to_pandas()
    with raises(iso.InputError, argument="step", hint=r"tracker\(model, step\)"):
        tracker(0, model)
