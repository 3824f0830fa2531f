from __future__ import annotations

import numpy as np

import isoscope as iso


def headline(X: np.ndarray, labels: object = None) -> list[str]:
    return iso.report(X, labels=labels).headline


def test_a_round_space(rng) -> None:
    said = headline(rng.normal(size=(2000, 6)))
    assert said[0].startswith("Of 6 dimensions the variance fills about 6 and is spread over most of them")
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
    split = iso.scatter_decomposition(X, y)
    assert f"allow an IsoScore of {split.ceiling:.4f} at most" in said
    nothing = headline(X, rng.integers(0, 2, 400))[2]
    assert "are hardly visible as clusters" in nothing
    assert "they leave room for full isotropy" in nothing
