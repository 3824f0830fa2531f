"""Clusters and Manifolds: what is measured of a layer, claims on figures made for them, runs kept."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.errors import InputError
from isoscope.labels import as_labels
from isoscope_papers.manifolds.figures import spread
from isoscope_papers.manifolds.findings import findings, lid_row, mean_dimensions
from isoscope_papers.manifolds.layers import (
    Cosines,
    Followed,
    LayerFigures,
    LayerParts,
    SmallestCluster,
    followed,
    main_axes,
    mean_lids,
    measure_layer,
    measure_parts,
)
from isoscope_papers.manifolds.options import Options
from isoscope_papers.manifolds.run import Outcome, StaticFigures, keep_outcome, run_setup
from isoscope_papers.manifolds.study import STUDY, sections
from isoscope_papers.runs import as_plain, from_plain
from isoscope_papers.study import Place
from isoscope_papers.verdict import Verdict


def layer(**changes: object) -> LayerFigures:
    """Return a layer of which every claim holds, unless it is changed."""
    plain = LayerFigures(
        n_tokens=1000,
        cosines=Cosines(0.95, 0.97, 0.94, 0.97),
        n_clusters=3,
        silhouette=0.6,
        silhouettes={"2": 0.2, "3": 0.6},
        adjusted=Cosines(0.01, 0.02, 0.0, 0.02),
        n_skipped=0,
        lid=10.0,
        lid_squared=5.0,
        lid_cosine=5.5,
        top_variance=0.8,
        position=Followed(0.1, 0.9),
        log_frequency=Followed(0.4, 0.9),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def outcome(
    layers: list[LayerFigures], without: list[LayerFigures] | None = None, name: str = "a-gpt"
) -> Outcome:
    about = {
        "layers": list(range(len(layers))), "n_tokens": 1000, "n_types": 90, "n_dims": 16, "device": "cpu",
        "source": "wikitext2_test.txt.gz", "window": 512, "seconds": 2.0,
    }  # fmt: skip
    sinks = ("position 0 (norm 9,000)",) if without else ()
    return Outcome(name, name, name, False, about, sinks, tuple(layers), tuple(without or ()))


def table(lid: float, name: str = "static") -> Outcome:
    figures = StaticFigures(400_000, 50, 0.1, lid, lid / 2, lid / 2)
    return Outcome(name, name, name, True, {"device": "cpu"}, static=figures)


NEVER = {"lid-by-layer", "lid-contextual", "lid-static", "cluster-pictures"}  # the paper's own models only


def verdicts(*outcomes: Outcome) -> dict[tuple[str, str], Verdict]:
    """Return the verdict by subject and claim, of claims that can be tested on other models."""
    found = {(one.subject, one.claim.partition("/")[2]): one.verdict for one in findings(outcomes)}
    return {key: verdict for key, verdict in found.items() if key[1] not in NEVER}


def test_every_claim_can_hold() -> None:
    found = verdicts(outcome([layer()] * 4), table(20.0))
    assert len(found) == 11
    assert set(found.values()) == {Verdict.HELD}


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("narrow-cone", {"cosines": Cosines(0.85, 0.7, 0.2, 0.7)}),
        ("s-intra-high", {"cosines": Cosines(0.95, 0.39, 0.5, 0.4)}),
        ("isolated-clusters", {"silhouette": 0.49}),
        ("adjusted-inter", {"adjusted": Cosines(-0.06, 0.0, 0.0, 0.0)}),
        ("adjusted-intra", {"adjusted": Cosines(0.0, 0.98, 0.0, 0.0)}),
        ("lid-lower-euclidean", {"lid": 21.0}),
        ("lid-lower", {"lid_cosine": 10.5}),
        ("low-dimensional", {"top_variance": 0.4}),
        ("frequency-types", {"log_frequency": Followed(0.9, 0.4)}),
        ("position-structure", {"position": Followed(0.9, 0.4)}),
    ],
)
def test_each_claim_can_fail_alone(claim: str, changes: dict[str, object]) -> None:
    bad, good = layer(**changes), layer()
    found = verdicts(outcome([good, bad, bad]), table(20.0))
    assert found.pop(("a-gpt", claim)) is Verdict.NOT_HELD
    assert set(found.values()) == {Verdict.HELD}
    assert verdicts(outcome([good, bad, good]), table(20.0))["a-gpt", claim] is Verdict.CONDITION


def test_both_cosines_are_claims_of_their_own() -> None:
    low = layer(cosines=Cosines(0.19, 0.7, 0.2, 0.7))
    found = verdicts(outcome([low] * 3))
    assert found["a-gpt", "s-inter-high"] is Verdict.NOT_HELD
    assert found["a-gpt", "s-intra-high"] is Verdict.HELD


def test_a_fall_of_s_intra_that_ends_far_from_zero_is_a_condition() -> None:
    falls = layer(adjusted=Cosines(0.0, 0.5, 0.0, 0.0))
    found = {one.claim: one for one in findings([outcome([falls] * 3)])}["manifolds/adjusted-intra"]
    assert found.verdict is Verdict.CONDITION
    assert found.condition == "falls in layers 1–2, near zero in none; mean 0.970 → 0.500"


def test_a_tuned_encoder_says_nothing_of_high_cosines_between_types() -> None:
    low = outcome([layer(cosines=Cosines(0.5, 0.7, 0.2, 0.7))] * 3)
    for name, verdicts in (
        ("a-bert", (Verdict.NOT_HELD, Verdict.HELD)),
        ("minilm", (Verdict.NOT_TESTABLE, Verdict.NOT_TESTABLE)),
    ):
        found = {one.claim: one for one in findings([replace(low, setup=name)])}
        cone, high = found["istar/narrow-cone"], found["manifolds/s-inter-high"]
        assert (cone.verdict, high.verdict) == verdicts
        assert cone.ours == "0.500, high but not near 1 (0 of 2 layers)"


def test_of_what_the_smallest_of_isolated_clusters_is() -> None:
    the, sinks = (
        layer(smallest=SmallestCluster(0.1, share, "Ġthe", 1 - share), silhouette=0.9) for share in (0.1, 0.9)
    )
    made = outcome([layer(), the, sinks, layer(silhouette=0.1)])
    found = {one.claim: one for one in findings([made])}["manifolds/isolated-clusters"]
    assert found.condition == "in layers 1–2; the smallest is mostly 'the' or attention sinks"


def test_what_is_said_of_gpt_is_not_judged_on_encoders() -> None:
    flat = layer(top_variance=0.1, position=Followed(0.0, 0.0))
    found = {one.claim: one for one in findings([outcome([flat] * 3, name="a-bert")])}
    for claim in ("low-dimensional", "position-structure", "frequency-types"):
        assert found[f"manifolds/{claim}"].verdict is Verdict.NOT_TESTABLE
        assert "GPT models only" in found[f"manifolds/{claim}"].condition
    assert found["manifolds/low-dimensional"].ours == "0.100 (0 of 2 layers)"


def test_the_embedding_layer_does_not_count() -> None:
    odd = layer(cosines=Cosines(0.0, 0.0, 0.0, 0.0), lid=99.0)
    assert set(verdicts(outcome([odd, layer(), layer()]), table(20.0)).values()) == {Verdict.HELD}


def test_only_the_first_quarter_is_asked_of_the_manifold() -> None:
    late = layer(position=Followed(0.0, 0.0))
    early = [layer()] * 4  # the embedding layer and three blocks of twelve
    claim = ("a-gpt", "position-structure")
    assert verdicts(outcome([*early, *[late] * 9]))[claim] is Verdict.HELD
    assert verdicts(outcome([*early[:3], *[late] * 10]))[claim] is Verdict.CONDITION


def test_sinks_are_a_view_of_their_own() -> None:
    found = verdicts(outcome([layer()] * 3, [layer(cosines=Cosines(0.1, 0.2, 0.1, 0.2))] * 3))
    assert found["a-gpt", "s-inter-high"] is Verdict.HELD
    assert found["a-gpt, no sinks", "s-inter-high"] is Verdict.NOT_HELD


def test_undefined_figures_make_no_claim() -> None:
    nothing = Cosines(None, None, None, None)
    bare = layer(
        cosines=nothing, adjusted=nothing, silhouette=None, lid=None, lid_cosine=None, position=None,
        log_frequency=None,
    )  # fmt: skip
    assert {claim for _, claim in verdicts(outcome([bare] * 3), table(20.0))} == {"low-dimensional"}


def test_the_figures_have_the_range_the_count_and_the_layers() -> None:
    layers = [layer(), layer(), layer(cosines=Cosines(0.1, 0.7, 0.1, 0.7))]
    found = next(one for one in findings([outcome(layers)]) if one.claim == "manifolds/s-inter-high")
    assert found.ours == "0.100 … 0.950 (1 of 2 layers)"
    assert found.condition == "in layer 1"


def parts(**changes: float) -> LayerParts:
    plain = LayerParts(0.1, 0.95, 0.5, 0.4, 0.0, 3, 0.2, 0.3, 0.99)
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_claims_on_the_parts_of_a_space() -> None:
    main = outcome([layer(lid=float(n)) for n in range(8)])
    made = replace(main, layers=(), parts=tuple(parts(isoscore_within=0.9 + 0.01 * n) for n in range(8)))
    found = verdicts(main, made)
    for claim in ("contextual-anisotropic", "symbols-words-gpt", "global-view", "lid-local-anisotropy"):
        assert found["a-gpt", claim] is Verdict.HELD
    assert found["a-gpt", "nearly-perfect"] is Verdict.HELD
    low = replace(made, parts=(parts(isoscore=0.5, isoscore_within=0.3, s_inter_centred=0.1, probe=0.6),) * 8)
    found = verdicts(low)
    for claim in ("contextual-anisotropic", "symbols-words-gpt", "global-view", "nearly-perfect"):
        assert found["a-gpt", claim] is Verdict.NOT_HELD
    low = replace(made, parts=tuple(parts(isoscore_within=0.1 * n) for n in range(8)))
    assert verdicts(main, low)["a-gpt", "nearly-perfect"] is Verdict.CONDITION  # by the paper's own measure
    assert STUDY.as_dict([made])["parts"]["a-gpt"][0]["probe"] == 0.99


def test_published_lid_is_compared_for_the_papers_own_models() -> None:
    about = {"n_tokens": 1_000_000, "layers": [0, 1], "n_dims": 768}
    layers = (layer(lid_cosine=99.0), layer(lid_cosine=7.3))
    theirs = Outcome("gpt2", "openai-community/gpt2", "gpt2", False, about, layers=layers)
    assert lid_row(theirs).verdict is Verdict.HELD
    assert lid_row(theirs).published == 7.0
    assert lid_row(replace(theirs, layers=(layer(), layer(lid_cosine=9.0)))).verdict is Verdict.NOT_HELD
    assert lid_row(replace(theirs, about=about | {"n_tokens": 1000})).verdict is Verdict.NOT_TESTABLE
    assert lid_row(outcome([layer()] * 2)).verdict is None


def test_mean_dimensions_leave_the_embedding_layer_out() -> None:
    assert mean_dimensions(outcome([layer(lid=99.0), layer(lid=10.0), layer(lid=20.0)]))[0] == 15.0
    assert mean_dimensions(outcome([layer()] * 3, [layer(lid=1.0)] * 3))[0] == 1.0
    assert mean_dimensions(table(18.0)) == [18.0, 9.0, 9.0]


def test_setups_by_name_and_model(tmp_path: Path) -> None:
    assert [one.name for one in STUDY.chosen(["glove,minilm"], Options())] == ["minilm", "glove"]
    words = tmp_path / "vectors.txt"
    words.write_text("a 1 2\n")
    gguf = tmp_path / "m.gguf"
    gguf.write_text("x")
    options = Options(model=["org/some-bert", str(words), str(gguf), "all-MiniLM-L6-v2"])
    assert [(one.name, one.is_static) for one in STUDY.chosen((), options)] == [
        ("some-bert", False), ("vectors.txt", True), ("m.gguf", False), ("minilm", False),
    ]  # fmt: skip


# ---------------------------------------------------------------- what is measured


def swiss_roll(n: int, d: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A curved sheet: how far along it each point lies cannot be told by a straight line."""
    g = torch.Generator().manual_seed(0)
    along = 2 + 9 * torch.rand(n, generator=g)
    rows = torch.stack([along * along.cos(), along * along.sin(), 6 * torch.rand(n, generator=g)], dim=1)
    turn = torch.linalg.qr(torch.randn(d, 3, generator=g)).Q
    return rows @ turn.T + 0.05 * torch.randn(n, d, generator=g), along


