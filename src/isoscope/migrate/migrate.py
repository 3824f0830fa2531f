"""`migrate`: old vectors mapped to a new model, tried on rows that the map has not seen."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor

from isoscope.corrections.translate import METHODS, Translate
from isoscope.engine.inputs import one_of_each
from isoscope.engine.kept import shelf_of
from isoscope.errors import InputError, ShapeError, check_seed, check_share, check_whole
from isoscope.metrics.correspondence import shared_counts
from isoscope.migrate.result import LostRow, Migration, Threshold, Trial
from isoscope.progress import Bar
from isoscope.statistics.directions import unit_rows
from isoscope.statistics.intervals import Z95
from isoscope.statistics.neighbors import Neighbors

ACCEPT = 0.9
_N_NEIGHBORS = 10
_ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1)
_MOST_FIT, _MOST_HELD = 20_000, 20_000
_VALIDATED = 0.2  # of the rows to fit, on which the method and its penalty are chosen
_QUERIES = 2000
_RATES = (0.1, 0.01, 0.001)
_FEWEST = 50


def migrate(
    OLD: Any,
    NEW: Any,
    *,
    k: int | None = None,
    accept: float = ACCEPT,
    texts: Any = None,
    n_lost: int = 5,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | tuple[str | None, str | None] | None = None,
    device: Any = None,
) -> Migration:
    """Try whether old vectors can be mapped to a new model, or whether everything has to be embedded again.

    A map from the old vectors to the new ones is fitted to half of the items. The others are mapped, and
    searched with their new vectors as queries, as an index would be after the change. What is measured is the
    share of the nearest neighbours among the new vectors that this search finds: 1 where nothing is lost.

    Args:
        OLD, NEW: (n, d) and (n, e) vectors of the same items in the same order, by both models; a few
            thousand items suffice.
        k: nearest neighbours; by default 10, or fewer for few rows.
        accept: the smallest overlap that is accepted: with less, the verdict is to embed again.
        texts: one text for each row, or a name as for `measure`, for the rows that are lost.
        n_lost: how many of these to list.
        seed: the seed of everything that is sampled.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.
        vectors: the column of a table that holds the vectors; a pair for OLD and NEW.
        device: the device to compute on; by default that of the vectors.

    >>> import numpy as np
    >>> OLD = np.random.default_rng(0).normal(size=(400, 8))
    >>> Q, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))
    >>> found = migrate(OLD, OLD @ Q)
    >>> found.verdict, found["procrustes"].overlap
    ('map', 1.0)
    """
    began = time.perf_counter()
    check_seed(seed)
    check_share("accept", accept)
    check_whole("n_lost", n_lost, least=0)
    pair = one_of_each(vectors, "vectors")
    columns = [texts] if isinstance(texts, str) else []
    first = shelf_of(OLD, vectors=pair[0], device=device, texts=texts).space
    second = shelf_of(NEW, vectors=pair[1], device=device, apart=columns).space
    if len(first) != len(second):
        raise ShapeError(
            f"OLD has {len(first):,} rows and NEW {len(second):,}", wanted="the same items in the same order"
        )
    if len(first) < _FEWEST:
        raise InputError(f"OLD has {len(first)} rows", wanted=f"at least {_FEWEST}")
    old, new = first.vectors.detach(), second.vectors.detach().to(first.vectors.device)
    order = torch.randperm(len(old), generator=torch.Generator().manual_seed(seed)).to(old.device)
    half = len(old) // 2
    fit, held = order[:half][:_MOST_FIT], order[half:][:_MOST_HELD]
    n_tried = max(_FEWEST // 5, int(_VALIDATED * len(fit)))
    neighbors = (
        max(1, min(_N_NEIGHBORS, (n_tried - 1) // 2)) if k is None else check_whole("k", k, most=n_tried - 2)
    )
    with Bar(show=progress) as bar:
        bar.step("maps", at_once=len(fit) > _QUERIES)
        tried, learnt = fit[:n_tried], fit[n_tried:]
        chosen: dict[str, tuple[float, float]] = {}
        for place, method in enumerate(METHODS):
            for alpha in _ALPHAS if method != "procrustes" else (_ALPHAS[0],):
                step = Translate(method, alpha=alpha, seed=seed).fit(old[learnt], new[learnt])
                kept = _search(step.transform(old[tried]), new[tried], new[tried], neighbors, seed)[0].mean()
                chosen[method] = max(chosen.get(method, (-1.0, alpha)), (float(kept), alpha))
            bar.share((place + 1) / (len(METHODS) + 1))
        best = max(METHODS, key=lambda name: chosen[name][0])
        fitted = {
            name: Translate(name, alpha=alpha, seed=seed).fit(old[fit], new[fit])
            for name, (_, alpha) in chosen.items()
        }
        bar.step("neighbours", at_once=len(held) > _QUERIES)
        trials = [_trial("old model", *_search(old[held], old[held], new[held], neighbors, seed)[:2])]
        for name, step in fitted.items():
            mapped = step.transform(old[held])
            shares, firsts, rows = _search(mapped, new[held], new[held], neighbors, seed)
            trials.append(_trial(name, shares, firsts))
            if name == best:
                lost = _lost(shares, held[rows.to(held.device)].cpu(), first.texts, n_lost)
                thresholds = _thresholds(old[held], new[held], mapped)
    notes = (
        [f"the neighbours of a random {len(shares):,} of {len(held):,} rows"]
        if len(shares) < len(held)
        else []
    )
    return Migration(
        n=len(old), d_old=int(old.shape[1]), d_new=int(new.shape[1]), n_fit=len(fit), n_held=len(held),
        k=neighbors, accept=float(accept), trials=tuple(trials), method=best, lost=lost,
        thresholds=thresholds, correction=fitted[best], notes=tuple(notes), seed=seed,
        seconds=time.perf_counter() - began,
    )  # fmt: skip


def _search(
    documents: Tensor, queries: Tensor, wanted: Tensor, k: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return by query the share of k neighbours kept, whether the first is kept, and the row of the query.

    Args:
        documents: (n, d) what is searched.
        queries: (n, d) what searches; row i is the item of document i, which it may not find.
        wanted: (n, e) the vectors whose neighbours are wanted.
        k: how many.
        seed: of the rows that search, where there are many.
    """
    n = len(documents)
    rows = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:_QUERIES].sort().values
    found, right = (
        Neighbors.between(asked[rows.to(asked.device)].to(space.dtype), space, k=k + 1, metric="cosine")
        .without(rows)
        .indices.cpu()
        for asked, space in ((queries, documents), (wanted, wanted))
    )
    return shared_counts(found, right) / k, (found[:, 0] == right[:, 0]).double(), rows


