"""`sides`: two or more sides of one space, such as queries and documents."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from isoscope.comparison.separability import separability
from isoscope.engine.inputs import as_input
from isoscope.engine.kept import rows_of, shelf_of
from isoscope.engine.readings import Reading
from isoscope.errors import InputError, ShapeError, UndefinedError, check_seed, check_whole
from isoscope.labels import Labels, as_labels
from isoscope.metrics.modalities import modality_gap, modality_gap_error
from isoscope.metrics.two_samples import mean_shift
from isoscope.progress import Bar
from isoscope.queries.opened import as_queries, columns_of
from isoscope.queries.relevance import Relevance
from isoscope.sides.findings import findings_of
from isoscope.sides.found import Found, difference, transposed
from isoscope.sides.result import Sides
from isoscope.space import Space
from isoscope.statistics.cross import CrossMoments
from isoscope.statistics.directions import unit_rows

SAMPLE = 2000
_SEPARATED = 5000  # rows of a side that the classifier takes
_SAME = 1e-6  # of a cosine: equal but for the rounding of float32


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a space beside all others.

    Attributes:
        name: its name.
        own, others: (n, d) and (m, d) vectors.
        relevance: which rows of the others are the partners of each own row; None where none are known.
        are_rows: whether own row i goes with row i of the others.
    """

    name: str
    own: Tensor
    others: Tensor
    relevance: Relevance | None
    are_rows: bool = False

    def centred(self, means: dict[str, Tensor], codes: Labels | None) -> Side:
        """Return the side with the mean of its own side taken off each row."""
        own = self.own.double() - means[self.name]
        if codes is None:
            (other,) = (name for name in means if name != self.name)
            return replace(self, own=own, others=self.others.double() - means[other])
        rest = codes.codes != codes.names.index(self.name)
        of_rows = torch.stack([means[str(name)] for name in codes.names])[codes.codes[rest]]
        return replace(self, own=own, others=self.others.double() - of_rows)