def test_a_roll_is_followed_by_neighbours_and_not_by_a_line() -> None:
    X, along = swiss_roll(2000, 20)
    axes, share = main_axes(X)
    told = followed(axes, along)
    assert share > 0.98
    assert told is not None
    assert told.nearby > 0.97
    assert told.linear < 0.5
    straight = followed(axes, axes[:, 1])
    assert straight is not None
    assert straight.linear == pytest.approx(1.0)
    assert followed(axes, torch.ones(2000)) is None


def test_main_axes_are_principal_components() -> None:
    from sklearn.decomposition import PCA

    X, _ = swiss_roll(500, 12)
    theirs = PCA(3).fit(X.double().numpy())
    axes, share = main_axes(X.double() + 7)
    assert share == pytest.approx(theirs.explained_variance_ratio_.sum())
    np.testing.assert_allclose(np.abs(axes.numpy()), np.abs(theirs.transform(X.double().numpy())), atol=1e-9)


def test_mean_lid_at_all_points_is_lid() -> None:
    X = torch.randn(600, 5, generator=torch.Generator().manual_seed(0))
    whole = mean_lids(X)
    assert whole[0] == pytest.approx(iso.lid(X, k=100), rel=1e-12)
    some = mean_lids(X, n_points=200)[0]
    assert some != whole[0]
    assert some == pytest.approx(whole[0], rel=0.1)
    assert mean_lids(X[:100]) == (None, None, None)
    assert mean_lids(torch.ones(300, 4)) == (None, None, None)


