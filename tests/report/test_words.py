from __future__ import annotations

import numpy as np

import isoscope as iso


def headline(X: np.ndarray, labels: object = None) -> list[str]:
    return iso.report(X, labels=labels).headline


def test_a_round_space(rng) -> None:
    said = headline(rng.normal(size=(2000, 6)))
    assert said[0].startswith("Of 6 dimensions the variance fills about 6 and is spread over them almost")
    assert "close to isotropic (IsoScore" in said[0]
    assert said[1].startswith("Random vectors point nowhere in common, with a cosine of 0.00 on average")
    assert len(said) == 2


def test_a_cone_with_one_strong_dimension(rng) -> None:
    X = rng.normal(size=(500, 20)) * 0.1
    X[:, 7] += 3
    said = headline(X)
    assert said[1].startswith("The space is a narrow cone: two random vectors have a cosine of")
    assert said[2] == "Dimension 7 alone makes 100\u00a0% of what the dimensions add to the mean cosine."


def test_a_space_in_few_directions(rng) -> None:
    X = rng.normal(size=(500, 30)) * np.r_[20, np.ones(29)]
    assert f"lies in few directions (IsoScore {iso.isoscore(X):.4f})." in headline(X)[0]
    few = X[:20]
    debiased = iso.isoscore(few, debias=True)
    assert f"{debiased:.4f} once the bias of few vectors is removed)." in headline(few)[0]


def test_few_round_vectors_are_not_called_uneven(rng) -> None:
    """100 of 384 dimensions: the plain IsoScore is 0.2, the space is isotropic, and words say so."""
    X = rng.normal(size=(100, 384))
    said = headline(X)[0]
    assert iso.isoscore(X) < 0.25
    assert said.startswith(
        "100 vectors are few for 384 dimensions; as far as they show, the variance is spread"
    )
    assert "close to isotropic (IsoScore" in said
    assert "favours" not in said


def test_close_to_isotropic_is_near_one_only(rng) -> None:
    X = rng.normal(size=(3000, 24)) * np.linspace(0.2, 2, 24)
    assert 0.5 < iso.isoscore(X) < 0.6
    assert "is spread over most of them, but not evenly (IsoScore" in headline(X)[0]
    assert "close to isotropic about its mean (" in headline(rng.normal(size=(3000, 24)) + 0.5)[0]


def test_three_vectors_say_little(rng) -> None:
    shape, cosine = headline(rng.normal(size=(3, 24)))
    assert shape.startswith("3 vectors are too few to say how the variance is spread over 24 dimensions (Iso")
    assert cosine.endswith("on average.")  # no one pair in a hundred of three
    assert headline(rng.normal(size=(8, 24)))[0].startswith("8 vectors are too few to say")
    assert "one pair in a hundred exceeds" in headline(rng.normal(size=(60, 4)))[1]


def test_rounding_is_no_score() -> None:
    """One direction has an IsoScore of 0, which arithmetic misses by 1e-16."""
    said = headline(np.outer([0.0, 1.0, 0.3, 2.0], [1.0, 2.0, 3.0]))[0]
    assert "(IsoScore 0.0000" in said
    assert "e−" not in said


def test_labels_that_are_clusters_and_labels_that_are_not(rng) -> None:
    y = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 10)) + 12 * np.eye(10)[y]
    said = headline(X, y)[2]
    assert said.startswith("The 2 labels hold 88\u00a0% of the variance and form clear clusters")
    split = iso.metrics.scatter_decomposition(X, y)
    assert f"allow an IsoScore of {split.ceiling:.4f} at most" in said
    nothing = headline(X, rng.integers(0, 2, 400))[2]
    assert "are hardly visible as clusters" in nothing
    assert "they leave room for full isotropy" in nothing


def test_labels_that_hold_variance_by_chance_alone(rng) -> None:
    X, y = rng.normal(size=(1200, 24)), rng.integers(0, 500, 1200)
    position = iso.frontier_position(X, y, debias=True)
    assert iso.metrics.between_share(X, y) > 0.3
    said = headline(X, y)[2]
    share = f"{max(0.0, position.between_share):.0%}".replace("%", "\u00a0%")
    assert f"labels hold {share} of the variance (" in said
    assert "with what few vectors a label add by chance)" in said
    lone = headline(np.repeat(X[:6], 100, axis=0) + 0.1 * X[:600], np.repeat(range(6), 100))[2]
    assert "by chance" not in lone
