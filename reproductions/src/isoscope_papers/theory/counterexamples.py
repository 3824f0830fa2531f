"""The smallest cases in which a statement of Mickus et al. 2024 fails as written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from isoscope.metrics.clusters import calinski_harabasz_score
from isoscope.metrics.isotropy import isoscore
from isoscope.metrics.objectives import (
    classifier_objective,
    isotropy_objective,
    silhouette_objective,
)
from isoscope.metrics.objectives import (
    triplet_bound as bound_of,
)
from isoscope.metrics.silhouette import silhouette_score

ROOT_2 = math.sqrt(2)


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A space, or two to compare, on which a statement fails.

    Attributes:
        says: what is seen, in words.
        spaces: (n, d) vectors of each space.
        labels: of the points, the same in each.
        values: the numbers that show it.
        fails: whether the statement does fail, from the numbers.
    """

    says: str
    spaces: tuple[np.ndarray, ...]
    labels: tuple[Any, ...]
    values: Mapping[str, float]
    fails: bool

    @property
    def size(self) -> str:
        """n, K and d."""
        n, d = self.spaces[0].shape
        return f"n = {n}, K = {len(set(self.labels))}, d = {d}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "says": self.says,
            "size": self.size,
            "spaces": [space.tolist() for space in self.spaces],
            "labels": list(self.labels),
            "values": dict(self.values),
            "fails": self.fails,
        }


def variances(X: np.ndarray) -> np.ndarray:
    """(d,) the principal variances, divisor n."""
    centred = X - X.mean(axis=0)
    return np.linalg.eigvalsh(centred.T @ centred / len(X)).clip(min=0)


def cosine_to_ones(X: np.ndarray) -> float:
    """cos(1, V(D)) of principal variances."""
    v = variances(X)
    return float(v.sum() / (math.sqrt(len(v)) * np.linalg.norm(v)))


def signed_distances(X: np.ndarray, labels: Any) -> float:
    """Σ sign·‖d − d′‖, the objective before squares."""
    named = np.asarray(labels)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    return float((np.where(named[:, None] == named[None], -1, 1) * distances).sum())


def silhouette_needs() -> Counterexample:
    """Collapsed labels, near and far."""
    near, far = np.array([[0.0], [0], [1], [1]]), np.array([[0.0], [0], [9], [9]])
    labels = ("a", "a", "b", "b")
    values = {"near": silhouette_score(near, labels), "far": silhouette_score(far, labels)}
    return Counterexample(
        "a, a at 0 and b, b at 1 have silhouette 1, and so they have with b, b at 9",
        (near, far), labels, values, values["near"] == values["far"] == 1,
    )  # fmt: skip


def square_root() -> Counterexample:
    """Three points of three labels on a line, of one total variance."""
    even = np.array([[-1.0], [0], [1]]) / ROOT_2
    uneven = np.array([[-1.0], [-1], [2]]) / math.sqrt(6)
    labels = ("a", "b", "c")
    values = {
        "O_S even": silhouette_objective(even, labels),
        "O_S uneven": silhouette_objective(uneven, labels),
        "distances even": signed_distances(even, labels),
        "distances uneven": signed_distances(uneven, labels),
    }
    fails = math.isclose(values["O_S even"], values["O_S uneven"]) and not math.isclose(
        values["distances even"], values["distances uneven"]
    )
    return Counterexample(
        "−1, 0, 1 and −1, −1, 2, scaled to one variance, are both optimal for O_S, with sums of distances "
        f"{values['distances even']:.3f} and {values['distances uneven']:.3f}",
        (even, uneven), labels, values, fails,
    )  # fmt: skip


def angle() -> Counterexample:
    """Two points in three dimensions."""
    X = np.array([[0.0, 0, 0], [1, 0, 0]])
    alpha = math.acos(cosine_to_ones(X))
    return Counterexample(
        f"two points have variances (v, 0, 0), at {math.degrees(alpha):.1f}° from the all-ones vector",
        (X,), ("a", "b"), {"alpha": alpha}, alpha > math.pi / 4,
    )  # fmt: skip


