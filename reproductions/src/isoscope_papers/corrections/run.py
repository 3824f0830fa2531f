"""Run a setup of *Should I whiten?*: every correction on every data set, kept as JSON."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope import encode, isoscore, mean_cosine
from isoscope.advice import Advice, advise, gain, holm
from isoscope.advice import Outcome as Tried
from isoscope.corrections import AllButTheTop, Center, Whiten
from isoscope.errors import InputError
from isoscope.metrics import neighbor_overlap
from isoscope.models import averaged_vectors, static_vectors, vocabulary
from isoscope.progress import Bar
from isoscope_papers.corpora import Corpus, load_corpus
from isoscope_papers.corrections import setups
from isoscope_papers.corrections.options import Options
from isoscope_papers.corrections.setups import Dataset, Setup
from isoscope_papers.runs import keep, read
from isoscope_papers.study import Place, split_names

_FREQUENT = 20_000  # words of a static table that corrections are fitted on besides those of the pairs
PENALTIES = (1e-6, 1e6, 25)  # of the probe with a wide range: from, to, how many
NOISE_POWER = 0.1  # of the variance of the vectors it is added to
N_NEIGHBORS = 10
ANALOGY_WORDS = 100_000  # the most frequent ones, among which the answer is looked for


@dataclass(frozen=True)
class Task:
    """One task: what is scored, on how many items, the score without a correction, and with each."""

    score: str
    n_items: int
    baseline: float
    corrections: Mapping[str, Tried]


@dataclass(frozen=True)
class Result:
    """One data set: its tasks, and the geometry of its vectors under each correction.

    n_left: items left out, since a static table has no word of theirs.
    about: facts of the run it is of, where that is not the outcome's.
    """

    dataset: str
    title: str
    kind: str
    n_left: int
    geometry: Mapping[str, Mapping[str, float | None]]
    tasks: Mapping[str, Task]
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """A setup that was run: what it is, facts of the run, a result for each data set."""

    setup: Setup
    about: Mapping[str, Any]
    results: tuple[Result, ...]

    @property
    def title(self) -> str:
        """The encoder, in tables and figures."""
        return self.setup.title


def run_setup(setup: Setup, options: Options, place: Place, *, progress: bool | None = None) -> Outcome:
    """Try every correction on every data set.

    Corrections are fitted without labels or scores: for pairs, on all sentences (or words) of all sets that
    are in no held-out pair; for labels, on the training folds.
    """
    if options.seed < 0:
        raise InputError(argument="seed", got=options.seed, wanted="a whole number of at least 0")
    began = time.perf_counter()
    chosen = setups.chosen_datasets(split_names(options.dataset or []))
    with Bar(show=progress) as bar:
        results = tuple(_results(_Run(setup, options, place, progress), chosen, bar))
    names = ("max_pairs", "max_rows", "folds", "repeats", "seed")
    about = {"model": setup.model, **{name: getattr(options, name) for name in names}}
    seconds = round(time.perf_counter() - began, 1)
    return Outcome(setup, about | {"torch": torch.__version__, "seconds": seconds}, results)


@dataclass(frozen=True)
class _Run:
    """What the parts of a run share."""

    setup: Setup
    options: Options
    place: Place
    progress: bool | None

    @property
    def reader(self) -> dict[str, Any]:
        return {"data": self.place.data, "download": self.place.download}

    @property
    def splits(self) -> dict[str, Any]:
        one = self.options
        return {"folds": one.folds, "repeats": one.repeats, "seed": one.seed, "progress": False}

    def encoded(self, texts: list[str], *, frequent: bool = False) -> tuple[Tensor, dict[str, int]]:
        """Return vectors, and the row of each text that has one; of a table, frequent words after them."""
        setup = self.setup
        if not setup.is_static:
            vectors = encode(
                [setup.prefix + text for text in texts], model=setup.model, device=self.place.device,
                download=self.place.download, progress=self.progress,
            )  # fmt: skip
            return vectors, {text: row for row, text in enumerate(texts)}
        vectors, kept = averaged_vectors(texts, model=setup.model)
        at = {texts[place]: row for row, place in enumerate(kept.tolist())}
        if frequent and setup.model == setups.GLOVE:
            more = [word for word in vocabulary()[:_FREQUENT] if word not in at]
            vectors = torch.cat([vectors, static_vectors(more, model=setup.model)[0]])
        return vectors, at

    def labelled(self, dataset: Dataset) -> tuple[Tensor, list[str], int]:
        """Return vectors and labels of the texts that are drawn, and how many have no vector."""
        corpus = load_corpus(dataset.name, **self.reader)
        which = _drawn(len(corpus), self.options.max_rows, self.options.seed)
        texts, labels = [corpus.columns[0][i] for i in which], [str(corpus.labels[i]) for i in which]
        vectors, at = self.encoded(list(dict.fromkeys(texts)))
        kept = [place for place, text in enumerate(texts) if text in at]
        rows = vectors[[at[texts[place]] for place in kept]]
        return rows, [labels[place] for place in kept], len(texts) - len(kept)


def _results(run: _Run, chosen: Sequence[Dataset], bar: Bar) -> Iterator[Result]:
    part, title = run.setup.part, run.setup.title
    labelled = [one for one in chosen if one.kind == setups.LABELS]
    if part == setups.ANALOGIES:
        yield _on_analogies(run)
    elif part == setups.NOISE:
        yield _on_noise(run)
    for kind in (setups.SENTENCES, setups.WORDS) if part == setups.TASKS else ():
        named = [one for one in chosen if one.kind == kind]
        bar.step(f"{title}: encoding {kind}")
        chosen_pairs = {one.name: _some(load_corpus(one.name, **run.reader), run) for one in named}
        pool = list(dict.fromkeys(text for pairs in chosen_pairs.values() for text in pairs.distinct()))
        vectors, at = run.encoded(pool, frequent=kind == setups.WORDS) if named else (torch.empty(0), {})
        for place, one in enumerate(named):
            bar.step(f"{title}: {one.title}")
            bar.share(place / len(named))
            yield _on_pairs(run, one, chosen_pairs[one.name], vectors, at)
    for one in labelled if part in (setups.TASKS, setups.PROBE) else ():
        bar.step(f"{title}: {one.title}", at_once=True)
        yield _on_labels(run, one) if part == setups.TASKS else _on_penalties(run, one)


def _drawn(n: int, most: int, seed: int) -> list[int]:
    """Draw places among n, in order; a smaller draw is part of a larger one."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return order[:most].sort().values.tolist()


