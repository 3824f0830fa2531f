"""Tables of bias and coverage: what each estimate gives on draws from spaces whose true value is known.

`python docs/generate.py --figures` writes them; tests compute one cell of each again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import isoscope as iso
from isoscope.statistics import KernelAlignment

NOISES = ("normal", "Student t5")
_Z = 1.959963984540054  # 97.5 % of a normal distribution lie below


def draw(rng: np.random.Generator, noise: str, n: int, d: int) -> np.ndarray:
    """(n, d) numbers of variance 1, independent of each other."""
    if noise == "normal":
        return rng.normal(size=(n, d))
    return rng.standard_t(5, size=(n, d)) / np.sqrt(5 / 3)


def covering(readings: list[tuple[float, float]], truth: float, n_draws: int, digits: int = 4) -> str:
    """Return mean ± standard deviation, the share of 95 % intervals with the truth, and of draws defined."""
    if len(readings) < 2:
        return "undefined"
    values, errors = np.array(readings).T
    held = np.abs(values - truth) <= _Z * errors
    of = "" if len(readings) == n_draws else f" of {len(readings)} draws"
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f} ({held.mean():.0%}{of})"


def measured(X: np.ndarray, names: list[str], **known: np.ndarray) -> dict[str, tuple[float, float]]:
    """Return the values and standard errors of the metrics that have both."""
    return {
        reading.metric: (reading.value, reading.standard_error)
        for reading in iso.measure(X, metrics=names, progress=False, **known).readings
        if reading.value is not None and reading.standard_error is not None
    }


# ---------------------------------------------------------------- IsoScore

N_DRAWS, N_DIMS, SIZES = 200, 768, (16, 64, 256)
SPECTRA = {
    "flat": np.ones(N_DIMS),
    "geometric, 1 to 0.001": np.geomspace(1, 1e-3, N_DIMS),
    "one direction of 50 times the variance": np.r_[50.0, np.ones(N_DIMS - 1)],
}
ESTIMATES: dict[str, bool | str] = {"plain": False, "debiased": True, "jackknife": "jackknife"}


def bias_table() -> str:
    """concepts/bias-table.md: mean and standard deviation over draws of every estimate."""
    lines = [
        f"| {N_DIMS} dimensions, {N_DRAWS} draws | truth | estimate | "
        + " | ".join(f"n = {n}" for n in SIZES)
        + " |",
        "|---|---|---|" + "---|" * len(SIZES),
    ]
    for spectrum_name, variances in SPECTRA.items():
        truth = (variances.sum() ** 2 / (variances**2).sum() - 1) / (N_DIMS - 1)
        for noise in NOISES:
            cells = [bias_cells(variances, noise, n) for n in SIZES]
            for row, estimate in enumerate(ESTIMATES):
                first = f"{spectrum_name}; {noise}" if row == 0 else ""
                shown = f"{truth:.3f}" if row == 0 else ""
                values = " | ".join(column[estimate] for column in cells)
                lines.append(f"| {first} | {shown} | {estimate} | {values} |")
    return "\n".join(lines) + "\n"


def bias_cells(variances: np.ndarray, noise: str, n: int) -> dict[str, str]:
    """Return every estimate of n rows."""
    rng = np.random.default_rng([n, NOISES.index(noise)])  # the same draws under every spectrum
    draws = [draw(rng, noise, n, N_DIMS) * np.sqrt(variances) for _ in range(N_DRAWS)]
    cells = {}
    for name, debias in ESTIMATES.items():
        scores = np.array([iso.isoscore(X, debias=debias) for X in draws])
        cells[name] = f"{scores.mean():.3f} ± {scores.std(ddof=1):.3f}"
    return cells


# ---------------------------------------------------------------- linear CKA


def cka_table() -> str:
    """concepts/cka-table.md: mean and standard deviation of CKA over draws, and how often intervals hold."""
    lines = [
        f"| {N_DIMS} dimensions, {N_DRAWS} draws | truth | | " + " | ".join(f"n = {n}" for n in SIZES) + " |",
        "|---|---|---|" + "---|" * len(SIZES),
    ]
    for shared in (0.0, 0.25):
        for spectrum_name in ("flat", "geometric, 1 to 0.001"):
            for noise in NOISES:
                cells = [cka_cells(spectrum_name, shared, noise, n) for n in SIZES]
                for row, name in enumerate(cells[0]):
                    first = (
                        f"{shared:.0%} of the dimensions shared; {spectrum_name}; {noise}" if row == 0 else ""
                    )
                    values = " | ".join(column[name] for column in cells)
                    lines.append(f"| {first} | {_cka(spectrum_name, shared):.3f} | {name} | {values} |")
    return "\n".join(lines) + "\n"


def cka_cells(spectrum: str, shared: float, noise: str, n: int, n_draws: int = N_DRAWS) -> dict[str, str]:
    """Return CKA of n rows, plain and debiased, of spaces that have a share of their dimensions in common."""
    rng = np.random.default_rng([n, NOISES.index(noise)])
    readings: dict[str, list[tuple[float, float]]] = {"plain": [], "debiased": []}
    for _ in range(n_draws):
        X, Y = (draw(rng, noise, n, N_DIMS) * np.sqrt(SPECTRA[spectrum]) for _ in range(2))
        Y[:, _common(shared)] = X[:, _common(shared)]
        for name, values in readings.items():
            cka, errors = KernelAlignment.of([X, Y], debias=name == "debiased").cka()
            values.append((float(cka[0, 1]), float(errors[0, 1])))
    truth = _cka(spectrum, shared)
    return {name: covering(values, truth, n_draws, digits=3) for name, values in readings.items()}


def _common(shared: float) -> np.ndarray:
    return np.arange(N_DIMS) % 4 < 4 * shared


def _cka(spectrum: str, shared: float) -> float:
    squares = SPECTRA[spectrum] ** 2
    return float(squares[_common(shared)].sum() / squares.sum())


# ---------------------------------------------------------------- neural collapse

COLLAPSE_DRAWS, COLLAPSE_DIMS, COLLAPSE_LABELS, ROWS_PER_LABEL = 100, 256, 10, (5, 10, 20)
LENGTHS = {"simplex": np.ones(COLLAPSE_LABELS), "lengths 1 to 4": np.linspace(1, 4, COLLAPSE_LABELS)}
COLLAPSE_SPECTRA = {"flat": np.ones(COLLAPSE_DIMS), "geometric": np.geomspace(1, 1e-3, COLLAPSE_DIMS)}


def collapse_table() -> str:
    """concepts/collapse-table.md: NC1 and NC2, plain and debiased, with n ≤ d."""
    sizes = " | ".join(f"n = {n * COLLAPSE_LABELS}" for n in ROWS_PER_LABEL)
    lines = [
        f"| {COLLAPSE_DIMS} dimensions, {COLLAPSE_LABELS} labels, {COLLAPSE_DRAWS} draws | truth | estimate "
        f"| {sizes} |",
        "|---|---|---|" + "---|" * len(ROWS_PER_LABEL),
    ]
    for means in LENGTHS:
        for spectrum in COLLAPSE_SPECTRA:
            for noise in NOISES:
                cells = [collapse_cells(means, spectrum, noise, n) for n in ROWS_PER_LABEL]
                for row, estimate in enumerate(cells[0]):
                    first = f"{means}; {spectrum}; {noise}" if row == 0 else ""
                    values = " | ".join(column[estimate][1] for column in cells)
                    lines.append(f"| {first} | {cells[0][estimate][0]} | {estimate} | {values} |")
    return "\n".join(lines) + "\n"


def label_means(lengths: str, spectrum: str) -> np.ndarray:
    """Return the means of labels about their mean, as long on average as rows are far from them."""
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(COLLAPSE_DIMS, COLLAPSE_LABELS)))[0].T
    means = axes * LENGTHS[lengths][:, None]
    means = means - means.mean(axis=0)
    return means * np.sqrt(COLLAPSE_SPECTRA[spectrum].sum() / (means**2).sum(axis=1).mean())


def collapse_truth(means: np.ndarray, variances: np.ndarray) -> dict[str, float]:
    """Return NC1 and NC2 of a population: the (K, d) means of its labels, and the variances within them."""
    K = len(means)
    M = means - means.mean(axis=0)
    gram, simplex = M @ M.T, np.eye(K) - 1 / K
    return {
        "nc1": float((np.linalg.pinv(M.T @ M).diagonal() * variances).sum()),
        "nc2": float(np.linalg.norm(gram / np.linalg.norm(gram) - simplex / np.linalg.norm(simplex))),
    }


def rank_truth(variances: np.ndarray) -> float:
    """Return RankMe of a population with the mean 0 and these variances."""
    shares = np.sqrt(variances) / np.sqrt(variances).sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def collapse_cells(
    lengths: str, spectrum: str, noise: str, n: int, n_draws: int = COLLAPSE_DRAWS
) -> dict[str, tuple[str, str]]:
    """Return the truth and the estimates of n rows a label, by metric."""
    variances, means = COLLAPSE_SPECTRA[spectrum], label_means(lengths, spectrum)
    truth = collapse_truth(means, variances)
    labels = np.repeat(np.arange(COLLAPSE_LABELS), n)
    rng = np.random.default_rng([n, NOISES.index(noise)])  # the same draws for all means and spectra
    names = ["nc1", "nc1_debiased", "nc2", "nc2_debiased"]
    readings = []
    for _ in range(n_draws):
        X = means[labels] + draw(rng, noise, len(labels), COLLAPSE_DIMS) * np.sqrt(variances)
        readings.append(measured(X, names, labels=labels))
    cells = {}
    for name in names:
        known, defined = truth[name[:3]], [reading[name] for reading in readings if name in reading]
        cells[name] = (f"{known:.4f}", covering(defined, known, n_draws))
    return cells


NEAR = 0.25  # of the length above: means so close that rows are missed
UNSEEN = 1000  # rows of each draw on which its means are tried


def missed_table() -> str:
    """concepts/missed-table.md: NC4, plain and debiased, against rows that the means have not seen."""
    sizes = " | ".join(f"n = {n * COLLAPSE_LABELS}" for n in ROWS_PER_LABEL)
    lines = [
        f"| {COLLAPSE_DIMS} dimensions, {COLLAPSE_LABELS} labels, {COLLAPSE_DRAWS} draws | | {sizes} |",
        "|---|---|" + "---|" * len(ROWS_PER_LABEL),
    ]
    for spectrum in COLLAPSE_SPECTRA:
        for noise in NOISES:
            cells = [missed_cells(spectrum, noise, n) for n in ROWS_PER_LABEL]
            for row, name in enumerate(cells[0]):
                first = f"{spectrum}; {noise}" if row == 0 else ""
                lines.append(f"| {first} | {name} | " + " | ".join(column[name] for column in cells) + " |")
    return "\n".join(lines) + "\n"


def missed_cells(spectrum: str, noise: str, n: int, n_draws: int = COLLAPSE_DRAWS) -> dict[str, str]:
    """Return the error on unseen rows, and both estimates from n rows a label."""
    deviations = np.sqrt(COLLAPSE_SPECTRA[spectrum])
    means = NEAR * label_means("simplex", spectrum)
    labels = np.repeat(np.arange(COLLAPSE_LABELS), n)
    rng = np.random.default_rng([n, NOISES.index(noise)])  # the same draws for all spectra
    names, unseen, readings = ["nc4", "nc4_debiased"], [], []
    for _ in range(n_draws):
        X = means[labels] + draw(rng, noise, len(labels), COLLAPSE_DIMS) * deviations
        readings.append(measured(X, names, labels=labels))
        own = rng.integers(0, COLLAPSE_LABELS, UNSEEN)
        Y = means[own] + draw(rng, noise, UNSEEN, COLLAPSE_DIMS) * deviations
        centres = X.reshape(COLLAPSE_LABELS, n, -1).mean(axis=1)
        nearest = ((centres**2).sum(axis=1) / 2 - Y @ centres.T).argmin(axis=1)
        unseen.append(float((nearest != own).mean()))
    truth = float(np.mean(unseen))
    cells = {"unseen rows": f"{truth:.3f}"}
    return cells | {name: covering([one[name] for one in readings], truth, n_draws, 3) for name in names}


# ---------------------------------------------------------------- RankMe

RANK_DRAWS, RANK_DIMS, RANK_SIZES = 50, 256, (32, 64, 128, 256, 1024)
RANK_SPECTRA = {
    "flat": np.ones(RANK_DIMS),
    "geometric, 1 to 0.001": np.geomspace(1, 1e-3, RANK_DIMS),
    "power law, exponent 1": 1 / np.arange(1, RANK_DIMS + 1),
    "40 dimensions, the rest 1e-6": np.r_[np.ones(40), np.full(RANK_DIMS - 40, 1e-6)],
}


def rank_table() -> str:
    """concepts/rank-table.md: RankMe, plain and debiased."""
    sizes = " | ".join(f"n = {n:,}" for n in RANK_SIZES)
    lines = [
        f"| {RANK_DIMS} dimensions, {RANK_DRAWS} draws | truth | estimate | {sizes} |",
        "|---|---|---|" + "---|" * len(RANK_SIZES),
    ]
    for spectrum, variances in RANK_SPECTRA.items():
        truth = rank_truth(variances)
        for noise in NOISES:
            cells = [rank_cells(spectrum, noise, n) for n in RANK_SIZES]
            for row, estimate in enumerate(cells[0]):
                first, known = (f"{spectrum}; {noise}", f"{truth:.1f}") if row == 0 else ("", "")
                values = " | ".join(column[estimate] for column in cells)
                lines.append(f"| {first} | {known} | {estimate} | {values} |")
    return "\n".join(lines) + "\n"


def rank_cells(spectrum: str, noise: str, n: int, n_draws: int = RANK_DRAWS) -> dict[str, str]:
    """Return the estimates of n rows, by metric."""
    rng = np.random.default_rng([n, NOISES.index(noise)])  # the same draws for all spectra
    values: dict[str, list[float]] = {"rankme": [], "rankme_debiased": []}
    for _ in range(n_draws):
        X = draw(rng, noise, n, RANK_DIMS) * np.sqrt(RANK_SPECTRA[spectrum])
        for name, found in values.items():
            found.append(float(getattr(iso.metrics, name)(X)))
    return {name: f"{np.mean(found):.1f} ± {np.std(found, ddof=1):.1f}" for name, found in values.items()}


# ---------------------------------------------------------------- α-ReQ

ALPHA_DRAWS, ALPHA_DIMS, ALPHA_SIZES = 60, 80, (40, 160, 400, 1600)
ALPHAS = (0.0, 0.5, 1.0, 2.0)
ALPHA_NOISES = (*NOISES, "lengths of Student t5")


def alpha_table() -> str:
    """concepts/alpha-table.md: α-ReQ, and how often its intervals hold."""
    lines = [
        f"| {ALPHA_DIMS} dimensions, {ALPHA_DRAWS} draws | truth | "
        + " | ".join(f"n = {n:,}" for n in ALPHA_SIZES)
        + " |",
        "|---|---|" + "---|" * len(ALPHA_SIZES),
    ]
    for alpha in ALPHAS:
        for noise in ALPHA_NOISES:
            cells = [alpha_cell(alpha, noise, n) for n in ALPHA_SIZES]
            lines.append(f"| power law; {noise} | {alpha:.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def alpha_cell(alpha: float, noise: str, n: int, n_draws: int = ALPHA_DRAWS) -> str:
    """Return α of n rows: over all draws, and how often the intervals hold in those that have one."""
    rng = np.random.default_rng([n, ALPHA_NOISES.index(noise)])  # the same draws for all spectra
    deviations = np.arange(1, ALPHA_DIMS + 1) ** (-alpha / 2)
    values, held = [], []
    for _ in range(n_draws):
        X = draw(rng, noise if noise in NOISES else "normal", n, ALPHA_DIMS) * deviations
        if noise not in NOISES:
            X /= np.sqrt(rng.chisquare(5, size=(n, 1)) / 3)  # all coordinates of a row alike
        reading = iso.measure(X, metrics="alpha_req", progress=False).readings[0]
        values.append(reading.value)
        if reading.standard_error is not None:
            held.append(abs(reading.value - alpha) <= _Z * reading.standard_error)
    share = f"{np.mean(held):.0%} of {len(held)}" if len(held) > n_draws / 10 else "withheld"
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f} ({share})"


TABLES: dict[str, Callable[[], str]] = {
    "bias-table.md": bias_table,
    "cka-table.md": cka_table,
    "collapse-table.md": collapse_table,
    "missed-table.md": missed_table,
    "rank-table.md": rank_table,
    "alpha-table.md": alpha_table,
}
