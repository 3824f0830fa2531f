"""The clusters of many layers at once are those of each layer alone."""

import pytest
import torch

from isoscope.clustering import choose_clusters, kmeans
from isoscope.models.layers.layer_clusters import choose_in_each, kmeans_in_each


def _spaces(n_spaces: int = 5, n: int = 120, d: int = 12) -> list[torch.Tensor]:
    """Spaces of one to five clusters, of single and double precision, one far from the origin."""
    generator = torch.Generator().manual_seed(3)
    spaces = []
    for number in range(n_spaces):
        centers = 4 * torch.randn(number + 1, d, generator=generator)
        codes = torch.randint(0, number + 1, (n,), generator=generator)
        spaces.append(centers[codes] + torch.randn(n, d, generator=generator))
    spaces[-1] = spaces[-1] + 100
    return spaces


@pytest.mark.parametrize("n_init", [1, 2])
def test_the_number_of_clusters_is_that_of_each_alone(n_init):
    spaces = _spaces()
    for one, own in zip(choose_in_each(spaces, n_init=n_init, seed=5), spaces, strict=True):
        alone = choose_clusters(own, n_init=n_init, seed=5)
        assert one is not None
        assert one.n_clusters == alone.n_clusters
        assert list(one.silhouettes) == list(alone.silhouettes)
        assert list(one.silhouettes.values()) == pytest.approx(list(alone.silhouettes.values()), abs=1e-6)
        assert one.labels.codes.equal(alone.labels.codes)


def test_groups_of_spaces_change_nothing(monkeypatch):
    spaces = _spaces()
    whole = choose_in_each(spaces, n_init=2, seed=0)
    monkeypatch.setattr("isoscope.models.layers.layer_clusters._MOST_NUMBERS", 2 * 120 * 14 * 2 * 15)
    parts = choose_in_each(spaces, n_init=2, seed=0)
    assert [one.silhouettes for one in whole] == [one.silhouettes for one in parts]


def test_kmeans_of_each_takes_its_own_number():
    spaces, numbers = _spaces(), [1, 2, 3, 4, 5]
    for labels, own, K in zip(kmeans_in_each(spaces, numbers, seed=1), spaces, numbers, strict=True):
        assert labels.codes.equal(kmeans(own, K, seed=1).labels.codes)


def test_points_on_few_places_leave_clusters_empty():
    places = torch.tensor([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]])
    spaces = [places[torch.arange(30) % 3], places[torch.arange(30) % 2]]
    for one, own in zip(choose_in_each(spaces, n_init=2, seed=0), spaces, strict=True):
        alone = choose_clusters(own, n_init=2, seed=0)
        assert one is not None
        assert one.n_clusters == alone.n_clusters
        assert one.silhouettes[2] == pytest.approx(alone.silhouettes[2])


def test_equal_points_have_no_number_of_clusters():
    one = choose_in_each([torch.ones(20, 3)], n_init=2, seed=0)[0]
    with pytest.raises(Exception, match="no number of clusters"):
        choose_clusters(torch.ones(20, 3), n_init=2)
    assert one is None


def test_two_points_cannot_be_compared():
    assert choose_in_each([torch.eye(2)], n_init=2, seed=0) == [None]
