from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tests.raising import raises

import isoscope as iso
from isoscope.comparison import compare, parse_gates, resampling
from isoscope.comparison.moved import displacements, overlap_error, shares_left_out, wide_neighbors
from isoscope.comparison.resampling import N_GROUPS, Groups
from isoscope.printable import counted
from isoscope.space import Space
from isoscope.statistics.cross import CrossMoments


def pair(rng: np.random.Generator, n: int = 200, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    A = rng.normal(size=(n, d))
    return A, A * np.linspace(1, 3, d) + 0.3 * rng.normal(size=(n, d))


def test_values_are_those_of_measure_and_of_the_formulas(rng: np.random.Generator) -> None:
    A, B = pair(rng)
    labels = A[:, 0] > 0
    found = compare(A, B, labels=labels, k=7)
    for X, side in ((A, "before"), (B, "after")):
        expected = dict(iso.measure(X, labels=labels, errors=False))
        assert {name: getattr(found[name], side) for name in found} == expected
    assert found["isoscore"].difference == iso.isoscore(B) - iso.isoscore(A)
    assert found.correspondence("cka") == iso.linear_cka(A, B)
    assert found.correspondence("cka_debiased") == iso.linear_cka(A, B, debias=True)
    assert found.correspondence("procrustes") == iso.metrics.procrustes_distance(A, B)
    assert found.correspondence("overlap") == iso.metrics.neighbor_overlap(A, B, k=7)


def test_each_statistic_of_either_space_is_computed_once(rng: np.random.Generator, passes) -> None:
    A, B = pair(rng)
    labels = A[:, 0] > 0
    measured = iso.measure(A, labels=labels)
    before = passes.over(A)
    found = compare(measured, B)
    for name, times in {"Moments": 1, "Directions": 1, "Separation": 1, "Neighbors cosine": 1}.items():
        assert passes.over(A)[name] - before[name] == times - (name != "Neighbors cosine"), name
        assert passes.over(B)[name] == times, name
    again = compare(A, B, labels=labels)
    assert found.to_dict()["metrics"] == again.to_dict()["metrics"]
    assert found.to_dict()["moved_rows"] == again.to_dict()["moved_rows"]


def test_the_labels_of_a_are_those_of_both(rng: np.random.Generator) -> None:
    A, B = pair(rng)
    own = iso.measure(B, labels=B[:, 1] > 0)
    found = compare(A, own, labels=A[:, 0] > 0, errors=False)
    assert found["silhouette"].after == iso.silhouette_score(B, A[:, 0] > 0)


@pytest.mark.slow
def test_intervals_of_differences_cover_the_truth() -> None:
    """Spectra are known, so is the difference of the true IsoScores; 95 % intervals should hold it."""
    scales = np.array([1.0, 1.0, 1.0, 2.0, 2.0]), np.array([1.0, 1.0, 1.5, 2.0, 3.0])
    truth = [((s**2).sum() ** 2 / (s**4).sum() - 1) / (len(s) - 1) for s in scales]
    n_held, n_draws, widths = 0, 60, []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(400, 5))
        found = compare(Z * scales[0], Z * scales[1], metrics="isoscore_debiased", n_moved=0, seed=seed)
        low, high = found["isoscore_debiased"].interval
        n_held += low <= truth[1] - truth[0] <= high
        widths.append(high - low)
    assert n_held >= 0.85 * n_draws
    assert max(widths) < 0.4
    # pairing pays: with rows of its own in each space the same difference is told less surely
    rng = np.random.default_rng(0)
    apart = compare(
        rng.normal(size=(400, 5)) * scales[0],
        rng.normal(size=(400, 5)) * scales[1],
        metrics="isoscore_debiased",
        n_moved=0,
    )["isoscore_debiased"].interval
    assert apart[1] - apart[0] > 1.2 * np.mean(widths)


