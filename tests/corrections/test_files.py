from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tests.raising import raises

import isoscope as iso
from isoscope.io.sealed import read_tensors, write_tensors

EACH = [
    iso.Center(),
    iso.Standardize(),
    iso.Normalize(),
    iso.AllButTheTop(2, as_published=True),
    iso.Whiten(3, 0.5, method="zca", regularization=0.1),
    iso.corrections.RemoveDimensions(dimensions=(1, 4), zero=True),
    iso.corrections.ClusterCenter(3, seed=1),
    iso.corrections.Truncate(3),
    iso.corrections.ScalarQuantizer(4),
    iso.corrections.HalfPrecision(),
    iso.corrections.SignQuantizer(asymmetric=True),
    iso.corrections.ClusterwiseAllButTheTop(2, 1),
    iso.Chain([iso.Whiten(3), iso.Chain([iso.Standardize(), iso.Normalize()])]),
]


@pytest.fixture(name="X")
def vectors(rng) -> np.ndarray:
    return rng.normal(size=(100, 6)) * np.arange(1, 7) + 3


@pytest.mark.parametrize("correction", EACH, ids=lambda one: type(one).__name__)
def test_saved_and_loaded_it_is_the_same(correction: Any, X: np.ndarray, tmp_path: Path) -> None:
    fitted = clone(correction).fit(X)
    path = fitted.save(tmp_path / "c.safetensors")
    loaded = iso.load_correction(path)
    np.testing.assert_allclose(loaded.transform(X), fitted.transform(X), rtol=1e-12, atol=1e-12)
    if not isinstance(correction, iso.Chain):
        assert repr(loaded).replace("[1, 4]", "(1, 4)") == repr(fitted)
        again = loaded.save(tmp_path / "again.safetensors")
        assert again.read_bytes() == path.read_bytes() or "dimensions" in correction.get_params()
    assert not list(tmp_path.glob(".*"))


def test_numbers_of_numpy_are_numbers(X: np.ndarray, tmp_path: Path) -> None:
    """A search over np.arange hands them to corrections, which are saved all the same."""
    for ours, plain in (
        (iso.Whiten(np.int64(3), np.float32(0.5)), iso.Whiten(3, 0.5)),
        (iso.AllButTheTop(np.int32(2)), iso.AllButTheTop(2)),
        (
            iso.corrections.RemoveDimensions(dimensions=[np.int64(1), np.int64(4)]),
            iso.corrections.RemoveDimensions(dimensions=[1, 4]),
        ),
        (iso.corrections.RemoveDimensions(np.int64(2)), iso.corrections.RemoveDimensions(2)),
        (
            iso.corrections.ClusterwiseAllButTheTop(np.int64(2), np.int64(1)),
            iso.corrections.ClusterwiseAllButTheTop(2, 1),
        ),
    ):
        wanted = plain.fit_transform(X)
        np.testing.assert_allclose(ours.fit_transform(X), wanted, rtol=1e-12, atol=1e-12)
        read = iso.load_correction(ours.save(tmp_path / "c.safetensors"))
        np.testing.assert_allclose(read.transform(X), wanted, rtol=1e-12, atol=1e-12)


def test_a_file_may_be_read_as_any_other(X: np.ndarray, tmp_path: Path) -> None:
    path = iso.Center().fit(X).save(tmp_path / "c.safetensors")
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_pipelines_and_lists_are_one_file(X: np.ndarray, tmp_path: Path) -> None:
    pipeline = make_pipeline(iso.Center(), "passthrough", iso.Whiten(2), iso.Normalize()).fit(X)
    wanted = pipeline.transform(X)
    iso.save_correction(pipeline, tmp_path / "a.safetensors")
    iso.save_correction(
        [step for _, step in pipeline.steps if step != "passthrough"], tmp_path / "b.safetensors"
    )
    for name in "ab":
        assert np.allclose(iso.load_correction(tmp_path / f"{name}.safetensors").transform(X), wanted)


