"""Compute tests/metrics/peers.json: what published packages say of fixed spaces, and what isoscope says.

    pip install --no-deps reptrix==0.1.0 pytorch-cka==1.1.3 ckatorch==1.0.3    # and seaborn, for ckatorch
    pip install scikit-dimension==0.5.0 stable-pretraining==0.1.8
    pip install "numpy<2" dadapy==0.3.4    # compiles, in an environment of its own
    python -m tests.metrics.peers

The rows of packages that are installed are written again, the others stay. `make test` installs reptrix,
pytorch-cka and scikit-dimension, and compares with all rows; docs/generate.py makes the tables of the pages.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import isoscope as iso
from isoscope import metrics

FILE = Path(__file__).with_name("peers.json")
N_GROUPS, N_VIEWS = 40, 8
GROUPS = np.repeat(np.arange(N_GROUPS), N_VIEWS)


@dataclass(frozen=True)
class Row:
    """One number of a package beside ours.

    Attributes:
        package, function: the package with its version, and what was called.
        metric, space: our metric, and the space it was given.
        theirs, ours: both values.
        within: the relative difference that `why` explains.
        why: what is defined differently.
    """

    package: str
    function: str
    metric: str
    space: str
    theirs: float
    ours: float
    within: float
    why: str


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
        "sequence": sequence(800),
    }


def sequence(n: int) -> np.ndarray:
    """Return points of three dimensions that need no random numbers."""
    i = np.arange(1, n + 1)[:, None]
    return np.mod(i * np.sqrt([2.0, 3.0, 5.0]), 1.0) + 0.2 * np.sin(i * np.sqrt([7.0, 11.0, 13.0]))


GRIDE_KS = (1, 2, 4, 8, 16, 32)
OURS: dict[str, Callable[..., float]] = {
    "alpha_req": iso.metrics.alpha_req,
    "effective_rank": iso.effective_rank,
    "lidar": lambda X: metrics.lidar(X, GROUPS),
    "linear_cka": lambda X, Y: iso.linear_cka(X, Y),
    "linear_cka_debiased": metrics.linear_cka_debiased,
    "twonn": iso.twonn,
    "lid": partial(iso.lid, k=20),
    "correlation_dimension": metrics.correlation_dimension,
} | {f"gride, k = {k}": partial(metrics.gride, k=k) for k in GRIDE_KS}


def ours(metric: str, space: str) -> float:
    """Return our value; the names of two spaces are joined by "and"."""
    return float(OURS[metric](*(spaces()[name] for name in space.split(" and "))))


_ROUNDING = (1e-8, "rounding")
_DIFFERENT = {
    ("reptrix", "alpha_req"): (1e-7, "its weights 1/i are float32"),
    ("reptrix", "effective_rank"): (1e-4, "it adds 1e-7 to the shares"),
    ("stable-pretraining", "lidar"): (
        3e-4,
        "it adds 1e-8 to the eigenvalues, the paper 1e-7 to shares",
    ),
    ("scikit-dimension", "correlation_dimension"): (1e-3, "a pair at exactly the median distance"),
} | {("DADApy", f"gride, k = {k}"): (1.4 / (800 * k), "n − 1 in place of n") for k in GRIDE_KS}

Number = tuple[str, str, str, float]  # their function, our metric, the space, their value
_UNGROUPED = ("power law", "groups", "narrow")
_PAIRS = ("power law and groups", "groups and narrow")


def _reptrix() -> Iterator[Number]:
    import torch
    from reptrix.alpha import get_alpha
    from reptrix.rankme import get_rankme

    for name in _UNGROUPED:
        rows = torch.from_numpy(spaces()[name])
        if rows.shape[1] >= 100:  # the package fits ranks 11 to 100
            yield "get_alpha", "alpha_req", name, float(get_alpha(rows)[0])
        yield "get_rankme", "effective_rank", name, float(get_rankme(rows))


def _stable_pretraining() -> Iterator[Number]:
    import torch
    from stable_pretraining.callbacks.lidar import LiDAR

    for name in _UNGROUPED:
        X = spaces()[name]
        monitor = LiDAR("lidar", "x", len(X), X.shape[1], n_classes=N_GROUPS, samples_per_class=N_VIEWS)
        yield "LiDAR", "lidar", name, float(monitor._compute_lidar(torch.from_numpy(X))["lidar"])


def _dadapy() -> Iterator[Number]:
    from dadapy import Data

    data = Data(sequence(800))
    data.compute_distances(maxk=2 * GRIDE_KS[-1])
    yield "compute_id_2NN", "twonn", "sequence", float(data.compute_id_2NN()[0])
    for k, value in zip(GRIDE_KS, data.return_id_scaling_gride(range_max=2 * GRIDE_KS[-1])[0], strict=True):
        yield "return_id_scaling_gride", f"gride, k = {k}", "sequence", float(value)


def _scikit_dimension() -> Iterator[Number]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skdim.id import MLE, CorrInt, TwoNN

        for name in ("narrow", "sequence"):
            X = spaces()[name]
            yield "CorrInt(10, 20)", "correlation_dimension", name, float(CorrInt(10, 20).fit_transform(X))
            yield "TwoNN", "twonn", name, float(TwoNN().fit_transform(X))
            yield "MLE", "lid", name, float(MLE().fit_transform(X))


def _pytorch_cka() -> Iterator[Number]:
    import torch
    from cka import cka_from_features

    for pair in _PAIRS:
        X, Y = (torch.from_numpy(spaces()[name]) for name in pair.split(" and "))
        yield "cka_from_features", "linear_cka_debiased", pair, float(cka_from_features(X, Y))


def _ckatorch() -> Iterator[Number]:
    import torch
    from ckatorch import cka_base

    for pair in _PAIRS:
        X, Y = (torch.from_numpy(spaces()[name]) for name in pair.split(" and "))
        yield "cka_base", "linear_cka", pair, float(cka_base(X, Y))


PACKAGES: dict[str, Callable[[], Iterator[Number]]] = {
    "reptrix": _reptrix,
    "stable-pretraining": _stable_pretraining,
    "DADApy": _dadapy,
    "scikit-dimension": _scikit_dimension,
    "pytorch-cka": _pytorch_cka,
    "ckatorch": _ckatorch,
}


def installed(package: str) -> str | None:
    """Return the version of a package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def rows() -> list[Row]:
    """Return the rows of the file."""
    return [Row(**row) for row in json.loads(FILE.read_text())]


def main() -> None:
    """Write the rows of packages that are installed."""
    found = rows() if FILE.exists() else []
    for package, numbers in PACKAGES.items():
        if installed(package):
            found = [row for row in found if not row.package.startswith(f"{package} ")]
            name = f"{package} {installed(package)}"
            found += [
                Row(
                    name, function, metric, space, value, ours(metric, space),
                    *_DIFFERENT.get((package, metric), _ROUNDING),
                )
                for function, metric, space, value in numbers()
            ]  # fmt: skip
            print(f"{name}: {sum(row.package == name for row in found)} numbers", file=sys.stderr)
    order = list(PACKAGES)
    found.sort(key=lambda row: order.index(row.package.split(" ")[0]))
    FILE.write_text(json.dumps([asdict(row) for row in found], indent=2) + "\n")


if __name__ == "__main__":
    main()
