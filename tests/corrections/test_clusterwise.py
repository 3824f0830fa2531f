from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from tests.raising import raises

import isoscope as iso
from isoscope.corrections import clusterwise


@pytest.fixture(name="lumps")
def lumps_of_points(rng) -> tuple[np.ndarray, np.ndarray]:
    """Three lumps far apart, each stretched its own way, and which points lie in which."""
    codes = np.repeat([0, 1, 2], 60)
    X = np.concatenate(
        [rng.normal(size=(60, 5)) * (1 + 9 * np.eye(5)[i]) + 200 * np.eye(5)[i] for i in range(3)]
    )
    order = rng.permutation(180)
    return X[order] + 1000, codes[order]


def test_cluster_center_is_kmeans_and_a_mean(lumps) -> None:
    X, codes = lumps
    Y = iso.corrections.ClusterCenter(3).fit_transform(X)
    theirs = KMeans(3, n_init=5, random_state=0).fit(X)
    assert np.allclose(Y, X - theirs.cluster_centers_[theirs.labels_])
    for code in range(3):
        assert np.allclose(Y[codes == code].mean(axis=0), 0)


def test_published_procedure_cluster_by_cluster(lumps) -> None:
    """Rajaee and Pilehvar: each cluster centred, its own top components removed; by scikit-learn's PCA."""
    X, codes = lumps
    wanted = np.empty_like(X)
    for code in range(3):
        own = X[codes == code]
        pca = PCA(2).fit(own)
        centred = own - own.mean(axis=0)
        wanted[codes == code] = centred - centred @ pca.components_.T @ pca.components_
    assert np.allclose(iso.corrections.ClusterwiseAllButTheTop(3, 2).fit_transform(X), wanted)
    by_label = iso.corrections.ClusterwiseAllButTheTop(n_components=2).fit(
        X, labels=np.array(list("abc"))[codes]
    )
    assert np.allclose(by_label.transform(X), wanted)


def test_labels_decide_the_fit_and_the_nearest_centre_the_rest(rng) -> None:
    X = rng.normal(size=(40, 3))
    labels = ["left", "right"] * 20
    fitted = iso.corrections.ClusterCenter().fit(X, labels=labels)
    means = np.stack([X[::2].mean(axis=0), X[1::2].mean(axis=0)])
    assert np.allclose(fitted.means_, means)
    new = rng.normal(size=(50, 3))
    nearest = np.square(new[:, None] - means).sum(axis=2).argmin(axis=1)
    assert np.allclose(fitted.transform(new), new - means[nearest])


def test_blocks_with_labels_give_what_fit_gives(lumps) -> None:
    X, codes = lumps
    names = np.array(list("abc"))[codes]
    whole = iso.corrections.ClusterwiseAllButTheTop(n_components=2).fit(X, labels=names)
    parts = iso.corrections.ClusterwiseAllButTheTop(n_components=2)
    for rows in (slice(0, 50), slice(50, 51), slice(51, None)):
        parts.partial_fit(X[rows], labels=names[rows])
    assert np.allclose(parts.components_, whole.components_, atol=1e-10)
    streamed = iso.corrections.ClusterwiseAllButTheTop(n_components=2)
    space = iso.Space(X, labels=names)
    streamed.fit_blocks(lambda: space.blocks(64), use_labels=True)
    assert np.allclose(streamed.means_, whole.means_, rtol=1e-12)


def test_streams_are_clustered_on_a_draw_from_all_of_them(lumps, monkeypatch) -> None:
    X, codes = lumps
    ordered = X[np.argsort(codes, kind="stable")]  # the first block alone would know one lump
    blocks = [ordered[:60], ordered[60:120], ordered[120:]]
    whole = iso.corrections.ClusterCenter(3).fit(ordered)
    assert np.allclose(iso.corrections.ClusterCenter(3).fit_blocks(blocks).transform(X), whole.transform(X))
    monkeypatch.setattr(clusterwise, "_SAMPLE", 50)
    assert np.allclose(iso.corrections.ClusterCenter(3).fit_blocks(blocks).transform(X), whole.transform(X))


def test_a_draw_is_even(monkeypatch) -> None:
    monkeypatch.setattr(clusterwise, "_SAMPLE", 100)
    X = np.arange(1000.0)[:, None]
    drawn = np.concatenate([clusterwise._drawn(np.split(X, 10), seed).numpy() for seed in range(50)])
    assert len(drawn) == 5000
    assert abs(drawn.mean() - 499.5) < 4 * 289 / 5000**0.5
    assert len(np.unique(clusterwise._drawn(np.split(X, 10), 0))) == 100


def test_small_clusters(rng) -> None:
    X = np.concatenate([rng.normal(size=(50, 4)), [[900.0, 0, 0, 0], [901.0, 0, 0, 0]]])
    with pytest.raises(iso.InputError, match=r"`n_components` is 2, and cluster 1 has 2 vectors of rank 1"):
        iso.corrections.ClusterwiseAllButTheTop(2, 2, init=X[[0, -1]]).fit(X)
    kept = iso.corrections.ClusterwiseAllButTheTop(2, 2, init=X[[0, -1]], small="keep").fit(X)
    assert np.allclose(kept.transform(X)[-2:], 0)
    assert np.allclose(kept.components_[1, 1], 0)
    alone = iso.corrections.ClusterwiseAllButTheTop(2, 1, init=X[[0, -1]], small="keep").fit(X[:51])
    assert np.allclose(alone.transform(X[50:51]), 0)


def test_a_centre_without_vectors_keeps_its_place(rng) -> None:
    X = rng.normal(size=(20, 2))
    fitted = iso.corrections.ClusterCenter(init=[[500.0, 500.0], [0.0, 0.0]]).fit(X)
    assert np.allclose(fitted.transform([[501.0, 500.0]]), [[1.0, 0.0]])
    assert np.allclose(fitted.means_[1], X.mean(axis=0))


def test_bad_requests(rng) -> None:
    X = rng.normal(size=(20, 2))
    for parameters, message in (
        ({"n_clusters": 0}, "`n_clusters` must be .*, got 0"),
        ({"n_clusters": 21}, "`n_clusters` is 21, and X has n_samples = 20"),
        ({"seed": -1}, "`seed` must be a whole number"),
        ({"init": [[0.0, 0.0, 0.0]]}, r"`init` has shape \(1, 3\); expected \(K, 2\)"),
    ):
        with pytest.raises(iso.InputError, match=message):
            iso.corrections.ClusterCenter(**parameters).fit(X)
    with raises(iso.InputError, argument="small", got="no"):
        iso.corrections.ClusterwiseAllButTheTop(2, 1, small="no").fit(X)
    with pytest.raises(iso.ShapeError, match="`labels` has 3 entries"):
        iso.corrections.ClusterCenter().fit(X, labels=[1, 2, 3])
    with pytest.raises(iso.InputError, match="all or none"):
        iso.corrections.ClusterCenter(2).fit(X).partial_fit(X, labels=[0] * 20)
    with pytest.raises(iso.InputError, match="carry no labels"):
        iso.corrections.ClusterCenter(2).fit_blocks([X], use_labels=True)
    with pytest.raises(iso.ShapeError, match="no blocks"):
        iso.corrections.ClusterCenter(2).fit_blocks([])
