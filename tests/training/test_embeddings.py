"""The engine against a plain torch loop, scikit-learn's silhouette and the published IsoScore package."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_score
from torch import Tensor, nn

import isoscope as iso
from isoscope.training.session import _batch_size


@dataclass
class Plain:
    """What the plain loop saw."""

    losses: list[float]
    accuracies: list[float]
    tables: list[np.ndarray]


def plain_loop(
    X: np.ndarray,
    loss_of: Callable[[Tensor], Tensor],
    right: Callable[[Tensor], Tensor],
    n_labels: int,
    *,
    seed: int,
    steps: int,
    pairs: np.ndarray | None = None,
    bias: bool = True,
    hidden: tuple[int, ...] = (),
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam,
    learning_rate: float = 1e-3,
) -> Plain:
    """The experiment as anyone would write it: nn.Embedding, nn.Linear, torch.optim, one seed at a time."""
    torch.manual_seed(seed)
    widths = [X.shape[1] * (1 if pairs is None else pairs.shape[1]), *hidden, n_labels]
    layers: list[nn.Module] = []
    for n_in, n_out in itertools.pairwise(widths):
        layers += [nn.Linear(n_in, n_out, bias=bias, dtype=torch.from_numpy(X).dtype), nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    table = nn.Embedding.from_pretrained(torch.from_numpy(X.copy()), freeze=False)
    rows = torch.arange(len(X))[:, None] if pairs is None else torch.from_numpy(pairs)
    step = optimizer([table.weight, *network.parameters()], lr=learning_rate)
    seen = Plain([], [], [])
    for _ in range(steps + 1):
        scores = network(table(rows).flatten(1))
        loss = loss_of(scores)
        seen.losses.append(loss.item())
        seen.accuracies.append(right(scores).double().mean().item())
        seen.tables.append(table.weight.detach().numpy().copy())
        step.zero_grad()
        loss.backward()
        step.step()
    return seen


def published_isoscore(X: np.ndarray) -> float:
    from IsoScore.IsoScore import IsoScore

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(IsoScore(torch.from_numpy(X)))


def blobs(rng: np.random.Generator, n: int, d: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(n) % K
    X = rng.normal(size=(n, d)) * np.linspace(1.5, 0.5, d) + 0.7 * rng.normal(size=(K, d))[y]
    return X.astype(np.float32), y


def check(run: iso.Trajectory, seed: int, plain: Plain, items: Callable[[np.ndarray], np.ndarray], y) -> None:
    own = run["seed"] == seed
    assert run["step"][own].tolist() == list(range(len(plain.losses)))
    np.testing.assert_allclose(run["loss"][own], plain.losses, rtol=1e-5)
    np.testing.assert_allclose(run["accuracy"][own], plain.accuracies, atol=1e-9)
    isoscores = [published_isoscore(table) for table in plain.tables]
    silhouettes = [silhouette_score(items(table).astype(np.float64), y) for table in plain.tables]
    np.testing.assert_allclose(run["isoscore"][own], isoscores, rtol=1e-5)
    np.testing.assert_allclose(run["silhouette"][own], silhouettes, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        run.tables[run.seeds.index(seed)].numpy(), plain.tables[-1], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("bias", [True, False])
def test_one_label_an_item(rng, bias: bool) -> None:
    X, y = blobs(rng, 120, 12, 3)
    target = torch.from_numpy(y)
    run = iso.train_embeddings(X, y, steps=25, seeds=[3, 11], bias=bias)
    for seed in (3, 11):
        plain = plain_loop(
            X,
            lambda scores: nn.functional.cross_entropy(scores, target),
            lambda scores: scores.argmax(1) == target,
            3,
            seed=seed,
            steps=25,
            bias=bias,
        )
        check(run, seed, plain, lambda table: table, y)
    assert run.n_parameters == 120 * 12 + 3 * (12 + bias)


@pytest.mark.parametrize("columns", [2, 3])
def test_pairs_share_a_table(rng, columns: int) -> None:
    X, _ = blobs(rng, 40, 6, 2)
    pairs = rng.integers(0, 40, size=(90, columns))
    pairs[:30, 0] = 0  # one row in many pairs
    y = np.array(["no", "yes", "maybe"])[np.arange(90) % 3]
    target = torch.from_numpy(np.unique(y, return_inverse=True)[1])
    run = iso.train_embeddings(X, y, pairs=pairs, steps=20, seeds=[5])
    plain = plain_loop(
        X,
        lambda scores: nn.functional.cross_entropy(scores, target),
        lambda scores: scores.argmax(1) == target,
        3,
        seed=5,
        steps=20,
        pairs=pairs,
    )
    check(run, 5, plain, lambda table: table[pairs].reshape(90, -1), y)
    assert run.n_parameters == 40 * 6 + 3 * (columns * 6 + 1)


def test_sets_of_labels(rng) -> None:
    X, _ = blobs(rng, 100, 8, 2)
    named = ["noun", "verb", "adjective", "adverb"]
    sets = [{named[i % 4], named[(i * i) % 3]} for i in range(100)]
    names = sorted(named)
    indicator = np.array([[name in own for name in names] for own in sets], dtype=np.float32)
    clusters = ["+".join(sorted(own)) for own in sets]
    target = torch.from_numpy(indicator)
    plain = plain_loop(
        X,
        lambda scores: nn.functional.binary_cross_entropy_with_logits(scores, target),
        lambda scores: ((scores > 0) == (target > 0)).all(1),
        4,
        seed=2,
        steps=20,
    )
    run = iso.train_embeddings(X, sets, steps=20, seeds=[2])
    check(run, 2, plain, lambda table: table, clusters)
    assert run.n_parameters == 100 * 8 + 4 * 9
    same = iso.train_embeddings(X, indicator.astype(int), steps=20, seeds=[2])
    np.testing.assert_array_equal(same["loss"], run["loss"])
    np.testing.assert_allclose(same["silhouette"], run["silhouette"], atol=1e-7)


@pytest.mark.parametrize("hidden", [(10,), (10, 7)])
def test_hidden_layers_are_trained_and_followed(rng, hidden: tuple[int, ...]) -> None:
    X, y = blobs(rng, 80, 6, 2)
    target = torch.from_numpy(y)
    run = iso.train_embeddings(X, y, steps=15, seeds=[4], hidden=hidden)
    plain = plain_loop(
        X,
        lambda scores: nn.functional.cross_entropy(scores, target),
        lambda scores: scores.argmax(1) == target,
        2,
        seed=4,
        steps=15,
        hidden=hidden,
    )
    check(run, 4, plain, lambda table: table, y)
    torch.manual_seed(4)
    first = nn.Linear(6, 10)
    activations = torch.relu(first(torch.from_numpy(X))).detach().numpy()
    assert run["hidden1_isoscore"][0] == pytest.approx(published_isoscore(activations), rel=1e-5)
    assert run["hidden1_silhouette"][0] == pytest.approx(silhouette_score(activations, y), abs=1e-6)
    assert f"hidden{len(hidden)}_silhouette" in run.metrics
    assert "hidden3_silhouette" not in run.metrics
    sizes = [6, *hidden, 2]
    assert run.n_parameters == 80 * 6 + sum((a + 1) * b for a, b in itertools.pairwise(sizes))


def test_activation_changes_the_hidden_layer(rng) -> None:
    X, y = blobs(rng, 40, 5, 2)
    found = {
        name: iso.train_embeddings(X, y, steps=2, seeds=1, hidden=[4], activation=name)["loss"][-1]
        for name in ("relu", "gelu", "tanh", "sigmoid")
    }
    assert len(set(found.values())) == 4


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [("sgd", torch.optim.SGD), ("adamw", torch.optim.AdamW), ("rmsprop", torch.optim.RMSprop)],
)
def test_other_optimizers(rng, name: str, optimizer: type[torch.optim.Optimizer]) -> None:
    X, y = blobs(rng, 50, 5, 2)
    target = torch.from_numpy(y)
    plain = plain_loop(
        X,
        lambda scores: nn.functional.cross_entropy(scores, target),
        lambda scores: scores.argmax(1) == target,
        2,
        seed=0,
        steps=10,
        optimizer=optimizer,
        learning_rate=0.02,
    )
    run = iso.train_embeddings(X, y, steps=10, seeds=1, optimizer=name, learning_rate=0.02)
    check(run, 0, plain, lambda table: table, y)


def test_betas_reach_adam(rng) -> None:
    X, y = blobs(rng, 40, 5, 2)
    usual, other = (
        iso.train_embeddings(X, y, steps=5, seeds=1, betas=betas)["loss"][-1]
        for betas in ((0.9, 0.999), (0.5, 0.9))
    )
    assert usual != other


@pytest.mark.slow
def test_seeds_as_one_batch_equal_seeds_alone(rng, monkeypatch) -> None:
    X, y = blobs(rng, 70, 9, 3)
    pairs = rng.integers(0, 70, size=(60, 2))
    alone = iso.train_embeddings(X, y[:60], pairs=pairs, steps=30, seeds=4)
    monkeypatch.setattr("isoscope.training.session._batch_size", lambda problem: 3)
    together = iso.train_embeddings(X, y[:60], pairs=pairs, steps=30, seeds=4)
    for name in alone.columns:
        np.testing.assert_allclose(together[name], alone[name], rtol=1e-5, atol=1e-6)


def test_half_precision_trains_in_float32_and_float64_stays(rng) -> None:
    X, y = blobs(rng, 40, 5, 2)
    assert iso.train_embeddings(X.astype(np.float16), y, steps=2, seeds=1).tables.dtype == torch.float32
    assert iso.train_embeddings(X.astype(np.float64), y, steps=2, seeds=1).tables.dtype == torch.float64


def test_the_callers_vectors_and_random_state_are_left_alone(rng) -> None:
    X, y = blobs(rng, 40, 5, 2)
    before = X.copy()
    torch.manual_seed(99)
    expected = torch.rand(3)
    torch.manual_seed(99)
    iso.train_embeddings(X, y, steps=3, seeds=2)
    assert torch.equal(torch.rand(3), expected)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("made_inside", [False, True])
@pytest.mark.parametrize("how", ["rows", "pairs", "labels", "sets", "space", "triplet"])
def test_callers_who_have_switched_gradients_off(rng, mode, made_inside: bool, how: str) -> None:
    X, y = blobs(rng, 40, 5, 2)

    def given() -> tuple[dict, dict]:
        """Clones: what is computed under inference mode is a tensor autograd may not keep."""
        points, codes = torch.from_numpy(X).clone(), torch.from_numpy(y).clone()
        if how == "pairs":
            return {"X": points, "y": codes}, {"pairs": torch.stack([codes, codes.flip(0)], dim=1).clone()}
        if how == "labels":
            return {"X": points, "y": iso.Labels(codes, (0, 1))}, {}
        if how == "sets":
            return {"X": points, "y": torch.stack([codes, 1 - codes], dim=1)}, {}
        if how == "space":
            return {"X": iso.Space(points, labels=iso.Labels(codes, (0, 1)))}, {}
        return {"X": points, "y": codes}, {"objective": "triplet"} if how == "triplet" else {}

    outside, options = given()
    expected = iso.train_embeddings(**outside, **options, steps=3, seeds=1)
    with mode():
        if made_inside:
            outside, options = given()
        run = iso.train_embeddings(**outside, **options, steps=3, seeds=1)
        assert not torch.is_grad_enabled(), "the caller's own mode is as it was"
    assert run["loss"].tolist() == expected["loss"].tolist()
    assert run["silhouette"].tolist() == expected["silhouette"].tolist()
    assert not run.tables.is_inference()


def test_one_seed_at_a_time_on_the_cpu(rng) -> None:
    from isoscope.training.problem import Problem

    assert _batch_size(Problem.of(*blobs(rng, 20, 4, 2))) == 1


def test_a_few_updates_of_polarity() -> None:
    """Real sentences through a real encoder; where data and model are."""
    if "ISOSCOPE_DATA" not in os.environ:
        pytest.skip("ISOSCOPE_DATA is not set: no sentence polarity")
    pytest.importorskip("sentence_transformers", reason="no encoder installed", exc_type=ImportError)
    from isoscope.models import encode
    from isoscope_papers.corpora import load_corpus

    corpus = load_corpus("polarity")
    assert len(corpus) == 10_662
    some = np.r_[:150, -150:0]  # negative ones, positive ones
    try:
        X = encode([corpus.columns[0][place] for place in some]).numpy()
    except iso.FileError as reason:
        pytest.skip(f"no model: {reason}")
    y = np.array(corpus.labels)[some]
    target = torch.from_numpy(np.unique(y, return_inverse=True)[1])
    plain = plain_loop(
        X,
        lambda scores: nn.functional.cross_entropy(scores, target),
        lambda scores: scores.argmax(1) == target,
        2,
        seed=0,
        steps=5,
        bias=False,
    )
    run = iso.train_embeddings(X, y, steps=5, seeds=1, bias=False)
    check(run, 0, plain, lambda table: table, y)
    assert run["silhouette"][-1] > run["silhouette"][0]
    assert run["isoscore"][-1] < run["isoscore"][0]


def test_one_hidden_layer_may_be_a_number() -> None:
    X = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    one, many = (
        iso.train_embeddings(X, [i % 2 for i in range(20)], steps=2, seeds=1, hidden=hidden, progress=False)
        for hidden in (3, (3,))
    )
    assert one["hidden1_isoscore"].tolist() == many["hidden1_isoscore"].tolist()