def _trial(method: str, shares: Tensor, firsts: Tensor) -> Trial:
    mean = float(shares.mean())
    half = Z95 * float(shares.std()) / math.sqrt(len(shares))
    return Trial(method, mean, (max(mean - half, 0.0), min(mean + half, 1.0)), float(firsts.mean()))


def _lost(shares: Tensor, rows: Tensor, texts: Any, n: int) -> tuple[LostRow, ...]:
    """Return the rows with the smallest shares, of those that lost any."""
    order = shares.argsort(stable=True)[:n].tolist()
    return tuple(
        LostRow(int(rows[at]), float(shares[at]), None if texts is None else texts[int(rows[at])])
        for at in order
        if float(shares[at]) < 1
    )


def _thresholds(old: Tensor, new: Tensor, mapped: Tensor) -> tuple[Threshold, ...]:
    """Return the cosines that the same shares of all pairs of different rows exceed."""
    a, b, c = (unit_rows(side[:_QUERIES])[0] for side in (old, new, mapped))
    apart = ~torch.eye(len(a), dtype=torch.bool, device=a.device)
    cosines = [(x @ y.T)[apart].sort().values for x, y in ((a, a), (b, b), (b, c))]
    n = len(cosines[0])
    return tuple(
        Threshold(rate, *(float(one[min(int((1 - rate) * n), n - 1)]) for one in cosines)) for rate in _RATES
    )