def test_a_space_and_itself_rotated_do_not_differ(rng: np.random.Generator) -> None:
    A, _ = pair(rng)
    Q, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    found = compare(A, A @ Q, metrics="isoscore,mean_norm")
    assert not found["isoscore"].differs
    assert abs(found["mean_norm"].difference) < 1e-12
    assert found.correspondence("overlap") == 1.0
    assert all(row.displacement < 1e-6 for row in found.moved_rows)


def test_large_spaces_have_their_errors_from_a_part(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    A, B = pair(rng, n=1000)
    whole = compare(A, B, metrics="isoscore,calinski_harabasz", labels=A[:, 0] > 0)
    monkeypatch.setattr(resampling, "MAX_ROWS", 250)
    part = compare(A, B, metrics="isoscore,calinski_harabasz", labels=A[:, 0] > 0)
    widths = [np.diff(one["isoscore"].interval)[0] for one in (whole, part)]
    assert 0.4 < widths[1] / widths[0] < 2.5  # not twice as wide, as those of a quarter of the rows would be
    assert any("a random 250 of the 1,000 rows" in note for note in part.notes)
    assert whole["calinski_harabasz"].interval is not None
    assert part["calinski_harabasz"].interval is None


def test_what_moved_most_is_what_was_moved(rng: np.random.Generator) -> None:
    A = rng.normal(size=(150, 8)) + 6 * np.eye(8)[np.repeat([0, 1, 2], 50)]
    B = A.copy()
    B[[3, 60]] = B[[60, 3]]  # two items change places
    labels = np.repeat(["x", "y", "z"], 50)
    found = compare(A, B, labels=labels, texts=[f"text {i}" for i in range(150)], k=10, n_moved=2)
    assert {row.row for row in found.moved_rows} == {3, 60}
    assert found.moved_rows[0].overlap == 0
    assert {row.text for row in found.moved_rows} == {"text 3", "text 60"}
    assert found.moved_labels[0].label in ("x", "y")
    assert [one.n for one in found.moved_labels] == [50, 50]


def test_rows_are_named_by_neighbours_kept_then_by_distance(rng: np.random.Generator) -> None:
    A, B = pair(rng)
    B[7] += 40  # far off, but so it has neighbours again
    found = compare(A, B, metrics="isoscore", errors=False, n_moved=200)
    kept = [row.overlap for row in found.moved_rows]
    assert kept == sorted(kept)
    for first, second in itertools.pairwise(found.moved_rows):
        assert first.overlap < second.overlap or first.displacement >= second.displacement
    assert max(found.moved_rows, key=lambda row: row.displacement).row == 7
    assert np.isclose(np.mean(kept), found.correspondence("overlap"))


def test_displacements_are_residuals_of_the_best_rotation(rng: np.random.Generator) -> None:
    from scipy.linalg import orthogonal_procrustes

    A, B = rng.normal(size=(40, 5)), rng.normal(size=(40, 3))
    a, b = (S - S.mean(0) for S in (A, np.pad(B, ((0, 0), (0, 2)))))
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    expected = np.linalg.norm(a - b @ orthogonal_procrustes(b, a)[0], axis=1) * np.sqrt(20)
    spaces, rows = (torch.tensor(A), torch.tensor(B)), torch.tensor([0, 7, 39])
    sums = CrossMoments.of(*spaces)
    assert np.allclose(displacements(*spaces, sums, rows=torch.arange(40)), expected)
    assert np.allclose(displacements(*spaces, sums, rows=rows), expected[rows])
    rms = np.sqrt(np.mean(expected**2))
    assert np.isclose(rms, iso.metrics.procrustes_distance(A, B) / np.sqrt(2))


def test_ids_match_rows(rng: np.random.Generator) -> None:
    A, _ = pair(rng, n=60)
    names = [f"item {i}" for i in range(60)]
    order = rng.permutation(60)[:50]
    found = compare(
        Space(A, labels=["a", "b"] * 30), A[order] * 2, ids=(names, [names[i] for i in order]), n_moved=1
    )
    assert np.isclose(found.correspondence("cka"), 1)
    assert found.a.n == 50
    assert found.a.n_labels == 2
    assert "10 rows of A and 0 of B have no match and are left out" in found.notes


def test_labels_and_texts_are_of_the_rows_of_a_where_ids_leave_some_out(rng: np.random.Generator) -> None:
    A = rng.normal(size=(120, 8)) + 6 * np.eye(8)[np.repeat([0, 1, 2], 40)]
    B = A.copy()
    B[[3, 60]] = B[[60, 3]]  # two items change places
    there = np.r_[rng.permutation(110) + 10, 3]  # items 0 … 9 are not in B, but for item 3
    found = compare(
        A,
        B[there],
        ids=(range(120), there),
        labels=np.repeat(["x", "y", "z"], 40),
        texts=[f"text {i}" for i in range(120)],
        n_moved=2,
    )
    assert {(one.row, one.label, one.text) for one in found.moved_rows} == {
        (3, "x", "text 3"),
        (60, "y", "text 60"),
    }
    assert {(one.row, one.id) for one in found.moved_rows} == {(3, "3"), (60, "60")}
    with pytest.raises(iso.ShapeError, match="`texts` has 111 entries for 120"):
        compare(A, B[there], ids=(range(120), there), texts=["text"] * 111)


def test_notes_say_which_space_they_are_about(rng: np.random.Generator) -> None:
    A, B = pair(rng)
    B[5] = 0
    notes = compare(A, B, errors=False).notes
    assert any(note.startswith("B: cosines leave out 1 zero vector,") for note in notes)
    A[5] = 0
    notes = compare(A, B, errors=False).notes
    assert any(note.startswith("cosines leave out 1 zero vector,") for note in notes)


def nearest_by_cosine(X: np.ndarray, *, k: int) -> list[set[int]]:
    with np.errstate(invalid="ignore"):
        directions = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = np.nan_to_num(directions @ directions.T, nan=-2)
    np.fill_diagonal(cosines, -3)
    return [set(row) for row in np.argpartition(-cosines, k, axis=1)[:, :k].tolist()]


@pytest.mark.parametrize("n", [300, 6000])  # all rows asked for, and a sample of them
def test_a_row_that_became_zero_has_an_overlap_of_0(rng: np.random.Generator, n: int) -> None:
    A, B = pair(rng, n=n)
    gone = np.arange(0, n, 10)
    A[[7, 250]] = 0
    B[gone] = 0
    found = compare(iso.Space(A, name="old"), B, metrics="isoscore", n_moved=n)
    whole = np.setdiff1d(np.arange(n), [*gone, 7])
    alone = compare(A[whole], B[whole], metrics="isoscore").correspondence("overlap")
    # a row that is zero in B is still a neighbour in A
    near = [nearest_by_cosine(X, k=10) for X in (A, B)]
    expected = sum(len(near[0][row] & near[1][row]) for row in whole) / 10 / (n - 1)
    assert expected < alone * len(whole) / (n - 1)
    overlap, interval = found.correspondence("overlap"), found.correspondences[-1].interval
    assert overlap == pytest.approx(expected, rel=1e-12 if n == 300 else 0.05)
    assert interval[0] <= expected <= interval[1]
    assert interval[1] - interval[0] < 0.2
    moved = {one.row: one.overlap for one in found.moved_rows}
    if n == 300:
        assert set(moved) == set(range(n)) - {250}
    assert not any(share for row, share in moved.items() if row in {7, *gone})
    first, second, third = (note for note in found.notes if note.startswith("zero vectors"))
    assert first.startswith("zero vectors in A (old) alone: 1 row (7, counted from 0); they count")
    assert second.startswith(f"zero vectors in B alone: {n // 10 - 1} rows (0, 10, 20, 30, 40, …, counted")
    assert third.endswith("in both: 1 row (250, counted from 0); they are left out of the overlap")
    assert not found.check(parse_gates([f"overlap>={(overlap + alone) / 2}"]))[0].passed


def test_zero_rows_are_named_by_their_ids(rng: np.random.Generator) -> None:
    A, B = pair(rng, n=100)
    A[30] = B[40] = 0
    turned = np.arange(100)[::-1]
    found = compare(A, B[turned], ids=(range(100), turned), metrics="isoscore")
    assert any("in A alone: 1 row (ids 30)" in note for note in found.notes)
    assert any("in B alone: 1 row (ids 40)" in note for note in found.notes)
    assert {one.id: one.zero for one in found.moved_rows if one.zero} == {"30": "A", "40": "B"}
    assert "zero in B" in str(found)
    notes = compare(A, B, metric="euclidean", metrics="isoscore").notes
    assert not any(note.startswith("zero vectors") for note in notes)


def error_of_overlap(A: np.ndarray, B: np.ndarray, *, k: int, metric: str, seed: int) -> float | None:
    groups = Groups.dealt(len(A), seed=seed)
    every = torch.ones(len(groups.rows), dtype=torch.bool)
    found = wide_neighbors(torch.tensor(A), torch.tensor(B), groups.rows, (every, every), k=k, metric=metric)
    return None if found is None else overlap_error(shares_left_out(found, groups, every, k=k), groups, every)


def test_the_interval_of_the_overlap_covers_it() -> None:
    """Against the spread over draws: rows that are neighbours of many make it wider than theirs."""
    values, errors = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(200, 3))
        B = A + 0.3 * rng.normal(size=A.shape)
        values.append(iso.metrics.neighbor_overlap(A, B))
        errors.append(error_of_overlap(A, B, k=10, metric="cosine", seed=seed))
    assert 0.8 < np.mean(errors) / np.std(values) < 2


