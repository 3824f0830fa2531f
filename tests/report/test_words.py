from __future__ import annotations

import numpy as np

import isoscope as iso


def headline(X: np.ndarray, labels: object = None) -> list[str]:
    return iso.report(X, labels=labels).headline


def test_a_round_space(rng) -> None:
    said = headline(rng.normal(size=(2000, 6)))
    assert said[0].startswith("The variance is spread almost evenly")
    assert "close to isotropic: about 6 of 6 dimensions carry it (IsoScore" in said[0]
    assert said[1].startswith(
        "The vectors share no common direction: two random vectors have a mean cosine of 0.00"
    )
    assert len(said) == 2


def test_a_cone_with_one_strong_dimension(rng) -> None:
    X = rng.normal(size=(500, 20)) * 0.1
    X[:, 7] += 3
    said = headline(X)
    assert said[1].startswith(
        "All vectors point in a similar direction: two random vectors have a mean cosine"
    )
    assert said[2] == "Dimension 7 alone makes 100\u00a0% of the mean cosine."


def test_a_space_in_few_directions(rng) -> None:
    X = rng.normal(size=(500, 30)) * np.r_[20, np.ones(29)]
    assert "lies in few directions: about 1 of 30 dimensions" in headline(X)[0]
    assert f"(IsoScore {iso.isoscore(X):.4f}, effective rank " in headline(X)[0]
    few = X[:20]
    debiased = iso.isoscore(few, debias=True)
    assert f"{debiased:.4f} without the bias of few vectors)." in headline(few)[0]


def test_few_round_vectors_are_not_called_uneven(rng) -> None:
    """100 of 384 dimensions: the plain IsoScore is 0.2, the space is isotropic, and words say so."""
    X = rng.normal(size=(100, 384))
    said = headline(X)[0]
    assert iso.isoscore(X) < 0.25
    assert said.startswith(
        "100 vectors are few for 384 dimensions; as far as they show, the variance is spread"
    )
    assert "close to isotropic (IsoScore" in said
    assert "concentrated" not in said


def test_close_to_isotropic_is_near_one_only(rng) -> None:
    X = rng.normal(size=(3000, 24)) * np.linspace(0.2, 2, 24)
    assert 0.5 < iso.isoscore(X) < 0.6
    assert "is spread over most dimensions, but not evenly: about" in headline(X)[0]
    assert "close to isotropic about its mean: about" in headline(rng.normal(size=(3000, 24)) + 0.5)[0]


def test_three_vectors_say_little(rng) -> None:
    shape, cosine = headline(rng.normal(size=(3, 24)))
    assert shape.startswith(
        "3 vectors are too few to tell how the variance is spread over 24 dimensions (Iso"
    )
    assert "exceed" not in cosine  # 3 pairs have no top 1 %
    assert headline(rng.normal(size=(8, 24)))[0].startswith("8 vectors are too few to tell")
    assert "1\u00a0% of pairs exceed" in headline(rng.normal(size=(60, 4)))[1]


def test_rows_to_clean_come_first(rng) -> None:
    X = rng.normal(size=(400, 6))
    assert not any("cleaning" in sentence for sentence in headline(X))
    X[3] = X[[9, 12]] = X[20]
    X[[50, 60]] = 0
    found = "2 zero vectors and 4 rows that equal another row"
    assert headline(X)[0] == f"Some rows need cleaning: {found}; `isoscope look` lists them."


def test_rounding_is_no_score() -> None:
    """One direction has an IsoScore of 0, which arithmetic misses by 1e-16."""
    said = headline(np.outer([0.0, 1.0, 0.3, 2.0], [1.0, 2.0, 3.0]))[1]
    assert "(IsoScore 0.0000" in said
    assert "e−" not in said


def test_labels_that_are_clusters_and_labels_that_are_not(rng) -> None:
    y = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 10)) + 12 * np.eye(10)[y]
    said = headline(X, y)[2]
    assert said.startswith("The 2 labels explain 88\u00a0% of the variance and form clear clusters")
    split = iso.metrics.scatter_decomposition(X, y)
    assert f"the IsoScore is at most {split.ceiling:.4f}" in said
    nothing = headline(X, rng.integers(0, 2, 400))[2]
    assert "hardly form clusters" in nothing
    assert "they allow full isotropy" in nothing


def test_labels_that_hold_variance_by_chance_alone(rng) -> None:
    X, y = rng.normal(size=(1200, 24)), rng.integers(0, 500, 1200)
    position = iso.frontier_position(X, y, debias=True)
    assert iso.metrics.between_share(X, y) > 0.3
    said = headline(X, y)[2]
    share = f"{max(0.0, position.between_share):.0%}".replace("%", "\u00a0%")
    assert f"labels explain {share} of the variance (" in said
    assert "before a correction for chance)" in said
    lone = headline(np.repeat(X[:6], 100, axis=0) + 0.1 * X[:600], np.repeat(range(6), 100))[2]
    assert "chance" not in lone
