import itertools
import math

import numpy as np
import pytest
from tests.raising import raises

from isoscope.errors import InputError, UndefinedError
from isoscope.metrics.contextual import (
    adjusted_intra_similarity,
    adjusted_self_similarity,
    intra_similarity,
    s_inter,
    s_intra,
    sampled_anisotropy,
    self_similarity,
    type_similarities,
)
from isoscope.space import Space
from isoscope.statistics import Directions, GroupDirections, GroupMoments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 7)) + 0.7
TYPES = [f"t{k}" for k in RNG.integers(0, 9, size=57)] + ["once", "one", "uno"]
SENTENCES = RNG.integers(0, 8, size=60)


def cosine(a, b):
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def pair_mean(rows):
    return np.mean([cosine(a, b) for a, b in itertools.combinations(rows, 2)])


def groups_of(values):
    values = np.asarray(values)
    return {name: X[values == name] for name in np.unique(values).tolist()}


BY_TYPE, BY_SENTENCE = groups_of(TYPES), groups_of(SENTENCES)
LARGE = {name: rows for name, rows in BY_TYPE.items() if len(rows) > 1}


def test_self_similarity_by_brute_force():
    means = {name: pair_mean(rows) for name, rows in LARGE.items()}
    assert self_similarity(X, token_types=TYPES) == pytest.approx(np.mean(list(means.values())), rel=1e-12)
    assert s_intra(X, token_types=TYPES) == pytest.approx(np.mean(list(means.values())), rel=1e-12)
    assert type_similarities(X, token_types=TYPES) == pytest.approx(means, rel=1e-12)
    counts = [len(rows) for rows in LARGE.values()]
    weighted = np.average(list(means.values()), weights=counts)
    assert self_similarity(X, token_types=TYPES, weight="tokens") == pytest.approx(weighted, rel=1e-12)
    assert weighted != pytest.approx(np.mean(list(means.values())), rel=1e-6)


def test_intra_similarity_by_brute_force():
    to_mean = [np.mean([cosine(row, rows.mean(axis=0)) for row in rows]) for rows in BY_SENTENCE.values()]
    pairs = [pair_mean(rows) for rows in BY_SENTENCE.values() if len(rows) > 1]
    assert intra_similarity(X, sentences=SENTENCES) == pytest.approx(np.mean(to_mean), rel=1e-12)
    assert intra_similarity(X, sentences=SENTENCES, to="pairs") == pytest.approx(np.mean(pairs), rel=1e-12)


def test_s_inter_by_brute_force_is_the_expectation_of_one_draw_a_type():
    groups = list(BY_TYPE.values())
    expected = np.mean(
        [
            np.mean([cosine(a, b) for a, b in itertools.product(first, second)])
            for first, second in itertools.combinations(groups, 2)
        ]
    )
    assert s_inter(X, token_types=TYPES) == pytest.approx(expected, rel=1e-12)
    draws = [s_inter(X, token_types=TYPES, sampled=True, seed=seed) for seed in range(400)]
    error = np.std(draws) / 20
    assert error > 0
    assert abs(np.mean(draws) - expected) < 4 * error


def test_sampled_s_inter_draws_one_row_of_each_type():
    rows = np.eye(6)[[0, 0, 1, 1, 2, 2]] + 0.1 * np.eye(6)[[3, 4, 5, 3, 4, 5]]
    drawn = s_inter(rows, token_types=[0, 0, 1, 1, 2, 2], sampled=True, seed=1)
    possible = [
        np.mean([cosine(a, b) for a, b in itertools.combinations(choice, 2)])
        for choice in itertools.product(rows[:2], rows[2:4], rows[4:])
    ]
    assert min(abs(drawn - value) for value in possible) < 1e-12
    assert drawn == s_inter(rows, token_types=[0, 0, 1, 1, 2, 2], sampled=True, seed=1)


def test_s_intra_takes_at_most_so_many_instances():
    exact = s_intra(X, token_types=TYPES)
    assert s_intra(X, token_types=TYPES, max_instances=1000) == pytest.approx(exact, rel=1e-12)
    two = [s_intra(X, token_types=TYPES, max_instances=2, seed=seed) for seed in range(300)]
    assert len(set(two)) > 250
    assert abs(np.mean(two) - exact) < 4 * np.std(two) / math.sqrt(300)  # pairs drawn alike: unbiased