def test_overlap_without_a_group_is_that_of_the_rows_that_stay(rng: np.random.Generator) -> None:
    A, B = pair(rng, n=120)
    groups = Groups.dealt(120, seed=3)
    stays = [groups.codes.numpy() != g for g in range(N_GROUPS)]
    left = [iso.metrics.neighbor_overlap(A[rows], B[rows], k=6, metric="euclidean") for rows in stays]
    assert np.isclose(error_of_overlap(A, B, k=6, metric="euclidean", seed=3), groups.error(left))
    assert error_of_overlap(A[:25], B[:25], k=6, metric="euclidean", seed=3) is None


def test_dimensions_may_differ_and_sources_are_read(rng: np.random.Generator, tmp_path: object) -> None:
    A, B = pair(rng)
    np.save(f"{tmp_path}/a.npy", A)
    found = compare(iso.open_vectors(f"{tmp_path}/a.npy"), B[:, :3])
    assert (found.a.name, found.a.d, found.b.d) == ("a", 6, 3)


def test_undefined_is_said(rng: np.random.Generator) -> None:
    A, B = pair(rng)
    A[5:] = 0
    found = compare(A, B)
    assert found.correspondence("overlap") is None
    assert f"neighbor_overlap is undefined: 5 of {len(A)} rows" in " ".join(str(found).split())
    assert not found.check(parse_gates(["overlap>=0"]))[0].passed
    few = compare(A[1:4], B[1:4], k=2)
    assert few.correspondence("cka_debiased") is None
    assert all(change.interval is None for change in few.changes)
    assert all(change.interval is None for change in compare(A, B, errors=False).changes)


