"""Run a setup of *Should I whiten?*: every correction on every data set, kept as JSON."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope.advice import Outcome as Tried
from isoscope.advice import TaskAdvice, advise
from isoscope.advice.trials import drawn
from isoscope.encoders import encode
from isoscope.encoders.averaged import averaged_vectors
from isoscope.encoders.static import GLOVE, static_vectors, vocabulary
from isoscope.errors import FileError, InputError, check_seed
from isoscope.io.sealed import read_json, write_json
from isoscope.progress import Bar
from isoscope_papers.corpora import SimilarityPairs, load_corpus, load_similarity_pairs
from isoscope_papers.corrections.setups import (
    FOLDS,
    LABELS,
    MAX_PAIRS,
    MAX_ROWS,
    REPEATS,
    SENTENCES,
    SETUPS,
    WORDS,
    Dataset,
    Setup,
    chosen_datasets,
)
from isoscope_papers.pages import make_folder

_STEM = "corrections-"
_FREQUENT = 20_000  # words of a static table that corrections are fitted on besides those of the pairs


@dataclass(frozen=True)
class Result:
    """One data set: its tasks, and the geometry of its vectors under each correction.

    n_left: items left out, since a static table has no word of theirs.
    """

    dataset: Dataset
    tasks: tuple[TaskAdvice, ...]
    geometry: Mapping[str, Mapping[str, float | None]]
    n_left: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "dataset": self.dataset.name,
            "title": self.dataset.title,
            "kind": self.dataset.kind,
            "n_left": self.n_left,
            "geometry": {name: dict(figures) for name, figures in self.geometry.items()},
            "tasks": {one.task: one.to_dict() for one in self.tasks},
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Result:
        """From `to_dict`."""
        dataset = Dataset(facts["dataset"], facts["title"], facts["kind"])
        tasks = tuple(_task(name, one) for name, one in facts["tasks"].items())
        return cls(dataset, tasks, facts["geometry"], facts["n_left"])


@dataclass(frozen=True)
class Outcome:
    """A setup that was run: what it is, facts of the run, a result for each data set."""

    setup: Setup
    about: Mapping[str, Any]
    results: tuple[Result, ...]

    @property
    def title(self) -> str:
        """In tables and figures."""
        return self.setup.title


def run_setup(
    setup: Setup,
    *,
    datasets: Sequence[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    device: str | None = None,
    max_pairs: int = MAX_PAIRS,
    max_rows: int = MAX_ROWS,
    folds: int = FOLDS,
    repeats: int = REPEATS,
    seed: int = 0,
    progress: bool | None = None,
) -> Outcome:
    """Try every correction on every data set.

    Corrections are fitted without labels or scores: for pairs, on all sentences (or words) of all sets that
    are in no held-out pair; for labels, on the training folds.

    Args:
        setup: of `SETUPS`, or `own_setup(model)`.
        datasets: names or kinds; all by default.
        data: folder of the corpora; ISOSCOPE_DATA where not given.
        download: fetch texts and model where they are not on this machine.
        device: where texts are encoded.
        max_pairs, max_rows: of each data set, drawn by `seed`.
        folds, repeats: of the cross-validation.
        seed: of draws, folds and k-means.
        progress: show a bar.
    """
    check_seed(seed)
    began = time.perf_counter()
    chosen = chosen_datasets(datasets)
    options: dict[str, Any] = {"folds": folds, "repeats": repeats, "seed": seed, "progress": False}
    reader: dict[str, Any] = {"data": data, "download": download}
    encoder: dict[str, Any] = {"device": device, "download": download, "progress": progress}
    results: list[Result] = []
    with Bar(show=progress) as bar:
        for kind in (SENTENCES, WORDS):
            named = [one for one in chosen if one.kind == kind]
            if not named:
                continue
            bar.step(f"{setup.title}: encoding {kind}")
            chosen_pairs = {
                one.name: _some(load_similarity_pairs(one.name, **reader), max_pairs, seed) for one in named
            }
            pool = list(dict.fromkeys(text for pairs in chosen_pairs.values() for text in pairs.texts))
            vectors, at = _encoded(setup, pool, encoder, frequent=kind == WORDS)
            for place, one in enumerate(named):
                bar.step(f"{setup.title}: {one.title}")
                bar.share(place / len(named))
                results.append(_on_pairs(one, chosen_pairs[one.name], vectors, at, options))
        for one in (one for one in chosen if one.kind == LABELS):
            bar.step(f"{setup.title}: {one.title}", at_once=True)
            results.append(_on_labels(setup, one, max_rows, reader, encoder, options))
    about = {
        "model": setup.model,
        "max_pairs": max_pairs,
        "max_rows": max_rows,
        "folds": folds,
        "repeats": repeats,
        "seed": seed,
        "torch": torch.__version__,
        "seconds": round(time.perf_counter() - began, 1),
    }
    return Outcome(setup, about, tuple(results))


def _some(pairs: SimilarityPairs, most: int, seed: int) -> SimilarityPairs:
    """At most so many pairs, drawn; a smaller draw is part of a larger one."""
    which = drawn(len(pairs), most, seed).tolist()
    first, second = (tuple(column[i] for i in which) for column in pairs.columns)
    return SimilarityPairs(pairs.name, (first, second), tuple(pairs.scores[i] for i in which))


def _encoded(
    setup: Setup, texts: list[str], encoder: dict[str, Any], *, frequent: bool = False
) -> tuple[Tensor, dict[str, int]]:
    """Vectors, and the row of each text that has one; of a static table, frequent words after them."""
    if not setup.is_static:
        vectors = encode([setup.prefix + text for text in texts], model=setup.model, **encoder)
        return vectors, {text: row for row, text in enumerate(texts)}
    vectors, kept = averaged_vectors(texts, model=setup.model)
    at = {texts[place]: row for row, place in enumerate(kept.tolist())}
    if frequent and setup.model == GLOVE:
        more = [word for word in vocabulary()[:_FREQUENT] if word not in at]
        vectors = torch.cat([vectors, static_vectors(more, model=setup.model)[0]])
    return vectors, at


def _on_pairs(
    dataset: Dataset, pairs: SimilarityPairs, vectors: Tensor, at: dict[str, int], options: dict[str, Any]
) -> Result:
    triples = [
        (at[first], at[second], score)
        for first, second, score in zip(*pairs.columns, pairs.scores, strict=True)
        if first in at and second in at
    ]
    found = advise(vectors, pairs=triples, max_pairs=max(len(triples), 20), **options)
    return Result(dataset, found.tasks, found.geometry, len(pairs) - len(triples))


def _on_labels(
    setup: Setup,
    dataset: Dataset,
    max_rows: int,
    reader: dict[str, Any],
    encoder: dict[str, Any],
    options: dict[str, Any],
) -> Result:
    corpus = load_corpus(dataset.name, **reader)
    which = drawn(len(corpus), max_rows, options["seed"]).tolist()
    texts, labels = [corpus.columns[0][i] for i in which], [str(corpus.labels[i]) for i in which]
    vectors, at = _encoded(setup, list(dict.fromkeys(texts)), encoder)
    kept = [place for place, text in enumerate(texts) if text in at]
    rows = vectors[[at[texts[place]] for place in kept]]
    found = advise(rows, labels=[labels[place] for place in kept], max_rows=max(len(kept), 50), **options)
    return Result(dataset, found.tasks, found.geometry, len(texts) - len(kept))


def keep(found: Outcome, folder: Path) -> Path:
    """Write `corrections-NAME.json`; results of other data sets that an earlier run of it left there stay."""
    path = folder / f"{_STEM}{found.setup.name}.json"
    results = {one.dataset.name: one for one in (_read(path).results if path.exists() else ())}
    results |= {one.dataset.name: one for one in found.results}
    facts = {
        "setup": vars(found.setup),
        "about": dict(found.about),
        "results": [one.to_dict() for one in results.values()],
    }
    make_folder(folder)
    return write_json(path, facts, indent=1)


def read_outcomes(folder: str | os.PathLike[str]) -> list[Outcome]:
    """The runs a folder keeps, those of `SETUPS` first and in their order."""
    files = sorted(Path(folder).glob(f"{_STEM}*.json"))
    if not files:
        raise InputError(f"{folder} holds no runs; wanted {_STEM}NAME.json, as --output keeps them")
    order = list(SETUPS)
    return sorted(
        map(_read, files),
        key=lambda one: order.index(one.setup.name) if one.setup.name in order else len(order),
    )


def _read(path: Path) -> Outcome:
    try:
        facts = read_json(path, sealed=False)
        results = tuple(Result.from_dict(one) for one in facts["results"])
        return Outcome(Setup(**facts["setup"]), dict(facts["about"]), results)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{path} does not hold a run of corrections: {error}") from error


def _task(name: str, facts: Mapping[str, Any]) -> TaskAdvice:
    outcomes = tuple(
        Tried(
            one["correction"],
            one["score"],
            one["gain"],
            None if one["interval"] is None else (one["interval"][0], one["interval"][1]),
            one["p_value"],
            tuple(one["scores"]),
            one["reason"],
        )
        for one in facts["corrections"].values()
    )
    return TaskAdvice(name, facts["score"], facts["n_items"], facts["baseline"], outcomes)
