from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.errors import InputError
from isoscope.report import installed_projections, projection
from isoscope.report.projections import projections


@pytest.fixture
def installed(monkeypatch) -> list[int]:
    """Stand-ins for both libraries, which take their first two coordinates; the seeds they were given."""
    seeds: list[int] = []

    class Picture:
        def __init__(self, n_components: int, random_state: int) -> None:
            assert n_components == 2
            seeds.append(random_state)

        def fit_transform(self, rows: np.ndarray) -> np.ndarray:
            torch.set_num_threads(torch.get_num_threads() + 1)  # as numba does, for the whole process
            return rows[:, :2]

    for name, picture in (("umap", "UMAP"), ("pacmap", "PaCMAP")):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        setattr(module, picture, Picture)
        monkeypatch.setitem(sys.modules, name, module)
    return seeds


def test_each_library_draws_its_picture(installed: list[int], rng) -> None:
    points = torch.from_numpy(rng.normal(size=(60, 4)))
    n_threads = torch.get_num_threads()
    found = projections(points, seed=5)
    assert torch.get_num_threads() == n_threads
    assert list(found) == ["UMAP", "PaCMAP"]
    assert installed == [5, 5]
    torch.testing.assert_close(found["UMAP"], points[:, :2].float().double())
    assert projections(points[:10]) == {}


def test_a_library_that_cannot_be_imported_draws_nothing(installed: list[int], monkeypatch, rng) -> None:
    module = ModuleType("umap")  # a folder of that name that holds no UMAP
    module.__spec__ = ModuleSpec("umap", None)
    monkeypatch.setitem(sys.modules, "umap", module)
    assert list(projections(torch.from_numpy(rng.normal(size=(60, 4))))) == ["PaCMAP"]


def test_a_projection_is_of_the_caller_s_kind_and_says_what_it_needs(
    installed: list[int], monkeypatch, rng
) -> None:
    X = rng.normal(size=(8, 4))
    np.testing.assert_allclose(projection(X, method="PaCMAP", seed=3), X[:, :2], rtol=1e-6)
    assert installed == [3]
    monkeypatch.setitem(sys.modules, "umap", None)
    assert installed_projections() == ["PaCMAP"]
    with pytest.raises(InputError, match="UMAP needs umap-learn"):
        projection(X)
    with pytest.raises(InputError, match=r"method.* must be one of UMAP, PaCMAP"):
        projection(X, method="TSNE")


def test_pictures_are_embedded(installed: list[int], rng) -> None:
    assert list(iso.report(rng.normal(size=(60, 4))).contents["points"]["pictures"]) == ["UMAP", "PaCMAP"]