def test_shown_as_text_json_and_html(rng: np.random.Generator) -> None:
    A, B = pair(rng)
    evil = ["<script>alert(1)</script>\x1b[31m"] * 200
    found = compare(A, B, labels=[f"<b>{i % 2}" for i in range(200)], texts=evil, n_moved=3)
    text, page = str(found), found._repr_html_()
    assert "\x1b" not in text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "B − A" in text
    assert "differs" in text
    facts = json.loads(found.to_json())
    assert facts["metrics"]["isoscore"]["difference"] == found["isoscore"].difference
    assert len(facts["moved_rows"]) == 3
    assert facts["seed"] == 0


def test_what_moved_is_named_by_its_id(rng: np.random.Generator) -> None:
    A, B = pair(rng, n=60)
    names = [f"key-{7 * i}" for i in range(60)]
    found = compare(A, B[::-1], ids=(names, names[::-1]), n_moved=3)
    assert all(one.id == f"key-{7 * one.row}" for one in found.moved_rows)
    assert all(f"key-{7 * one.row} " in str(found) for one in found.moved_rows)
    assert found.to_dict()["moved_rows"][0]["id"] == found.moved_rows[0].id
    plain = compare(A, B, n_moved=3)
    assert plain.moved_rows[0].id is None
    assert "  id  " not in str(plain)


