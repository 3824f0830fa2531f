"""Codes equal those of faiss and of sentence-transformers; what every quantizer promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.raising import raises

import isoscope as iso
from isoscope.corrections import (
    HalfPrecision,
    ProductQuantizer,
    Quantizer,
    RaBitQuantizer,
    ScalarQuantizer,
    SignQuantizer,
)
from isoscope.corrections.files import KINDS

EACH = [
    HalfPrecision(),
    ScalarQuantizer(),
    ScalarQuantizer(4),
    ScalarQuantizer(convention="sentence-transformers"),
    SignQuantizer(),
    SignQuantizer(asymmetric=True),
    RaBitQuantizer(),
    ProductQuantizer(3),
]
each = pytest.mark.parametrize("quantizer", EACH, ids=repr)


@pytest.fixture(name="X")
def vectors(rng) -> np.ndarray:
    """600 stretched vectors in 12 dimensions about a place, the last dimension constant."""
    X = rng.normal(size=(600, 12)) @ rng.normal(size=(12, 12)) + 1
    X[:, -1] = 0.5
    return X.astype(np.float32)


@pytest.fixture
def faiss() -> Any:
    return pytest.importorskip("faiss")


@pytest.mark.parametrize("bits", [8, 4])
def test_scalar_codes_of_faiss(X: np.ndarray, faiss: Any, bits: int) -> None:
    kind = faiss.ScalarQuantizer.QT_8bit if bits == 8 else faiss.ScalarQuantizer.QT_4bit
    theirs = faiss.ScalarQuantizer(12, kind)
    theirs.train(X[:400])  # the other rows go beyond the ranges
    ours = ScalarQuantizer(bits).fit(X[:400])
    codes = ours.encode(X)
    np.testing.assert_array_equal(codes, theirs.compute_codes(X))
    assert ours.n_bytes_ == theirs.code_size
    np.testing.assert_allclose(ours.decode(codes), theirs.decode(codes), rtol=1e-5, atol=1e-5)


def test_an_odd_number_of_half_bytes(X: np.ndarray, faiss: Any) -> None:
    theirs = faiss.ScalarQuantizer(11, faiss.ScalarQuantizer.QT_4bit)
    rows = np.ascontiguousarray(X[:, :11])
    theirs.train(rows)
    ours = ScalarQuantizer(4).fit(rows)
    np.testing.assert_array_equal(ours.encode(rows), theirs.compute_codes(rows))
    assert ours.transform(rows).shape == rows.shape


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "shift"), [("int8", 0), ("uint8", 128)])
def test_scalar_codes_of_sentence_transformers(X: np.ndarray, precision: str, shift: int) -> None:
    util = pytest.importorskip("sentence_transformers.util.quantization", reason="needs the extra `text`")
    ours = ScalarQuantizer(convention="sentence-transformers").fit(X[:400])
    theirs = util.quantize_embeddings(X, precision, calibration_embeddings=X[:400])
    np.testing.assert_array_equal(ours.encode(X).astype(np.int16) + shift, theirs)


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "shift"), [("ubinary", 0), ("binary", 128)])
def test_signs_of_sentence_transformers(X: np.ndarray, precision: str, shift: int) -> None:
    util = pytest.importorskip("sentence_transformers.util.quantization", reason="needs the extra `text`")
    codes = SignQuantizer().fit(X).encode(X)
    np.testing.assert_array_equal(codes.astype(np.int16) - shift, util.quantize_embeddings(X, precision))


def test_hamming_distances_of_faiss(X: np.ndarray, faiss: Any) -> None:
    rows = np.ascontiguousarray(X[:, :8])
    quantizer = SignQuantizer().fit(rows)
    codes = quantizer.encode(rows)
    index = faiss.IndexBinaryFlat(8)
    index.add(codes[100:])
    distances, _ = index.search(codes[:100], 5)
    signs = torch.from_numpy(quantizer.transform(rows))
    ours = torch.cdist(signs[:100], signs[100:]).square().sort(dim=1).values[:, :5] / 4
    np.testing.assert_allclose(ours, distances, atol=1e-4)


def test_rabitq_codes_of_faiss(X: np.ndarray, faiss: Any) -> None:
    ours = RaBitQuantizer(rotate=False).fit(X)
    theirs = faiss.RaBitQuantizer(12, faiss.METRIC_L2)
    center = ours.mean_.astype(np.float32)
    theirs.centroid = faiss.swig_ptr(center)
    codes, wanted = ours.encode(X), theirs.compute_codes(X)
    np.testing.assert_array_equal(codes[:, :2], wanted[:, :2])
    factors = [np.ascontiguousarray(of[:, 2:]).view(np.float32) for of in (codes, wanted)]
    np.testing.assert_allclose(*factors, rtol=1e-5)  # sums of 12 squares in another order
    np.testing.assert_allclose(ours.decode(codes), theirs.decode(wanted), rtol=1e-4, atol=1e-4)


def test_rabitq_distances_are_those_of_the_paper(X: np.ndarray) -> None:
    """‖r‖² + ‖q − m‖² − 2(q − m)·(y − m), with r, q and y in float64; unbiased over rotations."""
    q, rows = X[0].astype(np.float64), X[1:41].astype(np.float64)
    exact = np.square(rows - q).sum(axis=1)
    estimates = []
    for seed in range(200):
        quantizer = RaBitQuantizer(seed=seed).fit(X)
        m, P = quantizer.mean_, quantizer.rotation_
        r = (rows - m) @ P.T
        y = np.sign(r) * (np.square(r).sum(1) / np.abs(r).sum(1))[:, None]
        wanted = np.square(r).sum(1) + np.square(q - m).sum() - 2 * y @ (P @ (q - m))
        step = quantizer._quantizer()
        stored, squares = step.stored(torch.from_numpy(rows))
        asked = step.queries(torch.from_numpy(q[None]))[0]
        found = (squares - 2 * stored @ asked).numpy() + np.square(q - m).sum()
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * exact.max())
        estimates.append(found)
    mean, error = np.mean(estimates, axis=0), np.std(estimates, axis=0) / np.sqrt(200)
    assert np.abs((mean - exact) / error).max() < 5  # of 40 rows


def test_product_codes_of_faiss(faiss: Any, rng) -> None:
    """With whole numbers all sums are exact, so that codes depend on no order of additions."""
    X = rng.integers(-50, 50, (500, 12)).astype(np.float32)
    centers = rng.integers(-50, 50, (3, 256, 4)).astype(np.float32)
    theirs = faiss.ProductQuantizer(12, 3, 8)
    faiss.copy_array_to_vector(centers.ravel(), theirs.centroids)
    ours = ProductQuantizer.of(centers)
    parts = X.reshape(500, 3, 1, 4)
    nearest = np.sort(np.square(parts - centers).sum(axis=3), axis=2)
    X = X[(nearest[:, :, 0] < nearest[:, :, 1]).all(axis=1)]  # faiss takes any of the nearest centres
    codes = ours.encode(X)
    assert len(codes) > 450
    np.testing.assert_array_equal(codes, theirs.compute_codes(X))
    np.testing.assert_array_equal(ours.decode(codes), theirs.decode(codes))


def test_product_centres_are_as_good_as_those_of_faiss(X: np.ndarray, faiss: Any) -> None:
    theirs = faiss.ProductQuantizer(12, 3, 8)
    theirs.train(X)
    wanted = np.square(X - theirs.decode(theirs.compute_codes(X))).sum()
    ours = ProductQuantizer(3).fit(X)
    assert np.square(X - ours.transform(X)).sum() < 1.25 * wanted


def test_every_quantizer_is_among_those_tested() -> None:
    kinds = {name for name, kind in KINDS.items() if issubclass(kind, Quantizer)}
    assert {type(one).__name__ for one in EACH} == kinds


@each
def test_transform_decodes_what_is_encoded(quantizer: Quantizer, X: np.ndarray, tmp_path: Path) -> None:
    fitted = clone(quantizer).fit(X)
    codes = fitted.encode(X)
    assert codes[0].nbytes == fitted.n_bytes_
    np.testing.assert_allclose(fitted.transform(X), fitted.decode(codes), rtol=1e-6)
    tensor = fitted.encode(torch.from_numpy(X))
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), codes)
    loaded = iso.load_correction(fitted.save(tmp_path / "q.safetensors"))
    np.testing.assert_allclose(loaded.transform(X), fitted.transform(X), rtol=1e-5, atol=1e-5)
    chain = iso.Chain([iso.Center(), clone(quantizer)]).fit(X)
    np.testing.assert_allclose(chain.decode(chain.encode(X)), chain.transform(X), rtol=1e-6)
    loaded = iso.load_correction(chain.save(tmp_path / "c.safetensors"))
    np.testing.assert_allclose(loaded.decode(loaded.encode(X)), chain.transform(X), rtol=1e-5, atol=1e-5)
    with raises(iso.ShapeError, argument="codes"):
        fitted.decode(codes[:, :-1])
    assert fitted.transform(X.astype(np.float64)).dtype == np.float64
    batches = fitted.to_module()(torch.from_numpy(X).view(30, 20, 12))
    np.testing.assert_allclose(batches.view(600, 12), fitted.transform(X), rtol=1e-5, atol=1e-5)


@each
def test_blocks_give_what_all_together_give(quantizer: Quantizer, X: np.ndarray) -> None:
    whole, blocks = clone(quantizer).fit(X), clone(quantizer)
    for block in (X[:7], X[7:8], X[8:300], X[300:]):
        blocks.partial_fit(block)
    if isinstance(quantizer, ProductQuantizer):
        assert np.square(X - blocks.transform(X)).sum() < 1.1 * np.square(X - whole.transform(X)).sum()
    else:
        np.testing.assert_allclose(blocks.transform(X), whole.transform(X), rtol=1e-4, atol=1e-4)


def test_rows_are_drawn_from_all_blocks(rng, monkeypatch) -> None:
    monkeypatch.setattr("isoscope.corrections.product._MOST_ROWS", 300)
    quantizer = ProductQuantizer(1)
    for place in range(4):
        quantizer.partial_fit(rng.normal(size=(300, 2)) + 100 * place)
    rows = quantizer._statistic.rows
    assert len(rows) == 300
    assert np.bincount(((rows[:, 0] + 50) // 100).long()).min() > 40  # 75 of each expected


def test_bad_parameters(X: np.ndarray) -> None:
    with raises(iso.InputError, argument="bits", got=3):
        ScalarQuantizer(3).fit(X)
    with raises(iso.InputError, argument="convention"):
        ScalarQuantizer(4, convention="sentence-transformers").fit(X)
    with raises(iso.InputError, argument="n_parts", got=5):
        ProductQuantizer(5).fit(X)
    with pytest.raises(iso.InputError, match="at least 256 vectors"):
        ProductQuantizer(3).fit(X[:200])
    with pytest.raises(AttributeError):
        _ = iso.Chain([iso.Center()]).fit(X).encode


def test_truncation(X: np.ndarray) -> None:
    np.testing.assert_array_equal(iso.corrections.Truncate(5).fit_transform(X), X[:, :5])
    np.testing.assert_array_equal(iso.corrections.Truncate().fit_transform(X), X)


@parametrize_with_checks([HalfPrecision(), ScalarQuantizer(), SignQuantizer(), RaBitQuantizer()])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_takes_it_for_its_own(estimator: Any, check: Any) -> None:
    check(estimator)
