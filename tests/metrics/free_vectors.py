"""Vectors that are free to move together with a linear classifier, a few in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, softmax


@dataclass(frozen=True)
class Free:
    """A loss of free vectors x_i and a classifier: mean loss of their scores plus decay.

    Attributes:
        targets: (n, L) wanted shares or values of the classes.
        n_dims: of the vectors.
        loss: "cross-entropy", "squared" or "sets", binary cross-entropy of each class.
        has_bias: the classifier has one, without decay.
        decay, class_decay: of the vectors and of the classifier's weights: λ/2 times their squared norm.
    """

    targets: np.ndarray
    n_dims: int
    loss: str = "cross-entropy"
    has_bias: bool = True
    decay: float = 0.0
    class_decay: float = 0.0

    def split(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return vectors, weights and biases."""
        n, L = self.targets.shape
        X, W, b = np.split(flat, [n * self.n_dims, (n + L) * self.n_dims])
        return X.reshape(n, -1), W.reshape(L, -1), b

    def value(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient."""
        X, W, b = self.split(flat)
        Z, n = X @ W.T + b, len(X)
        if self.loss == "squared":
            loss, G = ((Z - self.targets) ** 2).sum() / 2, Z - self.targets
        elif self.loss == "sets":
            loss = -(self.targets * log_expit(Z) + (1 - self.targets) * log_expit(-Z)).sum()
            G = expit(Z) - self.targets
        else:
            loss, G = logsumexp(Z, axis=1).sum() - (self.targets * Z).sum(), softmax(Z, axis=1) - self.targets
        G = G / n
        decay = (self.decay * (X**2).sum() + self.class_decay * (W**2).sum()) / 2
        of_bias = G.sum(axis=0) * self.has_bias
        gradient = [(G @ W + self.decay * X).ravel(), (G.T @ X + self.class_decay * W).ravel(), of_bias]
        return float(loss / n + decay), np.concatenate(gradient)

    def size(self) -> int:
        """Return the number of numbers that are free."""
        n, L = self.targets.shape
        return (n + L) * self.n_dims + L

    def minimum(self, *, seed: int = 0) -> tuple[np.ndarray, float]:
        """Return the vectors at the end of a descent from random ones, and the loss."""
        start = np.random.default_rng(seed).normal(size=self.size())
        start[-self.targets.shape[1] :] *= self.has_bias
        options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 30}
        found = minimize(self.value, start, jac=True, method="L-BFGS-B", options=options)
        return self.split(found.x)[0], float(found.fun)

    def flow(self, X: np.ndarray, W: np.ndarray, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors and weights after that time of gradient flow, from a bias of 0."""
        start = np.concatenate([X.ravel(), W.ravel(), np.zeros(len(W))])
        found = solve_ivp(
            lambda _, flat: -self.value(flat)[1], (0, time), start, rtol=1e-10, atol=1e-13, method="DOP853"
        )
        X, W, _ = self.split(found.y[:, -1])
        return X, W


def one_hot(counts: list[int], *, smoothing: float = 0.0) -> np.ndarray:
    """Return (n, K) targets of labels with that many rows each."""
    K = len(counts)
    return np.eye(K)[np.repeat(np.arange(K), counts)] * (1 - smoothing) + smoothing / K


def score(X: np.ndarray) -> float:
    """Return IsoScore from the definition by eigenvalues."""
    variances = np.linalg.eigvalsh(np.cov(X.T, bias=True))
    return float((variances.sum() ** 2 / (variances**2).sum() - 1) / (len(variances) - 1))


def of_variances(variances: np.ndarray, n_dims: int) -> float:
    """Return IsoScore of principal variances, the others 0."""
    return float((variances.sum() ** 2 / (variances**2).sum() - 1) / (n_dims - 1))


def apart(X: np.ndarray, labels: np.ndarray) -> float:
    """Return the largest difference of a coordinate of a row from the mean of its label."""
    return max(float(np.ptp(X[labels == label], axis=0).max()) for label in np.unique(labels))