def test_names_of_columns_are_kept(X: np.ndarray, tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"))
    path = iso.corrections.RemoveDimensions(dimensions=[1]).fit(frame).save(tmp_path / "c.safetensors")
    loaded = iso.load_correction(path)
    assert list(loaded.get_feature_names_out()) == list("acdef")
    loaded.transform(frame)  # without a warning


def test_what_is_not_a_fitted_correction(X: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    with pytest.raises(NotFittedError):
        iso.Whiten().save(path)
    y = np.arange(100) % 2
    for other in (make_pipeline(iso.Center(), LogisticRegression()).fit(X, y), [], 5):
        with pytest.raises(iso.InputError, match="expected a fitted correction"):
            iso.save_correction(other, path)
    assert not path.exists()


def test_places_that_cannot_be_written(X: np.ndarray, tmp_path: Path) -> None:
    center = iso.Center().fit(X)
    with pytest.raises(iso.FileError, match=r"ends in \.safetensors"):
        center.save(tmp_path / "c.pkl")
    with pytest.raises(iso.FileError, match="Create it first"):
        center.save(tmp_path / "no" / "c.safetensors")
    (tmp_path / "d.safetensors").mkdir()
    with pytest.raises(iso.FileError, match="is a folder"):
        center.save(tmp_path / "d.safetensors")


def test_files_hold_no_statistics(X: np.ndarray, tmp_path: Path) -> None:
    loaded = iso.load_correction(iso.Center().fit(X).save(tmp_path / "c.safetensors"))
    with pytest.raises(iso.InputError, match="has no statistics"):
        loaded.partial_fit(X)
    assert np.allclose(loaded.fit(X + 1).mean_, X.mean(axis=0) + 1)


def edited(path: Path, change: Any) -> Path:
    """A saved file with its JSON and tensors changed by someone who seals it again."""
    tensors, metadata = read_tensors(path)
    about = json.loads(metadata["isoscope_correction"])
    about = change(about, tensors) or about
    return write_tensors(path, tensors, {"isoscope_correction": json.dumps(about)})


def put(where: dict, name: str, value: Any) -> None:
    where[name] = value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda about, _: put(about, "format", 3), "format 3, written by isoscope .* newer isoscope"),
        (lambda about, _: put(about, "format", "x"), "does not name its format"),
        (lambda about, _: [about], "does not name its format"),
        (lambda about, _: put(about, "steps", []), "no steps"),
        (lambda about, _: put(about["steps"][0], "kind", "os.system"), "unknown kind 'os.system'"),
        (lambda about, _: put(about["steps"][0], "kind", ["Center"]), r"unknown kind \['Center'\]"),
        (lambda about, _: put(about["steps"][0], "kind", {"Center": 1}), "unknown kind {'Center': 1}"),
        (lambda about, _: put(about["steps"][0], "kind", None), "unknown kind None"),
        (lambda about, _: put(about["steps"][0], "parameters", [1]), "cannot be read"),
        (lambda about, _: put(about["steps"][0], "n_features_in", {}), "cannot be read"),
        (lambda about, _: put(about["steps"][0], "feature_names_in", 5), "cannot be read"),
        (lambda about, _: put(about, "steps", [5]), "unknown kind None"),
        (lambda about, _: put(about["steps"][0], "n_features_in", 7), "mean_ of shape .* of 7 dimensions"),
        (lambda about, _: put(about["steps"][0]["parameters"], "evil", 1), "cannot be read"),
        (
            lambda about, _: put(about["steps"][0]["parameters"], "strength", 9),
            "`strength` must be .*, got 9",
        ),
        (lambda _, tensors: put(tensors, "0.mean_", tensors["0.mean_"] / 0), "not finite"),
        (lambda _, tensors: tensors.__delitem__("0.components_"), "components_ missing"),
        (
            lambda _, tensors: put(tensors, "0.eigenvalues_", tensors["0.eigenvalues_"][:2]),
            "eigenvalues_ of shape",
        ),
        (lambda _, tensors: put(tensors, "0.mean_", tensors["0.mean_"][:, None]), r"mean_ of shape \(6, 1\)"),
        (lambda _, tensors: put(tensors, "0.mean_", tensors["0.mean_"].to(torch.complex64)), "complex64"),
    ],
)
def test_edited_files(X: np.ndarray, tmp_path: Path, change: Any, message: str) -> None:
    path = edited(iso.Whiten(3).fit(X).save(tmp_path / "c.safetensors"), change)
    with pytest.raises(iso.InputError, match=message):
        iso.load_correction(path)


@pytest.mark.parametrize(
    "correction", [iso.Center(), iso.corrections.ClusterwiseAllButTheTop(2, 1)], ids=repr
)
def test_no_flipped_bit_changes_a_correction(correction: Any, X: np.ndarray, tmp_path: Path) -> None:
    fitted = correction.fit(X)
    path, wanted = fitted.save(tmp_path / "c.safetensors"), fitted.transform(X)
    content = path.read_bytes()
    n_refused = 0
    for at in range(0, len(content), 3):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        try:
            assert np.array_equal(iso.load_correction(path).transform(X), wanted), at
        except iso.FileError:
            n_refused += 1
    assert n_refused > 0.3 * len(content)  # some bytes only pad the header


def test_files_without_a_checksum(X: np.ndarray, tmp_path: Path) -> None:
    """Those of format 1 never had one; those of format 2 have lost it."""
    fitted = iso.Whiten(3).fit(X)
    path = fitted.save(tmp_path / "c.safetensors")
    tensors, metadata = read_tensors(path)
    about = json.loads(metadata["isoscope_correction"])
    save_file(tensors, path, metadata={"isoscope_correction": json.dumps(about)})
    with pytest.raises(iso.FileError, match="has no checksum"):
        iso.load_correction(path)
    save_file(tensors, path, metadata={"isoscope_correction": json.dumps(about | {"format": 1})})
    assert np.array_equal(iso.load_correction(path).transform(X), fitted.transform(X))


def test_steps_that_do_not_fit_each_other(X: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    iso.save_correction([iso.Whiten(3).fit(X), iso.Center().fit(X)], path)
    with pytest.raises(iso.FileError, match="3 output dimensions before a Center with 6"):
        iso.load_correction(path)


def test_other_files(X: np.ndarray, tmp_path: Path) -> None:
    with raises(iso.FileError, message="does not exist", wanted="a file of a correction"):
        iso.load_correction(tmp_path / "no.safetensors")
    iso.save(iso.Space(X), tmp_path / "vectors.safetensors")
    with pytest.raises(iso.FileError, match="without a correction"):
        iso.load_correction(tmp_path / "vectors.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"\x80\x04 not a header at all")
    with pytest.raises(iso.FileError, match="cannot be read"):
        iso.load_correction(tmp_path / "broken.safetensors")
