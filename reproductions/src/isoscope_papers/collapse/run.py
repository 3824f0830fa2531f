"""Run a data set with every encoder, length of the vectors and learning rate; predict each run first."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import isoscope as iso
from isoscope.errors import InputError
from isoscope.models import averaged_vectors, encode
from isoscope_papers.collapse import setups
from isoscope_papers.collapse.options import Options
from isoscope_papers.collapse.setups import (
    EVERY,
    LEARNING_RATES,
    NORMS,
    OF_ONE_LABEL,
    SETUPS,
    STEPS,
    Encoder,
    Setup,
)
from isoscope_papers.corpora import Corpus, load_corpus
from isoscope_papers.options import seed_list
from isoscope_papers.runs import keep, read, read_all
from isoscope_papers.study import Place

METRICS = ("isoscore", "silhouette", "between_share")


@dataclass(frozen=True)
class Prediction:
    """The numbers of `predict_collapse`, and the assumptions that fail."""

    isoscore: float
    end: float
    end_sd: float | None
    end_between_share: float
    collapse_value: float
    first_step: float
    sign: int
    reach: float
    fails: tuple[str, ...]


@dataclass(frozen=True)
class Trained:
    """What one seed came to.

    Attributes:
        seed: of the classifier.
        isoscore, silhouette, between_share: at the measured updates.
        rigid: IsoScore at the end, had the vectors of each label all moved as their mean did.
    """

    seed: int
    isoscore: tuple[float, ...]
    silhouette: tuple[float, ...]
    between_share: tuple[float, ...]
    rigid: float

    @property
    def end(self) -> float:
        """Return IsoScore at the end."""
        return self.isoscore[-1]

    @property
    def sign(self) -> int:
        """Return the sign of the change of IsoScore."""
        return int(np.sign(self.isoscore[-1] - self.isoscore[0]))


@dataclass(frozen=True)
class Condition:
    """A space at one length of the vectors and one learning rate: the prediction, then every seed."""

    norm: float | None
    learning_rate: float
    predicted: Prediction
    trained: tuple[Trained, ...]
    seconds: float


@dataclass(frozen=True)
class Space:
    """A data set with one encoder, in all conditions.

    Attributes:
        setup, encoder: their names.
        n, n_dims, n_labels: rows, dimensions, and labels that are scored.
        mean_norm: mean length of the vectors as the encoder gives them.
        has_sets: whether rows have sets of labels.
        source: of the texts.
        steps: numbers of updates that were measured.
        conditions: finished ones.
    """

    setup: str
    encoder: str
    n: int
    n_dims: int
    n_labels: int
    mean_norm: float
    has_sets: bool
    source: str
    steps: tuple[int, ...]
    conditions: tuple[Condition, ...]

    @property
    def title(self) -> str:
        """Return the data set and the encoder."""
        return f"{SETUPS[self.setup].title}, {self.encoder}"

    def fails(self, condition: Condition) -> tuple[str, ...]:
        """Return the assumptions that fail, of those that count."""
        exempt = OF_ONE_LABEL if self.has_sets else ()
        return tuple(name for name in condition.predicted.fails if name not in exempt)


@dataclass(frozen=True, eq=False)
class _Task:
    """Vectors, and a label or set of labels for each."""

    X: np.ndarray
    labels: Sequence[Any]
    source: str


def run_setup(setup: Setup, options: Options, place: Place, *, progress: bool | None = None) -> list[Space]:
    """Run one data set with all its encoders; finished conditions are not run again."""
    seeds = seed_list(options.seeds)
    return [_run_space(setup, encoder, seeds, place, progress) for encoder in setup.encoders]


def read_spaces(folder: Path) -> list[Space]:
    """Read the saved spaces, in the order of the setups."""
    names = [f"{setup.name}-{one.name}" for setup in SETUPS.values() for one in setup.encoders]
    return read_all(folder, "collapse", Space, names)


def _run_space(
    setup: Setup, encoder: Encoder, seeds: list[int], place: Place, progress: bool | None
) -> Space:
    task = prepare(setup, encoder, place, progress=progress)
    path = place.runs and place.runs / f"collapse-{setup.name}-{encoder.name}.json"
    first = iso.predict_collapse(task.X, task.labels)
    space = Space(
        setup.name, encoder.title, first.n, first.n_dims, first.n_labels,
        float(np.linalg.norm(task.X, axis=1).mean()), first.multi_label, task.source,
        tuple(range(0, STEPS + 1, EVERY)), (),
    )  # fmt: skip
    earlier = read(path, Space) if path and path.exists() else space
    if replace(earlier, conditions=()) != space:
        raise InputError(f"{path} is of other data or settings", hint="remove it to run it again")
    done = {(one.norm, one.learning_rate): one for one in earlier.conditions}
    wanted = [(norm, rate) for norm in _norms(space.mean_norm) for rate in LEARNING_RATES]
    for norm, rate in wanted:
        one = done.get((norm, rate))
        if one is None or [each.seed for each in one.trained] != seeds:
            X = task.X if norm is None else task.X * np.float32(norm / space.mean_norm)
            done[norm, rate] = _condition(X, task.labels, norm, rate, seeds, progress)
            space = replace(space, conditions=tuple(done[key] for key in wanted if key in done))
            if path:
                keep(space, path)
    return replace(space, conditions=tuple(done[key] for key in wanted))


def _norms(mean_norm: float) -> Iterator[float | None]:
    for norm in NORMS:
        if norm is None or abs(mean_norm / norm - 1) > setups.SAME_NORM:
            yield norm


def _condition(
    X: np.ndarray, labels: Sequence[Any], norm: float | None, learning_rate: float, seeds: list[int],
    progress: bool | None,
) -> Condition:  # fmt: skip
    predicted = predict(X, labels, learning_rate)
    began = time.perf_counter()
    run = iso.train_embeddings(
        X, labels, steps=STEPS, seeds=seeds, every=EVERY, metrics=METRICS, learning_rate=learning_rate,
        progress=progress,
    )  # fmt: skip
    scores, clusters, shares = (run.curves(name).tolist() for name in METRICS)
    assert run.tables is not None
    trained = tuple(
        Trained(
            seed, tuple(scores[place]), tuple(clusters[place]), tuple(shares[place]),
            rigid_isoscore(X, table, labels),
        )
        for place, (seed, table) in enumerate(zip(run.seeds, run.tables.cpu().numpy(), strict=True))
    )  # fmt: skip
    return Condition(norm, learning_rate, predicted, trained, round(time.perf_counter() - began, 2))


def predict(X: np.ndarray, labels: Sequence[Any], learning_rate: float) -> Prediction:
    """Predict a run, with what is declared in `setups` and nothing else."""
    one = iso.predict_collapse(X, labels, learning_rate=learning_rate, steps=STEPS)
    fails = tuple(each.name for each in one.assumptions if not each.holds)
    return Prediction(
        one.isoscore, one.end, one.end_sd, one.end_between_share, one.collapse_value, one.first_step,
        one.sign, one.reach, fails,
    )  # fmt: skip


def rigid_isoscore(X: np.ndarray, trained: np.ndarray, labels: Sequence[Any]) -> float:
    """Return the IsoScore of X after each label has moved, as one body, as far as its mean was trained to."""
    _, codes = np.unique([_as_text(label) for label in labels], return_inverse=True)
    counts = np.bincount(codes)[:, None]
    moved = np.zeros((len(counts), X.shape[1]))
    np.add.at(moved, codes, trained.astype(float) - X)
    return float(iso.isoscore(X + (moved / counts)[codes]))


def _as_text(label: Any) -> str:
    return ",".join(sorted(label)) if isinstance(label, frozenset) else str(label)


def prepare(setup: Setup, encoder: Encoder, place: Place, *, progress: bool | None = None) -> _Task:
    """Return the vectors and labels of a data set with one encoder."""
    if not setup.corpus:
        X, y = load_digits(return_X_y=True)
        n = _n_rows(len(set(y.tolist())), X.shape[1])
        rows = np.random.default_rng(0).permutation(len(X))[:n]
        return _Task(X[rows].astype(np.float32), y[rows].tolist(), "scikit-learn's digits")
    corpus = load_corpus(setup.corpus, data=place.data, download=place.download)
    texts, labels = _items(setup, corpus)
    n_labels = len({name for label in labels for name in _members(label)})
    if encoder is setups.GLOVE:
        n_dims = averaged_vectors(["the"], model=encoder.model)[0].shape[1]
    else:
        n_dims = encode([texts[0]], model=encoder.model, download=place.download, progress=False).shape[1]
    n = _n_rows(n_labels, n_dims)
    texts, labels = texts[:n], labels[:n]
    if encoder is setups.GLOVE:  # which has no capitals
        vectors, kept = averaged_vectors([text.lower() for text in texts], model=encoder.model)
        labels = [labels[row] for row in kept.tolist()]
    else:
        vectors = encode(
            [encoder.prefix + text for text in texts], model=encoder.model, download=place.download,
            device=place.device, progress=progress,
        )  # fmt: skip
    return _Task(vectors.cpu().numpy(), labels, f"{corpus.source}, {corpus.split}")


def _items(setup: Setup, corpus: Corpus) -> tuple[list[str], list[Any]]:
    """Return the texts with one of the first labels, in an order that is drawn."""
    wanted = set(corpus.label_names[: setup.n_labels])
    order = np.random.default_rng(0).permutation(len(corpus)).tolist()
    texts, labels = [], []
    for row in order:
        label = corpus.labels[row]
        if setup.only_single:
            if len(label) != 1:
                continue
            (label,) = label
        if isinstance(label, frozenset) or label in wanted:
            texts.append(corpus.columns[0][row])
            labels.append(label)
    return texts, labels


def _members(label: Any) -> frozenset[Any]:
    return label if isinstance(label, frozenset) else frozenset((label,))


def _n_rows(n_labels: int, n_dims: int) -> int:
    return max(setups.MIN_ROWS, setups.ROWS_PER_LABEL * n_labels, setups.NUMBERS // n_dims)