def test_a_layer_has_the_metrics_of_its_space() -> None:
    g = torch.Generator().manual_seed(0)
    types = as_labels(torch.randint(0, 60, (900,), generator=g))
    lumps = torch.randint(0, 3, (900,), generator=g)
    X = (
        torch.randn(900, 8, generator=g)
        + 12 * torch.eye(8)[lumps]
        + torch.randn(60, 8, generator=g)[types.codes]
    )
    found = measure_layer(
        X,
        types,
        positions=torch.arange(900) % 50,
        log_frequencies=types.counts[types.codes].log(),
        is_sink=torch.zeros(900, dtype=torch.bool),
    )
    figures = found.figures
    assert figures.n_clusters == 3
    assert len(set(zip(found.clusters.tolist(), lumps.tolist(), strict=True))) == 3
    assert figures.cosines.s_inter == pytest.approx(iso.metrics.s_inter(X, token_types=types))
    assert figures.cosines.s_intra == pytest.approx(iso.metrics.s_intra(X, token_types=types))
    assert figures.cosines.s_inter_sampled == iso.metrics.s_inter(X, token_types=types, sampled=True)
    adjusted = iso.metrics.cluster_adjusted_similarities(X, token_types=types, clusters=lumps)
    assert (figures.adjusted.s_inter, figures.adjusted.s_intra) == pytest.approx(
        (adjusted.s_inter, adjusted.s_intra)
    )
    assert figures.lid == pytest.approx(iso.lid(X, k=100))
    assert figures.lid_squared == pytest.approx(iso.lid(X, k=100, squared=True))
    units = X / X.norm(dim=1, keepdim=True)
    assert figures.lid_cosine == pytest.approx(iso.lid(units, k=100, squared=True), rel=1e-4)
    assert from_plain(json.loads(json.dumps(as_plain(figures))), LayerFigures) == figures