@pytest.mark.parametrize(("n", "k"), [(3, 1), (5, 2), (20, 9), (21, 10), (200, 10)])
def test_few_rows_have_fewer_neighbours(rng: np.random.Generator, n: int, k: int) -> None:
    A, B = pair(rng, n=n)
    found = compare(A, B, metrics="mean_norm")
    assert found.k == k
    said = [note for note in found.notes if "instead of 10" in note]
    neighbors = counted(k, "neighbour")
    assert said == (
        [f"the overlap uses {neighbors} instead of 10, because there are only {n} rows"] if k < 10 else []
    )
    assert (
        found.to_dict()["correspondences"]
        == compare(A, B, metrics="mean_norm", k=k).to_dict()["correspondences"]
    )
    with raises(iso.InputError, argument="k"):
        compare(A, B, metrics="mean_norm", k=n)


def test_bad_input(rng: np.random.Generator) -> None:
    A, B = pair(rng)
    with pytest.raises(iso.ShapeError, match="got 200 and 199 rows"):
        compare(A, B[:-1])
    with pytest.raises(iso.InputError, match="ids of B must be unique, but 1 occurs 2 times"):
        compare(A, B, ids=(range(200), [1, *range(1, 200)]))
    with pytest.raises(iso.InputError, match="in both A and B"):
        compare(A, B, ids=(range(200), range(200, 400)))
    with pytest.raises(iso.InputError, match="`B` has weights"):
        compare(A, Space(B, weights=np.ones(200)))
    with pytest.raises(iso.InputError, match="must be 0 or more, got -1"):
        compare(A, B, n_moved=-1)
    with pytest.raises(KeyError, match="was not measured"):
        compare(A, B, metrics="isoscore")["silhouette"]


def test_sides_without_a_name_are_called_by_their_letter() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    found = iso.compare(X, iso.Space(X[:, :3], name="cut"))
    assert found.title == "A: 4 dimensions, B: cut (3 dimensions); 60 items"


def test_a_column_of_numeric_labels_in_both(tmp_path: Path, rng: np.random.Generator) -> None:
    A, codes = rng.normal(size=(60, 3)), np.arange(60) % 3
    frame = pd.DataFrame(A, columns=["x", "y", "z"])
    labelled = frame.assign(cls=codes)
    labelled.to_csv(tmp_path / "labelled.csv", index=False)
    frame.to_csv(tmp_path / "plain.csv", index=False)
    for B in (labelled, frame, tmp_path / "labelled.csv", tmp_path / "plain.csv"):
        for first in (labelled, tmp_path / "labelled.csv"):
            found = compare(first, B, labels="cls", metrics="isoscore")
            assert (found.a.d, found.b.d, found.a.n_labels) == (3, 3, 3)


def test_ids_in_an_array(rng: np.random.Generator) -> None:
    A, names = rng.normal(size=(60, 3)), np.arange(60)
    found = compare(A, A[::-1], ids=np.stack([names, names[::-1]]), metrics="isoscore")
    assert found.correspondence("cka") == pytest.approx(1)
    for ids in (names, []):
        with pytest.raises(iso.InputError) as caught:
            compare(A, A, ids=ids)
        assert caught.value.argument == "ids"
