"""The contents of a page as JSON-ready values: one function for each section."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

import numpy as np
from torch import Tensor

from isoscope._version import __version__
from isoscope.audit.audit import audit
from isoscope.audit.result import NAMES, Audit
from isoscope.engine.readings import Reading
from isoscope.errors import UndefinedError
from isoscope.look.result import shown_example
from isoscope.matching.pair_cosines import PairCosines
from isoscope.measurement import sentence, shown_half_width
from isoscope.metrics.dimensions import contributions_of
from isoscope.metrics.frontier import ScatterDecomposition, is_by_chance, isotropy_ceiling
from isoscope.metrics.registry import registered
from isoscope.metrics.thresholds import THRESHOLDS
from isoscope.printable import printable
from isoscope.progress import Bar
from isoscope.report.clusters import Silhouettes
from isoscope.report.evidence import Evidence
from isoscope.report.page import as_json, packed
from isoscope.report.projections import projections
from isoscope.report.runs import curves
from isoscope.report.search import search
from isoscope.report.side_by_side import side_by_side
from isoscope.report.words import headline
from isoscope.results import plain
from isoscope.tables import percent, shown, span

_COORDINATE_BYTES = 3_000_000  # of the sample for the sliders; base64 adds a third
_TEXT_BYTES = 700_000  # of all texts together
_TEXT_LENGTH, _LABEL_LENGTH = 240, 80
_MOST_LABELS = 100  # rows of the silhouette plot
_BINS = 120
_MINUS = re.compile(r"(?<![\w.])-(?=[\d∞])|(?<=\de)-(?=\d)")
_PERCENT = re.compile(r"(?<=\d) ?%")
_TOP_DIMENSIONS = 24
_AUDITED = 4_000  # rows that are audited whole; of more, a quarter of so many are searched for
_MAX_REMOVED = 16  # directions: the end of the slider


def contents(evidence: Evidence, *, title: str | None, progress: bool | None) -> dict[str, Any]:
    """Return the sections of the page, by name; None where there is nothing to show."""
    g = evidence
    whole = f"{g.measurement.n:,} vectors × {g.measurement.d:,} dimensions"
    dimensions = _dimensions(g)
    strongest = None if dimensions is None else dimensions["top"][0]["dimension"]
    with Bar(show=progress) as bar:
        bar.step("corrections", at_once=True)
        corrected = side_by_side(g.shelf, progress=bar.share)
        bar.step("rows to look at")
        audited = audit(g.space, queries=g.queries, max_rows=_AUDITED, seed=g.seed, progress=False)
        bar.step("queries")
        searched = None if g.queries is None else search(g.space, g.queries, g.cosines, seed=g.seed)
        bar.step("projections")
        coordinates = g.principal.coordinates(g.space.vectors[g.rows.to(g.space.device)])
        points = _points(g, coordinates)
    sentences = headline(g.measurement, g.cosines, g.equal, g.split, strongest, g.fair_share, searched)
    return {
        "title": printable(title or g.measurement.name or "Embedding space"),
        "subtitle": whole + (f", {g.measurement.n_labels:,} labels" if g.measurement.n_labels else ""),
        "version": __version__,
        "seed": g.seed,
        "headline": [_written(text) for text in sentences],
        "n": g.measurement.n,
        "n_dims": g.measurement.d,
        "metrics": [_metric(reading) for reading in g.measurement.readings if not reading.group],
        "notes": [printable(note) for note in g.measurement.notes],
        "cosines": _histogram(g.cosines),
        "search": searched,
        "dimensions": dimensions,
        "points": points,
        "what_if": _what_if(g, coordinates),
        "silhouette": _silhouettes(g.silhouettes),
        "frontier": _frontier(g.split, g.fair_share),
        "trajectory": None if g.run is None else curves(g.run),
        "corrections": corrected,
        "audit": _audit(audited),
    }


def _audit(audited: Audit) -> dict[str, Any] | None:
    """Return the findings of an audit that are not healthy; None where there are none."""
    findings = [one for one in audited.findings if one.severity in ("serious", "moderate")]
    if not findings:
        return None
    return {
        "lead": _written(audited.lines()[0]),
        "findings": [
            {
                "name": NAMES[one.name],
                "share": _written(one.text),
                "interval": _written(span(one.reading.interval, lambda share: percent(share, 2))),
                "headline": _written(one.headline),
                "examples": [_cut(shown_example(example), _TEXT_LENGTH) for example in one.examples],
            }
            for one in findings
        ],
    }


def _metric(reading: Reading) -> dict[str, Any]:
    metric = registered()[reading.name]
    low, high = (_written(f"{round(bound, 3):g}".replace("inf", "∞")) for bound in metric.range)
    return {
        "name": reading.name,
        "family": metric.family,
        "value": _written(shown(reading.value)),
        "number": plain(reading.value),
        "bounds": list(metric.range) if all(map(math.isfinite, metric.range)) else None,
        "limits": plain(reading.interval),
        "highest": reading.ceiling,
        "half_width": _written(shown_half_width(reading)),
        "interval": None if reading.interval is None else _written(" to ".join(map(shown, reading.interval))),
        "ceiling": None if reading.ceiling is None else shown(reading.ceiling),
        "meaning": _written(sentence(reading)),
        "high": metric.high,
        "range": f"{low} to {high}",
        "paper": metric.paper,
    }


def _written(text: str) -> str:
    """Return a text with the minus sign in numbers, and a space before % that no line breaks at."""
    return _MINUS.sub("−", _PERCENT.sub("\u00a0%", text))


def _histogram(cosines: PairCosines | None) -> dict[str, Any] | None:
    if cosines is None:
        return None
    kinds = {"random": cosines.random, "same": cosines.same, "other": cosines.other}
    present = {name: values for name, values in kinds.items() if values is not None}
    low = min(float(values[0]) for values in present.values())
    high = max(float(values[-1]) for values in present.values())
    low, high = max(-1.0, np.floor(low * 50) / 50), min(1.0, np.ceil(high * 50) / 50)
    edges = np.linspace(low, high if high > low else low + 0.02, _BINS + 1)
    edges[0], edges[-1] = edges[0] - 1e-9, edges[-1] + 1e-9
    counts = {name: np.histogram(values.numpy(), edges)[0].tolist() for name, values in present.items()}
    best = cosines.best()
    return {
        "low": float(edges[0]),
        "high": float(edges[-1]),
        "counts": counts,
        "n_pairs": {name: len(values) for name, values in present.items()},
        "is_exact": cosines.is_exact,
        "mean": {name: float(values.mean()) for name, values in present.items()},
        "one_percent": cosines.threshold(0.01),
        "one_permille": cosines.threshold(0.001),
        "knows": {"one_percent": cosines.knows(0.01), "one_permille": cosines.knows(0.001)},
        "best": None if best is None else vars(best),
    }


def _dimensions(g: Evidence) -> dict[str, Any] | None:
    try:
        contributions = contributions_of(g.shelf.directions).detach().cpu()
    except UndefinedError:
        return None
    sizes = contributions.abs().sort(descending=True, stable=True)
    total = float(contributions.abs().sum()) or 1.0
    ranked = sizes.values.cumsum(0) / total
    return {
        "total": float(contributions.sum()),
        "even": 1 / len(contributions),
        "says_little": THRESHOLDS["common_direction"].severity(float(contributions.sum())) == "healthy",
        "n_for_half": int((ranked < 0.5).sum()) + 1,
        "top": [
            {
                "dimension": j,
                "contribution": float(contributions[j]),
                "share": float(contributions[j]) / total,
            }
            for j in sizes.indices[:_TOP_DIMENSIONS].tolist()
        ],
    }


def _points(g: Evidence, coordinates: Tensor) -> dict[str, Any]:
    n_columns = min(g.principal.rank, _MAX_REMOVED + 2)
    return {
        "n": len(g.rows),
        "n_columns": n_columns,
        "coordinates": packed(coordinates[:, :n_columns].float()),
        "rows": g.rows.tolist(),
        "texts": _texts(g),
        "labels": None if g.labels is None else g.labels.codes.cpu()[g.rows].tolist(),
        "label_names": None if g.labels is None else [_cut(str(n), _LABEL_LENGTH) for n in g.labels.names],
        "silhouettes": g.silhouettes and [round(s, 4) for s in g.silhouettes.points.tolist()],
        "pictures": {name: packed(xy.float()) for name, xy in projections(coordinates, seed=g.seed).items()},
    }


def _texts(g: Evidence) -> list[str] | None:
    """Return the texts of the points, shortened so that together they take at most `_TEXT_BYTES`."""
    if g.space.texts is None:
        return None
    texts = [str(g.space.texts[row]) for row in g.rows.tolist()]
    length = _TEXT_LENGTH
    while True:
        cut = [_cut(text, length) for text in texts]
        n_bytes = len(as_json(cut).encode("utf-8", "replace"))
        if n_bytes <= _TEXT_BYTES or length < 8:
            return cut
        length = min(length - 1, int(0.95 * length * _TEXT_BYTES / n_bytes))


def _cut(text: str, length: int) -> str:
    """Return one line of at most `length` characters; control characters are escaped, joiners stay."""
    line = " ".join(text[: 4 * length].split())[: length + 1]
    if not line.isprintable():
        line = "".join(c if unicodedata.category(c) == "Cf" else printable(c) for c in line)
    return line if len(line) <= length else line[: length - 1] + "…"


def _what_if(g: Evidence, coordinates: Tensor) -> dict[str, Any] | None:
    """Return the input of `assets/what_if.js`.

    The page removes the k strongest principal directions and whitens the others with strength s. Both are
    diagonal in the principal basis. The page therefore needs only the variances, the mean, and the
    coordinates of a sample of points about the mean. Zero vectors are listed: from rounded coordinates they
    could not be told apart.
    """
    principal = g.principal
    if principal.rank < 2:
        return None
    n = min(len(g.rows), max(2, _COORDINATE_BYTES // (4 * principal.rank)))
    mean = principal.directions @ principal.mean
    return {
        "n": n,
        "n_dims": principal.n_dims,
        "rank": principal.rank,
        "max_removed": min(_MAX_REMOVED, principal.rank - 1),  # at least one direction remains
        "eigenvalues": packed(principal.eigenvalues),
        "mean": packed(mean),
        "mean_residual": float((principal.mean - mean @ principal.directions).norm()),
        "coordinates": packed(coordinates[:n].float()),
        "zeros": (~g.space.vectors[g.rows[:n].to(g.space.device)].any(dim=1)).nonzero().flatten().tolist(),
    }


def _silhouettes(silhouettes: Silhouettes | None) -> dict[str, Any] | None:
    if silhouettes is None:
        return None
    ordered = sorted(silhouettes.labels, key=lambda label: -label.mean)
    half = _MOST_LABELS // 2
    rows = ordered if len(ordered) <= _MOST_LABELS else ordered[:half] + ordered[-half:]
    return {
        "is_exact": silhouettes.is_exact,
        "n_left_out": len(ordered) - len(rows),
        "rows": [{**vars(label), "name": _cut(str(label.name), _LABEL_LENGTH)} for label in rows],
    }


def _frontier(split: ScatterDecomposition | None, fair_share: float | None) -> dict[str, Any] | None:
    if split is None:
        return None
    K, d = split.n_labels, split.n_dims
    corner = min(1.0, (K - 1) / d)
    shares = np.unique(np.concatenate([np.linspace(0, 1, 101), np.linspace(corner, 1, 60), [corner]]))
    return {
        "curve": [[float(s), isotropy_ceiling(K, d, between=float(s))] for s in shares],
        "n_labels": K,
        "n_dims": d,
        "between_share": split.between_share,
        "fair_share": max(0.0, fair_share or 0.0) if is_by_chance(split.between_share, fair_share) else None,
        "isoscore": split.isoscore,
        "ceiling": split.ceiling,
        "distance": split.distance,
        "parts": {
            "within": split.within_part,
            "cross": split.cross_part,
            "between": split.between_part,
        },
    }