def objective_i() -> Counterexample:
    """A small triangle and a long, flat one."""
    even = np.array([[0.0, 0], [1, 0], [0.5, math.sqrt(3) / 2]])
    flat = np.array([[0.0, 0], [4, 0], [2, 0.1]])
    values = {
        "cosine even": cosine_to_ones(even),
        "cosine flat": cosine_to_ones(flat),
        "sum even": isotropy_objective(even),
        "sum flat": isotropy_objective(flat),
    }
    fails = values["cosine even"] > values["cosine flat"] and values["sum even"] < values["sum flat"]
    return Counterexample(
        f"the order turns: an equilateral triangle has cosine 1 and sum {values['sum even']:.0f}, a long "
        f"flat one {values['cosine flat']:.3f} and {values['sum flat']:.0f}",
        (even, flat), ("a", "b", "c"), values, fails,
    )  # fmt: skip


def incompatible() -> Counterexample:
    """Three labels in two dimensions, one of them with two points."""
    X = np.array([[-1.0, 0], [-1, 0], [1, ROOT_2], [1, -ROOT_2]])
    labels = ("a", "a", "b", "c")
    n, spread = len(X), float(((X - X.mean(axis=0)) ** 2).sum())
    values = {
        "IsoScore": isoscore(X),
        "O_S": silhouette_objective(X, labels),
        "largest O_S at this variance": 2 * n * spread,
    }
    fails = math.isclose(values["IsoScore"], 1) and math.isclose(values["O_S"], 2 * n * spread)
    return Counterexample(
        "a, a at (−1, 0), b at (1, √2), c at (1, −√2): IsoScore 1, and O_S as large as the variance allows",
        (X,), labels, values, fails,
    )  # fmt: skip


