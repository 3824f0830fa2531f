"""`sweep`: recall, speed and build time of faiss' and usearch's indexes over their settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch

from isoscope.audit.recall import index_recall
from isoscope.audit.search import Found
from isoscope.audit.shares import Share
from isoscope.engine.inputs import as_input
from isoscope.errors import InputError, check_choice, check_seed, check_share, check_whole, not_installed
from isoscope.progress import Bar
from isoscope.queries.nearest import nearest
from isoscope.results import Result
from isoscope.statistics.directions import has_direction, unit_rows
from isoscope.tables import span

LIBRARIES = ("faiss", "usearch")
_N_QUERIES = 1000
_HNSW: tuple[tuple[int, int], ...] = ((16, 64), (32, 128))  # links of a row, and candidates at building
_EF = (16, 32, 64, 128, 256)
_PROBES = (1, 2, 4, 8, 16, 32)

Search = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class Setting:
    """One index with one setting.

    Attributes:
        index: the library and kind, with the settings it was built with.
        search: the setting it was searched with.
        recall: of the k nearest, with its interval over queries.
        queries_per_second: on one thread.
        build_seconds: of the index.
    """

    index: str
    search: str
    recall: Share
    queries_per_second: float
    build_seconds: float


@dataclass(frozen=True, repr=False)
class Sweep(Result):
    """Settings of indexes, each with its recall and speed.

    Attributes:
        settings: in the order they were tried.
        k, n, n_queries: neighbours, rows, and rows that were searched for.
        wanted: the recall that is aimed at.
    """

    settings: Sequence[Setting]
    k: int
    n: int
    n_queries: int
    wanted: float

    @property
    def title(self) -> str:
        """What was tried, in one line."""
        return f"recall@{self.k} of {self.n_queries:,} rows among {self.n:,}, by cosine; one thread"

    @property
    def best(self) -> Setting | None:
        """The fastest setting whose recall is surely at least the wanted one."""
        enough = [one for one in self.settings if one.recall.least >= self.wanted]
        return max(enough, key=lambda one: one.queries_per_second, default=None)

    @property
    def opening(self) -> str:
        """The fastest setting that is good enough."""
        if self.best is None:
            return f"No setting surely has a recall of {self.wanted:g}."
        return f"Fastest with a recall of at least {self.wanted:g}: {self.best.index}, {self.best.search}."

    def _columns(self) -> dict[str, list[Any]]:
        rows = self.settings
        return {
            "index": [one.index for one in rows],
            "search": [one.search for one in rows],
            "recall": [one.recall.value for one in rows],
            "low": [(one.recall.interval or (None, None))[0] for one in rows],
            "high": [(one.recall.interval or (None, None))[1] for one in rows],
            "queries_per_second": [one.queries_per_second for one in rows],
            "build_seconds": [one.build_seconds for one in rows],
        }

    def _printed(self) -> dict[str, list[Any]]:
        return {
            "index": [one.index for one in self.settings],
            "search": [one.search for one in self.settings],
            "recall": [f"{one.recall.value:.4f}" for one in self.settings],
            "95 % interval": [span(one.recall.interval) for one in self.settings],
            "queries/s": [round(one.queries_per_second) for one in self.settings],
            "build s": [f"{one.build_seconds:.1f}" for one in self.settings],
        }


def sweep(
    X: Any,
    library: str = "faiss",
    *,
    k: int = 10,
    n_queries: int = _N_QUERIES,
    wanted: float = 0.95,
    seed: int = 0,
    progress: bool | None = None,
) -> Sweep:
    """Try settings of an approximate index on vectors: recall with intervals, speed, and time to build.

    Rows drawn at random are searched for among all rows, by cosine; their exact neighbours are the truth.

    Args:
        X: (n, d) vectors as any source; they are held in memory as float32.
        library: "faiss" (HNSW and IVF) or "usearch" (HNSW); `pip install 'isoscope[index]'`.
        k: how many neighbours.
        n_queries: how many rows to search for.
        wanted: the recall that is aimed at.
        seed: of the rows drawn.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.
    """
    check_choice("library", library, LIBRARIES)
    check_seed(seed)
    check_share("wanted", wanted)
    k, n_queries = check_whole("k", k), check_whole("n_queries", n_queries, least=2)
    try:
        module = import_module(library)
    except ImportError:
        raise not_installed(f"A sweep of {library}", library, extra="index") from None
    space = as_input(X).source.load()
    rows = has_direction(space.vectors).nonzero().flatten()
    space = space if len(rows) == len(space) else space.take(rows)
    units = unit_rows(space.vectors)[0].float().cpu()
    n = len(units)
    if k >= n:
        raise InputError(
            argument="k", got=k, wanted=f"below {n:,}, the rows that are not zero", hint="add rows"
        )
    drawn = torch.from_numpy(np.random.default_rng(seed).permutation(n)[: min(n_queries, n)].copy())
    with Bar(show=progress) as bar:
        bar.step("exact neighbours")
        truth = nearest(space.with_vectors(units), units[drawn], k + 1, progress=bar.share).without(drawn)
        found = Found(drawn, truth, n, n)
        settings = []
        indexes = _faiss if library == "faiss" else _usearch
        for name, seconds, searches in indexes(module, units.numpy()):
            bar.step(name)
            for setting, search in searches.items():
                began = time.perf_counter()
                given = torch.from_numpy(np.asarray(search(units[drawn].numpy(), k + 1)).astype(np.int64))
                rate = len(drawn) / (time.perf_counter() - began)
                recall = index_recall(space.with_vectors(units), given, found, units[drawn]).recall
                settings.append(Setting(name, setting, recall, rate, seconds))
    return Sweep(settings, k, n, len(drawn), wanted)


def _faiss(faiss: Any, units: np.ndarray) -> Iterator[tuple[str, float, Mapping[str, Search]]]:
    d, threads = units.shape[1], faiss.omp_get_max_threads()
    product = faiss.METRIC_INNER_PRODUCT

    def searching(index: Any, name: str, value: int) -> Search:
        def search(queries: np.ndarray, k: int) -> np.ndarray:
            faiss.omp_set_num_threads(1)
            try:
                if name == "nprobe":
                    index.nprobe = value
                else:
                    index.hnsw.efSearch = value
                return index.search(queries, k)[1]
            finally:
                faiss.omp_set_num_threads(threads)

        return search

    for links, candidates in _HNSW:
        index = faiss.IndexHNSWFlat(d, links, product)
        index.hnsw.efConstruction = candidates
        began = time.perf_counter()
        index.add(units)
        seconds = time.perf_counter() - began
        name = f"faiss HNSW M={links}, efConstruction={candidates}"
        yield name, seconds, {f"efSearch={ef}": searching(index, "efSearch", ef) for ef in _EF}
    lists = max(1, round(4 * len(units) ** 0.5))
    if len(units) >= 40 * lists:  # fewer are too few for faiss to train on
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, lists, product)
        began = time.perf_counter()
        index.train(units)
        index.add(units)
        seconds = time.perf_counter() - began
        probes = {f"nprobe={one}": searching(index, "nprobe", one) for one in _PROBES if one <= lists}
        yield f"faiss IVF nlist={lists}", seconds, probes


def _usearch(usearch: Any, units: np.ndarray) -> Iterator[tuple[str, float, Mapping[str, Search]]]:
    index_module = import_module(f"{usearch.__name__}.index")

    def searching(index: Any, ef: int) -> Search:
        def search(queries: np.ndarray, k: int) -> np.ndarray:
            index.expansion_search = ef
            return np.asarray(index.search(queries, k, threads=1).keys).reshape(len(queries), -1)

        return search

    for links, candidates in _HNSW:
        index = index_module.Index(
            ndim=units.shape[1], metric="ip", dtype="f32", connectivity=links, expansion_add=candidates
        )
        began = time.perf_counter()
        index.add(np.arange(len(units)), units)
        seconds = time.perf_counter() - began
        name = f"usearch HNSW connectivity={links}, expansion_add={candidates}"
        yield name, seconds, {f"expansion_search={ef}": searching(index, ef) for ef in _EF}
