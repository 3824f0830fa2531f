from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises

from isoscope.errors import FileError, InputError
from isoscope.training import train_embeddings
from isoscope_papers.classifiers import run as classifiers
from isoscope_papers.classifiers.options import Options
from isoscope_papers.classifiers.run import Outcome, prepare_task, read_outcomes, run_setup
from isoscope_papers.classifiers.setups import GLOVE, MINILM, MPNET, SETUPS, Published, Setup
from isoscope_papers.classifiers.study import STUDY, sections
from isoscope_papers.corpora import Corpus, load_corpus
from isoscope_papers.rows import Row
from isoscope_papers.study import Place
from isoscope_papers.verdict import Verdict

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"
HAS_DATA = bool(os.environ.get("ISOSCOPE_DATA"))
TEXTS = tuple(f"text {i % 40}" for i in range(48))
LABELS = tuple("ab"[i % 2] for i in range(48))


@pytest.fixture
def fake(monkeypatch) -> None:
    """A corpus of 48 items with 40 distinct texts, and an encoder that needs no model."""
    corpus = Corpus("tiny", (TEXTS,), LABELS, source="made")
    monkeypatch.setattr(classifiers, "load_corpus", lambda name, **_: corpus)

    def encode(texts, **_):
        rows = [np.random.default_rng(abs(hash(text)) % 2**32).normal(size=6) for text in texts]
        return torch.tensor(np.array(rows), dtype=torch.float32)

    monkeypatch.setattr(classifiers, "encode", encode)


TINY = Setup("tiny", "tiny", "tiny", "main", 5, published={MINILM: Published(48, 254, -0.5, -0.1)})


def ran(setup: Setup = TINY, place: Place | None = None, **options: Any) -> Outcome:
    return run_setup(setup, Options(**options), place or Place(), progress=False)


def test_each_string_once_or_a_row_an_item(fake) -> None:
    once = prepare_task(TINY, Place())
    assert once.vectors.shape == (40, 6)
    assert once.pairs is not None
    assert once.pairs[:, 0].tolist() == [i % 40 for i in range(48)]
    rows = prepare_task(replace(TINY, once=False), Place())
    assert rows.vectors.shape == (48, 6)
    assert rows.pairs is None


def test_rows_compare_with_what_is_published(fake) -> None:
    found = ran()
    rows = {row.quantity: row for row in found.rows()}
    assert found.comparable
    assert rows["items"].verdict is Verdict.HELD
    assert rows["parameters"].ours == 40 * 6 + 2 * (6 + 1)
    assert rows["parameters"].verdict is Verdict.HELD
    assert rows["sd, largest"].ours > 0
    run = found.trajectory
    assert rows["r"].ours == run.correlation("isoscore", "silhouette").r
    assert rows["silhouette, end"].ours == run.mean()["silhouette"][-1]


OTHER = [{"every": 6}, {"encoder": MPNET}, {"tolerance": 0.5}]


@pytest.mark.parametrize("change", OTHER, ids=str)
def test_another_protocol_or_encoder_is_not_compared(fake, change: dict) -> None:
    found = ran(**change)
    assert not found.comparable
    assert {row.verdict for row in found.rows()} == {Verdict.NOT_TESTABLE, None}


def test_a_short_run_says_so_and_no_claim_is_held_by_it(fake) -> None:
    found = ran(steps=3)
    verdicts = {row.quantity: row.verdict for row in found.rows()}
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.HELD} == {"items", "parameters"}
    assert verdicts["r"] is Verdict.NOT_TESTABLE
    assert found.sampled.startswith("3 of the paper's ")
    tested = list(STUDY.findings([found]))
    assert {one.verdict for one in tested} == {Verdict.NOT_TESTABLE}
    assert any("3 of the paper's" in one.condition for one in tested)


def test_a_sampled_run_is_compared_and_says_so(fake) -> None:
    found = ran(seeds="1", every=2, tolerance=1e-3)
    assert found.comparable
    assert "1 of the paper's 5 seeds, measured at every 2 updates" in found.sampled
    mean = found.trajectory.mean()
    steps = np.arange(int(mean["step"][-1]) + 1)
    curves = [np.interp(steps, mean["step"], mean[name]) for name in ("isoscore", "silhouette")]
    rows = {row.quantity: row for row in found.rows()}
    assert rows["r"].ours == pytest.approx(np.corrcoef(*curves)[0, 1])
    assert not ran().sampled