def test_parts_tell_the_mean_from_the_clusters_and_symbols_from_words() -> None:
    g = torch.Generator().manual_seed(0)
    names = [f"word{i}" for i in range(30)] + ["Ġ" + "." * (i + 1) for i in range(30)]
    types = as_labels([names[i % 60] for i in range(600)])
    is_symbol = torch.tensor(["." in str(name) for name in types.names])[types.codes]
    X = torch.randn(600, 6, generator=g) + 20 * torch.eye(6)[0] + 12 * is_symbol[:, None] * torch.eye(6)[1]
    found = measure_parts(X, types)
    assert found.n_clusters == 2
    assert found.symbols == 0.5
    assert found.probe == 1.0
    assert found.silhouette == pytest.approx(iso.silhouette_score(X, is_symbol), abs=1e-6)
    assert found.isoscore < 0.1
    assert found.isoscore_within > 0.9
    assert found.s_inter > 0.7
    centred = iso.metrics.s_inter(X - X.mean(dim=0), token_types=types)
    assert found.s_inter_centred == pytest.approx(centred, abs=1e-6)
    assert abs(found.s_inter_within) < 0.1


# ---------------------------------------------------------------- runs


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    words = np.array(["a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat"])
    chances = 1 / np.arange(1, 11)
    lines = [" ".join(rng.choice(words, 12, p=chances / chances.sum())) for _ in range(40)]
    lines[3] += " boom boom"
    folder = tmp_path / "data" / "wikitext2"
    folder.mkdir(parents=True)
    (folder / "wikitext2_test.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return tmp_path / "data"


def test_a_model_without_sinks(tiny_bert: Path, corpus: Path) -> None:
    found = run_setup(STUDY.own_setup(str(tiny_bert)), Options(), Place(corpus))
    assert found.about["window"] == 24
    assert found.about["n_types"] == 11
    assert found.about["n_tokens"] == 482  # special tokens left out
    assert len(found.layers) == 3
    assert found.without_sinks == found.sinks == ()
    assert found.shown is not None
    assert found.shown.at(2)[0].shape == (482, 3)


@pytest.mark.slow
def test_sinks_are_left_out_in_the_other_view(tiny_gpt: Path, corpus: Path, tmp_path: Path) -> None:
    found = run_setup(STUDY.own_setup(str(tiny_gpt)), Options(layers="0,1,-1"), Place(corpus))
    assert found.about["layers"] == [0, 1, 3]
    assert found.about["n_sinks"] == 10  # the first of each of eight windows, and two booms
    assert "position 0" in found.sinks[0]
    assert "boom" in found.sinks[1]
    assert [one.n_tokens for one in found.layers] == [482] * 3
    assert [one.n_tokens for one in found.without_sinks] == [472] * 3
    assert found.layers[1].top_variance > 0.99 > found.without_sinks[1].top_variance
    keep_outcome(found, tmp_path / f"manifolds-{found.setup}.json")
    (again,) = STUDY.read(tmp_path)
    assert (again.layers, again.without_sinks, again.sinks) == (
        found.layers,
        found.without_sinks,
        found.sinks,
    )
    assert again.about == found.about
    assert again.shown is not None
    assert found.shown is not None
    for name, values in vars(found.shown).items():
        np.testing.assert_array_equal(getattr(again.shown, name), values)


def test_fewer_tokens_and_another_seed(tiny_bert: Path, corpus: Path) -> None:
    setup, options = STUDY.own_setup(str(tiny_bert)), Options(max_tokens=240, layers="1")
    few = run_setup(setup, options, Place(corpus))
    assert few.about["n_tokens"] == 220
    other = run_setup(setup, replace(options, seed=5), Place(corpus))
    assert other.layers[0].cosines.s_inter_sampled != few.layers[0].cosines.s_inter_sampled
    assert other.layers[0].cosines.s_inter == few.layers[0].cosines.s_inter
    with raises(InputError, argument="max_tokens", got=20, wanted="at least 24"):
        run_setup(setup, Options(max_tokens=20), Place(corpus))
    with raises(InputError, argument="seed", got=-1):
        run_setup(setup, Options(seed=-1), Place(corpus))


def test_a_static_table_from_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    path = tmp_path / "words.txt"
    path.write_text("".join(f"w{i} {' '.join(map(str, row))}\n" for i, row in enumerate(rows)))
    found = run_setup(STUDY.own_setup(str(path)), Options(), Place())
    assert found.static is not None
    assert (found.static.n_vectors, found.static.n_dims) == (300, 4)
    assert found.static.lid == pytest.approx(iso.lid(rows.astype(np.float32), k=100), rel=1e-5)
    assert found.static.mean_cosine == pytest.approx(iso.mean_cosine(rows), abs=1e-6)
    keep_outcome(found, tmp_path / "manifolds-words.json")
    assert STUDY.read(tmp_path)[0].static == found.static


# ---------------------------------------------------------------- pages


def test_sections_have_dimensions_and_layers() -> None:
    found = sections([outcome([layer()] * 3, [layer()] * 3), table(20.0)])
    assert [one.title for one in found] == [
        "How they were tested", "Local intrinsic dimension (table 3)", "a-gpt, all tokens",
        "a-gpt, without sinks",
    ]  # fmt: skip
    lines = {cells[0]: cells for cells in found[1].cells}
    assert lines["a-gpt"][1:] == ("1,000", "16", "10.0", "5.0", "5.5")
    assert lines["paper: GPT2"][-1] == "7.0"
    assert found[2].cells[0][:7] == ("0", "0.950", "0.970", "3", "0.600", "0.010", "0.020")
    assert "Attention sinks: position 0 (norm 9,000)" in found[2].notes
    assert any("come within 0.010" in note for note in found[2].notes)
    assert "1,000 tokens of 90 types" in found[2].text


def test_what_a_small_cluster_is_made_of_is_said() -> None:
    sinks, words = SmallestCluster(0.01, 1.0, "a", 0.2), SmallestCluster(0.02, 0.0, "<eos>", 0.95)
    large, mixed = SmallestCluster(0.4, 1.0, "a", 1.0), SmallestCluster(0.01, 0.5, "a", 0.5)
    layers = [layer(smallest=one) for one in (None, sinks, sinks, words, large, mixed)]
    notes = sections([outcome(layers, layers)])[2].notes
    assert "Layers 1–2: the smallest cluster is the attention sinks" in notes
    assert "Layer 3: at least 95 % of the smallest cluster are one token, '<eos>'" in notes
    assert sum("smallest" in note for note in notes) == 2


def test_the_smallest_cluster() -> None:
    clusters, types = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2]), as_labels(list("abcxxabc"))
    is_sink = torch.tensor([False, False, False, True, False, False, False, False])
    assert SmallestCluster.of(clusters, types, is_sink) == SmallestCluster(0.25, 0.5, "x", 1.0)
    assert SmallestCluster.of(torch.zeros(8, dtype=torch.int64), types, is_sink) is None


