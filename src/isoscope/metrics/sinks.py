"""Attention sinks: tokens whose vectors are many times longer than the rest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import as_tensor, check_finite
from isoscope.errors import InputError, ShapeError, check_between
from isoscope.labels import Labels
from isoscope.results import Result

_NAMED = 0.9  # the share of rows at a position, or of a type, that must be sinks for it to be named
_MOST_LAYERS = 4  # of the layers with a name, so many are listed
_MOST_NAMES = 8  # what explains fewer sinks than these is counted, not named


@dataclass(frozen=True, eq=False, repr=False)
class Sinks(Result):
    """The rows that are attention sinks, with their names; mergeable over batches of rows.

    Attributes:
        mask: (n,) bool, the rows whose norm passes the threshold in any layer.
        thresholds: (L,) float64, the norm that a sink exceeds in each layer.
        ratio: thresholds over the median norms they come from.
        layers: the L layers' numbers or names; none where one list of norms came, of no layer in particular.
        largest: (L,) float64, the largest norm in each layer.
        sink_norms: (s, L) float64, the norms of the sinks, in the order of the rows.
        sink_keys: the position and token type of each sink, None where they are not known.
        n_at: how many rows stand at each position.
        n_of: how many rows each token type has.
    """

    mask: Tensor
    thresholds: Tensor
    ratio: float
    layers: tuple[int | str, ...]
    largest: Tensor
    sink_norms: Tensor
    sink_keys: tuple[tuple[int | None, Any], ...]
    n_at: Mapping[int, int]
    n_of: Mapping[Any, int]

    def lines(self) -> list[str]:
        """Return the number of sinks and their names."""
        return [f"{len(self):,} of {len(self.mask):,} rows are attention sinks", *self.names]

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "layer": list(self.layers) or [None],
            "threshold": self.thresholds.tolist(),
            "largest_norm": self.largest.tolist(),
        }

    def merge(self, other: Sinks) -> Sinks:
        """Return the rows of both, in order; the thresholds must be equal."""
        return Sinks.joined([self, other])

    @classmethod
    def joined(cls, parts: Sequence[Sinks]) -> Sinks:
        """Return the rows of all, in order; the thresholds must be equal."""
        first = parts[0]
        if any(
            part.layers != first.layers or not torch.equal(part.thresholds, first.thresholds)
            for part in parts
        ):
            raise InputError(
                "differ between batches", argument="thresholds", wanted="the same for all batches"
            )
        at, of = Counter[int](), Counter[Any]()
        for part in parts:
            at.update(part.n_at)
            of.update(part.n_of)
        return cls(
            torch.cat([part.mask for part in parts]), first.thresholds, first.ratio, first.layers,
            torch.stack([part.largest for part in parts]).amax(dim=0),
            torch.cat([part.sink_norms for part in parts]),
            tuple(key for part in parts for key in part.sink_keys), at, of,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.sink_keys)

    @property
    def n_rows(self) -> int:
        """Number of rows, sinks and others."""
        return len(self.mask)

    @property
    def medians(self) -> Tensor:
        """(L,) median norms that the thresholds come from."""
        return self.thresholds / self.ratio

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sinks: positions and token types that are nearly always sinks, and the rest.

        What explains most sinks comes first, and a sink is named once.
        """
        return tuple(f"{words} ({self._beside_others(rows)})" for words, rows in self._named())

    def _named(self) -> Iterator[tuple[str, list[int]]]:
        left = set(range(len(self)))
        for _ in range(_MOST_NAMES):
            best = max(self._candidates(left), key=lambda named: len(named[1]), default=None)
            if best is None:
                break
            left -= set(best[1])
            yield best
        if left:
            others = "1 other row" if len(left) == 1 else f"{len(left):,} other rows"
            yield others if len(left) < len(self) else others.replace("other ", ""), sorted(left)

    def _candidates(self, left: set[int]) -> Iterator[tuple[str, list[int]]]:
        """Yield positions, then types, if nearly all of their rows without a name are sinks."""
        for part, totals, least, words in ((0, self.n_at, 1, "position {}"), (1, self.n_of, 2, 'token "{}"')):
            rows: dict[Any, list[int]] = {}
            named: Counter[Any] = Counter()
            for row, key in enumerate(self.sink_keys):
                if row in left:
                    rows.setdefault(key[part], []).append(row)
                else:
                    named[key[part]] += 1
            for value, members in rows.items():
                n = totals.get(value, 0) - named[value]
                if value is not None and n >= least and len(members) >= _NAMED * n:
                    yield words.format(value), members

    def _beside_others(self, rows: list[int]) -> str:
        """Return their usual norm relative to the median, in layers where most exceed the threshold."""
        norms = self.sink_norms[rows]
        shares = (norms > self.thresholds).double().mean(dim=0)
        where = shares >= min(0.5, float(shares.max()))
        usual = _figure(norms[:, where].quantile(0.5, dim=0).median())
        text = f"norm {usual} against a median of {_figure(self.medians[where].median())}"
        chosen = [layer for layer, inside in zip(self.layers, where.tolist(), strict=False) if inside]
        return f"{text} in {_ranges(chosen)}" if chosen else text