def _some(pairs: Corpus, run: _Run) -> Corpus:
    which = _drawn(len(pairs), run.options.max_pairs, run.options.seed)
    first, second = (tuple(column[i] for i in which) for column in pairs.columns)
    return Corpus(pairs.name, (first, second), tuple(pairs.labels[i] for i in which))


def _on_pairs(run: _Run, dataset: Dataset, pairs: Corpus, vectors: Tensor, at: dict[str, int]) -> Result:
    triples = [
        (at[first], at[second], score)
        for first, second, score in zip(*pairs.columns, pairs.labels, strict=True)
        if first in at and second in at
    ]
    found = advise(vectors, pairs=triples, max_pairs=max(len(triples), 20), **run.splits)
    return _advised(dataset, found, len(pairs) - len(triples))


def _on_labels(run: _Run, dataset: Dataset) -> Result:
    rows, labels, n_left = run.labelled(dataset)
    return _advised(dataset, advise(rows, labels=labels, max_rows=max(len(rows), 50), **run.splits), n_left)


def _advised(dataset: Dataset, found: Advice, n_left: int) -> Result:
    tasks = {}
    for one in found.tasks:
        tried = {each.correction: each for each in one.outcomes}
        tasks[one.task] = Task(one.score_name, one.n_items, one.baseline, tried)
    return Result(dataset.name, dataset.title, dataset.kind, n_left, found.geometry, tasks)


def _on_penalties(run: _Run, dataset: Dataset) -> Result:
    """Score a least-squares classifier whose penalty is chosen by leave-one-out on the training folds."""
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.model_selection import RepeatedStratifiedKFold, cross_validate
    from sklearn.pipeline import make_pipeline

    rows, labels, n_left = run.labelled(dataset)
    X = rows.double().numpy()
    options = run.options
    folds = RepeatedStratifiedKFold(
        n_splits=options.folds, n_repeats=options.repeats, random_state=options.seed
    )
    scores, geometry = {}, {}
    for name, correction in _whitenings(X.shape[1]).items():
        classifier = RidgeClassifierCV(alphas=np.geomspace(*PENALTIES))
        found = cross_validate(
            make_pipeline(correction, classifier), X, labels, cv=folds, return_estimator=True
        )
        scores[name] = found["test_score"].tolist()
        chosen = np.median([each[-1].alpha_ for each in found["estimator"]])
        geometry[name] = {**_geometry(correction.fit(X).transform(X)), "penalty": float(chosen)}
    said = "accuracy of a ridge classifier, its penalty by leave-one-out"
    tasks = {"linear_probe": _tried(said, len(X), scores, options.folds)}
    return Result(dataset.name, dataset.title, dataset.kind, n_left, geometry, tasks)