@pytest.mark.slow
def test_pages_and_figures_are_written(tiny_gpt: Path, corpus: Path, tmp_path: Path) -> None:
    run = run_setup(STUDY.own_setup(str(tiny_gpt)), Options(), Place(corpus))
    written = STUDY.write([run, table(20.0)], tmp_path / "new")
    assert [path.name for path in written] == ["manifolds.json", "manifolds.md", "manifolds.html"]
    text = written[1].read_text()
    for name in ("cosines", "dimension", "clusters", "axes"):
        assert f"manifolds-{name}.png" in text
        assert (tmp_path / "new" / f"manifolds-{name}.pdf").stat().st_size > 1000
    facts = json.loads(written[0].read_text())
    assert facts["claims"][0]["findings"][0]["study"] == "manifolds"
    assert len(facts["layers"][run.setup]["all"]) == 4


def test_names_beside_their_values_keep_apart() -> None:
    found = list(spread([(1.0, "a"), (5.0, "b"), (5.2, "c"), (5.4, "d"), (9.0, "e")], apart=1.0))
    places = [place for _, place, _ in found]
    assert [title for _, _, title in found] == list("abcde")
    assert min(np.diff(places)) >= 1.0 - 1e-9
    assert (places[0], places[-1]) == (1.0, 9.0)
    assert places[1:4] == pytest.approx([4.2, 5.2, 6.2])
