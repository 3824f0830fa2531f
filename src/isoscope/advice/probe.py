"""A linear probe that is fast to fit: logistic regression, its penalty chosen inside the training rows."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

PENALTIES = (100.0, 10.0, 1.0)  # λ of λ‖W‖²/2 + Σ loss, strongest first: each starts from the one before
_HELD_OUT = 0.2  # of the training rows, to choose the penalty on
_MAX_STEPS = 60
_TOLERANCE = 1e-4


def probe_predictions(train: Tensor, codes: Tensor, test: Tensor, *, n_labels: int, seed: int) -> Tensor:
    """The labels a logistic regression gives to test rows.

        minimise  Σ_i −log softmax(W x_i + b)_{y_i} + λ‖W‖²/2

    Vectors are centred and divided by one number, so that a dimension's mean square is 1: no correction gains
    by its scale alone. λ is the best of `PENALTIES` on a fifth of the training rows; then all are fitted.

    Args:
        train, test: (n, d) and (m, d) vectors.
        codes: (n,) int64 labels of the training rows.
        n_labels: K.
        seed: of the fifth that is held out.
    """
    center = train.mean(dim=0)
    scale = (train - center).square().mean().sqrt().clamp(min=1e-30)
    train, test = ((rows - center) / scale for rows in (train, test))
    inner = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    n_held = max(1, int(_HELD_OUT * len(train)))
    held, rest = inner[:n_held], inner[n_held:]
    weights: np.ndarray | None = None
    best: tuple[float, float, np.ndarray] | None = None
    for penalty in PENALTIES:
        weights = _fitted(train[rest], codes[rest], n_labels, penalty, weights)
        loss = float(torch.nn.functional.cross_entropy(_scores(train[held], weights, n_labels), codes[held]))
        if best is not None and loss > best[0]:
            break  # weaker penalties fit the noise better still
        best = (loss, penalty, weights)
    assert best is not None
    weights = _fitted(train, codes, n_labels, best[1], best[2])
    return _scores(test, weights, n_labels).argmax(dim=1)


def _fitted(
    rows: Tensor, codes: Tensor, n_labels: int, penalty: float, start: np.ndarray | None
) -> np.ndarray:
    """(d + 1, K) weights, flat, the intercepts last; L-BFGS from `start`."""
    from scipy.optimize import minimize

    n, d = rows.shape
    wanted = torch.zeros(n, n_labels, dtype=rows.dtype)
    wanted[torch.arange(n), codes] = 1

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = torch.from_numpy(flat).to(rows.dtype).reshape(d + 1, n_labels)
        log_shares = torch.log_softmax(rows @ W[:d] + W[d], dim=1)
        loss = -(log_shares * wanted).sum() + penalty * W[:d].square().sum() / 2
        excess = log_shares.exp() - wanted
        gradient = torch.cat([rows.T @ excess + penalty * W[:d], excess.sum(dim=0, keepdim=True)])
        return float(loss) / n, gradient.double().flatten().numpy() / n

    first = np.zeros((d + 1) * n_labels) if start is None else start
    options = {"maxiter": _MAX_STEPS, "gtol": _TOLERANCE, "ftol": 1e-6}
    return np.asarray(minimize(objective, first, jac=True, method="L-BFGS-B", options=options).x)


def _scores(rows: Tensor, flat: np.ndarray, n_labels: int) -> Tensor:
    W = torch.from_numpy(flat).to(rows.dtype).reshape(-1, n_labels)
    return rows @ W[:-1] + W[-1]