def find_sinks(
    norms: Any,
    *,
    positions: Any = None,
    token_types: Any = None,
    layers: Sequence[int | str] | None = None,
    ratio: float = 10.0,
    thresholds: Any = None,
) -> Sinks:
    """Find the tokens that are attention sinks, by the length of their vectors.

        ‖x‖ > ratio · median ‖x‖ of its layer, in any layer

    Models with causal attention park it on the first token, whose vector grows to fifty times the length
    of the others; every mean of the space then speaks of that token. Compare a measurement with them and
    without. A position or token type nearly all of whose rows are sinks is named. Invariant to rotation
    and one scale.

    Args:
        norms: (n,) lengths in one layer, or (L, n) in several.
        positions: the place of each token in its text, from 0.
        token_types: the type of each token.
        layers: the numbers or names of the L layers; 0 … L − 1 where not given.
        ratio: how many times the median a sink is.
        thresholds: (L,) of `sink_thresholds`, to judge batches alike; from these norms where not given.

    >>> sinks = find_sinks([90.0, 1.0, 1.2, 80.0, 0.9, 1.1], positions=[0, 1, 2, 0, 1, 2])
    >>> sinks.mask.tolist()
    [True, False, False, True, False, False]
    >>> sinks.names
    ('position 0 (norm 85 against a median of 1.15)',)
    """
    lengths = _lengths(norms)
    if layers is None:
        layers = () if as_tensor(norms, name="norms").ndim == 1 else range(len(lengths))
    elif not isinstance(layers, Sequence):
        raise InputError(argument="layers", got=layers, wanted="a list of the names of layers")
    elif len(layers) != len(lengths):
        raise ShapeError(f"has {len(layers)} entries for norms of {len(lengths)} layers", argument="layers")
    if thresholds is None:
        thresholds = sink_thresholds(lengths, ratio=ratio)
    limits = as_tensor(thresholds, name="thresholds").detach().cpu().double().reshape(-1)
    if len(limits) != len(lengths):
        raise ShapeError(
            f"has {len(limits)} entries for norms of {len(lengths)} layers", argument="thresholds"
        )
    mask = (lengths > limits.to(lengths.device)[:, None]).any(dim=0)
    places = _listed(positions, lengths.shape[1], "positions")
    kinds = _listed(token_types, lengths.shape[1], "token_types")
    sinks = mask.nonzero().flatten()
    keys = tuple(
        (places.name(row) if places else None, kinds.name(row) if kinds else None) for row in sinks.tolist()
    )
    return Sinks(
        mask.cpu(), limits, ratio, tuple(layers), lengths.amax(dim=1).cpu(),
        lengths[:, sinks].T.cpu(), keys, places.counts if places else Counter(),
        kinds.counts if kinds else Counter(),
    )  # fmt: skip


def sink_thresholds(norms: Any, *, ratio: float = 10.0) -> Tensor:
    """Return (L,) the norm above which a row is a sink: ratio times the median of the non-zero norms.

    Those of a first batch serve for all. Infinite where all vectors of a layer are zero.

    >>> sink_thresholds([1.0, 2.0, 0.0, 3.0]).tolist()
    [20.0]
    """
    ratio = check_between("ratio", ratio, 1, math.inf, wanted="a number above 1", open_at="low, high")
    lengths = _lengths(norms).cpu()
    medians = [
        float(np.median(layer[layer > 0].numpy())) if (layer > 0).any() else float("inf") for layer in lengths
    ]
    return ratio * torch.tensor(medians, dtype=torch.float64)


def _lengths(norms: Any) -> Tensor:
    """Return (L, n) float64."""
    lengths = as_tensor(norms, name="norms").detach().double()
    if lengths.ndim == 1:
        lengths = lengths[None]
    if lengths.ndim != 2 or lengths.numel() == 0:
        raise ShapeError(
            f"has shape {tuple(lengths.shape)}", argument="norms", wanted="(n,), or (L, n) of several layers"
        )
    check_finite(lengths, name="norms")
    if (lengths < 0).any():
        raise InputError(
            "has negative entries", argument="norms", wanted="lengths of vectors", hint="pass X.norm(dim=-1)"
        )
    return lengths


@dataclass(frozen=True)
class _Listed:
    """One value a row: codes, and what each code stands for."""

    codes: Tensor
    names: Sequence[Any]

    def name(self, row: int) -> Any:
        return self.names[int(self.codes[row])]

    @property
    def counts(self) -> Counter[Any]:
        """Return the number of rows with each value."""
        counts = torch.bincount(self.codes, minlength=len(self.names))
        present = counts.nonzero().flatten().tolist()
        return Counter({self.names[code]: int(counts[code]) for code in present})


def _listed(values: Any, n: int, name: str) -> _Listed | None:
    """Return one plain value a row, from any sequence or from Labels."""
    if values is None:
        return None
    if isinstance(values, Labels):
        listed = _Listed(values.codes.cpu(), values.names)
    elif isinstance(values, Tensor) and not values.is_floating_point():
        names, codes = values.cpu().unique(return_inverse=True)
        listed = _Listed(codes, names.tolist())
    else:
        plain = values.tolist() if hasattr(values, "tolist") else list(values)
        names = list(dict.fromkeys(plain))
        places = {value: code for code, value in enumerate(names)}
        listed = _Listed(torch.tensor([places[value] for value in plain], dtype=torch.int64), names)
    if len(listed.codes) != n:
        raise ShapeError(
            f"has {len(listed.codes)} entries for {n} norms", argument=name, wanted="one for each"
        )
    return listed


def _figure(value: Tensor) -> str:
    """Return a length as text with three significant digits."""
    return f"{float(f'{float(value):.3g}'):,g}"


def _ranges(layers: Sequence[int | str]) -> str:
    """Return layers as text, with consecutive numbers as ranges and at most four names."""
    if isinstance(layers[0], str):
        names = ", ".join(map(str, layers[:_MOST_LAYERS]))
        return names + (f" and {len(layers) - _MOST_LAYERS} more" if len(layers) > _MOST_LAYERS else "")
    runs: list[list[Any]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    parts = [f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"{'layers' if len(layers) > 1 else 'layer'} {', '.join(parts)}"