def sides(
    A: Any,
    B: Any = None,
    *,
    by: Any = None,
    relevance: Any = None,
    names: tuple[str, str] = ("A", "B"),
    sample: int = SAMPLE,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | None = None,
    device: Any = None,
) -> Sides:
    """Measure the sides of one space: queries and documents, languages, images and their captions.

    How far the sides lie apart, how well a classifier tells them apart, how well each side finds its partners
    among the rows of the other, and what subtracting the mean of each side buys. What looks wrong is said:
    sides that were embedded alike, pairs with one vector, a side that finds nothing.

    Args:
        A: (n, d) vectors in any array, a path, a data frame, an opened file.
        B: the vectors of the other side; None where `by` names the sides of the rows of A.
        by: a column of A, a file, or the values: the side of each row. Of more than two sides, each is set
            beside all others.
        relevance: which rows are partners. With B, as for the queries A and the documents B elsewhere: a
            column that both have ("a=b" where they are called differently), a file of pairs, or pairs of row
            numbers; by default row i of A goes with row i of B, if there are as many. With `by`, a column
            whose values partners share.
        names: what to call A and B.
        sample: search for the partners of so many random rows of a side, each among all rows of the others.
        seed: the seed of everything that is sampled.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.
        vectors: the column of a table that holds the vectors.
        device: the device to compute on; by default that of the vectors.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(300, 16))
    >>> B = A + 0.5 * np.random.default_rng(1).normal(size=(300, 16)) + 2
    >>> found = sides(A, B)
    >>> found["gap"].value > 0.4, found.findings[-1].split(":")[0]
    (True, 'the sides lie apart')
    """
    began = time.perf_counter()
    check_seed(seed)
    check_whole("sample", sample)
    if (B is None) == (by is None):
        raise InputError("needs either B or by, which names the side of each row", argument="B")
    options = {"vectors": vectors, "device": device}
    codes: Labels | None = None
    if B is not None:
        parts = _of_two(A, B, names, relevance, options)
    else:
        parts, codes = _of_column(A, by, relevance, options)
    means = {part.name: part.own.double().mean(dim=0) for part in parts}
    readings: list[Reading] = []
    notes: list[str] = []
    with Bar(show=progress) as bar:
        for part in parts[:1] if len(parts) == 2 else parts:
            bar.step("separability")
            readings += _apart(part, parts, seed)
        found: dict[tuple[str, str], Found] = {}
        for part in parts:
            if part.relevance is None:
                continue
            with_partner = (part.relevance.n_relevant > 0).nonzero().flatten()
            generator = torch.Generator().manual_seed(
                seed
            )  # the same rows of both sides, where rows are pairs
            order = torch.randperm(len(with_partner), generator=generator)[:sample].sort().values
            rows = with_partner[order]
            if len(rows) < len(with_partner):
                notes.append(f"{part.name}: partners of a random {len(rows):,} of {len(with_partner):,} rows")
            for kind, one in (("as they are", part), ("centred", part.centred(means, codes))):
                bar.step(f"partners of {part.name}")
                assert one.relevance is not None
                found[part.name, kind] = Found.of(part.name, one.own, one.others, one.relevance, rows)
                readings += found[part.name, kind].readings(kind)
            readings.append(
                difference(
                    "centring", found[part.name, "as they are"].hits_10, found[part.name, "centred"].hits_10,
                    is_paired=True, group={"side": part.name},
                )
            )  # fmt: skip
    if len(parts) == 2 and len(found) == 4:
        first, second = (found[part.name, "as they are"] for part in parts)
        is_paired = parts[0].are_rows and torch.equal(first.rows, second.rows)
        readings.append(
            difference(
                "asymmetry",
                second.hits_10,
                first.hits_10,
                is_paired=is_paired,
                group={},
                meaning=f"more rows of {parts[0].name} than of {parts[1].name} find a partner",
            )
        )
    sizes = {part.name: len(part.own) for part in parts}
    return Sides(
        sizes=sizes,
        d=int(parts[0].own.shape[1]),
        rows=tuple(readings),
        findings=tuple(findings_of(readings, sizes, n_pairs=len(parts[0].own) if parts[0].are_rows else 0)),
        ranks={key: one.ranks for key, one in found.items()},
        notes=tuple(notes),
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def _of_two(A: Any, B: Any, names: tuple[str, str], relevance: Any, options: dict[str, Any]) -> list[Side]:
    if not isinstance(names, Sequence) or len(names) != 2 or names[0] == names[1]:
        raise InputError(argument="names", got=names, wanted="two different names")
    columns = columns_of(relevance, None)
    a, b = (
        as_input(X, apart=[pair[side] for pair in columns], **options).source for side, X in enumerate((A, B))
    )
    if a.n_dims != b.n_dims:
        raise ShapeError(
            f"A has {a.n_dims} dimensions and B {b.n_dims}",
            wanted="sides of one space",
        )
    first, second = a.load(), b.load()
    known: Relevance | None = None
    back: Relevance | None = None
    are_rows = relevance is None and len(first) == len(second)
    if are_rows:
        rows = torch.arange(len(first))
        known = back = Relevance.of_labels(rows.tolist(), rows.tolist())
    elif columns:  # of tables, which a source of their vectors may not have
        values = [rows_of(X, columns[0][side], "relevance") for side, X in enumerate((A, B))]
        of_a, of_b = (list(one) for one in values)
        known, back = Relevance.of_labels(of_a, of_b), Relevance.of_labels(of_b, of_a)
    elif relevance is not None:
        known = as_queries(a, b, relevance=relevance, needed=True).relevance
        back = None if known is None else transposed(known, len(first))
    x, y = first.vectors.detach(), second.vectors.detach().to(first.vectors)
    return [Side(names[0], x, y, known, are_rows), Side(names[1], y, x, back, are_rows)]


def _of_column(A: Any, by: Any, relevance: Any, options: dict[str, Any]) -> tuple[list[Side], Labels]:
    names = [[name] if isinstance(name, str) else [] for name in (by, relevance)]
    space: Space = shelf_of(A, apart=[*names[0], *names[1]], **options).space
    vectors = options["vectors"]
    values = rows_of(A, by, "by", vectors=vectors, apart=names[1])
    codes = as_labels(values, n=len(space), name="by").seen()
    if codes.n_labels < 2:
        raise InputError(f"has one side, {codes.names[0]!s:.40}", argument="by", wanted="two or more")
    codes = Labels(codes.codes.cpu(), tuple(map(str, codes.names)))
    partners = None
    if relevance is not None:
        partners = as_labels(
            rows_of(A, relevance, "relevance", vectors=vectors, apart=names[0]),
            n=len(space),
            name="relevance",
        ).codes.cpu()
    parts = []
    for code, name in enumerate(codes.names):
        own = codes.codes == code
        known = None
        if partners is not None:
            known = Relevance.of_labels(partners[own].tolist(), partners[~own].tolist())
        place = own.to(space.device)
        parts.append(Side(str(name), space.vectors[place], space.vectors[~place], known))
    return parts, codes


def _apart(part: Side, parts: list[Side], seed: int) -> list[Reading]:
    """Return the gap between a side and the others, how well they are told apart, and pairs of one vector."""
    name = " and ".join(one.name for one in parts) if len(parts) == 2 else part.name
    group = {"side": name}
    rows = [_gap(part, group)]
    try:
        generator = torch.Generator().manual_seed(seed)
        some = [
            side[torch.randperm(len(side), generator=generator)[:_SEPARATED].to(side.device)]
            for side in (part.own, part.others)
        ]
        result = separability(*some, seed=seed)
        rows.append(
            Reading(
                "separability", result.auc, interval=result.auc_interval, range=(0.0, 1.0), group=group,
                meaning="how often a classifier tells a row of one side from one of the other",
            )
        )  # fmt: skip
    except UndefinedError as undefined:
        rows.append(Reading("separability", None, meaning=undefined.problem, group=group))
    if part.are_rows:
        cosines = (unit_rows(part.own)[0] * unit_rows(part.others)[0]).sum(dim=1)
        share = float((cosines > 1 - _SAME).double().mean())
        rows.append(Reading("identical_pairs", share, meaning="of the pairs have one vector", group=group))
    return rows


def _gap(part: Side, group: dict[str, str]) -> Reading:
    meaning = "of the variance lies between the means of the sides"
    try:
        if part.are_rows:
            sums = CrossMoments.of(part.own, part.others)
            value, error = modality_gap(sums), modality_gap_error(sums)
        else:
            value, error = mean_shift(part.own, part.others)
    except UndefinedError as undefined:
        return Reading("gap", None, meaning=undefined.problem, group=group)
    return Reading("gap", value, error, range=(-1.0, 1.0), meaning=meaning, group=group)