def test_adjusted_subtracts_the_mean_cosine_or_what_is_given():
    baseline = pair_mean(X)
    raw = self_similarity(X, token_types=TYPES)
    assert adjusted_self_similarity(X, token_types=TYPES) == pytest.approx(raw - baseline, rel=1e-10)
    assert adjusted_self_similarity(X, token_types=TYPES, anisotropy=0.25) == pytest.approx(raw - 0.25)
    for to in ("mean", "pairs"):
        raw = intra_similarity(X, sentences=SENTENCES, to=to)
        assert adjusted_intra_similarity(X, sentences=SENTENCES, to=to) == pytest.approx(
            raw - baseline, rel=1e-10
        )
        given = adjusted_intra_similarity(X, sentences=SENTENCES, to=to, anisotropy=0.25)
        assert given == pytest.approx(raw - 0.25)


def test_a_space_and_the_statistics_give_the_same():
    space = Space(X, token_types=TYPES, sentences=SENTENCES)
    types, sentences = GroupDirections.of(X, TYPES), GroupDirections.of(X, SENTENCES)
    moments = GroupMoments.of(X[:9], SENTENCES[:9]).update(X[9:], SENTENCES[9:])
    split = GroupDirections.of(X[:17], TYPES[:17]).merge(GroupDirections.of(X[17:], TYPES[17:]))
    for metric in (self_similarity, s_intra, s_inter, adjusted_self_similarity):
        expected = metric(X, token_types=TYPES)
        for other in (space, types, split):
            assert metric(other) == pytest.approx(expected, rel=1e-12)
    assert type_similarities(split) == pytest.approx(type_similarities(space))
    assert intra_similarity(space) == pytest.approx(intra_similarity(sentences, moments=moments), rel=1e-12)
    assert intra_similarity(space, to="pairs") == intra_similarity(sentences, to="pairs")
    adjusted = adjusted_intra_similarity(space)
    assert adjusted_intra_similarity(sentences, moments=moments) == pytest.approx(adjusted)
    assert adjusted_intra_similarity(space, anisotropy=Directions.of(X)) == pytest.approx(adjusted)
    pairs = adjusted_intra_similarity(space, to="pairs")
    assert adjusted_intra_similarity(sentences, to="pairs") == pytest.approx(pairs)


def test_zero_vectors_are_left_out():
    padded = np.vstack([X, np.zeros((4, 7))])
    types, sentences = [*TYPES, "t1", "t1", "t2", "pad"], [*SENTENCES, 0, 1, 1, 99]
    for metric in (self_similarity, s_intra, s_inter):
        assert metric(padded, token_types=types) == pytest.approx(metric(X, token_types=TYPES), rel=1e-12)
    raw = intra_similarity(X, sentences=SENTENCES, to="pairs")
    assert intra_similarity(padded, sentences=sentences, to="pairs") == pytest.approx(raw, rel=1e-12)
    assert math.isfinite(s_inter(padded, token_types=types, sampled=True))


def test_zero_vectors_move_the_mean_of_their_sentence_and_have_no_cosine():
    rows = np.vstack([X[:5], np.zeros((2, 7))])
    mean = rows.mean(axis=0)
    expected = np.mean([cosine(row, mean) for row in X[:5]])
    assert intra_similarity(rows, sentences=[0] * 7) == pytest.approx(expected, rel=1e-12)
    opposed = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]  # the first mean is zero: left out
    expected = intra_similarity(opposed[2:], sentences=[1, 1])
    assert intra_similarity(opposed, sentences=[0, 0, 1, 1]) == pytest.approx(expected, rel=1e-12)


def test_sampled_anisotropy_is_unbiased_for_pairs_of_different_sentences():
    groups = list(BY_SENTENCE.values())
    expected = np.mean(
        [
            np.mean([cosine(a, b) for a, b in itertools.product(first, second)])
            for first, second in itertools.combinations(groups, 2)
        ]
    )
    for n_sentences in (3, 1000):
        draws = [
            sampled_anisotropy(X, sentences=SENTENCES, n_sentences=n_sentences, seed=seed)
            for seed in range(400)
        ]
        assert np.std(draws) > 0
        assert abs(np.mean(draws) - expected) < 4 * np.std(draws) / 20
    assert draws[7] == sampled_anisotropy(Space(X, sentences=SENTENCES), seed=7)


