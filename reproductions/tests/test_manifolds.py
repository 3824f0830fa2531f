"""Clusters and Manifolds: what is measured of a layer, claims on figures made for them, runs kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import FileError, InputError
from isoscope.labels import as_labels
from isoscope_papers.claims import Claim, Holding, claims_table
from isoscope_papers.manifolds import claims
from isoscope_papers.manifolds import run as manifolds
from isoscope_papers.manifolds.figures import _spread
from isoscope_papers.manifolds.layers import (
    Cosines,
    Followed,
    LayerFigures,
    SmallestCluster,
    followed,
    main_axes,
    mean_lid,
    measure_layer,
)
from isoscope_papers.manifolds.report import (
    as_dict,
    as_text,
    lid_row,
    mean_dimensions,
    sections,
    write_report,
)
from isoscope_papers.manifolds.run import Outcome, StaticFigures, keep, read_outcomes, run_setup
from isoscope_papers.manifolds.setups import PUBLISHED, SETUPS, Setup, chosen_setups, own_setup, published_of
from isoscope_papers.verdicts import Verdict


def layer(**changes: object) -> LayerFigures:
    """A layer of which every claim holds, unless it is changed."""
    plain = LayerFigures(
        n_tokens=1000,
        cosines=Cosines(0.5, 0.7, 0.49, 0.7),
        n_clusters=3,
        silhouette=0.3,
        silhouettes={"2": 0.2, "3": 0.3},
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
    layers: list[LayerFigures], without: list[LayerFigures] | None = None, name: str = "m"
) -> Outcome:
    about = {
        "layers": list(range(len(layers))), "n_tokens": 1000, "n_types": 90, "n_dims": 16, "device": "cpu",
        "source": "wikitext2_test.txt.gz", "window": 512, "seconds": 2.0,
    }  # fmt: skip
    sinks = ("position 0 (norm 9,000)",) if without else ()
    return Outcome(Setup(name, name, name), about, tuple(layers), tuple(without or ()), sinks)


def table(lid: float, name: str = "static") -> Outcome:
    figures = StaticFigures(400_000, 50, 0.1, lid, lid / 2, lid / 2)
    return Outcome(Setup(name, name, name, is_static=True), {"device": "cpu"}, static=figures)


def verdicts(*outcomes: Outcome) -> dict[tuple[str, str], Holding]:
    return {(one.subject, one.claim): one.holding for one in claims.all_claims(outcomes)}


def test_every_claim_can_hold() -> None:
    found = verdicts(outcome([layer()] * 4), table(20.0))
    assert len(found) == 9
    assert set(found.values()) == {Holding.HELD}


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        (claims.BOTH_HIGH, {"cosines": Cosines(0.19, 0.7, 0.2, 0.7)}),
        (claims.BOTH_HIGH, {"cosines": Cosines(0.5, 0.39, 0.5, 0.4)}),
        (claims.ISOLATED, {"silhouette": 0.09}),
        (claims.INTER_GONE, {"adjusted": Cosines(-0.06, 0.0, 0.0, 0.0)}),
        (claims.INTRA_GONE, {"adjusted": Cosines(0.0, 0.06, 0.0, 0.0)}),
        (claims.LOWER_LID, {"lid": 21.0}),
        (claims.LOWER_LID_COSINE, {"lid_cosine": 10.5}),
        (claims.FLAT, {"top_variance": 0.4}),
        (claims.FREQUENCY, {"log_frequency": Followed(0.9, 0.4)}),
        (claims.POSITION, {"position": Followed(0.9, 0.4)}),
    ],
)
def test_each_claim_can_fail(claim: str, changes: dict[str, object]) -> None:
    bad, good = layer(**changes), layer()
    assert verdicts(outcome([good, bad, bad]), table(20.0))["m", claim] is Holding.NOT_HELD
    assert verdicts(outcome([good, bad, good]), table(20.0))["m", claim] is Holding.DEPENDS
    others = {
        key: held for key, held in verdicts(outcome([good, bad, bad]), table(20.0)).items() if key[1] != claim
    }
    assert set(others.values()) == {Holding.HELD}


def test_the_embedding_layer_does_not_count() -> None:
    odd = layer(cosines=Cosines(0.0, 0.0, 0.0, 0.0), lid=99.0)
    found = verdicts(outcome([odd, layer(), layer()]), table(20.0))
    assert set(found.values()) == {Holding.HELD}


def test_only_the_first_quarter_is_asked_of_the_manifold() -> None:
    late = layer(position=Followed(0.0, 0.0))
    early = [layer()] * 4  # the embedding layer and three blocks of twelve
    found = verdicts(outcome([*early, *[late] * 9]))
    assert found["m", claims.POSITION] is Holding.HELD
    found = verdicts(outcome([*early[:3], *[late] * 10]))
    assert found["m", claims.POSITION] is Holding.DEPENDS


def test_sinks_are_a_view_of_their_own() -> None:
    without = [layer(cosines=Cosines(0.1, 0.2, 0.1, 0.2))] * 3
    found = verdicts(outcome([layer()] * 3, without))
    assert found["m", claims.BOTH_HIGH] is Holding.HELD
    assert found["m, no sinks", claims.BOTH_HIGH] is Holding.NOT_HELD


def test_undefined_figures_make_no_claim() -> None:
    nothing = Cosines(None, None, None, None)
    bare = layer(
        cosines=nothing,
        adjusted=nothing,
        silhouette=None,
        lid=None,
        lid_cosine=None,
        position=None,
        log_frequency=None,
    )
    assert {claim for _, claim in verdicts(outcome([bare] * 3), table(20.0))} == {claims.FLAT}


def test_the_evidence_has_the_range_and_the_count() -> None:
    layers = [layer(), layer(), layer(cosines=Cosines(0.1, 0.7, 0.1, 0.7))]
    found = claims.all_claims([outcome(layers)])
    evidence = next(one.evidence for one in found if one.claim == claims.BOTH_HIGH)
    assert evidence == "0.100 … 0.500 and 0.700 (1 of 2 layers)"


def test_tallies_count_by_model() -> None:
    flat = layer(top_variance=0.1, adjusted=Cosines(0.2, 0.0, 0.2, 0.0))
    found = claims.tallies(claims.all_claims([outcome([layer(), flat, flat], [layer(), flat, layer()])]))
    assert found == (
        "m: of 7 claims 5 held, 2 did not hold",
        "m, no sinks: of 7 claims 5 held, 2 depended on the layer",
    )


def test_claims_are_listed_claim_by_claim() -> None:
    rows = [Claim("x", "a", Holding.HELD, "1"), Claim("y", "a", Holding.DEPENDS, "2")]
    rows.append(Claim("x", "b", Holding.NOT_HELD, "3"))
    _, cells = claims_table(rows)
    assert [cell[:3] for cell in cells] == [
        ("x", "a", "held ✓"),
        ("x", "b", "did not hold ✗"),
        ("y", "a", "depends"),
    ]


def test_published_lid_is_compared_for_the_papers_own_models() -> None:
    about = {"n_tokens": 1_000_000, "layers": [0, 1], "n_dims": 768}
    layers = (layer(lid_cosine=99.0), layer(lid_cosine=7.3))
    theirs = Outcome(own_setup("openai-community/gpt2"), about, layers)
    assert lid_row(theirs).verdict is Verdict.REPRODUCED
    assert lid_row(theirs).published == 7.0
    assert lid_row(replace(theirs, layers=(layer(), layer(lid_cosine=9.0)))).verdict is Verdict.DIFFERS
    assert lid_row(replace(theirs, about=about | {"n_tokens": 1000})).verdict is Verdict.NOT_COMPARABLE
    assert lid_row(outcome([layer()] * 2)).verdict is Verdict.UNPUBLISHED
    assert published_of(SETUPS["smollm2"]) is None


def test_mean_dimensions_leave_the_embedding_layer_out() -> None:
    assert mean_dimensions(outcome([layer(lid=99.0), layer(lid=10.0), layer(lid=20.0)]))[0] == 15.0
    without = [layer(lid=1.0)] * 3
    assert mean_dimensions(outcome([layer()] * 3, without))[0] == 1.0
    assert mean_dimensions(table(18.0)) == (18.0, 9.0, 9.0)


def test_setups_by_name_and_model(tmp_path: Path) -> None:
    assert [one.name for one in chosen_setups(["all"])] == ["minilm", "mpnet", "smollm2", "glove"]
    assert [one.name for one in chosen_setups(["glove,minilm"])] == ["minilm", "glove"]
    words = tmp_path / "vectors.txt"
    words.write_text("a 1 2\n")
    gguf = tmp_path / "m.gguf"
    gguf.write_text("x")
    found = chosen_setups(None, ["org/some-bert", words, gguf, "all-MiniLM-L6-v2"])
    assert [(one.name, one.is_static) for one in found] == [
        ("some-bert", False), ("vectors.txt", True), ("m.gguf", False), ("minilm", False),
    ]  # fmt: skip
    with pytest.raises(InputError, match="setup 'bert' is not known; wanted all, or some of minilm"):
        chosen_setups(["bert"])


def test_the_papers_table_is_whole() -> None:
    found = {one.title: one.lid for one in PUBLISHED.values()}
    assert found == {
        "BERT": 5.6, "D-BERT": 7.3, "GPT": 6.8, "GPT2": 7.0, "ELMo": 9.1,
        "GloVe": 18.0, "GloVe-2M": 26.1, "GNEWS": 21.1,
    }  # fmt: skip


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
    assert mean_lid(X) == pytest.approx(iso.lid(X, k=100), rel=1e-12)
    some = mean_lid(X, n_points=200)
    assert some != mean_lid(X)
    assert some == pytest.approx(mean_lid(X), rel=0.1)
    assert mean_lid(X[:100]) is None
    assert mean_lid(torch.ones(300, 4)) is None


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
        X, types, positions=torch.arange(900) % 50, log_frequencies=types.counts[types.codes].log()
    )
    figures = found.figures
    assert figures.n_clusters == 3
    assert len(set(zip(found.clusters.tolist(), lumps.tolist(), strict=True))) == 3
    assert figures.cosines.s_inter == pytest.approx(iso.s_inter(X, token_types=types))
    assert figures.cosines.s_intra == pytest.approx(iso.s_intra(X, token_types=types))
    assert figures.cosines.s_inter_sampled == iso.s_inter(X, token_types=types, sampled=True)
    adjusted = iso.cluster_adjusted_similarities(X, token_types=types, clusters=lumps)
    assert (figures.adjusted.s_inter, figures.adjusted.s_intra) == pytest.approx(
        (adjusted.s_inter, adjusted.s_intra)
    )
    assert figures.lid == pytest.approx(iso.lid(X, k=100))
    assert figures.lid_squared == pytest.approx(iso.lid(X, k=100, squared=True))
    units = X / X.norm(dim=1, keepdim=True)
    assert figures.lid_cosine == pytest.approx(iso.lid(units, k=100, squared=True), rel=1e-4)
    assert LayerFigures.from_dict(json.loads(json.dumps(figures.to_dict()))) == figures


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
    import gzip

    (folder / "wikitext2_test.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return tmp_path / "data"


def test_a_model_without_sinks(tiny_bert: Path, corpus: Path) -> None:
    found = run_setup(own_setup(tiny_bert), data=corpus, progress=False)
    assert found.about["window"] == 24
    assert found.about["n_types"] == 11
    assert found.about["n_tokens"] == 482  # special tokens left out
    assert len(found.layers) == 3
    assert found.without_sinks == found.sinks == ()
    assert found.shown is not None
    assert found.shown.axes[2].shape == (482, 3)


def test_sinks_are_left_out_in_the_other_view(tiny_gpt: Path, corpus: Path, tmp_path: Path) -> None:
    found = run_setup(own_setup(tiny_gpt), data=corpus, layers=[0, 1, -1], progress=False)
    assert found.about["layers"] == [0, 1, 3]
    assert found.about["n_sinks"] == 10  # the first of each of eight windows, and two booms
    assert "position 0" in found.sinks[0]
    assert "boom" in found.sinks[1]
    assert [one.n_tokens for one in found.layers] == [482] * 3
    assert [one.n_tokens for one in found.without_sinks] == [472] * 3
    assert found.layers[1].top_variance > 0.99 > found.without_sinks[1].top_variance
    keep(found, tmp_path)
    again = read_outcomes(tmp_path)[0]
    assert (again.layers, again.without_sinks, again.sinks) == (
        found.layers,
        found.without_sinks,
        found.sinks,
    )
    assert again.about == found.about
    assert again.shown is not None
    np.testing.assert_array_equal(again.shown.axes[3], found.shown.axes[3])
    np.testing.assert_array_equal(again.shown.positions, found.shown.positions)


def test_fewer_tokens_and_another_seed(tiny_bert: Path, corpus: Path) -> None:
    few = run_setup(own_setup(tiny_bert), data=corpus, max_tokens=240, layers=[1], progress=False)
    assert few.about["n_tokens"] == 220
    other = run_setup(own_setup(tiny_bert), data=corpus, max_tokens=240, layers=[1], seed=5, progress=False)
    assert other.layers[0].cosines.s_inter_sampled != few.layers[0].cosines.s_inter_sampled
    assert other.layers[0].cosines.s_inter == few.layers[0].cosines.s_inter
    with pytest.raises(InputError, match="tokens is 20; wanted at least 24"):
        run_setup(own_setup(tiny_bert), data=corpus, max_tokens=20, progress=False)
    with pytest.raises(InputError, match="seed is -1"):
        run_setup(own_setup(tiny_bert), data=corpus, seed=-1, progress=False)


def test_a_static_table_from_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    path = tmp_path / "words.txt"
    path.write_text("".join(f"w{i} {' '.join(map(str, row))}\n" for i, row in enumerate(rows)))
    found = run_setup(own_setup(path))
    assert found.static is not None
    assert (found.static.n_vectors, found.static.n_dims) == (300, 4)
    assert found.static.lid == pytest.approx(iso.lid(rows.astype(np.float32), k=100), rel=1e-5)
    assert found.static.mean_cosine == pytest.approx(iso.mean_cosine(rows), abs=1e-6)
    keep(found, tmp_path / "runs")
    assert read_outcomes(tmp_path / "runs")[0].static == found.static


def test_kept_runs_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no runs"):
        read_outcomes(tmp_path)
    (tmp_path / "manifolds-x.json").write_text('{"setup": "x"}')
    with pytest.raises(FileError, match=r"manifolds-x\.json does not hold a run"):
        read_outcomes(tmp_path)


def test_runs_are_in_the_order_of_the_setups(tmp_path: Path) -> None:
    for name in ("zebra", "glove", "minilm"):
        keep(replace(outcome([layer()] * 2), setup=SETUPS.get(name) or own_setup(name)), tmp_path)
    assert [one.setup.name for one in read_outcomes(tmp_path)] == ["minilm", "glove", "zebra"]


# ---------------------------------------------------------------- pages


def test_sections_have_claims_dimensions_and_layers() -> None:
    found = sections([outcome([layer()] * 3, [layer()] * 3), table(20.0)])
    assert [one.title for one in found] == [
        "The claims", "Local intrinsic dimension (table 3)", "m, all tokens", "m, without sinks",
    ]  # fmt: skip
    assert len(found[0].cells) == 18
    lines = {cells[0]: cells for cells in found[1].cells}
    assert lines["m"][1:] == ("1,000", "16", "10.0", "5.0", "5.5")
    assert lines["paper: GPT2"][-1] == "7.0"
    assert found[2].cells[0][:7] == ("0", "0.500", "0.700", "3", "0.300", "0.010", "0.020")
    assert "Attention sinks: position 0 (norm 9,000)" in found[2].notes
    assert any("come within 0.010" in note for note in found[2].notes)
    assert "1,000 tokens of 90 types" in found[2].text


def test_what_a_small_cluster_is_made_of_is_said() -> None:
    sinks, words = SmallestCluster(0.01, 1.0, "a", 0.2), SmallestCluster(0.02, 0.0, "<eos>", 0.95)
    large, mixed = SmallestCluster(0.4, 1.0, "a", 1.0), SmallestCluster(0.01, 0.5, "a", 0.5)
    layers = [layer(smallest=one) for one in (None, sinks, sinks, words, large, mixed)]
    notes = sections([outcome(layers, layers)])[2].notes
    assert "Layers 1, 2: the smallest cluster is the attention sinks" in notes
    assert "Layer 3: at least 95 % of the smallest cluster are one token, '<eos>'" in notes
    assert sum("smallest" in note for note in notes) == 2


def test_the_smallest_cluster() -> None:
    clusters, types = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2]), as_labels(list("abcxxabc"))
    is_sink = torch.tensor([False, False, False, True, False, False, False, False])
    assert SmallestCluster.of(clusters, types, is_sink) == SmallestCluster(0.25, 0.5, "x", 1.0)
    assert SmallestCluster.of(torch.zeros(8, dtype=torch.int64), types, is_sink) is None


def test_pages_and_figures_are_written(tiny_gpt: Path, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = run_setup(own_setup(tiny_gpt), data=corpus, progress=False)
    written = write_report([run, table(20.0)], tmp_path / "new", command="isoscope reproduce manifolds")
    assert [path.name for path in written] == ["manifolds.json", "manifolds.md", "manifolds.html"]
    page = written[1].read_text()
    for name in ("cosines", "dimension", "clusters", "axes"):
        assert f"manifolds-{name}.png" in page
        assert (tmp_path / "new" / f"manifolds-{name}.pdf").stat().st_size > 1000
    facts = json.loads(written[0].read_text())
    assert facts["claims"][0]["subject"] == run.title
    assert len(facts["layers"][run.setup.name]["all"]) == 4
    assert "http" not in written[2].read_text().replace("http-equiv", "")


def test_without_matplotlib_the_tables_stand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent(*_: object) -> None:
        raise InputError("a figure needs matplotlib")

    monkeypatch.setattr("isoscope_papers.manifolds.report.draw_figures", absent)
    found = sections([outcome([layer()] * 2)], tmp_path)
    assert found[0].notes == ("m: of 7 claims 7 held", "No figures: a figure needs matplotlib")


def test_the_text_and_the_facts() -> None:
    found = [outcome([layer()] * 3, [layer(adjusted=Cosines(0.3, 0.3, 0.3, 0.3))] * 3), table(20.0)]
    text = as_text(found)
    assert "m  (1,000 tokens of 90 types)" in text
    assert "sinks: position 0" in text
    assert "did not hold in centred clusters S_inter" in text
    assert "static  (400,000 vectors)" in text
    row = as_dict(found)["rows"][1]
    assert (row["setup"], row["quantity"], row["ours"]) == ("static", "LID, 1 − cos", 10.0)


def test_points_kept_are_few_enough_to_commit() -> None:
    assert manifolds.N_SHOWN * 31 * (3 * 2 + 1) < 1_000_000


def test_names_beside_their_values_keep_apart() -> None:
    found = list(_spread([(1.0, "a"), (5.0, "b"), (5.2, "c"), (5.4, "d"), (9.0, "e")], apart=1.0))
    places = [place for _, place, _ in found]
    assert [title for _, _, title in found] == list("abcde")
    assert min(np.diff(places)) >= 1.0 - 1e-9
    assert (places[0], places[-1]) == (1.0, 9.0)
    assert places[1:4] == pytest.approx([4.2, 5.2, 6.2])


def test_the_page_of_the_documentation_is_what_the_kept_runs_give(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    kept = Path(__file__).parents[2] / "docs" / "reproduction"
    write_report(read_outcomes(kept / "runs"), tmp_path, command="isoscope reproduce manifolds")
    wanted = (kept / "manifolds.md").read_text()
    assert (tmp_path / "manifolds.md").read_text() == wanted, "reproduce manifolds --report-only"