def crowd(n_dims: int, n_inside: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of one label at the origin, of another at ±1 on each axis, and their labels."""
    X = np.vstack([np.zeros((n_inside, n_dims)), np.eye(n_dims), -np.eye(n_dims)])
    return X, np.repeat(["a", "b"], [n_inside, 2 * n_dims])


def clusters() -> Counterexample:
    """Three labels of two points each at the corners of a triangle; and two labels, one around the other."""
    X = np.repeat([[0.0, 0], [1, 0], [0.5, math.sqrt(3) / 2]], 2, axis=0)
    labels = tuple("aabbcc")
    two, names = crowd(2, 36)
    values = {
        "IsoScore": isoscore(X),
        "silhouette": silhouette_score(X, labels),
        "IsoScore of two labels": isoscore(two),
        "silhouette of two labels": silhouette_score(two, names),
    }
    isotropic = min(values["IsoScore"], values["IsoScore of two labels"]) > 1 - 1e-12
    return Counterexample(
        "a, a, b, b, c, c at the corners of an equilateral triangle: IsoScore 1, silhouette "
        f"{values['silhouette']:.0f}. Two labels: 36 points a at the origin, b at (±1, 0) and (0, ±1): "
        f"IsoScore 1, silhouette {values['silhouette of two labels']:.2f}",
        (X,), labels, values,
        isotropic and values["silhouette"] == 1 and values["silhouette of two labels"] > 0.8,
    )  # fmt: skip


def prior_norms() -> Counterexample:
    """Two points against one: both class vectors are worth the same, whatever their length."""
    X, labels = np.array([[1.0], [1], [-1]]), ("a", "a", "b")

    def value(a: float, b: float) -> float:
        return float(classifier_objective(X, labels, classes=np.array([[a], [b]])))

    best = max(product((-1.0, 0.0, 1.0), repeat=2), key=lambda pair: value(*pair))
    values = {
        "|c_a|": abs(best[0]),
        "|c_b|": abs(best[1]),
        "a unit of c_a": value(1, 0) - value(0, 0),
        "a unit of c_b": value(0, -1) - value(0, 0),
    }
    same = values["|c_a|"] == values["|c_b|"] and math.isclose(
        values["a unit of c_a"], values["a unit of c_b"]
    )
    return Counterexample(
        f"a, a at 1, b at −1: O_C = {values['a unit of c_a']:.0f}c_a − {values['a unit of c_b']:.0f}c_b; in "
        "|c| ≤ 1 both are best at length 1, for two points as for one",
        (X,), labels, values, same and values["|c_a|"] > 0,
    )  # fmt: skip


def collapse() -> Counterexample:
    """Three labels on a line: all corners of the unit balls are tried, since O_C is linear in each vector."""
    labels = ("a", "b", "c")
    best: float = -math.inf
    where: tuple[float, ...] = ()
    merged_always = True
    for points, classes in product(product((-1.0, 1.0), repeat=3), repeat=2):
        value = classifier_objective(_column(points), labels, classes=_column(classes))
        if value > best + 1e-12:
            best, where, merged_always = value, points, True
        if value > best - 1e-12:
            merged_always &= len(set(points)) < 3
    return Counterexample(
        f"on a line with |d|, |c| ≤ 1 the maximum of O_C, {best:.0f}, always has two labels at one point",
        (_column(where),), labels, {"O_C": best}, merged_always,
    )  # fmt: skip


def _column(values: tuple[float, ...]) -> np.ndarray:
    return np.array(values)[:, None]


def accuracy_of_least_squares(X: np.ndarray, labels: np.ndarray) -> float:
    """How often the linear classifier fitted to 0 and 1 by least squares is right."""
    wide = np.column_stack([X, np.ones(len(X))])
    wanted = labels[:, None] == np.unique(labels)
    scores = wide @ np.linalg.lstsq(wide, wanted.astype(float), rcond=None)[0]
    return float(np.mean(wanted[np.arange(len(X)), scores.argmax(axis=1)]))


def classifiers() -> Counterexample:
    """An equilateral triangle under two labels."""
    X = np.array([[0.0, 0], [1, 0], [0.5, math.sqrt(3) / 2]])
    labels = ("a", "a", "b")
    values = {"IsoScore": isoscore(X), "accuracy": accuracy_of_least_squares(X, np.array(labels))}
    return Counterexample(
        "an equilateral triangle, a, a, b: a linear classifier is right about all points, and IsoScore is 1",
        (X,), labels, values, math.isclose(values["IsoScore"], 1) and values["accuracy"] == 1,
    )  # fmt: skip


def triplet_bound() -> Counterexample:
    """Two points of a label in one place, one of another beside them."""
    X, labels = np.array([[0.0], [0], [1]]), ("a", "a", "b")
    values = {
        "O_S": silhouette_objective(X, labels),
        "with plain distances": signed_distances(X, labels),
        "bound": bound_of(X, labels),
    }
    fails = min(values["O_S"], values["with plain distances"]) > values["bound"]
    return Counterexample(
        f"a, a at 0, b at 1, the fewest points with a triplet: O_S is {values['O_S']:.0f}, with squares or "
        f"without, the bound {values['bound']:.0f}",
        (X,), labels, values, fails,
    )  # fmt: skip


def other_scores() -> Counterexample:
    """Two of three labels share a place."""
    X, labels = np.array([[0.0], [1e-3], [0], [1]]), ("a", "a", "b", "c")
    values = {
        "Calinski-Harabasz": calinski_harabasz_score(X, labels),
        "silhouette": silhouette_score(X, labels),
    }
    return Counterexample(
        f"a at 0 and 0.001, b at 0, c at 1: Caliński–Harabasz {values['Calinski-Harabasz']:,.0f}, and "
        f"without bound as a collapses, silhouette {values['silhouette']:.2f}",
        (X,), labels, values, values["Calinski-Harabasz"] > 1e5 and values["silhouette"] < 0,
    )  # fmt: skip