def test_sampled_anisotropy_never_compares_tokens_of_one_sentence():
    rows = np.repeat(np.eye(5), 3, axis=0)  # one direction a sentence
    for seed in range(5):
        assert sampled_anisotropy(rows, sentences=np.repeat(range(5), 3), seed=seed) == 0


def test_a_sentence_of_one_token_reads_one_against_its_mean():
    assert intra_similarity([[1.0, 2.0], [3.0, -1.0]], sentences=[0, 1]) == pytest.approx(1.0, abs=1e-15)


def test_float32_far_from_the_origin():
    far = (X * 20 + 1e4).astype(np.float32)
    wide = far.astype(np.float64)
    for metric in (self_similarity, s_inter):
        assert 1 - metric(far, token_types=TYPES) == pytest.approx(
            1 - metric(wide, token_types=TYPES), rel=1e-6
        )


def test_extremes_stay_in_range():
    same = np.tile([[0.3, 0.1, 0.7]], (6, 1))
    assert self_similarity(same, token_types=[0, 0, 0, 1, 1, 1]) == pytest.approx(1, abs=1e-12)
    assert self_similarity(same, token_types=[0, 0, 0, 1, 1, 1]) <= 1
    assert intra_similarity(same, sentences=[0, 0, 0, 1, 1, 1]) <= 1
    assert self_similarity([[1.0], [-2.0]], token_types=[0, 0]) == -1
    assert intra_similarity([[9.0], [-1.0], [-1.0]], sentences=[0, 0, 0]) == pytest.approx(-1 / 3)


def test_undefined():
    with pytest.raises(UndefinedError, match="no token type has two vectors"):
        self_similarity(X[:3], token_types=["a", "b", "c"])
    with pytest.raises(UndefinedError, match=r"3 of them, 1 zero"):
        s_intra([[1.0], [0.0], [1.0]], token_types=["a", "b", "c"])
    with pytest.raises(UndefinedError, match="no sentence has two"):
        intra_similarity(X[:3], sentences=[0, 1, 2], to="pairs")
    with pytest.raises(UndefinedError, match="no sentence has a mean"):
        intra_similarity([[1.0, 0.0], [-1.0, 0.0]], sentences=[0, 0])
    with pytest.raises(UndefinedError, match="mean cosine needs two vectors"):
        adjusted_intra_similarity(GroupDirections.of([[1.0]], [0]), moments=GroupMoments.of([[1.0]], [0]))
    with pytest.raises(UndefinedError, match="there are 1"):
        s_inter(X[:3], token_types=["a", "a", "a"])
    with pytest.raises(UndefinedError, match="all 2 vectors are zero"):
        s_inter(np.zeros((2, 2)), token_types=["a", "b"], sampled=True)


def test_bad_arguments():
    with pytest.raises(InputError, match="`token_types` is missing"):
        self_similarity(X)
    with pytest.raises(InputError, match="`sentences` is missing"):
        intra_similarity(Space(X))
    with pytest.raises(InputError, match="weight"):
        self_similarity(X, token_types=TYPES, weight="words")
    with raises(InputError, argument="to"):
        intra_similarity(X, sentences=SENTENCES, to="centre")
    with pytest.raises(InputError, match="max_instances"):
        s_intra(X, token_types=TYPES, max_instances=1)
    with pytest.raises(InputError, match="sampling needs the vectors"):
        s_inter(GroupDirections.of(X, TYPES), sampled=True)
    with pytest.raises(InputError, match="to='pairs'"):
        intra_similarity(GroupDirections.of(X, SENTENCES))
    with pytest.raises(InputError, match="wanted both from the same rows"):
        intra_similarity(GroupDirections.of(X, SENTENCES), moments=GroupMoments.of(X, TYPES))
    with pytest.raises(InputError, match="n_sentences"):
        sampled_anisotropy(X, sentences=SENTENCES, n_sentences=1)
