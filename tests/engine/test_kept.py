"""A measurement's statistics are used again, and its vectors are not held for that."""

from __future__ import annotations

import gc
import os
import pickle
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import isoscope as iso
from isoscope.engine.kept import shelf_of
from isoscope.errors import InputError


@pytest.fixture(name="X")
def vectors(rng) -> np.ndarray:
    return rng.normal(size=(90, 5))


LABELS = np.arange(90) % 3


def test_what_was_computed_is_not_computed_again(X: np.ndarray, passes) -> None:
    first = iso.measure(X, labels=LABELS)
    assert set(passes.over(X)) >= {"Moments", "Separation"}
    before = passes.over(X)
    again = iso.measure(first, metrics=["isoscore", "silhouette"])
    assert dict(again) == {"isoscore": first["isoscore"], "silhouette": first["silhouette"]}
    assert dict(iso.measure(again, metrics="isoscore")) == {"isoscore": first["isoscore"]}
    assert passes.over(X) == before


def test_another_seed_or_other_labels_are_measured_anew(X: np.ndarray) -> None:
    first = iso.measure(X, labels=LABELS)
    others = LABELS[::-1].copy()
    others[:5] = 0
    assert dict(iso.measure(first, labels=others, seed=1)) == dict(iso.measure(X, labels=others, seed=1))


@pytest.mark.parametrize(
    ("before", "given"),
    [
        ({}, {"weights": 1.0 + np.arange(90) % 4}),
        ({"weights": 1.0 + np.arange(90) % 4}, {"weights": 1.0 + np.arange(90) % 7}),
        (
            {"token_types": np.arange(90) % 9, "sentences": np.arange(90) // 9},
            {"token_types": np.arange(90) % 5, "sentences": np.arange(90) // 5},
        ),
        ({"partners": np.eye(90, 5)}, {"partners": np.ones((90, 5))}),
    ],
    ids=["weights", "other weights", "token types and sentences", "partners"],
)
def test_what_is_given_with_a_measurement_is_used(X: np.ndarray, before: dict, given: dict) -> None:
    again = iso.measure(iso.measure(X, **before), **given)
    assert dict(again) == dict(iso.measure(X, **given))
    assert dict(iso.measure(again)) == dict(again)


@pytest.mark.slow
def test_vectors_are_not_held(X: np.ndarray) -> None:
    kept = X.copy()
    measured = iso.measure(kept)
    alive = weakref.ref(kept)
    del kept
    gc.collect()
    assert alive() is None
    with pytest.raises(InputError, match="vectors are no longer in memory"):
        iso.measure(measured)


def test_vectors_that_have_changed_are_refused(X: np.ndarray) -> None:
    measured = iso.measure(X)
    X += 1
    with pytest.raises(InputError, match="changed since"):
        iso.measure(measured)


def _space_of(X: np.ndarray) -> iso.Space:
    return iso.Space(torch.from_numpy(X))


@pytest.mark.parametrize("row", [0, 1, 598, 599])
@pytest.mark.parametrize(
    "held",
    [np.asarray, torch.from_numpy, lambda X: pd.DataFrame(X, copy=False), np.ndarray.tolist, _space_of],
    ids=["numpy", "torch", "pandas", "list", "Space"],
)
def test_one_changed_row_is_noticed(rng, held, row: int) -> None:
    given = held(rng.normal(size=(600, 8)))
    measured = iso.measure(given, metrics="isoscore")
    vectors = given.vectors if isinstance(given, iso.Space) else given
    if isinstance(vectors, pd.DataFrame):
        vectors.iloc[row, 0] = 1e6
    else:
        vectors[row][0] = 1e6
    for use in (iso.measure, iso.report, iso.advise):
        with pytest.raises(InputError, match="changed since"):
            use(measured)


def test_a_change_behind_a_view_is_noticed(rng) -> None:
    base = rng.normal(size=(8, 1200))
    view = base.T[::2]
    measured = iso.measure(view, metrics="isoscore")
    base[0, 1] = 1e6  # not in the view
    assert iso.measure(measured, metrics="isoscore")["isoscore"] == measured["isoscore"]
    base[0, 2] = 1e6
    with pytest.raises(InputError, match="changed since"):
        iso.measure(measured)


def test_another_shape_of_the_same_bytes_is_noticed(X: np.ndarray) -> None:
    measured = iso.measure(X, metrics="isoscore")
    X.resize((45, 10), refcheck=False)
    with pytest.raises(InputError, match="changed since"):
        iso.measure(measured)


@pytest.mark.parametrize("name", ["weights", "partners"])
def test_changed_weights_or_partners_are_noticed(X: np.ndarray, name: str) -> None:
    given = {"weights": np.ones(90), "partners": X + 1.0}[name]
    measured = iso.measure(X, **{name: given})
    given[1] = 7.0
    with pytest.raises(InputError, match="changed since"):
        iso.measure(measured)


def test_a_file_is_opened_again_and_its_notes_stay(X: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    measured = iso.measure(iso.open_vectors(tmp_path / "x.npy"), metrics="isoscore")
    assert shelf_of(measured).moments is measured._kept._shelf.moments
    assert iso.measure(measured, metrics="lid").n == 90


@pytest.mark.parametrize("opened", [str, iso.open_vectors], ids=["path", "opened"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_file_that_has_changed_is_refused(X: np.ndarray, tmp_path: Path, opened, times: int) -> None:
    path = tmp_path / "x.npy"
    np.save(path, X)
    measured = iso.measure(opened(path), metrics="isoscore")
    for _ in range(times - 1):
        measured = iso.measure(measured, metrics="isoscore")
    np.save(path, X * np.arange(1, 6))
    os.utime(path, ns=(0, 0))  # a clock may be too coarse to tell the two apart
    for use in (iso.measure, iso.report, iso.advise):
        with pytest.raises(InputError, match="changed since"):
            use(measured)


def test_one_of_many_files_that_has_changed_is_noticed(X: np.ndarray, tmp_path: Path) -> None:
    for number in range(2):
        np.save(tmp_path / f"{number}.npy", X + number)
    measured = iso.measure(f"{tmp_path}/*.npy", metrics="isoscore")
    assert dict(iso.measure(measured, metrics="isoscore")) == pytest.approx(dict(measured))
    np.save(tmp_path / "1.npy", X[:50])
    with pytest.raises(InputError, match="changed since"):
        iso.measure(measured)


def test_a_file_without_a_length_is_known_again(X: np.ndarray, tmp_path: Path) -> None:
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    measured = iso.measure(tmp_path / "x.csv", metrics="isoscore")
    again = iso.measure(iso.measure(measured, metrics="isoscore"), metrics=["isoscore", "lid"])
    assert again["isoscore"] == measured["isoscore"]


def test_another_process_has_the_readings_alone(X: np.ndarray) -> None:
    measured = iso.measure(X)
    sent = pickle.loads(pickle.dumps(measured))
    assert sent == measured
    with pytest.raises(InputError, match="without its vectors"):
        iso.measure(sent)
