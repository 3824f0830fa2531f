"""Compute tests/metrics/peers.json: what published packages say of fixed spaces.

    pip install reptrix==0.1.0 stable-pretraining==0.1.8    # in an environment of its own
    python -m tests.metrics.peers

Neither package is needed to run the tests, which compare with the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("peers.json")
N_GROUPS, N_VIEWS = 40, 8


def spaces() -> dict[str, np.ndarray]:
    """Return the spaces: rows of the same group, of N_GROUPS, follow each other."""
    rng = np.random.default_rng(0)
    n = N_GROUPS * N_VIEWS
    ranks = np.arange(1, 129)
    groups = np.repeat(rng.normal(size=(N_GROUPS, 128)) * ranks**-0.4, N_VIEWS, axis=0)
    return {
        "power law": rng.normal(size=(n, 128)) * ranks**-0.5 + 1,
        "groups": groups + 0.3 * rng.normal(size=(n, 128)),
        "narrow": groups[:, :24] + 0.5 * rng.normal(size=(n, 24)),
    }


def main() -> None:
    """Write the file."""
    import torch
    from reptrix.alpha import get_alpha
    from reptrix.rankme import get_rankme
    from stable_pretraining.callbacks.lidar import LiDAR

    found: dict[str, Any] = {"reptrix": "0.1.0", "stable-pretraining": "0.1.8"}
    for name, X in spaces().items():
        rows = torch.from_numpy(X)
        wide = X.shape[1] >= 100  # the package fits ranks 11 to 100
        monitor = LiDAR("lidar", "x", len(X), X.shape[1], n_classes=N_GROUPS, samples_per_class=N_VIEWS)
        found[name] = {
            "alpha": float(get_alpha(rows)[0]) if wide else None,
            "rankme": float(get_rankme(rows)),
            "lidar": monitor._compute_lidar(rows)["lidar"],
        }
    FILE.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