def test_another_number_of_items_is_not_compared(fake) -> None:
    published = {MINILM: Published(49, 254, -0.5, -0.1)}
    assert not ran(replace(TINY, published=published)).comparable


def test_a_run_in_a_folder_is_found_again(fake, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(SETUPS, "tiny", TINY)
    first = ran(place=Place(runs=tmp_path), seeds="2")
    for state in tmp_path.glob("*/seed-*.safetensors"):
        state.unlink()  # the rows alone say that the run has ended
    again = ran(place=Place(runs=tmp_path), seeds="2")
    assert again.seconds == first.seconds
    kept = read_outcomes(tmp_path)
    assert [(found.title, found.source) for found in kept] == [(first.title, "made")]
    assert kept[0].seconds == first.seconds
    assert np.array_equal(first.trajectory["silhouette"], again.trajectory["silhouette"])


def test_vectors_of_mean_length_one(monkeypatch) -> None:
    corpus = Corpus("words", (("cat", "dog"),), tuple(map(frozenset, ({"n"}, {"v"}))))
    monkeypatch.setattr(classifiers, "load_corpus", lambda name, **_: corpus)
    monkeypatch.setattr(
        classifiers, "static_vectors", lambda words, model: (2 * torch.eye(2), torch.tensor([0, 1]))
    )
    setup = Setup("w", "w", "words", "exception", 5, encoder=GLOVE, is_static=True, unit_length=True)
    assert prepare_task(setup, Place()).vectors.tolist() == [[1, 0], [0, 1]]


def test_rho_is_compared_with_its_own_figure() -> None:
    """A published ρ is a number to be reached; a bound decides only where there is no number."""
    found = _ran(replace(SETUPS["polarity"], steps=4))

    def row(**published: float) -> Row:
        setup = replace(found.setup, published={MINILM: Published(60, **published)})
        return next(row for row in replace(found, setup=setup).rows() if row.quantity == "ρ")

    rho = row().ours
    assert rho is not None
    assert row(rho=rho - 0.01, rho_below=rho + 0.01).verdict is Verdict.NOT_HELD
    assert row(rho=rho).verdict is Verdict.HELD
    assert row(rho_below=rho + 0.01).verdict is Verdict.HELD


def test_a_claim_on_all_setups_names_the_exception() -> None:
    outcomes = STUDY.read(KEPT / "runs")
    claim = next(one for one in STUDY.claims(outcomes) if one.key == "empirical-conflict")
    assert claim.verdict is Verdict.CONDITION
    assert claim.condition == "where training moves the vectors far against their length"
    assert "supersenses, glove-6b-50d +0.988; supersenses, mean length 1, glove-6b-50d −0.738" in claim.ours


def test_words_with_one_label_only(monkeypatch) -> None:
    corpus = Corpus("words", (("cat", "dog", "run"),), tuple(map(frozenset, ({"n"}, {"n", "v"}, {"v"}))))
    monkeypatch.setattr(classifiers, "load_corpus", lambda name, **_: corpus)
    monkeypatch.setattr(
        classifiers, "static_vectors", lambda words, model: (torch.eye(3), torch.tensor([0, 1, 2]))
    )
    setup = Setup("w", "w", "words", "exception", 5, encoder=GLOVE, is_static=True)
    assert prepare_task(setup, Place()).labels == list(corpus.labels)
    single = prepare_task(replace(setup, only_single=True), Place())
    assert single.labels == ["n", "v"]
    assert single.vectors.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_setups_are_chosen_by_name() -> None:
    assert [setup.name for setup in STUDY.chosen(["snli,polarity"], Options())] == ["polarity", "snli"]
    assert STUDY.chosen(["all"], Options()) == list(SETUPS.values())
    with raises(InputError, argument="setup", got="poalrity"):
        STUDY.chosen(["poalrity"], Options())


@pytest.mark.parametrize("name", [name for name, setup in SETUPS.items() if setup.part == "glue"])
def test_parameter_counts_grow_with_the_encoder_alone(name: str) -> None:
    """Twice the dimensions: (count − biases) doubles, so the table rows are whole in both."""
    published = SETUPS[name].published
    labels = 3 if name == "mnli" else 2
    small, large = (published[encoder].n_parameters - labels for encoder in (MINILM, MPNET))
    assert large == 2 * small
    assert small % 384 == 0


@pytest.mark.skipif(not HAS_DATA, reason="ISOSCOPE_DATA is not set")
@pytest.mark.parametrize("name", ["polarity", "snli", "cola", "sst2", "mrpc", "rte", "wnli"])
def test_the_corpora_have_the_published_sizes(name: str) -> None:
    setup = SETUPS[name]
    corpus, theirs = load_corpus(setup.corpus), setup.published[MINILM]
    n_rows = len(corpus.distinct()) if setup.once else len(corpus)
    n_labels, n_columns = len(corpus.label_names), len(corpus.columns)
    assert len(corpus) == theirs.n_items
    assert n_rows * 384 + n_labels * (n_columns * 384 + setup.bias) == theirs.n_parameters


def _ran(setup: Setup, n_labels: int = 2):
    X = torch.randn(60, 5, generator=torch.Generator().manual_seed(0))
    run = train_embeddings(X, [i % n_labels for i in range(60)], steps=4, seeds=2, progress=False)
    return Outcome(setup, setup.encoder, run, "a corpus, made")


@pytest.mark.slow
def test_the_report_has_text_pages_figures_and_json(tmp_path) -> None:
    names = ("polarity", "supersense", "supersense-single", "cola")
    outcomes = [_ran(SETUPS[name], 9 if name == "supersense" else 2) for name in names]
    written = STUDY.write(outcomes, tmp_path / "out")
    assert [path.name for path in written] == ["classifiers.json", "classifiers.md", "classifiers.html"]
    found = {path.name for path in (tmp_path / "out").iterdir()}
    figures = {"figure-2", "figure-3", f"figure-4-{MINILM}"}
    assert {f"{figure}.{kind}" for figure in figures for kind in ("png", "pdf")} <= found
    page = (tmp_path / "out" / "classifiers.md").read_text()
    assert "| polarity, all-MiniLM-L6-v2 | 60 (10,662) ≠ |" in page
    assert "The exception: a positive correlation" in page
    assert len(STUDY.as_dict(outcomes)["rows"]) == sum(len(found.rows()) for found in outcomes)
    assert "paper    4,094,976" in STUDY.as_text(outcomes)


def test_the_ceiling_tells_the_exception() -> None:
    many, few = _ran(SETUPS["supersense"], 9), _ran(SETUPS["supersense-single"], 3)
    assert many.ceiling() == (9, 5, 1.0)
    assert few.ceiling() == (3, 5, pytest.approx(1 / 4))
    exception = next(s for s in sections([many, few]) if s.title.startswith("The exception"))
    assert [cells[1:4] for cells in exception.cells] == [("9", "5", "1.000"), ("3", "5", "0.250")]


def test_a_run_of_an_unknown_setup_is_refused(tmp_path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "setup.json").write_text('{"setup": "none", "encoder": "x", "source": "y"}')
    with pytest.raises(FileError, match="names setup 'none', which is not known"):
        read_outcomes(tmp_path)


def test_the_start_is_left_out_where_the_setup_says_so() -> None:
    late = replace(SETUPS["polarity"], first_step=1)
    rows = {row.quantity: row.ours for row in _ran(late).rows()}
    whole = {row.quantity: row.ours for row in _ran(SETUPS["polarity"]).rows()}
    assert rows["r with the start"] == whole["r"]
    assert rows["r"] != whole["r"]


def test_a_device_that_is_not_there(fake) -> None:
    with pytest.raises(InputError, match="`device` 'cuda:99' cannot be used"):
        ran(place=Place(device="cuda:99"))


@pytest.mark.slow
def test_estimated_silhouettes_give_the_same_correlation() -> None:
    X = torch.randn(1500, 12, generator=torch.Generator().manual_seed(0))
    y = (X[:, 0] > 0).long()
    exact, estimated = (
        train_embeddings(X, y, steps=60, seeds=1, learning_rate=0.02, progress=False, **options)
        for options in ({}, {"silhouette_tolerance": 2e-3})
    )
    assert (estimated["silhouette_high"] > estimated["silhouette_low"]).all()  # an estimate, not the exact
    assert estimated.correlation().r == pytest.approx(exact.correlation().r, abs=1e-3)
