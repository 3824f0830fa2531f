"""What every correction promises, whichever it is."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import isoscope as iso
from isoscope.corrections.correction import Corrected
from isoscope.corrections.files import KINDS

EACH = [
    iso.Center(),
    iso.Standardize(),
    iso.Normalize(),
    iso.AllButTheTop(2),
    iso.AllButTheTop(1, as_published=True),
    iso.Whiten(),
    iso.Whiten(2, 0.5),
    iso.Whiten(method="zca"),
    iso.corrections.RemoveDimensions(2),
    iso.corrections.RemoveDimensions(1, by="variance", zero=True),
    iso.corrections.ClusterCenter(3),
    iso.corrections.ClusterwiseAllButTheTop(2, 1),
    iso.corrections.Truncate(4),
    iso.Chain([iso.Whiten(3), iso.Normalize()]),
    iso.Chain([iso.Standardize(), iso.AllButTheTop(1)]),
]
LEARNING = [correction for correction in EACH if not isinstance(correction, iso.Chain)]


@pytest.fixture(name="X")
def vectors(rng) -> np.ndarray:
    """200 vectors in 6 dimensions about two places, stretched, with an offset and a strong dimension."""
    return (
        rng.normal(size=(200, 6)) @ rng.normal(size=(6, 6)) + 3 * rng.integers(0, 2, (200, 1)) + np.arange(6)
    )


def each(corrections: list[Any] = EACH) -> Any:
    return pytest.mark.parametrize("correction", corrections, ids=lambda one: repr(one).replace("\n", ""))


@parametrize_with_checks(
    [
        iso.Center(),
        iso.Standardize(),
        iso.Normalize(),
        iso.AllButTheTop(),
        iso.Whiten(),
        iso.Whiten(1, 0.5, method="zca"),
        iso.corrections.RemoveDimensions(),
        iso.corrections.Truncate(),
        iso.corrections.ClusterCenter(2),
        iso.corrections.ClusterwiseAllButTheTop(2, small="keep"),
        iso.Chain([iso.Center(), iso.Normalize()]),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_takes_it_for_its_own(estimator: Any, check: Any) -> None:
    check(estimator)


def test_every_kind_is_among_those_tested() -> None:
    quantizers = {name for name, kind in KINDS.items() if issubclass(kind, iso.corrections.Quantizer)}
    assert {type(correction).__name__ for correction in LEARNING} == set(KINDS) - quantizers - {
        "Translate"
    }  # fitted to two spaces


@each()
def test_kind_and_type_of_array_stay(correction: Any, X: np.ndarray) -> None:
    fitted = clone(correction).fit(X)
    wanted = fitted.transform(X)
    assert isinstance(wanted, np.ndarray)
    assert wanted.dtype == np.float64
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-4), (torch.bfloat16, 1e-2)):
        rounded = torch.tensor(X).to(dtype)
        found = fitted.transform(rounded)
        assert found.dtype == dtype
        assert torch.allclose(
            found.double(), fitted.transform(rounded.double()), atol=tolerance, rtol=tolerance
        )
    assert np.allclose(fitted.transform(X.tolist()), wanted)
    assert fitted.transform(X.astype(np.float16)).dtype == np.float16
    assert np.allclose(fitted.transform(np.asfortranarray(X)), wanted)


@each()
def test_input_is_never_changed(correction: Any, X: np.ndarray) -> None:
    before = X.copy()
    correction = clone(correction)
    correction.fit(X).transform(X)
    assert np.array_equal(X, before)


@each()
def test_a_space_keeps_what_it_knows(correction: Any, X: np.ndarray) -> None:
    space = iso.Space(X, labels=["a", "b"] * 100, partners=X[::-1].copy(), texts=["t"] * 200, name="toy")
    found = clone(correction).fit(space).transform(space)
    wanted = clone(correction).fit_transform(X)
    assert np.allclose(found.vectors.numpy(), wanted)
    assert np.allclose(found.partners.numpy(), wanted[::-1])
    assert (found.labels, found.texts, found.name) == (space.labels, space.texts, "toy")


@each()
def test_one_vector(correction: Any, X: np.ndarray) -> None:
    fitted = clone(correction).fit(X)
    assert np.allclose(fitted.transform_one(X[5]), fitted.transform(X)[5])
    found = fitted.transform_one(torch.tensor(X[5], dtype=torch.float32))
    assert isinstance(found, torch.Tensor)
    assert found.dtype == torch.float32
    with pytest.raises(iso.ShapeError, match=r"transform_one\(x\)"):
        fitted.transform(X[5])
    with pytest.raises(iso.ShapeError, match=r"transform\(X\)"):
        fitted.transform_one(X)


@each(LEARNING)
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_blocks_give_what_all_together_give(correction: Any, X: np.ndarray, offset: float) -> None:
    X = X + offset
    if hasattr(correction, "init"):  # k-means would see other vectors
        correction = copy.deepcopy(correction).set_params(init=X[:3])
    whole = clone(correction).fit(X)
    blocks = clone(correction)
    for block in (X[:7], X[7:8], X[8:100], X[100:]):
        blocks.partial_fit(block)
    streamed = clone(correction).fit_blocks([X[:50], X[50:]])
    for other in (blocks, streamed):
        for name in correction._axes:
            assert np.allclose(getattr(whole, name), getattr(other, name), rtol=1e-10, atol=1e-10), name
        assert np.allclose(whole.transform(X), other.transform(X), rtol=1e-10, atol=1e-9)


@each()
def test_a_module_does_what_transform_does(correction: Any, X: np.ndarray) -> None:
    fitted = clone(correction).fit(X)
    module = fitted.to_module(dtype=torch.float64)
    batch = torch.tensor(X).view(20, 10, 6)
    assert np.allclose(module(batch).reshape(200, -1).numpy(), fitted.transform(X))
    assert next(module.buffers(), torch.empty(0, dtype=torch.float64)).dtype == torch.float64
    exported = torch.export.export(fitted.to_module(), (torch.zeros(2, 6),), strict=False).module()
    rows = torch.tensor(X[:2], dtype=torch.float32)
    assert torch.allclose(exported(rows), fitted.to_module()(rows))


@each()
def test_gradients_pass(correction: Any, X: np.ndarray) -> None:
    fitted = clone(correction).fit(X)
    rows = torch.tensor(X, requires_grad=True)
    assert torch.autograd.gradcheck(fitted.transform, (rows[:3],))
    assert not fitted.transform(rows.detach()).requires_grad


@each()
def test_frames_name_what_comes_out(correction: Any, X: np.ndarray) -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"))
    found = clone(correction).set_output(transform="pandas").fit_transform(frame)
    fitted = clone(correction).fit(frame)
    assert list(found.columns) == list(fitted.get_feature_names_out())
    assert np.allclose(found.to_numpy(), clone(correction).fit_transform(X))


@each()
def test_in_a_pipeline_targets_are_not_looked_at(correction: Any, X: np.ndarray, rng) -> None:
    plain = clone(correction).fit_transform(X)
    found = make_pipeline(clone(correction)).fit_transform(X, rng.integers(0, 2, 200))
    assert np.allclose(plain, found)


@pytest.mark.parametrize("correction", [one for one in EACH if hasattr(one, "inverse_transform")], ids=repr)
def test_the_way_back(correction: Any, X: np.ndarray) -> None:
    fitted = clone(correction).fit(X)
    assert np.allclose(fitted.inverse_transform(fitted.transform(X)), X)
    found = fitted.inverse_transform(fitted.transform(torch.tensor(X, dtype=torch.float32)))
    assert found.dtype == torch.float32
    with pytest.raises(iso.ShapeError, match="expecting 6 features"):
        fitted.inverse_transform(X[:, :3])


def test_who_has_a_way_back() -> None:
    having = {repr(one) for one in EACH if hasattr(one, "inverse_transform")}
    assert having == {"Center()", "Standardize()", "Whiten()", "Whiten(method='zca')"}


@each()
def test_bad_vectors(correction: Any, X: np.ndarray) -> None:
    fitted = clone(correction).fit(X)
    with pytest.raises(iso.ShapeError, match=r"expecting 6 features as input\..*saved, for other vectors"):
        fitted.transform(X[:, :4])
    bad = X.copy()
    bad[3, 1] = np.nan
    for method in (fitted.fit, fitted.transform):
        with pytest.raises(iso.NotFiniteError, match="row 3"):
            method(bad)
        with pytest.raises(iso.InputError, match="Complex data not supported"):
            method(X + 1j)
        with pytest.raises(iso.ShapeError):
            method(np.zeros((0, 6)))
        with pytest.raises(iso.InputError):
            method("words")


def test_not_fitted(X: np.ndarray) -> None:
    for name in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(iso.Whiten(), name)(X)
    with pytest.raises(NotFittedError):
        iso.Whiten().to_module()
    with pytest.raises(AttributeError, match="before fit"):
        _ = iso.Whiten().mean_


def test_fit_forgets_and_partial_fit_goes_on(X: np.ndarray) -> None:
    center = iso.Center().fit(X).fit(X[:100])
    assert np.allclose(center.mean_, X[:100].mean(axis=0))
    assert np.allclose(center.partial_fit(X[100:]).mean_, X.mean(axis=0))


def test_sources(X: np.ndarray, tmp_path) -> None:
    np.save(tmp_path / "x.npy", X)
    for source in (iso.open_vectors(tmp_path / "x.npy"), lambda: iter([X[:9], X[9:]]), iso.Space(X)):
        assert np.allclose(iso.Center().fit_blocks(source).mean_, X.mean(axis=0))
    for source in (X, 5):
        with pytest.raises(iso.InputError, match="`source` is"):
            iso.Center().fit_blocks(source)


def test_a_large_offset_costs_no_digits(rng) -> None:
    """float32 vectors far from the origin: taking the mean off first keeps what a bias would lose."""
    X = (rng.normal(size=(500, 4)) * 0.1 + 1000).astype(np.float32)
    fitted = iso.Whiten().fit(X)
    exact = fitted.transform(X.astype(np.float64))
    assert np.allclose(fitted.transform(X), exact, atol=2e-3)
    assert np.allclose(fitted.to_module()(torch.tensor(X)).numpy(), exact, atol=2e-3)


@each()
def test_blocks_on_all_cores_give_what_one_call_gives(
    correction: Any, X: np.ndarray, monkeypatch, set_threads
) -> None:
    fitted = clone(correction).fit(X)
    many = np.tile(X, (4, 1))
    whole = {dtype: fitted.transform(many.astype(dtype)) for dtype in (np.float64, np.float32, np.float16)}
    monkeypatch.setattr("isoscope.corrections.correction._WHOLE_NUMBERS", 0)
    monkeypatch.setattr("isoscope.corrections.correction._BLOCK_NUMBERS", 0)  # 128 rows a task
    set_threads(3)
    for dtype, wanted in whole.items():
        assert np.allclose(
            fitted.transform(many.astype(dtype)), wanted, rtol=1e-3 if dtype == np.float16 else 1e-5
        )
    with torch.no_grad():
        rows = torch.tensor(many, requires_grad=True)
        assert np.allclose(fitted.transform(rows).numpy(), whole[np.float64])


def test_a_corrected_file_is_measured_as_the_vectors_are(rng, tmp_path: Path) -> None:
    X = rng.normal(size=(300, 5)) * np.arange(1, 6)
    np.save(tmp_path / "x.npy", X)
    fitted = iso.AllButTheTop(1).fit(X)
    corrected = Corrected(iso.open_vectors(tmp_path / "x.npy"), fitted)
    found = iso.measure(corrected, metrics=["isoscore", "lid"])  # one streams, one loads
    wanted = iso.measure(fitted.transform(X), metrics=["isoscore", "lid"])
    assert dict(found) == pytest.approx(dict(wanted))
    narrow = Corrected(iso.open_vectors(tmp_path / "x.npy"), iso.Whiten(2).fit(X))
    assert (narrow.n_dims, narrow.load().n_dims) == (2, 2)
    assert narrow.identity != corrected.identity


TEXTS = ["a cat sat", "the dog ran", "the cat ran to a dog", "a dog", "ran to the cat", "sat"]


def test_a_model_returns_corrected_vectors_and_is_saved_so(tiny_model: Path, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra `text`")
    model = sentence_transformers.SentenceTransformer(str(tiny_model), device="cpu")
    X = model.encode(TEXTS)
    chain = iso.Chain([iso.Whiten(3), iso.Normalize()]).fit(X)
    corrected = sentence_transformers.SentenceTransformer(
        modules=[*model, *chain.to_sentence_transformers()], device="cpu"
    )
    assert np.allclose(corrected.encode(TEXTS), chain.transform(X), atol=1e-4)
    corrected.save(str(tmp_path / "model"))
    again = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert np.allclose(again.encode(TEXTS), chain.transform(X), atol=1e-4)


def test_clusters_are_no_module_of_theirs(rng) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra `text`")
    with pytest.raises(iso.InputError, match=r"to_module\(\)"):
        iso.corrections.ClusterCenter(2).fit(rng.normal(size=(20, 3))).to_sentence_transformers()


def test_a_path_and_an_opened_file_are_vectors(rng, tmp_path: Path) -> None:
    X = rng.normal(size=(40, 4)) + 3
    np.save(tmp_path / "x.npy", X)
    whole = iso.Whiten().fit(X)
    for given in (tmp_path / "x.npy", str(tmp_path / "x.npy"), iso.open_vectors(tmp_path / "x.npy")):
        np.testing.assert_array_equal(iso.Whiten().fit(given).transform(given), whole.transform(X))