def _whitenings(n_dims: int) -> dict[str, Any]:
    return {
        "none": Center(),
        "whiten_soft": Whiten(strength=0.5),
        "whiten_shrunk": Whiten(regularization=0.1),
        "whiten_reduced": Whiten(max(1, n_dims // 2)),
        "whiten": Whiten(),
    }


def _on_noise(run: _Run) -> Result:
    """Score how many neighbours stay the same under noise, added before or after the correction."""
    dataset = setups.NOISE_DATASET
    rows, _, n_left = run.labelled(dataset)
    X = rows.double().numpy()
    after, before = defaultdict(list), defaultdict(list)
    geometry = {}
    for name, correction in _whitenings(X.shape[1]).items():
        clean = correction.fit(X).transform(X)
        geometry[name] = _geometry(clean)
        for seed in range(run.options.folds * run.options.repeats):
            noise = np.random.default_rng(run.options.seed + seed).normal(size=X.shape)
            noisy = correction.transform(X + _scaled(noise, X))
            before[name].append(neighbor_overlap(clean, noisy, k=N_NEIGHBORS))
            noisy = clean + _scaled(noise[:, : clean.shape[1]], clean)
            after[name].append(neighbor_overlap(clean, noisy, k=N_NEIGHBORS))
    said = f"share of the {N_NEIGHBORS} nearest that stay, noise of {NOISE_POWER:.0%} of the variance"
    tasks = {
        f"noise {when} correction": _tried(said, len(X), scores)
        for when, scores in (("after", after), ("before", before))
    }
    return Result(dataset.name, dataset.title, dataset.kind, n_left, geometry, tasks)


def _scaled(noise: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return noise with a set share of the variance of X, the same in every direction."""
    return noise * np.sqrt(NOISE_POWER * X.var(axis=0).sum() / noise.var(axis=0).sum())


def _on_analogies(run: _Run) -> Result:
    """Score analogies (a : b = c : d) by 3CosAdd: the word nearest to b − a + c, without a, b and c."""
    dataset = setups.ANALOGY_DATASET
    questions = load_corpus(dataset.name, **run.reader)
    words = vocabulary()[:ANALOGY_WORDS]
    at = {word: row for row, word in enumerate(words)}
    found = ((kind, [at.get(word.lower()) for word in four]) for four, kind in questions.items)
    known = [(kind, four) for kind, four in found if None not in four]
    kinds = [kind for kind, _ in known]
    rows = torch.tensor([four for _, four in known])
    X = static_vectors(words, model=run.setup.model)[0].double().numpy()
    ways = {
        "none": None, "center": Center(), "all_but_the_top": AllButTheTop(max(1, X.shape[1] // 100)),
        "whiten_soft": Whiten(strength=0.5), "whiten": Whiten(),
    }  # fmt: skip
    scores, geometry = {}, {}
    for name, correction in ways.items():
        vectors = X if correction is None else correction.fit(X).transform(X)
        geometry[name] = _geometry(vectors)
        right = _answered(torch.from_numpy(vectors).float(), rows)
        scores[name] = [
            float(np.mean([hit for hit, kind in zip(right, kinds, strict=True) if kind == one]))
            for one in dict.fromkeys(kinds)
        ]
    tasks = {"analogies": _tried("accuracy, mean over the categories", len(known), scores)}
    n_left = len(questions) - len(known)
    return Result(dataset.name, dataset.title, dataset.kind, n_left, geometry, tasks)


def _answered(X: Tensor, rows: Tensor) -> list[bool]:
    """Return for each (a, b, c, d) of rows whether d is the word nearest to b − a + c."""
    units = torch.nn.functional.normalize(X, dim=1)
    right = []
    for some in rows.split(500):
        a, b, c, d = some.T
        cosines = (units[b] - units[a] + units[c]) @ units.T
        cosines.scatter_(1, some[:, :3], -torch.inf)
        right += (cosines.argmax(dim=1) == d).tolist()
    return right


def _geometry(X: np.ndarray) -> dict[str, float | None]:
    return {"isoscore": float(isoscore(X)), "mean_cosine": float(mean_cosine(X))}


def _tried(said: str, n_items: int, scores: Mapping[str, Sequence[float]], folds: int = 0) -> Task:
    """Return what each correction gains over none, by paired scores of folds, draws or categories."""
    baseline = np.asarray(scores["none"])
    share = 1 / (folds - 1) if folds else 0.0  # folds share rows to train on; draws do not
    names = [name for name in scores if name != "none"]
    gains = [gain((np.asarray(scores[name]) - baseline).tolist(), test_share=share) for name in names]
    corrections = {
        name: Tried(name, float(np.mean(scores[name])), one.mean, one.interval, p_value, tuple(scores[name]))
        for name, one, p_value in zip(names, gains, holm([one.p_value for one in gains]), strict=True)
    }
    return Task(said, n_items, float(baseline.mean()), corrections)


def keep_outcome(found: Outcome, path: Path) -> None:
    """Write a run; results of other data sets that an earlier run left there stay."""
    results = {}
    if path.exists():
        earlier = read(path, Outcome)
        results = {one.dataset: replace(one, about=one.about or earlier.about) for one in earlier.results}
    results |= {one.dataset: one for one in found.results}
    keep(replace(found, results=tuple(results.values())), path)
